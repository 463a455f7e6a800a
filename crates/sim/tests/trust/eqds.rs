//! EQDS tunnels in a fabric that trims, and in one that drops.

use selvedge_sim::config::{BufferConfig, InputQueued, Trimming};
use selvedge_sim::fault::Affected;
use selvedge_sim::topology::FatTree;
use selvedge_sim::workload::{Fraction, Many, Pairs, Poisson, Sizes, Start};
use selvedge_transport::eqds::{self, EqdsConfig, LifeConfig, Memory, Messages, Policy, Source};
use selvedge_units::{Bytes, Chance, Duration, Instant, Setting, Toggle};

use crate::support::{Scene, Series, link, lose, star};

fn speaks_eqds(scene: Scene, burst: Toggle) -> Scene {
    scene.with(|config| {
        let rto = Setting::Value(Duration::from_us(100));
        let eqds = EqdsConfig { burst, rto, ..EqdsConfig::default() };
        config.transport = eqds.into();
        if burst != Toggle::Off {
            config.switch.buffer = BufferConfig::Trimming(Trimming::default());
            config.nic.ack_class = Trimming::default().header_class;
        }
    })
}

/// Returns a scene in which eight hosts send to one at the same time.
fn incast(burst: Toggle) -> Scene {
    let scene = speaks_eqds(Scene::new(star(&[link(40, 500); 9]), Series::Irn), burst);
    (0..8).fold(scene, |scene, src| scene.flow(src, 8, 100_000, Duration::ZERO))
}

#[test]
fn an_incast_is_trimmed_at_first_and_then_paced() {
    let outcome = incast(Toggle::Auto).finish();
    let record = &outcome.record;
    assert!(record.trims > 0 && record.timeouts == 0, "{} trims, {} timeouts", record.trims, record.timeouts);
    assert_eq!(record.data_drops.total(), 0, "nothing is lost");
    assert!(record.nacks_sent >= record.trims);
    // The receiver's link is busy from the first window on; a fiftieth is for the path's delay and for rounding.
    let last = (0..8).map(|flow| outcome.delay(flow)).max().expect("some flow finished");
    let link = link(40, 500).rate.time_for(Bytes::new(8 * 100_000 * 1_094 / 1_024));
    assert!(last < link + link / 25 + Duration::from_us(10), "{last} where the link takes {link}");
}

#[test]
fn with_requests_queues_stay_short_without_trimming() {
    let outcome = incast(Toggle::Off).finish();
    assert_eq!((outcome.record.data_drops.total(), outcome.record.retransmissions), (0, 0));
    let peak = outcome.record.ports.iter().map(|port| port.egress_peak).max().expect("the record has ports");
    assert!(peak < Bytes::new(20_000), "{peak} where all first windows would be 80 KB and more");
}

#[test]
fn messages_to_one_host_share_a_tunnel_in_turns() {
    let scene = speaks_eqds(Scene::new(star(&[link(40, 500); 2]), Series::Irn), Toggle::Auto);
    let scene = scene.flow(0, 1, 1_000_000, Duration::ZERO).flow(0, 1, 10_000, Duration::from_us(50));
    let outcome = scene.finish();
    assert!(outcome.delay(1) < Duration::from_us(30), "{} behind a long one", outcome.delay(1));
}

/// Returns the mean completion time, in microseconds, of random messages from one host to another.
fn lone_pair(load: Fraction, messages: Messages, burst: Toggle) -> f64 {
    let scene = speaks_eqds(Scene::new(star(&[link(100, 5_000); 2]), Series::Irn), burst).with(|config| {
        config.transport.tunnels_mut().expect("the transport is EQDS").messages = messages;
        config.workload.poisson = Many::from(Poisson {
            load,
            sizes: Sizes::Fixed(Bytes::new(5_000)),
            hosts: None,
            pairs: Pairs::OtherHalf,
            flows: Some(3_000),
            start: Duration::ZERO,
            until: None,
        });
    });
    scene.finish().flows.iter().map(|row| row.fct().expect("the flow finished").as_us_f64()).sum::<f64>() / 3_000.0
}

/// A sender that is alone at its receiver need not ask for credit, however much it has asked for.
#[test]
fn a_lone_pair_is_not_kept_waiting_by_its_own_demand() {
    let seldom = lone_pair(Fraction::new(0.01).unwrap(), Messages::Turns, Toggle::Auto);
    let often = lone_pair(Fraction::new(0.7).unwrap(), Messages::Turns, Toggle::Auto);
    assert!(often < seldom * 1.2, "{seldom} us, and {often} us at 70 % load");
}

