//! Loss recovery: which packet next, and what does this acknowledgement teach us?
//!
//! An algorithm is a folder with its settings (`Config`), the sender's half (`Send`, a
//! [`Recovery`]) and the receiver's half (`Recv`, an [`Acceptance`]), and one line in the registry
//! at the end of this file. Both halves count packets in [`Seq`]; PSNs are expanded and checked
//! before they get there. Methods that have a body say in which order the others are called, by all schemes alike: so
//! [`AnyRecovery`] and [`AnyAcceptance`] ask once per packet which scheme it is. What the queue pairs of a NIC share
//! ([`OnChip`]) is lent for each call.

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Bytes, Duration, Instant, Psn, Seq, Setting};
use selvedge_wire::{Ack, AckKind, Data, Holes};

use crate::fabric::{Fabric, SettingError};
use crate::footprint::Footprint;
use crate::on_chip::OnChip;
use crate::registry::registry;
use crate::role::{Cx, Next, Reply, Segment, Verdict};

pub mod go_back_n;
mod holes;
pub mod irn;
pub mod melo;
pub(crate) mod rto;
mod timer;

/// The sender's half of a loss-recovery scheme.
pub trait Recovery {
    /// The first packet not yet acknowledged; everything before it has arrived.
    fn acked(&self) -> Seq;
    /// The first packet never sent; everything before it was sent at least once.
    fn sent(&self) -> Seq;
    /// Packets believed to be in the network.
    fn in_flight(&self) -> u64;
    /// Whether a packet waits to be sent again.
    fn has_lost(&self) -> bool;
    /// What to send at `now`. The application has supplied the packets before `supplied`;
    /// `window_open` says whether congestion control would let one more into the network.
    fn next(&self, now: Instant, supplied: Seq, window_open: bool) -> Next;
    /// The packet that [`Recovery::next`] named was sent.
    fn on_sent(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, seq: Seq);
    /// An acknowledgement arrived. Its `expected` is at most [`Recovery::sent`].
    fn on_ack(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, heard: Heard) -> AckOutcome;
    /// As [`Recovery::on_ack`], of a NACK that names holes, newest first. Unchecked: they may be any. A scheme
    /// whose receivers name none ignores it.
    fn on_holes(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, heard: Heard, holes: &[Range<Seq>; 3]) -> AckOutcome {
        let _ = (cx, chip, heard, holes);
        AckOutcome::default()
    }
    /// When to call [`Recovery::on_timeout`]; [`Instant::NEVER`] without a timeout.
    fn deadline(&self) -> Instant;
    /// The deadline has passed. Returns whether that was a timeout; else there is a later one.
    fn on_timeout(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip) -> bool;
    /// The receiver was not ready for the first packet that is not acknowledged, and has dropped it: it is sent again.
    fn on_not_ready(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip);
    /// It will be forgotten: gives back what it holds of the chip's memory.
    fn release(&mut self, chip: &mut OnChip) {
        let _ = chip;
    }

