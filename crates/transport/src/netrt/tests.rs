use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Psn, QpNumber, Rate, Rng, Setting};
use selvedge_wire::Request;

use super::duplicates::{Duplicates, Limits};
use super::*;
use crate::fabric::Fabric;

const FRAME: u32 = 1_000;
const FLOW: Flow = flow(1);

const fn flow(qp: u32) -> Flow {
    Flow { src: HostId(1), dst: HostId(2), qp: QpNumber(qp) }
}

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

fn settings(change: impl FnOnce(&mut NetRtConfig)) -> Settings {
    let mut config = NetRtConfig {
        enabled: true,
        pool: Setting::Value(Bytes::new(10_000)),
        buffer: Setting::Value(Bytes::new(200_000)),
        interval: Setting::Value(Duration::from_us(5)),
        quiet: Setting::Value(Duration::from_ns(3_750)),
        lifetime: Setting::Value(Duration::from_us(20)),
        ..NetRtConfig::default()
    };
    change(&mut config);
    config.check().expect("a valid configuration");
    config.params().expect("valid settings")
}

fn passing(handle: u32) -> Passing<u32> {
    // A flow that begins far from 0 was forgotten in between.
    let first = Psn::new(if handle > WINDOW { handle } else { 0 });
    Passing { handle, bytes: FRAME, class: 0, port: 0, room: u64::MAX, first, psns: 1 }
}

/// A destination ToR with a log of its outputs.
pub(super) struct Tor {
    pub(super) tor: DstTor<u32>,
    pub(super) now: Instant,
    /// PSNs of the forwarded packets.
    pub(super) forwarded: Vec<u32>,
    pub(super) discarded: Vec<u32>,
    /// Requests: the expected PSN, and the bitmap of later arrivals.
    pub(super) requests: Vec<(u32, u128)>,
    room: u64,
}

impl Tor {
    pub(super) fn new() -> Self {
        Self::with(settings(|_| {}))
    }
    fn with(settings: Settings) -> Self {
        let tor = DstTor::new(settings, 1);
        let (forwarded, discarded, requests) = (vec![], vec![], vec![]);
        Self { tor, now: us(0), forwarded, discarded, requests, room: u64::MAX }
    }
    pub(super) fn data(&mut self, psn: u32) -> ForwardingDecision {
        self.arrive(psn, false)
    }
    fn all(&mut self, psns: impl IntoIterator<Item = u32>) {
        for psn in psns {
            self.data(psn);
        }
    }
    fn arrive(&mut self, psn: u32, is_copy: bool) -> ForwardingDecision {
        let packet = Passing { room: self.room, ..passing(psn) };
        let verdict = self.tor.handle_data(self.now, FLOW, Psn::new(psn), packet, is_copy);
        if verdict == ForwardingDecision::Forward {
            self.forwarded.push(psn);
        }
        self.drain();
        verdict
    }
    pub(super) fn unfulfilled(&mut self, psn: u32) {
        self.tor.on_unfulfilled(self.now, FLOW, Psn::new(psn));
        self.drain();
    }
    fn wait_until(&mut self, now: Instant) {
        self.now = now;
        self.tor.handle_timeout(now);
        self.drain();
    }
    fn drain(&mut self) {
        while let Some(output) = self.tor.poll_output() {
            match output {
                Tracked::Release(psn) => self.forwarded.push(psn),
                Tracked::Discard(psn) => self.discarded.push(psn),
                Tracked::Request(flow, request) => {
                    assert_eq!(flow, FLOW);
                    self.requests.push((request.expected().get(), request.arrived()));
                }
            }
        }
    }
}

#[test]
fn what_is_in_order_passes() {
    let mut tor = Tor::new();
    (0..1_000).for_each(|psn| assert_eq!(tor.data(psn), ForwardingDecision::Forward));
    assert!(tor.requests.is_empty() && tor.tor.poll_timeout().is_none());
}

