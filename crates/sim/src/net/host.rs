//! Hosts: a NIC and its link. Their applications are in [`super::flows`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;
use std::sync::Arc;

use selvedge_nic::{FlowParams, Handled, Nic, NicParams};
use selvedge_switch::busy_ports::NEVER;
use selvedge_switch::descriptor::{Descriptor, Slot};
use selvedge_telemetry::{DropReason, FlowRow, PacketKind};
use selvedge_transport::Cx;
use selvedge_units::{Duration, HostId, Instant, Rate};
use selvedge_wire::Repr;

use super::clock::NicClock;
use super::flows::{Receiving, Sending};
use super::notice::{Due, News, Notice};
use super::places::Places;
use crate::kernel::inbox::WriteMessage;
use crate::kernel::nodes::Nodes;
use crate::net::edge::Edge;
use crate::net::partition::{AHEAD, Partition, fold};
use crate::net::tally::kind_of;

/// Host. The state that every visit touches comes first, with the beginning of the NIC.
#[repr(C, align(64))]
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) port: u32,
    /// Time at which the port is free, if the host waits for that.
    pub(crate) free_at: u64,
    /// Time of the port's pause timer.
    pub(crate) timer_at: u64,
    /// Time of the next notice to read or flow to begin.
    pub(super) flow_event_at: u64,
    /// Rolling hash of everything that arrived.
    pub(crate) digest: u64,
    /// Parameters of the NIC, on a link of this rate.
    pub(crate) params: Arc<NicParams>,
    pub(crate) nic: Nic,
    /// Flows that the host sends, by the NIC's context.
    pub(crate) sending: Places<Sending>,
    /// Flows that the host receives, by the NIC's context.
    pub(crate) receiving: Places<Receiving>,
    pub(super) notices: BinaryHeap<Reverse<Notice>>,
    pub(super) notices_sent: u64,
    /// Flows to begin, and computations that end.
    pub(super) later: BinaryHeap<Due>,
    /// Clock of a NIC that does not keep the nominal time.
    pub(crate) clock: Option<Box<NicClock>>,
}

impl Host {
    pub(crate) fn new(id: HostId, port: u32, rate: Rate, params: Arc<NicParams>) -> Self {
        let mut nic = Nic::new(id, &params);
        nic.set_link_rate(&params, rate);
        Self {
            id,
            port,
            nic,
            params,
            free_at: NEVER,
            timer_at: NEVER,
            flow_event_at: NEVER,
            digest: 0,
            sending: Places::NEW,
            receiving: Places::NEW,
            notices: BinaryHeap::new(),
            notices_sent: 0,
            later: BinaryHeap::new(),
            clock: None,
        }
    }

    /// Returns the bytes of a host, from its beginning, that visits will touch.
    pub(crate) fn busy_bytes(params: &NicParams) -> usize {
        std::mem::offset_of!(Self, nic) + Nic::busy_bytes(params)
    }

    /// Returns the time of the next event other than an arrival, which may have passed.
    #[inline]
    fn due(&self) -> u64 {
        self.control_at().min(self.free_at).min(self.wake_at())
    }

    /// Returns the time of the next flow, notice or expiry of the port's pause timer.
    #[inline]
    fn control_at(&self) -> u64 {
        self.flow_event_at.min(self.timer_at)
    }

    /// Returns the time at which the NIC wants to be woken, which may have passed.
    #[inline]
    pub(super) fn wake_at(&self) -> u64 {
        self.nic.poll_timeout().map_or(NEVER, Instant::as_ps)
    }

    /// Updates the time of the next flow or notice.
    pub(super) fn find_flow_event(&mut self) {
        let notice = self.notices.peek().map_or(Instant::NEVER, |Reverse(notice)| notice.at);
        let flow = self.later.peek().map_or(Instant::NEVER, Due::at);
        self.flow_event_at = notice.min(flow).as_ps();
    }