    /// The packet that [`Recovery::next`] names is sent, unless pacing forbids it until `ready`.
    #[inline(always)]
    fn send(
        &mut self,
        cx: &mut Cx<'_>,
        chip: &mut OnChip,
        supplied: Seq,
        window_open: bool,
        ready: Instant,
    ) -> Option<Segment> {
        match self.next(cx.now, supplied, window_open) {
            Next::Send(segment) if cx.now >= ready => {
                self.on_sent(cx, chip, segment.seq);
                Some(segment)
            }
            _ => None,
        }
    }
    /// When it will send if nothing happens ([`Recovery::next`]), and when to call [`Recovery::on_timeout`]; each may
    /// be never.
    #[inline(always)]
    fn outlook(&self, now: Instant, supplied: Seq, window_open: bool) -> (Instant, Instant) {
        let sends_at = match self.next(now, supplied, window_open) {
            Next::Send(_) => now,
            Next::Wait(until) => until,
            Next::Idle => Instant::NEVER,
        };
        (sends_at, self.deadline())
    }
    /// How many packets it will send next, each for the first time, if nothing else happens and its window stays open;
    /// none, where nothing is in flight. Zero is always true.
    #[inline(always)]
    fn train(&self, supplied: Seq) -> u64 {
        let _ = supplied;
        0
    }
    /// So many of them are sent.
    #[inline(always)]
    fn on_train_sent(&mut self, packets: u64) {
        debug_assert_eq!(packets, 0, "nothing was promised");
    }
    /// Expands the PSNs of an acknowledgement, whose packet left at `sent_at`, of a queue pair that began at `first`;
    /// `None` if it names packets never sent.
    #[inline(always)]
    fn expand(&self, cx: &mut Cx<'_>, ack: &Ack, first: Psn, sent_at: Instant) -> Option<Heard> {
        // PSNs are expanded relative to the newest packet: what is in flight lies just before it,
        // even for a scheme whose receiver is silent for long.
        let sent = self.sent();
        let expected = ack.expected.near(sent, first).filter(|&expected| expected <= sent);
        let Some(expected) = expected else {
            cx.trace(|| Trace::AckIgnored { sent });
            return None;
        };
        // A SACK from before the first packet is as meaningless as one for it.
        let sack = if ack.kind == AckKind::Nack { ack.sack.near(sent, first) } else { None };
        Some(Heard { kind: ack.kind, expected, sack: sack.unwrap_or(Seq::ZERO), rtt: cx.now.since(sent_at) })
    }
    /// Expands an acknowledgement, and takes it in.
    #[inline(always)]
    fn hear(
        &mut self,
        cx: &mut Cx<'_>,
        chip: &mut OnChip,
        ack: &Ack,
        first: Psn,
        sent_at: Instant,
    ) -> Option<AckOutcome> {
        let heard = self.expand(cx, ack, first, sent_at)?;
        Some(self.on_ack(cx, chip, heard))
    }
}

/// An acknowledgement, its PSNs expanded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// Positive or negative.
    pub kind: AckKind,
    /// The packet that the receiver expects next. May be older than what is known already.
    pub expected: Seq,
    /// The packet that triggered it, if it is negative. Unchecked: may be any.
    pub sack: Seq,
    /// From that packet's departure until now.
    pub rtt: Duration,
}

/// What an acknowledgement has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckOutcome {
    /// Packets that are known to have arrived since the last one, in order or not.
    pub delivered: u64,
    /// Whether it made the sender begin to repair a loss.
    pub loss: bool,
}

/// The receiver's half: takes each data packet and answers it at most once.
pub trait Acceptance {
    /// The packet expected next: everything before it has arrived.
    fn expected(&self) -> Seq;
    /// Takes packet `seq`; `last` says that it is the last of its message.
    fn on_data(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, seq: Seq, last: bool) -> Answer;
    /// The newest holes, newest first, where NACKs carry them: counted from packet 0.
    fn holes(&self) -> Option<Holes> {
        None
    }
    /// It will be forgotten: gives back what it holds of the chip's memory.
    fn release(&mut self, chip: &mut OnChip) {
        let _ = chip;
    }

    /// For how many of the next packets nothing comes back, if each is expected when it comes.
    #[inline(always)]
    fn unanswered(&self) -> Unanswered {
        Unanswered::NONE
    }
    /// The next packets have come, so many, each when it was expected, where [nothing comes
    /// back](Acceptance::unanswered) for them.
    #[inline(always)]
    fn take_unanswered(&mut self, packets: u64) {
        debug_assert_eq!(packets, 0, "something comes back");
    }

    /// Expands the PSN of a data packet of a queue pair that began at `first`, takes it, and makes its acknowledgement.
    #[inline(always)]
    fn answer(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, data: &Data, marked: bool, first: Psn) -> Reply {
        let Some(seq) = data.psn.near(self.expected(), first) else {
            return Reply { verdict: Verdict::Invalid, ack: None };
        };
        let Answer { verdict, ack } = self.on_data(cx, chip, seq, data.last);
        let expected = self.expected().to_psn(first);
        let ack = ack.map(|kind| Ack { kind, ecn_echo: marked, expected, sack: data.psn, msn: 0 });
        Reply { verdict, ack }
    }
}

/// Packets that a receiver takes without an answer, if they come in order and none is the last of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unanswered {
    /// At most so many, from the one that is expected on.
    pub packets: u64,
    /// Only those that come before this.
    pub before: Instant,
}

impl Unanswered {
    /// Every packet is answered.
    pub const NONE: Self = Self { packets: 0, before: Instant::ZERO };
    /// No packet is answered.
    pub const ALL: Self = Self { packets: u64::MAX, before: Instant::NEVER };
}

