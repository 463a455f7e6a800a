//! Stacks that send through EQDS tunnels: TCP and RDMA behind EQIFs, in a fabric that trims and in one that drops.

use selvedge_sim::config::{BufferConfig, InputQueued, RdmaConfig, TransportConfig, Trimming, TunnelledConfig};
use selvedge_sim::fault::Affected;
use selvedge_sim::topology::FatTree;
use selvedge_sim::workload::Start;
use selvedge_transport::congestion::dcqcn::DcqcnConfig;
use selvedge_transport::eqds::eqif::{EqifConfig, RdmaEqif, TcpEqif};
use selvedge_transport::eqds::{EqdsConfig, Policy};
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::tcp::congestion::CongestionConfig;
use selvedge_units::{Bytes, Chance, Duration, Instant, Setting, Toggle};

use crate::support::{Scene, Series, link, lose, star};

/// Stack that sends through tunnels.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Stack {
    Tcp,
    Dctcp,
    Roce,
    RoceDcqcn,
    Irn,
}

impl Stack {
    const ALL: [Self; 5] = [Self::Tcp, Self::Dctcp, Self::Roce, Self::RoceDcqcn, Self::Irn];

    fn transport(self, burst: Toggle) -> TransportConfig {
        let is_tcp = matches!(self, Self::Tcp | Self::Dctcp);
        let eqif = EqifConfig {
            tcp: is_tcp.then(TcpEqif::default),
            rdma: (!is_tcp).then(RdmaEqif::default),
            ..EqifConfig::default()
        };
        let rto = Setting::Value(Duration::from_us(100));
        let tunnels = EqdsConfig { burst, rto, eqif, ..EqdsConfig::default() };
        let recovery = GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() }.into();
        let roce = RdmaConfig { recovery, ..RdmaConfig::default() };
        let stack: selvedge_sim::config::Stack = match self {
            Self::Tcp => TcpConfig::default().into(),
            Self::Dctcp => {
                let congestion = CongestionConfig::Dctcp(Default::default());
                TcpConfig { congestion, ..TcpConfig::default() }.into()
            }
            Self::Roce => roce.into(),
            Self::RoceDcqcn => RdmaConfig { congestion: DcqcnConfig::default().into(), ..roce }.into(),
            Self::Irn => RdmaConfig::default().into(),
        };
        TunnelledConfig::new(tunnels, stack).into()
    }
}

fn through_tunnels(scene: Scene, stack: Stack, burst: Toggle) -> Scene {
    scene.with(|config| {
        config.transport = stack.transport(burst);
        if burst != Toggle::Off {
            config.switch.buffer = BufferConfig::Trimming(Trimming::default());
            config.nic.ack_class = Trimming::default().header_class;
        }
    })
}

/// Returns a scene in which eight hosts send to one at the same time.
fn incast(stack: Stack, burst: Toggle) -> Scene {
    let scene = through_tunnels(Scene::new(star(&[link(40, 500); 9]), Series::Irn), stack, burst);
    (0..8).fold(scene, |scene, src| scene.flow(src, 8, 100_000, Duration::ZERO))
}

#[test]
fn an_incast_of_any_stack_loses_nothing_in_the_fabric() {
    for stack in Stack::ALL {
        for burst in [Toggle::Auto, Toggle::Off] {
            let record = incast(stack, burst).finish().record;
            assert_eq!(record.goodput, Bytes::new(8 * 100_000), "{stack:?}");
            assert_eq!(record.data_drops.total(), 0, "{stack:?}");
            assert_eq!((record.eqif.dropped, record.eqif.strays), (0, 0), "{stack:?}");
            assert!(record.eqif.left >= 8 * 98, "{stack:?}: all of it went through queues");
            assert!(burst == Toggle::Off || record.trims > 0, "{stack:?}");
        }
    }
}

