//! Tests that the schema, the keys, the guide and the figures agree with the code.

use std::path::{Path, PathBuf};

use expect_test::expect_file;

use super::plan;
use crate::{Changes, KeyHelp, Plan, schema};

#[test]
fn the_committed_schema_is_current() {
    let current = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
    expect_file!["../../../../schema/scenario.schema.json"].assert_eq(&current);
}

#[test]
fn the_schema_refuses_unknown_keys_everywhere() {
    fn walk(node: &serde_json::Value, path: &str) {
        if let Some(object) = node.as_object() {
            if object.contains_key("properties") {
                assert_eq!(object.get("additionalProperties"), Some(&false.into()), "{path}");
            }
            object.iter().for_each(|(key, value)| walk(value, &format!("{path}/{key}")));
        } else if let Some(elements) = node.as_array() {
            elements.iter().enumerate().for_each(|(at, value)| walk(value, &format!("{path}/{at}")));
        }
    }
    walk(&schema(), "");
}

#[test]
fn every_place_of_a_scenario_can_be_looked_up() {
    let said = |path: &str| KeyHelp::of(path).expect("a path in the schema").to_string();
    assert!(said("").contains("There is more inside"), "{}", said(""));
    let incast = said("workload.incast");
    assert!(incast.starts_with("workload.incast: { ... } or [{ ... }, ...]\nMany to one."), "{incast}");
    assert!(incast.contains("  size = a size, as in \"240KB\" (required)\n      All data of a repetition"), "{incast}");
    assert!(incast.contains("  repeat = a whole number (default: 1)\n"), "{incast}");
    assert_eq!(said("workload.incast[0].size"), said("workload.incast.size").replace("incast.size", "incast[0].size"));
    assert!(said("switch.balancing").contains("  \"spray\"\n      Each packet takes a path at random"));
    assert!(said("topology").contains("  fat-tree = { ... }\n      Three-tier fat-tree"));
    assert!(said("loss").contains("selvedge keys loss[0].direction\n"), "{}", said("loss"));
    let wrong = KeyHelp::of("workload.incst").expect_err("should be refused as misspelt").to_string();
    assert!(wrong.contains("did you mean \"incast\"?"), "{wrong}");
    let page = KeyHelp::page();
    assert!(!page.contains("[`") && !page.contains("](super"), "no links into the source");
}

#[test]
fn the_committed_keys_are_current() {
    expect_file!["../../../../docs/keys.md"].assert_eq(&KeyHelp::page());
}

#[test]
fn what_the_guide_shows_is_accepted() {
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md"));
    let guide = guide.expect("the guide is committed");
    let parts: Vec<toml::Table> = guide
        .split("```toml\n")
        .skip(1)
        .map(|rest| toml::from_str(rest.split("```").next().unwrap_or_default()).expect("TOML"))
        .collect();
    assert!(parts.len() > 6, "{} parts", parts.len());
    for part in &parts {
        // Each replaces or adds to the first, which is complete.
        let mut whole = parts[0].clone();
        whole.extend(part.clone());
        let text = whole.to_string();
        let plan = plan(&text, &Changes::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(plan.warnings, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn examples_are_accepted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).expect("the folder is readable").map(|entry| entry.expect("readable").path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let plans = files.map(|path| Plan::from_file(&path, &Changes::default()).unwrap_or_else(|error| panic!("{error}")));
    for plan in plans.collect::<Vec<_>>() {
        // The only warnings are those about devices.
        for warning in &plan.warnings {
            assert!(warning.contains("has values of public documents, none of them calibrated"), "{warning}");
        }
    }
}

#[test]
fn every_figure_is_accepted_whole_and_in_short() {
    fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder is readable") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                scenarios(&path, found);
            } else if path.ends_with("scenario.toml") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../figures"), &mut found);
    assert!(found.len() > 40, "{found:?}");
    for path in found {
        for smoke in [false, true] {
            let read = Plan::from_file(&path, &Changes { smoke, ..Changes::default() });
            read.unwrap_or_else(|error| panic!("smoke: {smoke}: {error}"));
        }
    }
}
