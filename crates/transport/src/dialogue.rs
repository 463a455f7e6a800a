//! Scripted exchanges between a test and a sender or receiver, with the time of each line.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_units::{Bytes, Duration, Instant, Psn, Seq};
use selvedge_wire::{Ack, AckKind, Data, Hole, HoleNack};

use crate::congestion::none::NoneConfig;
use crate::{Cx, DataVerdict, Receiver, RecoveryConfig, Scheme, SchemeParams, Sender, SenderParams};

/// The size of every frame: 1,000 bytes, so that 8 Gb/s is one microsecond per frame.
pub(crate) const FRAME: Bytes = Bytes::new(1_000);

/// One line of a script for a sender: an input, or an expected output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Say {
    /// Expected: the sender sends these packets and then no more. "3 4r" is packet 3, and a retransmission of packet 4.
    Sends(&'static str),
    /// Input: an ACK with this expected packet.
    Ack(u64),
    /// Input: a NACK with this expected packet, triggered by the second packet.
    Nack(u64, u64),
    /// Setting: all later acknowledgements echo this send time, in microseconds. Without this line, they echo the time
    /// of their arrival.
    Echo(u64),
    /// Input: a NACK of MELO with this expected packet, and with holes, each as first packet and length.
    Holes(u64, &'static [(u64, u16)]),
    /// Input: the sender's timers are polled, and those that are due fire.
    Wake,
    /// Expected: the sender asks to be woken at this time, in microseconds.
    Waits(u64),
    /// Expected: the sender does not ask to be woken.
    Rests,
    /// Expected: every packet is acknowledged.
    Done,
    /// Input: the application supplies this many more packets.
    Supply(u64),
}

/// Runs a script, each line at its time in microseconds, with a sender of `packets` packets; returns the sender.
pub(crate) fn sender(params: SenderParams, packets: u64, lines: &[(u64, Say)]) -> Sender {
    // PSNs wrap early in every script.
    let first = Psn::new(Psn::MODULUS - 2);
    let mut sender = Sender::new(&params, first);
    let mut pools = params.recovery.shared();
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
                let segments = core::iter::from_fn(|| sender.poll_transmit(&mut cx, &mut pools, |_| FRAME));
                let sent: Vec<String> = segments
                    .map(|segment| format!("{}{}", segment.seq.index(), if segment.retransmission { "r" } else { "" }))
                    .collect();
                assert_eq!(sent.join(" "), expected, "{place}");
            }
            Say::Ack(expected) => sender.handle_ack(&mut cx, &mut pools, &ack(AckKind::Ack, expected, 0), sent_at),
            Say::Nack(expected, sack) => {
                sender.handle_ack(&mut cx, &mut pools, &ack(AckKind::Nack, expected, sack), sent_at);
            }
            Say::Echo(us) => echoed = Some(Instant::ZERO + Duration::from_us(us)),
            Say::Holes(expected, holes) => {
                let mut list = [Hole::NONE; 3];
                for (place, &(start, length)) in list.iter_mut().zip(holes) {
                    *place = Hole { start: Seq::new(start).to_psn(first).get() as u16, length };
                }
                let nack = HoleNack { behind: 0, ..ack(AckKind::Nack, expected, 0).with_holes(list) };
                sender.handle_hole_nack(&mut cx, &mut pools, &nack, now);
            }
            Say::Wake => sender.handle_timeout(&mut cx, &mut pools),
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

/// Returns parameters of a sender without congestion control.
pub(crate) fn with(recovery: impl Into<RecoveryConfig>) -> SenderParams {
    let recovery = recovery.into().params().expect("valid settings");
    SenderParams { recovery, congestion: NoneConfig {}.into(), frame: FRAME }
}

/// A receiver's answer to one data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The verdict on the payload and an ACK with its expected packet.
    Ack(&'static str, u64),
    /// The verdict on the payload and a NACK with its expected packet.
    Nack(&'static str, u64),
    /// The verdict on the payload, without an acknowledgement.
    Silence(&'static str),
}

/// Runs a script with a receiver; each line has the time in microseconds, the packet, and the expected answer.
pub(crate) fn receiver(recovery: impl Into<RecoveryConfig>, lines: &[(u64, u64, Answer)]) {
    let first = Psn::new(Psn::MODULUS - 2);
    let recovery = recovery.into().params().expect("valid settings");
    let mut receiver = Receiver::new(&recovery, first);
    let mut pools = recovery.shared();
    for (number, &(us, seq, answer)) in lines.iter().enumerate() {
        let psn = Seq::new(seq).to_psn(first);
        let data = Data { psn, payload: 1, last: false, retransmission: false, trimmed: false };
        let reply = receiver.handle_data(&mut Cx::at(Instant::ZERO + Duration::from_us(us)), &mut pools, &data, true);
        let fate = match reply.verdict {
            DataVerdict::Accepted(accepted) => {
                assert_eq!(accepted, Seq::new(seq));
                "accepted"
            }
            DataVerdict::Buffered(_) => "buffered",
            DataVerdict::Released { .. } => "released",
            DataVerdict::Duplicate => "duplicate",
            DataVerdict::Refused => "refused",
            DataVerdict::Invalid => "invalid",
        };
        let expected = |ack: Ack| {
            assert!(ack.ecn_echo && ack.sack == psn, "the mark and the PSN come back");
            ack.expected.near(Seq::ZERO, first).expect("the expected packet is near the first").index()
        };
        let heard = match reply.ack {
            Some(ack) if ack.kind == AckKind::Ack => Answer::Ack(fate, expected(ack)),
            Some(ack) => Answer::Nack(fate, expected(ack)),
            None => Answer::Silence(fate),
        };
        assert_eq!(heard, answer, "line {number}, t+{us}us: packet {seq}");
    }
}
