//! RDMA queue pairs of one host, with one message each.
//!
//! ```text
//!     Data ───────────────────────> RecvQp: Receiver, Feedback ──> acknowledgements, CNPs, reports
//!     Ack, HoleNack, Cnp, report ─> SendQp: Sender ──────────────> turns at the link, deadlines
//!     a turn at the link ─────────> SendQp: Sender ──────────────> Data
//! ```
//!
//! A sender has two deadlines, for its timers and for its next packet, so that a paced packet leaves the timer alone.

mod arriving;
mod incoming;
mod sending;
mod state;

use alloc::collections::VecDeque;

use selvedge_prefetch::PrefetchRange;
use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber, Seq};
use selvedge_wire::{Packet, Repr};

use crate::endpoint::{Alarm, Closed, Context, Endpoint, Expected, Frames, Handled, Message, Received, Standing};
use crate::feedback::{Feedback, FeedbackConfig};
use crate::places::Places;
use crate::receiver::Receiver;
use crate::recovery::{RecoveryParams, SchemeParams, SharedState};
use crate::role::Limits;
use crate::sender::{Sender, SenderParams};

pub use incoming::Incoming;
pub use sending::Train;
pub use state::Report;
use state::{RecvQp, SendQp};

/// Settings of RDMA queue pairs.
#[derive(Clone, Copy, Debug)]
pub struct RdmaParams {
    /// Configuration of the engine at the sending end.
    pub sender: SenderParams,
    /// Configuration of the engine at the receiving end.
    pub receiver: RecoveryParams,
    /// Feedback that the receiving end gives to congestion control.
    pub feedback: FeedbackConfig,
}

impl RdmaParams {
    /// Returns whether receivers leave expected packets without an answer ([`QueuePairs::incoming`]).
    pub fn takes_unanswered(&self) -> bool {
        self.feedback.is_silent() && !self.receiver.acknowledges_each()
    }
}

/// All queue pairs of one host. State that every packet touches comes first.
#[derive(Debug, Default)]
#[repr(C)]
pub struct QueuePairs {
    senders: Places<SendQp>,
    receivers: Places<RecvQp>,
    /// Number of bytes of a sending queue pair that packets touch.
    busy_sender: u32,
    /// Reports waiting to be taken.
    reports: VecDeque<Report>,
    /// On-chip memory that queue pairs share, lent to each for its call.
    shared: SharedState,
}

/// First PSN of all queue pairs; any value would do.
const FIRST_PSN: Psn = Psn::new(0);

impl QueuePairs {
    /// Creates the state of a host without queue pairs.
    pub fn new(params: &RdmaParams) -> Self {
        Self {
            busy_sender: (core::mem::offset_of!(SendQp, sender) + Sender::busy_bytes(&params.sender)) as u32,
            shared: params.receiver.shared(),
            ..Self::default()
        }
    }

    /// Returns the memory that queue pairs share.
    pub fn shared(&self) -> &SharedState {
        &self.shared
    }

    /// Returns how many bytes from the beginning packets touch; for drivers that prefetch them.
    pub const fn busy_bytes() -> usize {
        core::mem::offset_of!(Self, shared)
    }

    /// Returns the state of a sender that its acknowledgements touch; for drivers that prefetch it.
    #[inline]
    pub fn state_of_sender(&self, entry: u32) -> PrefetchRange {
        PrefetchRange::of_entry(self.senders.all(), entry as usize, self.busy_sender as usize)
    }

    /// Returns what packets touch of a sender whose turn will come; `None` if there is no such entry. For drivers that
    /// prefetch it.
    #[inline]
    pub fn state_to_send(&self, entry: u32) -> Option<PrefetchRange> {
        Some(PrefetchRange::beginning_of(self.senders.all().get(entry as usize)?, self.busy_sender as usize))
    }

    /// Returns the state of a receiver; for drivers that prefetch it.
    #[inline]
    pub fn state_of_receiver(&self, entry: u32) -> PrefetchRange {
        let place = self.receivers.all().get(entry as usize);
        place.map_or(PrefetchRange::EMPTY, |place| PrefetchRange::of(core::slice::from_ref(place)))
    }

    /// Returns the state of all senders and receivers that packets touch; for drivers that prefetch it.
    #[inline]
    pub fn state(&self) -> [PrefetchRange; 2] {
        // Packets do not touch the rest of the last queue pair.
        let rest = size_of::<SendQp>() - self.busy_sender as usize;
        [PrefetchRange::of(self.senders.all()).without_last(rest), PrefetchRange::of(self.receivers.all())]
    }

    /// Returns the number of receivers at the host's busiest time.
    #[inline]
    pub fn receivers(&self) -> usize {
        self.receivers.all().len()
    }

