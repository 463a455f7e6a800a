//! Hosts: a NIC, its flows, and the news that hosts give each other outside the fabric.
//!
//! Connection set-up is not simulated as packets: a sender's [`News::Open`] reaches the receiver
//! after the fabric's smallest link delay, which is always before its first packet can.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use selvedge_nic::{Completion, Handled, Nic, NicParams, Outgoing, Report};
use selvedge_telemetry::{DropReason, FlowRow};
use selvedge_transport::Cx;
use selvedge_units::{Domain, Duration, HostId, Instant, QpNumber, Rng};

use super::descriptor::Descriptor;
use crate::kernel::partition::{Partition, kind_of};
use crate::kernel::pending::NEVER;
use crate::workload::schedule::{Cue, Player};
use crate::workload::{FlowSpec, Generator};

/// A host.
pub(crate) struct Host {
    pub(crate) id: HostId,
    pub(crate) port: u32,
    pub(crate) nic: Nic,
    /// When its port is free, if it waits for that.
    pub(crate) free_at: u64,
    /// When its port's pause timer fires.
    pub(crate) timer_at: u64,
    /// When there is a notice to read or a flow to begin.
    desk_at: u64,
    /// Flows that it sends, by the NIC's context.
    sending: Places<FlowSpec>,
    /// Flows that it receives, by the NIC's context.
    receiving: Places<Receiving>,
    inbox: BinaryHeap<Reverse<Notice>>,
    notices_sent: u64,
    /// Flows to begin, and computations that end.
    later: BinaryHeap<Due>,
}

/// Something that a host's applications do in time: the earliest is the greatest.
enum Due {
    /// This flow begins.
    Flow(FlowSpec),
    /// A computation of this workload's schedule ends.
    Computed { at: Instant, workload: u16, place: u64 },
}

