//! Command `cargo xtask rtl lint`.

use std::process::Command;

use anyhow::Result;

use super::Bench;
use super::module::Build;
use crate::command::run;
use crate::workspace::root;

/// Checks with Verilator that no variant and width causes a warning.
pub(super) fn lint(_: &Bench) -> Result<()> {
    for bitmap in [32, 128, 320, 1_024] {
        for build in Build::all(bitmap) {
            let mut verilator = verilator(&format!("flat_{}", build.module.name()));
            if build.module.has_parameters() {
                verilator.args([format!("-GW={bitmap}"), format!("-GPipelined={}", flag(build.pipelined))]);
            }
            run(verilator.args(["src/irn_pkg.sv", &format!("sim/flat_{}.sv", build.module.name())]))?;
        }
    }
    for pipelined in [true, false] {
        let mut verilator = verilator("irn_top");
        run(verilator.args([&format!("-GPipelined={}", flag(pipelined)), "src/irn_pkg.sv", "src/irn_top.sv"]))?;
    }
    for name in ["flat_melo_rx", "flat_melo_tx"] {
        run(verilator(name).args(["src/irn_pkg.sv", &format!("synth/{name}.sv")]))?;
    }
    Ok(())
}

fn verilator(top: &str) -> Command {
    let mut command = Command::new("verilator");
    command.current_dir(root().join("rtl"));
    // Not every module uses every constant of the package.
    command.args(["--lint-only", "-Wall", "-Wno-UNUSEDPARAM", "-sv", "-Isrc", "-y", "src", "--top-module", top]);
    command
}

/// Returns a parameter of one bit.
pub(super) fn flag(value: bool) -> &'static str {
    if value { "1'b1" } else { "1'b0" }
}
