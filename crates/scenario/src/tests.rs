//! What people get to read, and what series and `--set` mean.

mod limits;
mod windows;

use std::path::{Path, PathBuf};

use selvedge_sim::config::{BufferConfig, TransportConfig};
use selvedge_sim::record::FlowKey;
use selvedge_transport::CongestionConfig;
use selvedge_transport::recovery::RecoveryConfig;
use selvedge_transport::recovery::go_back_n::Acks;
use selvedge_transport::recovery::irn::Rto;
use selvedge_units::{Bytes, Duration, Rate, Setting, Toggle};

use crate::document::Document;
use crate::draft::{Draft, Variant};
use crate::{BUILT_IN, Changes, KeyHelp, Plan, Point, Scenario, Seeds, WorkloadFacts, schema};

const BASE: &str = r#"title = "test"
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.poisson]
load = 0.7
sizes = "cdf:irn-heavy-tailed"
"#;

const FAT_TREE: &str = "[topology.fat-tree]\nk = 4\n";
const LONG_CHAIN: &str = "[topology.chain]\nswitches = 10\nhost-link = { rate = '40Gbps', delay = '2us' }\n";

fn extended(more: &str) -> String {
    format!("stop = {{ flows = 1000 }}\n{BASE}{more}")
}

fn variants(text: &str, sets: &[&str], chosen: Option<&str>) -> Result<Vec<Variant>, String> {
    let document = Document::parse("study.toml", text).map_err(|error| error.to_string())?;
    let draft = Draft::read(document, &with_sets(sets)).map_err(|error| error.to_string())?;
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

/// Compares `said` with the committed text; `SELVEDGE_BLESS=1` writes it.
fn expect_text(name: &str, said: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshots").join(name);
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        std::fs::write(&path, said).expect("snapshots are writable");
    }
    let committed = std::fs::read_to_string(&path).expect("the snapshot is committed");
    assert_eq!(said, committed, "if this is meant, run again with SELVEDGE_BLESS=1 and say why in the commit");
}

fn plan(text: &str, changes: &Changes) -> Result<Plan, String> {
    Plan::from_text("study.toml", text, Path::new(""), changes).map_err(|error| error.to_string())
}

fn with_sets(sets: &[&str]) -> Changes {
    Changes { sets: sets.iter().map(|&set| set.to_owned()).collect(), ..Changes::default() }
}

