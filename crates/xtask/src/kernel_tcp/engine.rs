//! Transfer by Selvedge's engine in virtual time, like the kernel's.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{BOTTLENECK, Outcome, Transfer};
use crate::command::{cargo, output};

/// Program that runs the engine: an example of the transport crate.
pub(super) struct Engine(PathBuf);

impl Engine {
    /// Builds the program.
    pub(super) fn new() -> Result<Self> {
        let mut build = cargo(["build", "-p", "selvedge-transport", "--example", "tcp_bottleneck"]);
        build.arg("--message-format=json-render-diagnostics");
        let messages = output(build.stdin(Stdio::null()))?;
        let mut executables = messages.lines().filter_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            let is_it = message["target"]["name"] == "tcp_bottleneck";
            message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
        });
        executables.next_back().map(Self).context("cargo build made no example called tcp_bottleneck")
    }

    /// Runs `transfer`.
    pub(super) fn run(&self, transfer: &Transfer) -> Result<Outcome> {
        let super::Bottleneck { rate, rtt_ms, buffer, late_ms } = BOTTLENECK;
        let numbers = [transfer.bytes, rate, rtt_ms, buffer, late_ms].map(|number| number.to_string());
        let mut run = Command::new(&self.0);
        run.arg(&transfer.control).args(numbers).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = run.spawn().with_context(|| self.0.display().to_string())?;
        let mut lists = child.stdin.take().context("it was piped")?;
        for list in [&transfer.drops, &transfer.late] {
            let words: Vec<String> = list.iter().map(u64::to_string).collect();
            writeln!(lists, "{}", words.join(" "))?;
        }
        drop(lists);
        let answer = child.wait_with_output()?;
        ensure!(answer.status.success(), "tcp_bottleneck failed");
        let said = String::from_utf8(answer.stdout)?;
        let mut words = said.split_whitespace();
        let mut word = || words.next().context("tcp_bottleneck said too little");
        let seconds = word()?.parse()?;
        Ok(Outcome { seconds, retransmissions: word()?.parse()?, timeouts: word()?.parse()?, late_us: 0.0 })
    }
}
