//! Tests of racks: the part of a file that is about the network and its switches.

use std::path::Path;

use selvedge_document::Document;
use selvedge_units::{Rate, Toggle};

use crate::{FileLibrary, Rack};

const RACK: &str = r#"[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 2
host-link = { rate = "100Mbps", delay = "50us" }
spine-link = { rate = "200Mbps", delay = "50us" }

[switch.ecn]
enabled = true

[[loss]]
link = "leaf0 - spine1"
model.random.rate = "1%"

[[failures]]
link = "leaf1 - spine0"
at = "1s"
"#;

fn rack(text: &str, sets: &[&str]) -> Result<Rack, String> {
    let read = || {
        let document = Document::parse("rack.toml", text)?;
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        Rack::from_document("rack.toml", document, FileLibrary::new(Path::new("")), &sets)
    };
    read().map_err(|error| error.to_string())
}

#[test]
fn a_rack_needs_no_title_and_no_traffic() {
    let rack = rack(RACK, &[]).unwrap();
    let graph = rack.network.graph();
    assert_eq!((graph.host_count(), graph.switches.len(), rack.seed), (4, 4, 1));
    assert_eq!((rack.switch.ecn.enabled, rack.loss.len(), rack.failures.len()), (Toggle::On, 1, 1));
    assert_eq!(rack.notes, [""; 0]);
    let set = self::rack(RACK, &["topology.leaf-spine.host-link.rate='50Mbps'"]).unwrap();
    assert_eq!(set.network.graph().links[0].rate, Rate::from_bps(50_000_000));
}

#[test]
fn a_whole_scenario_is_a_rack_whose_traffic_is_ignored() {
    let scenario = format!(
        "title = 'a'\nseeds = [7, 8]\nseries = ['irn', 'roce+pfc']\n{RACK}[workload.incast]\nsenders = 1\nsize = '1MB'\n"
    );
    let rack = rack(&scenario, &[]).unwrap();
    assert_eq!(rack.notes, ["rack.toml: without effect on real packets: workload, series"]);
    assert_eq!(rack.seed, 7);
}

#[test]
fn errors_name_the_line_of_the_file_as_it_is() {
    let wrong = |from: &str, to: &str| rack(&RACK.replace(from, to), &[]).expect_err("should be refused");
    assert!(wrong("spines = 2", "spine = 2").starts_with("rack.toml:3:1: topology.leaf-spine.spine: unknown key"));
    assert!(wrong("enabled = true", "enabled = 3").starts_with("rack.toml:9:"));
    let unknown = wrong("leaf0 - spine1", "leaf0 - spine7");
    assert!(unknown.starts_with("rack.toml:12:") && unknown.contains("spine7"), "{unknown}");
    assert!(wrong("leaf1 - spine0", "leaf9").starts_with("rack.toml:16:"));
    assert!(wrong("[switch.ecn]", "[switch.ecn").starts_with("rack.toml:8:"));
    assert_eq!(rack("[switch]\n", &[]).expect_err("no network"), "rack.toml:1:1: the key \"topology\" is missing");
    assert!(rack(RACK, &["switch.ecm.enabled=true"]).expect_err("an unknown key").contains("switch.ecm"));
}
