//! Command `cargo xtask rtl simulate`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::lint::flag;
use super::module::{Build, Module};
use super::target::Target;
use super::{Bench, output};
use crate::command::{cargo, quiet, run, text_of};
use crate::product::{Profile, selvedge};
use crate::workspace::root;

/// Numbers of connections that MELO's receiver and sender are measured with, in turn.
pub(super) const MELO_CONNECTIONS: [u32; 3] = [1, 20, 64];

/// Numbers of connections that MELO's chip holds, of 20, where they are swapped.
const MELO_ON_CHIP: [&str; 3] = ["1", "4", "19"];

/// Measurements by simulations, for [`super::numbers`].
#[derive(Clone, Copy)]
pub(super) enum Measured {
    /// Cycles per event of the top.
    Rate { pipelined: bool },
    /// Cycles per packet of MELO's receiver.
    MeloReceiver { connections: u32 },
    /// Cycles per event of MELO's sender.
    MeloSender { connections: u32 },
}

impl Measured {
    fn path(self) -> Result<PathBuf> {
        let folder = output("sim/measured")?;
        Ok(match self {
            Self::Rate { pipelined } => folder.join(format!("rate-{}.txt", u8::from(pipelined))),
            Self::MeloReceiver { connections } => folder.join(format!("melo-{connections}.txt")),
            Self::MeloSender { connections } => folder.join(format!("melo-sender-{connections}.txt")),
        })
    }
    /// Returns the first line of the file, which identifies the measured sources.
    fn stamp(self) -> Result<String> {
        match self {
            Self::Rate { pipelined } => Target::top(pipelined).stamp("simulate"),
            Self::MeloReceiver { .. } => Target::melo_receiver().stamp("simulate"),
            Self::MeloSender { .. } => Target::melo_sender().stamp("simulate"),
        }
    }
    fn keep(self, text: &str) -> Result<()> {
        let path = self.path()?;
        std::fs::write(&path, format!("{}\n{text}", self.stamp()?)).with_context(|| path.display().to_string())
    }
    /// Returns the measurement, if it was made of the present sources.
    pub(super) fn read(self) -> Option<String> {
        let text = std::fs::read_to_string(self.path().ok()?).ok()?;
        let (stamp, text) = text.split_once('\n')?;
        (stamp == self.stamp().ok()?).then(|| text.to_owned())
    }
}

/// Queue pairs of the simulated top.
const QUEUE_PAIRS: u32 = 64;

/// Simulates every module beside the engine; the top with the authors' trace, as both ends of a lossy channel, and for
/// its rate.
pub(super) fn simulate(bench: &Bench) -> Result<()> {
    let engine = engine(bench, "irn_rtl")?;
    // Vectors of 1,024 packets are long.
    let widths: &[(u32, u64)] = if bench.quick {
        &[(128, bench.events)]
    } else {
        &[(128, bench.events), (320, bench.events), (1_024, bench.events / 10)]
    };
    for &(bitmap, events) in widths {
        for build in Build::all(bitmap) {
            if build.module.has_parameters() || bitmap == 128 {
                compare(&engine, build, events)?;
            }
        }
    }
    simulated_traces(bench, &engine)?;
    for pipelined in [true, false] {
        let top = build_top(pipelined)?;
        authors_trace(&top)?;
        let (packets, seeds) = if bench.quick { ("300", 1..=2) } else { ("5000", 1..=10) };
        for seed in seeds {
            // With few queue pairs, contexts are forwarded most of the time.
            let pairs = if seed % 2 == 1 { QUEUE_PAIRS } else { seed / 2 };
            run(Command::new(&top).args(["loop", packets, &seed.to_string(), &pairs.to_string()]))?;
        }
        let text = crate::command::output(Command::new(&top).args(["rate", "20000"]))?;
        print!("{text}");
        Measured::Rate { pipelined }.keep(&text)?;
    }
    melo_receiver(bench)?;
    melo_sender(bench)
}

