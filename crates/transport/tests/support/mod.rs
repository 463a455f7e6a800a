//! Functions that the fuzz targets call, so that `cargo test` can replay their corpora: engines with a peer that sends
//! arbitrary packets at any time.

pub(crate) mod eqds;

use selvedge_transport::congestion::fixed::{FixedConfig, FixedParams};
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig, Nacks};
use selvedge_transport::recovery::irn::{DynamicRto, IrnConfig, Mode, Rto, Timeouts};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::tcp::congestion::CongestionConfig;
use selvedge_transport::tcp::{Connection, Params, TcpConfig};
use selvedge_transport::{
    Cx, DataVerdict, Fabric, Next, Receiver, RecoveryConfig, RecoveryParams, Scheme, SchemeParams, Sender,
    SenderParams, SharedState, Tuning,
};
use selvedge_units::{Bytes, Duration, Instant, Octet, Psn, Rate, Seq, Setting, TcpSeq};
use selvedge_wire::tcp::{Flags, Segment, SynOptions, Timestamps};
use selvedge_wire::{Ack, AckKind, Data, Hole};

const FRAME: Bytes = Bytes::new(1_106);

/// A reader of numbers from fuzzed bytes, which returns zero after the last byte.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }
    /// Returns mostly a number close to zero, sometimes an arbitrary one of 24 bits.
    fn distance(&mut self) -> u32 {
        match self.byte() {
            small @ 0..=0xef => u32::from(small),
            _ => u32::from_le_bytes([self.byte(), self.byte(), self.byte(), 0]),
        }
    }
    fn recovery(&mut self) -> RecoveryParams {
        let cap = [Setting::Value(1), Setting::Value(8), Setting::Value(111), Setting::Off][self.byte() as usize % 4];
        let irn = IrnConfig {
            timeouts: Timeouts::On,
            rto_low: Setting::Off,
            rto_high: Setting::Value(Duration::from_us(320)),
            bdp_cap: cap,
            ..IrnConfig::default()
        };
        let go_back_n = GoBackNConfig {
            rto: Setting::Value(Duration::from_us(320)),
            acks: Acks::PerPacket,
            nack: Nacks::OncePerGap,
            bdp_cap: cap,
            ..GoBackNConfig::default()
        };
        let initial = Setting::Value(Duration::from_us(320));
        let dynamic = DynamicRto { initial, ..DynamicRto::default() };
        let melo = MeloConfig { rto: Setting::Value(Duration::from_us(320)), bdp_cap: cap, ..MeloConfig::default() };
        let small = MeloConfig { pool_bits: 64, reorder_buffer: Setting::Value(100), ..melo };
        let config: RecoveryConfig = match self.byte() % 12 {
            0 => irn.into(),
            1 => IrnConfig { nack_threshold: 3, ..irn }.into(),
            2 => IrnConfig { retransmit_delay: Duration::from_us(2), ..irn }.into(),
            3 => IrnConfig { mode: Mode::Hls, ..irn }.into(),
            4 => IrnConfig { mode: Mode::Hls, retransmit_delay: Duration::from_us(2), ..irn }.into(),
            5 => go_back_n.into(),
            6 => IrnConfig { sack: false, ..irn }.into(),
            10 => MeloConfig { reorder_buffer: Setting::Value(1024), ..melo }.into(),
            11 => small.into(),
            7 => IrnConfig { rto: Rto::Dynamic(dynamic), ..irn }.into(),
            8 => GoBackNConfig { rto_low: Setting::Value(Duration::from_us(100)), ..go_back_n }.into(),
            _ => GoBackNConfig { rto: Setting::Off, acks: Acks::None, bdp_cap: Setting::Off, ..go_back_n }.into(),
        };
        config.params().expect("valid settings")
    }
    fn tcp(&mut self) -> Params {
        let flags = self.byte();
        let is = |bit: u8| flags >> bit & 1 != 0;
        let congestion = CongestionConfig::all().nth(self.byte() as usize % 6).expect("an index below 6");
        let mut config = TcpConfig {
            congestion,
            mss: Setting::Value(Bytes::new(500)),
            sack: is(0),
            timestamps: is(1),
            limited_transmit: is(2),
            nagle: is(3),
            window_scaling: is(4),
            delayed_ack: if is(5) { Setting::Off } else { Setting::Value(Duration::from_us(100)) },
            receive_buffer: Setting::Value(Bytes::new(500 + u64::from(self.byte()) * 200)),
            ..TcpConfig::default()
        };
        let fabric = Fabric { frame: FRAME, ..Fabric::IRN_PAPER };
        config.resolve(&fabric, Bytes::new(500));
        config.params().expect("valid settings")
    }
    /// Returns a segment with numbers near those of both ends, or arbitrary ones.
    fn segment(&mut self, ours: TcpSeq, theirs: TcpSeq, acknowledged: u64, received: u64) -> Segment {
        let mut place = |base: u64, first: TcpSeq| {
            let distance = u64::from(self.distance()) * 50;
            ((Octet::FIRST + base + distance).to_seq(first), self.byte())
        };
        let (seq, payload) = place(received, theirs);
        let (ack, flags) = place(acknowledged, ours);
        let blocks = [place(acknowledged, ours).0, place(acknowledged, ours).0, place(acknowledged, ours).0];
        let is_syn = flags == 77;
        Segment {
            seq: if payload > 250 { Octet::SYN.to_seq(theirs) } else { seq },
            ack: if flags > 250 { Octet::FIRST.to_seq(ours) } else { ack },
            flags: match flags {
                77 => Flags::SYN,
                78 => Flags::SYN | Flags::ACK,
                79 => Flags::FIN | Flags::ACK,
                80 => Flags::RST,
                81..=90 => Flags::ACK | Flags::ECE | Flags::CWR,
                _ => Flags::ACK,
            },
            window: u16::from(self.byte()) * 60,
            payload: if payload < 100 { 0 } else { u16::from(payload) * 4 },
            syn: if is_syn {
                SynOptions { mss: Some(600), window_scale: Some(self.byte()), sack_permitted: true }
            } else {
                SynOptions::default()
            },
            timestamps: (flags % 8 != 0).then(|| Timestamps { value: u32::from(payload), echo: 0 }),
            sacks: [(blocks[0], blocks[1]), (blocks[1], blocks[2])].into_iter().collect(),
        }
    }
    fn congestion(&mut self) -> FixedParams {
        let window = [Setting::Off, Setting::Value(FRAME * 5)][self.byte() as usize % 2];
        let rate = [Setting::Off, Setting::Value(Rate::from_gbps(7))][self.byte() as usize % 2];
        FixedConfig { window, rate }.params().expect("valid settings")
    }
}

