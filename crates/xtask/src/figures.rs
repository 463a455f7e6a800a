//! `cargo xtask figures`.

use anyhow::Result;
use clap::Args;

use crate::command::run;
use crate::product::{Profile, selvedge};

#[derive(Args)]
pub(crate) struct Options {
    /// Only try whether they run: short runs, as the table "smoke" of each scenario says
    #[arg(long)]
    smoke: bool,
    /// Write the table of claims to docs/claims.md, and as a page to results/claims.html
    #[arg(long, conflicts_with = "smoke")]
    docs: bool,
    /// Figures, or folders of figures
    #[arg(value_name = "PATH", default_value = "figures")]
    paths: Vec<String>,
}

pub(crate) fn figures(options: &Options) -> Result<()> {
    let mut check = selvedge(Profile::Release)?;
    check.arg("check");
    if options.smoke {
        check.arg("--smoke");
    }
    if options.docs {
        check.args(["--markdown", "docs/claims.md", "--html", "results/claims.html"]);
    }
    run(check.args(&options.paths))
}