#[test]
fn a_gap_is_asked_for_filled_and_released_in_order() {
    let mut tor = Tor::new();
    tor.all(0..10);
    // 10 and 12 are lost.
    assert_eq!([11, 13, 14].map(|psn| tor.data(psn)), [ForwardingDecision::Held; 3]);
    assert_eq!(tor.requests, [(10, 0b1), (12, 0b1)], "at once, and 12 when that turns out to be missing, too");
    assert_eq!(tor.tor.occupancy()[0].bytes(), 3_000);
    assert_eq!(tor.tor.poll_timeout(), Some(us(5)));
    tor.wait_until(us(5));
    assert_eq!(tor.requests[2..], [(10, 0b1101)]);
    assert_eq!(tor.arrive(10, true), ForwardingDecision::Forward);
    assert_eq!(tor.forwarded[10..], [10, 11]);
    tor.wait_until(us(10));
    assert_eq!(tor.requests[3..], [(12, 0b11)]);
    tor.arrive(12, true);
    assert_eq!(tor.forwarded[10..], [10, 11, 12, 13, 14]);
    tor.wait_until(us(20));
    assert_eq!((tor.requests.len(), tor.tor.poll_timeout()), (4, None), "nothing is missing any more");
    assert_eq!((tor.tor.occupancy()[0].bytes(), tor.tor.occupancy()[0].peak()), (0, 3_000));
}

#[test]
fn a_new_hole_is_asked_for_alone_and_all_are_again_after_an_interval() {
    let mut tor = Tor::new();
    tor.all([0, 2]);
    tor.wait_until(us(4));
    tor.all([4, 7]);
    assert_eq!(tor.requests, [(1, 0b1), (3, 0b1), (5, 0b10)]);
    tor.wait_until(us(5));
    assert_eq!(tor.requests[3..], [(1, 0b10_0101)], "an interval after the first");
    tor.arrive(1, true);
    tor.wait_until(us(10));
    assert_eq!(tor.requests[4..], [(3, 0b1001)]);
}

#[test]
fn whatever_order_packets_come_in_they_leave_in_order() {
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 0);
        let mut tor = Tor::new();
        let mut packets: Vec<(u64, u32)> = (0..1_000).map(|psn| (u64::from(psn) + rng.below(120), psn)).collect();
        packets.sort();
        tor.all(packets.iter().map(|&(_, psn)| psn));
        assert_eq!(tor.forwarded, (0..1_000).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(tor.tor.occupancy()[0].bytes(), 0);
    }
}

#[test]
fn numbers_wrap_at_24_bits() {
    let mut tor = Tor::new();
    let first = Psn::MODULUS - 2;
    tor.data(first);
    tor.all([1, 3, 2].map(|ahead| (first + ahead) % Psn::MODULUS));
    assert_eq!(tor.forwarded, [first, first + 1, 0, 1]);
}

