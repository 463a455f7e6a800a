//! Tests of warnings about scenarios that can run.

use selvedge_units::{Duration, Setting};

use super::{BASE, NO_SWITCH, extended, plan, with_sets};
use crate::{Changes, PlannedSeries, Scenario};

#[test]
fn aimd_with_pfc_is_warned_about() {
    let changes = Changes { series: Some("irn+aimd,irn+aimd+pfc,irn+dctcp+pfc".into()), ..Changes::default() };
    let plan = plan(&format!("stop = {{ flows = 10 }}\n{BASE}"), &changes).expect("the scenario is valid");
    let [warning] = &plan.warnings[..] else { panic!("one warning: {:?}", plan.warnings) };
    assert!(warning.contains("irn+aimd+pfc") && warning.contains("PFC prevents them"), "{warning}");
    // Four fifths of the line rate times the empty path's round trip.
    let k = plan.series[2].scenario.switch.ecn.k_min.resolve(|| None).expect("a resolved threshold");
    assert!((96_000..106_000).contains(&k.get()), "{k}");
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
        let [warning] = &warnings(quanta).expect("the scenario is valid")[..] else { panic!("expected one warning") };
        assert!(warning.contains("switch.pfc.quanta") && warning.contains("give at least 35"), "{warning}");
    }
    assert_eq!(warnings(35).expect("a valid scenario"), [""; 0]);
}

