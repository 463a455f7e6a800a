//! Conservation of packets and bytes in every configuration. The checks are those of every run
//! ([`crate::support::Outcome`]).

use selvedge_sim::SimConfig;
use selvedge_sim::config::{BufferConfig, SharedBuffer};
use selvedge_sim::fault::{Affected, Direction, LinkFailure, LossConfig, LossModel, RandomLoss};
use selvedge_sim::topology::FatTree;
use selvedge_sim::workload::{Fraction, Incast, Many, Pairs, Poisson, Senders, Sizes};
use selvedge_units::{Bytes, Chance, Duration, Toggle};

use crate::support::{Scene, Series, link};

/// Adds random arrivals and an incast on top of them.
fn busy(config: &mut SimConfig) {
    config.workload.poisson = Many::from(Poisson {
        load: Fraction::new(0.6).unwrap(),
        sizes: Sizes::Uniform([Bytes::new(1), Bytes::new(200_000)]),
        hosts: None,
        pairs: Pairs::Uniform,
        flows: Some(150),
        start: Duration::ZERO,
        until: None,
    });
    config.workload.incast = Many::from(Incast {
        size: Bytes::new(2_000_000),
        senders: Senders::Count(12),
        connections: 1,
        receiver: None,
        start: Duration::from_us(20),
        stagger: Duration::ZERO,
        jitter: Duration::ZERO,
        repeat: 2,
        interval: Some(Duration::from_us(150)),
    });
}

fn lossy(config: &mut SimConfig) {
    config.loss.push(LossConfig {
        link: "tier0-tier1".parse().unwrap(),
        direction: Direction::Both,
        packets: Affected::All,
        model: LossModel::Random(RandomLoss { rate: Chance::ratio(1, 50) }),
    });
}

fn failing(config: &mut SimConfig) {
    let us = Duration::from_us;
    for (link, at, until) in
        [("pod0-edge0 - pod0-agg0", us(50), Some(us(200))), ("core1", us(120), None), ("h5", us(80), Some(us(90)))]
    {
        config.failures.push(LinkFailure { link: link.parse().unwrap(), at, until });
    }
}

#[test]
fn packets_and_bytes_are_conserved_in_every_configuration() {
    let own = BufferConfig::default();
    let shared = BufferConfig::SharedBuffer(SharedBuffer { total: Bytes::new(300_000), ..SharedBuffer::default() });
    let faults: [&[fn(&mut SimConfig)]; 4] = [&[], &[lossy], &[failing], &[lossy, failing]];
    for series in Series::ALL {
        for buffer in [own, shared] {
            for faults in faults {
                for stop in [None, Some(Duration::from_us(180))] {
                    for ack_class in [3, 6] {
                        let mut scene = Scene::new(FatTree { k: 4, link: link(40, 1_000) }.build().unwrap(), series);
                        scene = scene.with(busy).with(|config| {
                            config.switch.buffer = buffer;
                            config.switch.ecn.enabled = Toggle::On;
                            config.nic.ack_class = ack_class;
                            config.stop.time = stop;
                        });
                        scene = faults.iter().fold(scene, |scene, fault| scene.with(fault));
                        // Without timeouts, losses are never repaired: such runs end unfinished.
                        let recovers = !series.pfc() || faults.is_empty();
                        if recovers && stop.is_none() {
                            scene.finish()
                        } else {
                            scene.run()
                        };
                    }
                }
            }
        }
    }
}
