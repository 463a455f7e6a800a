//! `cargo xtask instructions`.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

use crate::command::{cargo, output, text_of};
use crate::tools;
use crate::workspace::{read, root};

#[derive(Args)]
pub(crate) struct Options {
    /// Write what comes out now to crates/sim/instructions.txt; the commit says why it changed
    #[arg(long)]
    bless: bool,
}

/// The committed numbers: a line "series instructions-per-packet-hop" each.
const COMMITTED: &str = "crates/sim/instructions.txt";

/// Arguments of the example "permutation": a fat-tree of 128 hosts, flows of 500 kB, then the series.
const RUN: [&str; 2] = ["8", "500KB"];

/// The series that are counted.
const SERIES: [&str; 3] = ["roce+pfc", "irn", "eqds"];

/// The relative difference that is accepted, in percent: compilers and C libraries differ by a little.
const MARGIN: f64 = 3.0;

const HEADER: &str = "\
# Instructions per packet-hop of `permutation 8 500KB SERIES` (128 hosts, start of the program included), as callgrind
# counts them. `cargo xtask instructions` compares, with a margin of 3 %; `--bless` writes.
";

/// Counts the simulator's instructions and compares them with the committed numbers.
///
/// # Errors
/// When a number differs by more than [`MARGIN`], in either direction, or nothing could be counted.
pub(crate) fn instructions(options: &Options) -> Result<()> {
    tools::require_valgrind()?;
    output(&mut cargo(["build", "--workspace", "--release", "--example", "permutation"]))?;
    let counted = SERIES.iter().map(|series| Ok((*series, count(series)?))).collect::<Result<Vec<_>>>()?;
    if options.bless {
        let lines = counted.iter().map(|(series, count)| format!("{series} {count:.1}\n"));
        return fs::write(root().join(COMMITTED), HEADER.to_owned() + &lines.collect::<String>()).context(COMMITTED);
    }
    let committed = read(COMMITTED)?;
    let mut wrong = Vec::new();
    for (series, count) in counted {
        let expected =
            expected(&committed, series).with_context(|| format!("{COMMITTED} has no number for {series}"))?;
        let change = (count / expected - 1.0) * 100.0;
        println!("{series}: {count:.1} instructions per packet-hop, {change:+.1} % of {expected:.1}");
        if change.abs() > MARGIN {
            wrong.push(format!("{series} takes {count:.1} instructions per packet-hop, not {expected:.1}"));
        }
    }
    ensure!(
        wrong.is_empty(),
        "{}: if that is meant, `cargo xtask instructions --bless`, and the commit says why",
        wrong.join("; ")
    );
    Ok(())
}

/// The committed number of a series.
fn expected(committed: &str, series: &str) -> Option<f64> {
    let number = committed.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    number.parse().ok().filter(|number: &f64| *number > 0.0)
}

/// Instructions per packet-hop of one run.
fn count(series: &str) -> Result<f64> {
    let program = root().join("target/release/examples/permutation");
    let mut command = std::process::Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(RUN).arg(series);
    eprintln!("$ {}", text_of(&command));
    let done = command.stdin(Stdio::null()).output().context("valgrind")?;
    let (said, counts) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    ensure!(done.status.success(), "valgrind failed: {counts}");
    let hops = said.lines().find_map(|line| line.split_once(" packet-hops")?.0.parse::<f64>().ok());
    let collected = counts.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<f64>().ok());
    let (Some(hops), Some(collected)) = (hops, collected) else {
        bail!("neither packet-hops nor instructions: {said}{counts}")
    };
    Ok(collected / hops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_their_series() {
        let text = "# irn 1\nroce+pfc 330.5\nirn 295\neqds 0\n";
        assert_eq!([expected(text, "irn"), expected(text, "roce+pfc")], [Some(295.0), Some(330.5)]);
        assert_eq!([expected(text, "roce"), expected(text, "eqds")], [None, None]);
    }
}