/// Passes arbitrary acknowledgements and times to a sender.
pub(crate) fn torment_sender(bytes: &[u8]) {
    let mut script = Script(bytes);
    let (recovery, congestion) = (script.recovery(), script.congestion().into());
    let first = Psn::new(Psn::MODULUS - 100);
    let mut sender = Sender::new(&SenderParams { recovery, congestion, frame: FRAME }, first);
    let mut pools = recovery.shared();
    let mut now = Instant::ZERO;
    let mut sent = Seq::ZERO;
    while !script.is_over() {
        let acked = sender.acked();
        let action = script.byte();
        match action % 6 {
            0 => sender.supply(u64::from(script.byte())),
            1 | 2 => {
                let segment = sender.poll_transmit(&mut Cx::at(now), &mut pools, |_| FRAME);
                if let Some(segment) = segment {
                    assert!(segment.seq < sender.supplied(), "{segment:?} was never supplied");
                    assert!(segment.seq >= acked, "{segment:?} is acknowledged");
                    assert_eq!(segment.retransmission, segment.seq < sent, "{segment:?}, {sent:?} sent");
                    assert!(segment.seq <= sent, "{segment:?} leaves a gap behind {sent:?}");
                    sent = sent.max(segment.seq + 1);
                }
            }
            3 | 4 => {
                let kind = if action % 6 == 3 { AckKind::Ack } else { AckKind::Nack };
                let psn = |distance| Psn::new(acked.to_psn(first).get().wrapping_add(distance));
                let expected = psn(script.distance());
                let ack = Ack { kind, ecn_echo: action > 127, expected, sack: psn(script.distance()), msn: 0 };
                // The time stamp may lie in the future.
                let sent_at = Instant::from_ps(u64::from(script.byte()) * 1_000_000);
                let script = &mut script;
                if kind == AckKind::Nack && script.byte() > 127 {
                    let holes = [(); 3]
                        .map(|()| Hole { start: psn(script.distance()).get() as u16, length: script.byte().into() });
                    sender.handle_hole_nack(&mut Cx::at(now), &mut pools, &ack.with_holes(holes), sent_at);
                } else {
                    sender.handle_ack(&mut Cx::at(now), &mut pools, &ack, sent_at);
                }
            }
            _ => {
                now += Duration::from_us(u64::from(script.byte()));
                sender.handle_timeout(&mut Cx::at(now), &mut pools);
                assert!(sender.poll_timeout().is_none_or(|at| at > now), "a timer that is due stays due");
            }
        }
        assert!(sender.acked() >= acked, "acknowledgements are never taken back");
        assert!(sender.acked() <= sent, "nothing is acknowledged before it is sent");
        check_idle_until_timeout(&sender, &pools, now);
    }
    sender.release(&mut pools);
    assert_eq!(pools.melo.sending.in_use(), 0, "blocks are left over");
}

