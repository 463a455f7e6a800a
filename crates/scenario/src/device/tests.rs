//! Tests of devices in scenarios.

use selvedge_sim::config::{BufferConfig, SharedBuffer};
use selvedge_transport::CongestionConfig;
use selvedge_transport::congestion::dcqcn::{DcqcnConfig, Defaults};
use selvedge_units::{Bytes, Duration, Setting};

use super::{Device, DeviceKind, DeviceTable, find};
use crate::{Changes, Plan, PlannedSeries, Scenario};

/// Scenario of a pod whose cables are 40 m long.
const POD: &str = "title = 'pod'
stop = { flows = 100 }
[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 4
host-link = { rate = '100Gbps', delay = '200ns' }
spine-link = { rate = '100Gbps', delay = '200ns' }
[workload.poisson]
load = 0.5
sizes = 'cdf:web-search'
";

fn plan(more: &str, series: Option<&str>, sets: &[&str]) -> Result<Plan, String> {
    let changes = Changes {
        series: series.map(str::to_owned),
        sets: sets.iter().map(|&set| set.to_owned()).collect(),
        ..Changes::default()
    };
    let text = format!("{more}{POD}");
    Plan::from_text("pod.toml", &text, std::path::Path::new(""), &changes).map_err(|error| error.to_string())
}

/// Returns the only series, resolved.
fn resolved(more: &str, series: Option<&str>, sets: &[&str]) -> PlannedSeries {
    let plan = plan(more, series, sets).expect("a valid scenario");
    let [series] = &plan.series[..] else { panic!("expected one series") };
    series.clone()
}

fn shared(scenario: &Scenario) -> SharedBuffer {
    let BufferConfig::SharedBuffer(shared) = scenario.switch.buffer else { panic!("{:?}", scenario.switch.buffer) };
    shared
}

fn dcqcn(series: &PlannedSeries) -> DcqcnConfig {
    let CongestionConfig::Dcqcn(dcqcn) = series.transport.rdma().expect("queue pairs").congestion else {
        panic!("{:?}", series.transport)
    };
    dcqcn
}

/// Returns `preset = NAME` for a device, as text of a scenario.
fn named(device: &Device) -> String {
    format!("{} = '{}'\n", device.kind.key(), device.name)
}

fn of(kind: DeviceKind) -> impl Iterator<Item = &'static Device> {
    Device::all().iter().filter(move |device| device.kind == kind)
}

#[test]
fn each_name_is_that_of_one_device_and_each_value_has_a_source() {
    let names: Vec<&str> = Device::all().iter().flat_map(Device::names).collect();
    for (at, name) in names.iter().enumerate() {
        assert!(!names[..at].contains(name), "{name} twice");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'), "{name}");
        assert!(Device::named(name).is_ok());
    }
    for device in Device::all() {
        assert!(!device.unknown.is_empty(), "{}: nobody knows all of it", device.name);
        assert!(device.sources().iter().all(|source| source.len() > 20), "{}", device.name);
        for setting in &device.set {
            assert!(!setting.value.note.is_empty(), "{}: what is {} called there?", device.name, setting.key);
        }
    }
}

#[test]
fn a_preset_is_what_its_values_are_when_they_are_written() {
    for device in Device::all() {
        let series = if device.kind == DeviceKind::Nic { "roce+dcqcn" } else { "roce+pfc" };
        let mut by_preset = resolved(&named(device), Some(series), &[]).scenario;
        let mut sets: Vec<String> =
            device.set.iter().map(|setting| format!("{}={}", setting.key, setting.value.value)).collect();
        // Every preset of a series sets this key itself.
        sets.retain(|set| !set.starts_with("switch.pfc.enabled"));
        if let Some(headroom) = &device.headroom {
            let rows: Vec<_> = headroom.by_link().collect();
            let rows = toml::Value::try_from(rows).expect("rows can be written");
            sets.push(format!("switch.pfc.headroom-by-link={rows}"));
        }
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let written = resolved("", Some(series), &sets).scenario;
        assert!(by_preset.nic.preset.take().or(by_preset.switch.preset.take()).is_some(), "the name stays");
        assert_eq!(by_preset, written, "{}", device.name);
    }
}

