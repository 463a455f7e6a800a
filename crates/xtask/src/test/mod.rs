//! Command `cargo xtask test`.
//!
//! Runs one `cargo test` over the workspace: unit, integration and documentation tests, among them those that replay
//! the fuzz corpora. A test that cannot check something prints it on a line that begins with "skipped:", and returns;
//! those lines are collected here.
//!
//! Tests run in the dev profile, which optimises a little: all together they run for minutes, most of the time in other
//! projects' programs over the software RNIC.

mod transcript;

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::ExitStatus;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::command::{cargo, text_of};
use crate::tools::require_c_compiler;
use crate::workspace::root;
use transcript::{Shown, Transcript};

#[derive(Args)]
pub(crate) struct Options {
    /// Count a skipped test as a failure (for CI); runs ignored tests too
    #[arg(long)]
    all: bool,
}

pub(crate) fn test(options: &Options) -> Result<()> {
    require_c_compiler()?;
    let shared = shared();
    if !shared.is_dir() {
        eprintln!(
            "note: {} does not exist; tests against other people's files will be skipped.\n\
             It is the project's collection of traces, formats and workloads: put it beside this folder, or let\n\
             SELVEDGE_SHARED name it.",
            shared.display()
        );
    }
    let mut transcript = Transcript::default();
    let status = run(options, &mut transcript)?;
    let transcript = transcript.finish(status.success());

    let mut out = io::stdout().lock();
    for skip in &transcript.skipped {
        writeln!(out, "skipped: {} {}: {}", skip.suite, skip.test, skip.reason)?;
    }
    for failure in &transcript.failed {
        writeln!(out, "failed: {failure}")?;
    }
    let (failed, skipped) = (transcript.failed.len(), transcript.skipped_tests());
    writeln!(out, "{} passed, {failed} failed, {skipped} skipped", transcript.passed)?;
    ensure!(failed == 0 && status.success(), "tests fail");
    ensure!(!options.all || skipped == 0, "tests were skipped, which --all does not allow");
    Ok(())
}

/// Runs the tests and shows the relevant lines of their output.
fn run(options: &Options, transcript: &mut Transcript) -> Result<ExitStatus> {
    let mut command = cargo(["test", "--workspace", "--no-fail-fast", "--", "--show-output"]);
    if options.all {
        command.arg("--include-ignored");
    }
    eprintln!("$ {}", text_of(&command));
    // One pipe for both streams keeps cargo's headings between the results.
    let (reader, writer) = io::pipe().context("pipe")?;
    command.env("CARGO_TERM_COLOR", "never").stderr(writer.try_clone()?).stdout(writer);
    let mut child = command.spawn().context("cargo test")?;
    drop(command); // closes our ends of the pipe
    let mut out = io::stdout().lock();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("cargo test")?;
        let line = String::from_utf8_lossy(&line);
        if transcript.read(&line) == Shown::Yes {
            writeln!(out, "{line}")?;
        }
    }
    child.wait().context("cargo test")
}

/// Returns the folder in which tests look for other people's files.
fn shared() -> PathBuf {
    std::env::var_os("SELVEDGE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from)
}