#[test]
fn credit_is_shared_by_the_weights_of_what_tunnels_carry() {
    for stack in [Stack::Roce, Stack::Irn] {
        for burst in [Toggle::Auto, Toggle::Off] {
            let scene = through_tunnels(Scene::new(star(&[link(40, 500); 3]), Series::Irn), stack, burst);
            let mut scene = scene.with(|config| {
                let eqds = config.transport.tunnels_mut().expect("the transport is EQDS");
                eqds.policy = Policy::Weighted([9, 1, 9, 9, 9, 3, 9, 9]);
            });
            for (src, priority) in (0..).zip([1, 5]) {
                scene.add(src, 2, 3_000_000, Start::At(Instant::ZERO)).priority = Some(priority);
            }
            let outcome = scene.finish();
            let took = |flow| outcome.flow(flow).fct().expect("the flow finished").as_us_f64();
            // One flow has three quarters of the link until it is done, when the other has had a quarter of it; the
            // other then has all.
            let ratio = took(1) / took(0);
            assert!((ratio - 2.0 / 3.0).abs() < 0.07, "{stack:?}, {burst:?}: {ratio}");
        }
    }
}

#[test]
fn losses_are_repaired_between_the_ends_of_the_tunnel() {
    for stack in Stack::ALL {
        for burst in [Toggle::Auto, Toggle::Off] {
            let scene = incast(stack, burst).with(|config| {
                lose(config, Affected::All, Chance::ratio(1, 100));
                if let BufferConfig::InputQueued(own) = &mut config.switch.buffer {
                    *own = InputQueued { per_port: Setting::Off, ..*own };
                }
            });
            let record = scene.finish().record;
            assert_eq!(record.goodput, Bytes::new(8 * 100_000), "{stack:?}");
            // The stack does not retransmit what the tunnel retransmits: it notices nothing but delay.
            assert!(record.retransmissions > 0 && record.eqif.dropped == 0, "{stack:?}");
        }
    }
}

#[test]
fn a_window_of_packets_fills_an_idle_path_through_tunnels() {
    let fat_tree = FatTree { k: 4, link: link(40, 2_000) }.build().unwrap();
    let long = |stack| {
        let scene = through_tunnels(Scene::new(fat_tree.clone(), Series::Irn), stack, Toggle::Auto);
        let outcome = scene.flow(0, 15, 10_000_000, Duration::ZERO).finish();
        outcome.flow(0).fct().expect("the flow finished").as_secs_f64()
    };
    // Go-back-N has no window to wait for.
    let (roce, irn) = (long(Stack::Roce), long(Stack::Irn));
    assert!(irn < roce * 1.01, "{irn} {roce}");
}

#[test]
fn what_a_stack_hands_over_at_line_rate_does_not_wait_for_credit_on_an_idle_path() {
    let fat_tree = FatTree { k: 4, link: link(40, 2_000) }.build().unwrap();
    for packets in [10, 50, 200, 2_000] {
        let scene = |list: Scene| list.flow(0, 15, packets * 1_000, Duration::ZERO).finish().flow(0).fct().unwrap();
        let plain = scene(Scene::new(fat_tree.clone(), Series::Roce));
        let carried = scene(through_tunnels(Scene::new(fat_tree.clone(), Series::Roce), Stack::Roce, Toggle::Auto));
        // The overhead consists of the tunnel's headers, and of acknowledgements of acknowledgements, which leave
        // between the data.
        let more = carried.as_secs_f64() / plain.as_secs_f64();
        assert!(more < 1.15, "{packets} packets take {more} times as long");
    }
}

/// Appendix B: "DCTCP maintains full utilization with K=16", where a bandwidth-delay product is 28 packets.
#[test]
fn dctcp_fills_an_idle_path_with_half_a_window_in_its_eqif() {
    let scene = Scene::new(star(&[link(25, 3_200); 2]), Series::Irn).with(|config| config.nic.mtu = Bytes::new(1_500));
    let scene = through_tunnels(scene, Stack::Dctcp, Toggle::Auto).with(|config| {
        let tcp = config.transport.tunnels_mut().and_then(|eqds| eqds.eqif.tcp.as_mut()).expect("TCP has an EQIF");
        (tcp.red.min, tcp.red.max) = (Setting::Value(16), Setting::Value(16));
    });
    let outcome = scene.flow(0, 1, 20_000_000, Duration::ZERO).finish();
    let row = outcome.flow(0);
    let slowdown = row.fct().expect("the flow finished").as_secs_f64() / row.ideal.as_secs_f64();
    assert!(slowdown < 1.15, "{slowdown} times as long as the link alone");
}

