//! Homa on one host: what it sends, shortest rest first, and what it grants.
//!
//! Design notes.
//! 1. *One turn.* The NIC sees one entry for all messages of the host ([`HOST`]): the sender chooses among
//!    them.
//! 2. *Packets, not bytes.* Grants count packets from a message's beginning on.
//! 3. *Order.* Of equal rests, the message that was opened earlier in the host's numbering comes first.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use selvedge_telemetry::Trace;
use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber, Rate, Seq};
use selvedge_wire::{Control, Data, Packet, Repr};

use super::config::HomaParams;
use super::cutoffs::{Arrived, Cutoffs};
use super::receiving::Receiving;
use super::sending::Sending;
use super::{ACK, BUSY, CUTOFFS, GRANT, RESEND};
use crate::endpoint::{
    Alarm, Closed, Completion, Context, Endpoint, EndpointParams, Expected, Frames, HOST, Handled, Message, Received,
    Standing,
};
use crate::places::Places;
use crate::role::Limits;

/// First PSN of all messages; any value would do.
const FIRST: Psn = Psn::new(0);

/// All Homa messages of one host.
#[derive(Debug)]
pub struct Host {
    params: HomaParams,
    senders: Places<Box<Sending>>,
    receivers: Places<Box<Receiving>>,
    /// Senders with a packet to send, by their rest.
    ready: BTreeSet<(u64, u32)>,
    /// Whether the host waits for its turn at the link.
    queued: bool,
    /// Receivers that know of their message and have not granted all of it, by the rest of the message.
    grantable: BTreeSet<(u64, u32)>,
    /// Receivers to which the host grants now. Kept to reuse its allocation.
    active: Vec<u32>,
    /// Receivers whose silence is watched, by the time of the next look.
    watched: BTreeSet<(Instant, u32)>,
    alarm: Alarm,
    arrived: Arrived,
    /// Priorities of what arrives here, and their version. Version 0 is what all hosts assume.
    cutoffs: Option<Cutoffs>,
    version: u32,
    /// Version that each host was told last.
    told: BTreeMap<HostId, u32>,
    /// Priorities that receivers have asked for.
    priorities: BTreeMap<HostId, Cutoffs>,
}

impl Host {
    /// Creates the state of a host without messages.
    pub fn new(params: &HomaParams) -> Self {
        Self {
            params: *params,
            senders: Places::default(),
            receivers: Places::default(),
            ready: BTreeSet::new(),
            queued: false,
            grantable: BTreeSet::new(),
            active: Vec::new(),
            watched: BTreeSet::new(),
            alarm: Alarm::default(),
            arrived: Arrived::default(),
            cutoffs: None,
            version: 0,
            told: BTreeMap::new(),
            priorities: BTreeMap::new(),
        }
    }

    /// Returns RTTbytes in packets.
    fn rtt_packets(&self, frames: &Frames) -> u64 {
        self.params.rtt_packets(Bytes::new(u64::from(frames.mtu) + u64::from(frames.header) + u64::from(frames.gap)))
    }

    /// Returns the payload of RTTbytes.
    fn rtt_payload(&self, frames: &Frames) -> Bytes {
        Bytes::new(self.rtt_packets(frames) * u64::from(frames.mtu))
    }

    /// Returns the cutoffs of what arrives here.
    fn own_cutoffs(&self, frames: &Frames) -> Cutoffs {
        self.cutoffs.unwrap_or_else(|| Cutoffs::initial(&self.params, self.rtt_payload(frames)))
    }

    fn sending(&self, entry: u32, qp: QpNumber) -> Option<&Sending> {
        self.senders.get(entry).map(|sending| &**sending).filter(|sending| sending.qp == qp)
    }

    /// Updates the order of senders, the host's turn and the sender's deadline after `change`.
    fn change<R>(&mut self, cx: &mut Context<'_, '_>, entry: u32, change: impl FnOnce(&mut Sending) -> R) -> Option<R> {
        let sending = self.senders.get_mut(entry)?;
        let was_ready = sending.is_ready().then_some(sending.rest());
        let result = change(sending);
        let is_ready = sending.is_ready().then_some(sending.rest());
        if was_ready != is_ready {
            was_ready.map(|rest| self.ready.remove(&(rest, entry)));
            is_ready.map(|rest| self.ready.insert((rest, entry)));
        }
        let deadline = sending.deadline(self.params.resend_interval);
        sending.alarm.set(cx, entry, deadline);
        if !self.queued && !self.ready.is_empty() {
            self.queued = true;
            cx.ready(HOST);
        }
        Some(result)
    }

