//! Homa in the fabric.

use selvedge_sim::SimConfig;
use selvedge_sim::config::{BufferConfig, InputQueued, TransportConfig};
use selvedge_sim::fault::Affected;
use selvedge_telemetry::DropReason;
use selvedge_transport::homa::HomaConfig;
use selvedge_units::{Bytes, Chance, Duration, Setting};

use crate::determinism::homa;
use crate::support::{Scene, Series, drops, link, lose, star};

/// Buffers that hold whatever is sent.
fn ample(config: &mut SimConfig) {
    let per_port = Setting::Value(Bytes::new(10_000_000));
    config.switch.buffer = BufferConfig::InputQueued(InputQueued { per_port, ..InputQueued::default() });
}

/// Hosts on one switch. RTTbytes are those of a round trip with the packets on its links, which take as long as the
/// links' delays.
fn scene(hosts: u32) -> Scene {
    let filling = |config: &mut SimConfig| {
        let rtt_bytes = Setting::Value(Bytes::new(20_000));
        config.transport = TransportConfig::Messages(HomaConfig { rtt_bytes, ..HomaConfig::default() }.into());
    };
    Scene::new(star(&vec![link(40, 500); hosts as usize]), Series::Irn).with(homa).with(filling).with(ample)
}

#[test]
fn an_idle_path_costs_nothing() {
    for size in [1, 1_024, 100_000, 5_000_000] {
        let outcome = scene(2).flow(0, 1, size, Duration::ZERO).finish();
        assert!(outcome.delay(0) < Duration::from_us(1), "{size} B: {:?} late", outcome.delay(0));
        assert_eq!((outcome.record.timeouts, outcome.record.retransmissions), (0, 0));
    }
}

#[test]
fn an_incast_keeps_the_receivers_link_busy_and_serves_one_after_the_other() {
    let (senders, size) = (12_u32, 200_000);
    let scene = (0..senders).fold(scene(senders + 1), |scene, src| scene.flow(src, senders, size, Duration::ZERO));
    let outcome = scene.finish();
    assert_eq!((outcome.record.data_drops.total(), outcome.record.timeouts), (0, 0));
    let one = scene.config.nic.framing(&scene.resolved().transport);
    let packets = size.div_ceil(1_024) * u64::from(senders);
    let all = link(40, 500).rate.time_for((one.mtu + one.overhead) * packets);
    let mut times: Vec<Duration> = outcome.flows.iter().filter_map(|flow| flow.fct()).collect();
    times.sort_unstable();
    let [first, last] = [times[0], times[times.len() - 1]];
    assert!(last.as_ps() < all.as_ps() * 102 / 100, "{last:?} for {all:?}");
    // Unscheduled packets of all are in front of the first.
    assert!(first.as_ps() < all.as_ps() / 4, "the first has the link for itself: {first:?} of {all:?}");
}

#[test]
fn a_short_message_does_not_wait_for_long_ones() {
    let scene = (0..3).fold(scene(5), |scene, src| scene.flow(src, 4, 3_000_000, Duration::ZERO));
    let outcome = scene.flow(3, 4, 3_000, Duration::from_us(300)).finish();
    assert!(outcome.delay(3) < Duration::from_us(1), "{:?} late", outcome.delay(3));
}

#[test]
fn losses_of_any_packet_are_survived() {
    let scene = (0..8).fold(scene(9), |scene, src| scene.flow(src, 8, 100_000, Duration::ZERO));
    let outcome = scene.with(|config| lose(config, Affected::All, Chance::ratio(1, 50))).finish();
    assert!(drops(&outcome.record.data_drops, DropReason::LinkLoss) > 0 && outcome.record.timeouts > 0);
}