/// What the receiver makes of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What to do with the payload.
    pub verdict: Verdict,
    /// What to send back.
    pub ack: Option<AckKind>,
}

impl Answer {
    #[inline]
    pub(crate) const fn new(verdict: Verdict, ack: Option<AckKind>) -> Self {
        Self { verdict, ack }
    }
}

/// What a scheme's settings can say about themselves.
pub trait Scheme {
    /// Replaces every "auto".
    fn resolve(&mut self, fabric: &Fabric);
    /// What is wrong with the resolved settings, if anything is.
    fn check(&self) -> Result<(), SettingError>;
    /// Whether data packets are acknowledged. Without it a sender never knows that it is done.
    fn acknowledges(&self) -> bool;
    /// Whether each data packet is acknowledged, rather than some or none.
    fn acknowledges_each(&self) -> bool {
        self.acknowledges()
    }
    /// Bytes of headers on each data packet that the scheme adds to RoCE's.
    fn extra_header(&self) -> Bytes;
    /// What its state costs on a NIC, by its resolved settings.
    fn footprint(&self) -> Footprint;
    /// What the queue pairs of a NIC share, unused.
    fn on_chip(&self) -> OnChip {
        OnChip::default()
    }
    /// Packets that a reorder buffer holds beside the application's memory, for each queue pair; zero where out
    /// of order packets are placed at once, or not kept.
    fn reorder_slots(&self) -> u32 {
        0
    }
    /// BDP-FC: packets that a flow may have in flight.
    fn bdp_cap(&self) -> Setting<u32>;
}

registry! {
    /// Which loss recovery, with its settings.
    config RecoveryConfig: Scheme {
        fn resolve(&mut self, fabric: &Fabric);
        fn check(&self) -> Result<(), SettingError>;
        fn acknowledges(&self) -> bool;
        fn acknowledges_each(&self) -> bool;
        fn extra_header(&self) -> Bytes;
        fn footprint(&self) -> Footprint;
        fn on_chip(&self) -> OnChip;
        fn reorder_slots(&self) -> u32;
        fn bdp_cap(&self) -> Setting<u32>;
    }
    /// Any loss recovery, sender's half.
    run AnyRecovery: Recovery = Send {
        fn acked(&self) -> Seq;
        fn sent(&self) -> Seq;
        fn in_flight(&self) -> u64;
        fn has_lost(&self) -> bool;
        fn next(&self, now: Instant, supplied: Seq, window_open: bool) -> Next;
        fn on_sent(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, seq: Seq);
        fn on_ack(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, heard: Heard) -> AckOutcome;
        fn on_holes(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, heard: Heard, holes: &[Range<Seq>; 3]) -> AckOutcome;
        fn deadline(&self) -> Instant;
        fn on_timeout(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip) -> bool;
        fn on_not_ready(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip);
        fn release(&mut self, chip: &mut OnChip);
        fn send(
            &mut self, cx: &mut Cx<'_>, chip: &mut OnChip, supplied: Seq, window_open: bool, ready: Instant
        ) -> Option<Segment>;
        fn outlook(&self, now: Instant, supplied: Seq, window_open: bool) -> (Instant, Instant);
        fn train(&self, supplied: Seq) -> u64;
        fn on_train_sent(&mut self, packets: u64);
        fn hear(
            &mut self, cx: &mut Cx<'_>, chip: &mut OnChip, ack: &Ack, first: Psn, sent_at: Instant
        ) -> Option<AckOutcome>;
    }
    /// Any loss recovery, receiver's half.
    run AnyAcceptance: Acceptance = Recv {
        fn expected(&self) -> Seq;
        fn on_data(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, seq: Seq, last: bool) -> Answer;
        fn holes(&self) -> Option<Holes>;
        fn release(&mut self, chip: &mut OnChip);
        fn unanswered(&self) -> Unanswered;
        fn take_unanswered(&mut self, packets: u64);
        fn answer(&mut self, cx: &mut Cx<'_>, chip: &mut OnChip, data: &Data, marked: bool, first: Psn) -> Reply;
    }
    algorithms {
        /// What RoCE NICs do: the receiver keeps nothing out of order.
        "go-back-n" => GoBackN(go_back_n),
        /// Selective retransmission (IRN, SIGCOMM'18).
        "irn" => Irn(irn),
        /// Selective retransmission with bitmaps from a pool that queue pairs share (MELO, APNet'17).
        "melo" => Melo(melo),
    }
}
