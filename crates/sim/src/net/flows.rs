//! Flows of a host, from beginning to end, and the notices about them that hosts send each other outside the fabric.
//!
//! Connection set-up is not simulated as packets: a sender's [`News::Open`] reaches the receiver after the time that
//! the fastest two links take, which is always before the first packet can.

use std::cmp::Reverse;

use selvedge_nic::{Completion, Message};
use selvedge_telemetry::FlowRow;
use selvedge_transport::Cx;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, QpNumber, Rng};

use super::host::Host;
use super::notice::{Due, News, Notice};
use crate::net::partition::Partition;
use crate::topology::Framing;
use crate::workload::schedule::{Action, Executor};
use crate::workload::{FlowSpec, Generator};

/// Flow at its sender.
#[derive(Clone, Copy)]
pub(crate) struct Sending {
    pub(crate) spec: FlowSpec,
    /// Queue pair of the flow, and its slot in the NIC.
    pub(crate) qp: QpNumber,
    pub(crate) slot: u32,
    /// Value that ECMP hashes for data; for the reverse direction, its complement is hashed. Not used where senders
    /// choose the paths, or where the flow has subflows.
    pub(crate) entropy: u32,
    /// Traffic class of the data.
    pub(crate) class: u8,
}

/// Flow at its receiver.
#[derive(Clone, Copy)]
pub(crate) struct Receiving {
    /// NIC and queue pair that send the flow.
    pub(super) sender: (HostId, QpNumber),
    pub(crate) row: FlowRow,
    pub(super) on_received: Option<u32>,
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Hands the flows of the stream that begin before `limit` to their hosts.
    pub(crate) fn admit_flows(&mut self, limit: u64) {
        while let Some(spec) = self.next_arrival.filter(|spec| spec.start.as_ps() < limit) {
            self.take_flow(spec);
            self.next_arrival = self.workload.stream.next_flow();
        }
    }

    /// Reads the oldest notice of a host, or begins the flow whose turn it is.
    pub(super) fn on_flow_event(&mut self, host: u32) {
        self.net.events += 1;
        let state = &mut self.edge.hosts[host];
        if state.notices.peek().is_some_and(|Reverse(notice)| notice.at == self.net.now) {
            self.read_notice(host);
        } else if let Some(due) = state.later.pop() {
            self.later -= 1;
            match due {
                _ if self.closing => {}
                Due::Flow { spec, .. } => self.start_flow(host, spec),
                Due::Computed { workload, place, .. } => {
                    self.execute(host, workload, |executor, now, actions| executor.on_computed(place, now, actions));
                }
            }
        }
        self.edge.hosts[host].find_flow_event();
    }

    /// Returns the NIC that sends a flow, if it belongs to this partition: a host may have a NIC of its own for peers
    /// in the same server.
    pub(super) fn nic_for(&self, spec: &FlowSpec) -> Option<u32> {
        self.local_host(self.edge.fabric.inner.between(spec.src, spec.dst).0)
    }

    /// Hands a flow to its source's NIC.
    fn start_flow(&mut self, host: u32, spec: FlowSpec) {
        if self.edge.fabric.has_verbs && self.workload.posting_of(spec.workload).is_some() {
            return self.post(host, spec);
        }
        let stream = u64::from(spec.workload) << 48 ^ spec.id;
        let entropy = Rng::stream(self.edge.fabric.seed, Domain::PathEntropy, stream).next_u64() as u32;
        let (src, dst) = self.edge.fabric.inner.between(spec.src, spec.dst);
        let carrier = self.edge.fabric.carrier_of(spec.workload);
        let framing = self.edge.fabric.framing_of(carrier);
        let ideal = self.edge.fabric.paths.ideal_fct(src, dst, spec.size, framing);
        let state = &mut self.edge.hosts[host];
        let own = self.edge.fabric.class_of(carrier);
        let class = spec.priority.map_or(own, |priority| self.edge.fabric.class_of[usize::from(priority)]);
        let links = self.edge.fabric.paths.between(src, dst).map_or(0, |path| path.links);
        let context = state.sending.put(Sending { spec, qp: QpNumber(0), slot: 0, entropy, class });
        let message = Message { dst, size: spec.size, entropy, class, links, context };
        let params = self.edge.fabric.flow_params(&state.params, src, dst);
        let (qp, slot) = state.nic.open_sender(&Cx::at(self.net.now), params, carrier, &message);
        let sending = state.sending.get_mut(context);
        (sending.qp, sending.slot) = (qp, slot);
        let row = spec.row(framing.mtu, ideal);
        self.flows_started += 1;
        if RECORDED {
            self.edge.note_flow_started(&self.net, host, row, qp, slot);
        }
        self.tell(host, dst, News::Open { qp, row, on_received: spec.on_received });
        self.after_nic(host);
    }