    fn handle_data(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, data: &Data, entry: u32) -> Handled {
        let Some(receiving) = self.receivers.get_mut(entry) else { return Handled::Unknown };
        cx.port.stats.data_received += 1;
        let Some(seq) = data.psn.near(Seq::new(receiving.expected()), FIRST) else { return Handled::Taken };
        if seq.index() > receiving.expected() {
            cx.cx.trace(|| Trace::OutOfOrder { expected: Seq::new(receiving.expected()), seq });
        }
        let before = receiving.rest();
        let Some(is_new) = receiving.take(seq) else { return Handled::Taken };
        let is_first = receiving.newest.is_none();
        receiving.newest = Some(*packet);
        receiving.busy = cx.now();
        if is_new {
            cx.port.stats.goodput += u64::from(data.payload);
        } else {
            cx.port.stats.duplicates += 1;
            receiving.duplicates += 1;
        }
        let words = [receiving.packets as u32, 0, 0];
        let (rest, size, context, duplicates) =
            (receiving.rest(), receiving.size, receiving.context, receiving.duplicates);
        let is_grantable = receiving.granted < receiving.packets;
        self.grantable.remove(&(before, entry));
        if is_grantable {
            self.grantable.insert((rest, entry));
        }
        if is_first {
            self.greet(cx, packet, size);
        }
        if rest == 0 {
            // The sender asks for the acknowledgement by another copy, if this one is lost.
            cx.echo(packet, Repr::Control(Control { label: ACK, to_receiver: false, words }));
        }
        self.grant(cx);
        self.watch(cx, entry);
        if is_new && rest == 0 {
            return Handled::Completed(Completion::Received { src: packet.src, qp: packet.qp, context, duplicates });
        }
        Handled::Taken
    }

    /// Counts a message whose first packet has arrived, and tells its sender which priorities to use from now on.
    fn greet(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, size: Bytes) {
        let rtt_payload = self.rtt_payload(cx.frames);
        if self.arrived.count(size, rtt_payload) >= self.params.cutoffs_after {
            let cutoffs = self.arrived.cutoffs(&self.params);
            if self.cutoffs != Some(cutoffs) {
                self.cutoffs = Some(cutoffs);
                self.version += 1;
            }
        }
        let told = self.told.entry(packet.src).or_default();
        if let Some(cutoffs) = self.cutoffs.filter(|_| *told < self.version) {
            *told = self.version;
            let [first, second] = cutoffs.encode();
            let words = [self.version, first, second];
            cx.answer(packet, Repr::Control(Control { label: CUTOFFS, to_receiver: false, words }));
        }
    }

    /// Grants to the messages with the shortest rests, one of each host, each with a priority of its own (sections 3.3
    /// to 3.5).
    fn grant(&mut self, cx: &mut Context<'_, '_>) {
        let window = self.rtt_packets(cx.frames);
        let scheduled = usize::from(self.own_cutoffs(cx.frames).scheduled());
        let most = self.params.overcommitment.map_or(scheduled, usize::from);
        loop {
            let mut active = core::mem::take(&mut self.active);
            active.clear();
            for &(_, entry) in &self.grantable {
                let src = |entry: u32| self.receivers.get(entry).map(|receiving| receiving.src);
                if active.iter().all(|&other| src(other) != src(entry)) {
                    active.push(entry);
                }
                if active.len() == most {
                    break;
                }
            }
            // With fewer messages than priorities, the lowest ones are used: a shorter message preempts them at once.
            let highest = active.len().min(scheduled).saturating_sub(1);
            let mut is_any_granted_wholly = false;
            for (rank, &entry) in active.iter().enumerate() {
                let Some(receiving) = self.receivers.get_mut(entry) else { continue };
                let granted = receiving.packets.min(receiving.count + window);
                let Some(newest) = receiving.newest.filter(|_| granted > receiving.granted) else { continue };
                receiving.granted = granted;
                let words = [granted as u32, highest.saturating_sub(rank) as u32, 0];
                cx.answer(&newest, Repr::Control(Control { label: GRANT, to_receiver: false, words }));
                if granted == receiving.packets {
                    is_any_granted_wholly = true;
                    self.grantable.remove(&(receiving.rest(), entry));
                }
            }
            self.active = active;
            if !is_any_granted_wholly {
                break;
            }
        }
        for at in 0..self.active.len() {
            self.watch(cx, self.active[at]);
        }
    }

