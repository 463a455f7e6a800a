//! Nanoseconds per packet of NetRT's engines, in packets per second: what a top-of-rack switch adds to forwarding.
//!
//! `cargo bench -p selvedge-transport --bench netrt`. 512 flows of 32 hosts, a random flow each time, so that
//! state is found anew for each packet. The goal is 25 ns for the work of one ToR on one packet (40 million/s).

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use selvedge_transport::Fabric;
use selvedge_transport::netrt::{DstTor, Flow, ForwardingDecision, NetRtConfig, Passing, Settings, SrcTor, Tracked};
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Psn, QpNumber, Rate, Rng};

fn main() {
    divan::main();
}

const PORTS: u32 = 32;
const FLOWS: usize = 512;
const PACKETS: u64 = 1 << 18;
/// Every so many packets of a flow one is lost.
const LOSS: u32 = 100;
/// A full frame at 3.2 Tb/s: 32 hosts at 100 Gb/s.
const APART: Duration = Duration::from_ps(2_700);

fn settings() -> Settings {
    let rate = Rate::from_gbps(100);
    let base_rtt = Duration::from_us(8);
    let mut config = NetRtConfig { enabled: true, ..NetRtConfig::default() };
    config.resolve(&Fabric { bdp: Bytes::from_kb(100), line_rate: rate, base_rtt, ..Fabric::IRN_PAPER });
    config.params().expect("valid settings")
}

fn flow(number: usize) -> Flow {
    Flow { src: HostId(number as u32 % PORTS), dst: HostId(PORTS + number as u32 % PORTS), qp: QpNumber(number as u32) }
}

fn passing(number: usize, psn: u32) -> Passing<u32> {
    let port = (number as u32 % PORTS) as u16;
    Passing { handle: psn, bytes: 1_086, class: 0, port, room: u64::MAX, first: Psn::new(0), psns: 1 }
}

/// Which flow each packet belongs to, and its number there.
fn packets() -> Vec<(usize, u32)> {
    let mut rng = Rng::stream(4, Domain::Impairment, 0);
    let mut sent = [0; FLOWS];
    let next = |_| {
        let flow = rng.below(FLOWS as u64) as usize;
        sent[flow] += 1;
        (flow, sent[flow] - 1)
    };
    (0..PACKETS).map(next).collect()
}

fn src_tor() -> SrcTor<u32> {
    SrcTor::new(settings(), std::iter::repeat_n(Rate::from_gbps(100), PORTS as usize))
}

/// The source ToR: finds the flow, evicts the oldest duplicate from the full pool of the port, adds one.
#[divan::bench]
fn source(bencher: Bencher<'_, '_>) {
    let packets = packets();
    bencher.counter(ItemsCount::new(PACKETS)).with_inputs(src_tor).bench_local_refs(|tor| {
        let mut now = Instant::ZERO;
        for &(of, psn) in &packets {
            now += APART;
            tor.handle_data(now, flow(of), Psn::new(psn), &passing(of, psn), &mut |_| ());
            black_box(tor.poll_timeout());
        }
    });
}

/// The destination ToR, everything in order.
#[divan::bench]
fn destination_in_order(bencher: Bencher<'_, '_>) {
    let packets = packets();
    let tor = || DstTor::new(settings(), PORTS as usize);
    bencher.counter(ItemsCount::new(PACKETS)).with_inputs(tor).bench_local_refs(|tor: &mut DstTor<u32>| {
        let mut now = Instant::ZERO;
        for &(of, psn) in &packets {
            now += APART;
            black_box(tor.handle_data(now, flow(of), Psn::new(psn), passing(of, psn), false));
            black_box(tor.poll_output());
            black_box(tor.poll_timeout());
        }
    });
}

/// The destination ToR, one packet in a hundred lost: its copy comes behind the next four of its flow, which are
/// held, asked for, and released.
#[divan::bench]
fn destination_with_loss(bencher: Bencher<'_, '_>) {
    let late = |psn: u32| psn % LOSS == LOSS - 5;
    let packets: Vec<(usize, u32, bool)> = packets()
        .into_iter()
        .flat_map(|(of, psn)| {
            let copy = (psn >= 4 && late(psn - 4)).then(|| (of, psn - 4, true));
            (!late(psn)).then_some((of, psn, false)).into_iter().chain(copy)
        })
        .collect();
    let tor = || DstTor::new(settings(), PORTS as usize);
    let count = ItemsCount::new(packets.len());
    bencher.counter(count).with_inputs(tor).bench_local_refs(|tor: &mut DstTor<u32>| {
        let mut now = Instant::ZERO;
        let mut released = 0;
        for &(of, psn, is_copy) in &packets {
            now += APART;
            let verdict = tor.handle_data(now, flow(of), Psn::new(psn), passing(of, psn), is_copy);
            assert!(verdict != ForwardingDecision::Drop);
            while let Some(output) = tor.poll_output() {
                released += u32::from(matches!(output, Tracked::Release(_)));
            }
            black_box(tor.poll_timeout());
        }
        assert!(released > 0 && tor.stats().given_up == 0);
    });
}
