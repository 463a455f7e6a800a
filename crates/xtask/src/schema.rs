//! `cargo xtask schema`.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::command::output;
use crate::product::{Profile, selvedge};
use crate::workspace::{read, root};

#[derive(Args)]
pub(crate) struct Options {
    /// Only check that the committed schema is current
    #[arg(long)]
    check: bool,
}

const FILE: &str = "schema/scenario.schema.json";

pub(crate) fn schema(options: &Options) -> Result<()> {
    let current = output(selvedge(Profile::Dev)?.arg("schema"))?;
    if options.check {
        ensure!(read(FILE)? == current, "{FILE} is out of date: run `cargo xtask schema` and commit it");
        eprintln!("{FILE} is current");
    } else {
        fs::create_dir_all(root().join("schema")).context("schema")?;
        fs::write(root().join(FILE), current).context(FILE)?;
        eprintln!("wrote {FILE}");
    }
    Ok(())
}
