//! Switches that cut packets to their headers where others drop them (Handley et al., NDP, SIGCOMM 2017, section 3.1).
//!
//! Design notes.
//! 1. *Two queues.* Each class of data has a short queue per output. Where a packet finds it full, a packet moves to
//!    the queue of headers of that output, a class above: either the packet itself or the last one of the queue, chosen
//!    at random. Only data has a payload to lose; other packets move as they are. A packet that finds the queue of
//!    headers full is dropped.
//! 2. *How an engine learns of it.* A trimmed packet has 64 bytes left and is flagged
//!    ([`Packet::is_trimmed`](selvedge_wire::Packet::is_trimmed)). It reaches `Nic::handle_packet` like any other where
//!    its transport wants headers; elsewhere its host drops it
//!    ([`DropReason::Trimmed`]).
//! 3. *Turns.* Headers go first, but not for ever: after a number of headers in a row, data has a turn. Until data has
//!    used it, the class of headers counts as paused, which costs other fabrics nothing. Switches that trim do not
//!    pause each other, so that no other code writes that state.
//! 4. *Fair queues* ([`fair`]). Where flows of a class take turns, its short queue is the sum of theirs,
//!    and a packet that finds it full takes the place of the last one of the longest of them, which is cut. If its own
//!    flow has most, or has reached a limit of its own, the flow pays for it as in design note 1: either the packet
//!    itself or the last one of the flow is cut, chosen at random.

use selvedge_telemetry::DropReason;
use selvedge_units::{Chance, Domain, PortId, Rng};

use crate::descriptor::Descriptor;
use crate::environment::{Environment, Note, Trimmed};
use crate::fair;
use crate::port::Egress;
use crate::switches::{Switches, Way};

/// Parameters of trimming that hold at all ports.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Bytes that a data queue holds.
    pub data: u64,
    /// Bytes that the queue of headers holds.
    pub headers: u64,
    /// Class of headers.
    pub class: u8,
    /// Number of headers in a row while data waits, at least 1.
    pub turn: u32,
    /// Probability that the last packet of a full queue is cut, and not the arriving one.
    pub trim_last: Chance,
}

/// Parameters of the turns between headers and data.
#[derive(Clone, Copy)]
pub struct Turns {
    /// Class of headers.
    class: u8,
    /// Number of headers in a row while data waits.
    most: u32,
}

/// Trimming state of one output.
pub struct Trimmer {
    /// Random stream that chooses the packet to cut.
    coin: Rng,
    /// Headers sent in a row while data waited.
    headers: u32,
}

impl Rules {
    /// Returns the parameters of the turns between headers and data.
    pub fn turns(&self) -> Turns {
        Turns { class: self.class, most: self.turn }
    }

    /// Returns the bytes that the queue of `class` holds.
    #[inline]
    pub fn room(&self, class: u8) -> u64 {
        if class == self.class { self.headers } else { self.data }
    }
}

impl Trimmer {
    /// Creates the state of output `port`, whose random stream depends on `seed`.
    pub fn new(seed: u64, port: PortId) -> Self {
        Self { coin: Rng::stream(seed, Domain::Trimming, u64::from(port.0)), headers: 0 }
    }

    /// Updates whose turn it is after a packet of `class` has left through `port`.
    #[inline]
    pub fn keep_turn(&mut self, port: &mut Egress, class: u8, turns: Turns) {
        let headers = 1 << turns.class;
        if class == turns.class && port.waiting & !headers != 0 {
            self.headers += 1;
            if self.headers >= turns.most {
                port.paused |= headers;
            }
        } else if self.headers != 0 && port.paused != Egress::DOWN {
            self.headers = 0;
            port.paused = 0;
        }
    }
}