    /// Watches for the silence of a message of which granted packets are missing.
    fn watch(&mut self, cx: &mut Context<'_, '_>, entry: u32) {
        let Some(receiving) = self.receivers.get_mut(entry) else { return };
        if !receiving.is_watched && receiving.count < receiving.granted {
            receiving.is_watched = true;
            // Packets that were granted only now are not late.
            receiving.busy = cx.now();
            self.watched.insert((cx.now().saturating_add(self.params.resend_interval), entry));
        }
        self.alarm.set(cx, HOST, self.watched.first().map(|&(at, _)| at));
    }

    /// Asks for what is missing of messages that have been silent for too long.
    fn look(&mut self, cx: &mut Context<'_, '_>) {
        while let Some(&(at, entry)) = self.watched.first().filter(|(at, _)| *at <= cx.now()) {
            self.watched.remove(&(at, entry));
            let Some(receiving) = self.receivers.get_mut(entry) else { continue };
            let due = receiving.busy.saturating_add(self.params.resend_interval);
            match receiving.newest.filter(|_| receiving.count < receiving.granted) {
                None => receiving.is_watched = false,
                Some(_) if due > cx.now() => _ = self.watched.insert((due, entry)),
                Some(newest) => {
                    receiving.busy = cx.now();
                    let again = cx.now().saturating_add(self.params.resend_interval);
                    self.watched.insert((again, entry));
                    cx.port.stats.timeouts += 1;
                    for (first, count) in receiving.gaps(usize::from(self.params.resend_ranges)) {
                        let words = [first as u32, count as u32, 0];
                        cx.answer(&newest, Repr::Control(Control { label: RESEND, to_receiver: false, words }));
                    }
                }
            }
        }
        self.alarm.set(cx, HOST, self.watched.first().map(|&(at, _)| at));
    }

    /// Handles a control packet for a sender.
    fn handle_control(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, control: &Control, entry: u32) -> Handled {
        let [first, second, third] = control.words;
        if control.label == CUTOFFS {
            // Hosts' cutoffs concern all messages to them, those that have ended, too.
            if let Some(cutoffs) = Cutoffs::decode(self.params.priorities, [second, third]) {
                self.priorities.insert(packet.src, cutoffs);
            }
            return Handled::Taken;
        }
        let qp = packet.qp;
        if self.sending(entry, qp).is_none() {
            return Handled::Unknown;
        }
        cx.port.stats.acks_received += 1;
        if control.label == ACK {
            let context = self.close_sender(entry, qp);
            return context.map_or(Handled::Unknown, |context| Handled::Completed(Completion::Sent { qp, context }));
        }
        let (now, is_grant) = (cx.now(), control.label == GRANT);
        let highest = self.params.priorities - 1;
        let has_sent = self.change(cx, entry, |sending| {
            (sending.busy, sending.is_known) = (now, true);
            if is_grant {
                sending.handle_grant(u64::from(first), (second as u8).min(highest));
                return true;
            }
            sending.handle_resend(u64::from(first), u64::from(second), (third as u8).min(highest))
        });
        if has_sent == Some(false)
            && let Some(sending) = self.senders.get(entry)
        {
            let control = Control { label: BUSY, to_receiver: true, words: [0; 3] };
            cx.control(entry, &sending.message, qp, control);
        }
        Handled::Taken
    }
}

impl Endpoint for Host {
    type Params = EndpointParams;

    fn open_sender(&mut self, cx: &mut Context<'_, '_>, qp: QpNumber, message: &Message) -> u32 {
        let rtt_payload = self.rtt_payload(cx.frames);
        let initial = || Cutoffs::initial(&self.params, rtt_payload);
        let cutoffs = self.priorities.get(&message.dst).copied().unwrap_or_else(initial);
        let (packets, unscheduled) = (cx.frames.packets(message.size), self.rtt_packets(cx.frames));
        let mut sending = Sending::new(message, qp, packets, unscheduled, cutoffs.priority(message.size));
        sending.busy = cx.now();
        let rest = sending.rest();
        let entry = self.senders.put(Box::new(sending));
        self.ready.insert((rest, entry));
        self.change(cx, entry, |_| ());
        entry
    }

