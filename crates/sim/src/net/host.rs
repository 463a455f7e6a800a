//! Hosts: a NIC and its link. What its applications do is in [`super::desk`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use selvedge_nic::{Handled, Nic, NicParams};
use selvedge_telemetry::{DropReason, FlowRow};
use selvedge_transport::Cx;
use selvedge_units::{Duration, HostId, Instant, Rate};

use super::descriptor::Descriptor;
use super::desk::Receiving;
use super::notice::{Due, News, Notice};
use super::places::Places;
use crate::kernel::partition::{Partition, fold};
use crate::kernel::pending::NEVER;
use crate::kernel::tally::kind_of;
use crate::workload::FlowSpec;

/// A host. What every visit touches comes first, with the beginning of the NIC.
#[repr(C, align(64))]
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) port: u32,
    /// When its port is free, if it waits for that.
    pub(crate) free_at: u64,
    /// When its port's pause timer fires.
    pub(crate) timer_at: u64,
    /// When there is a notice to read or a flow to begin.
    pub(super) desk_at: u64,
    /// Rolling hash of everything that arrived.
    pub(crate) digest: u64,
    /// What the NIC needs to know, on a link of this rate.
    pub(crate) params: Arc<NicParams>,
    pub(crate) nic: Nic,
    /// Flows that it sends, by the NIC's context.
    pub(super) sending: Places<FlowSpec>,
    /// Flows that it receives, by the NIC's context.
    pub(super) receiving: Places<Receiving>,
    pub(super) inbox: BinaryHeap<Reverse<Notice>>,
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
            desk_at: NEVER,
            digest: 0,
            sending: Places::NEW,
            receiving: Places::NEW,
            inbox: BinaryHeap::new(),
            notices_sent: 0,
            later: BinaryHeap::new(),
        }
    }

    /// How many of its bytes, from its beginning, visits will touch.
    pub(crate) fn busy_bytes(params: &NicParams) -> usize {
        std::mem::offset_of!(Self, nic) + Nic::busy_bytes(params)
    }

    /// When it has something to do beside its mail, which may be over.
    #[inline]
    fn due(&self) -> u64 {
        self.desk_at.min(self.free_at).min(self.wake_at()).min(self.timer_at)
    }

    /// When its NIC wants to be woken, which may be over.
    #[inline]
    fn wake_at(&self) -> u64 {
        self.nic.poll_timeout().map_or(NEVER, Instant::as_ps)
    }

    /// Looks up when there is something to do at the desk.
    pub(super) fn look_at_desk(&mut self) {
        let notice = self.inbox.peek().map_or(Instant::NEVER, |Reverse(notice)| notice.at);
        let flow = self.later.peek().map_or(Instant::NEVER, Due::at);
        self.desk_at = notice.min(flow).as_ps();
    }

    /// Gives up the flows that have begun and not finished here.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = FlowRow> {
        let announced = self.inbox.iter().filter_map(|Reverse(notice)| match notice.news {
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

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles the events of a host that are earlier than `limit`.
    #[inline(never)]
    pub(crate) fn visit_host(&mut self, host: u32, limit: u64) {
        let begin = self.calendar.begin();
        // One link leads here, so mail lies in the order of its arrival.
        let mail = self.calendar.take_mail(host);
        let port = self.hosts[host].port;
        let mut now = self.begin;
        let mut unread = mail.iter();
        let next = loop {
            let due = self.hosts[host].due().max(now);
            let packet = unread.as_slice().first().filter(|packet| begin + u64::from(packet.at) <= due);
            now = packet.map_or(due, |packet| begin + u64::from(packet.at));
            if now >= limit {
                break now;
            }
            self.now = Instant::from_ps(now);
            if let Some(packet) = packet {
                unread.next();
                self.events += 1;
                self.arrive_at_host(host, port, packet);
            } else {
                self.attend_host(host, port);
            }
        };
        if unread.as_slice().is_empty() {
            self.calendar.return_mail(mail);
        } else {
            let rest: Vec<_> = unread.copied().collect();
            self.calendar.keep_mail(host, mail, &rest);
        }
        self.leave(host, next, limit);
    }

    /// When a host has something to do beside its mail.
    pub(crate) fn host_due(&self, host: u32) -> u64 {
        self.hosts[host].due().max(self.now.as_ps())
    }

    /// Does what a host has to do now beside its mail: the first such thing.
    #[inline]
    fn attend_host(&mut self, host: u32, port: u32) {
        let (state, now) = (&mut self.hosts[host], self.now.as_ps());
        if state.desk_at <= now {
            self.attend_desk(host);
        } else if state.free_at <= now {
            self.on_host_port_free(host, port);
        } else if state.wake_at() <= now {
            self.on_host_wake(host);
        } else {
            state.timer_at = NEVER;
            self.on_pause_timer(port);
        }
    }

    /// A packet has reached its host.
    #[inline]
    fn arrive_at_host(&mut self, host: u32, at: u32, descriptor: &Descriptor) {
        if RECORDED {
            self.note_arrived(at, descriptor.slot);
        }
        let state = &mut self.hosts[host];
        state.digest = fold(state.digest, self.now, descriptor.name);
        if (self.ingress[at].rare_arrivals | descriptor.is_rare()) && !self.enter_rarely(at, descriptor) {
            return;
        }
        let packet = self.pool.get(descriptor.slot);
        let (kind, slot) = (kind_of(packet), packet.slot);
        let handled = if self.fabric.reads_records {
            self.handle_with_record(host, descriptor.slot)
        } else {
            let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
            let Host { nic, params, .. } = &mut self.hosts[host];
            nic.handle_packet(&mut cx, params, packet)
        };
        if RECORDED {
            let packet = *self.pool.get(descriptor.slot);
            self.note_handled(host, &packet);
            if handled == Handled::Unknown {
                self.note_dropped(at, &packet, DropReason::UnknownQp);
            }
        }
        self.pool.release(descriptor.slot);
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
        self.after_nic(host);
    }

    /// What the NIC has completed beside what it said at once; `slot` as for [`Partition::on_completion`].
    fn take_completions(&mut self, host: u32, slot: u32) {
        while let Some(completion) = self.hosts[host].nic.poll_completion() {
            self.on_completion(host, completion, slot);
        }
    }

    /// Reports travel outside the fabric: as long as the way back is, but without waiting anywhere.
    fn send_reports(&mut self, host: u32) {
        while let Some(report) = self.hosts[host].nic.poll_report() {
            let from = self.hosts[host].id;
            let way = self.fabric.paths.between(from, report.to);
            let after = way.map_or(Duration::ZERO, |way| way.propagation).max(self.fabric.notice);
            self.tell_after(after, host, report.to, News::Report(report));
        }
    }

    /// Lets the port know that the NIC may want to send.
    #[inline]
    pub(super) fn after_nic(&mut self, host: u32) {
        let state = &self.hosts[host];
        let port = &self.egress[state.port];
        // Where all classes are paused, the end of that brings us back.
        let all = self.fabric.all_classes;
        if !port.free_pending && state.nic.is_ready() && port.paused & all != all {
            self.kick(state.port);
        }
    }

    fn on_host_wake(&mut self, host: u32) {
        self.events += 1;
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let Host { nic, params, .. } = &mut self.hosts[host];
        nic.handle_timeout(&mut cx, params);
        if self.fabric.reads_records {
            // What had waited for missing packets may have come out of a tunnel; a queue pair may have failed.
            self.take_completions(host, 0);
            self.attend_applications(host);
        }
        if RECORDED {
            self.note_woken(host);
        }
        self.after_nic(host);
    }

    /// The port of a host that wanted to come back is free.
    #[inline]
    fn on_host_port_free(&mut self, host: u32, at: u32) {
        self.events += 1;
        self.egress[at].free_pending = false;
        self.hosts[host].free_at = NEVER;
        // Hosts pause nobody, so there is nothing else that it may have to send.
        self.serve_host(host, at);
    }

    /// Sends the next packet of a host whose link is free, and comes back when it is free again if more waits.
    #[inline(always)]
    pub(crate) fn serve_host(&mut self, host: u32, at: u32) {
        let paused = self.egress[at].paused;
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let (slot, packet) = self.pool.vacancy();
        let Host { nic, params, .. } = &mut self.hosts[host];
        if !nic.poll_transmit(&mut cx, params, paused, packet) {
            // Nothing may go now. If that is for a pause, its end brings us back.
            if RECORDED {
                self.log.ignore_heard();
            }
            return;
        }
        let descriptor = Descriptor::of(packet, slot, self.fabric.attachment[packet.dst.index()]);
        self.pool.occupy(slot);
        self.transmit(at, &descriptor);
        if RECORDED {
            let packet = *self.pool.get(slot);
            self.note_handled(host, &packet);
        }
        let (state, port) = (&mut self.hosts[host], &mut self.egress[at]);
        if state.nic.is_ready() {
            port.free_pending = true;
            state.free_at = port.busy_until.as_ps();
        }
    }
}