    /// Removes and returns the flows that have begun and not finished here.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = FlowRow> {
        let announced = self.notices.iter().filter_map(|Reverse(notice)| match notice.news {
            News::Open { row, .. } => Some(row),
            _ => None,
        });
        let nic = &mut self.nic;
        let begun = self.receiving.iter().filter(|flow| flow.row.finish.is_none()).map(|flow| {
            let (src, qp) = flow.sender;
            let duplicates = nic.close_receiver(src, qp).map_or(0, |(_, duplicates)| duplicates);
            FlowRow { spurious: duplicates, ..flow.row }
        });
        begun.chain(announced)
    }
}

/// State that does not change while a host is visited.
#[derive(Clone, Copy)]
struct HostVisit {
    /// Whether arrivals take the slow path: [`Ingress::slow_path`](super::port::Ingress::slow_path) of the port.
    slow_path: bool,
    /// Whether NICs read no records with packets, and have no more to report than what these have finished.
    plain: bool,
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles the events of a host that are earlier than `limit`.
    #[inline(always)]
    pub(crate) fn visit_host(&mut self, host: u32, limit: u64) {
        let (state, fabric) = (&self.edge.hosts[host], &self.edge.fabric);
        let visit = HostVisit {
            slow_path: self.net.ingress[state.port].slow_path,
            plain: !fabric.reads_records && !fabric.has_more_to_tell,
        };
        if !state.params.takes_unanswered() {
            self.visit_step_by_step::<false>(host, limit, visit);
        } else if RECORDED || visit.slow_path || !visit.plain {
            self.visit_step_by_step::<true>(host, limit, visit);
        } else {
            self.visit_in_trains(host, limit, visit);
        }
    }

    /// Handles the events of a host one by one. `TRAINS`: packets of trains may arrive.
    #[inline(never)]
    fn visit_step_by_step<const TRAINS: bool>(&mut self, host: u32, limit: u64, visit: HostVisit) {
        self.visit_as::<false, TRAINS>(host, limit, visit);
    }

    /// Handles the events of a host where expected data is not answered (see [`super::trains`]).
    #[inline(never)]
    fn visit_in_trains(&mut self, host: u32, limit: u64, visit: HostVisit) {
        self.visit_as::<true, true>(host, limit, visit);
    }

    #[inline(always)]
    fn visit_as<const IN_TRAINS: bool, const TRAINS: bool>(&mut self, host: u32, limit: u64, visit: HostVisit) {
        let begin = self.edge.calendar.begin();
        // One link leads to the host, so its inbox is in order of arrival.
        let inbox = self.edge.calendar.take_inbox(host);
        let port = self.edge.hosts[host].port;
        let arrival_of = |packet: Option<&Descriptor>| packet.map_or(NEVER, |packet| begin + u64::from(packet.at));
        let mut unread = inbox.iter();
        let mut arrival = arrival_of(unread.as_slice().first());
        // Time of the next event that few other events change.
        let mut control = self.edge.hosts[host].control_at();
        let mut now = self.begin;
        let next = loop {
            if IN_TRAINS {
                let taken = self.take_ahead(host, unread.as_slice(), control.min(limit - 1));
                unread = unread.as_slice()[taken..].iter();
                arrival = arrival_of(unread.as_slice().first());
            }
            let state = &self.edge.hosts[host];
            let due = control.min(state.free_at).min(state.wake_at()).max(now);
            now = arrival.min(due);
            if now >= limit {
                break now;
            }
            self.net.now = Instant::from_ps(now);
            let may_send = if arrival <= due {
                let Some(packet) = unread.next() else { break NEVER };
                arrival = arrival_of(unread.as_slice().first());
                self.net.events += 1;
                self.arrive_at_host::<TRAINS>(host, port, packet, visit, &mut control)
            } else if state.free_at <= now && control > now {
                // Hosts never pause a peer, so the port has no pause frame to send.
                self.net.events += 1;
                true
            } else {
                let may_send = self.attend_host(host, port);
                control = self.edge.hosts[host].control_at();
                may_send
            };
            if may_send {
                self.serve_host(host, port);
                if IN_TRAINS && self.edge.hosts[host].free_at < limit {
                    self.send_train(host, port, arrival.min(control).min(limit));
                }
            }
        };
        if !unread.as_slice().is_empty() {
            self.edge.calendar.keep_rest(host, &inbox, unread);
        }
        self.edge.calendar.return_inbox(inbox);
        self.leave(host, next, limit);
    }

