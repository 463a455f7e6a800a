//! Loss recovery: which packet a sender sends next, and what acknowledgements tell about losses.
//!
//! An algorithm is a folder with its settings (`Config`), the sender's half (`Send`, a
//! [`Recovery`]) and the receiver's half (`Recv`, a [`RecoveryReceiver`]), and one line in the registry
//! at the end of this file. Both halves count packets in [`Seq`]; PSNs are expanded and checked before. Trait methods
//! with a body fix the order in which all schemes call the other methods, so that [`AnyRecovery`] and
//! [`AnyRecoveryReceiver`] dispatch once per packet. State that the queue pairs of a NIC share is lent for each
//! call; it is a type of the scheme's own.

use core::ops::Range;

use selvedge_telemetry::{Reordering, Trace};
use selvedge_units::{Bytes, Duration, Instant, Psn, Seq};
use selvedge_wire::{Ack, AckKind, Data, Holes};

use crate::fabric::{Fabric, SettingError};
use crate::footprint::Footprint;
use crate::registry::registry;
use crate::role::{Cx, DataVerdict, Next, Reply, Segment};

pub mod go_back_n;
mod holes;
pub mod irn;
pub mod melo;
pub(crate) mod rto;
mod timer;

/// State of one scheme that the queue pairs of a NIC share: memory on its chip. The NIC owns it and lends it to the
/// engines for each call.
pub trait SharedPart {
    /// Returns whether there is no memory.
    fn is_none(&self) -> bool {
        true
    }
    /// Returns the use and the shortage of the memory.
    fn reordering(&self) -> Reordering {
        Reordering::default()
    }
}

/// Nothing is shared.
impl SharedPart for () {}

/// The sender's half of a loss-recovery scheme.
pub trait Recovery {
    /// State that the senders and receivers of a NIC share; `()` without any.
    type Shared: SharedPart + Default;