/// Replays simulations' traces of their hosts through the modules and the engines; all queue pairs begin at PSN 0.
fn simulated_traces(bench: &Bench, engine: &Path) -> Result<()> {
    let built = selvedge(if bench.quick { Profile::Dev } else { Profile::Release })?;
    for name in ["incast", "loss", "operations"] {
        let folder = output(&format!("sim/traces/{name}"))?;
        std::fs::remove_dir_all(&folder)?;
        std::fs::create_dir_all(&folder)?;
        let mut selvedge = Command::new(built.get_program());
        selvedge.current_dir(root());
        selvedge.args(["run", &format!("rtl/sim/traces/{name}.toml"), "--quiet", "--force", "--out"]);
        selvedge.arg(folder.join("results")).args(["--trace-events", "irn", "--trace-dir"]).arg(folder.join("events"));
        eprintln!("$ {}", text_of(&selvedge));
        quiet(&mut selvedge)?;
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder.join("events"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.sort();
        for build in Build::all(128) {
            // Both variants take the same vectors; with --quick, one of them is enough.
            if bench.quick && !build.pipelined {
                continue;
            }
            let kind = if build.module == Module::ReceiveData { "-receiver.txt" } else { "-sender.txt" };
            let program = output(&format!("sim/{}", build.name()))?.join("vectors");
            let mut events = 0;
            for file in files.iter().filter(|file| file.to_string_lossy().ends_with(kind)) {
                let mut source = Command::new(engine);
                source.args(["replay", build.module.name(), &build.bitmap.to_string()]).arg(file);
                let (text, errors) = fed(source, Command::new(&program).args(["--pauses", "10"]))?;
                ensure!(
                    text.trim_end().ends_with("mismatches 0"),
                    "{} differs from the engine in {}:\n{errors}{text}",
                    build.name(),
                    file.display()
                );
                events += text.split_whitespace().nth(1).and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
            }
            // Timers of applications' queue pairs are not recorded.
            let is_untold = build.module == Module::Timeout && name == "operations";
            ensure!(events > 0 || is_untold, "{name} has no events for {}", build.name());
            println!("{} with traces of rtl/sim/traces/{name}.toml: events {events} mismatches 0", build.name());
        }
    }
    Ok(())
}

/// Compares the answers of MELO's receivers with the engine's, and measures cycles per packet.
fn melo_receiver(bench: &Bench) -> Result<()> {
    const BLOCKS: u32 = 128;
    let engine = engine(bench, "melo_rtl")?;
    let folder = output("sim/melo_rx")?;
    let mut verilator = verilator(&folder);
    verilator
        .args(["--top-module", "melo_rx", "-o", "melo", "-CFLAGS"])
        .arg(format!("-O2 -std=c++17 -DSLOTS={}", 8 * BLOCKS));
    verilator.args(["src/irn_pkg.sv", "src/melo_rx.sv"]).arg(root().join("rtl/sim/melo.cpp"));
    build_with(&mut verilator, "building melo_rx")?;
    for connections in MELO_CONNECTIONS {
        let mut source = Command::new(&engine);
        source.args([&connections.to_string(), &BLOCKS.to_string(), &bench.events.to_string(), "1", "0"]);
        let (text, errors) = fed(source, Command::new(folder.join("melo")).arg("0"))?;
        let expected = format!("events {} mismatches 0\n", bench.events);
        ensure!(text.starts_with(&expected), "melo_rx differs from the engine:\n{errors}{text}");
        println!("melo_rx, {connections} connections: {}", text.trim_end());
        Measured::MeloReceiver { connections }.keep(&text)?;
    }
    // With fewer connections on the chip, the least recently used one is swapped out, as in the engine.
    for on_chip in MELO_ON_CHIP {
        let mut source = Command::new(&engine);
        source.args(["20", &BLOCKS.to_string(), &bench.events.to_string(), "2", on_chip]);
        let (text, errors) = fed(source, Command::new(folder.join("melo")).arg(on_chip))?;
        let expected = format!("events {} mismatches 0\n", bench.events);
        let swaps = text.lines().find_map(|line| line.strip_prefix("swaps "));
        ensure!(text.starts_with(&expected) && swaps.is_some(), "melo_rx differs from the engine:\n{errors}{text}");
        println!("melo_rx, {on_chip} of 20 connections on the chip: swaps {}", swaps.unwrap_or_default());
    }
    Ok(())
}

/// Compares the answers of MELO's senders with the engine's, and measures cycles per event. A small pool is exhausted
/// often.
fn melo_sender(bench: &Bench) -> Result<()> {
    const CAP: &str = "600";
    let engine = engine(bench, "melo_sender_rtl")?;
    for blocks in ["128", "8"] {
        let folder = output(&format!("sim/melo_tx-{blocks}"))?;
        let mut verilator = verilator(&folder);
        verilator.args([&format!("-GBlocks={blocks}"), "--top-module", "melo_tx", "-o", "melo_tx", "-CFLAGS"]);
        verilator.arg(format!("-O2 -std=c++17 -DCAP={CAP}"));
        verilator.args(["src/irn_pkg.sv", "src/melo_tx.sv"]).arg(root().join("rtl/sim/melo_tx.cpp"));
        build_with(&mut verilator, &format!("building melo_tx, {blocks} blocks"))?;
        for connections in MELO_CONNECTIONS {
            let mut source = Command::new(&engine);
            source.args([&connections.to_string(), blocks, CAP, &bench.events.to_string(), "1"]);
            let (text, errors) = fed(source, &mut Command::new(folder.join("melo_tx")))?;
            let expected = format!("events {} mismatches 0\n", bench.events);
            ensure!(text.starts_with(&expected), "melo_tx differs from the engine:\n{errors}{text}");
            println!("melo_tx, {blocks} blocks, {connections} connections: {}", text.trim_end());
            if blocks == "128" {
                Measured::MeloSender { connections }.keep(&text)?;
            }
        }
    }
    Ok(())
}

/// Builds an example of the engines' crate that makes vectors; returns its path.
pub(super) fn engine(bench: &Bench, name: &str) -> Result<PathBuf> {
    let mut build = cargo(["build", "--package", "selvedge-transport", "--example", name]);
    if !bench.quick {
        build.arg("--release");
    }
    run(&mut build)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(if bench.quick { "debug" } else { "release" }).join("examples").join(name))
}