    /// Returns the time of the next event of a host other than an arrival.
    pub(crate) fn host_due(&self, host: u32) -> u64 {
        self.edge.hosts[host].due().max(self.net.now.as_ps())
    }

    /// Handles the first event of a host, other than an arrival, that is due now. Returns whether the host may send
    /// now.
    #[inline(never)]
    fn attend_host(&mut self, host: u32, port: u32) -> bool {
        let (state, now) = (&mut self.edge.hosts[host], self.net.now.as_ps());
        if state.flow_event_at <= now {
            self.on_flow_event(host);
        } else if state.free_at <= now {
            self.net.events += 1;
            return true;
        } else if state.wake_at() <= now {
            return self.on_host_wake(host, port);
        } else {
            state.timer_at = NEVER;
            if self.net.on_pause_timer(&mut self.edge, port) {
                self.kick_host(host, port);
            }
        }
        false
    }

    /// Handles the arrival of a packet at its host. Returns whether the host may send now; `control` is
    /// [`Host::control_at`].
    #[inline(always)]
    fn arrive_at_host<const TRAINS: bool>(
        &mut self,
        host: u32,
        at: u32,
        descriptor: &Descriptor,
        visit: HostVisit,
        control: &mut u64,
    ) -> bool {
        if RECORDED {
            self.edge.note_arrived(&self.net, at, descriptor.slot);
        }
        let state = &mut self.edge.hosts[host];
        state.digest = fold(state.digest, self.net.now, self.edge.pool.name(descriptor.slot));
        if visit.slow_path | descriptor.takes_slow_path() {
            let goes_on = self.enter_slow_path(host, at, descriptor);
            *control = self.edge.hosts[host].control_at();
            if !goes_on {
                return false;
            }
        }
        let mut room = MaybeUninit::uninit();
        let packet = self.edge.pool.read::<TRAINS>(descriptor.slot, &mut room);
        let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
        let Host { nic, params, .. } = &mut self.edge.hosts[host];
        let (kind, handled) = match packet.repr {
            _ if !visit.plain && self.edge.fabric.reads_records => {
                (kind_of(packet), self.handle_with_record(host, descriptor.slot))
            }
            // The kind is known here without a further look-up.
            Repr::Data(_) => (PacketKind::Data, nic.handle_packet(&mut cx, params, packet)),
            Repr::Ack(_) => (PacketKind::Ack, nic.handle_packet(&mut cx, params, packet)),
            _ => (kind_of(packet), nic.handle_packet(&mut cx, params, packet)),
        };
        if RECORDED {
            let packet = self.edge.pool.get(descriptor.slot);
            self.edge.note_handled(&self.net, host, &packet);
            if handled == Handled::Unknown {
                self.edge.note_dropped(&self.net, at, &packet, DropReason::UnknownQp);
            }
        }
        if handled == Handled::Taken && (visit.plain || !self.edge.hosts[host].nic.has_news()) {
            self.edge.tally.delivered[kind] += 1;
        } else {
            self.finish_arrival(host, at, descriptor.slot, handled);
        }
        if handled != Handled::Taken || !visit.plain {
            // Applications have been notified, and may plan further events.
            *control = self.edge.hosts[host].control_at();
        }
        self.edge.pool.let_go::<TRAINS>(descriptor.slot);
        self.may_send(host, at)
    }

