//! Command `selvedge eqds`: the daemon of EQDS's tunnels, and questions to it.

mod args;
mod lab;
mod metrics;
mod perf;
mod show;

use selvedge_dataplane::eqds::{Answer, Command, DaemonStatus, EqdsError, Options, ask, run};
use selvedge_tunnel::config::Config;

use args::{ControlArgs, EqdsCommand, UpArgs};
pub(crate) use args::{EXAMPLES, EqdsArgs};

use crate::output::{self, Failure, print};

pub(crate) fn eqds(args: &EqdsArgs) -> Result<(), Failure> {
    match &args.command {
        EqdsCommand::Up(args) => up(args),
        EqdsCommand::Status { json: true, control } => print(&(output::json(&status(control)?) + "\n")),
        EqdsCommand::Status { json: false, control } => print(&show::status(&status(control)?)),
        EqdsCommand::Peers(control) => print(&show::peers(&status(control)?)),
        EqdsCommand::Perf(args) => perf::perf(args),
        EqdsCommand::Lab(args) => lab::lab(args),
        EqdsCommand::Metrics(control) => print(&metrics::text(&status(control)?)),
        EqdsCommand::Reload(control) => done(control, Command::Reload).map(|text| output::say(&text)),
        EqdsCommand::Down(control) => done(control, Command::Down).map(drop),
    }
}

fn up(args: &UpArgs) -> Result<(), Failure> {
    if args.check {
        let config = Config::read(&args.config).map_err(|error| Failure::input(error.to_string()))?;
        return print(&show::settings(&config));
    }
    let options = Options { config: args.config.clone(), socket: args.control.socket() };
    Ok(run(&options, &mut output::say)?)
}

fn status(control: &ControlArgs) -> Result<DaemonStatus, Failure> {
    match ask(&control.socket(), Command::Status)? {
        Answer::Status(status) => Ok(*status),
        Answer::Done(text) | Answer::Error(text) => Err(Failure::outcome(text)),
    }
}

/// Asks for something to be done; returns the daemon's text. Refusals are about the settings.
fn done(control: &ControlArgs, command: Command) -> Result<String, Failure> {
    match ask(&control.socket(), command)? {
        Answer::Done(text) => Ok(text),
        Answer::Error(text) => Err(Failure::input(text)),
        Answer::Status(_) => Err(Failure::outcome("the daemon gave an answer to another question")),
    }
}

impl From<EqdsError> for Failure {
    fn from(error: EqdsError) -> Self {
        let message = error.to_string();
        if error.is_input { Self::input(message) } else { Self::outcome(message) }
    }
}