    /// Sends `news` from a host of this partition to any host.
    fn tell(&mut self, from: u32, to: HostId, news: News) {
        self.tell_after(self.edge.fabric.notice, from, to, news);
    }

    /// Returns how long an acknowledgement would take from `host` to `to` in an idle fabric: a sender that gets none
    /// must not know sooner than one that does.
    pub(crate) fn way_back(&self, host: u32, to: HostId) -> Duration {
        let Host { id, params, .. } = &self.edge.hosts[host];
        let [frame, gap] = [params.frames.ack_frame, params.frames.gap].map(|bytes| Bytes::new(bytes.into()));
        let way =
            self.edge.fabric.paths.ideal_fct(*id, to, frame, Framing { mtu: frame, overhead: gap, least: Bytes::ZERO });
        way.unwrap_or_default().max(self.edge.fabric.notice)
    }

    /// Sends `news` that take the time `after`, at least as long as notices take.
    pub(super) fn tell_after(&mut self, after: Duration, from: u32, to: HostId, news: News) {
        let state = &mut self.edge.hosts[from];
        let notice = Notice { at: self.net.now + after, from: state.id, number: state.notices_sent, news };
        state.notices_sent += 1;
        let (partition, local) = self.edge.fabric.home[to.index()];
        if partition == self.index {
            self.take_notice(local, notice);
        } else {
            self.outboxes[partition as usize].notices.push((local, notice));
        }
    }

    pub(crate) fn take_notice(&mut self, host: u32, notice: Notice) {
        let at = notice.at.as_ps();
        let state = &mut self.edge.hosts[host];
        state.notices.push(Reverse(notice));
        state.flow_event_at = state.flow_event_at.min(at);
        self.edge.calendar.book(host, at);
    }

    /// Reads the oldest notice of a host.
    fn read_notice(&mut self, host: u32) {
        let state = &mut self.edge.hosts[host];
        let Some(Reverse(notice)) = state.notices.pop() else { return };
        debug_assert_eq!(notice.at, self.net.now);
        match notice.news {
            News::Open { qp, row, on_received } => {
                let context = state.receiving.put(Receiving { sender: (notice.from, qp), row, on_received });
                let carrier = self.edge.fabric.carrier_of(row.workload);
                // Both ends of TCP have equal settings.
                let of_path = self.edge.fabric.flow_params(&state.params, notice.from, state.id);
                let params = if of_path.tcp_of(carrier).is_some() { of_path } else { &state.params };
                state.nic.open_receiver(params, carrier, notice.from, qp, row.size, context);
            }
            News::Close { qp } => {
                if let Some((context, _)) = state.nic.close_receiver(notice.from, qp) {
                    state.receiving.take(context);
                }
            }
            News::Finished { qp, slot } => {
                if let Some(context) = state.nic.close_sender(slot, qp) {
                    self.on_sent(host, qp, context);
                }
            }
            News::Report(report) => {
                let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
                state.nic.handle_report(&mut cx, &state.params, &report);
                if RECORDED {
                    self.edge.note_woken(&self.net, host);
                }
                self.after_nic(host);
            }
        }
    }

    /// Handles that a packet has finished something at `host`; `slot` is that of its sender.
    pub(super) fn on_completion(&mut self, host: u32, completion: Completion, slot: u32) {
        match completion {
            Completion::Sent { qp, context } => self.on_sent(host, qp, context),
            Completion::Received { src, qp, context, duplicates } => {
                let flow = self.edge.hosts[host].receiving.get_mut(context);
                flow.row.finish = Some(self.net.now);
                flow.row.spurious = duplicates;
                let (row, on_received) = (flow.row, flow.on_received);
                self.rows.push(row);
                if RECORDED {
                    self.edge.note_flow_finished(&self.net, host, row);
                }
                self.flows_finished += 1;
                if self.edge.fabric.unacknowledged && !self.edge.fabric.speaks_tcp(row.workload) {
                    self.tell_after(self.way_back(host, src), host, src, News::Finished { qp, slot });
                }
                self.activate(on_received);
                self.execute(host, row.workload, |executor, now, actions| executor.on_received(row.id, now, actions));
            }
        }
    }

