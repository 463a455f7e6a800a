//! What the fuzz targets call, so that `cargo test` can replay their corpora: engines at the mercy
//! of a peer that says anything at any time.

use selvedge_transport::congestion::fixed::FixedConfig;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig, Nacks};
use selvedge_transport::recovery::irn::{DynamicRto, IrnConfig, Mode, Rto, Timeouts};
use selvedge_transport::{Cx, Next, Receiver, ReceiverConfig, RecoveryConfig, Sender, SenderConfig, Verdict};
use selvedge_units::{Bytes, Duration, Instant, Psn, Rate, Seq, Setting};
use selvedge_wire::{Ack, AckKind, Data};

const FRAME: Bytes = Bytes::new(1_106);

/// Reads numbers from fuzzed bytes; zero when they are used up.
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
    /// Mostly a number close to zero, sometimes any of 24 bits.
    fn distance(&mut self) -> u32 {
        match self.byte() {
            small @ 0..=0xef => u32::from(small),
            _ => u32::from_le_bytes([self.byte(), self.byte(), self.byte(), 0]),
        }
    }
    fn recovery(&mut self) -> RecoveryConfig {
        let cap = [Setting::Value(1), Setting::Value(8), Setting::Value(111), Setting::Off][self.byte() as usize % 4];
        let irn = IrnConfig {
            timeouts: Timeouts::On,
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
        match self.byte() % 10 {
            0 => irn.into(),
            1 => IrnConfig { nack_threshold: 3, ..irn }.into(),
            2 => IrnConfig { retransmit_delay: Duration::from_us(2), ..irn }.into(),
            3 => IrnConfig { mode: Mode::Hls, ..irn }.into(),
            4 => IrnConfig { mode: Mode::Hls, retransmit_delay: Duration::from_us(2), ..irn }.into(),
            5 => go_back_n.into(),
            6 => IrnConfig { sack: false, ..irn }.into(),
            7 => IrnConfig { rto: Rto::Dynamic(dynamic), ..irn }.into(),
            8 => GoBackNConfig { rto_low: Setting::Value(Duration::from_us(100)), ..go_back_n }.into(),
            _ => GoBackNConfig { rto: Setting::Off, acks: Acks::None, bdp_cap: Setting::Off, ..go_back_n }.into(),
        }
    }
    fn congestion(&mut self) -> FixedConfig {
        let window = [Setting::Off, Setting::Value(FRAME * 5)][self.byte() as usize % 2];
        let rate = [Setting::Off, Setting::Value(Rate::from_gbps(7))][self.byte() as usize % 2];
        FixedConfig { window, rate }
    }
}

/// Feeds arbitrary acknowledgements and times to a sender.
pub(crate) fn torment_sender(bytes: &[u8]) {
    let mut script = Script(bytes);
    let (recovery, congestion) = (script.recovery(), script.congestion().into());
    let first = Psn::new(Psn::MODULUS - 100);
    let mut sender = Sender::new(&SenderConfig { recovery, congestion, frame: FRAME }, first);
    let mut now = Instant::ZERO;
    let mut sent = Seq::ZERO;
    while !script.is_over() {
        let acked = sender.acked();
        let action = script.byte();
        match action % 6 {
            0 => sender.supply(u64::from(script.byte())),
            1 | 2 => {
                let segment = sender.poll_transmit(&mut Cx::at(now), |_| FRAME);
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
                sender.on_ack(&mut Cx::at(now), &ack, sent_at);
            }
            _ => {
                now += Duration::from_us(u64::from(script.byte()));
                sender.handle_timeout(&mut Cx::at(now));
                assert!(sender.poll_timeout().is_none_or(|at| at > now), "a timer that is due stays due");
            }
        }
        assert!(sender.acked() >= acked, "acknowledgements are never taken back");
        assert!(sender.acked() <= sent, "nothing is acknowledged before it is sent");
        check_idle_until_timeout(&sender, now);
    }
}

/// "If nothing is fed in, `poll_transmit` returns `None` until the instant that `poll_timeout`
/// named", and is then worth calling, or `handle_timeout` is.
fn check_idle_until_timeout(sender: &Sender, now: Instant) {
    let mut sender = sender.clone();
    while sender.poll_transmit(&mut Cx::at(now), |_| FRAME).is_some() {}
    let wake = sender.poll_timeout();
    assert!(wake.is_none_or(|at| at > now), "to be woken at {wake:?}, which is past");
    let before = wake.map_or(now + Duration::from_ms(1_000), |at| at - Duration::from_ps(1));
    for idle in [now, Instant::from_ps(now.as_ps().midpoint(before.as_ps())), before] {
        let mut cx = Cx::at(idle);
        sender.handle_timeout(&mut cx);
        assert_eq!(sender.poll_transmit(&mut cx, |_| FRAME), None, "before {wake:?}");
        assert_eq!(sender.poll_timeout(), wake, "an early call changes nothing");
    }
    if let Some(at) = wake {
        let mut cx = Cx::at(at);
        sender.handle_timeout(&mut cx);
        let acts = matches!(sender.next(at), Next::Send(_));
        assert!(acts || sender.poll_timeout() != wake, "woken at {at:?} for nothing");
    }
}

/// Feeds arbitrary data to a receiver.
pub(crate) fn torment_receiver(bytes: &[u8]) {
    let mut script = Script(bytes);
    let recovery = script.recovery();
    let first = Psn::new(Psn::MODULUS - 100);
    let mut receiver = Receiver::new(&ReceiverConfig { recovery }, first);
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
        };
        let reply = receiver.on_data(&mut Cx::at(now), &data, false);
        match reply.verdict {
            Verdict::Accepted(seq) => {
                accepted += 1;
                assert_eq!(seq.to_psn(first), data.psn);
                assert!(seq >= expected, "{seq:?} was accepted before");
            }
            Verdict::Duplicate | Verdict::Refused => assert_eq!(receiver.expected(), expected),
            Verdict::Invalid => assert!(reply.ack.is_none() && receiver.expected() == expected),
        }
        assert!(receiver.expected().index() <= accepted, "more is acknowledged than was accepted");
        if let Some(ack) = reply.ack {
            assert_eq!(ack.expected, receiver.expected().to_psn(first));
        }
    }
}
