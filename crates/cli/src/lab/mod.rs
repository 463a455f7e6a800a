//! Command `selvedge lab`: the hosts of a rack as namespaces, its switches between them, and a program.

mod args;

use std::process::Command;

use selvedge_dataplane::lab::{Rack as Hosts, RackPlan};
use selvedge_dataplane::switch::Directory;

pub(crate) use args::{EXAMPLES, LabArgs, plan_of};

use crate::laboratory::{self, interrupted, unable};
use crate::output::{self, Failure};
use crate::supervise;
use crate::switch::{self, Job};

pub(crate) fn lab(args: &LabArgs) -> Result<(), Failure> {
    let rack = switch::read(&args.rack, &args.options)?;
    let plan = args.plan(&rack).map_err(Failure::input)?;
    let (signals, _claim) =
        laboratory::claim(&plan.name, &plan.namespaces(), !args.command.is_empty(), "selvedge lab rack.toml -- sh")?;
    // Values are dropped from the last to the first: the switch ends before its hosts, and the folder goes last.
    let racked = Hosts::open(&plan, &mut || signals.has_come());
    let racked = racked.map_err(|error| if signals.has_come() { interrupted() } else { unable(error) })?;
    let _hosts = racked.rack;
    racked.notes.iter().for_each(|note| output::say(&format!("note: {note}")));
    let mut directory = Directory::new(plan.hosts.len());
    (0..plan.hosts.len()).for_each(|host| directory.add(host, plan.station(host), plan.addresses(host)));
    let mut run = |has_failed: &dyn Fn() -> bool| match args.command.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).envs(environment(&plan));
            supervise::run(&mut command, &signals)
        }
        None => {
            output::say(&ready(&plan));
            signals.wait_for(u32::MAX, has_failed);
            Ok(0)
        }
    };
    let job = Job { rack: &rack, directory, ports: racked.ports, options: &args.options };
    let status = switch::run(job, args.command.is_empty(), &mut run)?;
    if status == 0 { Ok(()) } else { Err(Failure { status, message: String::new(), storage: false }) }
}

/// Returns the variables that tell the program about the laboratory.
fn environment(plan: &RackPlan) -> Vec<(String, String)> {
    let names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
    let mut all = vec![("SELVEDGE_LAB_HOSTS".to_owned(), names.join(" "))];
    for (host, name) in names.iter().enumerate() {
        // Shells know no other letters in names.
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        all.push((format!("SELVEDGE_LAB_NS_{name}"), plan.namespace(host)));
        all.push((format!("SELVEDGE_LAB_ADDRESS_{name}"), plan.address(host).to_string()));
        all.push((format!("SELVEDGE_LAB_ADDRESS6_{name}"), plan.address6(host).to_string()));
    }
    all
}

fn ready(plan: &RackPlan) -> String {
    let last = plan.hosts.len() - 1;
    format!(
        "ready: {} ({}) to {} ({}); `ip netns exec {} PROGRAM` enters, Ctrl-C ends",
        plan.namespace(0),
        plan.address(0),
        plan.namespace(last),
        plan.address(last),
        plan.namespace(0)
    )
}
