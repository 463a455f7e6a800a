//! Tests that errors are reported with their place, their key and a remedy.

use super::{BASE, FAT_TREE, expect_text, extended, impossible, plan, variants, with_sets, wrong};
use crate::{Changes, Plan};

const LONG_CHAIN: &str = "[topology.chain]\nswitches = 10\nhost-link = { rate = '40Gbps', delay = '2us' }\n";

/// Returns the error that `--set set` gives on a valid scenario.
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
        with("[transport.tcp]\nmin-rto = 'soon'\n"),
        with("[transport.tcp.congestion.vegas]\n"),
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
        said += &wrong_set(set);
        said += "\n";
    }
    expect_text("errors.txt", &said);
}

#[test]
fn impossible_values_are_answered_with_place_and_remedy() {
    let base = format!("stop = {{ flows = 1000 }}\n{BASE}");
    let with = |extra: &str| format!("{base}{extra}");
    let cases = [
        BASE.to_owned(),
        base.replace("k = 4", "k = 5"),
        base.replace("40Gbps", "0Gbps"),
        base.replace("load = 0.7", "load = 1.7"),
        base.replace("load = 0.7", "load = 0.97"),
        base.replace("irn-heavy-tailed", "web-serch"),
        base.replace("cdf:irn-heavy-tailed", "file:missing.txt"),
        base.replace("[topology.fat-tree]\nk = 4\nlink", "[topology.fat-tree]\nk = 0\nlink"),
        with("[[workload.incast]]\nreceiver = 99\nsenders = 3\nsize = '1MB'\n"),
        with("[nic]\nmtu = '10KB'\n"),
        with("[nic]\ndata-class = 9\n"),
        with("[nic]\nclock-skew = '2%'\n"),
        with("[nic]\nclock-skew = 100\n"),
        with("[nic]\nclock-skew = '20000ppm'\n"),
        with("[nic]\njitter = '2ms'\n"),
        with("[switch.pfc]\nenabled = true\nheadroom = '250KB'\n"),
        with("[switch.pfc]\nenabled = true\nheadroom = '0B'\n"),
        with("[switch.pfc]\nenabled = true\nheadroom = '25KB'\n[switch.buffer.shared-buffer]\ntotal = '100KB'\n"),
        with("[switch.pfc]\nenabled = true\nquanta = 1\n"),
        with("[switch.pfc]\nenabled = true\nxon-gap = '219KB'\n"),
        with("[switch.buffer.input-queued]\nper-port = '1KB'\n"),
        with("[switch.ecn]\nenabled = true\nk-min = '500KB'\n"),
        with("[transport.recovery.irn]\nbdp-cap = 0\n"),
        with("[transport.recovery.irn]\n[transport.congestion.dctcp]\n[switch.ecn]\nenabled = false\n"),
        with("[transport.recovery.irn]\n[transport.congestion.dctcp]\ng = 0.0\n"),
        with("[transport.recovery.irn]\n[transport.congestion.swift]\nbeta = 2.0\n"),
        with("[transport.recovery.irn]\n[transport.congestion.hpcc]\ntarget-utilisation = 1.5\n"),
        with("[transport.recovery.irn]\n[transport.congestion.hpcc]\n")
            .replace(FAT_TREE, LONG_CHAIN)
            .replace("link = { rate = \"", "switch-link = { rate = \""),
        with("[transport.recovery.go-back-n]\nacks = 'none'\nrto = 'off'\n[transport.congestion.aimd]\n"),
        with("[transport.tcp]\nmss = '2KB'\n"),
        with("[transport.tcp]\nmin-rto = '1ms'\nmax-rto = '1us'\n"),
        with("[transport.tcp]\ndelayed-ack = '600ms'\n"),
        with("[transport.tcp]\nwindow-scaling = false\nreceive-buffer = '1MB'\n"),
        with("[transport.tcp]\necn = 'off'\n[transport.tcp.congestion.dctcp]\n"),
        with("[transport.tcp.congestion.cubic]\nbeta = 1.5\n"),
        with("[transport.tcp]\n[transport.eqds]\n"),
        with("[transport.recovery.irn]\n[transport.eqds]\n"),
        with("[transport.eqds.eqif.rdma]\n"),
        with("[transport.eqds.eqif.tcp]\n"),
        with("[transport.tcp]\n[transport.eqds.eqif.tcp]\nlimit = 0\n"),
        with("[transport.tcp]\n[transport.eqds.eqif.tcp.red]\nmin = 30\nmax = 20\n"),
        with("[transport.tcp]\n[transport.eqds.eqif.tcp.red]\nmax = 'off'\n"),
        with("[transport.tcp]\n[transport.eqds.eqif.tcp]\nlimit = 'off'\n"),
        with("[transport.tcp]\n[transport.eqds.eqif.tcp.share]\nweight = 0\n"),
        with("[transport.tcp]\n[transport.eqds.eqif.tcp]\n[switch.pfc]\nenabled = true\n"),
        with("[transport.recovery.go-back-n]\n[transport.eqds.eqif.rdma]\nback-pressure = { cnp = {} }\n"),
        with(
            "[transport.recovery.go-back-n]\n[transport.eqds.eqif.rdma]\nback-pressure = { pause = { resume = '1MB' } }\n",
        ),
        with("[transport.recovery.go-back-n]\n[transport.congestion.hpcc]\n[transport.eqds.eqif.rdma]\n"),
        with("[transport.recovery.go-back-n]\n[transport.eqds.eqif.rdma]\n[switch.netrt]\nenabled = true\n"),
        with("[transport.recovery.go-back-n]\n[switch.netrt]\nenabled = true\npriority = 3\n"),
        with("[[loss]]\nlink = 'core99'\nmodel.random.rate = 0.1\n"),
        with("[[failures]]\nlink = 'core0'\nat = '1ms'\nuntil = '1us'\n"),
        with("[measure]\nmiddle = 0\n"),
        with("sample = '0us'\n").replace("sample = '0us'\n", "").replacen("stop", "sample = '0us'\nstop", 1),
        base.replace("stop = { flows = 1000 }", "sample = '10ns'\nstop = { flows = 1_000_000_000 }"),
        with("[workload.closed-loop]\noutstanding = 4_000_000_000\nsizes = { fixed = '4KB' }\n"),
        with("[workload.closed-loop]\nflows-per-client = 18446744073709551615\nsizes = { fixed = '4KB' }\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\nqueue-depth = 0\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\noperations = []\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = [['h0', 'h0']]\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = [['h0', 'h99']]\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\nhosts = ['h0']\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\npairs = [['h0', 'h1']]\nhosts = ['h0']\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\nreads = 129\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\nretries = 8\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\nload = 0.5\nthink = '1us'\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\nqueue-pairs = 20_000\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\n[nic]\nmtu = '1000B'\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\n[transport.tcp]\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\n[transport.recovery.irn]\n[transport.congestion.hpcc]\n"),
        with(
            "[workload.verbs]\nsizes = { fixed = '4KB' }\n[transport.recovery.go-back-n]\n[transport.congestion.swift]\n",
        ),
        with(
            "[workload.verbs]\nsizes = { fixed = '4KB' }\noperations = ['read']\n[transport.recovery.go-back-n]\n[transport.congestion.dcqcn]\n",
        ),
        with("[nic]\nmtu = '18446744073709551615B'\n"),
        with("[workload.collective]\nsize = '1MB'\noperation = 'tree-all-reduce'\n"),
        with("[workload.incast]\nsize = '1MB'\nsenders = 99\n"),
        with("[switch.buffer]\ntrimming = 'on'\n"),
        with("[workload.verbs]\nsizes = { fixed = '4KB' }\n[beside]\nworkloads = ['verbs']\n"),
        with("[[loss]]\nlink = 'all'\nmodel.random.rate = '0.1%'\npackets = ['data']\n"),
        base.replace("stop = { flows = 1000 }", "stop = { flows = 0 }"),
        base.replace("stop = { flows = 1000 }", "stop = { time = '5000000s' }"),
        base.replace("2us", "1000s"),
        with("[workload.permutation]\nsize = '900000000GB'\n"),
        base.replace("stop = { flows = 1000 }", "stop = { flows = 1000 }\nseeds = []"),
        base.replace("stop = { flows = 1000 }", "stop = { flows = 1000 }\nseeds = 0"),
        base.replace("stop = { flows = 1000 }", "stop = { flows = 1000 }\nseeds = [1, 2, 1]"),
        with("[[series]]\npreset = 'irn'\n[[series]]\nname = 'low'\nset.'workload.poisson.load' = 1.5\n"),
        with("[[series]]\npreset = 'irn'\n[[series]]\nname = 'hot'\nset.'workload.poisson.load' = 0.98\n"),
        with("[[series]]\npreset = 'irn'\n[[case]]\nname = 'heavy'\nset.'workload.poisson.load' = 0.98\n"),
        "stop = { flows = 9 }\ntitle = 'narrow'\n[topology.dumbbell]\nleft = 2\nright = 2\nhost-link = { rate = '40Gbps', delay = '2us' }\n\
         bottleneck = { rate = '80Gbps', delay = '2us' }\n[workload.poisson]\nload = 0.7\nsizes = { fixed = '4KB' }\n\
         [[series]]\nname = 'slow'\npreset = 'eqds'\nset.'topology.dumbbell.bottleneck.rate' = '20Gbps'\n".to_owned(),
        with(&format!("[[series]]\npreset = 'irn'\nname = '{}'\n", "long".repeat(75))),
        with(&format!("[[case]]\nname = '{}'\n", "long".repeat(75))),
        with("[transport.recovery.irn]\nrto-high = '0ps'\n"),
        base.replace("\"cdf:irn-heavy-tailed\"", "{ fixed = '1500.5B' }"),
        base.replace("load = 0.7", "load = 0.7\nstart = '1ms'").replace("stop = { flows = 1000 }", "stop = { time = '10us' }"),
        base.replace("stop = { flows = 1000 }", "stop = { flows = 10 }\nmeasure = { middle = 0.01 }"),
        with("[switch.buffer.shared-buffer]\ntotal = '9MB'\n").replace("40Gbps", "1bps"),
        with("[switch.buffer.shared-buffer]\ntotal = '9000000TB'\n"),
        base.replace("\"cdf:irn-heavy-tailed\"", "{ fixed = '1000TB' }"),
        base.replace("40Gbps", "101Tbps"),
        with("[transport.eqds]\nheader = '70KB'\n"),
        with("[transport.eqds]\ncontrol-frame = '65600B'\n"),
        with("[transport.eqds]\nack-after = '4GB'\n"),
        with("[transport.tcp]\n[transport.eqds.eqif]\nencapsulation = '70KB'\ntcp = {}\n"),
        with("[transport.ndp]\ninitial-window = 5_000_000\n[switch.buffer.trimming]\n"),
        with("[transport.ndp]\n[switch.buffer.trimming]\npackets = 4_000_000_000\n").replace("40Gbps", "1Mbps"),
    ];
    let mut said = String::new();
    for case in &cases {
        said += &impossible(case);
        said += "\n";
    }
    for set in ["topology.fat-tree.k=3", "switch.pfc={enabled=true, headroom='off'}", "seeds=0", "stop={}"] {
        said += &plan(&base, &with_sets(&[set])).expect_err("this is impossible");
        said += "\n";
    }
    expect_text("impossible.txt", &said);
}

