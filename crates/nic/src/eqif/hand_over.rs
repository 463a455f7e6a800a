//! Moves packets from stacks to the queues of their EQIFs.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use selvedge_transport::Cx;
use selvedge_transport::endpoint::NicStats;
use selvedge_transport::eqds::eqif::{EqifParams, Offer, Offered, Pressure, RdmaEqifParams};
use selvedge_units::{Bytes, Duration, Instant, QpNumber};
use selvedge_wire::{Ecn, Packet, Repr};

use super::{EqifSet, OF_RDMA, OF_TCP, UNARMED};
use crate::nic::{FlowParams, Nic, NicParams};
use crate::slot::{ENGINE, Owner, REQUESTS};

/// The RDMA engine as its EQIF sees it: the packets that it would send.
#[derive(Debug)]
pub(super) struct Engine {
    answers: VecDeque<Packet>,
    /// Ready queue pairs. `turn` counts the packets that the first of them has sent in its turn, as at the NIC.
    ready: VecDeque<u32>,
    turn: u32,
    /// Time at which the last packet handed over has left the engine.
    free_at: Instant,
    /// Earliest entry of the engine in the heap of deadlines.
    armed: Instant,
    paused: bool,
    /// Whether the EQIF's last PAUSE, which may not have reached the engine, has not ended.
    told_to_pause: bool,
    /// Signals from the EQIF that have not reached the engine, each with the time when it will.
    signals: VecDeque<(Instant, Signal)>,
    /// Queue pair of the last CNP, and its time, indexed by slot.
    cnps: Vec<(QpNumber, Instant)>,
    /// Time of the last CNP, by queue pair of an application.
    cnps_of_verbs: BTreeMap<QpNumber, Instant>,
}

/// Back-pressure on its way from the EQIF to the engine.
#[derive(Clone, Copy, Debug)]
enum Signal {
    /// The beginning of a PAUSE, or its end.
    Pause(bool),
    /// A CNP to a queue pair of a flow, by its slot.
    Cnp(u32, QpNumber),
    /// A CNP to a queue pair of an application.
    CnpOfVerbs(QpNumber),
}

impl Engine {
    pub(super) const fn new() -> Self {
        Self {
            answers: VecDeque::new(),
            ready: VecDeque::new(),
            turn: 0,
            free_at: Instant::ZERO,
            armed: UNARMED,
            paused: false,
            told_to_pause: false,
            signals: VecDeque::new(),
            cnps: Vec::new(),
            cnps_of_verbs: BTreeMap::new(),
        }
    }

    fn is_idle(&self) -> bool {
        self.answers.is_empty() && self.ready.is_empty()
    }

    pub(super) fn wakes(&mut self, at: Instant) {
        if self.armed == at {
            self.armed = UNARMED;
        }
    }

    /// Returns whether the queue pair may be sent a CNP at `now`, and notes the CNP.
    fn may_hear(&mut self, slot: u32, qp: QpNumber, now: Instant, interval: Duration) -> bool {
        let place = slot as usize;
        if self.cnps.len() <= place {
            self.cnps.resize(place + 1, (QpNumber(0), Instant::NEVER));
        }
        let (last_qp, last) = self.cnps[place];
        let may = last == Instant::NEVER || last_qp != qp || last + interval <= now;
        if may {
            self.cnps[place] = (qp, now);
        }
        may
    }

    /// Returns whether the queue pair of an application may be sent a CNP at `now`, and notes the CNP.
    fn may_hear_of_verbs(&mut self, qp: QpNumber, now: Instant, interval: Duration) -> bool {
        let may = self.cnps_of_verbs.get(&qp).is_none_or(|&last| last + interval <= now);
        if may {
            self.cnps_of_verbs.insert(qp, now);
        }
        may
    }
}

impl Nic {
    /// Moves the packets of stacks that send through tunnels to the EQIFs. Must be called after every event of the NIC.
    #[inline]
    pub(crate) fn hand_over(&mut self, cx: &mut Cx<'_>, params: &NicParams) {
        if self.eqifs.is_some()
            && let Some(eqif) = &params.eqif
        {
            self.empty_stacks(cx, params, eqif);
        }
    }

    #[inline(never)]
    fn empty_stacks(&mut self, cx: &mut Cx<'_>, params: &NicParams, eqif: &EqifParams) {
        self.take_answers(cx, params, eqif);
        while self.take_ready(cx, params, eqif) {
            self.take_answers(cx, params, eqif);
        }
        self.run_engine(cx, params, eqif);
    }