    /// Handles that everything that a sender has sent is acknowledged.
    fn on_sent(&mut self, host: u32, qp: QpNumber, context: u32) {
        let Sending { spec, .. } = self.edge.hosts[host].sending.take(context);
        self.flows_closed += 1;
        let (_, dst) = self.edge.fabric.inner.between(spec.src, spec.dst);
        self.tell(host, dst, News::Close { qp });
        self.activate(spec.on_sent);
        self.execute(host, spec.workload, |executor, now, actions| executor.on_sent(spec.id, now, actions));
        if !self.closing
            && let Some(closed) = self.workload.loop_of(spec.workload)
            && let Some(mut next) = closed.next(spec.src, self.net.now)
            && let Some(nic) = self.nic_for(&next)
        {
            if nic != host {
                // Another NIC of the same host learns of it after the delay of a notice, like any other.
                next.start = next.start.max(self.net.now + self.edge.fabric.notice);
            }
            self.begin_later(nic, next);
        }
    }

    /// Begins the flows that a trigger releases. With triggers there is one partition, which holds every source.
    fn activate(&mut self, trigger: Option<u32>) {
        let Some(trigger) = trigger.filter(|_| !self.closing) else { return };
        for spec in self.workload.triggers.activate(trigger, self.net.now) {
            if let Some(host) = self.nic_for(&spec) {
                self.begin_later(host, spec);
            }
        }
    }

    /// Lets the schedule of a workload, if it has one, continue at `host`.
    #[inline]
    fn execute(&mut self, host: u32, workload: u16, go_on: impl FnOnce(&mut Executor, Instant, &mut Vec<Action>)) {
        if self.workload.executors.is_empty() || self.closing {
            return;
        }
        let mut actions = Vec::new();
        if let Some(executor) = self.workload.executor_of(workload) {
            go_on(executor, self.net.now, &mut actions);
        }
        self.perform(host, workload, self.net.now + self.edge.fabric.notice, actions);
    }

    /// Performs a schedule's actions for applications of `host`. If the host has several NICs, the others learn of the
    /// actions at `elsewhere`.
    fn perform(&mut self, host: u32, workload: u16, elsewhere: Instant, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Done(row) => self.ranks.push(row),
                Action::Compute { at, place } => self.do_later(host, Due::Computed { at, workload, place }),
                Action::Flow(mut spec) => {
                    if let Some(nic) = self.nic_for(&spec) {
                        if nic != host {
                            spec.start = spec.start.max(elsewhere);
                        }
                        self.begin_later(nic, spec);
                    }
                }
            }
        }
    }

    /// Takes a flow that begins at a time that has not passed, if its sender belongs to this partition.
    pub(crate) fn take_flow(&mut self, spec: FlowSpec) {
        if let Some(host) = self.nic_for(&spec) {
            self.begin_later(host, spec);
        }
    }

    /// Plans the beginning of a flow of a host of this partition.
    pub(super) fn begin_later(&mut self, host: u32, spec: FlowSpec) {
        let turn = self.workload.posting_of(spec.workload).map_or(spec.workload, |posting| posting.first());
        self.do_later(host, Due::Flow { spec, turn });
    }

    fn do_later(&mut self, host: u32, due: Due) {
        let at = due.at().as_ps();
        self.later += 1;
        let state = &mut self.edge.hosts[host];
        state.later.push(due);
        state.flow_event_at = state.flow_event_at.min(at);
        self.edge.calendar.book(host, at);
    }

    /// Asks closed loops and schedules for the first flows of this partition's hosts, and the stream for its first.
    pub(crate) fn open_workload(&mut self) {
        for closed in 0..self.workload.loops.len() {
            let clients: Vec<HostId> = self.workload.loops[closed].clients().collect();
            for client in clients {
                if self.local_host(client).is_some() {
                    for spec in self.workload.loops[closed].begin(client) {
                        if let Some(host) = self.nic_for(&spec) {
                            self.begin_later(host, spec);
                        }
                    }
                }
            }
        }
        self.open_postings();
        for executor in 0..self.workload.executors.len() {
            let workload = self.workload.executors[executor].workload();
            for own in self.workload.executors[executor].hosts() {
                if let Some(host) = self.local_host(own) {
                    let mut actions = Vec::new();
                    self.workload.executors[executor].begin(own, &mut actions);
                    self.perform(host, workload, Instant::ZERO, actions);
                }
            }
        }
        self.next_arrival = self.workload.stream.next_flow();
    }
}
