//! Hosts: a NIC and its link. Their applications are in [`super::flows`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;
use std::sync::Arc;

use selvedge_nic::{Handled, Nic, NicParams};
use selvedge_telemetry::{DropReason, FlowRow, PacketKind};
use selvedge_transport::Cx;
use selvedge_units::{Duration, HostId, Instant, Rate};
use selvedge_wire::Repr;

use super::descriptor::Descriptor;
use super::flows::{Receiving, Sending};
use super::notice::{Due, News, Notice};
use super::places::Places;
use super::pool::Slot;
use crate::kernel::busy_ports::NEVER;
use crate::kernel::partition::{AHEAD, Partition, fold};
use crate::kernel::prefetch_bytes;
use crate::kernel::tally::kind_of;

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
        let (state, fabric) = (&self.hosts[host], &self.fabric);
        let visit = HostVisit {
            slow_path: self.ingress[state.port].slow_path,
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
        let begin = self.calendar.begin();
        // One link leads to the host, so its inbox is in order of arrival.
        let inbox = self.calendar.take_inbox(host);
        let port = self.hosts[host].port;
        let arrival_of = |packet: Option<&Descriptor>| packet.map_or(NEVER, |packet| begin + u64::from(packet.at));
        let mut unread = inbox.iter();
        let mut arrival = arrival_of(unread.as_slice().first());
        // Time of the next event that few other events change.
        let mut control = self.hosts[host].control_at();
        let mut now = self.begin;
        let next = loop {
            if IN_TRAINS {
                let taken = self.take_ahead(host, unread.as_slice(), control.min(limit - 1));
                unread = unread.as_slice()[taken..].iter();
                arrival = arrival_of(unread.as_slice().first());
            }
            let state = &self.hosts[host];
            let due = control.min(state.free_at).min(state.wake_at()).max(now);
            now = arrival.min(due);
            if now >= limit {
                break now;
            }
            self.now = Instant::from_ps(now);
            let may_send = if arrival <= due {
                let Some(packet) = unread.next() else { break NEVER };
                arrival = arrival_of(unread.as_slice().first());
                self.events += 1;
                self.arrive_at_host::<TRAINS>(host, port, packet, visit, &mut control)
            } else if state.free_at <= now && control > now {
                // Hosts never pause a peer, so the port has no pause frame to send.
                self.events += 1;
                true
            } else {
                let may_send = self.attend_host(host, port);
                control = self.hosts[host].control_at();
                may_send
            };
            if may_send {
                self.serve_host(host, port);
                if IN_TRAINS && self.hosts[host].free_at < limit {
                    self.send_train(host, port, arrival.min(control).min(limit));
                }
            }
        };
        if !unread.as_slice().is_empty() {
            self.calendar.keep_rest(host, &inbox, unread);
        }
        self.calendar.return_inbox(inbox);
        self.leave(host, next, limit);
    }

    /// Returns the time of the next event of a host other than an arrival.
    pub(crate) fn host_due(&self, host: u32) -> u64 {
        self.hosts[host].due().max(self.now.as_ps())
    }

    /// Handles the first event of a host, other than an arrival, that is due now. Returns whether the host may send
    /// now.
    #[inline(never)]
    fn attend_host(&mut self, host: u32, port: u32) -> bool {
        let (state, now) = (&mut self.hosts[host], self.now.as_ps());
        if state.flow_event_at <= now {
            self.on_flow_event(host);
        } else if state.free_at <= now {
            self.events += 1;
            return true;
        } else if state.wake_at() <= now {
            return self.on_host_wake(host, port);
        } else {
            state.timer_at = NEVER;
            self.on_pause_timer(port);
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
            self.note_arrived(at, descriptor.slot);
        }
        let state = &mut self.hosts[host];
        state.digest = fold(state.digest, self.now, self.pool.name(descriptor.slot));
        if visit.slow_path | descriptor.takes_slow_path() {
            let leader_decides = self.enter_slow_path(at, descriptor);
            *control = self.hosts[host].control_at();
            if !leader_decides {
                return false;
            }
        }
        let mut room = MaybeUninit::uninit();
        let packet = self.pool.read::<TRAINS>(descriptor.slot, &mut room);
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let Host { nic, params, .. } = &mut self.hosts[host];
        let (kind, handled) = match packet.repr {
            _ if !visit.plain && self.fabric.reads_records => {
                (kind_of(packet), self.handle_with_record(host, descriptor.slot))
            }
            // The kind is known here without a further look-up.
            Repr::Data(_) => (PacketKind::Data, nic.handle_packet(&mut cx, params, packet)),
            Repr::Ack(_) => (PacketKind::Ack, nic.handle_packet(&mut cx, params, packet)),
            _ => (kind_of(packet), nic.handle_packet(&mut cx, params, packet)),
        };
        if RECORDED {
            let packet = self.pool.get(descriptor.slot);
            self.note_handled(host, &packet);
            if handled == Handled::Unknown {
                self.note_dropped(at, &packet, DropReason::UnknownQp);
            }
        }
        if handled == Handled::Taken && (visit.plain || !self.hosts[host].nic.has_news()) {
            self.tally.delivered[kind] += 1;
        } else {
            self.finish_arrival(host, at, descriptor.slot, handled);
        }
        if handled != Handled::Taken || !visit.plain {
            // Applications have been notified, and may plan further events.
            *control = self.hosts[host].control_at();
        }
        self.pool.let_go::<TRAINS>(descriptor.slot);
        self.may_send(host, at)
    }

    /// Handles a packet that may have finished something, or was dropped.
    #[inline(never)]
    fn finish_arrival(&mut self, host: u32, at: u32, slot: Slot, handled: Handled) {
        let packet = self.pool.first(slot).0;
        let (kind, slot) = (kind_of(packet), packet.slot);
        match handled {
            Handled::Taken => self.tally.delivered[kind] += 1,
            Handled::Completed(completion) => {
                self.tally.delivered[kind] += 1;
                self.on_completion(host, completion, slot);
            }
            Handled::Unknown => {
                self.tally.drops[kind].count(DropReason::UnknownQp);
                self.extras[at].drops += 1;
            }
        }
        if self.fabric.has_more_to_tell {
            self.send_reports(host);
            self.take_completions(host, slot);
        }
    }

    /// Handles further completions of the NIC; `slot` as for [`Partition::on_completion`].
    fn take_completions(&mut self, host: u32, slot: u32) {
        while let Some(completion) = self.hosts[host].nic.poll_completion() {
            self.on_completion(host, completion, slot);
        }
    }

    /// Sends reports, which travel outside the fabric: with the propagation delay of the path back, but without
    /// queueing.
    fn send_reports(&mut self, host: u32) {
        while let Some(report) = self.hosts[host].nic.poll_report() {
            let from = self.hosts[host].id;
            let way = self.fabric.paths.between(from, report.to);
            let after = way.map_or(Duration::ZERO, |way| way.propagation).max(self.fabric.notice);
            self.tell_after(after, host, report.to, News::Report(report));
        }
    }

    /// Tells the port that the NIC may want to send.
    pub(super) fn after_nic(&mut self, host: u32) {
        let port = self.hosts[host].port;
        if self.may_send(host, port) {
            self.serve(port);
        }
    }

    /// Returns whether a host that may want to send may do so now. If its link is busy, a return is scheduled.
    #[inline(always)]
    fn may_send(&mut self, host: u32, at: u32) -> bool {
        let (state, port) = (&mut self.hosts[host], &mut self.egress[at]);
        // Where all classes are paused, the end of the pause causes a return.
        let all = self.fabric.all_classes;
        if state.free_at != NEVER || !state.nic.is_ready() || port.paused & all == all {
            return false;
        }
        if port.busy_until <= self.now {
            return true;
        }
        port.free_pending = true;
        state.free_at = port.busy_until.as_ps();
        false
    }

    /// Wakes the NIC of a host, as it wanted. Returns whether the host may send now.
    #[inline(always)]
    fn on_host_wake(&mut self, host: u32, at: u32) -> bool {
        self.events += 1;
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let Host { nic, params, .. } = &mut self.hosts[host];
        nic.handle_timeout(&mut cx, params);
        if self.fabric.reads_records {
            // A tunnel may have released packets that had waited for missing ones; a queue pair may have failed.
            self.take_completions(host, 0);
            self.attend_applications(host);
        }
        if RECORDED {
            self.note_woken(host);
        }
        self.may_send(host, at)
    }

    /// Sends the next packet of a host whose link is free, and schedules a return if more packets wait.
    #[inline(always)]
    pub(crate) fn serve_host(&mut self, host: u32, at: u32) {
        let paused = self.egress[at].paused;
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let (slot, packet) = self.pool.vacancy();
        let Host { nic, params, free_at, .. } = &mut self.hosts[host];
        if !nic.poll_transmit(&mut cx, params, paused, packet) {
            // Nothing may leave now. If the cause is a pause, its end causes a return.
            *free_at = NEVER;
            self.egress[at].free_pending = false;
            if RECORDED {
                self.log.ignore_heard();
            }
            return;
        }
        let descriptor = Descriptor::of(packet, slot, self.fabric.attachment[packet.dst.index()]);
        self.pool.occupy(slot);
        self.transmit_descriptor(at, slot, descriptor.frame, || descriptor);
        if RECORDED {
            let packet = self.pool.get(slot);
            self.note_handled(host, &packet);
        }
        let (state, port) = (&mut self.hosts[host], &mut self.egress[at]);
        port.free_pending = state.nic.is_ready();
        state.free_at = if port.free_pending { port.busy_until.as_ps() } else { NEVER };
        if let Some((address, bytes)) = state.nic.ready_prefetch_target(AHEAD - 1) {
            prefetch_bytes(address, bytes);
        }
    }
}
