//! Command line: assembly only.
//!
//! Every command turns its arguments into values, calls the crate that does the work, and prints the result. Standard
//! output carries results, standard error everything else. Exit status: 0 success, 1 a claim fails or a study could not
//! be finished, 2 wrong input, 130 interrupted, 143 ended by SIGTERM.
#![forbid(unsafe_code)]

mod args;
mod check;
mod compare;
#[cfg(target_os = "linux")]
mod eqds;
mod exhausted;
mod explain;
#[cfg(target_os = "linux")]
mod impair;
mod inspect;
#[cfg(target_os = "linux")]
mod lab;
#[cfg(target_os = "linux")]
mod laboratory;
mod manual;
mod open;
mod output;
mod programs;
mod progress;
mod real;
mod replay;
mod run;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod switch;
#[cfg(target_os = "linux")]
mod verbs;

use std::process::ExitCode;

use clap::{ColorChoice, CommandFactory, FromArgMatches};
use selvedge_memory::Allocator;

use args::{Command, Described, Selvedge};
use output::{Failure, print};
use selvedge_scenario::KeyHelp;

/// Allocator that ends the process with a message and status 1 when memory is exhausted, not with an abort.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator { on_exhausted: exhausted::end };

fn main() -> ExitCode {
    selvedge_memory::return_freed_memory();
    let color = if output::allows_control() { ColorChoice::Auto } else { ColorChoice::Never };
    let matches = Selvedge::command().color(color).get_matches();
    let arguments = Selvedge::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let outcome = match arguments.command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Open(args) => open::open(&args),
        Command::Topology(args) => inspect::topology(&args),
        Command::Workload(args) => inspect::workload(&args),
        Command::Footprint(args) => inspect::footprint(&args),
        Command::Serve => {
            let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
            selvedge_study::serve(&mut input, &mut output).map_err(Failure::from)
        }
        Command::Replay(args) => replay::replay(&args),
        #[cfg(target_os = "linux")]
        Command::Verbs(args) => verbs::verbs(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Verbs(_) => Err(Failure::outcome("the software RNIC needs Linux")),
        #[cfg(target_os = "linux")]
        Command::Impair(args) => impair::impair(&args),
        Command::Tor { .. } => Err(Failure::input(
            "there is no `selvedge tor`: NetRT's switches are those of `selvedge lab`; give it a file with \
             `switch.netrt.enabled = true`, as in docs/netrt.md",
        )),
        #[cfg(target_os = "linux")]
        Command::Lab(args) => lab::lab(&args),
        #[cfg(target_os = "linux")]
        Command::Switch(args) => switch::switch(&args),
        #[cfg(target_os = "linux")]
        Command::Eqds(args) => eqds::eqds(&args),
        Command::TrialEnd => real::end(),
        Command::Keys { all: true, .. } => print(&KeyHelp::page()),
        Command::Keys { path, .. } => {
            KeyHelp::of(&path).map_err(Failure::from).and_then(|help| print(&help.to_string()))
        }
        Command::Presets { name, json } => inspect::presets(name.as_deref(), json),
        Command::Schema { of } => {
            let schema = match of {
                Described::Scenario => selvedge_scenario::schema(),
                Described::Summary => selvedge_results::summary_schema(),
                Described::Eqds => selvedge_tunnel::config::schema(),
            };
            print(&(output::json(&schema) + "\n"))
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Selvedge::command(), "selvedge", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
        Command::Manual { folder } => manual::manual(&folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { status, message, .. }) => {
            if !message.is_empty() {
                output::say(&format!("error: {message}"));
            }
            ExitCode::from(status)
        }
    }
}
