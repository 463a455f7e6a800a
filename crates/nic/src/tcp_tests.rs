//! Tests of TCP connections with and without subflows at a shared bottleneck.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::tcp::congestion::{CongestionConfig, lia};
use selvedge_transport::{Cx, Fabric};
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber};
use selvedge_wire::Packet;

use crate::tests::params;
use crate::{Carrier, FlowParams, Message, Nic, NicParams, TcpParams};

/// Service time of a packet at the bottleneck. `WAY` is the delay from there to the receiver, `ROOM` the capacity of
/// the queue in packets.
const SERVICE: Duration = Duration::from_us(1);
const WAY: Duration = Duration::from_us(20);
const ROOM: usize = 60;
/// Size of a flow that does not complete within the test.
const SIZE: Bytes = Bytes::new(1 << 40);

fn speaking(congestion: impl Into<CongestionConfig>, subflows: u8) -> NicParams {
    let mut tcp = TcpConfig { congestion: congestion.into(), subflows, ..TcpConfig::default() };
    tcp.resolve(&Fabric::IRN_PAPER, Bytes::new(1_024));
    let config = tcp.params().expect("valid settings");
    NicParams { flows: FlowParams::Tcp(TcpParams { config, ack_class: 0 }), ..params(1) }
}

/// Two senders and their receivers around one bottleneck.
struct Dumbbell {
    params: [NicParams; 2],
    senders: [Nic; 2],
    receivers: [Nic; 2],
    /// Packets in the queue of the bottleneck. `free_at` is the time at which its link is free.
    queue: VecDeque<Packet>,
    free_at: Instant,
    /// Packets in flight, with their times of arrival.
    under_way: Vec<(Instant, Packet)>,
}

impl Dumbbell {
    fn new(params: [NicParams; 2]) -> Self {
        let mut world = Self {
            senders: [0, 1].map(|n| Nic::new(HostId(n), &params[n as usize])),
            receivers: [2, 3].map(|n| Nic::new(HostId(n), &params[n as usize - 2])),
            params,
            queue: VecDeque::new(),
            free_at: Instant::ZERO,
            under_way: Vec::new(),
        };
        for n in 0..2 {
            let dst = HostId(n as u32 + 2);
            let message = Message { dst, size: SIZE, entropy: 0, links: 2, class: 0, context: 0 };
            let cx = Cx::at(Instant::ZERO);
            let (qp, _) = world.senders[n].open_sender(&cx, &world.params[n], Carrier::Transport, &message);
            assert_eq!(qp, QpNumber(0));
            world.receivers[n].open_receiver(&world.params[n], Carrier::Transport, HostId(n as u32), qp, SIZE, 0);
        }
        world
    }

    /// Runs until `end`; returns the octets that have reached each receiver since `from`.
    fn run(mut self, from: Instant, end: Instant) -> [u64; 2] {
        let mut before = None;
        let mut now = Instant::ZERO;
        while now < end {
            if before.is_none() && now >= from {
                before = Some(self.goodput());
            }
            self.take_in(now);
            self.send(now);
            now = self.next(now);
        }
        let (after, before) = (self.goodput(), before.unwrap_or_default());
        [0, 1].map(|n| after[n] - before[n])
    }

    fn goodput(&self) -> [u64; 2] {
        [0, 1].map(|n| self.receivers[n].stats().goodput)
    }

    fn take_in(&mut self, now: Instant) {
        let (arrived, rest) = core::mem::take(&mut self.under_way).into_iter().partition(|(at, _)| *at <= now);
        self.under_way = rest;
        for (_, packet) in arrived {
            let at = packet.dst.index();
            let nic = if at < 2 { &mut self.senders[at] } else { &mut self.receivers[at - 2] };
            nic.handle_packet(&mut Cx::at(now), &self.params[at % 2], &packet);
        }
        for n in 0..2 {
            self.senders[n].handle_timeout(&mut Cx::at(now), &self.params[n]);
            self.receivers[n].handle_timeout(&mut Cx::at(now), &self.params[n]);
        }
    }

    fn send(&mut self, now: Instant) {
        let mut packet = Packet::BLANK;
        for n in 0..2 {
            while self.senders[n].poll_transmit(&mut Cx::at(now), &self.params[n], 0, &mut packet) {
                if self.queue.len() < ROOM {
                    self.queue.push_back(packet);
                }
            }
            // Acknowledgements do not pass the bottleneck.
            while self.receivers[n].poll_transmit(&mut Cx::at(now), &self.params[n], 0, &mut packet) {
                self.under_way.push((now + WAY, packet));
            }
        }
        if self.free_at <= now
            && let Some(next) = self.queue.pop_front()
        {
            self.free_at = now + SERVICE;
            self.under_way.push((self.free_at + WAY, next));
        }
    }

    /// Returns the time of the next event.
    fn next(&self, now: Instant) -> Instant {
        let served = if self.queue.is_empty() { Instant::NEVER } else { self.free_at };
        let timers = self.senders.iter().chain(&self.receivers).filter_map(Nic::poll_timeout);
        let arrivals = self.under_way.iter().map(|&(at, _)| at);
        timers.chain(arrivals).chain([served]).filter(|&at| at > now).min().unwrap_or(Instant::NEVER)
    }
}

/// Returns the share of the bottleneck that the second sender gets in competition with one TCP connection.
fn share(second: NicParams) -> f64 {
    let first = speaking(lia::Config {}, 1);
    let [first, second] = Dumbbell::new([first, second]).run(at_ms(20), at_ms(200));
    second as f64 / (first + second) as f64
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

#[test]
fn linked_subflows_take_no_more_of_a_bottleneck_than_one_connection() {
    // A single linked connection behaves like TCP.
    let one = share(speaking(selvedge_transport::tcp::congestion::new_reno::Config {}, 1));
    let linked = share(speaking(lia::Config {}, 4));
    let unlinked = share(speaking(selvedge_transport::tcp::congestion::new_reno::Config {}, 4));
    assert!((0.4..0.6).contains(&one), "{one}");
    // Four subflows that are not linked take four fifths, linked ones about one half.
    assert!(unlinked > 0.7, "{unlinked}");
    assert!(linked < 0.62 && linked < unlinked - 0.1, "{linked}");
}

#[test]
fn a_flow_that_is_closed_leaves_nothing() {
    let params = speaking(lia::Config {}, 8);
    let (mut sender, mut receiver) = (Nic::new(HostId(0), &params), Nic::new(HostId(1), &params));
    for _ in 0..3 {
        let message = Message { dst: HostId(1), size: SIZE, entropy: 7, links: 2, class: 0, context: 5 };
        let (qp, slot) = sender.open_sender(&Cx::at(Instant::ZERO), &params, Carrier::Transport, &message);
        receiver.open_receiver(&params, Carrier::Transport, HostId(0), qp, SIZE, 6);
        assert_eq!(sender.close_sender(slot, qp), Some(5));
        assert_eq!(receiver.close_receiver(HostId(0), qp), Some((6, 0)));
        assert_eq!(receiver.close_receiver(HostId(0), QpNumber(qp.0 + 1)), None);
        let mut packet = Packet::BLANK;
        assert!(!sender.poll_transmit(&mut Cx::at(Instant::ZERO), &params, 0, &mut packet));
    }
}
