//! Pair of network namespaces with a bottleneck between them.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

use super::relay::{self, Lateness};
use super::{BOTTLENECK, Transfer, tun};
use crate::command::{output, quiet};

/// Addresses of the two ends.
pub(super) const ADDRESSES: [&str; 2] = ["10.77.0.1", "10.77.0.2"];

/// Pair of namespaces, removed when the value is dropped.
pub(super) struct Namespaces {
    names: [String; 2],
    /// Lateness of the relay between the namespaces, in each direction.
    late: [Lateness; 2],
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Namespaces {
    /// Creates two namespaces, each with one device, and between them the bottleneck that loses and delays the
    /// packets of `transfer`.
    pub(super) fn new(transfer: &Transfer) -> Result<Self> {
        let unique = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let names = ["a", "b"].map(|end| format!("selvedge-{unique}-{end}"));
        let this = Self { names, late: Default::default() };
        let devices = ["a", "b"].map(|end| format!("sv{unique}{end}"));
        let mut files = Vec::new();
        for ((name, device), address) in this.names.iter().zip(&devices).zip(ADDRESSES) {
            quiet(Command::new("ip").args(["netns", "add", name]))?;
            files.push(tun::open(device)?);
            quiet(Command::new("ip").args(["link", "set", device, "netns", name]))?;
            quiet(Command::new("ip").args(["-n", name, "address", "add", &format!("{address}/24"), "dev", device]))?;
            // A queue before the bottleneck must not lose anything.
            let link = ["-n", name, "link", "set", device, "mtu", "1500", "txqueuelen", "10000", "up"];
            quiet(Command::new("ip").args(link))?;
        }
        for (key, value) in SETTINGS {
            for end in 0..2 {
                let assignment = format!("net.ipv4.{key}={value}");
                quiet(this.within(end, "sysctl").args(["-q", "-w", &assignment]))?;
            }
        }
        let copy = |end: usize| files[end].try_clone().context("cannot copy a descriptor");
        let [there, back] = this.late.clone();
        let fates = [transfer.drops.clone(), transfer.late.clone()];
        relay::start(copy(0)?, copy(1)?, BOTTLENECK, fates, there)?;
        relay::start(copy(1)?, copy(0)?, BOTTLENECK, Default::default(), back)?;
        Ok(this)
    }

    /// Returns a command that runs `program` at one end.
    pub(super) fn within(&self, end: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end]]).arg(program);
        command
    }

    /// Returns the mean excess of a round trip over its nominal time, in microseconds.
    pub(super) fn late_us(&self) -> f64 {
        self.late.iter().map(Lateness::mean_us).sum()
    }

    /// Returns a counter of the sender's kernel, from /proc/net/snmp or netstat.
    pub(super) fn counter(&self, file: &str, group: &str, name: &str) -> Result<u64> {
        let text = output(self.within(0, "cat").arg(format!("/proc/net/{file}")))?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
        let (names, values) = lines.next().zip(lines.next()).with_context(|| format!("no {group} in {file}"))?;
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        let value = pairs.find(|(known, _)| *known == name).with_context(|| format!("no {name} in {file}"))?.1;
        value.parse().with_context(|| format!("{name} in {file}"))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).stderr(Stdio::null()).status();
        }
    }
}

/// Settings of the kernel that match those of the engine, without memory of earlier connections.
const SETTINGS: [(&str, &str); 2] = [("tcp_no_metrics_save", "1"), ("tcp_ecn", "0")];
