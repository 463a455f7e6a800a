//! Tests that errors are reported with their place, their key and a remedy.

use expect_test::expect_file;
use selvedge_testkit::Answers;

use super::{BASE, FAT_TREE, extended, impossible, plan, variants, with_sets, wrong};
use crate::{Changes, Plan};

pub(super) const LONG_CHAIN: &str = "[topology.chain]\nswitches = 10\nhost-link = { rate = '40Gbps', delay = '2us' }\n";

/// Returns the error that `--set set` gives on a valid scenario.
fn wrong_set(set: &str) -> String {
    variants(BASE, &[set], None).expect_err("should be refused")
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
        with("[transport.tcp]\nmin-rto = 'soon'\n"),
        with("[transport.tcp.congestion.westwood]\n"),
        with("[transport.recovery.irn]\n[transport.tcp]\n"),
        with("[transport.recovery.irn]\n[[series]]\nname = 'a'\nset.'transport.tcp.sack' = false\n"),
        with("[[loss]]\nlink = 'all'\nmodel.random.rate = 2.0\n"),
        with("[[loss]]\nlink = 'all'\nmodel.random.rate = '1%'\n[[loss]]\nlnk = 'all'\n"),
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
        BASE.to_owned() + "[workload.verbs]\nsizes = { fixed = '4KB' }\noperations = { wrte = 1 }\n",
        BASE.to_owned() + "[workload.verbs]\nsizes = { fixed = '4KB' }\noperations = 'write'\n",
        BASE.to_owned() + "[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = 'all'\n",
        BASE.to_owned() + "[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = [['h0']]\n",
        BASE.replace("[workload.poisson]", "[[workload]]\n[workload.poisson]"),
        with("[switch]\npfc = []\n"),
        BASE.replace("{ rate = \"40Gbps\", delay = \"2us\" }", "[\"40Gbps\", \"2us\"]"),
        BASE.replace("title = \"test\"\n", ""),
        BASE.replace("title = \"test\"", "title = ' '"),
        String::new(),
    ];
    let mut answers = Answers::beside(&[BASE]);
    for case in &cases {
        answers.add("", case, &wrong(case));
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
        "switch.pfc.quanta=65536",
        "nic.data-class=300",
        "stop.flows=18446744073709551615",
        "stop.flows=-1",
        "stop.time=1000000000s",
        "workload.poisson.load.x=1",
        "loss[0].model.random.rate=0.1",
        "=3",
        "series=[]",
    ] {
        answers.add("", format!("--set {set}\n"), &wrong_set(set));
    }
    expect_file!["../snapshots/errors.txt"].assert_eq(answers.text());
}

#[test]
fn names_with_control_characters_are_refused() {
    let error = plan(&extended("[[series]]\nname = \"a\\u0007b\"\npreset = 'irn'\n"), &Changes::default());
    let error = error.expect_err("should be refused").to_string();
    assert!(error.contains("has a control character"), "{error}");
}

#[test]
fn windows_behind_the_last_flow_are_refused() {
    let text = |end: &str, from: &str| {
        format!(
            "title = 'test'\nstop = {{ {end} }}\nmeasure = {{ window = {{ from = '{from}' }} }}\n{FAT_TREE}\
             link = {{ rate = '40Gbps', delay = '2us' }}\n[workload.poisson]\nload = 0.7\nuntil = '1ms'\nsizes = 'cdf:irn-heavy-tailed'\n"
        )
    };
    plan(&text("time = '5ms'", "900us"), &Changes::default()).expect("flows start until then");
    let late = impossible(&text("time = '5ms'", "2ms"));
    let parts = [
        "study.toml:3:",
        "measure.window.from",
        "from 2ms on: the last one starts at 1ms; give that time or an earlier",
    ];
    assert!(parts.iter().all(|part| late.contains(part)), "{late}");
    let over = impossible(&text("time = '900us'", "900us"));
    assert!(over.contains("measure.window.from") && over.contains("the run ends at 900us (stop.time)"), "{over}");
}

#[test]
fn a_buffer_too_small_for_a_gap_that_nobody_gave_is_blamed_itself() {
    let sets = ["switch.pfc.enabled=true", "switch.buffer.input-queued.per-port=25KB"];
    let changes = Changes { series: Some("irn+pfc".into()), ..with_sets(&sets) };
    let refused = |changes: &Changes| plan(&extended(""), changes).expect_err("should be refused").to_string();
    let error = refused(&changes);
    let (before, rest) = error.split_once("below the headroom of ").expect(&error);
    assert!(before.contains("per-port=25KB") && rest.contains("give more than "), "{error}");
    let sets = [sets[0], sets[1], "switch.pfc.xon-gap=10KB"];
    let error = refused(&Changes { series: Some("irn+pfc".into()), ..with_sets(&sets) });
    assert!(error.contains("xon-gap=10KB"), "{error}");
}

#[test]
fn cases_that_mean_nothing_are_refused() {
    let wrong = |text: &str| plan(&extended(text), &Changes::default()).expect_err("should be refused");
    let idle = wrong("[[series]]\npreset = 'roce'\n[[case]]\nname = 'a'\nset.'transport.recovery.irn.sack' = false\n");
    assert!(idle.contains("transport.recovery is \"go-back-n\" here"), "{idle}");
    let unknown = wrong("[[series]]\npreset = 'irn'\ncase = 'clam'\n[[case]]\nname = 'calm'\n");
    assert!(unknown.contains("did you mean \"calm\"?"), "{unknown}");
    let twice = wrong("[[series]]\npreset = 'irn'\n[[case]]\nname = 'a'\n[[case]]\nname = 'a'\n");
    assert!(twice.contains("two cases are called \"a\""), "{twice}");
    let study = wrong("[[series]]\npreset = 'irn'\n[[case]]\nname = 'a'\nset.'seeds' = 3\n");
    assert!(study.contains("belongs to the study"), "{study}");
}

