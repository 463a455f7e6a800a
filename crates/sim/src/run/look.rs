//! Looks at the flows under way: what does each flow wait for at the moment?
//!
//! Design notes.
//! 1. *Subjects.* Some of the measured flows are chosen by a hash; then every packet in the fabric is looked at once,
//!    by its descriptor: the ECMP hash tells whose it is, so of other flows' packets nothing else is read. Where
//!    packets of a flow take several paths, all packets are read.
//! 2. *Time in a queue* is classified by what the port does at that time: it is paused, its link is down, or it sends a
//!    packet, which then lies in the inbox of the node at the other end. A packet that waits while an acknowledgement
//!    is sent waits for acknowledgements at this moment, so the sum over many looks is the time that acknowledgements
//!    took.
//! 3. *Sides.* Nodes of the side that ran last are ahead of the others by a step
//!    ([`WindowSchedule`](crate::kernel::schedule::WindowSchedule)). Every packet is in one place all the same, and the
//!    state of a node is read as of its own time.

use std::ops::Deref;

use selvedge_nic::Carrier;
use selvedge_nic::{Received, Standing};
use selvedge_switch::descriptor::{Descriptor, Slot};
use selvedge_switch::port::{Egress, of_bits};
use selvedge_telemetry::TimePart;
use selvedge_transport::HoldReason;
use selvedge_transport::table::Table as Found;
use selvedge_units::{Bytes, Duration, HostId, Instant, Psn, QpNumber, Rate, mix64};
use selvedge_wire::{AckKind, Packet, Repr};

use crate::net::flows::Sending;
use crate::net::log::pair_of;
use crate::net::partition::Partition;
use crate::topology::Framing;

/// Port: its partition, and its number there.
type Port = (usize, u32);

/// Place of a packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PacketPosition {
    /// On a link. `is_leaving`: its last bit has not left the sending port.
    Link { is_leaving: bool },
    /// In a queue, while its port has this state.
    Queue(Busy),
}

/// State of a port for which a packet waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Busy {
    /// Sends data of other flows, or is about to send.
    Others,
    /// Sends data of the waiting flow; the link may be slower than that of the flow's host.
    Own { is_slower: bool },
    /// Sends an acknowledgement or a congestion notification.
    Answer,
    /// Paused for the class that waits.
    Paused,
    /// Link down.
    Down,
}

impl Busy {
    const ALL: usize = 6;

    fn index(self) -> usize {
        match self {
            Self::Others => 0,
            Self::Own { is_slower: false } => 1,
            Self::Own { is_slower: true } => 2,
            Self::Answer => 3,
            Self::Paused => 4,
            Self::Down => 5,
        }
    }

    /// Part of the completion time to which time in a queue belongs, indexed by [`Busy`].
    const PARTS: [TimePart; Self::ALL] = [
        TimePart::Queueing,
        TimePart::Queueing,
        TimePart::Serialisation,
        TimePart::Acks,
        TimePart::Pause,
        TimePart::Outage,
    ];

    fn part(self) -> TimePart {
        Self::PARTS[self.index()]
    }
}

/// State of a port, regardless of who waits for it.
#[derive(Clone, Copy)]
struct Stand {
    busy: Busy,
    /// Queue pair whose data the port sends, if it sends data.
    whose: Option<(HostId, QpNumber)>,
    rate: Rate,
}

impl Stand {
    /// Returns the state from the view of a subject that waits for the port.
    fn seen_by(self, subject: &Subject) -> Busy {
        match self.busy {
            Busy::Others if self.whose.is_some_and(|pair| subject.has(pair)) => {
                Busy::Own { is_slower: self.rate < subject.rate }
            }
            busy => busy,
        }
    }
}