/// A message in a queue takes a round trip for the credit, 20 us, and the time of an idle path.
#[test]
fn messages_in_a_queue_have_the_credit_that_was_asked_for_them() {
    let load = || Fraction::new(0.2).unwrap();
    let queued = lone_pair(load(), Messages::Queue, Toggle::Off);
    assert!((30.0..31.0).contains(&queued), "{queued} us");
    let in_turns = lone_pair(load(), Messages::Turns, Toggle::Off);
    assert!(in_turns > 40.0, "{in_turns} us: one message's credit is another's");
}

#[test]
fn credit_is_shared_by_the_weights_of_priorities() {
    let mut scene = speaks_eqds(Scene::new(star(&[link(40, 500); 4]), Series::Irn), Toggle::Off).with(|config| {
        config.transport.tunnels_mut().expect("the transport is EQDS").policy =
            Policy::Weighted([9, 1, 9, 2, 9, 4, 9, 9]);
    });
    for (src, priority) in (0..).zip([1, 3, 5]) {
        scene.add(src, 3, 2_000_000, Start::At(Instant::ZERO)).priority = Some(priority);
    }
    let outcome = scene.finish();
    // Shares are 1/7, 2/7 and 4/7 of the link, then 1/3 and 2/3, then all of it.
    let took =
        |flow| outcome.flow(flow).fct().expect("the flow finished").as_us_f64() / outcome.flow(flow).ideal.as_us_f64();
    for (flow, times) in (0..).zip([3.0, 2.5, 1.75]) {
        assert!(
            (took(flow) / times - 1.0).abs() < 0.03,
            "flow {flow}: {} times as long as alone, not {times}",
            took(flow)
        );
    }
}

/// Trimmed packets keep the priority of their traffic for credit, and do not get that of headers; nor do requests to
/// send.
#[test]
fn credit_goes_first_to_who_has_the_highest_priority_whatever_is_trimmed() {
    for burst in [Toggle::Auto, Toggle::Off] {
        let all = |others: u32| {
            let scene = speaks_eqds(Scene::new(star(&[link(40, 500); 22]), Series::Irn), burst);
            let mut scene = scene.with(|config| {
                config.transport.tunnels_mut().expect("the transport is EQDS").policy = Policy::Priority;
            });
            scene.add(0, 21, 600_000, Start::At(Instant::ZERO)).priority = Some(5);
            for src in 1..=others {
                let begin = Instant::ZERO + Duration::from_us(4 * u64::from(src));
                scene.add(src, 21, 100_000, Start::At(begin)).priority = Some(1);
            }
            scene.finish()
        };
        let took = |others| all(others).flow(0).fct().expect("the flow finished").as_us_f64();
        let (alone, among) = (took(0), took(20));
        // The other senders' first windows are not paid for by credit.
        assert!(among < alone * 1.3, "{among} us among others, {alone} us alone");
    }
}

#[test]
fn losses_cost_time_and_nothing_else() {
    for burst in [Toggle::Auto, Toggle::Off] {
        let scene = incast(burst).with(|config| {
            lose(config, Affected::All, Chance::ratio(1, 50));
            if let BufferConfig::InputQueued(own) = &mut config.switch.buffer {
                *own = InputQueued { per_port: Setting::Off, ..*own };
            }
        });
        let outcome = scene.finish();
        assert!(outcome.record.timeouts > 0);
        assert_eq!(outcome.record.goodput, Bytes::new(8 * 100_000));
    }
}

/// Adds random losses of one packet in `one_in` on all links.
fn losing(scene: Scene, one_in: u64) -> Scene {
    scene.with(|config| {
        lose(config, Affected::All, Chance::ratio(1, one_in));
        if let BufferConfig::InputQueued(own) = &mut config.switch.buffer {
            *own = InputQueued { per_port: Setting::Off, ..*own };
        }
    })
}