    /// Returns the first packet not yet acknowledged; every packet before it has arrived.
    fn acked(&self) -> Seq;
    /// Returns the first packet never sent; every packet before it was sent at least once.
    fn sent(&self) -> Seq;
    /// Returns the number of packets believed to be in flight.
    fn in_flight(&self) -> u64;
    /// Returns whether a packet waits for retransmission.
    fn has_lost(&self) -> bool;
    /// Returns the decision at `now`. The application has supplied the packets before `supplied`; `window_open` says
    /// whether congestion control allows one more packet in flight.
    fn next(&self, now: Instant, supplied: Seq, window_open: bool) -> Next;
    /// Handles the sending of packet `seq`, which [`Recovery::next`] named.
    fn on_sent(&mut self, cx: &mut Cx<'_>, shared: &mut Self::Shared, seq: Seq);
    /// Handles an acknowledgement. Its `expected` is at most [`Recovery::sent`].
    fn handle_ack(&mut self, cx: &mut Cx<'_>, shared: &mut Self::Shared, heard: ParsedAck) -> AckOutcome;
    /// Handles a NACK that names holes, newest first; otherwise like [`Recovery::handle_ack`]. The holes are unchecked
    /// and may be arbitrary. The default, for schemes whose receivers name no holes, ignores the NACK.
    fn handle_holes(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut Self::Shared,
        heard: ParsedAck,
        holes: &[Range<Seq>; 3],
    ) -> AckOutcome {
        let _ = (cx, shared, heard, holes);
        AckOutcome::default()
    }
    /// Returns when to call [`Recovery::handle_timeout`]; [`Instant::NEVER`] without a timeout.
    fn deadline(&self) -> Instant;
    /// Handles the deadline, which has passed. Returns whether it was a timeout; otherwise the deadline was extended.
    fn handle_timeout(&mut self, cx: &mut Cx<'_>, shared: &mut Self::Shared) -> bool;
    /// Handles the notice that the receiver was not ready for the first unacknowledged packet and has dropped it: the
    /// packet is retransmitted.
    fn handle_not_ready(&mut self, cx: &mut Cx<'_>, shared: &mut Self::Shared);
    /// Releases the flow's part of the chip's memory, before the sender is dropped.
    fn release(&mut self, shared: &mut Self::Shared) {
        let _ = shared;
    }

    /// Sends the packet that [`Recovery::next`] names, unless pacing forbids it until `ready`; returns that packet.
    #[inline(always)]
    fn send(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut Self::Shared,
        supplied: Seq,
        window_open: bool,
        ready: Instant,
    ) -> Option<Segment> {
        match self.next(cx.now, supplied, window_open) {
            Next::Send(segment) if cx.now >= ready => {
                self.on_sent(cx, shared, segment.seq);
                Some(segment)
            }
            _ => None,
        }
    }
    /// Returns when the sender will send if no input arrives ([`Recovery::next`]), and when to call
    /// [`Recovery::handle_timeout`]; either may be [`Instant::NEVER`].
    #[inline(always)]
    fn next_times(&self, now: Instant, supplied: Seq, window_open: bool) -> (Instant, Instant) {
        let sends_at = match self.next(now, supplied, window_open) {
            Next::Send(_) => now,
            Next::Wait(until) => until,
            Next::Idle => Instant::NEVER,
        };
        (sends_at, self.deadline())
    }
    /// Returns how many packets the sender will send next, each for the first time, if no input arrives and its window
    /// stays open; zero if nothing is in flight. A smaller number, down to zero, is always valid.
    #[inline(always)]
    fn train(&self, supplied: Seq) -> u64 {
        let _ = supplied;
        0
    }
    /// Handles the sending of `packets` packets of a train (see [`Recovery::train`]).
    #[inline(always)]
    fn on_train_sent(&mut self, packets: u64) {
        debug_assert_eq!(packets, 0, "nothing was promised");
    }
    /// Expands the PSNs of an acknowledgement of a queue pair that began at `first`; the packet that triggered the
    /// acknowledgement left at `sent_at`. Returns `None` if the acknowledgement names packets never sent.
    #[inline(always)]
    fn expand(&self, cx: &mut Cx<'_>, ack: &Ack, first: Psn, sent_at: Instant) -> Option<ParsedAck> {
        // PSNs are expanded relative to the newest packet: packets in flight lie just before it, even for a scheme
        // whose receiver is silent for long.
        let sent = self.sent();
        let expected = ack.expected.near(sent, first).filter(|&expected| expected <= sent);
        let Some(expected) = expected else {
            cx.trace(|| Trace::AckIgnored { sent });
            return None;
        };
        // A SACK from before the first packet has no meaning, like a SACK of the first packet.
        let sack = if ack.kind == AckKind::Nack { ack.sack.near(sent, first) } else { None };
        Some(ParsedAck { kind: ack.kind, expected, sack: sack.unwrap_or(Seq::ZERO), rtt: cx.now.since(sent_at) })
    }
    /// Expands an acknowledgement and handles it.
    #[inline(always)]
    fn process_ack(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut Self::Shared,
        ack: &Ack,
        first: Psn,
        sent_at: Instant,
    ) -> Option<AckOutcome> {
        let heard = self.expand(cx, ack, first, sent_at)?;
        Some(self.handle_ack(cx, shared, heard))
    }
}

/// An acknowledgement with expanded PSNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParsedAck {
    /// The kind of acknowledgement: positive or negative.
    pub kind: AckKind,
    /// The packet that the receiver expects next. May be older than a previous one.
    pub expected: Seq,
    /// The packet that triggered the acknowledgement, if it is negative. Unchecked: may be arbitrary.
    pub sack: Seq,
    /// The time since the departure of the packet that triggered the acknowledgement.
    pub rtt: Duration,
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckOutcome {
    /// Packets newly known to have arrived, in order or not.
    pub delivered: u64,
    /// Whether the acknowledgement made the sender begin to repair a loss.
    pub loss: bool,
}

/// The receiver's half of a loss-recovery scheme: takes each data packet and answers it at most once.
pub trait RecoveryReceiver {
    /// State that the senders and receivers of a NIC share, like [`Recovery::Shared`].
    type Shared: SharedPart + Default;

    /// Returns the packet expected next: every packet before it has arrived.
    fn expected(&self) -> Seq;
    /// Handles packet `seq`; `last` says whether it is the last of its message.
    fn handle_data(&mut self, cx: &mut Cx<'_>, shared: &mut Self::Shared, seq: Seq, last: bool) -> Answer;
    /// Returns the newest holes, newest first, where NACKs carry them; counted from packet 0.
    fn holes(&self) -> Option<Holes> {
        None
    }
    /// Releases the flow's part of the chip's memory, before the receiver is dropped.
    fn release(&mut self, shared: &mut Self::Shared) {
        let _ = shared;
    }

    /// Returns for how many of the next packets no acknowledgement is due, if they arrive in order.
    #[inline(always)]
    fn unanswered(&self) -> Unanswered {
        Unanswered::NONE
    }
    /// Accepts the next `packets` packets, which have arrived in order and are
    /// [unanswered](RecoveryReceiver::unanswered).
    #[inline(always)]
    fn take_unanswered(&mut self, packets: u64) {
        debug_assert_eq!(packets, 0, "something comes back");
    }

    /// Expands the PSN of a data packet of a queue pair that began at `first`, handles the packet, and returns the
    /// reply.
    #[inline(always)]
    fn answer(&mut self, cx: &mut Cx<'_>, shared: &mut Self::Shared, data: &Data, marked: bool, first: Psn) -> Reply {
        let Some(seq) = data.psn.near(self.expected(), first) else {
            return Reply { verdict: DataVerdict::Invalid, ack: None };
        };
        let Answer { verdict, ack } = self.handle_data(cx, shared, seq, data.last);
        let expected = self.expected().to_psn(first);
        let ack = ack.map(|kind| Ack { kind, ecn_echo: marked, expected, sack: data.psn, msn: 0 });
        Reply { verdict, ack }
    }
}

impl SharedPart for SharedState {
    fn is_none(&self) -> bool {
        self.parts().all(SharedPart::is_none)
    }
    fn reordering(&self) -> Reordering {
        let mut sum = Reordering::default();
        self.parts().for_each(|part| sum.add(&part.reordering()));
        sum
    }
}

/// The packets that a receiver accepts without an answer, if they arrive in order and none is the last of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unanswered {
    /// The largest number of such packets, from the expected one on.
    pub packets: u64,
    /// The instant before which the packets must arrive.
    pub before: Instant,
}

impl Unanswered {
    /// The value where every packet is answered.
    pub const NONE: Self = Self { packets: 0, before: Instant::ZERO };
    /// The value where no packet is answered.
    pub const ALL: Self = Self { packets: u64::MAX, before: Instant::NEVER };
}

/// A receiver's answer to one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The treatment of the payload.
    pub verdict: DataVerdict,
    /// The kind of acknowledgement to send back, if any.
    pub ack: Option<AckKind>,
}

impl Answer {
    #[inline]
    pub(crate) const fn new(verdict: DataVerdict, ack: Option<AckKind>) -> Self {
        Self { verdict, ack }
    }
}

/// The properties of a scheme that follow from its settings.
pub trait Scheme {
    /// The parameters of both halves: checked values, none of them "auto".
    type Params;

    /// Replaces every "auto" by a value for `fabric`.
    fn resolve(&mut self, fabric: &Fabric);
    /// Checks the resolved settings, and returns the parameters that they make.
    ///
    /// # Errors
    /// When a setting cannot work, or still says "auto".
    fn params(&self) -> Result<Self::Params, SettingError>;
    /// Checks the resolved settings.
    ///
    /// # Errors
    /// Those of [`Scheme::params`].
    fn check(&self) -> Result<(), SettingError> {
        self.params().map(drop)
    }
    /// Returns whether data packets are acknowledged. Without acknowledgements, a sender never knows that it is done.
    fn acknowledges(&self) -> bool;
    /// Returns whether each data packet is acknowledged, rather than some or none.
    fn acknowledges_each(&self) -> bool {
        self.acknowledges()
    }
    /// Returns the bytes of headers on each data packet that the scheme adds to RoCE's.
    fn extra_header(&self) -> Bytes;
    /// Returns the cost of the scheme's state on a NIC, for its resolved settings.
    fn footprint(&self) -> Footprint;
    /// Returns how many packets a flow may have in flight (BDP-FC), with resolved settings; `None` is no limit.
    fn bdp_cap(&self) -> Option<u32>;
    /// Returns whether receivers keep packets that arrive out of order.
    fn keeps_out_of_order(&self) -> bool {
        true
    }
    /// Returns whether a gap is repaired without a timeout even if the packet that closes it is overtaken by others.
    fn survives_reordering(&self) -> bool {
        true
    }
    /// Returns the packets for which all receivers of a NIC together can keep state out of order, and the key of that
    /// setting; `None` without a common limit.
    fn pool(&self) -> Option<(&'static str, u32)> {
        None
    }
    /// Returns whether NACKs carry IRN's extension of AETH: the packet that triggered them.
    fn extends_nacks(&self) -> bool {
        false
    }
    /// Returns the longest timeout, backed off as far as it may be.
    fn longest_timeout(&self) -> Duration;
    /// Returns the shortest timeout that does not adapt to the network, and its key; `None` without one.
    fn shortest_timeout(&self) -> Option<(&'static str, Duration)>;
    /// Sets the settings whose "auto" depends on PFC to "auto".
    fn forget_pfc(&mut self);
    /// Returns the number that names the scheme in packets between Selvedge NICs, 1 to 15; `None`: packets are those of
    /// standard connections.
    fn wire_id(&self) -> Option<u8>;
}

/// The properties of a scheme that follow from its parameters.
pub trait SchemeParams {
    /// Returns how many packets a flow may have in flight (BDP-FC); `None` is no limit.
    fn bdp_cap(&self) -> Option<u32>;
    /// Sets the limit of packets in flight for receivers that drop what lies beyond it: their senders may have a larger
    /// one.
    fn set_receivers_cap(&mut self, cap: Option<u32>) {
        let _ = cap;
    }
    /// Returns whether data packets are acknowledged, like [`Scheme::acknowledges`].
    fn acknowledges(&self) -> bool {
        true
    }
    /// Returns whether each data packet is acknowledged, like [`Scheme::acknowledges_each`].
    fn acknowledges_each(&self) -> bool {
        self.acknowledges()
    }
    /// Returns unused state to be shared by the queue pairs of a NIC.
    fn shared(&self) -> SharedState {
        SharedState::default()
    }
    /// Returns the packets per queue pair that a reorder buffer holds beside the application's memory; zero where
    /// out-of-order packets are placed at once, or not kept.
    fn reorder_slots(&self) -> u32 {
        0
    }
    /// Returns the number that names the scheme, like [`Scheme::wire_id`].
    fn wire_id(&self) -> Option<u8>;
}

registry! {
    /// Loss recovery, with its settings.
    config RecoveryConfig: Scheme {
        fn resolve(&mut self, fabric: &Fabric);
        fn acknowledges(&self) -> bool;
        fn acknowledges_each(&self) -> bool;
        fn extra_header(&self) -> Bytes;
        fn footprint(&self) -> Footprint;
        fn bdp_cap(&self) -> Option<u32>;
        fn keeps_out_of_order(&self) -> bool;
        fn survives_reordering(&self) -> bool;
        fn pool(&self) -> Option<(&'static str, u32)>;
        fn extends_nacks(&self) -> bool;
        fn longest_timeout(&self) -> Duration;
        fn shortest_timeout(&self) -> Option<(&'static str, Duration)>;
        fn forget_pfc(&mut self);
        fn wire_id(&self) -> Option<u8>;
    }
    /// Parameters of a loss recovery, for engines.
    params RecoveryParams: SchemeParams {
        fn bdp_cap(&self) -> Option<u32>;
        fn set_receivers_cap(&mut self, cap: Option<u32>);
        fn acknowledges(&self) -> bool;
        fn acknowledges_each(&self) -> bool;
        fn shared(&self) -> SharedState;
        fn reorder_slots(&self) -> u32;
        fn wire_id(&self) -> Option<u8>;
    }
    shared SharedState: SharedPart = Send as Recovery;
    /// Any loss recovery, sender's half.
    #[derive(Clone, Debug)]
    run AnyRecovery: Recovery<Shared = SharedState> = Send {
        fn acked(&self) -> Seq;
        fn sent(&self) -> Seq;
        fn in_flight(&self) -> u64;
        fn has_lost(&self) -> bool;
        fn next(&self, now: Instant, supplied: Seq, window_open: bool) -> Next;
        [shared] fn on_sent(&mut self, cx: &mut Cx<'_>, shared: &mut SharedState, seq: Seq);
        [shared] fn handle_ack(&mut self, cx: &mut Cx<'_>, shared: &mut SharedState, heard: ParsedAck) -> AckOutcome;
        [shared] fn handle_holes(
            &mut self, cx: &mut Cx<'_>, shared: &mut SharedState, heard: ParsedAck, holes: &[Range<Seq>; 3]
        ) -> AckOutcome;
        fn deadline(&self) -> Instant;
        [shared] fn handle_timeout(&mut self, cx: &mut Cx<'_>, shared: &mut SharedState) -> bool;
        [shared] fn handle_not_ready(&mut self, cx: &mut Cx<'_>, shared: &mut SharedState);
        [shared] fn release(&mut self, shared: &mut SharedState);
        [shared] fn send(
            &mut self, cx: &mut Cx<'_>, shared: &mut SharedState, supplied: Seq, window_open: bool, ready: Instant
        ) -> Option<Segment>;
        fn next_times(&self, now: Instant, supplied: Seq, window_open: bool) -> (Instant, Instant);
        fn train(&self, supplied: Seq) -> u64;
        fn on_train_sent(&mut self, packets: u64);
        [shared] fn process_ack(
            &mut self, cx: &mut Cx<'_>, shared: &mut SharedState, ack: &Ack, first: Psn, sent_at: Instant
        ) -> Option<AckOutcome>;
    }
    /// Any loss recovery, receiver's half.
    #[derive(Clone, Debug)]
    run AnyRecoveryReceiver: RecoveryReceiver<Shared = SharedState> = Recv {
        fn expected(&self) -> Seq;
        [shared] fn handle_data(&mut self, cx: &mut Cx<'_>, shared: &mut SharedState, seq: Seq, last: bool) -> Answer;
        fn holes(&self) -> Option<Holes>;
        [shared] fn release(&mut self, shared: &mut SharedState);
        fn unanswered(&self) -> Unanswered;
        fn take_unanswered(&mut self, packets: u64);
        [shared] fn answer(
            &mut self, cx: &mut Cx<'_>, shared: &mut SharedState, data: &Data, marked: bool, first: Psn
        ) -> Reply;
    }
    algorithms {
        /// The recovery of RoCE NICs: the receiver keeps nothing out of order.
        "go-back-n" => GoBackN(go_back_n),
        /// Selective retransmission (IRN, SIGCOMM'18).
        "irn" => Irn(irn),
        /// Selective retransmission with bitmaps from a pool that queue pairs share (MELO, APNet'17).
        "melo" => Melo(melo),
    }
}
