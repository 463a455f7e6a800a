//! Build of the program `selvedge`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::{cargo, output};
use crate::workspace::root;

/// Build profile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Profile that is quick to build.
    Dev,
    /// Profile that is quick to run.
    Release,
}

/// Builds the command line and returns a command that runs it at the root of the workspace.
///
/// Builds as part of the whole workspace: dependencies then have the features that the tests' build gives them, and
/// nothing is built twice.
///
/// # Errors
/// Returns an error if the build fails.
pub(crate) fn selvedge(profile: Profile) -> Result<Command> {
    let mut build = cargo(["build", "--workspace", "--bin", "selvedge", "--message-format=json-render-diagnostics"]);
    if profile == Profile::Release {
        build.arg("--release");
    }
    let messages = output(build.stdin(Stdio::null()))?;
    for message in messages.lines() {
        let message: Value = serde_json::from_str(message).context("cargo build")?;
        if let (Some(executable), Some("selvedge")) =
            (message["executable"].as_str(), message["target"]["name"].as_str())
        {
            let mut command = Command::new(executable);
            command.current_dir(root());
            return Ok(command);
        }
    }
    bail!("cargo build made no program called selvedge")
}