/// Sends random events through one module and compares every answer and context, without and with pauses on both
/// streams.
fn compare(engine: &Path, build: Build, events: u64) -> Result<()> {
    let program = build_flat(build)?;
    let vectors = |events: u64, seed: &str| {
        let mut source = Command::new(engine);
        source.args(["vectors", build.module.name(), &build.bitmap.to_string(), &events.to_string(), seed]);
        source
    };
    sees_faults(&program, &crate::command::output(&mut vectors(200, "7"))?)?;
    for (seed, pauses) in [("1", "0"), ("2", "30")] {
        let events = events / 2;
        let source = vectors(events, seed);
        eprintln!("$ {} | {}", text_of(&source), program.display());
        let (text, errors) = fed(source, Command::new(&program).args(["--pauses", pauses, "--seed", seed]))?;
        ensure!(
            text.starts_with(&format!("events {events} ")) && text.trim_end().ends_with("mismatches 0"),
            "{} differs from the engine:\n{errors}{text}",
            build.name()
        );
        println!("{} pauses {pauses} %: {}", build.name(), text.trim_end());
    }
    Ok(())
}

/// Checks that the driver of vectors detects a wrong bit at both ends of an answer.
fn sees_faults(program: &Path, vectors: &str) -> Result<()> {
    for is_first in [true, false] {
        let faulty: Vec<String> = vectors
            .lines()
            .enumerate()
            .map(|(number, line)| {
                let mut digits: Vec<char> = line.chars().collect();
                let at = if is_first {
                    digits.iter().position(|digit| *digit == ' ').map(|at| at + 1)
                } else {
                    Some(digits.len() - 1)
                };
                if let Some(digit) = at.filter(|_| number == 100).and_then(|at| digits.get_mut(at)) {
                    *digit = if *digit == '0' { '1' } else { '0' };
                }
                digits.into_iter().collect()
            })
            .collect();
        let mut driver = Command::new(program);
        let mut driver = driver.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut input = driver.stdin.take().context("the driver has no input")?;
        // The program stops reading at the fault.
        let _ = input.write_all((faulty.join("\n") + "\n").as_bytes());
        drop(input);
        let output = driver.wait_with_output()?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(errors.starts_with("error: event 101\n"), "{} overlooks a fault: {errors}", program.display());
    }
    Ok(())
}

