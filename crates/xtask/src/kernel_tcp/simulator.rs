//! Transfer by Selvedge's engine in the simulator, like the kernel's.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{BOTTLENECK, MSS, Outcome, Transfer};
use crate::command::output;
use crate::product::{Profile, selvedge};

/// Command-line program, and a folder for its files.
pub(super) struct Simulator {
    program: PathBuf,
    folder: PathBuf,
}

impl Simulator {
    /// Builds the program.
    pub(super) fn new() -> Result<Self> {
        let program = selvedge(Profile::Release)?.get_program().into();
        let folder = std::env::temp_dir().join(format!("selvedge-kernel-tcp-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self { program, folder })
    }

    /// Runs `transfer` in the simulator.
    pub(super) fn run(&self, transfer: &Transfer) -> Result<Outcome> {
        let name = format!("{}-{}-{}", transfer.control, transfer.loss, transfer.seed);
        let path = |ending: &str| self.folder.join(format!("{name}{ending}"));
        fs::write(path(".toml"), scenario(transfer))?;
        let mut run = Command::new(&self.program);
        run.args(["run", "--json", "--quiet"]).arg(path(".toml")).arg("--out").arg(path(""));
        let summary: Value = serde_json::from_str(&output(&mut run)?)?;
        let metric = |key: &str| {
            let value = &summary["series"][0]["metrics"][key]["mean"];
            value.as_f64().with_context(|| format!("{name}: no {key} in {}", path("").display()))
        };
        Ok(Outcome {
            seconds: metric("fct_mean_us")? / 1e6,
            retransmissions: metric("retransmissions")? as u64,
            timeouts: metric("timeouts")? as u64,
            late_us: 0.0,
        })
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the bottleneck as a scenario, with Linux's choices for TCP where they differ from the RFCs or these leave a
/// choice: the smallest timeout, octets counted in slow start without limit, 40 ms for delayed acknowledgements, its
/// buffers.
fn scenario(transfer: &Transfer) -> String {
    let (mbps, delay) = (BOTTLENECK.rate / 1_000_000, BOTTLENECK.rtt_ms / 2);
    let control = if transfer.control == "reno" { "new-reno" } else { &transfer.control };
    format!(
        r#"title = "One flow through a bottleneck that loses packets"
seeds = [1]
sample = "off"

[topology.dumbbell]
left = 1
right = 1
host-link = {{ rate = "10Gbps", delay = "1ns" }}
bottleneck = {{ rate = "{mbps}Mbps", delay = "{delay}ms" }}

[workload.incast]
size = "{size}B"
senders = [0]
receiver = 1

[nic]
mtu = "{MSS}B"

[switch.buffer.input-queued]
per-port = "{buffer}B"

[[loss]]
link = "left - right"
direction = "a-to-b"
packets = "data"
model.trace.drops = {drops:?}

[transport.tcp]
handshake = true
min-rto = "200ms"
delayed-ack = "40ms"
slow-start-limit = "off"
receive-buffer = "6MB"
congestion = {{ {control} = {{}} }}
"#,
        size = transfer.bytes,
        buffer = BOTTLENECK.buffer,
        drops = transfer.drops,
    )
}