/// Checks the contract of `poll_timeout`: without input, `poll_transmit` returns `None` until the instant that
/// `poll_timeout` named, and at that instant calling `poll_transmit` or `handle_timeout` has an effect.
fn check_idle_until_timeout(sender: &Sender, pools: &SharedState, now: Instant) {
    let (mut sender, mut pools) = (sender.clone(), pools.clone());
    while sender.poll_transmit(&mut Cx::at(now), &mut pools, |_| FRAME).is_some() {}
    let wake = sender.poll_timeout();
    assert!(wake.is_none_or(|at| at > now), "to be woken at {wake:?}, which is past");
    let before = wake.map_or(now + Duration::from_ms(1_000), |at| at - Duration::from_ps(1));
    for idle in [now, Instant::from_ps(now.as_ps().midpoint(before.as_ps())), before] {
        let mut cx = Cx::at(idle);
        sender.handle_timeout(&mut cx, &mut pools);
        assert_eq!(sender.poll_transmit(&mut cx, &mut pools, |_| FRAME), None, "before {wake:?}");
        assert_eq!(sender.poll_timeout(), wake, "an early call changes nothing");
    }
    if let Some(at) = wake {
        let mut cx = Cx::at(at);
        sender.handle_timeout(&mut cx, &mut pools);
        let acts = matches!(sender.next(at), Next::Send(_));
        assert!(acts || sender.poll_timeout() != wake, "woken at {at:?} for nothing");
    }
}

/// Passes arbitrary data packets to a receiver.
pub(crate) fn torment_receiver(bytes: &[u8]) {
    let mut script = Script(bytes);
    let recovery = script.recovery();
    let first = Psn::new(Psn::MODULUS - 100);
    let mut receiver = Receiver::new(&recovery, first);
    let mut pools = recovery.shared();
    let mut now = Instant::ZERO;
    let mut accepted = 0;
    while !script.is_over() {
        now += Duration::from_us(u64::from(script.byte()));
        let expected = receiver.expected();
        let base = expected.to_psn(first).get().wrapping_sub(8);
        let data = Data {
            psn: Psn::new(base.wrapping_add(script.distance())),
            payload: 0,
            last: false,
            retransmission: false,
            trimmed: false,
        };
        let reply = receiver.handle_data(&mut Cx::at(now), &mut pools, &data, false);
        match reply.verdict {
            DataVerdict::Accepted(seq) | DataVerdict::Buffered(seq) | DataVerdict::Released { seq, .. } => {
                accepted += 1;
                assert_eq!(seq.to_psn(first), data.psn);
                assert!(seq >= expected, "{seq:?} was accepted before");
            }
            DataVerdict::Duplicate | DataVerdict::Refused => assert_eq!(receiver.expected(), expected),
            DataVerdict::Invalid => assert!(reply.ack.is_none() && receiver.expected() == expected),
        }
        if let DataVerdict::Released { seq, run } = reply.verdict {
            assert_eq!(receiver.expected(), seq + 1 + u64::from(run), "the run ends at what is expected next");
        }
        assert!(receiver.expected().index() <= accepted, "more is acknowledged than was accepted");
        if let Some(ack) = reply.ack {
            assert_eq!(ack.expected, receiver.expected().to_psn(first));
            if let Some(nack) = receiver.with_holes(&ack).filter(|_| ack.kind == AckKind::Nack) {
                assert_eq!(nack.sack(), data.psn, "whoever makes a hole tells of it");
                let holes = nack.holes.map(|hole| hole.packets(receiver.expected(), first));
                assert!(holes.windows(2).all(|pair| pair[1].is_empty() || pair[1].end < pair[0].start), "{holes:?}");
            }
        }
    }
    receiver.release(&mut pools);
    assert_eq!(pools.melo.receiving.in_use(), 0, "blocks are left over");
}