#[test]
fn what_is_not_to_be_had_is_left_to_the_nics() {
    let mut tor = Tor::new();
    tor.all([0, 2, 3, 4]);
    tor.unfulfilled(1);
    assert_eq!(
        (&tor.forwarded[..], &tor.discarded[..]),
        (&[0, 2][..], &[3, 4][..]),
        "2 makes the receiver send a NACK"
    );
    tor.all([5, 6]);
    assert_eq!(tor.forwarded[2..], [5, 6], "nothing is held meanwhile");
    // The sender goes back.
    tor.all(1..8);
    assert_eq!(tor.forwarded[4..], [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(tor.data(9), ForwardingDecision::Held, "and the next gap is NetRT's again");
    assert_eq!(tor.tor.stats().given_up, 1);
}

/// A copy would make the receiver request the next packet, and the sender go back twice.
#[test]
fn once_left_to_the_nics_only_the_sender_ends_it() {
    let mut tor = Tor::new();
    tor.all([0, 2, 3]);
    tor.unfulfilled(1);
    assert_eq!([1, 4].map(|psn| tor.arrive(psn, true)), [ForwardingDecision::Drop; 2]);
    assert_eq!(tor.arrive(5, false), ForwardingDecision::Forward, "still nothing is held");
    tor.all([1, 2]);
    assert_eq!(tor.data(4), ForwardingDecision::Held);
    assert_eq!(tor.tor.stats().surplus, 2);
}

#[test]
fn stale_answers_and_answers_to_others_mean_nothing() {
    let mut tor = Tor::new();
    tor.data(0);
    tor.unfulfilled(1);
    tor.data(2);
    tor.unfulfilled(0);
    assert_eq!(tor.tor.stats().given_up, 0);
    tor.tor.on_unfulfilled(us(0), flow(77), Psn::new(1));
    assert_eq!(tor.data(1), ForwardingDecision::Forward);
    assert_eq!(tor.forwarded, [0, 1, 2]);
}

#[test]
fn beyond_the_bitmap_it_gives_up() {
    let mut tor = Tor::new();
    tor.data(0);
    assert_eq!(tor.data(1 + WINDOW), ForwardingDecision::Held);
    assert_eq!(tor.data(2 + WINDOW), ForwardingDecision::Forward);
    assert_eq!(tor.forwarded, [0, 2 + WINDOW, 1 + WINDOW]);
    assert_eq!(tor.tor.stats().given_up, 1);
}

#[test]
fn held_packets_yield_to_regular_traffic() {
    let mut tor = Tor::new();
    tor.room = 2_500;
    tor.data(0);
    assert_eq!(
        [2, 3, 4].map(|psn| tor.data(psn)),
        [ForwardingDecision::Held, ForwardingDecision::Held, ForwardingDecision::Forward]
    );
    assert_eq!((&tor.forwarded[..], &tor.discarded[..]), (&[0, 4, 2][..], &[3][..]));
}

#[test]
fn copies_that_nobody_needs_do_not_reach_the_nic() {
    let mut tor = Tor::new();
    tor.all([0, 1]);
    assert_eq!((tor.arrive(1, true), tor.arrive(1, false)), (ForwardingDecision::Drop, ForwardingDecision::Forward));
}

#[test]
fn patience_asks_only_for_what_stays_missing() {
    let mut tor = Tor::with(settings(|config| config.patience = Duration::from_us(2)));
    tor.all([0, 2, 1, 4]);
    tor.wait_until(us(2));
    assert_eq!(tor.requests, [(3, 0b1)]);
}

#[test]
fn a_flow_that_has_gone_is_not_asked_for_for_ever() {
    let mut tor = Tor::with(settings(|config| config.idle = Duration::from_us(12)));
    tor.data(1);
    while let Some(at) = tor.tor.poll_timeout() {
        tor.wait_until(at);
    }
    assert_eq!((tor.requests.len(), tor.tor.stats().given_up), (3, 1));
}

#[test]
fn state_is_bounded_and_given_to_others_when_silent() {
    let settings = settings(|config| (config.flows, config.idle) = (2, Duration::from_us(10)));
    let mut tor = DstTor::new(settings, 1);
    let mut data = |now, qp, psn| tor.handle_data(us(now), flow(qp), Psn::new(psn), passing(psn), false);
    assert_eq!([data(0, 1, 0), data(0, 2, 0), data(1, 3, 9)], [ForwardingDecision::Forward; 3]);
    assert_eq!(data(2, 1, 2), ForwardingDecision::Held);
    // Both flows are silent, but a packet of flow 1 is held.
    assert_eq!((data(20, 3, 1), data(20, 4, 1)), (ForwardingDecision::Held, ForwardingDecision::Forward));
    assert_eq!((tor.stats().untracked, tor.flows()), (2, 2));
}

/// Returns a source ToR of one port at 8 Gb/s: a nanosecond per byte.
fn src(change: impl FnOnce(&mut NetRtConfig)) -> SrcTor<u32> {
    SrcTor::new(settings(change), [Rate::from_gbps(8)])
}

fn pass(tor: &mut SrcTor<u32>, flow: Flow, psns: core::ops::Range<u32>) {
    psns.for_each(|psn| tor.handle_data(us(0), flow, Psn::new(psn), &passing(psn), &mut |_| ()));
}

fn request(expected: u32, arrived: u128) -> Request {
    Request::new(Psn::new(expected), arrived)
}

/// Drains the ToR; returns each packet sent and its time in nanoseconds.
fn sent(tor: &mut SrcTor<u32>) -> Vec<(u64, u32)> {
    let mut sent = vec![];
    while let Some(at) = tor.poll_timeout() {
        while let Some((_, psn)) = tor.poll_transmit(at) {
            sent.push((at.as_ps() / 1_000, psn));
        }
    }
    sent
}

#[test]
fn holes_are_sent_again_at_line_rate() {
    let mut tor = src(|_| {});
    pass(&mut tor, FLOW, 0..10);
    // 3 is expected; 5, 8 and 9 have arrived.
    assert_eq!(tor.handle_request(us(0), FLOW, 0, &request(3, 0b11_0010)), None);
    assert_eq!(sent(&mut tor), [(0, 3), (1_000, 4), (2_000, 6), (3_000, 7)]);
    assert_eq!(tor.poll_pause(), None);
    assert_eq!(tor.handle_request(us(9), FLOW, 0, &request(3, 0)), None, "duplicates stay: they may be lost, too");
    assert_eq!(sent(&mut tor).len(), 1);
}

#[test]
fn what_waits_already_is_not_sent_twice() {
    let mut tor = src(|_| {});
    pass(&mut tor, FLOW, 0..3);
    (0..3).for_each(|_| assert_eq!(tor.handle_request(us(0), FLOW, 0, &request(0, 0b10)), None));
    assert_eq!(sent(&mut tor).len(), 2);
}

#[test]
fn what_was_sent_just_now_is_not_sent_again() {
    let mut tor = src(|_| {});
    pass(&mut tor, FLOW, 0..5);
    tor.handle_request(us(0), FLOW, 0, &request(0, 0b10));
    assert_eq!(sent(&mut tor), [(0, 0), (1_000, 1)]);
    // For 3.75 us, the fate of the copy cannot be known.
    assert_eq!(tor.handle_request(us(3), FLOW, 0, &request(0, 0b1010)), None, "it is there");
    assert_eq!(sent(&mut tor), [(2_000, 3)]);
    assert_eq!(tor.handle_request(us(4), FLOW, 0, &request(0, 0b1010)), None);
    assert_eq!(sent(&mut tor), [(3_000, 0)]);
    tor.handle_request(us(6), FLOW, 0, &request(0, 0b1010));
    assert_eq!(sent(&mut tor), [(4_000, 1), (5_000, 3)]);
}

#[test]
fn how_long_a_duplicate_is_not_sent_again_is_a_setting() {
    let value = |ns: u64| Setting::Value(Duration::from_ns(ns));
    let copies = |quiet: Setting<Duration>| {
        let mut tor = src(|config| config.quiet = quiet);
        pass(&mut tor, FLOW, 0..1);
        for at in 0..20 {
            assert_eq!(tor.handle_request(us(at), FLOW, 0, &request(0, 0)), None);
            tor.poll_transmit(us(at));
        }
        tor.stats().retransmissions
    };
    assert_eq!([Setting::Off, value(4_000), value(9_000)].map(copies), [20, 4, 2]);

    let resolved = |interval: Setting<Duration>, quiet: Setting<Duration>| {
        let mut config = NetRtConfig { interval, quiet, ..NetRtConfig::default() };
        config.resolve(&Fabric::IRN_PAPER);
        config.quiet
    };
    assert_eq!(resolved(Setting::Auto, Setting::Auto), value(18_000), "three quarters of the round trip");
    assert_eq!(resolved(value(5_000), Setting::Auto), value(3_750));
    assert_eq!(resolved(value(5_000), value(1)), value(1));
}

#[test]
fn what_lies_behind_a_packet_that_is_gone_is_not_sent() {
    let mut tor = src(|_| {});
    pass(&mut tor, FLOW, 0..3);
    pass(&mut tor, FLOW, 4..10);
    assert_eq!(tor.handle_request(us(0), FLOW, 0, &request(3, 0b100_0010)), Some(Psn::new(3)), "nor 4, 6, 7, 8");
    assert_eq!(sent(&mut tor), []);
    // 1, 2 and 5 wait to be retransmitted when 3 turns out to be gone.
    assert_eq!(tor.handle_request(us(1), FLOW, 0, &request(1, 0b1_0110)), None);
    assert_eq!(tor.handle_request(us(1), FLOW, 0, &request(3, 0b1_0000)), Some(Psn::new(3)));
    assert_eq!(sent(&mut tor), [(0, 1), (1_000, 2)]);
}

#[test]
fn a_sender_is_not_paused_for_what_is_not_sent() {
    let mut tor = src(|config| config.k_low = Bytes::new(3_500));
    pass(&mut tor, FLOW, 0..3);
    pass(&mut tor, FLOW, 4..10);
    assert_eq!(tor.handle_request(us(0), FLOW, 0, &request(4, 0b11_0000)), None);
    assert_eq!(tor.poll_pause(), Some((0, true)), "4 to 8 wait");
    assert_eq!(tor.handle_request(us(0), FLOW, 0, &request(3, 1 << 6)), Some(Psn::new(3)));
    assert_eq!(tor.poll_pause(), Some((0, false)), "it has to send them itself");
}

#[test]
fn without_a_duplicate_the_answer_is_unfulfilled() {
    let mut tor = src(|_| {});
    pass(&mut tor, FLOW, 5..10);
    assert_eq!(tor.handle_request(us(0), FLOW, 0, &request(4, 0b10)), Some(Psn::new(4)));
    assert_eq!(tor.handle_request(us(0), flow(9), 0, &request(7, 0)), Some(Psn::new(7)));
    assert_eq!((tor.stats().requests, tor.stats().unfulfilled), (2, 2));
}

fn limits(most: u64, oldest: u64) -> Limits {
    Limits { most, oldest: us(oldest) }
}

#[test]
fn what_waits_to_be_sent_yields_to_regular_traffic_alone() {
    let mut tor = src(|config| (config.k_low, config.k_high) = (Bytes::new(1_000), Bytes::new(2_000)));
    pass(&mut tor, FLOW, 0..10);
    // The pool is full; the rate law lets the sender go on for a while.
    assert_eq!(tor.handle_request(us(0), FLOW, 0, &request(0, 1 << 3)), None);
    pass(&mut tor, FLOW, 10..30);
    assert_eq!(sent(&mut tor).iter().map(|(_, psn)| *psn).collect::<Vec<_>>(), [0, 1, 2, 3]);
    // Once sent, duplicates are treated like any others.
    pass(&mut tor, FLOW, 30..40);
    assert_eq!(tor.handle_request(us(9), FLOW, 0, &request(3, 0)), Some(Psn::new(3)));
    // If all duplicates wait to be sent, there is no room for more.
    assert_eq!(tor.handle_request(us(9), FLOW, 0, &request(30, 1 << 9)), None);
    pass(&mut tor, FLOW, 40..45);
    assert_eq!(tor.handle_request(us(9), FLOW, 0, &request(40, 0)), Some(Psn::new(40)));
    // Regular traffic needs the buffer.
    tor.handle_data(us(9), FLOW, Psn::new(45), &Passing { room: 2_500, ..passing(45) }, &mut |_| ());
    assert_eq!(tor.kept(), 2_000);
    assert_eq!(sent(&mut tor).iter().map(|(_, psn)| *psn).collect::<Vec<_>>(), [38, 39]);
}

#[test]
fn the_pool_keeps_what_is_asked_for_most() {
    let mut pool = Duplicates::new();
    let add = |pool: &mut Duplicates<u32>, of, requests, psn| {
        pool.add(us(0), (of, requests), Psn::new(psn), &passing(psn), limits(4_000, 0), &mut |_| ());
    };
    let (a, b) = (flow(1), flow(2));
    [(a, 0), (b, 0), (a, 1), (b, 1)].into_iter().for_each(|(of, psn)| add(&mut pool, of, 0, psn));
    add(&mut pool, a, 0, 2);
    assert_eq!(pool.contents(), [(b, 0), (a, 1), (b, 1), (a, 2)], "of equals the oldest goes");
    pool.promote(a, 1);
    assert_eq!(pool.contents(), [(b, 0), (b, 1), (a, 1), (a, 2)]);
    add(&mut pool, a, 1, 3);
    add(&mut pool, b, 0, 2);
    assert_eq!(pool.contents(), [(b, 2), (a, 1), (a, 2), (a, 3)], "b's oldest go first");
    pool.promote(b, 1);
    assert_eq!(pool.contents(), [(a, 1), (a, 2), (a, 3), (b, 2)], "and by age again when both are asked for alike");
}

#[test]
fn when_the_pool_is_full_what_is_old_goes_first() {
    let mut pool = Duplicates::new();
    let add = |pool: &mut Duplicates<u32>, at, (of, requests), psn, oldest| {
        pool.add(us(at), (of, requests), Psn::new(psn), &passing(psn), limits(3_000, oldest), &mut |_| ());
    };
    let (ended, new) = (flow(1), flow(2));
    add(&mut pool, 0, (ended, 7), 0, 0);
    add(&mut pool, 1, (ended, 7), 1, 0);
    add(&mut pool, 50, (new, 0), 0, 40);
    assert_eq!(pool.contents(), [(new, 0), (ended, 0), (ended, 1)], "as long as there is room, everything stays");
    add(&mut pool, 51, (new, 0), 1, 40);
    assert_eq!(pool.contents(), [(new, 0), (new, 1)], "however often it was asked for");
}

#[test]
fn the_pool_behaves_like_a_list_of_duplicates() {
    for seed in 0..100 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 0);
        let (mut pool, mut model) = (Duplicates::new(), Vec::<(Flow, u32)>::new());
        let mut requests = [0; 4];
        for psn in 0..300 {
            let of = rng.below(4) as u32;
            if rng.below(5) == 0 {
                requests[of as usize] += 1;
                pool.promote(flow(of), requests[of as usize]);
            } else {
                pool.add(
                    us(0),
                    (flow(of), requests[of as usize]),
                    Psn::new(psn),
                    &passing(psn),
                    limits(20_000, 0),
                    &mut |_| (),
                );
                if model.len() == 20 {
                    // The oldest of the flow with the fewest requests.
                    let of = |n: &usize| (requests[model[*n].0.qp.0 as usize], *n);
                    let next = (0..20).min_by_key(of).expect("the model has 20 packets");
                    model.remove(next);
                }
                model.push((flow(of), psn));
            }
            let mut expected = model.clone();
            expected.sort_by_key(|(flow, psn)| (requests[flow.qp.0 as usize], *psn));
            assert_eq!(pool.contents(), expected, "seed {seed}");
        }
        assert_eq!(pool.occupancy.peak(), 20_000);
    }
}