#[test]
fn a_resolved_scenario_with_devices_resolves_to_itself() {
    for device in Device::all() {
        let other = if device.kind == DeviceKind::Nic {
            "switch.preset = 'tomahawk-3'\n"
        } else {
            "nic.preset = 'connectx-7'\n"
        };
        for series in [None, Some("irn,roce+dcqcn+pfc,tcp,eqds")] {
            // Links of two lengths: headroom stays a table.
            for sets in [&[][..], &["topology.leaf-spine.spine-link.delay=1us", "switch.pfc.xon=0B"][..]] {
                let plan = plan(&format!("{}{other}", named(device)), series, sets).expect("a valid scenario");
                let text = plan.to_toml();
                let again = Plan::from_text("again", &text, std::path::Path::new(""), &Changes::default());
                let again = again.unwrap_or_else(|error| panic!("{}: {error}\n{text}", device.name));
                assert_eq!(again.to_toml(), text, "{}", device.name);
                let head: String = text.lines().take_while(|line| line.starts_with('#')).collect();
                for gap in device.unknown.iter().chain(&device.not_modelled) {
                    assert!(head.contains(&gap.what) && head.contains(&gap.instead), "{}: {}", device.name, gap.what);
                }
            }
        }
    }
}

#[test]
fn defaults_give_way_to_devices_these_to_the_scenario_that_to_series_and_all_to_arguments() {
    let k_min = |more: &str, sets: &[&str]| {
        resolved(more, Some("roce+dcqcn"), sets).scenario.switch.ecn.k_min.resolve(|| None).map(Bytes::get)
    };
    // DCQCN's 5 KB at 40 Gb/s.
    assert_eq!(k_min("", &[]), Some(12_500));
    let device = "switch.preset = 'tomahawk-3'\n";
    assert_eq!(k_min(device, &[]), Some(1_048_576));
    let scenario = "switch.preset = 'tomahawk-3'\nswitch.ecn.k-min = '300KB'\n";
    assert_eq!(k_min(scenario, &[]), Some(300_000));
    assert_eq!(k_min(scenario, &["switch.ecn.k-min=90KB"]), Some(90_000));
    assert_eq!(k_min(device, &["switch.ecn.k-min=90KB"]), Some(90_000));

    // The scenario takes precedence over the device, which has PFC, and the series' preset over the scenario.
    let pfc =
        |more: &str, series: Option<&str>, sets: &[&str]| resolved(more, series, sets).scenario.switch.pfc.enabled;
    let [on, off] = ["true", "false"].map(|pfc| format!("switch.pfc.enabled = {pfc}\n{device}"));
    assert!(!pfc("", None, &[]) && pfc(device, None, &[]) && !pfc(&off, None, &[]));
    assert!(!pfc(device, Some("irn"), &[]) && !pfc(&on, Some("irn"), &[]) && pfc(&off, Some("irn+pfc"), &[]));
    assert!(pfc(device, Some("irn"), &["switch.pfc.enabled=true"]));

    // A series' own values take precedence over all of these; arguments take precedence over them.
    let series = |sets: &[&str]| {
        let text = "nic.preset = 'connectx-7'\nseries = [{ preset = 'roce+dcqcn', set = { 'transport.congestion.dcqcn.cnp-interval' = '9us' } }]\n";
        dcqcn(&resolved(text, None, sets)).cnp_interval
    };
    assert_eq!(series(&[]), Setting::Value(Duration::from_us(9)));
    assert_eq!(series(&["transport.congestion.dcqcn.cnp-interval=7us"]), Setting::Value(Duration::from_us(7)));
}

#[test]
fn a_device_can_be_named_by_a_series_a_case_or_an_argument() {
    let text = "series = [{ name = 'a', preset = 'roce+dcqcn', set = { 'nic.preset' = 'connectx-6' } }, \
                { name = 'b', preset = 'roce+dcqcn' }]\n";
    let plan = plan(text, None, &[]).expect("a valid scenario");
    let intervals: Vec<_> = plan.series.iter().map(|series| dcqcn(series).cnp_interval).collect();
    assert_eq!(intervals, [4, 50].map(|us| Setting::Value(Duration::from_us(us))));
    let by_argument = resolved("", Some("roce+dcqcn"), &["nic.preset=connectx-6"]);
    assert_eq!(dcqcn(&by_argument).cnp_interval, Setting::Value(Duration::from_us(4)));
    let last = resolved("switch.preset = 'tomahawk-4'\n", Some("irn"), &["switch.preset=trident-2"]);
    assert_eq!(shared(&last.scenario).total, Bytes::new(12_766_208));
}

