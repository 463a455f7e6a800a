//! Nanoseconds per packet of each engine, in packets per second.
//!
//! `cargo bench -p selvedge-transport`. The yardstick for IRN's receive path is the paper's FPGA:
//! 45.45 million packets/s (section 6.2).

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use selvedge_testkit::{Impairment, Transfer};
use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::{
    AnyCongestion, Congestion, CongestionConfig, Cx, Fabric, Receiver, RecoveryConfig, RecoveryParams, Scheme,
    SchemeParams, Sender, SenderParams, Signal, Tuning,
};
use selvedge_units::{Bytes, Chance, Domain, Duration, Instant, Psn, Rate, Rng, Seq, SwitchId};
use selvedge_wire::{Ack, AckKind, Data, Hop, PathRecord};

fn main() {
    divan::main();
}

const FLOWS: usize = 512;
const PACKETS: u64 = 1 << 18;

/// Every recovery with its default settings in the paper's default fabric.
fn recovery(name: &str) -> RecoveryParams {
    let mut config = RecoveryConfig::all().find(|config| config.name() == name).expect("a name from the list");
    config.resolve(&Fabric::IRN_PAPER);
    config.params().expect("valid settings")
}

fn params(name: &str) -> SenderParams {
    SenderParams { recovery: recovery(name), congestion: NoneConfig {}.into(), frame: Transfer::FRAME }
}

fn sender(name: &str) -> Sender {
    let mut sender = Sender::new(&params(name), Psn::new(0));
    sender.supply(PACKETS * 2);
    sender
}

fn data(seq: u64) -> Data {
    Data { psn: Seq::new(seq).to_psn(Psn::new(0)), payload: 1024, last: false, retransmission: false, trimmed: false }
}

/// `poll_transmit`, `handle_ack`, `poll_timeout` per packet; 32 in flight; a random flow each time.
#[divan::bench(args = RecoveryConfig::NAMES)]
fn send_in_order(bencher: Bencher<'_, '_>, name: &str) {
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| {
            let mut senders = vec![sender(name); FLOWS];
            let mut pools = recovery(name).shared();
            let mut cx = Cx::at(Instant::ZERO);
            for sender in &mut senders {
                for _ in 0..32 {
                    sender.poll_transmit(&mut cx, &mut pools, |_| Transfer::FRAME);
                }
            }
            (senders, pools, vec![0u32; FLOWS], Rng::stream(1, Domain::Impairment, 0))
        })
        .bench_local_refs(|(senders, pools, acked, rng)| {
            let mut now = Instant::ZERO;
            for _ in 0..PACKETS {
                let flow = rng.below(FLOWS as u64) as usize;
                now += Duration::from_ns(216);
                let mut cx = Cx::at(now);
                acked[flow] += 1;
                let expected = Psn::new(acked[flow]);
                let ack = Ack { kind: AckKind::Ack, ecn_echo: false, expected, sack: expected, msn: 0 };
                senders[flow].handle_ack(&mut cx, pools, &ack, now);
                black_box(senders[flow].poll_transmit(&mut cx, pools, |_| Transfer::FRAME));
                black_box(senders[flow].poll_timeout());
            }
        });
}

/// Measures congestion control per acknowledgement: the acknowledgement (one in sixteen marked, round
/// trips around the target), a look at window and rate, and what else it hears on the way: the packet that
/// follows, a CNP and a loss at times, its timers, five switches' telemetry. A random flow each time; "none" is
/// the loop itself.
#[divan::bench(args = CongestionConfig::NAMES)]
fn acknowledge(bencher: Bencher<'_, '_>, name: &str) {
    const ACKS: u64 = 1 << 16;
    let mut config = CongestionConfig::all().find(|config| config.name() == name).expect("a name from the list");
    config.resolve(&Fabric::IRN_PAPER);
    let has_telemetry = config.needs().telemetry;
    let params = config.params().expect("valid settings");
    bencher
        .counter(ItemsCount::new(ACKS))
        .with_inputs(|| (vec![AnyCongestion::from(&params); FLOWS], Rng::stream(3, Domain::Impairment, 0)))
        .bench_local_refs(|(flows, rng)| {
            let mut now = Instant::ZERO;
            let mut path = PathRecord::EMPTY;
            for packet in 0..ACKS {
                now += Duration::from_ns(216);
                let flow = &mut flows[rng.below(FLOWS as u64) as usize];
                if has_telemetry && packet % 64 == 0 {
                    path = record(now, packet);
                }
                let mut cx = Cx::at(now);
                let acked = Seq::new(packet / FLOWS as u64);
                flow.on_signal(
                    &mut cx,
                    Signal::Acked {
                        bytes: Transfer::FRAME,
                        rtt: Duration::from_us(25 + packet % 32),
                        in_flight: Bytes::from_kb(120),
                        marked: packet % 16 == 0,
                        acked,
                        sent: acked + 100,
                    },
                );
                if has_telemetry {
                    flow.handle_telemetry(black_box(&path));
                }
                if packet % 64 == 0 {
                    flow.on_signal(&mut cx, Signal::Cnp);
                } else if packet % 1024 == 1 {
                    flow.on_signal(&mut cx, Signal::Lost);
                }
                if flow.deadline() <= now {
                    flow.handle_timeout(&mut cx);
                }
                if black_box(flow.rate()) != Rate::MAX {
                    flow.on_signal(&mut cx, Signal::Sent { bytes: Transfer::FRAME });
                }
                black_box(flow.window());
            }
        });
}