impl Switches {
    /// Handles a packet that finds its queue full: trims the last waiting packet to make space for it, or trims it.
    pub(crate) fn trim_one<E: Environment>(&mut self, env: &mut E, way: Way, packet: &Descriptor, rules: &Rules) {
        if packet.class == rules.class {
            return self.trim(env, way, packet, rules);
        }
        let Way { switch, out, .. } = way;
        let line = self.line_of(out, packet.class);
        let line = &mut self.lines[line];
        if rules.trim_last.hits(self.trimmers[out].coin.next_u64()) && !line.is_empty() {
            let last = line.pop_last(&mut self.queues, &mut self.store);
            if line.is_empty() {
                // The new packet may be longer than the queue: no packet waits here then.
                self.egress[out].waiting &= !(1 << packet.class);
            }
            self.trim_out(env, switch, out, &last, rules);
            if self.find_room(env, way, packet).is_ok() {
                return self.wait_there(env, way, packet);
            }
            // The last packet was shorter than this one, or this one is longer than the queue.
        }
        self.trim(env, way, packet, rules);
    }

    /// Lets a packet wait with those of its flow, in place of others that are trimmed where there is no room for it, or
    /// trims it.
    pub(crate) fn wait_or_trim<E: Environment>(
        &mut self,
        env: &mut E,
        way: Way,
        packet: &Descriptor,
        rules: &Rules,
        fair: &fair::Rules,
    ) {
        let Way { switch, out, .. } = way;
        let line = self.line_of(out, packet.class);
        let (own, frame) = (fair.queue_of(env.flow_hash(packet.slot)), u64::from(packet.frame));
        let mut may_replace = true;
        loop {
            if self.find_room(env, way, packet).is_ok() {
                return self.wait_there(env, way, packet);
            }
            if !self.lines[line].is_empty() && self.has_fair_room(env, out, packet, fair) {
                return self.join_flow(env, way, packet, fair);
            }
            let waiting = &mut self.fair[line];
            let with_packet = waiting.bytes_of(own) + frame;
            let longer = waiting.longest().filter(|&other| waiting.bytes_of(other) > with_packet);
            let cut = match longer {
                Some(other) if with_packet <= fair.per_flow => waiting.take_last(other, &mut self.store),
                // Of the flow itself.
                _ if may_replace && rules.trim_last.hits(self.trimmers[out].coin.next_u64()) => {
                    may_replace = false;
                    waiting.take_last(own, &mut self.store)
                }
                _ => None,
            };
            let Some(cut) = cut else { return self.trim(env, way, packet, rules) };
            self.lines[line].remove(u64::from(cut.frame));
            self.trim_out(env, switch, out, &cut, rules);
        }
    }

    /// Cuts a packet that has left its queue for port `out`.
    fn trim_out<E: Environment>(&mut self, env: &mut E, switch: u32, out: u32, packet: &Descriptor, rules: &Rules) {
        let ingress = self.switches[switch].facts.first_port + u32::from(packet.port);
        self.release(env, switch, ingress, u64::from(packet.frame), packet.class);
        self.trim(env, Way { switch, at: ingress, out }, packet, rules);
    }

    /// Cuts a packet that has no place in a queue, and adds it to the queue of headers of its output. One that has
    /// found that queue full is dropped.
    pub(crate) fn trim<E: Environment>(&mut self, env: &mut E, way: Way, packet: &Descriptor, rules: &Rules) {
        let Way { at, out, .. } = way;
        if packet.class == rules.class {
            return self.drop_packet(env, at, packet.slot, DropReason::BufferFull);
        }
        let mut header = Descriptor { class: rules.class, ..*packet };
        match env.trim(packet.slot, rules.class) {
            Trimmed::To(frame) => {
                header = header.trimmed(frame);
                self.extras[out].trims += 1;
                self.extras[at].note_loss(env.name(packet.slot), TRIMMED);
                if E::RECORDED {
                    env.note(self, Note::Trimmed { at, out, before: packet });
                }
            }
            Trimmed::Whole => {}
            Trimmed::Impossible => return self.drop_packet(env, at, packet.slot, DropReason::BufferFull),
        }
        match self.find_room(env, way, &header) {
            Ok(()) => self.wait_there(env, way, &header),
            Err(reason) => self.drop_packet(env, at, header.slot, reason),
        }
    }
}

/// Value that stands for a trim in the fingerprint.
const TRIMMED: u64 = 0x7472_696d;
