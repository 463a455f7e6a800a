//! Command `cargo xtask rtl`: checks of the hardware modules in `rtl/` with open tools.
//!
//! Tools and their versions are in `rtl/tools.txt`. A step whose tools are missing and cannot be installed is skipped
//! with a line that begins with "skipped: "; with `--require` that is a failure. Logs, programs and traces are in
//! `target/rtl`.

mod cocotb;
mod lint;
mod module;
mod numbers;
mod prove;
mod simulate;
mod synthesise;
mod target;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use crate::command::{cargo, run};
use crate::workspace::root;
use target::CONTEXTS;
use tools::{Toolbox, Unavailable};

#[derive(Args)]
pub(crate) struct Options {
    /// Step to run
    #[arg(value_enum, default_value = "all")]
    step: Step,
    /// Run only what takes minutes: fewer events, smaller bitmaps in proofs, no synthesis
    #[arg(long)]
    quick: bool,
    /// Fail if a step cannot be done
    #[arg(long)]
    require: bool,
    /// Random events per module and variant; default: 10,000,000, quick 100,000
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Prove or synthesise only what has this in its name, as "irn_top-pipelined"
    #[arg(long, value_name = "PART")]
    only: Option<String>,
    /// Write the table of docs/rtl.md from the logs in target/rtl/synth
    #[arg(long)]
    write: bool,
    /// With `context`: compare the committed files with the layout instead of writing them
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Write rtl/src/irn_*.svh from the layout of contexts
    Context,
    /// Verilator's warnings
    Lint,
    /// Modules beside the engines, event by event; the authors' trace; sender and receiver over a lossy channel
    Simulate,
    /// Modules in cocotb, with coverage
    Cocotb,
    /// Properties for all inputs, by a solver
    Prove,
    /// Size and speed
    Synthesise,
    /// All steps
    All,
}

/// State that the steps share.
struct Bench {
    tools: Toolbox,
    quick: bool,
    events: u64,
    only: Option<String>,
}

impl Bench {
    /// Returns whether a proof or target of this name is wanted.
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|part| name.contains(part))
    }
}

pub(crate) fn rtl(options: &Options) -> Result<()> {
    ensure!(
        !options.check || options.step == Step::Context,
        "--check compares contexts: `cargo xtask rtl context --check`"
    );
    if options.step == Step::Context {
        return context(options.check);
    }
    if options.write {
        return numbers::write();
    }
    let events = options.events.unwrap_or(if options.quick { 100_000 } else { 10_000_000 });
    let bench = Bench { tools: Toolbox::read()?, quick: options.quick, events, only: options.only.clone() };
    let steps = [
        (Step::Lint, "lint"),
        (Step::Simulate, "simulate"),
        (Step::Cocotb, "cocotb"),
        (Step::Prove, "prove"),
        (Step::Synthesise, "synthesise"),
    ];
    let mut skipped = 0;
    for (step, name) in steps {
        let is_wanted = options.step == step || (options.step == Step::All && !(options.quick && name == "synthesise"));
        if !is_wanted {
            continue;
        }
        match bench.tools.provide(name) {
            Ok(()) => match step {
                Step::Lint => lint::lint(&bench)?,
                Step::Simulate => simulate::simulate(&bench)?,
                Step::Cocotb => cocotb::cocotb(&bench)?,
                Step::Prove => prove::prove(&bench)?,
                Step::Synthesise => synthesise::synthesise(&bench)?,
                Step::Context | Step::All => {}
            },
            Err(Unavailable::Missing(reason)) => {
                skipped += 1;
                eprintln!("skipped: rtl {name}: {reason}");
            }
            Err(Unavailable::Wrong(error)) => return Err(error),
        }
    }
    ensure!(skipped == 0 || !options.require, "steps were skipped, which --require does not allow");
    Ok(())
}

/// Generates the structs of contexts from their layout in `context.rs`, or compares the committed ones with it.
fn context(is_check: bool) -> Result<()> {
    let committed = root().join("rtl/src");
    let folder = if is_check { output("context")? } else { committed.clone() };
    let mut generate = cargo(["run", "--quiet", "--package", "selvedge-transport", "--example", "irn_rtl", "--"]);
    run(generate.arg("context").arg(&folder))?;
    for name in CONTEXTS.iter().filter(|_| is_check) {
        let read = |folder: &Path| fs::read_to_string(folder.join(name)).with_context(|| format!("rtl/src/{name}"));
        ensure!(
            read(&folder)? == read(&committed)?,
            "rtl/src/{name} differs from the layout in crates/transport/src/recovery/irn/context.rs: run `cargo xtask \
             rtl context`"
        );
    }
    Ok(())
}

/// Returns the folder `folder` of `target/rtl`, after creating it.
fn output(folder: &str) -> Result<PathBuf> {
    let path = root().join("target/rtl").join(folder);
    fs::create_dir_all(&path)?;
    Ok(path)
}

/// Returns the path of a file of this project for a program that runs in `rtl/`. YoWASP's programs have a `/tmp` of
/// their own, so that the absolute path of a file in a clone below `/tmp` leads nowhere.
fn from_rtl(path: &Path) -> PathBuf {
    path.strip_prefix(root()).map_or_else(|_| path.to_owned(), |inside| Path::new("..").join(inside))
}
