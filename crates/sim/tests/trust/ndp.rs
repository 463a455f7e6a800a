//! NDP in the fabric.

use selvedge_sim::fault::Affected;
use selvedge_sim::topology::FatTree;
use selvedge_telemetry::DropReason;
use selvedge_units::{Chance, Duration};

use crate::determinism::ndp;
use crate::support::{Scene, Series, drops, link, lose, star};

fn incast(senders: u32, size: u64) -> Scene {
    let scene = Scene::new(star(&vec![link(40, 500); senders as usize + 1]), Series::Irn).with(ndp);
    (0..senders).fold(scene, |scene, src| scene.flow(src, senders, size, Duration::ZERO))
}

#[test]
fn an_idle_path_costs_nothing() {
    for size in [1, 1_024, 100_000, 5_000_000] {
        let scene = Scene::new(star(&[link(40, 500); 2]), Series::Irn).with(ndp).flow(0, 1, size, Duration::ZERO);
        let outcome = scene.finish();
        assert!(outcome.delay(0) < Duration::from_us(1), "{size} B: {:?} late", outcome.delay(0));
        assert_eq!((outcome.record.trims, outcome.record.retransmissions), (0, 0));
    }
}

#[test]
fn an_incast_keeps_the_receivers_link_busy_and_loses_nothing() {
    let (senders, size) = (12, 200_000);
    let scene = incast(senders, size);
    let outcome = scene.finish();
    let record = &outcome.record;
    assert!(record.trims > 0 && record.nacks_sent > 0);
    assert_eq!((record.data_drops.total(), record.timeouts), (0, 0));
    assert_eq!(record.spurious_retransmissions, 0, "what is sent again was trimmed");
    // The time is that of all packets one after the other at line rate, and a tenth more for headers.
    let one = scene.config.nic.framing(&scene.resolved().transport);
    let packets = size.div_ceil(1_024) * u64::from(senders);
    let all = link(40, 500).rate.time_for((one.mtu + one.overhead) * packets);
    let last = outcome.flows.iter().filter_map(|flow| flow.fct()).max().expect("some flow finished");
    let first = outcome.flows.iter().filter_map(|flow| flow.fct()).min().expect("some flow finished");
    assert!(last.as_ps() < all.as_ps() * 11 / 10, "{last:?} for {all:?}");
    assert!(first.as_ps() > all.as_ps() * 9 / 10, "all get the same: {first:?} {last:?}");
}

#[test]
fn losses_of_any_packet_are_survived() {
    let outcome = incast(8, 100_000).with(|config| lose(config, Affected::All, Chance::ratio(1, 50))).finish();
    assert!(drops(&outcome.record.data_drops, DropReason::LinkLoss) > 0 && outcome.record.timeouts > 0);
}

#[test]
fn a_permutation_fills_all_paths() {
    let graph = FatTree { k: 4, link: link(40, 500) }.build().expect("a valid fat-tree");
    let scene = Scene::new(graph, Series::Irn).with(ndp);
    let scene = (0..16).fold(scene, |scene, host| scene.flow(host, (host + 8) % 16, 2_000_000, Duration::ZERO));
    let outcome = scene.finish();
    for flow in &outcome.flows {
        let slowdown = flow.slowdown().expect("the flow finished");
        assert!(slowdown < 1.35, "every host sends at nearly line rate: {slowdown}");
    }
}