/// Flow that is looked at.
struct Subject {
    workload: u16,
    /// Sending host: its partition, and its number there.
    host: (usize, u32),
    port: Port,
    class: u8,
    pair: (HostId, QpNumber),
    /// Number of its queue pairs, which are numbered consecutively.
    pairs: u32,
    slot: u32,
    dst: HostId,
    /// Rate of the sending host's link.
    rate: Rate,
    standing: Option<Standing>,
    received: Option<Received>,
    /// Packets of the flow and their answers: on links, and in queues by the state of the port.
    on_links: u64,
    in_queues: [u64; Busy::ALL],
    /// Data packet of the flow that was sent last: when, and where it is.
    newest: Option<(Instant, PacketPosition)>,
    /// Whether the packet that the receiver waits for was found in the fabric: `true` if as a retransmission.
    found: Option<bool>,
    /// Amount that the flow's data packets carry, in the unit of its receiver.
    carried: u64,
    /// Whether an acknowledgement in the fabric tells that a retransmission has filled a hole.
    is_filled: bool,
}

/// Reason for which a flow waits.
pub(super) enum Answer {
    /// Exactly one part of the completion time.
    One(TimePart),
    /// Several parts, with their weights.
    Several(Vec<(TimePart, u64)>),
    /// A loss whose effect is not known yet.
    Undecided(UndecidedLoss),
}

/// Loss for whose news a flow waits. How the wait ends decides to which part of the completion time it belongs.
pub(super) struct UndecidedLoss {
    /// Sending host: its partition, and its number there.
    host: (usize, u32),
    /// Place of the flow in the host's NIC.
    slot: u32,
    qp: QpNumber,
    /// State of the flow's sender at the look.
    standing: Standing,
    /// Part of the wait if neither a timeout nor a retransmission ends it.
    other: TimePart,
    /// Part of the wait if that can no longer be found out.
    pub(super) guess: TimePart,
}

impl UndecidedLoss {
    /// Returns the part of the completion time to which the wait belongs, once that is known.
    pub(super) fn decide<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &self,
        partitions: &[P],
    ) -> Option<TimePart> {
        let (index, local) = self.host;
        match partitions[index].edge.hosts[local].nic.standing(self.slot, self.qp, Instant::ZERO) {
            None => Some(self.guess),
            Some(now) if now.timeouts > self.standing.timeouts => Some(TimePart::Timeout),
            Some(now) if now.resent > self.standing.resent => Some(TimePart::Recovery),
            Some(now) if now.unsent < self.standing.unsent => Some(self.other),
            Some(_) => None,
        }
    }
}

/// Packet that a port sends: the look that found it, and the packet's slot in the pool.
#[derive(Clone, Copy, Default)]
struct Wire {
    look: u32,
    slot: Slot,
}

/// State and results of a look. Kept to reuse its memory.
#[derive(Default)]
pub(super) struct Scan {
    look: u32,
    subjects: Vec<Subject>,
    /// Subjects that wait for packets, by queue pair.
    by_pair: Found<(HostId, QpNumber)>,
    has_followed: bool,
    /// Bit per hash of a packet's ECMP key: set where packets of subjects may have the hash. Empty where all packets
    /// may belong to subjects.
    filter: Vec<u64>,
    /// Packet that is about to arrive at each port and has not left the other end, by partition and port.
    wires: Vec<Vec<Wire>>,
    /// Approximate number of instructions that the look took.
    pub(super) cost: u64,
}

/// Binary logarithm of the number of bits in the filter.
const FILTER: u32 = 14;

/// Approximate cost of a look in instructions: for each packet, in addition for each packet of a flow that waits for
/// packets, for each flow that is looked at, for each port, and for each host.
const PER_PACKET: u64 = 8;
const PER_SEEN: u64 = 150;
const PER_FLOW: u64 = 1_500;
const PER_PORT: u64 = 6;
const PER_HOST: u64 = 60;

/// Times of a look, by side, and the share of flows that are looked at.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) times: [Instant; 2],
    /// Divisor: one in `one_in` flows, a power of two, is looked at.
    pub(super) one_in: u64,
}

