//! Tests of sweeps.

use std::fs;

use crate::{SMALL, Scratch};

fn swept(sweep: &str) -> String {
    SMALL.to_owned() + sweep
}

const GRID: &str = "[sweep]
cross.'workload.poisson.load' = { from = 0.1, to = 0.3, step = 0.1 }
[[sweep.zip]]
'switch.buffer.input-queued.per-port' = ['60KB', '240KB']
'nic.mtu' = ['1000B', '4000B']
[[sweep.skip]]
'workload.poisson.load' = { at-least = 0.3 }
'nic.mtu' = '4000B'
";

#[test]
fn a_sweep_is_one_table_and_one_map() {
    let scratch = Scratch::new("sweep").with("study.toml", &swept(GRID));
    let (out, error) = scratch.expect(0, &["run", "study.toml", "--out", "grid", "--series", "irn,irn+pfc"]);
    assert!(error.contains("10 series x 2 seeds"), "{error}");
    assert!(out.contains("load = 0.1, mtu = 1000B, per-port = 60KB: irn"), "{out}");
    let csv = fs::read_to_string(scratch.join("grid/sweep.csv")).expect("the table is written");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let head = ["workload.poisson.load", "nic.mtu", "switch.buffer.input-queued.per-port", "series", "slowdown_mean"];
    assert_eq!(rows[0][..5], head);
    assert_eq!(rows.len(), 1 + 5 * 2);
    assert_eq!(rows[1][..4], ["0.1", "1000B", "60KB", "irn"]);
    assert_eq!(rows[10][..4], ["0.3", "1000B", "60KB", "irn+pfc"]);
    let report = fs::read_to_string(scratch.join("grid/report.html")).expect("the report is written");
    assert!(report.contains("<table class=\"matrix\">") && report.contains("irn+pfc / irn"), "maps");
    // An interrupted sweep goes on to the same results, however many threads it has.
    let (_, _) =
        scratch.expect(0, &["run", "study.toml", "--out", "again", "--series", "irn,irn+pfc", "--threads", "1"]);
    assert_eq!(fs::read_to_string(scratch.join("again/sweep.csv")).expect("the table is written"), csv);
}

#[test]
fn one_axis_gives_lines_and_the_command_line_adds_axes() {
    let scratch = Scratch::new("sweep-line").with("small.toml", &swept(""));
    let load = "workload.poisson.load=0.1,0.2";
    scratch.expect(0, &["run", "small.toml", "--out", "line", "--sweep", load, "--series", "irn,irn+pfc"]);
    let report = fs::read_to_string(scratch.join("line/report.html")).expect("the report is written");
    assert!(report.contains("From case to case") && !report.contains("<table class=\"matrix\">"), "lines");
    let range = "nic.mtu={ from = '1000B', to = '4000B', factor = 2 }";
    let (_, error) = scratch.expect(0, &["run", "small.toml", "--sweep", load, "--sweep", range, "--estimate"]);
    assert_eq!(error, "");
    let summary = fs::read_to_string(scratch.join("line/summary.json")).expect("the summary is written");
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["sweep"]["axes"][0]["values"], serde_json::json!([[0.1], [0.2]]));
}

#[test]
fn wrong_sweeps_are_refused_with_their_place() {
    let refused = |sweep: &str, what: &str| {
        let scratch = Scratch::new("sweep-wrong").with("study.toml", &swept(sweep));
        let (_, error) = scratch.expect(2, &["run", "study.toml"]);
        assert!(error.contains(what), "{error}");
    };
    let line = swept("").lines().count() + 2;
    let at = |column: usize, message: &str| format!("study.toml:{line}:{column}: {message}");
    let load = "'workload.poisson.load'";
    refused("[sweep]\n", "nothing is swept");
    refused("[sweep]\ncrosses = {}\n", "unknown key \"crosses\"");
    refused("[sweep]\ncross.'workload.poison.load' = [1]\n", "poisson");
    refused(&format!("[sweep]\ncross.{load} = 0.3\n"), &at(1, "").replace(":1: ", ":"));
    refused(&format!("[sweep]\ncross.{load} = 0.3\n"), "is no list; give one, as in [0.3]");
    refused(&format!("[sweep]\ncross.{load} = []\n"), "no values");
    refused(&format!("[sweep]\ncross.{load} = [0.3, 0.30]\n"), "twice");
    refused(&format!("[sweep]\ncross.{load} = [0.3, 1.3]\n"), "load");
    refused(&format!("[sweep]\ncross.{load} = {{ from = 0.1, to = 0.3 }}\n"), "one of step, factor, count");
    refused(&format!("[sweep]\ncross.{load} = {{ from = 0.1, to = 0.3, step = 0 }}\n"), "a step above 0");
    refused(&format!("[sweep]\ncross.{load} = {{ from = 0.1, to = 0.3, steps = 3 }}\n"), "no \"steps\"");
    refused("[sweep]\ncross.'nic.mtu' = { from = '1KB', to = '9000B', count = 3 }\n", "one unit");
    refused("[sweep]\ncross.seeds = [[1], [2]]\n", "belongs to the study as a whole");
    refused(&format!("[[sweep.zip]]\n{load} = [0.1, 0.2]\n'nic.mtu' = ['1000B']\n"), "equally many");
    refused(&format!("[sweep]\ncross.{load} = [0.1]\nskip = [{{ 'nic.mtu' = '1000B' }}]\n"), "is not swept");
    refused(&format!("[sweep]\ncross.{load} = [0.1]\nskip = [{{ {load} = 0.2 }}]\n"), "none of the swept values");
    refused(&format!("[sweep]\ncross.{load} = [0.1]\nskip = [{{ {load} = 0.1 }}]\n"), "no point is left");
    refused(&format!("[sweep]\ncross.{load} = [0.1]\n[[sweep.zip]]\n{load} = [0.1]\n"), "swept twice");
    refused(
        "[sweep]\ncross.'nic.mtu' = { from = 1, to = 200, step = 1 }\ncross.'stop.flows' = { from = 1, to = 200, step = 1 }\n",
        "200 x 200 points are too many",
    );
    refused(&format!("[[case]]\nname = 'a'\n[sweep]\ncross.{load} = [0.1]\n"), "a sweep makes the cases itself");
    let scratch = Scratch::new("sweep-argument").with("small.toml", SMALL);
    let (_, error) = scratch.expect(2, &["run", "small.toml", "--sweep", "workload.poisson.load"]);
    assert!(error.contains("--sweep workload.poisson.load: expected key=values"), "{error}");
}