#[test]
fn tunnels_that_rest_are_dropped_and_set_up_again_while_packets_are_lost() {
    for burst in [Toggle::Auto, Toggle::Off] {
        let messages = |life: LifeConfig| {
            let scene = speaks_eqds(Scene::new(star(&[link(40, 500); 4]), Series::Irn), burst).with(|config| {
                config.transport.tunnels_mut().expect("the transport is EQDS").life = life;
            });
            let flows = (0..60u32).map(|turn| (turn % 4, (turn + 1 + turn / 4 % 3) % 4, u64::from(turn)));
            let scene =
                flows.fold(scene, |scene, (src, dst, turn)| scene.flow(src, dst, 20_000, Duration::from_us(70 * turn)));
            losing(scene, 100).finish().record
        };
        let all = Bytes::new(60 * 20_000);
        let for_ever = messages(LifeConfig::default());
        let life = LifeConfig { idle_timeout: Setting::Value(Duration::from_us(150)), ..LifeConfig::default() };
        for memory in [Memory::Number, Memory::Nothing] {
            let told = messages(LifeConfig { memory, ..life });
            let most = messages(LifeConfig { memory, most_tunnels: Setting::Value(1), ..LifeConfig::default() });
            assert_eq!((told.goodput, most.goodput, for_ever.goodput), (all, all, all));
            // Control packets tell of the ends of tunnels; duplicates are rare even so.
            assert!(told.acks_sent > for_ever.acks_sent && most.acks_sent > for_ever.acks_sent);
        }
    }
}

#[test]
fn without_trimming_losses_need_no_timeout() {
    let took = |loss: eqds::LossConfig| {
        let scene = incast(Toggle::Off).with(|config| {
            let eqds = config.transport.tunnels_mut().expect("the transport is EQDS");
            (eqds.loss, eqds.paths, eqds.rto) = (loss, 1, Setting::Value(Duration::from_ms(1)));
        });
        let outcome = losing(scene, 100).finish();
        assert_eq!(outcome.record.goodput, Bytes::new(8 * 100_000));
        (0..8).map(|flow| outcome.delay(flow)).max().expect("some flow finished")
    };
    let timeouts = took(eqds::LossConfig::default());
    let (margin, wait) = (Setting::Value(Duration::from_us(2)), Setting::Value(Duration::from_us(5)));
    let floor = eqds::LossConfig { timeout: Source::Measured, rto_floor: Duration::from_us(20), ..Default::default() };
    for loss in [
        eqds::LossConfig { path_margin: margin, ..floor },
        eqds::LossConfig { gap_wait: wait, ..floor },
        eqds::LossConfig { path_margin: margin, gap_wait: wait, ..floor },
    ] {
        let sooner = took(loss);
        assert!(sooner * 2 < timeouts, "{sooner} instead of {timeouts} with {loss:?}");
    }
}

#[test]
fn flows_know_what_came_twice_whether_they_finish_or_not() {
    let losing_answers = |scene: Scene, seed, end: Option<Duration>| {
        let scene = scene.flow(0, 1, 300_000, Duration::ZERO).with(|config| {
            lose(config, Affected::Ack, Chance::ratio(6, 10));
            config.seed = seed;
            config.stop.time = end;
        });
        scene.run()
    };
    for is_eqds in [false, true] {
        let plain = || Scene::new(star(&[link(40, 500); 2]), Series::Irn);
        let scene = || if is_eqds { speaks_eqds(plain(), Toggle::Auto) } else { plain() };
        let mut all = 0;
        for seed in 1..=8 {
            let whole = losing_answers(scene(), seed, None);
            let end = whole.finish(0).since(Instant::ZERO) - Duration::from_ns(1);
            let cut = losing_answers(scene(), seed, Some(end));
            assert!(cut.flow(0).finish.is_none());
            assert_eq!(cut.flow(0).spurious, whole.flow(0).spurious, "EQDS {is_eqds}, seed {seed}");
            assert_eq!(u64::from(cut.flow(0).spurious), cut.record.spurious_retransmissions);
            all += whole.flow(0).spurious;
        }
        assert!(all > 0, "EQDS {is_eqds}: nothing came twice");
    }
}

#[test]
fn partitions_do_not_change_what_happens() {
    let scene = |threads, partitions| {
        let graph = FatTree { k: 4, link: link(40, 1_000) }.build().expect("a valid fat-tree");
        let scene = speaks_eqds(Scene::new(graph, Series::Irn), Toggle::Auto).parallel(threads, partitions);
        (0..40).fold(scene, |scene, n| scene.flow(n % 16, (n * 7 + 5) % 16, 60_000, Duration::from_us(u64::from(n))))
    };
    let alone = scene(1, 1).finish().record.fingerprint;
    for (threads, partitions) in [(1, 2), (2, 4)] {
        assert_eq!(scene(threads, partitions).finish().record.fingerprint, alone);
    }
}