    /// Takes the control packets of stacks from the NIC's queue; those of tunnels stay. Each is examined once, however
    /// long it waits.
    fn take_answers(&mut self, cx: &mut Cx<'_>, params: &NicParams, eqif: &EqifParams) {
        let Some(eqifs) = &mut self.eqifs else { return };
        let mut at = core::mem::take(&mut eqifs.staying);
        while let Some(answer) = self.port.answers.get(at) {
            let of_tcp = matches!(answer.repr, Repr::Tcp(_)) && eqif.tcp.is_some();
            let of_rdma = matches!(answer.repr, Repr::Ack(_) | Repr::HoleNack(_) | Repr::Cnp) && eqif.rdma.is_some();
            if !of_tcp && !of_rdma {
                at += 1;
                continue;
            }
            let (Some(answer), Some(eqifs)) = (self.port.answers.remove(at), &mut self.eqifs) else { return };
            if of_tcp {
                self.take_segment(cx, params, eqif, answer);
            } else {
                eqifs.engine.answers.push_back(answer);
            }
        }
        if let Some(eqifs) = &mut self.eqifs {
            eqifs.staying = at;
        }
    }

    /// Takes a packet of each ready flow that sends through tunnels; returns whether there was one of TCP.
    fn take_ready(&mut self, cx: &mut Cx<'_>, params: &NicParams, eqif: &EqifParams) -> bool {
        let mut any = false;
        for _ in 0..self.port.ready.len() {
            let Some(slot) = self.port.ready.pop_front() else { break };
            match (Owner::of(slot), &mut self.eqifs) {
                (Owner::Tcp | Owner::Beside, _) if eqif.tcp.is_some() => {
                    any = true;
                    let mut segment = Packet::BLANK;
                    if self.uncounted(|nic| nic.poll_endpoint(cx, params, slot, &mut segment)) {
                        self.take_segment(cx, params, eqif, segment);
                    }
                }
                (Owner::QueuePair | Owner::Requests, Some(eqifs)) if eqif.rdma.is_some() => {
                    eqifs.engine.ready.push_back(slot);
                }
                (Owner::Acks, Some(eqifs)) if eqif.rdma.is_some() => eqifs.engine.ready.push_front(slot),
                _ => self.port.ready.push_back(slot),
            }
        }
        any
    }

    /// Adds a TCP segment to the queue of its destination.
    fn take_segment(&mut self, cx: &mut Cx<'_>, params: &NicParams, eqif: &EqifParams, mut segment: Packet) {
        let (Some(tcp), Some(eqifs)) = (&eqif.tcp, &mut self.eqifs) else { return };
        let carrier = eqifs.carrier_to(segment.dst, OF_TCP, segment.entropy);
        let queue = &mut eqifs.outbound[carrier as usize].queue;
        let bytes = u32::from(segment.frame) + eqif.tunnel.header;
        let flow = matches!(&segment.repr, Repr::Tcp(tcp) if !tcp.is_backward()).then_some(segment.qp.0);
        let offered = Offered { flow, bytes, ecn_capable: segment.ecn != Ecn::NotCapable };
        let offer = queue.offer(tcp, cx.now, eqif.tunnel.pull_interval, offered);
        match offer {
            Offer::Dropped => {
                eqifs.stats.dropped += 1;
                return;
            }
            Offer::Marked => {
                eqifs.stats.marked += 1;
                segment.ecn = Ecn::Marked;
            }
            Offer::Taken => {}
        }
        self.wait_for_credit(cx, params, eqif, carrier, segment);
    }

    /// Lets the RDMA engine hand over the packets that it has time for, unless it is paused.
    pub(super) fn run_engine(&mut self, cx: &mut Cx<'_>, params: &NicParams, eqif: &EqifParams) {
        let Some(rdma) = &eqif.rdma else { return };
        self.hear_signals(cx, params);
        while self.engine_may_go(cx, params, rdma.delay) {
            let Some(packet) = self.poll_engine(cx, params) else { continue };
            let Some(eqifs) = &mut self.eqifs else { return };
            if let Some(rate) = rdma.engine_rate {
                eqifs.engine.free_at = cx.now + rate.time_for(Bytes::new((packet.frame + params.frames.gap).into()));
            }
            let carrier = eqifs.carrier_to(packet.dst, OF_RDMA, packet.entropy);
            let headers = self.rdma.as_mut().filter(|_| packet.slot == REQUESTS).and_then(|rdma| rdma.leaving.take());
            let kept = headers.map_or(packet, |headers| eqifs.shelf.put(&packet, &headers));
            self.wait_for_credit(cx, params, eqif, carrier, kept);
            self.press_back(cx, params, rdma, carrier, &packet);
        }
    }

    /// Returns whether the engine has a packet to send and may send it; if only time lacks, a deadline is set.
    fn engine_may_go(&mut self, cx: &mut Cx<'_>, params: &NicParams, delay: Duration) -> bool {
        let Some(eqifs) = &mut self.eqifs else { return false };
        let pauses = eqifs.backlog.pauses();
        if pauses != eqifs.engine.told_to_pause {
            eqifs.engine.told_to_pause = pauses;
            self.signal(cx, params, delay, Signal::Pause(pauses));
        }
        let Some(EqifSet { engine, .. }) = self.eqifs.as_deref_mut() else { return false };
        if engine.paused || engine.is_idle() {
            return false;
        }
        let at = engine.free_at;
        if at <= cx.now {
            return true;
        }
        self.wake_engine(at);
        false
    }

