//! Command `selvedge lab`: the hosts of a rack as namespaces, its switches between them, and a program.

mod args;

use std::process::Command;

use selvedge_dataplane::impair::acquire;
use selvedge_dataplane::lab::{Claim, Rack as Hosts, RackPlan};
use selvedge_dataplane::switch::Directory;

pub(crate) use args::{EXAMPLES, LabArgs};

use crate::output::{self, Failure};
use crate::supervise::{self, Signals};
use crate::switch::{self, Job};

pub(crate) fn lab(args: &LabArgs) -> Result<(), Failure> {
    let rack = switch::read(&args.rack, &args.sets)?;
    let plan = args.plan(&rack).map_err(Failure::input)?;
    let unable = |error: std::io::Error| Failure::input(error.to_string());
    let base = Claim::base();
    let is_own = acquire().map_err(unable)?;
    if is_own && args.command.is_empty() {
        return Err(Failure::input(
            "without root nobody else could enter the namespaces: say which program uses them, as in \
             `selvedge lab rack.toml -- sh`",
        ));
    }
    // Handlers come before anything is made: from here on Ctrl-C ends the laboratory in order.
    let signals = Signals::listen()?;
    let (_claim, remains) = Claim::take(&base, &plan.name, &plan.namespaces()).map_err(unable)?;
    if let Some(remains) = remains {
        output::say(&format!(
            "removed what a laboratory that was killed has left: {} namespaces and {} processes in them",
            remains.namespaces, remains.processes
        ));
    }
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
    let job = Job {
        rack: &rack,
        directory,
        ports: racked.ports,
        is_direct: args.without,
        json: args.json,
        frame: switch::frame(args.mtu),
        samples: &args.samples,
        priorities: &args.priorities,
    };
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

fn interrupted() -> Failure {
    Failure { status: 130, message: "interrupted; everything is removed".to_owned(), storage: false }
}
