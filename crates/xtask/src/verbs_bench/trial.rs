//! Run of a program of perftest, with Selvedge's libraries.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::link::{Link, SERVER};
use crate::command::output;

/// Result of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// Value in Gb/s or in microseconds.
    pub(super) value: f64,
}

pub(super) struct Perftest<'a> {
    pub(super) program: &'static str,
    pub(super) bytes: u64,
    pub(super) recovery: &'static str,
    pub(super) iterations: u64,
    pub(super) libraries: &'a Path,
}

/// Port at which the ends of a trial connect.
const PORT: u16 = 18_515;
/// Bytes in perftest's MB.
const MB: f64 = 1_048_576.0;

impl Perftest<'_> {
    pub(super) fn run(&self, link: &Link) -> Result<Measured> {
        self.run_with(link, &[])
    }
    pub(super) fn run_with(&self, link: &Link, more: &[&str]) -> Result<Measured> {
        let _server = link.serve(self.command(link, 0).args(more), PORT)?;
        let text = output(self.command(link, 1).args(more).arg(SERVER))?;
        self.read(&text).with_context(|| format!("{} printed no result", self.program))
    }

    fn command(&self, link: &Link, end: usize) -> Command {
        // The library is preloaded behind `timeout` and `ip`, which do not need it.
        let mut command = link.within(end, "timeout");
        command.args(["60", "env"]);
        command.arg(format!("LD_PRELOAD={}", self.libraries.join("libibverbs.so.1").display()));
        command.arg(format!("LD_LIBRARY_PATH={}", self.libraries.display()));
        command.arg(format!("SELVEDGE_RECOVERY={}", self.recovery));
        // -F: a changing frequency of processors is no failure.
        command.args([self.program, "-F", "-d", "sv_eth0", "-s", &self.bytes.to_string()]);
        command.args(["-n", &self.iterations.to_string()]);
        command
    }

    /// Reads the last line of numbers: bytes, iterations, and then peak, average, messages; or least, most, typical,
    /// average.
    fn read(&self, text: &str) -> Option<Measured> {
        let numbers =
            |line: &str| -> Option<Vec<f64>> { line.split_whitespace().map(|word| word.parse().ok()).collect() };
        let last = text.lines().rev().filter_map(numbers).find(|numbers| numbers.len() >= 5)?;
        let value = if self.program.ends_with("_lat") { last[4] } else { last[3] * MB * 8.0 / 1e9 };
        Some(Measured { value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_and_typical_latencies_are_read() {
        let trial = |program| Perftest { program, bytes: 2, recovery: "irn", iterations: 1, libraries: Path::new("") };
        let text = " #bytes     #iterations    BW peak[MB/sec]\n 65536      40000            0.00               960.12 \t\t   0.015362\n---\n";
        let found = trial("ib_send_bw").read(text).expect("a line of numbers").value;
        assert!((found - 8.054).abs() < 0.001, "{found}");
        let text = " 2       1000          12.11          1270.34      15.02    \t       24.12       \t10.11   \t\t100.93  \t\t1270.34\n";
        assert_eq!(trial("ib_send_lat").read(text).map(|found| found.value), Some(15.02));
        assert!(trial("ib_send_lat").read("nothing").is_none());
    }
}