/// Returns the output of a program to both streams, with its input from another program.
fn fed(mut source: Command, program: &mut Command) -> Result<(String, String)> {
    let name = text_of(&source);
    let mut source = source.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {name}"))?;
    let vectors = source.stdout.take().context("no output")?;
    let output = program.stdin(vectors).output().with_context(|| format!("cannot run {}", text_of(program)))?;
    ensure!(source.wait()?.success(), "`{name}` failed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr)))
}

/// Builds a module with the driver of vectors.
fn build_flat(build: Build) -> Result<PathBuf> {
    let folder = output(&format!("sim/{}", build.name()))?;
    let module = build.module.name();
    let mut verilator = verilator(&folder);
    if build.module.has_parameters() {
        verilator.args([format!("-GW={}", build.bitmap), format!("-GPipelined={}", flag(build.pipelined))]);
    }
    verilator.args(["--prefix", "Vflat", "--top-module", &format!("flat_{module}")]);
    verilator.args(["-CFLAGS", "-O2 -std=c++17 -DDUT=Vflat -DDUT_HEADER='\"Vflat.h\"'", "-o", "vectors"]);
    verilator.args(["src/irn_pkg.sv", &format!("sim/flat_{module}.sv")]).arg(root().join("rtl/sim/vectors.cpp"));
    build_with(&mut verilator, &format!("building {}", build.name()))?;
    Ok(folder.join("vectors"))
}

fn build_top(pipelined: bool) -> Result<PathBuf> {
    let variant = if pipelined { "pipelined" } else { "like-for-like" };
    let folder = output(&format!("sim/irn_top-{variant}-128"))?;
    let mut verilator = verilator(&folder);
    verilator.args(["-GW=128", &format!("-GPipelined={}", flag(pipelined)), &format!("-GQueuePairs={QUEUE_PAIRS}")]);
    verilator.args(["--top-module", "irn_top", "-o", "top"]);
    verilator.args(["-CFLAGS", &format!("-O2 -std=c++17 -DQUEUE_PAIRS={QUEUE_PAIRS} -DWIDTH=128")]);
    verilator.args(["src/irn_pkg.sv", "src/irn_top.sv"]).arg(root().join("rtl/sim/top.cpp"));
    build_with(&mut verilator, &format!("building irn_top, {variant}"))?;
    Ok(folder.join("top"))
}

fn verilator(folder: &Path) -> Command {
    let mut command = Command::new("verilator");
    command.current_dir(root().join("rtl"));
    command
        .args(["--cc", "--exe", "--build", "-j", "2", "-O3", "-sv", "-Isrc", "-y", "src", "-Wno-fatal", "--Mdir"])
        .arg(folder);
    command
}

fn build_with(verilator: &mut Command, what: &str) -> Result<()> {
    eprintln!("{what}");
    quiet(verilator)
}

/// Runs all 140,361 lines of the authors' trace, if it is present.
fn authors_trace(top: &Path) -> Result<()> {
    let shared = std::env::var_os("SELVEDGE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let folder = shared.join("traces/irn-receiver");
    let [input, answers] = ["recvInput", "recvOutput"].map(|name| folder.join(format!("{name}-40Gbps-incast.txt")));
    if !input.is_file() || !answers.is_file() {
        eprintln!("skipped: the IRN authors' receiver trace is not in {}", folder.display());
        return Ok(());
    }
    run(Command::new(top).arg("trace").args([input, answers]))
}