impl Scan {
    /// Looks at flows, and calls `tell` for each with its workload and the reason for which it waits.
    pub(super) fn look<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        look: Look,
        partitions: &[P],
        mut tell: impl FnMut(u16, Answer),
    ) {
        self.look += 1;
        self.cost = 0;
        self.choose(look, partitions, &mut tell);
        if self.subjects.is_empty() {
            return;
        }
        if self.wires.is_empty() {
            self.wires = partitions.iter().map(|p| vec![Wire::default(); p.net.egress.len()]).collect();
        }
        for index in 0..partitions.len() {
            self.read_inbox(look, index, partitions);
        }
        for index in 0..partitions.len() {
            self.read_queues(index, partitions);
        }
        for number in 0..self.subjects.len() {
            self.read_answers(number, partitions);
            let subject = &self.subjects[number];
            tell(subject.workload, self.answer(subject, look, partitions));
        }
    }

    /// Chooses the flows to look at.
    fn choose<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        look: Look,
        partitions: &[P],
        tell: &mut impl FnMut(u16, Answer),
    ) {
        self.subjects.clear();
        self.by_pair = Found::new();
        self.has_followed = false;
        let fabric = &partitions[0].edge.fabric;
        let has_subflows = [Carrier::Transport, Carrier::Beside]
            .into_iter()
            .filter_map(|carrier| fabric.nic.tcp_of(carrier))
            .any(|tcp| tcp.config.subflows > 1);
        let is_filtered = !fabric.senders_choose_ways && !has_subflows;
        self.filter.clear();
        self.filter.resize(if is_filtered { 1 << (FILTER - 6) } else { 0 }, 0);
        let salt = u64::from(self.look) << 32;
        let is_chosen =
            |workload: u16, id: u64| mix64(salt ^ mix64(u64::from(workload) << 48 ^ id)) & (look.one_in - 1) == 0;
        for (index, partition) in partitions.iter().enumerate() {
            self.cost += PER_HOST * partition.edge.hosts.len() as u64;
            for applications in &partition.applications {
                for spec in applications.unfinished().filter(|spec| spec.measured) {
                    if is_chosen(spec.workload, spec.id) {
                        self.cost += PER_FLOW;
                        tell(spec.workload, Answer::One(TimePart::Other));
                    }
                }
            }
            for (local, host) in (0..).zip(partition.edge.hosts.iter()) {
                let chosen =
                    |sending: &&Sending| sending.spec.measured && is_chosen(sending.spec.workload, sending.spec.id);
                for sending in host.sending.iter().filter(chosen) {
                    self.add((index, local), sending, look, partitions);
                }
            }
        }
    }

    fn add<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        (index, local): (usize, u32),
        sending: &Sending,
        look: Look,
        partitions: &[P],
    ) {
        let Sending { spec, qp, slot, entropy, class } = *sending;
        let partition = &partitions[index];
        let host = &partition.edge.hosts[local];
        let (_, dst) = partition.edge.fabric.inner.between(spec.src, spec.dst);
        let (there, peer) = partition.edge.fabric.home[dst.index()];
        let peer = &partitions[usize::from(there)].edge.hosts[peer];
        let received = peer.nic.received(host.id, qp);
        let row = received.and_then(|received| peer.receiving.get(received.context));
        if row.is_some_and(|receiving| receiving.row.finish.is_some()) {
            return;
        }
        let now = look.times[usize::from(partition.edge.calendar.side_of(local))];
        let number = self.subjects.len() as u32;
        let (standing, pairs) = (host.nic.standing(slot, qp, now), host.nic.queue_pairs(slot, qp));
        self.cost += PER_FLOW;
        self.subjects.push(Subject {
            workload: spec.workload,
            host: (index, local),
            port: (index, host.port),
            class,
            pair: (host.id, qp),
            pairs,
            slot,
            dst,
            rate: partition.net.extras[host.port].rate,
            standing,
            received,
            on_links: 0,
            in_queues: [0; Busy::ALL],
            newest: None,
            found: None,
            carried: 0,
            is_filled: false,
        });
        // A sender that wants to send and may not yet does not wait for a packet.
        if let Some(HoldReason::Link | HoldReason::Pacing(_) | HoldReason::Recovery(_)) =
            standing.map(|standing| standing.hold)
        {
            return;
        }
        self.has_followed = true;
        for further in 0..pairs {
            self.by_pair.insert((host.id, QpNumber(qp.0.wrapping_add(further))), number);
        }
        if !self.filter.is_empty() {
            for hash in [entropy, !entropy] {
                let bit = hash >> (u32::BITS - FILTER);
                self.filter[(bit >> 6) as usize] |= 1 << (bit & 63);
            }
        }
    }

    /// Returns whether a packet may belong to a subject.
    #[inline(always)]
    fn may_see(&self, packet: &Descriptor) -> bool {
        let bit = packet.entropy >> (u32::BITS - FILTER);
        self.filter.get((bit >> 6) as usize).is_none_or(|word| word & 1 << (bit & 63) != 0)
    }

    /// Returns the subject that a packet belongs to.
    fn whose(&self, packet: &Packet) -> Option<usize> {
        Some(self.by_pair.get(pair_of(packet)?)? as usize)
    }

    /// Reads the packets that are on links to nodes of a partition.
    fn read_inbox<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        look: Look,
        index: usize,
        partitions: &[P],
    ) {
        let partition = &*partitions[index];
        let hosts = partition.edge.hosts.len() as u32;
        let schedule = partition.edge.fabric.schedule;
        partition.edge.calendar.for_all_inboxes(|node, begin, inbox| {
            let first = if node < hosts {
                partition.edge.hosts[node].port
            } else {
                partition.net.switches[node - hosts].facts.first_port
            };
            let side = partition.edge.calendar.side_of(node);
            let other = if schedule.leader().is_some() { 1 - side } else { side };
            // Packets that senders began to send before that time have left, if the link does not delay them further.
            let left = look.times[usize::from(other)].as_ps();
            let since = (left + schedule.step()).saturating_sub(begin);
            self.cost += PER_PACKET * inbox.len() as u64;
            for packet in inbox {
                if u64::from(packet.at) > since || self.may_see(packet) {
                    let at = first + u32::from(packet.port);
                    let arrival = begin + u64::from(packet.at);
                    let is_leaving = arrival > left + partition.net.egress[at].delay.as_ps();
                    self.see_on_link((index, at), packet, is_leaving, partitions);
                }
            }
        });
    }

    fn see_on_link<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        (index, at): Port,
        descriptor: &Descriptor,
        is_leaving: bool,
        partitions: &[P],
    ) {
        let partition = &partitions[index];
        if is_leaving {
            self.wires[index][at as usize] = Wire { look: self.look, slot: descriptor.slot };
        }
        if !self.may_see(descriptor) {
            return;
        }
        let packet = partition.edge.pool.get(descriptor.slot);
        self.cost += PER_SEEN;
        if let Some(number) = self.whose(&packet) {
            self.subjects[number].see(&packet, PacketPosition::Link { is_leaving });
        }
    }

    /// Reads the packets that wait in switches of a partition.
    fn read_queues<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        index: usize,
        partitions: &[P],
    ) {
        if !self.has_followed {
            return;
        }
        let partition = &*partitions[index];
        self.cost += PER_PORT * partition.net.egress.len() as u64;
        for (at, port) in (0..).zip(partition.net.egress.iter()) {
            if port.waiting == 0 || port.is_host {
                continue;
            }
            for class in of_bits(port.waiting) {
                let line = partition.net.line_of(at, class as u8);
                let mut stand = None;
                let mut see = |place: &Descriptor| {
                    // The number of packets that share a descriptor depends on how the fabric is cut.
                    let count = 1 + u64::from(place.more);
                    self.cost += PER_PACKET * count;
                    if self.may_see(place) {
                        self.cost += PER_SEEN * count;
                        let stand = *stand.get_or_insert_with(|| self.stand((index, at), class as u8, partitions));
                        self.see_in_queue(partition, place, stand);
                    }
                };
                partition.net.lines[line].for_each_place(&partition.net.queues, &partition.net.store, &mut see);
                if let Some(fair) = partition.net.fair.get(line as usize) {
                    fair.for_each_place(&partition.net.store, &mut see);
                }
            }
        }
    }

    fn see_in_queue<const RECORDED: bool>(
        &mut self,
        partition: &Partition<RECORDED>,
        place: &Descriptor,
        stand: Stand,
    ) {
        for slot in place.slots() {
            let packet = partition.edge.pool.get(slot);
            let Some(number) = self.whose(&packet) else { return };
            let subject = &mut self.subjects[number];
            subject.see(&packet, PacketPosition::Queue(stand.seen_by(subject)));
        }
    }

    /// Reads the packets that wait at the NIC that answers a subject.
    fn read_answers<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        number: usize,
        partitions: &[P],
    ) {
        let subject = &self.subjects[number];
        let (there, local) = partitions[0].edge.fabric.home[subject.dst.index()];
        let there = usize::from(there);
        let host = &partitions[there].edge.hosts[local];
        for packet in host.nic.waiting_answers() {
            if self.whose(packet) == Some(number) {
                let stand = self.stand((there, host.port), packet.class, partitions);
                let subject = &mut self.subjects[number];
                subject.see(packet, PacketPosition::Queue(stand.seen_by(subject)));
            }
        }
    }

    /// Returns the packet that a port sends just now; `None` where it sends none, or a pause frame, which lies in no
    /// inbox.
    fn sent_by<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &self,
        (index, at): Port,
        partitions: &[P],
    ) -> Option<Packet> {
        let port = &partitions[index].net.egress[at];
        let there = usize::from(port.peer_partition);
        let wire = self.wires[there][port.peer as usize];
        (wire.look == self.look).then(|| partitions[there].edge.pool.get(wire.slot))
    }

    /// Returns the state of a port that a packet of `class` waits for.
    fn stand<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &self,
        (index, at): Port,
        class: u8,
        partitions: &[P],
    ) -> Stand {
        let partition = &partitions[index];
        let port = &partition.net.egress[at];
        let stand = |busy| Stand { busy, whose: None, rate: partition.net.extras[at].rate };
        if port.paused == Egress::DOWN {
            return stand(Busy::Down);
        }
        // Where switches trim, a class may be marked as paused in between.
        if port.paused & 1 << class != 0 && partition.net.params.queueing.trims.is_none() {
            return stand(Busy::Paused);
        }
        match self.sent_by((index, at), partitions) {
            Some(packet) if is_answer(&packet) => stand(Busy::Answer),
            packet => Stand { whose: packet.as_ref().and_then(pair_of), ..stand(Busy::Others) },
        }
    }

    /// Returns the reason for which a subject waits.
    fn answer<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &self,
        subject: &Subject,
        look: Look,
        partitions: &[P],
    ) -> Answer {
        let (index, local) = subject.host;
        let partition = &partitions[index];
        let now = look.times[usize::from(partition.edge.calendar.side_of(local))];
        let sent = self.sent_by(subject.port, partitions).filter(|packet| !is_answer(packet));
        if let Some(packet) = sent.filter(|packet| pair_of(packet).is_some_and(|pair| subject.has(pair))) {
            return Answer::One(if is_again(&packet) { TimePart::Recovery } else { TimePart::Serialisation });
        }
        let hold = subject.standing.map_or(HoldReason::Acks, |standing| standing.hold);
        match hold {
            HoldReason::Link => Answer::One(match self.stand(subject.port, subject.class, partitions).busy {
                Busy::Others if partition.net.egress[subject.port.1].busy_until <= now => TimePart::Serialisation,
                Busy::Others => TimePart::Nic,
                Busy::Own { .. } => TimePart::Serialisation,
                Busy::Answer => TimePart::Acks,
                Busy::Paused => TimePart::Pause,
                Busy::Down => TimePart::Outage,
            }),
            HoldReason::Pacing(_) => Answer::One(TimePart::Pacing),
            HoldReason::Recovery(_) => Answer::One(TimePart::Recovery),
            // Inside tunnels, the packets of a flow cannot be told apart.
            _ if partition.edge.fabric.nic.eqif.is_some() => Answer::One(TimePart::Other),
            HoldReason::Window => self.window(subject, TimePart::Window, partitions),
            HoldReason::Cap => self.window(subject, TimePart::Cap, partitions),
            HoldReason::Acks => match subject.newest {
                Some((_, place)) if !subject.has_lost() => Answer::One(match place {
                    PacketPosition::Link { is_leaving: true } => TimePart::Serialisation,
                    PacketPosition::Link { is_leaving: false } => TimePart::Propagation,
                    PacketPosition::Queue(busy) => busy.part(),
                }),
                _ => subject.lost(TimePart::Recovery),
            },
        }
    }

    /// Returns the reason for which a subject waits whose window, or a cap, allows no packet.
    ///
    /// Like in `selvedge explain`, the share of that wait by which the round trip is late belongs to the place of the
    /// delay. With `l` packets of the flow on links and `q` in queues, a round trip of `R` without queues takes `R (l +
    /// q) / l` (Little's law). The host sends for `l t` of the time `R`, with `t` for one packet, so it waits for `(R +
    /// R q / l) (1 - l t / R)`, of which `R q / l` is late.
    fn window<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &self,
        subject: &Subject,
        part: TimePart,
        partitions: &[P],
    ) -> Answer {
        let in_queues = subject.in_queues.iter().sum::<u64>();
        if subject.waits_for_repair() {
            return Answer::One(TimePart::Recovery);
        }
        if subject.waits_for_lost() || (in_queues + subject.on_links == 0 && subject.has_lost()) {
            return subject.lost(part);
        }
        if in_queues == 0 {
            return Answer::One(part);
        }
        let (index, local) = subject.host;
        let partition = &partitions[index];
        let round = partition.undisturbed_round(local, subject).as_ps();
        let (port, extra) = (&partition.net.egress[subject.port.1], &partition.net.extras[subject.port.1]);
        let params = &partition.edge.hosts[local].params;
        let frame = u64::from(params.frames.mtu) + u64::from(params.frames.header) + partition.net.params.gap;
        let sending = (subject.on_links * port.serialisation(frame, || extra.rate).as_ps()).min(round);
        // In units of R.
        let waits = (in_queues + subject.on_links) as f64 * (round - sending) as f64 / round.max(1) as f64;
        let late = if waits > in_queues as f64 { in_queues as f64 / waits } else { 1.0 };
        const WHOLE: f64 = 1e6;
        let late = (late * WHOLE) as u64;
        let of_all = subject.in_queues.iter().zip(Busy::PARTS);
        let mut parts: Vec<(TimePart, u64)> = of_all.map(|(&count, part)| (part, late * count)).collect();
        parts.push((part, (WHOLE as u64 - late) * in_queues));
        Answer::Several(parts)
    }
}