/// Section 5: "the aggregate arrival rate matches the incoming link speed", with the control frames that answer the
/// receiver's own acknowledgements.
#[test]
fn stacks_at_one_receiver_have_all_of_its_link_and_are_trimmed_at_the_beginning_alone() {
    let run = |stack, gbps, senders, size| {
        let star = star(&vec![link(gbps, 1_000); senders as usize + 1]);
        let scene = Scene::new(star, Series::Irn).with(|config| config.nic.mtu = Bytes::new(1_500));
        let scene = through_tunnels(scene, stack, Toggle::Auto);
        (0..senders).fold(scene, |scene, src| scene.flow(src, senders, size, Duration::ZERO)).finish().record
    };
    for stack in [Stack::Tcp, Stack::Dctcp] {
        for (gbps, senders) in [(25, 2), (25, 4), (100, 2), (100, 4), (400, 2), (400, 4)] {
            let size = 50_000 * gbps / u64::from(senders);
            // The beginning lasts until the stacks' windows fill the link: 1 ms with two flows of DCTCP at 400 Gb/s,
            // which their losses in slow start leave with less.
            let (short, long) = (run(stack, gbps, senders, 3 * size), run(stack, gbps, senders, 6 * size));
            let more = long.trims - short.trims.min(long.trims);
            let share = more as f64 / (long.data_sent - short.data_sent) as f64;
            // Headers, those of TCP and of the tunnel, take an eighth, and TCP starts slowly.
            let goodput = long.goodput.get() as f64 * 8e3 / long.end.as_ps() as f64;
            let about = format!("{stack:?}, {senders} at {gbps} Gb/s: {share:.4} trimmed, {goodput:.1} Gb/s");
            assert!(share < 0.005 && goodput > 0.8 * gbps as f64, "{about}");
        }
    }
}

/// Returns a scene in which one host sends much to another, whose link is slower.
fn overload(stack: Stack) -> Scene {
    let links = [link(40, 500), link(10, 500)];
    let scene = through_tunnels(Scene::new(star(&links), Series::Irn), stack, Toggle::Auto).with(|config| {
        if let Some(eqds) = config.transport.tunnels_mut() {
            eqds.pull_rate = Setting::Value(link(10, 0).rate);
        }
    });
    (0..4).fold(scene, |scene, _| scene.flow(0, 1, 2_000_000, Duration::ZERO))
}

#[test]
fn tcp_drops_where_its_queue_is_full_and_dctcp_is_marked_before() {
    let tcp = overload(Stack::Tcp).finish().record;
    assert!(tcp.eqif.dropped > 0 && tcp.eqif.marked == 0, "{:?}", tcp.eqif);
    assert!(tcp.eqif.peak <= Bytes::new(100 * (1_024 + 70 + 44)), "{:?}", tcp.eqif);
    let dctcp = overload(Stack::Dctcp).finish().record;
    assert!(dctcp.eqif.marked > 0, "{:?}", dctcp.eqif);
    assert!(dctcp.eqif.waited < tcp.eqif.waited, "{:?} {:?}", dctcp.eqif, tcp.eqif);
}

#[test]
fn rdma_is_slowed_down_and_loses_nothing() {
    let paused = overload(Stack::Roce).finish().record;
    assert!(paused.eqif.pauses > 0 && paused.eqif.cnps == 0, "{:?}", paused.eqif);
    assert!(paused.eqif.peak < Bytes::new(584_000 + 2_000), "{:?}", paused.eqif);
    let told = overload(Stack::RoceDcqcn).finish().record;
    assert!(told.eqif.cnps > 0 && told.eqif.pauses == 0, "{:?}", told.eqif);
    for record in [paused, told] {
        assert_eq!((record.eqif.dropped, record.timeouts), (0, 0));
        assert_eq!(record.goodput, Bytes::new(8_000_000));
    }
}

#[test]
fn partitions_do_not_change_what_happens() {
    for stack in Stack::ALL {
        let scene = |threads, partitions| {
            let graph = FatTree { k: 4, link: link(40, 1_000) }.build().expect("a valid fat-tree");
            let scene =
                through_tunnels(Scene::new(graph, Series::Irn), stack, Toggle::Auto).parallel(threads, partitions);
            (0..40)
                .fold(scene, |scene, n| scene.flow(n % 16, (n * 7 + 5) % 16, 60_000, Duration::from_us(u64::from(n))))
        };
        let alone = scene(1, 1).finish().record.fingerprint;
        for (threads, partitions) in [(1, 2), (2, 4)] {
            assert_eq!(scene(threads, partitions).finish().record.fingerprint, alone, "{stack:?}");
        }
    }
}