#[test]
fn where_nobody_chooses_a_scheme_the_nic_does() {
    let bare = resolved("nic.preset = 'connectx-7'\nswitch.preset = 'tomahawk-3'\n", None, &[]);
    assert_eq!(bare.transport.rdma().expect("queue pairs").recovery.name(), "go-back-n");
    assert_eq!(dcqcn(&bare).defaults, Defaults::ConnectX);
    assert_eq!(bare.name, "go-back-n+pfc", "the series is called as what it is");
    // The scenario chooses loss recovery alone: the NIC adds congestion control.
    let irn = resolved("nic.preset = 'connectx-7'\ntransport.recovery.irn = {}\n", None, &[]);
    assert_eq!(irn.transport.rdma().expect("queue pairs").recovery.name(), "irn");
    assert_eq!(dcqcn(&irn).defaults, Defaults::ConnectX);
    // Presets of series leave no choice to the device.
    let roce = resolved("nic.preset = 'connectx-7'\n", Some("roce"), &[]);
    assert_eq!(roce.transport.rdma().expect("queue pairs").congestion.name(), "none");
    let tcp = resolved("nic.preset = 'connectx-7'\ntransport.tcp = {}\n", None, &[]);
    assert!(tcp.transport.tcp().copied().is_some());
    // No document states the loss recovery of this NIC: the default holds.
    let thor = resolved("nic.preset = 'thor-2'\n", None, &[]);
    assert_eq!(
        (
            thor.transport.rdma().expect("queue pairs").recovery.name(),
            thor.transport.rdma().expect("queue pairs").congestion.name()
        ),
        ("irn", "dcqcn")
    );
    // A value inside a kind that only the NIC chooses is applied.
    let rto = resolved("nic.preset = 'connectx-7'\n", None, &["transport.recovery.go-back-n.rto=3ms"]);
    assert_eq!(rto.transport.rdma().expect("queue pairs").recovery.name(), "go-back-n");
}

#[test]
fn who_says_whose_values_dcqcn_has_gets_all_of_these() {
    let text =
        |defaults| format!("transport.recovery.go-back-n = {{}}\ntransport.congestion.dcqcn.defaults = '{defaults}'\n");
    let paper = resolved(&format!("nic.preset = 'connectx-7'\n{}", text("paper")), None, &[]);
    let published = resolved("", Some("roce+dcqcn"), &[]);
    assert_eq!(dcqcn(&paper), dcqcn(&published));
}

#[test]
fn the_engine_knows_the_values_of_connectx_too() {
    let text = "transport.recovery.go-back-n = {}\ntransport.congestion.dcqcn.defaults = 'connect-x'\n".to_owned();
    let by_engine = resolved(&text, Some("roce"), &[]);
    for device in of(DeviceKind::Nic).filter(|device| device.by == "NVIDIA") {
        assert_eq!(dcqcn(&resolved(&named(device), Some("roce+dcqcn"), &[])), dcqcn(&by_engine), "{}", device.name);
    }
}

#[test]
fn a_buffer_of_another_kind_leaves_the_ecn_thresholds_of_a_switch() {
    let text = "switch.preset = 'tomahawk-3'\nswitch.buffer.input-queued = {}\n";
    let plan = plan(text, Some("roce+dcqcn+pfc"), &[]).expect("a valid scenario");
    let scenario = &plan.series[0].scenario;
    let without = resolved("", Some("roce+dcqcn+pfc"), &[]).scenario;
    assert_eq!(scenario.switch.buffer, without.switch.buffer);
    assert_eq!(scenario.switch.pfc.headroom, without.switch.pfc.headroom);
    assert_eq!(scenario.switch.pfc.xon_gap, without.switch.pfc.xon_gap);
    assert_eq!(scenario.switch.ecn.k_min, Setting::Value(Bytes::new(1_048_576)));
    let said = "pod.toml:1:8: switch.preset: switch.buffer is \"input-queued\" here, so the buffer of \"tomahawk-3\"";
    assert!(plan.warnings.iter().any(|warning| warning.starts_with(said)), "{:?}", plan.warnings);
}

#[test]
fn headroom_is_that_of_the_shortest_cable_that_is_long_enough() {
    let headroom = |ns: u64| {
        let delays = ["host", "spine"].map(|link| format!("topology.leaf-spine.{link}-link.delay={ns}ns"));
        let sets: Vec<&str> = delays.iter().map(String::as_str).collect();
        let plan = plan("switch.preset = 'tomahawk-3'\n", Some("irn+pfc"), &sets).expect("a valid scenario");
        let headroom = plan.series[0].scenario.switch.pfc.headroom.resolve(|| None).map(Bytes::get);
        (headroom, plan.warnings.iter().any(|warning| warning.contains("taken instead")))
    };
    // 5, 40 and 300 m; then 1 and 2 km.
    let published = [(1, 68_580), (25, 68_580), (26, 74_422), (200, 74_422), (1_500, 117_348), (10_000, 398_526)];
    for (ns, bytes) in published {
        assert_eq!(headroom(ns), (Some(bytes), false), "{ns} ns");
    }
    let (beyond, is_said) = headroom(10_001);
    assert!(is_said && beyond.is_some_and(|bytes| bytes > 250_000), "{beyond:?}");
}

