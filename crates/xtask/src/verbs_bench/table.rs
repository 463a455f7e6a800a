//! Table of results, for people.

use anyhow::{Context, Result};

/// Table in Markdown, row by row.
pub(super) struct Table(String);

impl Table {
    pub(super) fn new(names: &[&str]) -> Self {
        Self(format!("| {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len())))
    }
    pub(super) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = Option<String>>) {
        self.row_of(&[name.to_owned()], cells);
    }
    /// Adds a row with several names. A missing measurement is a dash.
    pub(super) fn row_of(&mut self, names: &[String], cells: impl IntoIterator<Item = Option<String>>) {
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".to_owned()));
        let all: Vec<String> = names.iter().cloned().chain(cells).collect();
        self.0 += &format!("| {} |\n", all.join(" | "));
    }
    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// Returns a rate in Gb/s, and in millions of messages per second where they are small.
pub(super) fn rate(gbps: f64, bytes: u64) -> String {
    let messages = gbps * 1e9 / 8.0 / bytes as f64 / 1e6;
    if bytes < 4_096 { format!("{gbps:.2} ({messages:.2})") } else { format!("{gbps:.1}") }
}

/// Returns a description of the machine of the run.
pub(super) fn about(repeat: usize) -> Result<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel version")?;
    let processors = std::thread::available_parallelism()?;
    let load = std::fs::read_to_string("/proc/loadavg").context("cannot read the load")?;
    let load = load.split(' ').next().unwrap_or_default();
    Ok(format!(
        "Linux {}, {processors} processors, load average {load} at the start, two network namespaces and a veth pair,\n\
         MTU 1500 (1,024 bytes of payload in a RoCE packet). Medians of {repeat} rounds; each round runs every program\n\
         once.\n",
        kernel.trim()
    ))
}