#[test]
fn duplicates_yield_to_regular_traffic() {
    let mut tor = src(|_| {});
    pass(&mut tor, FLOW, 0..10);
    tor.handle_data(us(0), FLOW, Psn::new(10), &Passing { room: 3_000, ..passing(10) }, &mut |_| ());
    assert_eq!(tor.occupancy().next().expect("a port").bytes(), 3_000);
    tor.handle_data(us(0), FLOW, Psn::new(11), &Passing { room: 500, ..passing(11) }, &mut |_| ());
    assert_eq!(tor.occupancy().next().expect("a port").bytes(), 0);
}

#[test]
fn in_a_shared_buffer_the_fullest_pool_yields_first() {
    let rates = [Rate::from_gbps(10); 3];
    let mut tor = SrcTor::new(settings(|_| {}), rates);
    for (port, packets) in [(0, 2), (1, 5), (2, 4)] {
        for psn in 0..packets {
            tor.handle_data(
                us(0),
                flow(u32::from(port)),
                Psn::new(psn),
                &Passing { port, ..passing(psn) },
                &mut |_| (),
            );
        }
    }
    assert_eq!(tor.kept(), 11_000);
    tor.yield_to(us(1), 11_000, &mut |_| ());
    assert_eq!(tor.kept(), 11_000, "there is room for all");
    tor.yield_to(us(1), 7_500, &mut |_| ());
    assert_eq!([0, 1, 2].map(|port| tor.kept_of(port)), [2_000, 2_000, 3_000]);
    // A waiting duplicate that was evicted no longer waits.
    tor.handle_request(us(1), flow(0), 0, &request(0, 0b1));
    tor.yield_to(us(1), 0, &mut |_| ());
    assert_eq!((tor.kept(), tor.poll_transmit(us(1))), (0, None));
    assert_eq!(tor.poll_pause(), None);
}