/// Passes arbitrary segments and times to both ends of a TCP connection.
pub(crate) fn torment_connection(bytes: &[u8]) {
    let mut script = Script(bytes);
    let params = script.tcp();
    let (ours, theirs) = (TcpSeq::new(u32::MAX - 3_000), TcpSeq::new(u32::MAX - 5_000));
    let mut end = match script.byte() % 3 {
        0 => Connection::connect(&params, ours),
        1 => Connection::listen(&params, ours),
        _ => Connection::established(&params, ours, theirs),
    };
    let mut now = Instant::ZERO;
    let mut is_closed = false;
    while !script.is_over() {
        let (acknowledged, received) = (end.acknowledged(), end.received());
        match script.byte() % 8 {
            0 if !is_closed => end.supply(u64::from(script.byte()) * 100),
            1 if script.byte() > 240 => {
                end.close();
                is_closed = true;
            }
            2 | 3 => {
                if let Some(sent) = end.poll_transmit(&mut Cx::at(now)) {
                    assert!(u64::from(sent.segment.payload) <= params.mss);
                }
            }
            4..=6 => {
                let segment = script.segment(ours, theirs, acknowledged, received);
                let arrival = end.handle_segment(&mut Cx::at(now), &segment, script.byte() > 200);
                assert!(arrival.fresh <= u64::from(segment.payload), "{arrival:?} of {segment:?}");
                end.read(arrival.in_order);
            }
            _ => {
                now += Duration::from_us(u64::from(script.byte()) * 10);
                end.handle_timeout(&mut Cx::at(now));
            }
        }
        assert!(end.acknowledged() >= acknowledged && end.received() >= received, "nothing is taken back");
        check_quiet_until_timeout(&end, now);
    }
}

/// Checks the contract of `poll_timeout` for a connection, like `check_idle_until_timeout` for a sender.
fn check_quiet_until_timeout(end: &Connection, now: Instant) {
    let mut end = end.clone();
    let mut sent = 0;
    while end.poll_transmit(&mut Cx::at(now)).is_some() {
        sent += 1;
        assert!(sent < 10_000, "it never stops sending");
    }
    let wake = end.poll_timeout();
    assert!(wake.is_none_or(|at| at > now), "to be woken at {wake:?}, which is past");
    let before = wake.map_or(now + Duration::from_ms(1), |at| at - Duration::from_ps(1));
    for idle in [now, before] {
        let mut cx = Cx::at(idle);
        end.handle_timeout(&mut cx);
        assert_eq!(end.poll_transmit(&mut cx), None, "before {wake:?}");
        assert_eq!(end.poll_timeout(), wake, "an early call changes nothing");
    }
    if let Some(at) = wake {
        let mut cx = Cx::at(at);
        end.handle_timeout(&mut cx);
        assert!(end.is_ready() || end.poll_timeout() != wake, "woken at {at:?} for nothing");
    }
}

/// Moves `octets` over a path without loss, a window at a time.
pub(crate) fn stream(params: &Params, octets: u64) {
    let (ours, theirs) = (TcpSeq::new(77), TcpSeq::new(99));
    let mut one = Connection::established(params, ours, theirs);
    let mut other = Connection::established(params, theirs, ours);
    one.supply(octets);
    let mut received = 0;
    let mut now = Instant::ZERO;
    while received < octets {
        now += Duration::from_us(10);
        let mut cx = Cx::at(now);
        while let Some(sent) = one.poll_transmit(&mut cx) {
            assert!(!sent.is_again);
            let arrival = other.handle_segment(&mut cx, &sent.segment, false);
            assert_eq!((arrival.in_order, arrival.fresh), (sent.segment.payload.into(), sent.segment.payload.into()));
            other.read(arrival.in_order);
            received += arrival.in_order;
        }
        while let Some(ack) = other.poll_transmit(&mut cx) {
            one.handle_segment(&mut cx, &ack.segment, false);
        }
    }
    assert!(one.is_acknowledged() && one.acknowledged() == octets && other.received() == octets);
}
