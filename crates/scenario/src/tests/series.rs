//! Tests of series, cases and presets, and of the settings each of them runs with.

use std::path::Path;

use selvedge_transport::recovery::RecoveryConfig;
use selvedge_units::{Bytes, Duration, Setting, Toggle};

use super::{BASE, extended, plan, with_sets, wrong};
use crate::{Changes, Plan};

#[test]
fn series_replace_and_never_merge() {
    let text = format!(
        "stop = {{ flows = 10 }}\n{BASE}[transport.recovery.irn]\nrto-low = '200us'\n\
         [[series]]\npreset = 'irn'\n\
         [[series]]\nname = 'fresh'\nset.'transport.recovery' = {{ irn = {{}} }}\n\
         [[series]]\nname = 'slow'\nset.'transport.recovery.irn.rto-low' = '300us'\n"
    );
    let plan = plan(&text, &Changes::default()).expect("the scenario is valid");
    let rto_low = |index: usize| match plan.series[index].scenario.transport.rdma().expect("queue pairs").recovery {
        RecoveryConfig::Irn(irn) => irn.rto_low,
        other => panic!("{}", other.name()),
    };
    assert_eq!(rto_low(0), Setting::Value(Duration::from_us(200)), "a preset keeps the settings of its own algorithm");
    assert_eq!(rto_low(1), Setting::Value(Duration::from_us(100)), "a replaced table has its defaults");
    assert_eq!(rto_low(2), Setting::Value(Duration::from_us(300)));
}

