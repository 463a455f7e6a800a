//! Fair queueing at outputs.

use selvedge_sim::Beside;
use selvedge_sim::config::{BufferConfig, FairQueued};
use selvedge_sim::workload::{HostRef, Hosts, Incast, Many, Senders};
use selvedge_telemetry::DropReason;
use selvedge_transport::congestion::CongestionConfig;
use selvedge_transport::congestion::dcqcn::DcqcnConfig;
use selvedge_transport::congestion::dctcp::DctcpConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_units::{Bytes, Duration, Setting};

use crate::support::{Scene, Series, drops, link, star};

fn fair(scene: Scene, config: FairQueued) -> Scene {
    scene.with(|all| all.switch.buffer = BufferConfig::FairQueued(config))
}

/// Returns the shares of the first sender and the mean of the others at the end of a run. Eight senders share a 10 Gb/s
/// output; the first has ten flows, the others one. The run ends long before the first flow does.
fn shares(config: FairQueued) -> (f64, f64) {
    let mut links = vec![link(40, 500); 9];
    links[8] = link(10, 500);
    let mut scene = Scene::new(star(&links), Series::Irn);
    for flow in 0..10 {
        scene = scene.flow(0, 8, 4_000_000, Duration::from_ns(flow * 10));
    }
    for src in 1..8 {
        scene = scene.flow(src, 8, 4_000_000, Duration::ZERO);
    }
    let tcp = TcpConfig { min_rto: Setting::Value(Duration::from_us(500)), ..TcpConfig::default() };
    scene = fair(scene, config).with(|all| {
        all.transport = tcp.into();
        all.stop.time = Some(Duration::from_ms(10));
        all.sample = Some(Duration::from_ms(1));
    });
    let outcome = scene.run();
    let sent = |host: usize| outcome.record.ports[host].bytes.get() as f64;
    (sent(0), (1..8).map(sent).sum::<f64>() / 7.0)
}

#[test]
fn each_flow_gets_the_same() {
    let per_port = Setting::Value(Bytes::new(200_000));
    let (ten, one) = shares(FairQueued { per_port, ..FairQueued::default() });
    assert!((ten / one / 10.0 - 1.0).abs() < 0.15, "ten flows take ten times as much as one: {ten} {one}");
}

#[test]
fn what_takes_most_gives_way() {
    let per_port = Setting::Value(Bytes::new(50_000));
    let scene = Scene::new(star(&[link(40, 500); 3]), Series::Irn);
    // One long message at line rate, and short ones beside it.
    let mut scene = fair(scene, FairQueued { per_port, ..FairQueued::default() }).flow(0, 2, 2_000_000, Duration::ZERO);
    for n in 0..20 {
        scene = scene.flow(1, 2, 3_000, Duration::from_us(5 + 15 * n));
    }
    let outcome = scene.finish();
    for id in 1..21 {
        assert!(outcome.delay(id) < Duration::from_us(3), "flow {id} waits for few packets: {:?}", outcome.delay(id));
    }
}

#[test]
fn limits_hold() {
    let frame = Bytes::new(1_024 + 62);
    for (per_port, per_flow) in [(20, None), (1_000, Some(5))] {
        let room = |frames: u64| Setting::Value(frame * frames);
        let config = FairQueued {
            per_port: room(per_port),
            per_flow: per_flow.map_or(Setting::Off, room),
            ..FairQueued::default()
        };
        let scene = fair(Scene::new(star(&[link(40, 500); 9]), Series::Irn), config);
        let outcome = (0..8).fold(scene, |scene, src| scene.flow(src, 8, 100_000, Duration::ZERO)).finish();
        // One more packet is at the port already; each flow has a queue, unless two share one.
        let most = frame * (per_flow.map_or(per_port, |per_flow| per_flow * 8) + 2);
        assert!(outcome.record.ports[17].egress_peak <= most, "{}", outcome.record.ports[17].egress_peak);
        assert!(drops(&outcome.record.data_drops, DropReason::BufferFull) > 0);
    }
}

/// Marking depends on a flow's own queue: flows that react to marks lose no throughput to flows that do not.
#[test]
fn who_heeds_marks_has_as_much_as_who_does_not() {
    for congestion in [CongestionConfig::from(DctcpConfig::default()), DcqcnConfig::default().into()] {
        let incast = Incast {
            size: Bytes::new(40_000_000),
            senders: Senders::Hosts(Hosts(vec![HostRef::Number(0)])),
            connections: 1,
            receiver: Some(HostRef::Number(2)),
            start: Duration::ZERO,
            stagger: Duration::ZERO,
            jitter: Duration::ZERO,
            repeat: 1,
            interval: None,
        };
        let per_port = Setting::Value(Bytes::new(400_000));
        let scene = Scene::new(star(&[link(10, 1_000); 3]), Series::Irn).flow(1, 2, 40_000_000, Duration::ZERO);
        let outcome = fair(scene, FairQueued { per_port, ..FairQueued::default() })
            .with(|all| {
                all.workload.incast = Many::from(incast);
                all.beside = Some(Beside { workloads: vec!["incast".into()], class: None, tcp: TcpConfig::default() });
                all.transport.rdma_mut().expect("queue pairs").congestion = congestion;
                all.stop.time = Some(Duration::from_ms(4));
            })
            .run();
        let sent = |host: usize| outcome.record.ports[host].bytes.get() as f64;
        let share = sent(1) / (sent(0) + sent(1));
        assert!(share > 0.45, "{congestion:?}: {share}");
    }
}
