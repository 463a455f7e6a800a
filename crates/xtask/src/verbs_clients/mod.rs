//! Command `cargo xtask verbs-clients`: RDMA programs of other projects with the software RNIC, from unmodified
//! packages.
//!
//! Each program runs between two network namespaces that are two hosts to it, with devices of their own. Packages are
//! installed: Debian's by `apt-get`, PyPI's into a folder below `target`. The command needs root and `ip`; unavailable
//! packages are named and left out.

mod clients;
mod run;

use anyhow::{Result, bail};
use clap::Args;

use self::clients::CLIENTS;
use self::run::{Outcome, TestBed};
use crate::workspace::root;
use crate::{dist, page};

#[derive(Args)]
pub(crate) struct Options {
    /// Run those whose names contain one of these; without any, all
    names: Vec<String>,
    /// Install nothing: missing programs are left out
    #[arg(long)]
    offline: bool,
    /// Libraries that are quick to build instead of quick to run
    #[arg(long)]
    debug: bool,
    /// Write the table to docs/verbs.md
    #[arg(long, conflicts_with = "names")]
    write: bool,
}

/// Document that contains the table.
const PAGE: &str = "docs/verbs.md";

/// Runs `cargo xtask verbs-clients`.
pub(crate) fn verbs_clients(options: &Options) -> Result<()> {
    let place = TestBed::new(dist::libraries_of(options.debug)?)?;
    let is_meant = |name: &str| options.names.is_empty() || options.names.iter().any(|part| name.contains(&**part));
    let mut table = "| program | packages | version | commands | result |\n|---|---|---|---|---|\n".to_owned();
    let mut failed = Vec::new();
    for client in CLIENTS.iter().filter(|client| is_meant(client.name)) {
        eprintln!("{}", client.name);
        let (version, outcome) = place.run(client, options.offline)?;
        let result = match &outcome {
            Outcome::Well => client.shows.to_owned(),
            Outcome::Missing(why) => format!("not run: {why}"),
            Outcome::Failed(output) => {
                eprintln!("{output}");
                failed.push(client.name);
                "FAILED".to_owned()
            }
        };
        eprintln!("    {version}: {result}");
        table += &format!("| {} | {} | {version} | {} | {result} |\n", client.name, client.packages, client.command());
    }
    println!("\n{table}");
    if options.write {
        page::write(&root().join(PAGE), "verbs-clients", &table)?;
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