    /// Handles a packet with one of the rare cases of the slow path that arrives at a host through port `at`; returns
    /// whether the NIC takes it.
    #[cold]
    #[inline(never)]
    fn enter_slow_path(&mut self, host: u32, at: u32, packet: &Descriptor) -> bool {
        if self.net.ingress[at].slow_path && self.net.is_lost(&mut self.edge, at, packet) {
            return false;
        }
        if packet.is_pause() {
            if self.net.take_pause(&mut self.edge, at, packet.slot) {
                self.kick_host(host, at);
            }
            return false;
        }
        if packet.is_trimmed() && !self.edge.hears_trim(packet.slot) {
            self.net.drop_packet(&mut self.edge, at, packet.slot, DropReason::Trimmed);
            return false;
        }
        true
    }

    /// Lets a host send through port `at` after a pause or an outage: now if the port is free, else when it will be.
    pub(crate) fn kick_host(&mut self, host: u32, at: u32) {
        let port = &mut self.net.egress[at];
        if port.free_pending {
            return;
        }
        if port.busy_until > self.net.now {
            port.free_pending = true;
            self.edge.hosts[host].free_at = port.busy_until.as_ps();
        } else {
            self.serve_host(host, at);
        }
    }

    /// Handles a packet that may have finished something, or was dropped.
    #[inline(never)]
    fn finish_arrival(&mut self, host: u32, at: u32, slot: Slot, handled: Handled) {
        let packet = self.edge.pool.first(slot).0;
        let (kind, slot) = (kind_of(packet), packet.slot);
        match handled {
            Handled::Taken => self.edge.tally.delivered[kind] += 1,
            Handled::Completed(completion) => {
                self.edge.tally.delivered[kind] += 1;
                self.on_completion(host, completion, slot);
            }
            Handled::Unknown => {
                self.edge.tally.drops[kind].count(DropReason::UnknownQp);
                self.net.extras[at].drops += 1;
            }
        }
        if self.edge.fabric.has_more_to_tell {
            self.send_reports(host);
            self.take_completions(host, slot);
        }
    }

    /// Handles further completions of the NIC; `slot` as for [`Partition::on_completion`].
    fn take_completions(&mut self, host: u32, slot: u32) {
        while let Some(completion) = self.edge.hosts[host].nic.poll_completion() {
            self.on_completion(host, completion, slot);
        }
    }

    /// Sends reports, which travel outside the fabric: with the propagation delay of the path back, but without
    /// queueing.
    fn send_reports(&mut self, host: u32) {
        while let Some(report) = self.edge.hosts[host].nic.poll_report() {
            let from = self.edge.hosts[host].id;
            let way = self.edge.fabric.paths.between(from, report.to);
            let after = way.map_or(Duration::ZERO, |way| way.propagation).max(self.edge.fabric.notice);
            self.tell_after(after, host, report.to, News::Report(report));
        }
    }

    /// Tells the port that the NIC may want to send.
    pub(super) fn after_nic(&mut self, host: u32) {
        let port = self.edge.hosts[host].port;
        if self.may_send(host, port) {
            self.serve_host(host, port);
        }
    }

    /// Returns whether a host that may want to send may do so now. If its link is busy, a return is scheduled.
    #[inline(always)]
    fn may_send(&mut self, host: u32, at: u32) -> bool {
        let (state, port) = (&mut self.edge.hosts[host], &mut self.net.egress[at]);
        // Where all classes are paused, the end of the pause causes a return.
        let all = self.edge.fabric.all_classes;
        if state.free_at != NEVER || !state.nic.is_ready() || port.paused & all == all {
            return false;
        }
        if port.busy_until <= self.net.now {
            return true;
        }
        port.free_pending = true;
        state.free_at = port.busy_until.as_ps();
        false
    }

    /// Wakes the NIC of a host, as it wanted. Returns whether the host may send now.
    #[inline(always)]
    fn on_host_wake(&mut self, host: u32, at: u32) -> bool {
        self.net.events += 1;
        let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
        let Host { nic, params, .. } = &mut self.edge.hosts[host];
        nic.handle_timeout(&mut cx, params);
        if self.edge.fabric.reads_records {
            // A tunnel may have released packets that had waited for missing ones; a queue pair may have failed.
            self.take_completions(host, 0);
            self.attend_applications(host);
        }
        if RECORDED {
            self.edge.note_woken(&self.net, host);
        }
        self.may_send(host, at)
    }

