//! Command `cargo xtask report`: a study's report, tried in a browser.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{cargo, quiet, run};
use crate::tools::has_browser;
use crate::workspace::root;

/// The built-in study, with fewer flows.
const STUDY: [&str; 8] = ["--no-controls", "--seeds", "2", "--quiet", "--force", "--set", "stop.flows=400", "--out"];

pub(crate) fn report() -> Result<()> {
    if let Err(missing) = has_browser() {
        println!("skipped: reports in a browser: {missing:#}");
        return Ok(());
    }
    let folder = root().join("target/browser");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for file in ["package.json", "package-lock.json", "report.mjs"] {
        let from = root().join("crates/results/tests/browser").join(file);
        fs::copy(&from, folder.join(file)).with_context(|| from.display().to_string())?;
    }
    quiet(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    // With the features that tests of the whole workspace have, so that nothing is compiled a second time after them.
    run(&mut cargo(["build", "--workspace", "--bins"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let selvedge = target.join("debug/selvedge");
    for (name, more) in [("one", None), ("two", Some("topology.fat-tree.link.delay=3us"))] {
        let mut study = Command::new(&selvedge);
        study.arg("run").args(STUDY).arg(folder.join(name)).current_dir(&folder);
        if let Some(key) = more {
            study.args(["--set", key]);
        }
        run(&mut study)?;
    }
    run(Command::new("node").args(["report.mjs"]).arg(selvedge).args(["one", "two"]).current_dir(&folder))
}
