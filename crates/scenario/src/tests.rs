//! What people get to read, and what series and `--set` mean.

use crate::draft::{Draft, Variant};

const BASE: &str = r#"title = "test"
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.poisson]
load = 0.7
sizes = "cdf:irn-heavy-tailed"
"#;

fn variants(text: &str, sets: &[&str], chosen: Option<&str>) -> Result<Vec<Variant>, String> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let draft = Draft::read("study.toml", text, &sets, false).map_err(|error| error.to_string())?;
    draft.variants(chosen).map_err(|error| error.to_string())
}

/// The error that `text` gives.
fn wrong(text: &str) -> String {
    variants(text, &[], None).expect_err("this is wrong")
}

/// The error that `--set set` gives on a good scenario.
fn wrong_set(set: &str) -> String {
    variants(BASE, &[set], None).expect_err("this is wrong")
}

#[test]
fn errors_name_place_key_and_remedy() {
    let with = |extra: &str| format!("{BASE}{extra}");
    let cases = [
        with("[switch.pfc]\nheadrom = '20KB'\n"),
        with("[switch]\npfc = { enabled = 'yes' }\n"),
        with("[nic]\nmtu = 1024\n"),
        with("[nic]\nmtu = '1024'\n"),
        with("[nic]\nmtu = '1kb'\n"),
        with("[transport.recovery.inr]\n"),
        with("[transport.recovery.irn]\n[transport.recovery.go-back-n]\n"),
        with("[transport.recovery.irn]\nrto-high = 'soon'\n"),
        with("[[loss]]\nchance = 2.0\n"),
        with("[[loss]]\nchance = 0.1\n[[loss]]\nchanse = 0.1\n"),
        with("[[series]]\nname = 'a'\nsets = {}\n"),
        with("[[series]]\npreset = 'irn+pcf'\n"),
        with("[[series]]\nname = 'a'\nset.'switch.pfc.enalbed' = true\n"),
        with("[[series]]\nname = 'a'\nset.'switch.pfc.enabled' = 3\n"),
        with("[[series]]\nname = 'a'\nset.'seeds' = 3\n"),
        with("[[series]]\nname = 'a'\nset.'topology.leaf-spine.leaves' = 3\n"),
        with("[[series]]\nname = 'a'\n[[series]]\nname = 'a'\n"),
        with("[[series]]\n"),
        format!("series = []\n{BASE}"),
        format!("seeds = 'many'\n{BASE}"),
        BASE.replace("k = 4\n", ""),
        BASE.replace("k = 4", "k = -4"),
        BASE.replace("k = 4", "k = 4 4"),
        BASE.replace("\"2us\"", "2"),
        BASE.replace("2us", "2 parsecs"),
        BASE.replace("fat-tree", "fat_tree"),
        BASE.replace("[workload.poisson]\nload = 0.7\nsizes = \"cdf:irn-heavy-tailed\"\n", ""),
        BASE.replace("title = \"test\"\n", ""),
        String::new(),
    ];
    let mut said = String::new();
    for case in &cases {
        said += &wrong(case);
        said += "\n";
    }
    for set in [
        "switch.pfc.headrom=20KB",
        "switch.pfc.headroom=20",
        "switch.pfc.enabled=maybe",
        "switch.pfc.enabled",
        "swich.pfc.enabled=true",
        "topology.leaf-spine.leaves=3",
        "topology.fat-tree.k=six",
        "topology.fat-tree.link.rate=100Gbit",
        "workload.poisson.load.x=1",
        "loss[0].chance=0.1",
        "=3",
        "series=[]",
    ] {
        said += &wrong_set(set);
        said += "\n";
    }
    expect_text("errors.txt", &said);
}

/// Compares `said` with the committed text; `SELVEDGE_BLESS=1` writes it.
fn expect_text(name: &str, said: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshots").join(name);
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        std::fs::write(&path, said).expect("snapshots are writable");
    }
    let committed = std::fs::read_to_string(&path).expect("the snapshot is committed");
    assert_eq!(said, committed, "if this is meant, run again with SELVEDGE_BLESS=1 and say why in the commit");
}