    fn open_receiver(
        &mut self,
        cx: &mut Context<'_, '_>,
        src: HostId,
        _qp: QpNumber,
        size: Bytes,
        context: u32,
    ) -> u32 {
        let (packets, unscheduled) = (cx.frames.packets(size), self.rtt_packets(cx.frames));
        self.receivers.put(Box::new(Receiving::new(src, size, packets, unscheduled, context)))
    }

    fn close_sender(&mut self, entry: u32, qp: QpNumber) -> Option<u32> {
        self.sending(entry, qp)?;
        let sending = self.senders.take(entry)?;
        self.ready.remove(&(sending.rest(), entry));
        Some(sending.message.context)
    }

    fn close_receiver(&mut self, entry: u32) -> Option<Closed> {
        let receiving = self.receivers.take(entry)?;
        self.grantable.remove(&(receiving.rest(), entry));
        if receiving.is_watched {
            self.watched.retain(|&(_, other)| other != entry);
        }
        Some(Closed { context: receiving.context, duplicates: receiving.duplicates })
    }

    fn handle_packet(&mut self, cx: &mut Context<'_, '_>, packet: &Packet, entry: u32) -> Handled {
        match &packet.repr {
            Repr::Data(data) => self.handle_data(cx, packet, data, entry),
            Repr::Control(Control { label: BUSY, .. }) => {
                if let Some(receiving) = self.receivers.get_mut(entry) {
                    receiving.busy = cx.now();
                }
                Handled::Taken
            }
            Repr::Control(control) if [GRANT, RESEND, ACK, CUTOFFS].contains(&control.label) => {
                self.handle_control(cx, packet, control, entry)
            }
            _ => Handled::Unknown,
        }
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_, '_>, _entry: u32, packet: &mut Packet) -> bool {
        self.queued = false;
        let Some(&(_, entry)) = self.ready.first() else { return false };
        let now = cx.now();
        let taken = self.change(cx, entry, |sending| {
            sending.busy = now;
            let priority = sending.next_priority();
            sending.take().map(|taken| (taken, priority, sending.message, sending.qp))
        });
        let Some(Some(((index, retransmission), priority, message, qp))) = taken else { return false };
        if retransmission {
            cx.cx.trace(|| Trace::Retransmitted { seq: Seq::new(index) });
        }
        let data = cx.data(entry, &message, qp, index, retransmission);
        *packet = Packet { class: cx.frames.classes[usize::from(priority)], ..data };
        true
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, '_>, entry: u32, at: Instant) {
        if entry == HOST {
            if self.alarm.take(at) {
                self.look(cx);
            }
            return;
        }
        let Some(sending) = self.senders.get_mut(entry) else { return };
        if !sending.alarm.take(at) {
            return;
        }
        let is_due = sending.deadline(self.params.resend_interval).is_some_and(|deadline| deadline <= cx.now());
        let (qp, now) = (sending.qp, cx.now());
        if is_due {
            cx.cx.about(qp);
            cx.cx.trace(|| Trace::TimedOut { acked: Seq::ZERO, quick: false });
            cx.port.stats.timeouts += 1;
        }
        self.change(cx, entry, |sending| {
            if is_due {
                sending.busy = now;
                sending.repeat_first();
            }
        });
    }

    fn class(&self, _entry: u32, frames: &Frames) -> Option<u8> {
        let &(_, entry) = self.ready.first()?;
        Some(frames.classes[usize::from(self.senders.get(entry)?.next_priority())])
    }

    fn standing(&self, entry: u32, qp: QpNumber, _now: Instant) -> Option<Standing> {
        let sending = self.sending(entry, qp)?;
        Some(Standing {
            hold: sending.hold(),
            sent: None,
            unsent: sending.rest(),
            has_lost: sending.has_lost(),
            timeouts: sending.timeouts,
            resent: sending.resent,
        })
    }

    fn received(&self, entry: u32) -> Option<Received> {
        let receiving = self.receivers.get(entry)?;
        Some(Received { context: receiving.context, count: None, missing: receiving.rest(), next: Expected::Any })
    }

    fn limits(&self, entry: u32, qp: QpNumber) -> Option<Limits> {
        let sending = self.sending(entry, qp)?;
        // Which packets have arrived is known to the receiver alone.
        Some(Limits { window: Bytes::MAX, rate: Rate::MAX, in_flight: sending.sent })
    }
}