#[test]
fn a_burst_of_losses_is_sent_slowly_and_its_sender_paused() {
    let mut tor = src(|config| {
        config.pool = Setting::Value(Bytes::new(200_000));
        (config.k_low, config.k_high) = (Bytes::new(20_000), Bytes::new(100_000));
    });
    pass(&mut tor, FLOW, 0..100);
    tor.handle_request(us(0), FLOW, 0, &request(0, 1 << 60));
    assert_eq!((tor.poll_pause(), tor.poll_pause()), (Some((0, true)), None));
    let sent = sent(&mut tor);
    assert_eq!(sent.len(), 61);
    // N = 61 KB: 50 % - 41/80 * 49 % of line rate.
    let first = 1_000.0 / (0.5 - 41.0 / 80.0 * 0.49);
    assert!((sent[1].0 as f64 - first).abs() < 2.0, "{}", sent[1].0);
    // N = 20 KB: half of it. Below: all of it.
    assert_eq!(sent[42].0 - sent[41].0, 2_000);
    assert_eq!(sent[43].0 - sent[42].0, 1_000);
    assert_eq!(tor.poll_pause(), Some((0, false)), "the burst has ended");
    assert_eq!(tor.stats().pauses, 1);
}

#[test]
fn the_rate_law_is_that_of_figure_5() {
    let settings = settings(|_| {});
    let line = Rate::from_gbps(100);
    let share = |kb: u64| settings.rate(kb * 1_000, line).0.as_gbps_f64();
    assert_eq!([0, 19].map(share), [100.0; 2]);
    assert_eq!([20, 60, 100, 500].map(share), [50.0, 25.5, 1.0, 1.0]);
}