    /// Returns the next report made here, for the driver to deliver to its receiver.
    #[inline]
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Returns whether a report waits to be taken.
    #[inline]
    pub fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Returns the number and the traffic class of the queue pair that sends as `entry`.
    pub fn sender_at(&self, entry: u32) -> Option<(QpNumber, u8)> {
        let state = self.senders.get(entry)?;
        Some((state.qp, state.class))
    }

    #[inline]
    fn sender(&self, entry: u32, qp: QpNumber) -> Option<&SendQp> {
        self.senders.get(entry).filter(|state| state.qp == qp)
    }
}

impl Endpoint for QueuePairs {
    type Params = RdmaParams;

    fn open_sender(&mut self, cx: &mut Context<'_, '_, RdmaParams>, qp: QpNumber, message: &Message) -> u32 {
        let mut sender = Sender::new(&cx.params.sender, FIRST_PSN);
        let packets = cx.frames.packets(message.size);
        sender.set_path(message.links);
        sender.supply(packets);
        let entry = self.senders.put(SendQp {
            sender,
            qp,
            dst: message.dst,
            entropy: message.entropy,
            context: message.context,
            last: Seq::new(packets - 1),
            last_payload: cx.frames.payload(message.size, packets - 1),
            class: message.class,
            queued: false,
            timer: Alarm::default(),
            pacing: Alarm::default(),
        });
        if let Some(state) = self.senders.get_mut(entry) {
            state.settle(cx, entry);
        }
        entry
    }

    fn open_receiver(
        &mut self,
        cx: &mut Context<'_, '_, RdmaParams>,
        _src: HostId,
        _qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32 {
        self.receivers.put(RecvQp {
            receiver: Receiver::new(&cx.params.receiver, FIRST_PSN),
            feedback: Feedback::default(),
            context,
            duplicates: 0,
            missing: cx.frames.packets(size),
        })
    }

    fn handle_packet(&mut self, cx: &mut Context<'_, '_, RdmaParams>, packet: &Packet, entry: u32) -> Handled {
        match &packet.repr {
            Repr::Data(data) => self.handle_data(cx, packet, data, entry),
            Repr::Ack(ack) => self.handle_ack(cx, packet, ack, entry),
            Repr::HoleNack(nack) => self.handle_hole_nack(cx, packet, nack, entry),
            Repr::Cnp => self.handle_cnp(cx, entry, packet.qp),
            _ => Handled::Unknown,
        }
    }

    #[inline(always)]
    fn poll_transmit(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32, packet: &mut Packet) -> bool {
        self.transmit(cx, entry, packet)
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, '_, RdmaParams>, entry: u32, at: Instant) {
        let Some(state) = self.senders.get_mut(entry) else { return };
        let is_timer = state.timer.take(at);
        if !is_timer && !state.pacing.take(at) {
            return; // an earlier deadline has taken its place
        }
        cx.cx.about(state.qp);
        if is_timer {
            let before = state.sender.stats().timeouts;
            state.sender.handle_timeout(cx.cx, &mut self.shared);
            cx.port.stats.timeouts += u64::from(state.sender.stats().timeouts - before);
        }
        state.settle(cx, entry);
    }

    fn class(&self, entry: u32, _frames: &Frames) -> Option<u8> {
        self.sender_at(entry).map(|(_, class)| class)
    }

    fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32> {
        let queued = self.sender(entry, qp)?.queued;
        // An entry that waits for its turn becomes free when its turn comes: none may be in the ring twice.
        let state = if queued { self.senders.take_and_keep(entry) } else { self.senders.take(entry) };
        let SendQp { mut sender, context, .. } = state?;
        sender.release(&mut self.shared);
        Some(context)
    }

    fn close_receiver(&mut self, entry: u32) -> Option<Closed> {
        let mut state = self.receivers.take(entry)?;
        state.receiver.release(&mut self.shared);
        Some(Closed { context: state.context, duplicates: state.duplicates })
    }

    fn standing(&self, entry: u32, qp: QpNumber, now: Instant) -> Option<Standing> {
        let sender = &self.sender(entry, qp)?.sender;
        let stats = sender.stats();
        Some(Standing {
            hold: sender.hold(now),
            sent: Some(sender.sent().index()),
            unsent: sender.supplied() - sender.sent(),
            has_lost: false,
            timeouts: u64::from(stats.timeouts),
            resent: stats.retransmissions,
        })
    }

    fn received(&self, entry: u32) -> Option<Received> {
        let RecvQp { receiver, context, missing, .. } = self.receivers.get(entry)?;
        let next = receiver.expected();
        Some(Received {
            context: *context,
            count: Some(next.index()),
            missing: *missing,
            next: Expected::Packet(next.to_psn(FIRST_PSN)),
        })
    }

    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits> {
        self.sender(entry, qp).map(|state| state.sender.limits())
    }
}