impl Due {
    fn at(&self) -> Instant {
        match self {
            Self::Flow(flow) => flow.start,
            Self::Computed { at, .. } => *at,
        }
    }
    fn key(&self) -> (Instant, u16, bool, u64) {
        match *self {
            Self::Flow(flow) => (flow.start, flow.workload, false, flow.id),
            Self::Computed { at, workload, place } => (at, workload, true, place),
        }
    }
}
impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Due {}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
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
    pub(crate) fn new(id: HostId, port: u32, nic: &NicParams) -> Self {
        Self {
            id,
            port,
            nic: Nic::new(id, nic),
            free_at: NEVER,
            timer_at: NEVER,
            desk_at: NEVER,
            sending: Places::NEW,
            receiving: Places::NEW,
            inbox: BinaryHeap::new(),
            notices_sent: 0,
            later: BinaryHeap::new(),
        }
    }

    /// Looks up when there is something to do at the desk.
    fn look_at_desk(&mut self) {
        let notice = self.inbox.peek().map_or(Instant::NEVER, |Reverse(notice)| notice.at);
        let flow = self.later.peek().map_or(Instant::NEVER, Due::at);
        self.desk_at = notice.min(flow).as_ps();
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
    /// Handles the events of a host that are earlier than `limit`.
    pub(crate) fn visit_host(&mut self, host: u32, limit: u64) {
        let begin = self.calendar.begin();
        // One link leads here, so mail lies in the order of its arrival.
        let mail = self.calendar.take_mail(host);
        let port = self.hosts[host].port;
        let mut now = begin;
        let mut unread = mail.iter();
        let next = loop {
            let state = &self.hosts[host];
            let packet = unread.as_slice().first();
            let arrival = packet.map_or(NEVER, |packet| begin + u64::from(packet.at));
            let wake = state.nic.poll_timeout().map_or(NEVER, |at| at.as_ps().max(now));
            let next = arrival.min(state.desk_at).min(state.free_at).min(wake).min(state.timer_at);
            if next >= limit {
                break next;
            }
            now = next;
            self.now = Instant::from_ps(now);
            if arrival == now {
                self.events += 1;
                if let Some(packet) = unread.next()
                    && self.enter(port, packet)
                {
                    self.arrive_at_host(host, port, packet);
                }
            } else if state.desk_at == now {
                self.attend_desk(host);
            } else if state.free_at == now {
                self.on_host_port_free(host, port);
            } else if wake == now {
                self.on_host_wake(host);
            } else {
                self.hosts[host].timer_at = NEVER;
                self.on_pause_timer(port);
            }
        };
        if unread.as_slice().is_empty() {
            self.calendar.return_mail(host, mail);
        } else {
            let rest = unread.copied().collect();
            self.calendar.keep_mail(host, rest);
        }
        self.leave(host, next, limit);
    }

    /// When a host has something to do beside its mail.
    pub(crate) fn host_due(&self, host: u32) -> u64 {
        let state = &self.hosts[host];
        let wake = state.nic.poll_timeout().map_or(NEVER, |at| at.as_ps().max(self.now.as_ps()));
        state.desk_at.min(state.free_at).min(wake).min(state.timer_at)
    }

    /// A packet has reached its host.
    #[inline]
    fn arrive_at_host(&mut self, host: u32, at: u32, descriptor: &Descriptor) {
        let packet = self.pool.get(descriptor.slot);
        let (kind, slot) = (kind_of(packet), packet.slot);
        let handled = if self.fabric.reads_records {
            self.handle_with_record(host, descriptor.slot)
        } else {
            let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
            self.hosts[host].nic.handle_packet(&mut cx, &self.fabric.nic, packet)
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
            let after = way.map_or(Duration::ZERO, |way| way.propagation).max(self.fabric.lookahead);
            self.tell_after(after, host, report.to, News::Report(report));
        }
    }

    /// Lets the port know that the NIC may want to send.
    #[inline]
    pub(super) fn after_nic(&mut self, host: u32) {
        let state = &self.hosts[host];
        if state.nic.is_ready() {
            self.kick(state.port);
        }
    }

    fn on_host_wake(&mut self, host: u32) {
        self.events += 1;
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        self.hosts[host].nic.handle_timeout(&mut cx, &self.fabric.nic);
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
        self.serve(at);
        let port = &mut self.egress[at];
        let state = &mut self.hosts[host];
        port.free_pending = port.busy_until > self.now && (port.pause_due || state.nic.is_ready());
        state.free_at = if port.free_pending { port.busy_until.as_ps() } else { NEVER };
    }

    /// Sends the next packet of a host whose link is free.
    #[inline]
    pub(crate) fn serve_host(&mut self, host: u32, at: u32) {
        let paused = self.egress[at].paused;
        let state = &mut self.hosts[host];
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        let (slot, packet) = self.pool.vacancy();
        if !state.nic.poll_transmit(&mut cx, &self.fabric.nic, paused, packet) {
            // Nothing may go now. If that is for a pause, its end brings us back.
            if RECORDED {
                self.log.ignore_heard();
            }
            return;
        }
        let more = state.nic.is_ready();
        let descriptor = Descriptor::of(packet, slot, self.fabric.attachment[packet.dst.index()]);
        self.pool.occupy(slot);
        self.transmit(at, &descriptor);
        if RECORDED {
            let packet = *self.pool.get(slot);
            self.note_handled(host, &packet);
        }
        if more {
            self.return_when_free(at);
        }
    }

    /// Gives hosts the flows of the stream that begin before `limit`.
    pub(crate) fn admit_flows(&mut self, limit: u64) {
        while let Some(spec) = self.next_arrival.filter(|spec| spec.start.as_ps() < limit) {
            if let Some(host) = self.nic_for(&spec) {
                self.begin_later(host, spec);
            }
            self.next_arrival = self.workload.stream.next_flow();
        }
    }

    /// Reads the oldest notice of a host, or begins the flow whose turn it is.
    fn attend_desk(&mut self, host: u32) {
        self.events += 1;
        let state = &mut self.hosts[host];
        if state.inbox.peek().is_some_and(|Reverse(notice)| notice.at == self.now) {
            self.read_notice(host);
        } else if let Some(due) = state.later.pop() {
            self.later -= 1;
            match due {
                _ if self.closing => {}
                Due::Flow(spec) => self.start_flow(host, spec),
                Due::Computed { workload, place, .. } => {
                    self.play(host, workload, |player, now, cues| player.on_computed(place, now, cues));
                }
            }
        }
        self.hosts[host].look_at_desk();
    }

    /// The NIC that sends a flow, if it belongs to this partition: hosts may have one for their own server.
    pub(super) fn nic_for(&self, spec: &FlowSpec) -> Option<u32> {
        self.local_host(self.fabric.inner.between(spec.src, spec.dst).0)
    }

    /// Hands a flow to its source's NIC.
    fn start_flow(&mut self, host: u32, spec: FlowSpec) {
        if self.fabric.has_verbs && self.workload.posting_of(spec.workload).is_some() {
            return self.post(host, spec);
        }
        let stream = u64::from(spec.workload) << 48 ^ spec.id;
        let entropy = Rng::stream(self.fabric.seed, Domain::PathEntropy, stream).next_u64() as u32;
        let (src, dst) = self.fabric.inner.between(spec.src, spec.dst);
        let is_tcp = self.fabric.speaks_tcp(spec.workload);
        let framing = if is_tcp { self.fabric.tcp_framing } else { self.fabric.framing };
        let ideal = self.fabric.paths.ideal_fct(src, dst, spec.size, framing);
        let state = &mut self.hosts[host];
        let context = state.sending.put(spec);
        let own = if is_tcp { self.fabric.tcp_class } else { self.fabric.class_of[8] };
        let class = spec.priority.map_or(own, |priority| self.fabric.class_of[usize::from(priority)]);
        let links = self.fabric.paths.between(src, dst).map_or(0, |path| path.links);
        let message = Outgoing { dst, size: spec.size, entropy, class, links, context, is_tcp };
        let (qp, slot) = state.nic.open_sender(&Cx::at(self.now), &self.fabric.nic, &message);
        let row = FlowRow {
            id: spec.id,
            workload: spec.workload,
            group: spec.group,
            src: spec.src,
            dst: spec.dst,
            size: spec.size,
            packets: spec.size.pieces(framing.mtu),
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
        let at = notice.at.as_ps();
        let state = &mut self.hosts[host];
        state.inbox.push(Reverse(notice));
        state.desk_at = state.desk_at.min(at);
        self.calendar.book(host, at);
    }

    /// Reads the oldest notice of a host.
    fn read_notice(&mut self, host: u32) {
        let state = &mut self.hosts[host];
        let Some(Reverse(notice)) = state.inbox.pop() else { return };
        debug_assert_eq!(notice.at, self.now);
        match notice.news {
            News::Open { qp, row, on_received } => {
                let context = state.receiving.put(Receiving { row, on_received });
                let nic = &self.fabric.nic;
                if self.fabric.speaks_tcp(row.workload) {
                    state.nic.open_tcp_receiver(nic, notice.from, qp, row.size, context);
                } else {
                    state.nic.open_receiver(nic, notice.from, qp, row.size, context);
                }
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
                let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
                state.nic.handle_report(&mut cx, &self.fabric.nic, &report);
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
                if self.fabric.unacknowledged && !self.fabric.speaks_tcp(row.workload) {
                    self.tell(host, src, News::Finished { qp, slot });
                }
                self.activate(on_received);
                self.play(host, row.workload, |player, now, cues| player.on_received(row.id, now, cues));
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
        self.play(host, spec.workload, |player, now, cues| player.on_sent(spec.id, now, cues));
        if !self.closing
            && let Some(closed) = self.workload.loop_of(spec.workload)
            && let Some(mut next) = closed.next(spec.src, self.now)
            && let Some(nic) = self.nic_for(&next)
        {
            if nic != host {
                // Another NIC of the same host hears of it as everybody else does.
                next.start = next.start.max(self.now + self.fabric.lookahead);
            }
            self.begin_later(nic, next);
        }
    }

    /// Begins the flows that a trigger releases. With triggers there is one partition, which holds
    /// every source.
    fn activate(&mut self, trigger: Option<u32>) {
        let Some(trigger) = trigger.filter(|_| !self.closing) else { return };
        for spec in self.workload.triggers.activate(trigger, self.now) {
            if let Some(host) = self.nic_for(&spec) {
                self.begin_later(host, spec);
            }
        }
    }

    /// Lets the schedule of a workload, if it has one, go on at `host`.
    #[inline]
    fn play(&mut self, host: u32, workload: u16, go_on: impl FnOnce(&mut Player, Instant, &mut Vec<Cue>)) {
        if self.workload.players.is_empty() || self.closing {
            return;
        }
        let mut cues = Vec::new();
        if let Some(player) = self.workload.player_of(workload) {
            go_on(player, self.now, &mut cues);
        }
        self.take_cues(host, workload, self.now + self.fabric.lookahead, cues);
    }

    /// Does what a schedule wants done by applications of `host`. Its other NICs, if it has several, hear of it
    /// at `elsewhere`.
    fn take_cues(&mut self, host: u32, workload: u16, elsewhere: Instant, cues: Vec<Cue>) {
        for cue in cues {
            match cue {
                Cue::Done(row) => self.ranks.push(row),
                Cue::Compute { at, place } => self.do_later(host, Due::Computed { at, workload, place }),
                Cue::Flow(mut spec) => {
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

    /// Begins a flow of a host of this partition when its time comes.
    pub(super) fn begin_later(&mut self, host: u32, spec: FlowSpec) {
        self.do_later(host, Due::Flow(spec));
    }

    fn do_later(&mut self, host: u32, due: Due) {
        let at = due.at().as_ps();
        self.later += 1;
        let state = &mut self.hosts[host];
        state.later.push(due);
        state.desk_at = state.desk_at.min(at);
        self.calendar.book(host, at);
    }

    /// Asks closed loops and schedules for the first flows of this partition's hosts, and the stream for its
    /// first.
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
        for player in 0..self.workload.players.len() {
            let workload = self.workload.players[player].workload();
            for own in self.workload.players[player].hosts() {
                if let Some(host) = self.local_host(own) {
                    let mut cues = Vec::new();
                    self.workload.players[player].begin(own, &mut cues);
                    self.take_cues(host, workload, Instant::ZERO, cues);
                }
            }
        }
        self.next_arrival = self.workload.stream.next_flow();
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