/// The error that a scenario gives which is well written but cannot be.
fn impossible(text: &str) -> String {
    plan(text, &Changes::default()).expect_err("this is impossible")
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
fn tcp_and_rdma_stand_beside_each_other() {
    let base = format!("stop = {{ flows = 10 }}\n{BASE}");
    let sets = with_sets(&["transport.tcp.min-rto=1ms"]);
    let changes = Changes { series: Some("tcp,irn,tcp+dctcp".into()), ..sets };
    let plan = plan(&base, &changes).expect("a plan");
    let transport = |index: usize| plan.series[index].scenario.transport;
    assert_eq!((transport(0).recovery_name(), transport(0).congestion_name()), ("tcp", "new-reno"));
    assert_eq!((transport(1).recovery_name(), transport(1).tcp), ("irn", None));
    assert_eq!(transport(2).congestion_name(), "dctcp");
    let tcp = transport(0).tcp.expect("TCP");
    assert_eq!((tcp.min_rto, tcp.mss), (Setting::Value(Duration::from_ms(1)), Setting::Value(Bytes::new(1_024))));
    // DCTCP comes with switches that mark: above a seventh of 40 Gb/s times 24 us and the time that a frame and an
    // answer take on six links each, in whole frames of 1,094 bytes.
    let ecn = |index: usize| plan.series[index].scenario.switch.ecn;
    assert_eq!((ecn(0).enabled, ecn(2).enabled), (Toggle::Off, Toggle::On));
    assert_eq!((ecn(2).k_min, ecn(2).k_max), (Setting::Value(Bytes::new(18_598)), Setting::Value(Bytes::new(18_598))));
    assert_eq!(plan.warnings, [""; 0]);
    // The resolved scenario can be read again and means the same.
    let again = self::plan(&plan.to_toml(), &Changes::default()).expect("what was written can be read");
    assert_eq!(again.series[0].scenario.transport, transport(0));
}

#[test]
fn telemetry_is_counted_on_the_wire() {
    let changes = Changes { series: Some("irn,irn+hpcc".into()), ..Changes::default() };
    let plan = plan(&format!("stop = {{ flows = 10 }}\n{BASE}"), &changes).expect("a plan");
    let [irn, hpcc] = [0, 1].map(|index| &plan.series[index].scenario);
    let bytes = |scenario: &Scenario| {
        let Scenario { nic, transport, .. } = scenario;
        (nic.data_header(transport).get(), nic.ack_frame(transport).get())
    };
    assert_eq!((bytes(irn), bytes(hpcc)), ((62, 66), (62 + 42, 66 + 42)));
    assert_eq!(plan.warnings, [""; 0]);
}

/// Hosts back to back, whose link holds a frame and a bit: T is that of two, each as long as it is on the wire.
#[test]
fn telemetry_is_counted_once_where_paths_hold_few_frames() {
    let text = NO_SWITCH.replace("100ms", "100ns");
    let plan = plan(&text, &Changes { series: Some("irn+hpcc".into()), ..Changes::default() }).expect("a plan");
    let CongestionConfig::Hpcc(hpcc) = plan.series[0].transport.congestion else { panic!("HPCC") };
    assert_eq!(hpcc.base_rtt, Setting::Value(Rate::from_gbps(1).time_for(Bytes::new(2 * (1_024 + 62 + 42 + 20)))));
}

#[test]
fn aimd_with_pfc_is_warned_about() {
    let changes = Changes { series: Some("irn+aimd,irn+aimd+pfc,irn+dctcp+pfc".into()), ..Changes::default() };
    let plan = plan(&format!("stop = {{ flows = 10 }}\n{BASE}"), &changes).expect("a study may want it");
    let [warning] = &plan.warnings[..] else { panic!("one warning: {:?}", plan.warnings) };
    assert!(warning.contains("irn+aimd+pfc") && warning.contains("PFC prevents them"), "{warning}");
    // A seventh of the line rate times the empty path's round trip (DCTCP, equation 13).
    let k = plan.series[2].scenario.switch.ecn.k_min.resolve(|| None).expect("it marks");
    assert!((17_142..20_000).contains(&k.get()), "{k}");
}

#[test]
fn pauses_that_end_before_they_are_refreshed_are_warned_about() {
    let warnings = |quanta: u16| {
        let text = extended(&format!("[switch.pfc]\nenabled = true\nquanta = {quanta}\n"));
        plan(&text, &Changes::default()).map(|plan| plan.warnings)
    };
    // A pause frame with its gap is 84 bytes, 2 quanta are refreshed after 64; a data frame with its gap is 1,106.
    assert!(warnings(2).expect_err("nothing else would be sent").contains("give 3 to 65535"));
    for quanta in [3, 34] {
        let [warning] = &warnings(quanta).expect("a study may want it")[..] else { panic!("one warning") };
        assert!(warning.contains("switch.pfc.quanta") && warning.contains("give at least 35"), "{warning}");
    }
    assert_eq!(warnings(35).expect("it is enough"), [""; 0]);
}

#[test]
fn flows_of_schedules_can_be_traced() {
    let text = BASE.replace("[workload.poisson]\nload = 0.7\nsizes = \"cdf:irn-heavy-tailed\"\n", "");
    let text = format!("{text}[workload.collective]\noperation = 'ring-all-reduce'\nsize = '1MB'\nrepeat = 2\n");
    let plan = plan(&text, &Changes::default()).expect("a plan");
    let find = |id: u64| plan.series[0].find_flow(1, FlowKey { workload: 0, id });
    // Twice 2 x 15 steps of 16 hosts.
    assert_eq!((find(0), find(959)), (Ok(()), Ok(())));
    assert!(find(960).expect_err("there is none").contains("has flows 0 to 959 of workload 0 (collective)"));
}

#[test]
fn the_default_case_resolves_to_the_papers_numbers() {
    let plan = Plan::built_in(&Changes::default()).expect("the built-in study is right");
    assert_eq!(plan.seeds, [1, 2, 3, 4, 5]);
    assert_eq!(plan.points().count(), 20);
    assert_eq!(plan.warnings, [""; 0]);
    let names: Vec<&str> = plan.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["irn", "irn+pfc", "roce+pfc", "roce"]);
    assert_eq!(plan.in_one_line(), "54 hosts, fat-tree k = 6, 40 Gb/s, poisson at 70 % load");

    for series in &plan.series {
        let network = &series.network;
        assert_eq!(network.base_rtt(), Duration::from_us(24), "6 links of 2 us, both ways");
        assert_eq!(network.bdp().bytes, Bytes::from_kb(120));
        let BufferConfig::InputQueued(buffer) = series.scenario.switch.buffer else { panic!("input-queued") };
        assert_eq!(buffer.per_port, Setting::Value(Bytes::from_kb(240)));
        // 20 KB of link, three frames of 1106 B, a pause frame of 84 B.
        assert_eq!(series.scenario.switch.pfc.headroom, Setting::Value(Bytes::new(20_000 + 3 * 1_106 + 84)));
        assert_eq!(series.scenario.switch.pfc.xon_gap, Setting::Value(Bytes::new(2 * 1_106)));
        assert_eq!(series.flows, Some(12_500));
    }

    // 24 us and six inputs of 240 KB at 40 Gb/s.
    let rto_high = Duration::from_us(312);
    let recovery = |index: usize| plan.series[index].scenario.transport.recovery;
    let RecoveryConfig::Irn(irn) = recovery(0) else { panic!("irn") };
    assert_eq!(irn.rto_high, Setting::Value(rto_high));
    assert_eq!(irn.bdp_cap, Setting::Value(111), "120,000 B in frames of 1086 B, rounded up");
    let RecoveryConfig::GoBackN(with_pfc) = recovery(2) else { panic!("go-back-n") };
    assert_eq!((with_pfc.rto, with_pfc.acks), (Setting::Off, Acks::None));
    let RecoveryConfig::GoBackN(without) = recovery(3) else { panic!("go-back-n") };
    assert_eq!((without.rto, without.acks), (Setting::Value(rto_high), Acks::PerPacket));
}

#[test]
fn timeouts_of_tcp_count_what_waits_in_eqifs() {
    let min_rto = |limit: &str| {
        let changes = Changes { series: Some("tcp+eqds".into()), ..with_sets(&[limit]) };
        let plan = plan(&extended(""), &changes).expect("it is right");
        let tcp = plan.series[0].scenario.transport.tcp.expect("it is TCP");
        tcp.min_rto.resolve(|| None).expect("it is resolved")
    };
    let of = |limit: u32| min_rto(&format!("transport.eqds.eqif.tcp.limit={limit}"));
    // Packets of 1094 B at 40 Gb/s, in each of as many EQIFs as a switch of k = 4 has links.
    assert_eq!(of(101) - of(1), Duration::from_ps(100 * 4 * 1_094 * 200));
}

#[test]
fn timeouts_have_an_end_where_buffers_have_none() {
    let rto_high = |series: &str, sets: &[&str]| {
        let plan =
            plan(&extended(""), &Changes { series: Some(series.into()), ..with_sets(sets) }).expect("it is right");
        match plan.series[0].scenario.transport.recovery {
            RecoveryConfig::Irn(irn) => irn.rto_high.resolve(|| None).expect("a time"),
            _ => panic!("it is IRN"),
        }
    };
    // 64 MB at 40 Gb/s, and the empty network's round trip.
    let endless = rto_high("irn", &["switch.buffer.input-queued.per-port='off'"]);
    assert_eq!(endless, Duration::from_us(12_800 + 24));
    assert_eq!(rto_high("irn", &["switch.buffer.fair-queued.per-port='off'"]), endless);
}

