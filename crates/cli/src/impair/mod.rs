//! Command `selvedge impair`: two network namespaces, and impairments of packets between them.

mod args;
mod report;

use std::process::Command;

use selvedge_dataplane::impair::{ADDRESSES, Plan, Testbed, acquire};

pub(crate) use args::{EXAMPLES, ImpairArgs};

use crate::output::{self, Failure, print};
use crate::supervise::{self, Signals};

pub(crate) fn impair(args: &ImpairArgs) -> Result<(), Failure> {
    let plan = &args.plan().map_err(Failure::input)?;
    let unable = |error: std::io::Error| Failure::input(error.to_string());
    let is_own = acquire().map_err(unable)?;
    if is_own && args.command.is_empty() {
        return Err(Failure::input(
            "without root nobody else could enter the namespaces: say which program uses them, as in \
             `selvedge impair --loss 1% -- sh`",
        ));
    }
    // Handlers come before anything is written: from here on Ctrl-C ends the run in order.
    let signals = Signals::listen()?;
    let testbed = Testbed::open(plan).map_err(unable)?;
    let outcome = match args.command.split_first() {
        Some((program, arguments)) => supervise::run(Command::new(program).args(arguments), &signals),
        None => {
            output::say(&ready(plan));
            signals.wait();
            Ok(0)
        }
    };
    let done = testbed.close().map_err(|error| Failure::outcome(error.to_string()))?;
    let status = outcome?;
    if args.json {
        print(&(output::json(&report::as_json(plan, &done)) + "\n"))?;
    } else if args.command.is_empty() {
        print(&report::as_text(plan, &done))?;
    } else {
        // Standard output is left to the user's program.
        output::say(report::as_text(plan, &done).trim_end());
    }
    if status == 0 { Ok(()) } else { Err(Failure { status, message: String::new(), storage: false }) }
}

fn ready(plan: &Plan) -> String {
    let end = |end: usize| format!("{} ({}, {})", plan.names[end], ADDRESSES[end][0], ADDRESSES[end][1]);
    format!("ready: {} and {}; `ip netns exec {} PROGRAM` enters, Ctrl-C ends", end(0), end(1), plan.names[0])
}