#[test]
fn acknowledgements_that_wait_behind_data_are_warned_about() {
    let warnings = |series: &str, class: u8| {
        let sets = vec![format!("nic.ack-class={class}")];
        let changes = Changes { series: Some(series.into()), sets, ..Changes::default() };
        plan(NO_SWITCH, &changes).expect("the scenario is valid").warnings
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
    // No acknowledgements, or acknowledgements in another class.
    silent("roce-baseline+pfc", 1);
    silent("tcp", 1);
}

#[test]
fn acknowledgements_that_windows_are_too_small_for_are_pointed_out() {
    let warnings = |ack_after: &str| {
        let ack_after = format!("transport.eqds.ack-after={ack_after}");
        let changes = Changes {
            series: Some("eqds".into()),
            ..with_sets(&["transport.eqds.reorder=8", "transport.eqds.window=8KB", &ack_after])
        };
        plan(&extended(""), &changes).expect("the scenario is valid").warnings
    };
    let of = |warnings: &[String]| warnings.iter().filter(|warning| warning.contains("eqds.ack-after")).count();
    assert_eq!((of(&warnings("8KB")), of(&warnings("10KB"))), (0, 1), "{:?}", warnings("10KB"));
}

#[test]
fn a_series_whose_name_is_wrong_about_pfc_is_named() {
    let warnings = |series: &str, set: &str| {
        let changes = Changes { series: Some(series.into()), ..with_sets(&[set]) };
        plan(&extended(""), &changes).expect("the scenario is valid").warnings
    };
    let [warning] = &warnings("irn,roce+pfc", "switch.pfc.enabled=false")[..] else { panic!("expected one warning") };
    let said = "switch.pfc.enabled=false: series \"roce+pfc\" runs without PFC because of this";
    assert!(warning.replace("switch.pfc.enabled: ", "").contains(said), "{warning}");
    let [warning] = &warnings("roce,irn+pfc", "switch.pfc.enabled=true")[..] else { panic!("expected one warning") };
    assert!(warning.contains("series \"roce\" runs with PFC because of this"), "{warning}");
}

#[test]
fn netrt_is_of_no_use_to_those_whose_packets_it_does_not_know() {
    let sets = ["switch.netrt.enabled=true"];
    let changes = Changes { series: Some("irn,tcp,eqds".into()), ..with_sets(&sets) };
    let found = plan(&extended(""), &changes).expect("the scenario is valid").warnings;
    for (series, whose) in [("tcp", "TCP's"), ("eqds", "EQDS's")] {
        let text = format!("NetRT knows RDMA's packets only: {whose} pass as if it were off");
        assert_eq!(found.iter().filter(|warning| warning.contains(&text)).count(), 1, "{series}: {found:?}");
    }
}

#[test]
fn what_netrt_can_never_have_of_a_buffer_is_warned_about() {
    let warnings = |sets: &[&str]| {
        let changes = Changes { series: Some("netrt".into()), ..with_sets(sets) };
        plan(&extended(""), &changes).expect("a valid scenario").warnings
    };
    let room = "switch.buffer.input-queued.per-port='100KB'";
    let found = warnings(&[room, "switch.netrt.pool='200KB'"]);
    assert!(found.iter().any(|warning| warning.contains("that much of 200KB at most has an effect")), "{found:?}");
    assert_eq!(warnings(&[room, "switch.netrt.pool='90KB'", "switch.netrt.buffer='100KB'"]), [""; 0]);
    let found = warnings(&["switch.buffer={trimming={}}"]);
    assert!(found.iter().any(|warning| warning.contains("NetRT asks for those that found no place")), "{found:?}");
}

#[test]
fn tcp_beside_tcp_has_settings_of_its_own() {
    let text = extended(
        "[workload.incast]\nsenders = 2\nsize = '1MB'\n[beside]\nworkloads = ['poisson']\nclass = 1\ntcp = { min-rto = '1ms' }\n",
    );
    let changes = Changes { series: Some("tcp".into()), ..with_sets(&["transport.tcp.min-rto='2ms'"]) };
    let plan = plan(&text, &changes).expect("both are valid");
    assert_eq!(plan.warnings, [""; 0]);
    let PlannedSeries { scenario, transport, .. } = &plan.series[0];
    let beside = scenario.beside.as_ref().map(|beside| beside.tcp.min_rto);
    let ms = |ms| Setting::Value(Duration::from_ms(ms));
    assert_eq!((beside, transport.tcp().copied().map(|tcp| tcp.min_rto)), (Some(ms(1)), Some(ms(2))));
}

#[test]
fn a_middle_of_flows_that_follow_others_is_warned_about() {
    let warnings = |workloads: &str, measure: &str| {
        let text = format!("measure = {measure}\n{}", extended(workloads));
        plan(&text, &Changes::default()).expect("the scenario is valid").warnings
    };
    let repeated = "[workload.incast]\nsenders = 2\nsize = '1MB'\nrepeat = 3\n";
    let others = "[workload.closed-loop]\nsizes = { fixed = '1MB' }\n[workload.verbs]\nsizes = { fixed = '4KB' }\n";
    let said = |warnings: &[String]| warnings.concat();
    for (workloads, whose) in [
        (repeated.to_owned(), "flows of workload.incast start after others"),
        (format!("{repeated}{others}"), "flows of workload.incast and 2 other workloads start after others"),
    ] {
        let found = warnings(&workloads, "{ middle = 0.8 }");
        let [warning] = &found[..] else { panic!("one warning: {found:?}") };
        assert!(warning.contains("measure.middle") && warning.contains(whose), "{warning}");
        assert!(warning.contains("measure.window"), "{warning}");
    }
    assert_eq!(said(&warnings(repeated, "{ middle = 1 }")), "", "all are measured anyway");
    assert_eq!(said(&warnings(repeated, "{ window = { from = '1us' } }")), "");
    let timed = format!("{repeated}interval = '1ms'\n");
    assert_eq!(said(&warnings(&timed, "{ middle = 0.8 }")), "", "repetitions at given times have numbers");
}

#[test]
fn a_transport_that_sends_nothing_is_warned_about() {
    let warnings = |workloads: &str| {
        let text =
            extended(&format!("[workload.incast]\nsenders = 2\nsize = '1MB'\n[beside]\nworkloads = [{workloads}]\n"));
        plan(&text, &Changes::default()).expect("the scenario is valid").warnings
    };
    assert_eq!(warnings("'incast'"), [""; 0]);
    let found = warnings("'incast', 'poisson'");
    let [warning] = &found[..] else { panic!("one warning: {found:?}") };
    assert!(warning.contains("beside.workloads: all workloads use the TCP of [beside]"), "{warning}");
}

#[test]
fn queue_pairs_that_are_less_patient_than_a_round_trip_are_warned_about() {
    let warnings = |timeout: &str| {
        let text = BASE.replace("[workload.poisson]\nload = 0.7\nsizes = \"cdf:irn-heavy-tailed\"\n", "")
            + &format!("[workload.verbs]\nsizes = {{ fixed = '4KB' }}\ntimeout = '{timeout}'\nmessages = 10\n");
        plan(&text, &Changes::default()).expect("the scenario is valid").warnings
    };
    let [warning] = &warnings("10us")[..] else { panic!("one warning: {:?}", warnings("10us")) };
    assert!(warning.contains("workload.verbs.timeout: 16384ns is less than the longest round trip"), "{warning}");
    assert_eq!(warnings("100us"), [""; 0]);
}

#[test]
fn go_back_n_without_timeouts_is_warned_about_where_packets_overtake_each_other() {
    let warnings = |text: &str, series: &str, sets: &[&str]| {
        plan(text, &Changes { series: Some(series.into()), ..with_sets(sets) }).expect("the scenario is valid").warnings
    };
    let text = extended("");
    for series in ["roce-baseline+pfc+flowlet", "roce-baseline+pfc+spray", "roce-baseline+pfc+drill"] {
        let found = warnings(&text, &format!("irn+pfc+spray,roce+pfc,roce+spray,{series}"), &[]);
        let [warning] = &found[..] else { panic!("one warning: {found:?}") };
        let text_of = format!("transport.recovery.go-back-n.rto: {series} has no timeout");
        assert!(warning.contains(&text_of), "{warning}");
        let go_back_n = |what: &str| format!("transport.recovery.go-back-n.{what}");
        let remedy = [go_back_n("rto=1ms"), go_back_n("acks=per-packet")];
        assert_eq!(warnings(&text, series, &remedy.each_ref().map(|set| &**set)), [""; 0]);
        assert_eq!(warnings(&text, series, &[&go_back_n("nack=every-packet")]), [""; 0]);
        // A single path leaves no choice.
        assert_eq!(warnings(NO_SWITCH, series, &[]), [""; 0]);
    }
    assert_eq!(warnings(&text, "roce+pfc+spray", &[]), [""; 0], "it has timeouts, with PFC too");
}

#[test]
fn networks_that_hold_more_than_can_be_told_apart_are_pointed_out() {
    let warnings = |delay: &str| {
        let text = extended("").replace("2us", delay).replace("40Gbps", "100Gbps");
        let changes = Changes { series: Some("irn+pfc,melo,netrt,eqds".into()), ..Changes::default() };
        plan(&text, &changes).expect("the scenario is valid").warnings
    };
    assert_eq!(warnings("1us"), [""; 0]);
    let far = warnings("100us");
    let keys = ["transport.recovery.melo.pool-bits", "switch.netrt.enabled", "transport.eqds.reorder"];
    assert!(far.len() == 3 && far.iter().zip(keys).all(|(warning, key)| warning.contains(key)), "{far:?}");
}

#[test]
fn telemetry_is_counted_on_the_wire() {
    let changes = Changes { series: Some("irn,irn+hpcc".into()), ..Changes::default() };
    let plan = plan(&format!("stop = {{ flows = 10 }}\n{BASE}"), &changes).expect("the scenario is valid");
    let [irn, hpcc] = [0, 1].map(|index| &plan.series[index].scenario);
    let bytes = |scenario: &Scenario| {
        let Scenario { nic, transport, .. } = scenario;
        (nic.data_header(transport).get(), nic.ack_frame(transport).get())
    };
    assert_eq!((bytes(irn), bytes(hpcc)), ((62, 66), (62 + 42, 66 + 42)));
    assert_eq!(plan.warnings, [""; 0]);
}

#[test]
fn cnps_that_go_before_all_data_need_not_be_lossless() {
    let warnings = |sets: &[&str]| {
        let sets: Vec<&str> = ["switch.pfc.classes=[3]"].iter().chain(sets).copied().collect();
        let changes = Changes { series: Some("roce+dcqcn+pfc".into()), ..with_sets(&sets) };
        plan(&extended(""), &changes).expect("the scenario is valid").warnings
    };
    assert_eq!(warnings(&["nic.cnp-class=6"]), [""; 0]);
    for sets in [&["nic.cnp-class=1"][..], &["nic.cnp-class=6", "nic.ack-class=6"], &["nic.ack-class=6"]] {
        let found = warnings(sets);
        assert!(found.iter().any(|warning| warning.contains("which some packets have")), "{sets:?}: {found:?}");
    }
}

#[test]
fn weights_that_nobody_shares_by_are_warned_about() {
    let warnings = |set: &str| {
        plan(&extended(""), &Changes { series: Some("irn".into()), ..with_sets(&[set]) })
            .expect("a valid scenario")
            .warnings
    };
    let [warning] = &warnings("switch.weights=[1,2,0,0,0,0,0,0]")[..] else { panic!("expected one warning") };
    assert!(warning.contains("switch.weights") && warning.contains("nothing is shared by weight"), "{warning}");
}