#[test]
fn times_of_any_length_are_counted() {
    let mut config = NetRtConfig { interval: Setting::Value(Duration::MAX), ..NetRtConfig::default() };
    config.resolve(&Fabric::IRN_PAPER);
    assert_eq!((config.quiet, config.lifetime), (Setting::Value(Duration::MAX / 4), Setting::Value(Duration::MAX)));
    let mut tor = Tor::with(settings(|settings| settings.interval = config.interval));
    tor.now = us(7);
    tor.all([0, 2]);
    assert_eq!((tor.requests.len(), tor.tor.poll_timeout()), (1, Some(Instant::NEVER)), "it is not asked for again");
}

#[test]
fn values_that_cannot_work_are_named() {
    let wrong = |change: fn(&mut NetRtConfig)| {
        let mut config = NetRtConfig::default();
        change(&mut config);
        config.resolve(&Fabric::IRN_PAPER);
        config.check().expect_err("should be refused").key
    };
    assert_eq!(wrong(|config| config.interval = Setting::Off), "interval");
    assert_eq!(wrong(|config| config.k_high = config.k_low), "k-high");
    assert_eq!(wrong(|config| config.k_low = config.k_high), "k-low");
    assert_eq!(wrong(|config| config.max_rate = 1.5), "max-rate");
    assert_eq!(wrong(|config| config.min_rate = 0.6), "min-rate");
    assert_eq!(wrong(|config| config.priority = 8), "priority");
    assert_eq!(wrong(|config| config.flows = 0), "flows");
    assert_eq!(wrong(|config| config.idle = Duration::ZERO), "idle");
}

