//! Other programs that send bytes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::link::{Link, SERVER};
use super::trial::Measured;
use crate::command::output;

/// Port of the programs, an arbitrary one.
const PORT: u16 = 18_600;

/// Measures kernel TCP with one connection.
pub(super) fn iperf3(link: &Link) -> Result<Measured> {
    let port = PORT.to_string();
    let _server = link.serve(link.within(0, "iperf3").args(["-s", "-1", "-p", &port]), PORT)?;
    let text = output(link.within(1, "iperf3").args(["-c", SERVER, "-p", &port, "-t", "3", "-J"]))?;
    let report: Value = serde_json::from_str(&text)?;
    let rate = report.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    Ok(Measured { value: rate.context("iperf3 reports no rate")? / 1e9 })
}

/// Measures UCX over TCP: the Gb/s of a bandwidth test, or the microseconds of another.
pub(super) fn ucx(link: &Link, test: &str, bytes: u64) -> Result<Measured> {
    let is_rate = test.ends_with("_bw");
    let (bytes, port) = (bytes.to_string(), PORT.to_string());
    let iterations = if is_rate { "30000" } else { "20000" };
    let command = |end: usize| {
        let mut command = link.within(end, "env");
        command.args(["UCX_TLS=tcp", "UCX_NET_DEVICES=eth0", "timeout", "60", "ucx_perftest", "-t", test]);
        command.args(["-s", &bytes, "-n", iterations, "-p", &port, "-f"]);
        command
    };
    let _server = link.serve(&mut command(0), PORT)?;
    let text = output(command(1).arg(SERVER))?;
    read_ucx(&text, is_rate).context("ucx_perftest printed no result")
}

/// Returns the values in the last line of numbers of ucx_perftest: iterations, typical, average and overall latency,
/// average and overall bandwidth, ...
fn read_ucx(text: &str, is_rate: bool) -> Option<Measured> {
    let numbers = |line: &str| -> Vec<f64> { line.split_whitespace().filter_map(|word| word.parse().ok()).collect() };
    let last = text.lines().rev().map(numbers).find(|numbers| numbers.len() >= 6)?;
    let value = if is_rate { last[5] * 1_048_576.0 * 8.0 / 1e9 } else { last[1] };
    Some(Measured { value })
}

/// Measures quinn's bulk benchmark at one end of the link, as both of its ends are one process.
pub(super) fn quinn(link: &Link, program: &Path) -> Result<Measured> {
    let mut command: Command = link.within(0, "timeout");
    let text = output(command.arg("60").arg(program).args(["--download-size", "1G"]))?;
    read_quinn(&text).context("quinn's bulk benchmark printed no throughput")
}

/// Reads "Overall download stats:", and below it "... 123.45 MiB/s".
fn read_quinn(text: &str) -> Option<Measured> {
    let line = text.lines().find(|line| line.contains("MiB/s"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("MiB/s"))?;
    let rate: f64 = words.get(at.checked_sub(1)?)?.trim_start_matches('(').parse().ok()?;
    Some(Measured { value: rate * 1_048_576.0 * 8.0 / 1e9 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_they_print_is_read() {
        let ucx = "|     Test     | # iterations |\n   10000      5.367  1204.898  1215.983       51.87      51.40         830         822\n";
        let value = |measured: Option<Measured>| measured.map(|measured| (measured.value * 1_000.0).round());
        assert_eq!(value(read_ucx(ucx, false)), Some(5_367.0));
        assert_eq!(value(read_ucx(ucx, true)), Some(431.0));
        let quinn = "Overall download stats:\n\nTransferred 1073741824 bytes on 1 streams in 10.31s (99.28 MiB/s)\n";
        assert_eq!(value(read_quinn(quinn)), Some(833.0));
        assert!(read_ucx("nothing", true).is_none() && read_quinn("nothing").is_none());
    }
}
