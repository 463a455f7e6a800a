//! Command `cargo xtask fingerprints`.

use anyhow::{Result, ensure};
use clap::Args;

use crate::bless::UPDATE;
use crate::command::{cargo, output, text_of};

#[derive(Args)]
pub(crate) struct Options {
    /// Write the present fingerprints to crates/sim/tests/fingerprints.toml; the commit message explains the change
    #[arg(long)]
    bless: bool,
    /// Only the release build: `cargo xtask test` has compared those of the dev build
    #[arg(long, conflicts_with = "bless")]
    release: bool,
}

/// Compares fingerprints in both profiles, after writing them if `options` say so.
pub(crate) fn fingerprints(options: &Options) -> Result<()> {
    for release in [false, true].into_iter().skip(usize::from(options.release)) {
        // As part of the workspace, so that nothing is built twice.
        let mut test = cargo(["test", "--workspace", "--test", "trust"]);
        if release {
            test.arg("--release");
        }
        // The release build must agree with the fingerprints that the dev build has written.
        if options.bless && !release {
            test.env(UPDATE, "1");
        } else {
            test.env_remove(UPDATE);
        }
        test.args(["--", "determinism::"]);
        eprintln!("$ {}", text_of(&test));
        let report = output(&mut test)?;
        print!("{report}");
        // Other crates have tests of this name without any of these.
        ensure!(report.contains("test determinism::"), "no test of crates/sim/tests/trust is called determinism::*");
    }
    Ok(())
}