#[test]
fn a_rate_without_headroom_is_named_with_what_was_taken_instead() {
    let sets = ["topology.leaf-spine.host-link.rate=40Gbps"];
    let plan = plan("switch.preset = 'tomahawk-3'\n", Some("irn+pfc"), &sets).expect("a valid scenario");
    let said = plan.warnings.iter().find(|warning| warning.contains("taken instead")).expect("a warning");
    let pfc = &plan.series[0].scenario.switch.pfc;
    assert_eq!(pfc.headroom, Setting::Auto, "links differ");
    assert!(said.contains("published for 100 and 400 Gb/s and cables of up to 2000 m"), "{said}");
    assert!(said.contains("B for links of 40Gbps and 200ns"), "{said}");
    // Without PFC, there is no warning about headroom.
    let own = self::plan("switch.preset = 'tomahawk-3'\n", Some("irn"), &sets).expect("a valid scenario").warnings;
    let given = self::plan("switch.preset = 'tomahawk-3'\nswitch.pfc.headroom = '90KB'\n", Some("irn+pfc"), &sets);
    let silent = |warnings: &[String]| !warnings.iter().any(|warning| warning.contains("taken instead"));
    assert!(silent(&own) && silent(&given.expect("a valid scenario").warnings));
}

#[test]
fn links_that_a_nic_has_not_are_warned_about() {
    let warnings = |name: &str| {
        plan(
            &format!("nic.preset = '{name}'\n"),
            Some("irn"),
            &["topology.leaf-spine.host-link.rate=400Gbps", "workload.poisson.load=0.1"],
        )
        .expect("a valid scenario")
        .warnings
    };
    let said =
        "pod.toml:1:5: nic.preset: \"connectx-6\" has ports of up to 200Gbps, and hosts have links of 400Gbps here";
    assert!(warnings("connectx-6").iter().any(|warning| warning == said), "{:?}", warnings("connectx-6"));
    assert!(!warnings("connectx-7").iter().any(|warning| warning.contains("ports of up to")));
}

#[test]
fn an_unknown_device_is_named_with_what_was_meant() {
    let wrong = |more: &str, sets: &[&str]| plan(more, Some("irn"), sets).expect_err("there is no such device");
    let message = wrong("nic.preset = 'conectx-7'\n", &[]);
    assert!(
        message.starts_with("pod.toml:1:5: nic.preset: unknown NIC \"conectx-7\"; did you mean \"connectx-7\"?"),
        "{message}"
    );
    let message = wrong("", &["switch.preset=tomahawk-33"]);
    assert!(message.starts_with("--set switch.preset=tomahawk-33: switch.preset: unknown switch"), "{message}");
    assert!(message.contains("did you mean \"tomahawk-3\"?"), "{message}");
    let message = wrong("nic.preset = 'tomahawk-3'\n", &[]);
    assert!(message.contains("\"tomahawk-3\" is a switch: give it as switch.preset"), "{message}");
    let message = wrong("switch.preset = 'tomahawk-2'\n", &[]);
    assert!(message.contains("give \"tomahawk-2-7260cx3\" or \"tomahawk-2-z9264f\""), "{message}");
    let message = wrong("nic.preset = 7\n", &[]);
    assert!(message.starts_with("pod.toml:1:14: nic.preset: found"), "{message}");
    assert!(find(None, "").is_err());
}

#[test]
fn what_a_device_makes_impossible_is_blamed_on_it() {
    let message = plan(
        "switch.preset = 'trident-2'\n",
        Some("irn+pfc"),
        &["topology.leaf-spine.hosts-per-leaf=500", "workload.poisson.load=0.005"],
    )
    .expect_err("headroom of all ports is more than the buffer");
    let at = "pod.toml:1:8: switch.pfc.headroom: headroom of all ports";
    assert!(message.starts_with(at) && message.ends_with("(\"trident-2\" sets this)"), "{message}");
}

#[test]
fn tables_and_pages_fit_a_terminal() {
    let pages = Device::all().iter().map(Device::to_string);
    for page in pages.chain([DeviceTable::new().to_string()]) {
        for line in page.lines().filter(|line| !line.starts_with("  [")) {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }
    for device in Device::all() {
        let page = device.to_string();
        let all = device.unknown.iter().chain(&device.not_modelled).map(|gap| &gap.what);
        for words in all.chain(device.set.iter().map(|setting| &setting.key)) {
            assert!(page.contains(words.split_whitespace().next().unwrap_or_default()), "{}: {words}", device.name);
        }
    }
}
