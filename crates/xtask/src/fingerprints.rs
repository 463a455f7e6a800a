//! `cargo xtask fingerprints`.

use anyhow::Result;
use clap::Args;

use crate::command::{cargo, run};

#[derive(Args)]
pub(crate) struct Options {
    /// Write what comes out now to crates/sim/tests/fingerprints.toml; the commit says why it changed
    #[arg(long)]
    bless: bool,
}

/// Writes at most once, then compares in both profiles.
pub(crate) fn fingerprints(options: &Options) -> Result<()> {
    // As part of the workspace, so that nothing is built twice.
    let test = ["test", "--workspace", "--test", "trust", "fingerprints"];
    if options.bless {
        run(cargo(test).env("BLESS", "1"))?;
    }
    run(cargo(test).env_remove("BLESS"))?;
    run(cargo(test).arg("--release").env_remove("BLESS"))
}