    /// Lets the engine act at `at` at the latest.
    fn wake_engine(&mut self, at: Instant) {
        let Some(EqifSet { engine, .. }) = self.eqifs.as_deref_mut() else { return };
        if at < engine.armed {
            engine.armed = at;
            self.port.deadlines.push(at, ENGINE);
        }
    }

    /// Sends a signal to the engine, which it reaches after `delay`.
    fn signal(&mut self, cx: &mut Cx<'_>, params: &NicParams, delay: Duration, signal: Signal) {
        if delay.is_zero() {
            return self.on_signal(cx, params, signal);
        }
        let Some(EqifSet { engine, .. }) = self.eqifs.as_deref_mut() else { return };
        let at = cx.now + delay;
        engine.signals.push_back((at, signal));
        self.wake_engine(at);
    }

    /// Handles the signals that have reached the engine.
    fn hear_signals(&mut self, cx: &mut Cx<'_>, params: &NicParams) {
        while let Some(EqifSet { engine, .. }) = self.eqifs.as_deref_mut()
            && let Some(&(at, signal)) = engine.signals.front()
        {
            if at > cx.now {
                return self.wake_engine(at);
            }
            engine.signals.pop_front();
            self.on_signal(cx, params, signal);
        }
    }

    /// Handles a signal at the engine.
    fn on_signal(&mut self, cx: &mut Cx<'_>, params: &NicParams, signal: Signal) {
        match signal {
            Signal::Pause(paused) => {
                if let Some(EqifSet { engine, stats, .. }) = self.eqifs.as_deref_mut() {
                    engine.paused = paused;
                    stats.pauses += u64::from(paused);
                }
            }
            Signal::CnpOfVerbs(qp) => self.slow_down(cx, qp),
            Signal::Cnp(slot, qp) => {
                if let FlowParams::Rdma(own) = &params.flows {
                    self.queue_pairs.handle_cnp(&mut self.port.lend(cx, &params.frames, own, 0), slot, qp);
                }
            }
        }
    }

    /// Returns the engine's next packet; `None` if the queue pair whose turn it was has nothing to send.
    fn poll_engine(&mut self, cx: &mut Cx<'_>, params: &NicParams) -> Option<Packet> {
        let engine = &mut self.eqifs.as_mut()?.engine;
        if let Some(answer) = engine.answers.pop_front() {
            return Some(answer);
        }
        let slot = *engine.ready.front()?;
        let mut packet = Packet::BLANK;
        // The queue pair stays in the engine's ring: in the NIC's ring it would bypass its tunnel.
        self.swap_rings();
        let sent = self.uncounted(|nic| nic.send_data(cx, params, slot, &mut packet));
        self.swap_rings();
        sent.then_some(packet)
    }

    /// Exchanges the NIC's ring and turn with those of the engine.
    fn swap_rings(&mut self) {
        if let Some(EqifSet { engine, .. }) = self.eqifs.as_deref_mut() {
            core::mem::swap(&mut self.port.ready, &mut engine.ready);
            core::mem::swap(&mut self.turn, &mut engine.turn);
        }
    }

    /// Calls `send` without counting its packets, which go to an EQIF and are not on the wire yet.
    fn uncounted<T>(&mut self, send: impl FnOnce(&mut Self) -> T) -> T {
        let NicStats { data_sent, acks_sent, .. } = self.port.stats;
        let sent = send(self);
        (self.port.stats.data_sent, self.port.stats.acks_sent) = (data_sent, acks_sent);
        sent
    }

    /// Notes that a packet of the engine waits: its queue pair may be sent a CNP.
    fn press_back(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        rdma: &RdmaEqifParams,
        carrier: u32,
        packet: &Packet,
    ) {
        let Some(EqifSet { outbound, backlog, engine, stats, .. }) = self.eqifs.as_deref_mut() else { return };
        let state = &mut outbound[carrier as usize];
        let waiting = state.queue.bytes();
        backlog.note_length(&mut state.pressure, &rdma.pressure, waiting);
        let Pressure::Cnp(cnp) = &rdma.pressure else { return };
        if !matches!(packet.repr, Repr::Data(_)) || !state.pressure.asks_for_cnp(&rdma.pressure, waiting) {
            return;
        }
        let is_of_verbs = packet.slot == REQUESTS;
        let may_hear = if is_of_verbs {
            engine.may_hear_of_verbs(packet.qp, cx.now, cnp.interval)
        } else {
            engine.may_hear(packet.slot, packet.qp, cx.now, cnp.interval)
        };
        if !may_hear {
            return;
        }
        stats.cnps += 1;
        let cnp = if is_of_verbs { Signal::CnpOfVerbs(packet.qp) } else { Signal::Cnp(packet.slot, packet.qp) };
        self.signal(cx, params, rdma.delay, cnp);
    }
}