#[test]
fn dctcp_marks_at_a_seventh_of_the_product_of_the_link_that_marks() {
    let text = "title = 'test'\n[topology.dumbbell]\nleft = 1\nright = 1\n\
        host-link = { rate = '100Gbps', delay = '10us' }\nbottleneck = { rate = '10Gbps', delay = '10us' }\n\
        [workload.closed-loop]\nclients = ['h0']\nservers = ['h1']\nflows-per-client = 1\nsizes = { fixed = '1MB' }\n";
    for series in ["irn+dctcp", "tcp+dctcp"] {
        let plan = plan(text, &Changes { series: Some(series.into()), ..Changes::default() }).expect("it is right");
        let ecn = &plan.series[0].scenario.switch.ecn;
        let (k, rate) = (ecn.k_min.resolve(|| None).unwrap(), ecn.at_rate.resolve(|| None).unwrap());
        // 60 us and some serialisation at 10 Gb/s, 75 KB, by seven.
        let at_bottleneck = k.get() as f64 * 10e9 / rate.as_bps() as f64;
        assert!((10_700.0..11_500.0).contains(&at_bottleneck), "{series}: {at_bottleneck} B");
    }
}

/// Two hosts on one link, 0.1 s apart.
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

#[test]
fn buffers_of_long_fast_links_last_while_a_pause_is_lifted() {
    // Two bandwidth-delay products at 25 Gb/s are 70 KB; a round trip of the link at 100 Gb/s carries 125 KB.
    let text = "title = 't'\n[topology.chain]\nswitches = 2\nhosts-per-end = 2\nhost-link = { rate = '25Gbps', delay = \
                '600ns' }\nswitch-link = { rate = '100Gbps', delay = '5us' }\n[workload.permutation]\nsize = '1MB'\n";
    let plan = plan(text, &Changes::default()).expect("a plan");
    let BufferConfig::InputQueued(buffer) = plan.series[0].scenario.switch.buffer else { panic!("input-queued") };
    let (headroom, xon_gap) = (125_000 + 3 * 1_106 + 84, 2 * 1_106);
    assert_eq!(buffer.per_port, Setting::Value(Bytes::new(2 * headroom + xon_gap)));
}

#[test]
fn several_workloads_share_the_flows_and_the_time_of_a_run() {
    let text = "title = 't'\nstop = { flows = 600 }\n[topology.dumbbell]\nleft = 2\nright = 2\nhost-link = { rate = \
                '25Gbps', delay = '600ns' }\nbottleneck = { rate = '100Gbps', delay = '1us' }\n[[workload.poisson]]\n\
                load = 0.1\nsizes = { fixed = '100KB' }\n[[workload.poisson]]\nload = 0.3\nsizes = { fixed = '1KB' }\n";
    let durations = |sets: &[&str]| {
        let facts = WorkloadFacts::new(&plan(text, &with_sets(sets)).expect("a plan"));
        facts.workloads.iter().map(|source| source.duration_us.expect("it ends")).collect::<Vec<f64>>()
    };
    // 12,500 and 3,750,000 flows in a second.
    let together = 600.0 / 3_762_500.0 * 1e6;
    assert!(durations(&[]).iter().all(|us| (us - together).abs() < 1e-6), "{:?}", durations(&[]));
    assert_eq!(durations(&["stop.time=100us"]), [100.0, 100.0]);
}

#[test]
fn where_no_switch_can_pause_pfc_needs_no_headroom() {
    let changes = Changes { series: Some("roce+pfc,irn+pfc".into()), ..Changes::default() };
    let plan = plan(NO_SWITCH, &changes).expect("nothing needs headroom");
    assert_eq!(plan.warnings, [""; 0]);
}

#[test]
fn timeouts_are_longer_than_the_round_trip_where_nothing_waits_in_switches() {
    let changes = Changes { series: Some("irn,roce,melo".into()), ..Changes::default() };
    let plan = plan(NO_SWITCH, &changes).expect("it is right");
    for series in &plan.series {
        let rto = match series.scenario.transport.recovery {
            RecoveryConfig::Irn(irn) => irn.rto_high,
            RecoveryConfig::GoBackN(go_back_n) => go_back_n.rto,
            RecoveryConfig::Melo(melo) => melo.rto,
        };
        // Two frames of 1106 B, for the answer waits behind one, and an acknowledgement of 86 B.
        let frames = Duration::from_ns(8 * (2 * 1_106 + 86));
        assert_eq!(rto, Setting::Value(Duration::from_ms(200) + frames), "{}", series.name);
    }
}

#[test]
fn acknowledgements_that_wait_behind_data_are_warned_about() {
    let warnings = |series: &str, class: u8| {
        let sets = vec![format!("nic.ack-class={class}")];
        let changes = Changes { series: Some(series.into()), sets, ..Changes::default() };
        plan(NO_SWITCH, &changes).expect("a study may want it").warnings
    };
    for series in ["irn", "melo", "roce"] {
        let found = warnings(series, 1);
        let found = found.iter().filter(|warning| {
            warning.contains("nic.ack-class: acknowledgements (priority 1) wait behind data (priority 3)")
        });
        assert_eq!(found.count(), 1, "{series}");
    }
    let silent = |series, class| assert!(!warnings(series, class).iter().any(|warning| warning.contains("ack-class")));
    silent("irn", 3);
    silent("irn", 6);
    // Nothing is acknowledged, or somewhere else.
    silent("roce+pfc", 1);
    silent("tcp", 1);
}

#[test]
fn presets_say_whether_there_is_pfc() {
    let series = "[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce+pfc'\n[[series]]\nname = 'plain'\n[[series]]\n\
                  name = 'meant'\npreset = 'irn'\nset.'switch.pfc.enabled' = false\n";
    let text = extended(&format!("[switch.pfc]\nenabled = true\n{series}"));
    let found = plan(&text, &Changes::default()).expect("a study may want it").warnings;
    let [warning] = &found[..] else { panic!("one warning: {found:?}") };
    assert!(
        warning.starts_with("study.toml:10:1: switch.pfc.enabled: series \"irn\" has no PFC in spite of this"),
        "{warning}"
    );
}

