//! Command `selvedge eqds lab`: a network of namespaces, an EQDS daemon in each host, and a program.

mod args;
mod daemons;
mod settings;

use std::process::Command;

use selvedge_dataplane::lab::{Claim, Network, Plan};

pub(crate) use args::{EXAMPLES, LabArgs};
use daemons::Daemons;

use crate::laboratory::{self, interrupted, unable};
use crate::output::{self, Failure};
use crate::supervise;

pub(crate) fn lab(args: &LabArgs) -> Result<(), Failure> {
    let plan = args.plan().map_err(Failure::input)?;
    let extra = args.config_extra.as_deref().map(settings::read_extra).transpose()?.unwrap_or_default();
    let (signals, claim) = laboratory::claim(
        &plan.name,
        &plan.namespaces(),
        !args.command.is_empty(),
        "selvedge eqds lab --hosts 2 -- sh",
    )?;
    // Values are dropped from the last to the first: daemons end before their network, and the folder goes last.
    let network = Network::open(&plan, &mut || signals.has_come());
    let _network = network.map_err(|error| if signals.has_come() { interrupted() } else { unable(error) })?;
    let mut daemons = match args.without {
        true => None,
        false => {
            settings::write(&plan, args.credit_rate(), &extra, claim.folder())?;
            let daemons = Daemons::start(&plan, claim.folder(), &signals)?;
            if signals.has_come() {
                return Err(interrupted());
            }
            Some(daemons)
        }
    };
    let outcome = match args.command.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).envs(environment(args, &plan, &claim));
            supervise::run(&mut command, &signals)
        }
        None => {
            output::say(&ready(&plan));
            signals.wait();
            Ok(0)
        }
    };
    if let Some(daemons) = &mut daemons {
        daemons.tell_of_ended();
    }
    let status = outcome?;
    if status == 0 { Ok(()) } else { Err(Failure { status, message: String::new(), storage: false }) }
}

/// Returns the variables that tell the program about the laboratory.
fn environment(args: &LabArgs, plan: &Plan, claim: &Claim) -> Vec<(String, String)> {
    let folder = claim.folder();
    let mut all = vec![
        ("HOSTS".to_owned(), plan.hosts.to_string()),
        ("RATE".to_owned(), plan.rate.map_or_else(String::new, |rate| rate.as_bps().to_string())),
        ("BUFFER".to_owned(), plan.buffer.to_string()),
        ("MTU".to_owned(), plan.mtu.to_string()),
        ("PATHS".to_owned(), plan.paths.to_string()),
        ("FOLDER".to_owned(), folder.display().to_string()),
    ];
    if args.without {
        all.push(("WITHOUT".to_owned(), "1".to_owned()));
    }
    for host in plan.all() {
        all.push((format!("NS_{host}"), plan.host(host)));
        all.push((format!("OUTER_{host}"), plan.outer(host).to_string()));
        all.push((format!("INNER_{host}"), plan.inner(host).to_string()));
        all.push((format!("SOCKET_{host}"), settings::socket(folder, host).display().to_string()));
    }
    all.into_iter().map(|(name, value)| (format!("SELVEDGE_LAB_{name}"), value)).collect()
}

fn ready(plan: &Plan) -> String {
    format!(
        "ready: {} to {}, addresses {} to {} outside; `ip netns exec {} PROGRAM` enters, Ctrl-C ends",
        plan.host(1),
        plan.host(plan.hosts),
        plan.outer(1),
        plan.outer(plan.hosts),
        plan.host(1)
    )
}
