//! Beginning and end of laboratories: commands that make hosts as network namespaces.

use selvedge_dataplane::impair::acquire;
use selvedge_dataplane::lab::Claim;

use crate::output::{self, Failure};
use crate::supervise::Signals;

/// Claims `name` and `namespaces` for a laboratory: gets the right to make them, listens for signals, and removes what
/// a laboratory that was killed has left. Ordinary users need a program to run; `example` shows them such a command.
pub(crate) fn claim(
    name: &str,
    namespaces: &[String],
    has_program: bool,
    example: &str,
) -> Result<(Signals, Claim), Failure> {
    let base = Claim::base();
    if acquire().map_err(unable)? && !has_program {
        return Err(Failure::input(format!(
            "without root nobody else could enter the namespaces: say which program uses them, as in `{example}`"
        )));
    }
    // Handlers come before anything is made: from here on Ctrl-C ends the laboratory in order.
    let signals = Signals::listen()?;
    let (claim, remains) = Claim::take(&base, name, namespaces).map_err(unable)?;
    if let Some(remains) = remains {
        output::say(&format!(
            "removed what a laboratory that was killed has left: {} namespaces and {} processes in them",
            remains.namespaces, remains.processes
        ));
    }
    Ok((signals, claim))
}

/// Returns the failure of a laboratory that cannot be made.
pub(crate) fn unable(error: std::io::Error) -> Failure {
    Failure::input(error.to_string())
}

/// Returns the failure of a laboratory that a signal has ended.
pub(crate) fn interrupted() -> Failure {
    Failure { status: 130, message: "interrupted; everything is removed".to_owned(), storage: false }
}
