//! Dialogues: what a test says to an engine and hears from it, with the time in the margin.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_units::{Bytes, Duration, Instant, Psn, Seq};
use selvedge_wire::{Ack, AckKind, Data, Hole, HoleNack};

use crate::congestion::none::NoneConfig;
use crate::{CongestionConfig, Cx, Receiver, ReceiverConfig, RecoveryConfig, Scheme, Sender, SenderConfig, Verdict};

/// Frames of 1,000 bytes, so that 8 Gb/s is one microsecond per frame.
pub(crate) const FRAME: Bytes = Bytes::new(1_000);

/// One line of a sender's dialogue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Say {
    /// It sends these packets and then no more: "3 4r" is packet 3, and packet 4 again.
    Sends(&'static str),
    /// It hears an ACK: this is expected next.
    Ack(u64),
    /// It hears a NACK: this is expected next, that has arrived.
    Nack(u64, u64),
    /// What is heard from now on was triggered by packets that were sent at this time, in microseconds; before, by
    /// packets of the same time.
    Echo(u64),
    /// It hears a NACK of MELO: this is expected next, and these are holes, as first packet and length.
    Holes(u64, &'static [(u64, u16)]),
    /// It is woken: its timers may fire.
    Wake,
    /// It asks to be woken at this time, in microseconds.
    Waits(u64),
    /// It asks not to be woken.
    Rests,
    /// Everything is acknowledged.
    Done,
    /// The application supplies more packets.
    Supply(u64),
}

/// Leads a dialogue, each line at its time in microseconds, with a sender of `packets` packets.
pub(crate) fn sender(config: SenderConfig, packets: u64, lines: &[(u64, Say)]) -> Sender {
    // PSNs wrap early in every dialogue.
    let first = Psn::new(Psn::MODULUS - 2);
    let mut sender = Sender::new(&config, first);
    let mut chip = config.recovery.on_chip();
    sender.supply(packets);
    let mut echoed = None;
    for (number, &(us, line)) in lines.iter().enumerate() {
        let now = Instant::ZERO + Duration::from_us(us);
        let mut cx = Cx::at(now);
        let sent_at = echoed.unwrap_or(now);
        let ack = |kind, expected, sack| Ack {
            kind,
            ecn_echo: false,
            expected: Seq::new(expected).to_psn(first),
            sack: Seq::new(sack).to_psn(first),
            msn: 0,
        };
        let place = format!("line {number}, t+{us}us: {line:?}");
        match line {
            Say::Sends(expected) => {
                let segments = core::iter::from_fn(|| sender.poll_transmit(&mut cx, &mut chip, |_| FRAME));
                let sent: Vec<String> = segments
                    .map(|segment| format!("{}{}", segment.seq.index(), if segment.retransmission { "r" } else { "" }))
                    .collect();
                assert_eq!(sent.join(" "), expected, "{place}");
            }
            Say::Ack(expected) => sender.on_ack(&mut cx, &mut chip, &ack(AckKind::Ack, expected, 0), sent_at),
            Say::Nack(expected, sack) => {
                sender.on_ack(&mut cx, &mut chip, &ack(AckKind::Nack, expected, sack), sent_at);
            }
            Say::Echo(us) => echoed = Some(Instant::ZERO + Duration::from_us(us)),
            Say::Holes(expected, holes) => {
                let mut list = [Hole::NONE; 3];
                for (place, &(start, length)) in list.iter_mut().zip(holes) {
                    *place = Hole { start: Seq::new(start).to_psn(first).get() as u16, length };
                }
                let nack = HoleNack { behind: 0, ..ack(AckKind::Nack, expected, 0).with_holes(list) };
                sender.on_hole_nack(&mut cx, &mut chip, &nack, now);
            }
            Say::Wake => sender.handle_timeout(&mut cx, &mut chip),
            Say::Waits(until) => {
                assert_eq!(sender.poll_timeout(), Some(Instant::ZERO + Duration::from_us(until)), "{place}");
            }
            Say::Rests => assert_eq!(sender.poll_timeout(), None, "{place}"),
            Say::Done => assert!(sender.is_done() && sender.is_drained(), "{place}"),
            Say::Supply(packets) => sender.supply(packets),
        }
    }
    sender
}

/// A sender without congestion control.
pub(crate) fn with(recovery: impl Into<RecoveryConfig>) -> SenderConfig {
    SenderConfig { recovery: recovery.into(), congestion: CongestionConfig::None(NoneConfig {}), frame: FRAME }
}

/// What a receiver answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The payload's fate and an ACK.
    Ack(&'static str, u64),
    /// The payload's fate and a NACK.
    Nack(&'static str, u64),
    /// The payload's fate and silence.
    Silence(&'static str),
}

/// Leads a dialogue with a receiver: at this time in microseconds, this packet, this answer.
pub(crate) fn receiver(recovery: impl Into<RecoveryConfig>, lines: &[(u64, u64, Answer)]) {
    let first = Psn::new(Psn::MODULUS - 2);
    let recovery = recovery.into();
    let mut receiver = Receiver::new(&ReceiverConfig { recovery }, first);
    let mut chip = recovery.on_chip();
    for (number, &(us, seq, answer)) in lines.iter().enumerate() {
        let psn = Seq::new(seq).to_psn(first);
        let data = Data { psn, payload: 1, last: false, retransmission: false, trimmed: false };
        let reply = receiver.on_data(&mut Cx::at(Instant::ZERO + Duration::from_us(us)), &mut chip, &data, true);
        let fate = match reply.verdict {
            Verdict::Accepted(accepted) => {
                assert_eq!(accepted, Seq::new(seq));
                "accepted"
            }
            Verdict::Buffered(_) => "buffered",
            Verdict::Released { .. } => "released",
            Verdict::Duplicate => "duplicate",
            Verdict::Refused => "refused",
            Verdict::Invalid => "invalid",
        };
        let expected = |ack: Ack| {
            assert!(ack.ecn_echo && ack.sack == psn, "the mark and the PSN come back");
            ack.expected.near(Seq::ZERO, first).expect("close to the first").index()
        };
        let heard = match reply.ack {
            Some(ack) if ack.kind == AckKind::Ack => Answer::Ack(fate, expected(ack)),
            Some(ack) => Answer::Nack(fate, expected(ack)),
            None => Answer::Silence(fate),
        };
        assert_eq!(heard, answer, "line {number}, t+{us}us: packet {seq}");
    }
}