impl Subject {
    /// Returns whether a queue pair belongs to the subject.
    fn has(&self, (host, qp): (HostId, QpNumber)) -> bool {
        host == self.pair.0 && qp.0.wrapping_sub(self.pair.1.0) < self.pairs
    }

    /// Counts a packet of the subject, or an answer to one.
    fn see(&mut self, packet: &Packet, place: PacketPosition) {
        match place {
            PacketPosition::Link { .. } => self.on_links += 1,
            PacketPosition::Queue(busy) => self.in_queues[busy.index()] += 1,
        }
        if let Repr::Ack(ack) = packet.repr {
            // The acknowledgement answers one packet, and acknowledges others behind it.
            let beyond = ack.expected.get().wrapping_sub(ack.sack.get()) % Psn::MODULUS;
            self.is_filled |= ack.kind == AckKind::Ack && (2..Psn::MODULUS / 2).contains(&beyond);
        }
        if packet.src != self.pair.0 || is_answer(packet) {
            return;
        }
        if let Some(received) = self.received {
            self.carried += received.carried_by(packet);
            if received.is_brought_by(packet) {
                self.found = self.found.max(Some(is_again(packet)));
            }
        }
        if self.newest.is_none_or(|(sent_at, _)| packet.sent_at > sent_at) {
            self.newest = Some((packet.sent_at, place));
        }
    }

