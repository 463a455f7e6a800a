//! Tests of `selvedge compare` with two results folders.

use std::fs;

use crate::{SMALL, Scratch, parsed};

/// Returns the ratio of a metric in a comparison of one series.
fn ratio(compared: &serde_json::Value, series: usize, metric: &str) -> (f64, Option<[f64; 2]>) {
    let metrics = compared["series"][series]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|one| one["metric"] == metric).unwrap();
    let bound = |at: usize| found["ratio"]["ci95"][at].as_f64();
    (found["ratio"]["mean"].as_f64().expect("a ratio"), bound(0).zip(bound(1)).map(|(low, high)| [low, high]))
}

#[test]
fn two_results_are_compared_series_by_series() {
    let scratch = Scratch::new("compare").with("small.toml", SMALL);
    let run = |out: &str, more: &[&str]| {
        scratch.expect(0, &[&["run", "small.toml", "-q", "--no-controls", "--out", out], more].concat());
    };
    run("a", &["--seeds", "3"]);
    run("far", &["--seeds", "3", "--set", "topology.fat-tree.link.delay=3us"]);
    run("large", &["--seeds", "3", "--set", "workload.poisson.sizes={ fixed = '8KB' }"]);
    run("load", &["--seeds", "3", "--set", "workload.poisson.load=0.2"]);
    run("seeds", &["--seeds", "7,8"]);
    run("fewer", &["--seeds", "2"]);
    run("one", &["--series", "roce", "--set", "nic.mtu=500B"]);

    // A folder compared with itself: no differences.
    let (out, error) = scratch.expect(0, &["compare", "a", "a"]);
    assert!(out.contains("The resolved scenarios are the same.") && error.is_empty(), "{out}{error}");
    let (out, _) = scratch.expect(0, &["compare", "a", "a", "--json"]);
    assert_eq!(ratio(&parsed(&out), 0, "fct_mean_us"), (1.0, Some([1.0, 1.0])));

    // The same flows on another network are paired; the key is named.
    let (out, _) = scratch.expect(0, &["compare", "a", "far"]);
    assert!(out.contains("topology.fat-tree.link.delay: \"2us\" -> \"3us\""), "{out}");
    assert!(out.contains("irn: the same flows in A and B, paired by seed"), "{out}");
    assert!(out.contains("roce+pfc: the same flows") && out.contains("B / A (95 %)"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    let (out, _) = scratch.expect(0, &["compare", "a", "far", "--json"]);
    let compared = parsed(&out);
    assert_eq!((&compared["series"][0]["flows"], &compared["a"]["folder"]), (&"same".into(), &"a".into()));
    let summary =
        |folder: &str| parsed(&fs::read_to_string(scratch.join(folder).join("summary.json")).expect("a summary"));
    let per_seed = |folder: &str| -> Vec<f64> {
        let seeds = summary(folder)["series"][0]["metrics"]["fct_mean_us"]["per_seed"].clone();
        seeds.as_array().unwrap().iter().map(|value| value.as_f64().expect("a number")).collect()
    };
    let (ours, theirs) = (per_seed("a"), per_seed("far"));
    let logs: f64 = ours.iter().zip(&theirs).map(|(a, b)| (b / a).ln()).sum();
    let (mean, interval) = ratio(&compared, 0, "fct_mean_us");
    assert!((mean.ln() - logs / 3.0).abs() < 1e-9, "{mean}");
    let [low, high] = interval.expect("three seeds");
    assert!(low <= mean && mean <= high);
    let difference = compared["differences"].as_array().unwrap();
    assert!(
        difference
            .iter()
            .any(|one| one["key"] == "topology.fat-tree.link.delay" && one["series"] == serde_json::json!([])),
        "{out}"
    );

    let (out, _) = scratch.expect(0, &["compare", "a", "fewer"]);
    assert!(
        out.contains("irn: the same flows in A and B, paired by seed (ratios: of the 2 seeds that both have)"),
        "{out}"
    );

    // At another load, flows have other start times.
    let (out, _) = scratch.expect(0, &["compare", "a", "load"]);
    assert!(out.contains("workload.poisson.load: ") && out.contains("-> 0.2"), "{out}");
    assert!(out.contains("irn: the same flows in A and B, some at other times; paired by seed"), "{out}");

    // Different flows are not paired.
    let (out, _) = scratch.expect(0, &["compare", "a", "large"]);
    assert!(out.contains("irn: A and B have other flows, so that ratios are not paired"), "{out}");
    let (out, _) = scratch.expect(0, &["compare", "a", "seeds", "--json"]);
    assert_eq!(parsed(&out)["series"][0]["flows"], "no-common-seed");

    // Series are matched by name.
    let (_, error) = scratch.expect(2, &["compare", "a", "one"]);
    assert!(
        error.contains("a and one have no series in common: irn, roce+pfc; roce: compare results whose"),
        "{error}"
    );
}

#[test]
fn cases_are_compared_with_their_own() {
    let cases = "[[case]]\nname = 'calm'\nset.'workload.poisson.load' = 0.2\n[[case]]\nname = 'busy'\nset.'workload.poisson.load' = 0.5\n";
    let scratch = Scratch::new("compare-cases").with("small.toml", &format!("{SMALL}{cases}"));
    for (out, set) in [("a", "nic.mtu=1000B"), ("b", "nic.mtu=500B")] {
        scratch.expect(0, &["run", "small.toml", "-q", "--no-controls", "--seeds", "2", "--set", set, "--out", out]);
    }
    let (out, _) = scratch.expect(0, &["compare", "a", "b", "--json"]);
    let compared = parsed(&out);
    let names: Vec<&str> =
        compared["series"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["calm: irn", "calm: roce+pfc", "busy: irn", "busy: roce+pfc"]);
    assert!(compared["series"].as_array().unwrap().iter().all(|one| one["flows"] == "same"), "{out}");
    // Keys that cases change have columns of their own.
    let explained = scratch.expect(0, &["explain", "b", "--series", "busy: irn", "--worst", "1"]).0;
    assert!(explained.contains("busy: irn, seed 1"), "{explained}");
}

#[test]
fn what_cannot_be_compared_is_said_with_status_2() {
    let scratch = Scratch::new("compare-wrong")
        .with("small.toml", SMALL)
        .with("empty/readme", "")
        .with("half.partial/unfinished.json", "{}");
    scratch.expect(0, &["run", "small.toml", "-q", "--seeds", "1", "--out", "a"]);
    scratch.expect(0, &["run", "small.toml", "-q", "--seeds", "1", "--out", "old"]);
    scratch.expect(0, &["run", "small.toml", "-q", "--seeds", "1", "--out", "bent"]);
    let summary = fs::read_to_string(scratch.join("old/summary.json")).expect("a summary");
    let older = summary.replacen("\"series\": [", "\"lines\": [", 1).replacen(env!("CARGO_PKG_VERSION"), "0.0.7", 1);
    assert_ne!(older, summary);
    fs::write(scratch.join("old/summary.json"), older).expect("writable");
    let mut flows = fs::read(scratch.join("bent/flows.parquet")).unwrap();
    let middle = flows.len() / 3;
    flows[middle] ^= 0x55;
    fs::write(scratch.join("bent/flows.parquet"), flows).expect("writable");
    for (other, message) in [
        ("missing", "error: missing: no such folder; expected one that `selvedge run` made, as in results/name-1"),
        ("empty", "error: empty: holds no results of a study; expected a folder that `selvedge run` made"),
        ("small.toml", "error: small.toml: is a file; expected a folder that `selvedge run` made"),
        (
            "half.partial",
            "error: half.partial: these results are not complete; first: selvedge run --resume half.partial",
        ),
        ("half", "error: half: not complete yet; first: selvedge run --resume half.partial"),
        ("old", "old/summary.json: not a summary as this version writes it; it is by version 0.0.7 ("),
        ("bent", "bent/flows.parquet: damaged"),
    ] {
        for pair in [["a", other], [other, "a"]] {
            let (out, error) = scratch.expect(2, &["compare", pair[0], pair[1]]);
            assert!(error.contains(message) && out.is_empty(), "{other}: {error}");
        }
    }
    let (_, error) = scratch.expect(2, &["explain", "bent"]);
    assert!(error.contains("bent/flows.parquet: damaged") && error.contains("make these results anew"), "{error}");
}
