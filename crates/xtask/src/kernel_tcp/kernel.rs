//! Transfer by the kernel.

use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::namespaces::{ADDRESSES, Namespaces};
use super::{Outcome, Transfer};
use crate::command::output;

/// Runs `transfer` between two namespaces.
pub(super) fn run(transfer: &Transfer) -> Result<Outcome> {
    let namespaces = Namespaces::new(transfer)?;
    let this = std::env::current_exe().context("which program is this?")?;
    let address = format!("{}:7000", ADDRESSES[1]);
    let peer = |mut command: Command| {
        command.args(["kernel-tcp-peer", &address, &transfer.bytes.to_string()]);
        command
    };
    let mut receiver = peer(namespaces.within(1, &this)).stdout(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(receiver.stdout.take().context("it was piped")?);
    ensure!(line(&mut said)? == "ready", "the receiver did not begin");
    let start: u128 = output(peer(namespaces.within(0, &this)).args(["--send", &transfer.control]))?.trim().parse()?;
    let finish: u128 = line(&mut said)?.parse().context("the receiver did not end well")?;
    receiver.wait()?;
    Ok(Outcome {
        seconds: (finish - start) as f64 / 1e9,
        retransmissions: namespaces.counter("snmp", "Tcp:", "RetransSegs")?,
        timeouts: namespaces.counter("netstat", "TcpExt:", "TCPTimeouts")?,
        late_us: namespaces.late_us(),
    })
}

fn line(from: &mut BufReader<ChildStdout>) -> Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
