//! Tests of messages to users, and of series and `--set`.

mod auto;
mod impossible;
mod limits;
mod lone_flows;
mod messages;
mod published;
mod racks;
mod series;
mod sets;
mod warnings;
mod windows;
mod workloads;

use std::path::Path;

use selvedge_document::Document;

use crate::draft::{Draft, Variant};
use crate::{Changes, Plan};

const BASE: &str = r#"title = "test"
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.poisson]
load = 0.7
sizes = "cdf:irn-heavy-tailed"
"#;

const FAT_TREE: &str = "[topology.fat-tree]\nk = 4\n";

/// Scenario of two hosts on one link, 0.1 s apart.
const NO_SWITCH: &str = "title = 'test'
[topology.explicit]
hosts = ['a', 'b']
links = [{ between = ['a', 'b'], rate = '1Gbps', delay = '100ms' }]
[workload.incast]
senders = ['a']
receiver = 'b'
connections = 1
size = '1MB'
";

fn extended(more: &str) -> String {
    format!("stop = {{ flows = 1000 }}\n{BASE}{more}")
}

fn variants(text: &str, sets: &[&str], chosen: Option<&str>) -> Result<Vec<Variant>, String> {
    let document = Document::parse("study.toml", text).map_err(|error| error.to_string())?;
    let draft = Draft::read(document, &with_sets(sets)).map_err(|error| error.to_string())?;
    draft.variants(chosen).map_err(|error| error.to_string())
}

/// Returns the error that `text` gives.
fn wrong(text: &str) -> String {
    variants(text, &[], None).expect_err("should be refused")
}

fn plan(text: &str, changes: &Changes) -> Result<Plan, String> {
    Plan::from_text("study.toml", text, Path::new(""), changes).map_err(|error| error.to_string())
}

fn with_sets(sets: &[&str]) -> Changes {
    Changes { sets: sets.iter().map(|&set| set.to_owned()).collect(), ..Changes::default() }
}

/// Returns the error of a scenario that is well formed but impossible.
fn impossible(text: &str) -> String {
    plan(text, &Changes::default()).expect_err("should be refused")
}
