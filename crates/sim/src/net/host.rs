//! Hosts: a NIC, its flows, and the news that hosts give each other outside the fabric.
//!
//! Connection set-up is not simulated as packets: a sender's [`News::Open`] reaches the receiver
//! after the fabric's smallest link delay, which is always before its first packet can.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use selvedge_nic::{Completion, Handled, Nic, Outgoing, Report};
use selvedge_telemetry::{DropReason, FlowRow};
use selvedge_transport::Cx;
use selvedge_units::{Domain, Duration, HostId, Instant, QpNumber, Rng};

use super::pool::Slot;
use crate::kernel::partition::{Partition, kind, kind_of};
use crate::workload::{FlowSpec, Generator};

/// A host.
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) port: u32,
    pub(crate) nic: Nic,
    /// When the `HOST_WAKE` event that counts will come; later ones are stale.
    wake_at: Instant,
    /// Flows that it sends, by the NIC's context.
    sending: Places<FlowSpec>,
    /// Flows that it receives, by the NIC's context.
    receiving: Places<Receiving>,
    inbox: BinaryHeap<Reverse<Notice>>,
    notices_sent: u64,
}

/// Something that one host tells another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) at: Instant,
    /// Who says it, and its count of things said: a total order that no partitioning changes.
    from: HostId,
    number: u64,
    news: News,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    /// Expect this flow on this queue pair.
    Open { qp: QpNumber, row: FlowRow, on_received: Option<u32> },
    /// The queue pair is finished; forget it.
    Close { qp: QpNumber },
    /// Without acknowledgements: everything has arrived.
    Finished { qp: QpNumber, slot: u32 },
    /// Without acknowledgements: a round-trip time for congestion control.
    Report(Report),
}

impl Ord for Notice {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.from, self.number).cmp(&(other.at, other.from, other.number))
    }
}
impl PartialOrd for Notice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Host {
    pub(crate) fn new(id: HostId, port: u32) -> Self {
        Self {
            id,
            port,
            nic: Nic::new(id),
            wake_at: Instant::NEVER,
            sending: Places::NEW,
            receiving: Places::NEW,
            inbox: BinaryHeap::new(),
            notices_sent: 0,
        }
    }

    /// Flows that have begun and not finished here.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = FlowRow> {
        let announced = self.inbox.iter().filter_map(|Reverse(notice)| match notice.news {
            News::Open { row, .. } => Some(row),
            _ => None,
        });
        self.receiving.iter().map(|flow| flow.row).filter(|row| row.finish.is_none()).chain(announced)
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// A packet has reached its host.
    #[inline]
    pub(crate) fn arrive_at_host(&mut self, host: u32, at: u32, slot: Slot) {
        let packet = self.pool.take(slot);
        let state = &mut self.hosts[host];
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let handled = state.nic.handle_packet(&mut cx, &self.fabric.nic, &packet);
        if RECORDED {
            self.note_handled(host, &packet);
        }
        match handled {
            Handled::Taken => self.tally.delivered[kind_of(&packet)] += 1,
            Handled::Completed(completion) => {
                self.tally.delivered[kind_of(&packet)] += 1;
                self.on_completion(host, completion, packet.slot);
            }
            Handled::Unknown => {
                if RECORDED {
                    self.note_dropped(at, &packet, DropReason::UnknownQp);
                }
                self.tally.drops[kind_of(&packet)].count(DropReason::UnknownQp);
                self.extras[at].drops += 1;
            }
        }
        if self.fabric.reports_freely {
            self.send_reports(host);
        }
        self.after_nic(host);
    }

    /// Reports travel outside the fabric: as long as the way back is, but without waiting anywhere.
    fn send_reports(&mut self, host: u32) {
        while let Some(report) = self.hosts[host].nic.poll_report() {
            let from = self.hosts[host].id;
            let way = self.fabric.paths.between(from, report.to);
            let after = way.map_or(Duration::ZERO, |way| way.propagation).max(self.fabric.lookahead);
            self.tell_after(after, host, report.to, News::Report(report));
        }
    }

    /// Lets the port and the clock know what the NIC wants now.
    #[inline]
    pub(crate) fn after_nic(&mut self, host: u32) {
        self.sync_wake(host);
        let state = &self.hosts[host];
        if state.nic.is_ready() {
            self.kick(state.port);
        }
    }

    pub(crate) fn on_host_wake(&mut self, host: u32) {
        let state = &mut self.hosts[host];
        if state.wake_at > self.now {
            return;
        }
        state.wake_at = Instant::NEVER;
        state.nic.handle_timeout(&mut Cx { now: self.now, probe: self.log.probe::<RECORDED>() });
        if RECORDED {
            self.note_woken(host);
        }
        self.after_nic(host);
    }