    /// Returns whether the window waits for a retransmission.
    fn waits_for_repair(&self) -> bool {
        self.is_filled || self.found == Some(true) || self.standing.is_some_and(|standing| standing.has_lost)
    }

    /// Returns whether the packet that the receiver expects next, for which the window waits, has been sent and is
    /// neither there nor in the fabric.
    fn waits_for_lost(&self) -> bool {
        let sent = self.standing.and_then(|standing| standing.sent);
        let received = self.received.and_then(|received| received.count);
        self.found.is_none() && received.zip(sent).is_some_and(|(received, sent)| received < sent)
    }

    /// Returns whether something that was sent has neither arrived nor is in the fabric.
    fn has_lost(&self) -> bool {
        let Some((standing, received)) = self.standing.zip(self.received) else { return false };
        received.missing > standing.unsent + self.carried
    }

    /// Returns the reason of a subject that waits only for the effects of a loss; `other` where neither a timeout nor a
    /// retransmission ends the wait.
    fn lost(&self, other: TimePart) -> Answer {
        let Some(standing) = self.standing else { return Answer::One(TimePart::Recovery) };
        let is_silent = self.on_links + self.in_queues.iter().sum::<u64>() == 0 && !standing.has_lost;
        let guess = if is_silent { TimePart::Timeout } else { TimePart::Recovery };
        let loss = UndecidedLoss { host: self.host, slot: self.slot, qp: self.pair.1, standing, other, guess };
        Answer::Undecided(loss)
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Returns how long a full packet of a flow from `host` and its answer take in an idle fabric.
    fn undisturbed_round(&self, host: u32, subject: &Subject) -> Duration {
        let params = &self.edge.hosts[host].params;
        let [frame, gap] =
            [params.frames.mtu + params.frames.header, params.frames.gap].map(|bytes| Bytes::new(bytes.into()));
        let framing = Framing { mtu: frame, overhead: gap, least: Bytes::ZERO };
        let there = self.edge.fabric.paths.ideal_fct(subject.pair.0, subject.dst, frame, framing);
        there.unwrap_or_default() + self.way_back(host, subject.dst)
    }
}

/// Returns whether a packet carries no data of a flow: an acknowledgement, or another message from a receiver.
fn is_answer(packet: &Packet) -> bool {
    match packet.repr {
        Repr::Ack(_) | Repr::HoleNack(_) | Repr::Cnp | Repr::Control(_) | Repr::EqdsControl(_) => true,
        Repr::Tcp(tcp) => tcp.payload() == 0,
        Repr::Data(_) | Repr::EqdsData(_) | Repr::Pause(_) | Repr::NetRt(_) => false,
    }
}

/// Returns whether a packet is a retransmission.
fn is_again(packet: &Packet) -> bool {
    match packet.repr {
        Repr::Data(data) => data.retransmission,
        Repr::EqdsData(data) => data.retransmission,
        Repr::Tcp(tcp) => tcp.is_again(),
        _ => false,
    }
}