#[test]
fn each_handle_that_is_not_kept_is_given_back_once() {
    let mut tor = src(|config| config.flows = 2);
    let mut freed = Vec::new();
    for psn in 0..40 {
        let of = flow(psn % 3);
        let room = if psn == 30 { 2_000 } else { u64::MAX };
        tor.handle_data(us(0), of, Psn::new(psn), &Passing { room, ..passing(psn) }, &mut |handle| freed.push(handle));
        if psn == 20 {
            tor.handle_request(us(1), flow(0), 0, &request(12, 1 << 5));
        }
    }
    tor.yield_to(us(2), 1_000, &mut |handle| freed.push(handle));
    let kept = tor.kept() / u64::from(FRAME);
    assert_eq!((kept, freed.len()), (1, 39), "the third flow finds no place in the table");
    freed.sort_unstable();
    freed.dedup();
    assert_eq!(freed.len(), 39);
}

/// Returns a Read request with this PSN, whose answer has `psns` packets.
fn read(tor: &mut Tor, psn: u32, psns: u32) -> ForwardingDecision {
    let verdict = tor.tor.handle_data(tor.now, FLOW, Psn::new(psn), Passing { psns, ..passing(psn) }, false);
    tor.drain();
    verdict
}

#[test]
fn read_requests_take_the_numbers_of_their_answers() {
    let mut tor = Tor::new();
    assert_eq!(read(&mut tor, 0, 64), ForwardingDecision::Forward);
    assert_eq!(tor.data(64), ForwardingDecision::Forward);
    // A lost packet before two Reads and a Write: only that one is requested.
    assert_eq!(read(&mut tor, 66, 30), ForwardingDecision::Held);
    assert_eq!(read(&mut tor, 96, 1), ForwardingDecision::Held);
    assert_eq!(tor.data(97), ForwardingDecision::Held);
    assert_eq!(tor.requests, [(65, (1 << 30) - 1)]);
    tor.arrive(65, true);
    assert_eq!(tor.forwarded[1..], [65, 66, 96, 97]);
    assert_eq!(tor.data(98), ForwardingDecision::Forward);
    // The answer is longer than the window: what follows cannot be held.
    assert_eq!(read(&mut tor, 100, 1_000), ForwardingDecision::Held);
    assert_eq!(tor.data(1_100), ForwardingDecision::Forward);
    assert_eq!(tor.tor.stats().given_up, 1);
    assert_eq!(tor.forwarded[6..], [1_100, 100], "the NIC requests 99");
}

