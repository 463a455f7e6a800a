//! Command `cargo xtask schema`.

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

/// Arguments that print each schema, and its file.
const FILES: [(&[&str], &str); 4] = [
    (&["schema", "scenario"], "schema/scenario.schema.json"),
    (&["schema", "summary"], "schema/summary.schema.json"),
    (&["schema", "eqds"], "schema/eqds.schema.json"),
    (&["keys", "--all"], "docs/keys.md"),
];

pub(crate) fn schema(options: &Options) -> Result<()> {
    fs::create_dir_all(root().join("schema")).context("schema")?;
    for (command, file) in FILES {
        let current = output(selvedge(Profile::Dev)?.args(command))?;
        if options.check {
            ensure!(read(file)? == current, "{file} is out of date: run `cargo xtask schema` and commit it");
            eprintln!("{file} is current");
        } else {
            fs::write(root().join(file), current).context(file)?;
            eprintln!("wrote {file}");
        }
    }
    Ok(())
}
