//! Tests of applications' queue pairs that send through tunnels.

use alloc::vec::Vec;

use selvedge_transport::congestion::dcqcn::DcqcnConfig;
use selvedge_transport::eqds::eqif::{BackPressure, CnpConfig, PauseConfig};
use selvedge_transport::eqds::{EqdsConfig, LifeConfig, Service};
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::{CongestionConfig, Cx, Fabric, FeedbackConfig, RecoveryConfig, Scheme, Tuning};
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber, Setting};
use selvedge_wire::verbs::Headers;

use super::{END, SHARE, World, speaking_with};
use crate::rdma::tests::request;
use crate::rdma::{ConnectionParams, VerbsParams, WireFormat};
use crate::verbs::{Operation, QpOptions, Remote, Status};
use crate::{Nic, NicParams};

const CONNECTION: ConnectionParams = ConnectionParams {
    send_requests: 128,
    receive_requests: 8,
    reads: 4,
    timeout: 14,
    retries: 7,
    options: QpOptions { credits: false, fence_overlaps: false },
};

/// Returns loss recoveries of queue pairs, the standard's first.
fn recoveries() -> [RecoveryConfig; 3] {
    let irn = IrnConfig {
        timeouts: Timeouts::On,
        rto_high: Setting::Value(Duration::from_ms(5)),
        bdp_cap: Setting::Value(64),
        ..IrnConfig::default()
    };
    let melo = MeloConfig { rto: Setting::Value(Duration::from_ms(5)), ..MeloConfig::default() };
    [super::GoBackNConfig::default().into(), irn.into(), melo.into()].map(|mut recovery: RecoveryConfig| {
        recovery.resolve(&Fabric { line_rate: super::RATE, ..Fabric::IRN_PAPER });
        recovery
    })
}

/// Returns parameters of NICs whose queue pairs send through tunnels.
fn carrying(recovery: RecoveryConfig, congestion: CongestionConfig, change: impl FnOnce(&mut EqdsConfig)) -> NicParams {
    let (overhead, class) = (Bytes::new(90), 0);
    let verbs = VerbsParams {
        recovery: recovery.params().expect("valid settings"),
        congestion: congestion.params().expect("valid settings"),
        feedback: FeedbackConfig::new(&congestion.needs(), true),
        overhead,
        window: 256,
        class,
        format: WireFormat::Selvedge,
    };
    let longest = Bytes::new(Headers::LONGEST as u64);
    let params = speaking_with(None, SHARE, None, |eqds| {
        // Frames are longer than those of flows.
        eqds.eqif.encapsulation = Setting::Value(eqds.encapsulation() + longest);
        change(eqds);
    });
    NicParams { verbs: Some(verbs), ..params }
}

fn none() -> CongestionConfig {
    CongestionConfig::None(Default::default())
}

/// Connects a queue pair of host 0 with one of each other host; returns those of host 0.
fn connect(world: &mut World) -> Vec<QpNumber> {
    let params = &world.params;
    let verbs = params.verbs.expect("RDMA parameters");
    let mut own = Vec::new();
    for other in 1..world.nics.len() {
        let qps = [0, other].map(|n| world.nics[n].create_qp(&verbs, &CONNECTION).expect("a valid configuration"));
        for (at, to) in [(0, 1), (1, 0)] {
            let hosts = [0, other];
            let peer = (HostId(hosts[to] as u32), qps[to]);
            world.nics[hosts[at]].connect_qp(params, &CONNECTION, qps[at], peer, 7).expect("matching queue pairs");
        }
        own.push(qps[0]);
    }
    own
}

fn post(world: &mut World, qp: QpNumber, id: u64, operation: Operation, length: u32) {
    world.nics[0]
        .post(&mut Cx::at(world.now), &world.params, qp, request(id, operation, length))
        .expect("room in the queue");
}

fn write() -> Operation {
    Operation::Write { remote: Remote { address: 0, key: Nic::memory(0, 0).key }, immediate: None }
}

/// Returns the ids of host 0's requests that have completed well.
fn completed(world: &mut World) -> Vec<u64> {
    let done = core::iter::from_fn(|| world.nics[0].poll_completed());
    done.map(|done| (done.status == Status::Success).then_some(done.id).expect("a success")).collect()
}

fn shelved(world: &World) -> Vec<usize> {
    world.nics.iter().map(|nic| nic.eqifs.as_ref().expect("EQIFs").shelf.len()).collect()
}