#[test]
fn a_series_whose_name_is_wrong_about_pfc_is_named() {
    let warnings = |series: &str, set: &str| {
        let changes = Changes { series: Some(series.into()), ..with_sets(&[set]) };
        plan(&extended(""), &changes).expect("a study may want it").warnings
    };
    let [warning] = &warnings("irn,roce+pfc", "switch.pfc.enabled=false")[..] else { panic!("one warning") };
    let said = "switch.pfc.enabled=false: series \"roce+pfc\" runs without PFC because of this";
    assert!(warning.replace("switch.pfc.enabled: ", "").contains(said), "{warning}");
    let [warning] = &warnings("roce,irn+pfc", "switch.pfc.enabled=true")[..] else { panic!("one warning") };
    assert!(warning.contains("series \"roce\" runs with PFC because of this"), "{warning}");
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
fn names_with_control_characters_are_refused() {
    let error = plan(&extended("[[series]]\nname = \"a\\u0007b\"\npreset = 'irn'\n"), &Changes::default());
    let error = error.expect_err("refused").to_string();
    assert!(error.contains("has a control character"), "{error}");
}

#[test]
fn netrt_is_of_no_use_to_those_whose_packets_it_does_not_know() {
    let sets = ["switch.netrt.enabled=true"];
    let changes = Changes { series: Some("irn,tcp,eqds".into()), ..with_sets(&sets) };
    let found = plan(&extended(""), &changes).expect("a study may want it").warnings;
    for (series, whose) in [("tcp", "TCP's"), ("eqds", "EQDS's")] {
        let text = format!("NetRT knows RDMA's packets only: {whose} pass as if it were off");
        assert_eq!(found.iter().filter(|warning| warning.contains(&text)).count(), 1, "{series}: {found:?}");
    }
}

#[test]
fn what_netrt_can_never_have_of_a_buffer_is_warned_about() {
    let warnings = |sets: &[&str]| {
        let changes = Changes { series: Some("netrt".into()), ..with_sets(sets) };
        plan(&extended(""), &changes).expect("it runs").warnings
    };
    let room = "switch.buffer.input-queued.per-port='100KB'";
    let found = warnings(&[room, "switch.netrt.pool='200KB'"]);
    assert!(found.iter().any(|warning| warning.contains("that much of 200KB at most has an effect")), "{found:?}");
    assert_eq!(warnings(&[room, "switch.netrt.pool='90KB'", "switch.netrt.buffer='100KB'"]), [""; 0]);
}

#[test]
fn tcp_beside_tcp_is_said_to_be_one() {
    let text = extended("[beside]\nworkloads = ['poisson']\nclass = 1\ntcp = { min-rto = '1ms' }\n");
    let warnings = |series: &str| {
        let changes = Changes { series: Some(series.into()), ..Changes::default() };
        plan(&text, &changes).expect("the other series want it").warnings
    };
    assert_eq!(warnings("irn"), [""; 0]);
    let [warning] = &warnings("irn,tcp")[..] else { panic!("one warning") };
    let parts =
        ["study.toml:9", "beside: in series \"tcp\"", "priority 1 (beside.class)", "beside.tcp counts for nothing"];
    assert!(parts.iter().all(|part| warning.contains(part)), "{warning}");
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
fn queue_pairs_that_are_less_patient_than_a_round_trip_are_warned_about() {
    let warnings = |timeout: &str| {
        let text = BASE.replace("[workload.poisson]\nload = 0.7\nsizes = \"cdf:irn-heavy-tailed\"\n", "")
            + &format!("[workload.verbs]\nsizes = {{ fixed = '4KB' }}\ntimeout = '{timeout}'\nmessages = 10\n");
        plan(&text, &Changes::default()).expect("a study may want it").warnings
    };
    let [warning] = &warnings("10us")[..] else { panic!("one warning: {:?}", warnings("10us")) };
    assert!(warning.contains("workload.verbs.timeout: 16384ns is less than the longest round trip"), "{warning}");
    assert_eq!(warnings("100us"), [""; 0]);
}

#[test]
fn go_back_n_without_timeouts_is_warned_about_where_packets_overtake_each_other() {
    let warnings = |text: &str, series: &str, sets: &[&str]| {
        plan(text, &Changes { series: Some(series.into()), ..with_sets(sets) }).expect("a study may want it").warnings
    };
    let text = extended("");
    for series in ["roce+pfc+flowlet", "roce+pfc+spray", "roce+pfc+drill"] {
        let found = warnings(&text, &format!("irn+pfc+spray,roce+pfc,roce+spray,{series}"), &[]);
        let [warning] = &found[..] else { panic!("one warning: {found:?}") };
        let text_of = format!("transport.recovery.go-back-n.rto: {series} has no timeout");
        assert!(warning.contains(&text_of), "{warning}");
        let go_back_n = |what: &str| format!("transport.recovery.go-back-n.{what}");
        let remedy = [go_back_n("rto=1ms"), go_back_n("acks=per-packet")];
        assert_eq!(warnings(&text, series, &remedy.each_ref().map(|set| &**set)), [""; 0]);
        assert_eq!(warnings(&text, series, &[&go_back_n("nack=every-packet")]), [""; 0]);
        // One way leaves no choice.
        assert_eq!(warnings(NO_SWITCH, series, &[]), [""; 0]);
    }
}

#[test]
fn the_resolved_scenario_resolves_to_itself() {
    let irn_and_more = format!(
        "stop = {{ time = '1ms' }}\n{BASE}\
         [[loss]]\nlink = 'all'\nmodel.random.rate = '0.1%'\n\
         [[failures]]\nlink = 'core0'\nat = '100us'\n\
         [[series]]\npreset = 'irn'\n\
         [[series]]\nname = 'leaf'\nset.loss = []\n\
         set.topology = {{ leaf-spine = {{ leaves = 2, spines = 2, hosts-per-leaf = 2, \
         host-link = {{ rate = '10Gbps', delay = '1us' }}, spine-link = {{ rate = '40Gbps', delay = '1us' }} }} }}\n\
         set.failures = []\n"
    );
    for text in [BUILT_IN, &irn_and_more] {
        let once = plan(text, &Changes::default()).expect("a plan");
        let written = once.to_toml();
        let twice = plan(&written, &Changes::default()).expect("what was written can be read");
        assert_eq!(twice.to_toml(), written);
        assert_eq!(twice.fingerprint(), once.fingerprint());
        for (a, b) in once.series.iter().zip(&twice.series) {
            assert_eq!((&a.name, &a.scenario.transport), (&b.name, &b.scenario.transport));
            assert_eq!((&a.scenario.switch, &a.scenario.loss), (&b.scenario.switch, &b.scenario.loss));
            assert_eq!(a.scenario.topology, b.scenario.topology);
        }
    }
}

#[test]
fn series_replace_and_never_merge() {
    let text = format!(
        "stop = {{ flows = 10 }}\n{BASE}[transport.recovery.irn]\nrto-low = '200us'\n\
         [[series]]\npreset = 'irn'\n\
         [[series]]\nname = 'fresh'\nset.'transport.recovery' = {{ irn = {{}} }}\n\
         [[series]]\nname = 'slow'\nset.'transport.recovery.irn.rto-low' = '300us'\n"
    );
    let plan = plan(&text, &Changes::default()).expect("a plan");
    let rto_low = |index: usize| match plan.series[index].scenario.transport.recovery {
        RecoveryConfig::Irn(irn) => irn.rto_low,
        other => panic!("{}", other.name()),
    };
    assert_eq!(rto_low(0), Setting::Value(Duration::from_us(200)), "a preset keeps the settings of its own algorithm");
    assert_eq!(rto_low(1), Setting::Value(Duration::from_us(100)), "a replaced table has its defaults");
    assert_eq!(rto_low(2), Setting::Value(Duration::from_us(300)));
}

#[test]
fn windows_of_short_links_count_serialisation() {
    // The paper's case: 120 KB of propagation. An idle path holds 115 packets: 12 x 2 us, 6 packets of 221.2 ns, 6
    // answers.
    let paper = BASE.replace("k = 4", "k = 6");
    let short = paper.replace("2us", "100ns");
    let round_trip = Duration::from_ns(12 * 100 + 6 * 221);
    let behind_tunnels = 3;
    for (text, series, expected) in [
        (&paper, "irn", 111),
        (&short, "irn", Rate::from_gbps(40).amount_in(round_trip).get() / 1_106 + 1),
        (&paper, "irn+eqds", behind_tunnels * 120_000 / 1_086 + 1),
        // Frames are 16 B longer, with HPCC another 42.
        (&paper, "irn+overheads", 120_000 / 1_102 + 1),
        (&paper, "irn+overheads+hpcc", 120_000 / 1_144 + 1),
    ] {
        let plan =
            plan(text, &Changes { series: Some(series.into()), ..with_sets(&["stop.flows=10"]) }).expect("a plan");
        let RecoveryConfig::Irn(irn) = plan.series[0].transport.recovery else { panic!("{series}") };
        assert_eq!(irn.bdp_cap, Setting::Value(expected as u32), "{series}");
    }
}

/// A receiver that is slower and farther away than all others.
#[test]
fn windows_and_targets_reach_slower_receivers() {
    let text = r#"title = "far"
stop = { flows = 10 }
[topology.explicit]
hosts = ["a", "b", "c"]
switches = ["s"]
links = [
    { between = ["a", "s"], rate = "40Gbps", delay = "1us" },
    { between = ["b", "s"], rate = "40Gbps", delay = "1us" },
    { between = ["c", "s"], rate = "25Gbps", delay = "100us" },
]
[workload.poisson]
load = 0.01
sizes = "cdf:web-search"
"#;
    let all = "irn+swift,irn+hpcc,irn+aimd,irn+dctcp,ndp,eqds";
    let plan = plan(text, &Changes { series: Some(all.into()), ..Changes::default() }).expect("a plan");
    let value = |transport: &TransportConfig, key: &str| -> String {
        let table = toml::Table::try_from(transport).expect("a table").into();
        let found = key.split('.').fold(&table, |table: &toml::Value, key| &table[key]);
        found.as_str().map_or_else(|| found.to_string(), str::to_owned)
    };
    let (rtt, held) = (Duration::from_us(202), Rate::from_gbps(25).amount_in(Duration::from_us(202)));
    let bytes = |text: &str| text.parse::<Bytes>().expect("a size");
    let time = |text: &str| text.parse::<Duration>().expect("a time");
    for series in &plan.series {
        let transport = &series.transport;
        match &*series.name {
            "irn+swift" => {
                assert!(time(&value(transport, "congestion.swift.base-target")) > rtt);
                assert!(bytes(&value(transport, "congestion.swift.initial-window")) > held);
            }
            "irn+hpcc" => {
                let time = time(&value(transport, "congestion.hpcc.base-rtt"));
                assert!(time < rtt && Rate::from_gbps(40).amount_in(time) > held);
            }
            "irn+aimd" => assert!(bytes(&value(transport, "congestion.aimd.window.initial")) > held),
            "irn+dctcp" => assert!(bytes(&value(transport, "congestion.dctcp.window.initial")) > held),
            "ndp" => {
                let packets: u64 = value(transport, "ndp.initial-window").parse().expect("a number");
                assert!(packets > held.pieces(Bytes::new(1_106)));
            }
            "eqds" => assert!(bytes(&value(transport, "eqds.window")) > held),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn each_host_has_what_fits_its_link() {
    let text = r#"title = "unlike"
stop = { flows = 10 }
[topology.explicit]
hosts = ["slow", "fast", "other"]
switches = ["s"]
links = [
    { between = ["slow", "s"], rate = "25Gbps", delay = "2us" },
    { between = ["fast", "s"], rate = "100Gbps", delay = "2us" },
    { between = ["other", "s"], rate = "100Gbps", delay = "2us" },
]
[workload.poisson]
load = 0.1
sizes = "cdf:web-search"
"#;
    let all = "irn,irn+hpcc,irn+swift,roce+dcqcn,roce+timely,melo+aimd,netrt,tcp,tcp+dctcp,mptcp,ndp,eqds,tcp+eqds";
    let once = plan(text, &Changes { series: Some(all.into()), ..Changes::default() }).expect("a plan");
    let irn = &once.series[0];
    assert_eq!((irn.network.line_rate(), irn.network.bdp().bytes), (Rate::from_gbps(100), Bytes::from_kb(100)));
    // 100 KB and 25 KB of 1,086 bytes each, and the gap.
    let cap = |transport: &TransportConfig| match transport.recovery {
        RecoveryConfig::Irn(irn) => irn.bdp_cap,
        other => panic!("{}", other.name()),
    };
    assert_eq!(cap(&irn.transport), Setting::Value(93));
    let [(rate, slow)] = &irn.transports[..] else { panic!("{:?}", irn.transports) };
    assert_eq!((*rate, cap(slow)), (Rate::from_gbps(25), Setting::Value(24)));
    assert_eq!(cap(&irn.scenario.transport), Setting::Auto);
    // What is said is for all.
    let said = plan(text, &with_sets(&["transport.recovery.irn.bdp-cap=50"])).expect("a plan");
    assert_eq!((cap(&said.series[0].transport), said.series[0].transports.len()), (Setting::Value(50), 0));

    let twice = plan(&once.to_toml(), &Changes::default()).expect("what was written can be read");
    assert_eq!(twice.to_toml(), once.to_toml());
    for (a, b) in once.series.iter().zip(&twice.series) {
        assert_eq!((&a.name, a.transport, &a.transports), (&b.name, b.transport, &b.transports));
        assert_eq!(a.digest(), b.digest());
    }
}

#[test]
fn networks_that_hold_more_than_can_be_told_apart_are_pointed_out() {
    let warnings = |delay: &str| {
        let text = extended("").replace("2us", delay).replace("40Gbps", "100Gbps");
        let changes = Changes { series: Some("irn+pfc,melo,netrt,eqds".into()), ..Changes::default() };
        plan(&text, &changes).expect("a plan").warnings
    };
    assert_eq!(warnings("1us"), [""; 0]);
    let far = warnings("100us");
    let keys = ["transport.recovery.melo.pool-bits", "switch.netrt.enabled", "transport.eqds.reorder"];
    assert!(far.len() == 3 && far.iter().zip(keys).all(|(warning, key)| warning.contains(key)), "{far:?}");
}

#[test]
fn tunnels_between_slow_hosts_need_no_more_than_these_can_send() {
    let warnings = |far: &str| {
        let text = format!(
            "title = 'test'\nstop = {{ flows = 10 }}\n[topology.explicit]\nhosts = ['a', 'b', 'c', 'd']\nswitches = ['s']\nlinks = [\n\
             {{ between = ['a', 's'], rate = '400Gbps', delay = '1us' }}, {{ between = ['b', 's'], rate = '400Gbps', delay = '1us' }},\n\
             {{ between = ['c', 's'], rate = '{far}', delay = '50us' }}, {{ between = ['d', 's'], rate = '{far}', delay = '50us' }}]\n\
             [workload.poisson]\nload = 0.01\nsizes = 'cdf:irn-heavy-tailed'\n",
        );
        let changes = Changes { series: Some("eqds".into()), ..Changes::default() };
        plan(&text, &changes).expect("a plan").warnings
    };
    assert_eq!(warnings("10Gbps"), [""; 0]);
    let [fast] = &warnings("400Gbps")[..] else { panic!("one warning") };
    assert!(fast.contains("transport.eqds.reorder") && fast.contains("a path holds up to 9"), "{fast}");
}

#[test]
fn acknowledgements_that_windows_are_too_small_for_are_pointed_out() {
    let warnings = |ack_after: &str| {
        let ack_after = format!("transport.eqds.ack-after={ack_after}");
        let changes = Changes {
            series: Some("eqds".into()),
            ..with_sets(&["transport.eqds.reorder=8", "transport.eqds.window=8KB", &ack_after])
        };
        plan(&extended(""), &changes).expect("a plan").warnings
    };
    let of = |warnings: &[String]| warnings.iter().filter(|warning| warning.contains("eqds.ack-after")).count();
    assert_eq!((of(&warnings("8KB")), of(&warnings("10KB"))), (0, 1), "{:?}", warnings("10KB"));
}

#[test]
fn tcp_beside_rdma_keeps_its_tunnels() {
    let eqif_of = |more: &str| {
        let text = extended(&format!("[transport.eqds.eqif.tcp]\nlimit = 2\n{more}[[series]]\npreset = 'roce+eqds'\n"));
        let plan = plan(&text, &Changes::default()).expect("a plan");
        let tunnels = plan.series[0].scenario.transport.eqds.expect("tunnels");
        tunnels.eqif.tcp.map(|eqif| eqif.limit())
    };
    assert_eq!(eqif_of("[beside]\nworkloads = ['poisson']\n"), Some(2));
    // Where there is none, it has nothing to carry.
    assert_eq!(eqif_of(""), None);
}

#[test]
fn a_scheme_by_itself_is_a_series() {
    let list = "['irn', { preset = 'roce+pfc', name = 'lossless' }, 'tcp']";
    let long = extended(
        "[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce+pfc'\nname = 'lossless'\n[[series]]\npreset = 'tcp'\n",
    );
    let of = |text: &str| {
        let plan = plan(text, &Changes::default()).expect("a plan");
        plan.series.iter().map(|series| (series.name.clone(), series.digest())).collect::<Vec<_>>()
    };
    assert_eq!(of(&format!("series = {list}\n{}", extended(""))), of(&long));
    let refused = |list: &str, what: &str| {
        let error = wrong(&format!("series = {list}\n{BASE}"));
        assert!(error.contains(what), "{error}");
    };
    refused("['irn', 'irn+pcf']", "study.toml:1:18: unknown modifier \"pcf\"");
    refused("['irn', 3]", "a scheme, as in \"irn\", or a table");
    refused("[{ presets = 'irn' }]", "unknown key \"presets\"");
    refused("'irn'", "expected a list");
}

#[test]
fn every_series_runs_in_every_case() {
    let text = extended(
        "[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce+pfc'\n[[series]]\npreset = 'irn+pfc'\ncase = 'calm'\n\
         [[case]]\nname = 'calm'\nset.'workload.poisson.load' = 0.3\n\
         [[case]]\nname = 'patient'\nset.'transport.recovery.irn.rto-low' = '300us'\n",
    );
    let once = plan(&text, &Changes::default()).expect("a plan");
    let names: Vec<&str> = once.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["calm: irn", "calm: roce+pfc", "calm: irn+pfc", "patient: irn", "patient: roce+pfc"]);
    assert_eq!(once.series[0].workloads[0].load, Some(0.3));
    let RecoveryConfig::Irn(irn) = once.series[3].scenario.transport.recovery else { panic!("IRN") };
    assert_eq!(irn.rto_low, Setting::Value(Duration::from_us(300)));
    // Equal runs are known as such, whatever they are called; others are not.
    let digests: Vec<u64> = once.series.iter().map(crate::PlannedSeries::digest).collect();
    let alone = plan(&extended("[[series]]\npreset = 'roce+pfc'\n"), &Changes::default()).expect("a plan");
    assert_eq!(digests[4], alone.series[0].digest());
    assert!(digests.iter().enumerate().all(|(n, digest)| !digests[..n].contains(digest)));

    let twice = Plan::from_text("resolved.toml", &once.to_toml(), Path::new(""), &Changes::default()).expect("a plan");
    assert_eq!(twice.to_toml(), once.to_toml());
    assert!(twice.series.iter().zip(&once.series).all(|(a, b)| (&a.name, a.digest()) == (&b.name, b.digest())));
}

#[test]
fn one_line_about_a_study_speaks_of_all_its_cases() {
    let text = extended(
        "[[series]]\npreset = 'irn'\n[[case]]\nname = 'b'\nset.'workload.poisson.load' = 0.3\n\
         [[case]]\nname = 'a'\nset.'topology.fat-tree.k' = 6\n\
         [[case]]\nname = 'c'\nset.'topology.fat-tree.link.rate' = '10Gbps'\n",
    );
    let line = plan(&text, &Changes::default()).expect("a plan").in_one_line();
    let parts = "16 to 54 hosts, fat-tree k = 4 or fat-tree k = 6, 10 to 40 Gb/s, poisson at 30 to 70 % load";
    assert_eq!(line, parts);
}

#[test]
fn operations_of_one_workload_are_one_in_titles_and_told_apart_in_what_is_shown() {
    let text = extended("[[workload.verbs]]\nsizes = { fixed = '4KB' }\noperations = ['write', 'read', 'send']\n");
    let plan = plan(&text, &Changes::default()).expect("a plan");
    assert!(plan.in_one_line().ends_with("poisson at 70 % load, verbs"), "{}", plan.in_one_line());
    let names: Vec<String> = crate::WorkloadFacts::new(&plan).workloads.into_iter().map(|source| source.name).collect();
    assert_eq!(names, ["poisson", "verbs.write", "verbs.read", "verbs.send"]);
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
fn sets_reach_the_series_that_they_fit() {
    let changes = with_sets(&["transport.recovery.irn.rto-low=50us", "workload.poisson.load=0.3", "seeds=[7]"]);
    let plan = Plan::built_in(&changes).expect("a plan");
    assert_eq!(plan.seeds, [7]);
    for series in &plan.series {
        assert_eq!(series.workloads[0].load, Some(0.3));
        if let RecoveryConfig::Irn(irn) = series.scenario.transport.recovery {
            assert_eq!(irn.rto_low, Setting::Value(Duration::from_us(50)));
        }
    }
}

#[test]
fn sets_of_stacks_reach_the_series_that_have_them() {
    let names = "eqds,roce,roce+eqds,irn,tcp,tcp+eqds,melo";
    let reached = |set: &str| -> Vec<String> {
        let (plain, changed) = (variants(BASE, &[], Some(names)), variants(BASE, &[set], Some(names)));
        let (plain, changed) = (plain.expect("schemes"), changed.unwrap_or_else(|error| panic!("{set}: {error}")));
        let pairs = plain.iter().zip(&changed);
        pairs.filter(|(plain, changed)| plain.scenario != changed.scenario).map(|(of, _)| of.name.clone()).collect()
    };
    assert_eq!(reached("transport.eqds.eqif.rdma.engine-rate=off"), ["roce+eqds"]);
    assert_eq!(reached("transport.eqds.eqif.tcp.share.weight=2"), ["tcp+eqds"]);
    assert_eq!(reached("transport.eqds.eqif.encapsulation=44B"), ["roce+eqds", "tcp+eqds"]);
    assert_eq!(reached("transport.eqds.eqif.native.weight=2"), ["eqds", "roce+eqds", "tcp+eqds"]);
    assert_eq!(reached("transport.recovery.melo.pool-bits=512"), ["melo"]);
    assert_eq!(reached("transport.recovery.go-back-n.rto=1ms"), ["roce", "roce+eqds"]);
    assert_eq!(reached("transport.tcp.sack=false"), ["tcp", "tcp+eqds"]);
    let idle = |names: &str| variants(BASE, &["transport.eqds.eqif.rdma.engine-rate=off"], Some(names)).unwrap_err();
    assert!(idle("irn,roce").contains("transport is \"recovery\" here, not \"eqds\""), "{}", idle("irn,roce"));
    let tcp = idle("tcp+eqds");
    assert!(tcp.contains("nothing that goes there is \"rdma\": give a series that is, as \"roce+eqds\""), "{tcp}");
    // RDMA in tunnels, and TCP beside it.
    let both = BASE.to_owned() + "[beside]\nworkloads = ['poisson']\n";
    let limit = variants(&both, &["transport.eqds.eqif.tcp.limit=50"], Some("roce+eqds"));
    assert!(limit.is_ok(), "{limit:?}");
}

#[test]
fn sets_of_tunnels_reach_the_series_that_have_them() {
    let sets = with_sets(&["transport.eqds.paths=4"]);
    let planned = plan(&extended(""), &Changes { series: Some("irn,eqds".into()), ..sets.clone() }).expect("a plan");
    let paths = |index: usize| planned.series[index].transport.eqds.map(|eqds| eqds.paths);
    assert_eq!([paths(0), paths(1)], [None, Some(4)]);
    let none = plan(&extended(""), &Changes { series: Some("irn".into()), ..sets }).expect_err("no series has them");
    assert!(none.to_string().contains("transport is \"recovery\" here, not \"eqds\""), "{none}");
}

#[test]
fn a_scheme_is_the_same_whatever_the_text_is_about() {
    for scheme in ["eqds", "ndp"] {
        let text = extended(&format!("[transport.{scheme}]\n"));
        let changes = Changes { series: Some(scheme.into()), ..Changes::default() };
        let planned = plan(&text, &changes).expect("a plan");
        assert!(matches!(planned.series[0].scenario.switch.buffer, BufferConfig::Trimming(_)), "{scheme}");
    }
}

#[test]
fn the_command_line_chooses_series_and_seeds() {
    let changes = Changes {
        series: Some("roce, irn+fixed+pfc".to_owned()),
        seeds: Some(Seeds::List(vec![3, 9])),
        ..Changes::default()
    };
    let plan = Plan::built_in(&changes).expect("a plan");
    let names: Vec<&str> = plan.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["roce", "irn+fixed+pfc"]);
    assert_eq!(plan.series[1].scenario.transport.congestion.name(), "fixed");
    let [warning] = &plan.warnings[..] else { panic!("one: {:?}", plan.warnings) };
    assert!(warning.contains("fixed.window") && warning.contains("nothing is limited"), "{warning}");
    let points: Vec<Point> = plan.points().collect();
    assert_eq!(points[1], Point { series: 0, seed: 9 });
    assert_eq!(plan.config(points[1]).seed, 9);
}

#[test]
fn smoke_applies_only_when_wanted() {
    let text = format!("stop = {{ flows = 1000 }}\n{BASE}[smoke]\nseeds = 2\n\"stop.flows\" = 10\n");
    let whole = plan(&text, &Changes::default()).expect("a plan");
    assert_eq!((whole.seeds.len(), whole.series[0].flows), (5, Some(1000)));
    let quick = plan(&text, &Changes { smoke: true, ..Changes::default() }).expect("a plan");
    assert_eq!((quick.seeds.len(), quick.series[0].flows), (2, Some(10)));
    assert!(variants(&text.replace("stop.flows", "stop.flow"), &[], None).is_err(), "even when it is not wanted");
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

#[test]
fn a_dynamic_timeout_begins_within_its_own_limits() {
    let rto_high = |value: &str| format!("transport.recovery.irn.rto-high={value}");
    let with = |high: &str| {
        let changes =
            Changes { series: Some("irn+dynamic-rto".into()), sets: vec![rto_high(high)], ..Changes::default() };
        let planned = plan(&extended(""), &changes).expect("a plan");
        let RecoveryConfig::Irn(irn) = planned.series[0].transport.recovery else { panic!("it is IRN") };
        let Rto::Dynamic(dynamic) = irn.rto else { panic!("it is dynamic") };
        (dynamic.initial, dynamic.max)
    };
    let ms = |ms: u64| Duration::from_us(ms * 1_000);
    assert_eq!(with("5ms"), (Setting::Value(ms(5)), ms(10)));
    assert_eq!(with("20ms"), (Setting::Value(ms(10)), ms(10)));
}

#[test]
fn a_name_chosen_means_the_series_of_all_its_cases() {
    let cases = "[[case]]\nname = 'low'\nset.'workload.poisson.load' = 0.2\n[[case]]\nname = 'high'\n";
    let text = extended(&format!("[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce'\n{cases}"));
    let resolved = plan(&text, &Changes::default()).expect("a plan").to_toml();
    let changes = Changes { series: Some("irn".into()), ..Changes::default() };
    for text in [&text, &resolved] {
        let plan = plan(text, &changes).expect("a plan");
        let names: Vec<&str> = plan.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["low: irn", "high: irn"]);
    }
    let none = Changes { series: Some(",".into()), ..Changes::default() };
    let refused = plan(&text, &none).expect_err("nothing is named");
    assert_eq!(refused, "--series ,: no series to run; give at least one");
}

#[test]
fn a_scenario_without_series_is_its_own() {
    let plan = plan(&format!("stop = {{ flows = 10 }}\n{BASE}[switch.pfc]\nenabled = true\n"), &Changes::default());
    assert_eq!(plan.expect("a plan").series[0].name, "irn+pfc");
}

#[test]
fn the_committed_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/scenario.schema.json");
    let current = serde_json::to_string_pretty(&schema()).expect("JSON") + "\n";
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        std::fs::write(&path, &current).expect("the schema is writable");
    }
    let committed = std::fs::read_to_string(&path).expect("the schema is committed");
    assert!(committed == current, "schema/scenario.schema.json is stale: run this test with SELVEDGE_BLESS=1");
}

#[test]
fn every_place_of_a_scenario_can_be_looked_up() {
    let said = |path: &str| KeyHelp::of(path).expect("it is a place").to_string();
    assert!(said("").contains("There is more inside"), "{}", said(""));
    let incast = said("workload.incast");
    assert!(incast.starts_with("workload.incast: { ... } or [{ ... }, ...]\nMany to one."), "{incast}");
    assert!(incast.contains("  size = a size, as in \"240KB\" (required)\n      All data of a repetition"), "{incast}");
    assert!(incast.contains("  repeat = a whole number (default: 1)\n"), "{incast}");
    assert_eq!(said("workload.incast[0].size"), said("workload.incast.size").replace("incast.size", "incast[0].size"));
    assert!(said("switch.balancing").contains("  \"spray\"\n      Each packet takes any of the ways"));
    assert!(said("topology").contains("  fat-tree = { ... }\n      Three-tier fat-tree"));
    assert!(said("loss").contains("selvedge keys loss[0].direction\n"), "{}", said("loss"));
    let wrong = KeyHelp::of("workload.incst").expect_err("misspelt").to_string();
    assert!(wrong.contains("did you mean \"incast\"?"), "{wrong}");
    let page = KeyHelp::page();
    assert!(!page.contains("[`") && !page.contains("](super"), "no links into the source");
}

#[test]
fn the_committed_keys_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
    if std::env::var_os("SELVEDGE_BLESS").is_some() {
        std::fs::write(&path, KeyHelp::page()).expect("the page is writable");
    }
    let committed = std::fs::read_to_string(&path).expect("the page is committed");
    assert!(committed == KeyHelp::page(), "docs/keys.md is stale: run this test with SELVEDGE_BLESS=1");
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
fn sampling_fits_the_time_that_flows_start_over() {
    let sample = |text: &str| plan(text, &Changes::default()).expect("a plan").series[0].scenario.sample;
    let with_stop = |stop: &str| format!("stop = {{ {stop} }}\n{BASE}");
    assert_eq!(sample(&with_stop("flows = 100")), Setting::Value(Duration::from_us(48)), "two round trips");
    assert_eq!(sample(&with_stop("time = '1s'")), Setting::Value(Duration::from_us(500)), "2,000 times");
    assert_eq!(sample(&format!("sample = '7us'\n{}", with_stop("flows = 9"))), Setting::Value(Duration::from_us(7)));
    assert_eq!(sample(&format!("sample = 'off'\n{}", with_stop("flows = 9"))), Setting::Off);
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
