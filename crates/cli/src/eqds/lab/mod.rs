//! Command `selvedge eqds lab`: a network of namespaces, an EQDS daemon in each host, and a program.

mod args;
mod daemons;
mod settings;
mod sites;

use std::path::Path;
use std::process::Command;

use selvedge_dataplane::lab::{Claim, Network, Rack as Hosts};
use selvedge_dataplane::switch::Directory;

pub(crate) use args::{EXAMPLES, LabArgs};
use daemons::Daemons;
use sites::Sites;

use crate::lab::plan_of;
use crate::laboratory::{self, interrupted, unable};
use crate::output::{self, Failure};
use crate::supervise::{self, Signals};
use crate::switch::{self, Job, SwitchOptions};

/// Example of a command, for those who need a program.
const EXAMPLE: &str = "selvedge eqds lab --hosts 2 -- sh";

pub(crate) fn lab(args: &LabArgs) -> Result<(), Failure> {
    let extra = args.config_extra.as_deref().map(settings::read_extra).transpose()?.unwrap_or_default();
    let status = match &args.rack {
        Some(file) => on_rack(args, file, &extra)?,
        None => on_network(args, &extra)?,
    };
    if status == 0 { Ok(()) } else { Err(Failure { status, message: String::new(), storage: false }) }
}

/// Makes a laboratory with switches of the kernel; returns the program's status.
fn on_network(args: &LabArgs, extra: &str) -> Result<u8, Failure> {
    let plan = args.plan().map_err(Failure::input)?;
    let (signals, claim) = laboratory::claim(&plan.name, &plan.namespaces(), !args.command.is_empty(), EXAMPLE)?;
    // Values are dropped from the last to the first: daemons end before their network, and the folder goes last.
    let network = Network::open(&plan, &mut || signals.has_come());
    let _network = network.map_err(|error| if signals.has_come() { interrupted() } else { unable(error) })?;
    let sites = Sites::of_plan(&plan);
    let network = [("BUFFER", plan.buffer.to_string()), ("PATHS", plan.paths.to_string())];
    work(args, &sites, &network, extra, &claim, &signals)
}

/// Makes a laboratory with the switches of a rack; returns the program's status.
fn on_rack(args: &LabArgs, file: &Path, extra: &str) -> Result<u8, Failure> {
    let options = SwitchOptions::new(args.mtu, args.sets.clone(), args.json);
    let rack = switch::read(file, &options)?;
    let plan = plan_of(&rack, &args.name, args.mtu);
    plan.check().map_err(Failure::input)?;
    let (signals, claim) = laboratory::claim(&plan.name, &plan.namespaces(), !args.command.is_empty(), EXAMPLE)?;
    // Values are dropped from the last to the first: daemons end before the switches, these before their hosts.
    let racked = Hosts::open(&plan, &mut || signals.has_come());
    let racked = racked.map_err(|error| if signals.has_come() { interrupted() } else { unable(error) })?;
    let hosts = racked.rack;
    racked.notes.iter().for_each(|note| output::say(&format!("note: {note}")));
    // No packet of a tunnel waits for an address, and none is lost meanwhile.
    hosts.introduce(&plan).map_err(unable)?;
    let mut directory = Directory::new(plan.hosts.len());
    (0..plan.hosts.len()).for_each(|host| directory.add(host, plan.station(host), plan.addresses(host)));
    let sites = Sites::of_rack(&plan);
    let mut during = |_: &dyn Fn() -> bool| work(args, &sites, &[], extra, &claim, &signals);
    let job = Job { rack: &rack, directory, ports: racked.ports, options: &options };
    switch::run(job, args.command.is_empty(), &mut during)
}

/// Starts the daemons, and runs the program, or waits for a signal. Returns the program's status.
fn work(
    args: &LabArgs,
    sites: &Sites,
    network: &[(&str, String)],
    extra: &str,
    claim: &Claim,
    signals: &Signals,
) -> Result<u8, Failure> {
    let mut daemons = match args.without {
        true => None,
        false => {
            settings::write(sites, |host| args.credit_rate(sites.rate(host)), extra, claim.folder())?;
            let daemons = Daemons::start(sites, claim.folder(), signals)?;
            if signals.has_come() {
                return Err(interrupted());
            }
            Some(daemons)
        }
    };
    let outcome = match args.command.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).envs(environment(args, sites, network, claim));
            supervise::run(&mut command, signals)
        }
        None => {
            output::say(&ready(sites));
            signals.wait();
            Ok(0)
        }
    };
    if let Some(daemons) = &mut daemons {
        daemons.tell_of_ended();
    }
    outcome
}

/// Returns the variables that tell the program about the laboratory.
fn environment(args: &LabArgs, sites: &Sites, network: &[(&str, String)], claim: &Claim) -> Vec<(String, String)> {
    let folder = claim.folder();
    let mut all = vec![
        ("HOSTS".to_owned(), sites.count().to_string()),
        ("RATE".to_owned(), sites.rate(1).map_or_else(String::new, |rate| rate.as_bps().to_string())),
        ("MTU".to_owned(), sites.mtu.to_string()),
        ("FOLDER".to_owned(), folder.display().to_string()),
    ];
    all.extend(network.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    if args.without {
        all.push(("WITHOUT".to_owned(), "1".to_owned()));
    }
    for host in sites.all() {
        all.push((format!("NS_{host}"), sites.host(host).to_owned()));
        all.push((format!("OUTER_{host}"), sites.outer(host).to_string()));
        all.push((format!("INNER_{host}"), sites.inner(host).to_string()));
        all.push((format!("SOCKET_{host}"), settings::socket(folder, host).display().to_string()));
    }
    all.into_iter().map(|(name, value)| (format!("SELVEDGE_LAB_{name}"), value)).collect()
}

fn ready(sites: &Sites) -> String {
    let last = sites.count();
    format!(
        "ready: {} to {}, addresses {} to {} outside; `ip netns exec {} PROGRAM` enters, Ctrl-C ends",
        sites.host(1),
        sites.host(last),
        sites.outer(1),
        sites.outer(last),
        sites.host(1)
    )
}