    /// Sends the next packet of a host whose link is free, and schedules a return if more packets wait.
    #[inline(always)]
    pub(crate) fn serve_host(&mut self, host: u32, at: u32) {
        let paused = self.net.egress[at].paused;
        let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
        let (slot, packet) = self.edge.pool.vacancy();
        let Host { nic, params, free_at, .. } = &mut self.edge.hosts[host];
        if !nic.poll_transmit(&mut cx, params, paused, packet) {
            // Nothing may leave now. If the cause is a pause, its end causes a return.
            *free_at = NEVER;
            self.net.egress[at].free_pending = false;
            if RECORDED {
                self.edge.log.ignore_heard();
            }
            return;
        }
        let descriptor = Descriptor::of(packet, slot, self.edge.fabric.attachment[packet.dst.index()]);
        self.edge.pool.occupy(slot);
        self.send_from_host(host, at, slot, descriptor.frame, || descriptor);
        if RECORDED {
            let packet = self.edge.pool.get(slot);
            self.edge.note_handled(&self.net, host, &packet);
        }
        let (state, port) = (&mut self.edge.hosts[host], &mut self.net.egress[at]);
        port.free_pending = state.nic.is_ready();
        state.free_at = if port.free_pending { port.busy_until.as_ps() } else { NEVER };
        if let Some(soon) = state.nic.state_to_send(AHEAD - 1) {
            soon.prefetch();
        }
    }

    /// Sends the packet in `slot`, of `frame` bytes, through the free port `at` of a host.
    #[inline(always)]
    fn send_from_host(&mut self, host: u32, at: u32, slot: Slot, frame: u16, packet: impl WriteMessage<Descriptor>) {
        debug_assert!(self.net.egress[at].busy_until <= self.net.now, "one packet at a time");
        if self.net.egress[at].takes_slow_path() {
            return packet.show(|packet| self.send_slowly(host, at, packet));
        }
        let frame = u64::from(frame);
        let port = &self.net.egress[at];
        let serialisation = port.plain_serialisation(frame + self.net.params.gap);
        if RECORDED {
            self.edge.note_sent(&self.net, at, slot, serialisation);
        }
        let port = &mut self.net.egress[at];
        let arrival = port.begin_frame(self.net.now, serialisation, frame);
        self.edge.calendar.send(port.peer_node, arrival.as_ps(), port.peer_port, packet);
    }

    /// Sends a packet like [`Partition::send_from_host`], but through a port with a slow path.
    #[cold]
    #[inline(never)]
    fn send_slowly(&mut self, host: u32, at: u32, packet: &Descriptor) {
        self.edge.write_records(&self.net, at, packet);
        let (port, frame) = (&self.net.egress[at], u64::from(packet.frame));
        let mut serialisation = port.serialisation(frame + self.net.params.gap, || self.net.extras[at].rate);
        if let Some(clock) = &mut self.edge.hosts[host].clock {
            let was_idle = port.busy_until < self.net.now || port.frames == 0;
            serialisation = clock.send(serialisation, was_idle);
        }
        if RECORDED {
            self.edge.note_sent(&self.net, at, packet.slot, serialisation);
        }
        let port = &mut self.net.egress[at];
        let arrival = port.begin_frame(self.net.now, serialisation, frame);
        self.edge.calendar.send(port.peer_node, arrival.as_ps(), port.peer_port, packet);
    }
}

impl<const RECORDED: bool> Edge<RECORDED> {
    /// Returns whether the transport of a trimmed packet wants its headers.
    fn hears_trim(&self, slot: Slot) -> bool {
        self.fabric.hears_trims
            && match self.pool.first(slot).0.repr {
                Repr::EqdsData(_) => true,
                // Not those of queue pairs, whose tunnels hear of trims.
                Repr::Data(_) => matches!(self.fabric.nic.flows, FlowParams::Messages(_)),
                _ => false,
            }
    }
}