#[test]
fn each_operation_completes_in_each_kind_of_tunnel() {
    for recovery in recoveries() {
        for service in [Service::Auto, Service::Unordered, Service::Unreliable] {
            for faults in [0, 5, 20] {
                let params = carrying(recovery, none(), |eqds| {
                    if let Some(rdma) = &mut eqds.eqif.rdma {
                        rdma.service = service;
                    }
                });
                let mut world = World::new(params, 2, faults);
                let qp = connect(&mut world)[0];
                let remote = Remote { address: 64, key: Nic::memory(0, 0).key };
                let operations = [
                    (write(), 100_000),
                    (Operation::Read(remote), 50_000),
                    (Operation::Send(Default::default()), 3_000),
                    (Operation::FetchAdd { remote, add: 5 }, 8),
                    (Operation::CompareSwap { remote, compare: 5, swap: 9 }, 8),
                ];
                for (id, (operation, length)) in (0..).zip(operations) {
                    post(&mut world, qp, id, operation, length);
                }
                world.run(Instant::ZERO + Duration::from_ms(2_000));
                let context = alloc::format!("{} {service:?} {faults}", recovery.name());
                assert_eq!(completed(&mut world), [0, 1, 2, 3, 4], "{context}");
                assert_eq!(world.nics[1].ledger().map(|ledger| ledger.word(64)), Some(9), "{context}");
                assert_eq!([world.goodput(0), world.goodput(1)], [50_016, 103_000], "{context}");
                assert_eq!(shelved(&world), [0, 0], "{context}");
            }
        }
    }
}

#[test]
fn requests_and_answers_hear_of_queues_by_cnps() {
    let pressure = BackPressure::Cnp(CnpConfig { k_low: Bytes::new(5_000), ..CnpConfig::default() });
    let slow = |recovery, operation: fn() -> Operation, delay| {
        let congestion = CongestionConfig::from(DcqcnConfig::default());
        let mut resolved = congestion;
        resolved.resolve(&Fabric { line_rate: super::RATE, ..Fabric::IRN_PAPER });
        let params = carrying(recovery, resolved, |eqds| {
            let rdma = eqds.eqif.rdma.as_mut().expect("an RDMA EQIF");
            (rdma.back_pressure, rdma.delay) = (pressure, delay);
        });
        let mut world = World::new(params, 3, 0);
        let qps = connect(&mut world);
        for &qp in &qps {
            post(&mut world, qp, 0, operation(), 1_000_000);
        }
        world.run(END);
        assert_eq!(completed(&mut world), [0, 0]);
        let cnps = |host: usize| world.nics[host].eqif_totals().expect("EQIFs").cnps;
        [cnps(0), cnps(1), cnps(2)]
    };
    let [standard, selective, _] = recoveries();
    let read = || Operation::Read(Remote { address: 0, key: Nic::memory(0, 0).key });
    for delay in [0, 5].map(Duration::from_us) {
        for recovery in [standard, selective] {
            let cnps = slow(recovery, write, delay);
            assert!(cnps[0] > 2 && cnps[1..] == [0, 0], "{cnps:?}");
        }
        let cnps = slow(selective, read, delay);
        assert!(cnps[0] == 0 && cnps[1] + cnps[2] > 2, "{cnps:?}");
    }
}

#[test]
fn a_full_queue_pauses_requests_and_acknowledgements() {
    let pause = BackPressure::Pause(PauseConfig { above: Bytes::new(10_000), ..PauseConfig::default() });
    for recovery in recoveries() {
        let params = carrying(recovery, none(), |eqds| {
            eqds.eqif.rdma.as_mut().expect("an RDMA EQIF").back_pressure = pause;
        });
        let mut world = World::new(params, 3, 0);
        let qps = connect(&mut world);
        for &qp in &qps {
            post(&mut world, qp, 0, write(), 1_000_000);
        }
        world.run(END);
        assert_eq!(completed(&mut world), [0, 0], "{}", recovery.name());
        let totals = world.nics[0].eqif_totals().expect("EQIFs");
        assert!(totals.pauses > 0 && totals.peak < Bytes::new(13_000), "{totals:?}");
    }
}

#[test]
fn headers_of_packets_that_never_arrive_are_dropped() {
    let life = LifeConfig { unreachable_after: Setting::Value(Duration::from_ms(5)), ..LifeConfig::default() };
    for recovery in recoveries() {
        let mut world = World::new(carrying(recovery, none(), |eqds| eqds.life = life), 2, 1_000);
        let qp = connect(&mut world)[0];
        post(&mut world, qp, 0, write(), 100_000);
        world.run(Instant::ZERO + Duration::from_ms(9));
        let totals = world.nics[0].eqif_totals().expect("EQIFs");
        assert!(totals.dropped > 0, "{totals:?}");
        assert_eq!(shelved(&world), [0, 0], "{}", recovery.name());
    }
}
