//! Command `cargo xtask figures`.

use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::command::{output, run};
use crate::dist;
use crate::product::{Profile, selvedge};
use crate::workspace::root;

#[derive(Args)]
pub(crate) struct Options {
    /// Only check that the figures run: short runs, by the table "smoke" of each scenario
    #[arg(long)]
    smoke: bool,
    /// Write the tables of claims to docs/claims.md, and as a page to results/claims.html; tables in docs/claims.md of
    /// papers that are not run stay
    #[arg(long, conflicts_with = "smoke")]
    docs: bool,
    /// Figures, folders of figures, or papers: "netrt" is figures/netrt
    #[arg(value_name = "PATH", default_value = "figures")]
    paths: Vec<String>,
}

pub(crate) fn figures(options: &Options) -> Result<()> {
    let mut check = selvedge(Profile::Release)?;
    check.arg("check");
    // For figures of RDMA programs. Those of a test run are there already.
    check.env("SELVEDGE_LIBRARIES", dist::libraries_of(options.smoke)?);
    if options.smoke {
        check.arg("--smoke");
    }
    if options.docs {
        check.args(["--markdown", "docs/claims.md", "--html", "results/claims.html", "--revision", &revision()?]);
    }
    run(check.args(options.paths.iter().map(|path| folder(path))))
}

/// Returns a paper's folder by its name.
fn folder(path: &str) -> String {
    let paper = format!("figures/{path}");
    if root().join(path).exists() || !root().join(&paper).exists() { path.to_owned() } else { paper }
}

/// Returns the commit, with a mark if the files differ from it.
fn revision() -> Result<String> {
    let described = output(Command::new("git").current_dir(root()).args(["describe", "--always", "--dirty"]))?;
    Ok(described.trim().to_owned())
}