#[test]
fn keys_of_other_tables_are_suggested_wherever_a_key_is_wrong() {
    for (set, meant) in [
        ("load=0.5", "workload.poisson.load"),
        ("lod=0.5", "workload.poisson.load"),
        ("poisson.load=0.5", "workload.poisson.load"),
        ("workload.load=0.5", "workload.poisson.load"),
        ("headroom=20KB", "switch.pfc.headroom"),
        ("pfc.headrom=20KB", "switch.pfc.headroom"),
        ("switch.headroom=20KB", "switch.pfc.headroom"),
        ("topology.link.rate=100Gbps", "topology.fat-tree.link.rate"),
        ("topology.k=8", "topology.fat-tree.k"),
        ("mtu=4KB", "nic.mtu"),
        ("transport.sack=false", "transport.recovery.irn.sack"),
    ] {
        let error = wrong_set(set);
        assert!(error.contains(&format!("; did you mean \"{meant}\"")), "{set}: {error}");
    }
    // In another kind of network, the key is another.
    let dumbbell = BASE
        .replace(FAT_TREE, "[topology.dumbbell]\nleft = 2\nright = 2\nhost-link = { rate = '1Gbps', delay = '1us' }\n");
    let dumbbell = dumbbell.replace("\nlink = ", "\nbottleneck = ");
    let error = variants(&dumbbell, &["delay=5us"], None).expect_err("should be refused");
    assert!(error.contains("topology.dumbbell.bottleneck.delay") && error.contains("host-link.delay"), "{error}");
    // In the text, too, in a series and in a case.
    let meant = "unknown key \"load\"; did you mean \"workload.poisson.load\"?";
    assert_eq!(wrong(&format!("load = 0.5\n{BASE}")), format!("study.toml:1:1: load: {meant}"));
    let wrong_value = plan(&extended("[[series]]\npreset = 'irn'\nset.load = 0.5\n"), &Changes::default())
        .expect_err("should be refused");
    assert!(wrong_value.contains(meant), "{wrong_value}");
    let wrong_value =
        plan(&extended("[[case]]\nname = 'a'\nset.load = 0.5\n"), &Changes::default()).expect_err("should be refused");
    assert!(wrong_value.contains(meant), "{wrong_value}");
    let error = wrong(&format!("{BASE}[switch]\nheadroom = '20KB'\n"));
    assert!(
        error.ends_with("switch.headroom: unknown key \"headroom\"; did you mean \"switch.pfc.headroom\"?"),
        "{error}"
    );
    let error = crate::KeyHelp::of("irn.sack").expect_err("should be refused").to_string();
    assert!(error.contains("did you mean \"transport.recovery.irn.sack\"?"), "{error}");
    // A name unlike all others is answered with the list of names.
    assert!(wrong_set("zzzzzz=1").contains("known here: auto, beside,"), "{}", wrong_set("zzzzzz=1"));
}

#[test]
fn files_of_other_simulators_are_sent_to_their_options() {
    let folder = selvedge_testkit::Scratch::new("scenario-other-simulators")
        .with("topo.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n")
        .with("flow.txt", "1\n0 1 3 100 1000 2.0\n")
        .with("x.topo", "Nodes 32\nTiers 2\n")
        .with("x.cm", "Nodes 4\nConnections 1\n0->1 start 0 size 9\n")
        .with("two.goal", "num_ranks 2\nrank 0 {\n}\n")
        .with("sizes.txt", "1000 50\n9000 100\n")
        .with("notes.txt", "This is no scenario.\n");
    std::fs::write(folder.join("two.bin"), [4223u64.to_le_bytes(), [0xff; 8]].concat()).expect("writable");
    std::fs::write(folder.join("cut.bin"), [2342u64.to_le_bytes(), [0xff; 8]].concat()).expect("writable");
    let said = |name: &str| {
        Plan::from_file(&folder.join(name), &Changes::default()).expect_err("should be refused").to_string()
    };
    for (name, expected) in [
        ("topo.txt", "topo.txt: this is an ns-3 RDMA topology, not a scenario: give it as --topology "),
        ("flow.txt", "flow.txt: this is an ns-3 RDMA flow list, 6 columns, not a scenario: give it as --flows "),
        ("x.topo", "x.topo: this is a htsim topology, not a scenario: give it as --topology "),
        ("x.cm", "x.cm: this is a htsim connection matrix, not a scenario: give it as --flows "),
        ("two.goal", "two.goal: this is a GOAL schedule, not a scenario: give it as --flows "),
        ("two.bin", "two.bin: this is a binary GOAL schedule, not a scenario: give it as --flows "),
        ("cut.bin", "cut.bin: found a binary GOAL schedule that is marked invalid"),
        (
            "sizes.txt",
            "sizes.txt: this is a distribution of flow sizes, not a scenario: name it in one, as in sizes = \"file:",
        ),
        ("notes.txt", "notes.txt:1:6: not TOML: "),
    ] {
        let said = said(name);
        assert!(said.contains(expected), "{name}: {said}");
    }
}
