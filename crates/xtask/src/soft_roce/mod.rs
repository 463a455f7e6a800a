//! Command `cargo xtask soft-roce`: Selvedge's software RNIC against Linux's own.
//!
//! Boots a Debian kernel with `rdma_rxe` under qemu (software emulation, about ten seconds) beside a network namespace
//! of this host, and runs the usual programs between the two: at the guest with the kernel's RNIC, at the host with
//! Selvedge's library. The command needs root, `qemu-system-x86_64`, which it installs if it can, `ip`, and on the
//! first run Debian's package registry.

mod guest;
mod image;
mod matrix;

use anyhow::{Result, ensure};
use clap::Args;

use self::guest::Guest;
use self::matrix::{Direction, TRIALS};
use crate::tools::require_virtual_machine;

#[derive(Args)]
pub(crate) struct Options {
    /// Run only programs whose command contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// Keep the packets on the wire in this pcapng file (needs tshark)
    #[arg(long, value_name = "FILE")]
    capture: Option<std::path::PathBuf>,
}

/// Runs `cargo xtask soft-roce`.
pub(crate) fn soft_roce(options: &Options) -> Result<()> {
    let library = matrix::library()?;
    require_virtual_machine()?;
    let image = image::image()?;
    let guest = Guest::boot(&image, options.capture.as_deref())?;
    let mut failed = 0;
    for trial in TRIALS.iter().filter(|trial| trial.program.contains(&options.only)) {
        for direction in [Direction::FromUs, Direction::ToUs] {
            let outcome = matrix::run(&guest, &library, trial, direction);
            let verdict = match &outcome {
                Ok(()) => "works",
                Err(_) => "FAILS",
            };
            println!("{verdict}  {:<9} {} {}", direction.name(), trial.program, trial.arguments);
            if let Err(reason) = outcome {
                failed += 1;
                for line in format!("{reason:#}").lines() {
                    println!("       {line}");
                }
            }
        }
    }
    ensure!(failed == 0, "{failed} trials failed");
    Ok(())
}