#[test]
fn a_scheme_by_itself_is_a_series() {
    let list = "['irn', { preset = 'roce+pfc', name = 'lossless' }, 'tcp']";
    let long = extended(
        "[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce+pfc'\nname = 'lossless'\n[[series]]\npreset = 'tcp'\n",
    );
    let of = |text: &str| {
        let plan = plan(text, &Changes::default()).expect("the scenario is valid");
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
fn a_scenario_without_series_is_its_own() {
    let plan = plan(&format!("stop = {{ flows = 10 }}\n{BASE}[switch.pfc]\nenabled = true\n"), &Changes::default());
    assert_eq!(plan.expect("the scenario is valid").series[0].name, "irn+pfc");
}

#[test]
fn tcp_and_rdma_stand_beside_each_other() {
    let base = format!("stop = {{ flows = 10 }}\n{BASE}");
    let sets = with_sets(&["transport.tcp.min-rto=1ms"]);
    let changes = Changes { series: Some("tcp,irn,tcp+dctcp".into()), ..sets };
    let plan = plan(&base, &changes).expect("the scenario is valid");
    let transport = |index: usize| plan.series[index].scenario.transport;
    assert_eq!((transport(0).recovery_name(), transport(0).congestion_name()), ("tcp", "new-reno"));
    assert_eq!((transport(1).recovery_name(), transport(1).tcp().copied()), ("irn", None));
    assert_eq!(transport(2).congestion_name(), "dctcp");
    let tcp = *transport(0).tcp().expect("TCP");
    assert_eq!((tcp.min_rto, tcp.mss), (Setting::Value(Duration::from_ms(1)), Setting::Value(Bytes::new(1_024))));
    // DCTCP comes with switches that mark: above four fifths of 40 Gb/s times 24 us and the time that a frame and an
    // answer take on six links each, in whole frames of 1,094 bytes.
    let ecn = |index: usize| plan.series[index].scenario.switch.ecn;
    assert_eq!((ecn(0).enabled, ecn(2).enabled), (Toggle::Off, Toggle::On));
    assert_eq!(
        (ecn(2).k_min, ecn(2).k_max),
        (Setting::Value(Bytes::new(102_836)), Setting::Value(Bytes::new(102_836)))
    );
    assert_eq!(plan.warnings, [""; 0]);
    // The resolved scenario can be read again and means the same.
    let again = self::plan(&plan.to_toml(), &Changes::default()).expect("a valid resolved scenario");
    assert_eq!(again.series[0].scenario.transport, transport(0));
}

#[test]
fn presets_say_whether_there_is_pfc() {
    let series = "[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce+pfc'\n[[series]]\nname = 'plain'\n[[series]]\n\
                  name = 'meant'\npreset = 'irn'\nset.'switch.pfc.enabled' = false\n";
    let text = extended(&format!("[switch.pfc]\nenabled = true\n{series}"));
    let found = plan(&text, &Changes::default()).expect("the scenario is valid").warnings;
    let [warning] = &found[..] else { panic!("one warning: {found:?}") };
    assert!(
        warning.starts_with("study.toml:10:1: switch.pfc.enabled: series \"irn\" has no PFC in spite of this"),
        "{warning}"
    );
}

#[test]
fn every_series_runs_in_every_case() {
    let text = extended(
        "[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce+pfc'\n[[series]]\npreset = 'irn+pfc'\ncase = 'calm'\n\
         [[case]]\nname = 'calm'\nset.'workload.poisson.load' = 0.3\n\
         [[case]]\nname = 'patient'\nset.'transport.recovery.irn.rto-low' = '300us'\n",
    );
    let once = plan(&text, &Changes::default()).expect("the scenario is valid");
    let names: Vec<&str> = once.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["calm: irn", "calm: roce+pfc", "calm: irn+pfc", "patient: irn", "patient: roce+pfc"]);
    assert_eq!(once.series[0].workloads[0].load, Some(0.3));
    let RecoveryConfig::Irn(irn) = once.series[3].scenario.transport.rdma().expect("queue pairs").recovery else {
        panic!("expected IRN")
    };
    assert_eq!(irn.rto_low, Setting::Value(Duration::from_us(300)));
    // Equal runs have equal digests, whatever their series are called; others have not.
    let digests: Vec<u64> = once.series.iter().map(crate::PlannedSeries::digest).collect();
    let alone =
        plan(&extended("[[series]]\npreset = 'roce+pfc'\n"), &Changes::default()).expect("the scenario is valid");
    assert_eq!(digests[4], alone.series[0].digest());
    assert!(digests.iter().enumerate().all(|(n, digest)| !digests[..n].contains(digest)));

    let twice = Plan::from_text("resolved.toml", &once.to_toml(), Path::new(""), &Changes::default())
        .expect("the scenario is valid");
    assert_eq!(twice.to_toml(), once.to_toml());
    assert!(twice.series.iter().zip(&once.series).all(|(a, b)| (&a.name, a.digest()) == (&b.name, b.digest())));
}

#[test]
fn a_name_chosen_means_the_series_of_all_its_cases() {
    let cases = "[[case]]\nname = 'low'\nset.'workload.poisson.load' = 0.2\n[[case]]\nname = 'high'\n";
    let text = extended(&format!("[[series]]\npreset = 'irn'\n[[series]]\npreset = 'roce'\n{cases}"));
    let resolved = plan(&text, &Changes::default()).expect("the scenario is valid").to_toml();
    let changes = Changes { series: Some("irn".into()), ..Changes::default() };
    for text in [&text, &resolved] {
        let plan = plan(text, &changes).expect("the scenario is valid");
        let names: Vec<&str> = plan.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["low: irn", "high: irn"]);
    }
    let none = Changes { series: Some(",".into()), ..Changes::default() };
    let refused = plan(&text, &none).expect_err("should be refused");
    assert_eq!(refused, "--series ,: no series to run; give at least one");
}

#[test]
fn one_line_about_a_study_speaks_of_all_its_cases() {
    let text = extended(
        "[[series]]\npreset = 'irn'\n[[case]]\nname = 'b'\nset.'workload.poisson.load' = 0.3\n\
         [[case]]\nname = 'a'\nset.'topology.fat-tree.k' = 6\n\
         [[case]]\nname = 'c'\nset.'topology.fat-tree.link.rate' = '10Gbps'\n",
    );
    let line = plan(&text, &Changes::default()).expect("the scenario is valid").in_one_line();
    let parts = "16 to 54 hosts, fat-tree k = 4 or fat-tree k = 6, 10 to 40 Gb/s, poisson at 30 to 70 % load";
    assert_eq!(line, parts);
}