    /// Sends the next packet of a host whose link is free.
    #[inline]
    pub(crate) fn serve_host(&mut self, host: u32, at: u32) {
        let paused = self.egress[at].paused;
        let state = &mut self.hosts[host];
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let packet = state.nic.poll_transmit(&mut cx, &self.fabric.nic, paused);
        // Nothing may go now. If that is for a pause, its end brings us back.
        if let Some(packet) = packet {
            let more = state.nic.is_ready();
            let slot = self.pool.put(packet);
            let size = self.transmit(at, slot);
            if RECORDED {
                self.note_handled(host, &packet);
            }
            if more {
                self.return_when_free(at, size);
            }
        }
        self.sync_wake(host);
    }

    /// Makes sure that the NIC is woken when it wants to be.
    #[inline]
    fn sync_wake(&mut self, host: u32) {
        let state = &mut self.hosts[host];
        if let Some(at) = state.nic.poll_timeout()
            && at < state.wake_at
        {
            let at = at.max(self.now);
            state.wake_at = at;
            self.schedule(at, kind::HOST_WAKE, host, 0);
        }
    }

    /// Begins every flow whose time has come, and asks for the next.
    pub(crate) fn on_flow_start(&mut self) {
        self.events -= 1; // counted per flow, so that partitions do not change the sum
        if self.closing {
            self.next_arrival = None;
        }
        while let Some(spec) = self.next_arrival.filter(|spec| spec.start <= self.now) {
            if let Some(host) = self.local_host(spec.src) {
                self.events += 1;
                self.start_flow(host, spec);
            }
            self.next_arrival = self.workload.stream.next_flow();
            // Once per time at which flows come, not per event: other flows have events too.
            if self.next_arrival.is_some_and(|next| next.start > self.now) {
                self.schedule_next_arrival();
            }
        }
        while let Some(first) = self.later.first_entry().filter(|first| first.key().0 <= self.now) {
            let spec = first.remove();
            if let Some(host) = self.local_host(spec.src).filter(|_| !self.closing) {
                self.events += 1;
                self.start_flow(host, spec);
            }
        }
    }

    fn schedule_next_arrival(&mut self) {
        if let Some(spec) = &self.next_arrival {
            let at = spec.start.max(self.now);
            self.schedule(at, kind::FLOW_START, 0, 0);
        }
    }

    /// Hands a flow to its source's NIC.
    pub(crate) fn start_flow(&mut self, host: u32, spec: FlowSpec) {
        let stream = u64::from(spec.workload) << 48 ^ spec.id;
        let entropy = Rng::stream(self.fabric.seed, Domain::PathEntropy, stream).next_u64() as u32;
        let (src, dst) = self.fabric.inner.between(spec.src, spec.dst);
        let host = if src == spec.src { host } else { self.fabric.home[src.index()].1 };
        let ideal = self.fabric.paths.ideal_fct(src, dst, spec.size, self.fabric.framing);
        let state = &mut self.hosts[host];
        let context = state.sending.put(spec);
        let message = Outgoing { dst, size: spec.size, entropy, context };
        let (qp, slot) = state.nic.open_sender(&Cx::at(self.now), &self.fabric.nic, &message);
        let row = FlowRow {
            id: spec.id,
            workload: spec.workload,
            group: spec.group,
            src: spec.src,
            dst: spec.dst,
            size: spec.size,
            packets: spec.size.pieces(self.fabric.framing.mtu),
            start: spec.start,
            finish: None,
            // No path now: it may come back, but nothing is ideal about it.
            ideal: ideal.unwrap_or(Duration::ZERO),
            spurious: 0,
            measured: spec.measured,
        };
        self.flows_started += 1;
        if RECORDED {
            self.note_flow_started(host, row, qp, slot);
        }
        self.tell(host, dst, News::Open { qp, row, on_received: spec.on_received });
        self.after_nic(host);
    }

    /// Sends `news` from a host of this partition to any host.
    fn tell(&mut self, from: u32, to: HostId, news: News) {
        self.tell_after(self.fabric.lookahead, from, to, news);
    }

    /// Sends `news` that take at least the lookahead.
    fn tell_after(&mut self, after: Duration, from: u32, to: HostId, news: News) {
        let state = &mut self.hosts[from];
        let notice = Notice { at: self.now + after, from: state.id, number: state.notices_sent, news };
        state.notices_sent += 1;
        let (partition, local) = self.fabric.home[to.index()];
        if partition == self.index {
            self.take_notice(local, notice);
        } else {
            self.outboxes[partition as usize].notices.push((local, notice));
        }
    }