#[test]
fn nothing_held_among_the_numbers_of_an_answer_is_lost_or_forwarded() {
    let mut tor = Tor::new();
    tor.all([5, 7, 9]);
    assert_eq!(read(&mut tor, 0, 8), ForwardingDecision::Forward);
    assert_eq!(tor.discarded, [5, 7]);
    assert_eq!(tor.tor.occupancy()[0].bytes(), u64::from(FRAME));
    assert_eq!(tor.data(8), ForwardingDecision::Forward);
    assert_eq!(tor.forwarded, [8, 9]);
    assert_eq!(tor.tor.occupancy()[0].bytes(), 0);
}

#[test]
fn a_jump_beyond_the_window_begins_a_flow_anew_if_asked() {
    let mut tor = Tor::with(settings(|_| {}).restarting());
    tor.all(0..10);
    // Another connection of the same numbers begins high, and one after it low.
    tor.all([70_000, 70_001, 70_003, 70_002, 500, 501, 503, 502]);
    assert_eq!(tor.forwarded[10..], [70_000, 70_001, 70_002, 70_003, 500, 501, 502, 503]);
    assert_eq!(tor.tor.stats().restarts, 2);
    // While packets are held, one beyond the window is the flow's own.
    tor.all([505, 900]);
    assert_eq!((tor.tor.stats().given_up, tor.tor.stats().restarts), (1, 2));
    // The NIC goes back: far behind, or to the missing packet.
    tor.all([504, 505, 507, 506]);
    assert_eq!(tor.forwarded[18..], [900, 505, 504, 505, 506, 507]);
    // Without, the flow is left to the NICs.
    let mut tor = Tor::new();
    tor.all([0, 70_000, 70_002, 70_001]);
    assert_eq!((tor.forwarded, tor.tor.stats().restarts), (vec![0, 70_000, 70_002, 70_001], 0));
}