/// Returns what the switches of a long path write; another link is the fullest each time.
fn record(now: Instant, packet: u64) -> PathRecord {
    const PS_PER_BYTE: u64 = 200;
    let mut record = PathRecord::EMPTY;
    for hop in 0..5 {
        let turn = (packet / 64 + u64::from(hop) * 3) % 5;
        let (busy, queue) = ((packet * 1_080 + turn * 4_000) * PS_PER_BYTE, turn * 500 * PS_PER_BYTE);
        record.push(SwitchId(hop), Hop { at: now, busy: Duration::from_ps(busy), queue: Duration::from_ps(queue) });
    }
    record
}

/// A whole flow with 1 % of its data lost, sender and receiver, in virtual time.
#[divan::bench(args = RecoveryConfig::NAMES)]
fn transfer_with_loss(bencher: Bencher<'_, '_>, name: &str) {
    use selvedge_testkit::{Link, Odds, World};
    const FLOW: u64 = 20_000;
    let odds =
        Odds { drop: Chance::ratio(1, 100), duplicate: Chance::NEVER, late: Chance::NEVER, late_by: Duration::ZERO };
    bencher
        .counter(ItemsCount::new(FLOW))
        .with_inputs(|| Transfer {
            forward: Impairment::random(1, 0, odds),
            ..Transfer::of_packets(FLOW, params(name))
        })
        .bench_values(|transfer| Link::default().run(transfer));
}

/// Every packet is the expected one.
#[divan::bench(args = RecoveryConfig::NAMES)]
fn receive_in_order(bencher: Bencher<'_, '_>, name: &str) {
    receive(bencher, name, |index| index);
}

/// In runs of a hundred packets the first was lost and arrives last: 99 % are out of order.
#[divan::bench(args = RecoveryConfig::NAMES)]
fn receive_out_of_order(bencher: Bencher<'_, '_>, name: &str) {
    receive(bencher, name, |index| index / 100 * 100 + (index + 1) % 100);
}

/// Arrivals as in the authors' trace of a 40 Gb/s incast: 59 % are out of order. Of twenty-two packets eight
/// arrive in order; then one was lost, and arrives behind the thirteen that follow it.
#[divan::bench(args = RecoveryConfig::NAMES)]
fn receive_mixed(bencher: Bencher<'_, '_>, name: &str) {
    receive(bencher, name, |index| match (index / 22 * 22, index % 22) {
        (run, at @ 0..8) => run + at,
        (run, 21) => run + 8,
        (run, at) => run + at + 1,
    });
}

/// One operation of MELO's bits pool, and what a receiver does around it: at ten receivers, whose bitmaps fit the
/// pool together, the first of 64 packets was lost and arrives last.
#[divan::bench]
fn melo_bits_pool(bencher: Bencher<'_, '_>) {
    const RECEIVERS: u64 = 10;
    const RUN: u64 = 64;
    let melo = recovery("melo");
    let receivers = vec![Receiver::new(&melo, Psn::new(0)); RECEIVERS as usize];
    let arrivals: Vec<(usize, Data)> = (0..PACKETS)
        .map(|nth| {
            let (flow, index) = (nth % RECEIVERS, nth / RECEIVERS);
            (flow as usize, data(index / RUN * RUN + (index + 1) % RUN))
        })
        .collect();
    let inputs = || (receivers.clone(), melo.shared());
    bencher.counter(ItemsCount::new(PACKETS)).with_inputs(inputs).bench_local_refs(|(receivers, pools)| {
        let mut cx = Cx::at(Instant::ZERO);
        for (flow, data) in &arrivals {
            black_box(receivers[*flow].handle_data(&mut cx, pools, data, false));
        }
        assert_eq!((pools.melo.exhausted, pools.melo.middle), (0, 0), "everything fits");
    });
}

/// At fifty receivers, as in that trace, packets arrive in random interleaving; each flow's in the
/// order that `nth` names.
fn receive(bencher: Bencher<'_, '_>, name: &str, nth: impl Fn(u64) -> u64) {
    const RECEIVERS: usize = 50;
    let mut rng = Rng::stream(2, Domain::Impairment, 0);
    let mut arrived = [0; RECEIVERS];
    let arrivals: Vec<(usize, Data)> = (0..PACKETS)
        .map(|_| {
            let flow = rng.below(RECEIVERS as u64) as usize;
            arrived[flow] += 1;
            (flow, data(nth(arrived[flow] - 1)))
        })
        .collect();
    let receivers = vec![Receiver::new(&recovery(name), Psn::new(0)); RECEIVERS];
    let inputs = || (receivers.clone(), recovery(name).shared());
    bencher.counter(ItemsCount::new(PACKETS)).with_inputs(inputs).bench_local_refs(|(receivers, pools)| {
        let mut cx = Cx::at(Instant::ZERO);
        for (flow, data) in &arrivals {
            black_box(receivers[*flow].handle_data(&mut cx, pools, data, false));
        }
    });
}