    pub(crate) fn take_notice(&mut self, host: u32, notice: Notice) {
        let at = notice.at;
        self.hosts[host].inbox.push(Reverse(notice));
        self.schedule(at, kind::NOTICE, host, 0);
    }

    /// Reads the oldest notice of a host; there is one event for each.
    pub(crate) fn on_notice(&mut self, host: u32) {
        let state = &mut self.hosts[host];
        let Some(Reverse(notice)) = state.inbox.pop() else { return };
        debug_assert_eq!(notice.at, self.now);
        match notice.news {
            News::Open { qp, row, on_received } => {
                let context = state.receiving.put(Receiving { row, on_received });
                state.nic.open_receiver(&self.fabric.nic, notice.from, qp, row.size, context);
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
                state.nic.handle_report(&mut Cx { now: self.now, probe: self.log.probe::<RECORDED>() }, &report);
                if RECORDED {
                    self.note_woken(host);
                }
                self.after_nic(host);
            }
        }
    }

    /// A packet has finished something at `host`; `slot` is its sender's.
    fn on_completion(&mut self, host: u32, completion: Completion, slot: u32) {
        match completion {
            Completion::Sent { qp, context } => self.on_sent(host, qp, context),
            Completion::Received { src, qp, context, duplicates } => {
                let flow = self.hosts[host].receiving.get_mut(context);
                flow.row.finish = Some(self.now);
                flow.row.spurious = duplicates;
                let (row, on_received) = (flow.row, flow.on_received);
                self.rows.push(row);
                if RECORDED {
                    self.note_flow_finished(host, row);
                }
                self.flows_finished += 1;
                if self.fabric.unacknowledged {
                    self.tell(host, src, News::Finished { qp, slot });
                }
                self.activate(on_received);
            }
        }
    }

    /// A sender has everything acknowledged.
    fn on_sent(&mut self, host: u32, qp: QpNumber, context: u32) {
        let spec = self.hosts[host].sending.take(context);
        self.flows_closed += 1;
        let (_, dst) = self.fabric.inner.between(spec.src, spec.dst);
        self.tell(host, dst, News::Close { qp });
        self.activate(spec.on_sent);
        if !self.closing
            && let Some(closed) = self.workload.loop_of(spec.workload)
            && let Some(next) = closed.next(spec.src, self.now)
        {
            self.start_later(next);
        }
    }

    /// Begins the flows that a trigger releases. With triggers there is one partition, which holds
    /// every source.
    fn activate(&mut self, trigger: Option<u32>) {
        let Some(trigger) = trigger.filter(|_| !self.closing) else { return };
        for spec in self.workload.triggers.activate(trigger, self.now).collect::<Vec<_>>() {
            self.start_later(spec);
        }
    }

    /// Begins a flow of a host of this partition when its time comes.
    fn start_later(&mut self, spec: FlowSpec) {
        let at = spec.start.max(self.now);
        self.later.insert((at, spec.workload, spec.id), spec);
        self.schedule(at, kind::FLOW_START, 0, 0);
    }

    /// Asks closed loops for the first flows of this partition's hosts, and the stream for its first.
    pub(crate) fn open_workload(&mut self) {
        for closed in 0..self.workload.loops.len() {
            let clients: Vec<HostId> = self.workload.loops[closed].clients().collect();
            for client in clients {
                if self.local_host(client).is_some() {
                    for spec in self.workload.loops[closed].begin(client) {
                        self.start_later(spec);
                    }
                }
            }
        }
        self.next_arrival = self.workload.stream.next_flow();
        self.schedule_next_arrival();
    }
}

/// A flow at its receiver.
#[derive(Clone, Copy)]
pub(crate) struct Receiving {
    row: FlowRow,
    on_received: Option<u32>,
}

/// Numbered places that are used again.
struct Places<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Places<T> {
    const NEW: Self = Self { places: Vec::new(), free: Vec::new() };

    fn put(&mut self, value: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(value);
            return place;
        }
        self.places.push(Some(value));
        (self.places.len() - 1) as u32
    }
    fn get_mut(&mut self, place: u32) -> &mut T {
        self.places[place as usize].as_mut().expect("the NIC names only places that are taken")
    }
    fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.places[place as usize].take().expect("the NIC names only places that are taken")
    }
    fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }
}