#[test]
fn names_with_control_characters_are_refused() {
    let error = plan(&extended("[[series]]\nname = \"a\\u0007b\"\npreset = 'irn'\n"), &Changes::default());
    let error = error.expect_err("refused").to_string();
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
    let refused = |changes: &Changes| plan(&extended(""), changes).expect_err("refused").to_string();
    let error = refused(&changes);
    let (before, rest) = error.split_once("below the headroom of ").expect(&error);
    assert!(before.contains("per-port=25KB") && rest.contains("give more than "), "{error}");
    let sets = [sets[0], sets[1], "switch.pfc.xon-gap=10KB"];
    let error = refused(&Changes { series: Some("irn+pfc".into()), ..with_sets(&sets) });
    assert!(error.contains("xon-gap=10KB"), "{error}");
}

#[test]
fn cases_that_mean_nothing_are_refused() {
    let wrong = |text: &str| plan(&extended(text), &Changes::default()).expect_err("wrong");
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
    let error = variants(&dumbbell, &["delay=5us"], None).expect_err("this is wrong");
    assert!(error.contains("topology.dumbbell.bottleneck.delay") && error.contains("host-link.delay"), "{error}");
    // In the text, too, in a series and in a case.
    let meant = "unknown key \"load\"; did you mean \"workload.poisson.load\"?";
    assert_eq!(wrong(&format!("load = 0.5\n{BASE}")), format!("study.toml:1:1: load: {meant}"));
    let wrong_value =
        plan(&extended("[[series]]\npreset = 'irn'\nset.load = 0.5\n"), &Changes::default()).expect_err("wrong");
    assert!(wrong_value.contains(meant), "{wrong_value}");
    let wrong_value =
        plan(&extended("[[case]]\nname = 'a'\nset.load = 0.5\n"), &Changes::default()).expect_err("wrong");
    assert!(wrong_value.contains(meant), "{wrong_value}");
    let error = wrong(&format!("{BASE}[switch]\nheadroom = '20KB'\n"));
    assert!(
        error.ends_with("switch.headroom: unknown key \"headroom\"; did you mean \"switch.pfc.headroom\"?"),
        "{error}"
    );
    let error = crate::KeyHelp::of("irn.sack").expect_err("wrong").to_string();
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
    let said =
        |name: &str| Plan::from_file(&folder.join(name), &Changes::default()).expect_err("no scenario").to_string();
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
