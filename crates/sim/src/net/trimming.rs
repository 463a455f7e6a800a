//! Switches that cut packets to their headers where others drop them (Handley et al., NDP, SIGCOMM 2017, section 3.1).
//!
//! Design notes.
//! 1. *Two queues.* Each class of data has a short queue per output. Where a packet finds it full, a packet moves to
//!    the queue of headers of that output, a class above: either the packet itself or the last one of the queue, chosen
//!    at random. Only data has a payload to lose; other packets move as they are. A packet that finds the queue of
//!    headers full is dropped.
//! 2. *How an engine learns of it.* A trimmed packet has 64 bytes left and is flagged
//!    ([`Packet::is_trimmed`](selvedge_wire::Packet::is_trimmed)). It reaches `Nic::handle_packet` like any other where
//!    [`TransportConfig::hears_trims`](crate::config::TransportConfig::hears_trims); elsewhere its host drops it
//!    ([`DropReason::Trimmed`]).
//! 3. *Turns.* Headers go first, but not for ever: after a number of headers in a row, data has a turn. Until data has
//!    used it, the class of headers counts as paused, which costs other fabrics nothing. Switches that trim do not
//!    pause each other, so that no other code writes that state.

use selvedge_telemetry::DropReason;
use selvedge_units::{Bytes, Chance, Domain, PortId, Rng};

use super::descriptor::Descriptor;
use super::port::Egress;
use crate::config::Trimming;
use crate::kernel::partition::Partition;

/// Parameters of trimming that hold at all ports.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Bytes that a data queue holds, and that the queue of headers holds.
    data: u64,
    headers: u64,
    /// Class of headers.
    class: u8,
    /// Number of headers in a row while data waits.
    turn: u32,
    trim_last: Chance,
}

/// Parameters of the turns between headers and data.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    /// Class of headers.
    class: u8,
    /// Number of headers in a row while data waits.
    most: u32,
}

/// Trimming state of one output.
pub(crate) struct Trimmer {
    /// Random stream that chooses the packet to cut.
    coin: Rng,
    /// Headers sent in a row while data waited.
    headers: u32,
}

impl Rules {
    /// Returns the parameters for full frames of `frame` bytes; headers travel as `class`.
    pub(crate) fn new(config: &Trimming, frame: Bytes, class: u8) -> Self {
        Self {
            data: config.data_room(frame).get(),
            headers: config.header_room(frame).map_or(u64::MAX, Bytes::get),
            class,
            turn: config.headers_per_data.resolve(|| Some(Trimming::HEADERS_PER_DATA)).unwrap_or(u32::MAX),
            trim_last: config.trim_last,
        }
    }

    pub(super) fn turns(&self) -> Turns {
        Turns { class: self.class, most: self.turn }
    }

    /// Returns the bytes that the queue of `class` holds.
    #[inline]
    pub(super) fn room(&self, class: u8) -> u64 {
        if class == self.class { self.headers } else { self.data }
    }
}

impl Trimmer {
    pub(crate) fn new(seed: u64, port: PortId) -> Self {
        Self { coin: Rng::stream(seed, Domain::Trimming, u64::from(port.0)), headers: 0 }
    }

    /// Updates whose turn it is after a packet of `class` has left through `port`.
    #[inline]
    pub(super) fn keep_turn(&mut self, port: &mut Egress, class: u8, turns: Turns) {
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

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles a packet that came through port `at` and finds its queue for port `out` full.
    pub(crate) fn trim_or_drop(&mut self, switch: u32, at: u32, out: u32, packet: &Descriptor, rules: &Rules) {
        if packet.class == rules.class {
            self.drop_packet(at, packet.slot, DropReason::BufferFull);
        } else {
            self.trim_one(switch, at, out, packet, rules);
        }
    }

    /// Handles a packet like [`Partition::trim_or_drop`], but leaves the waiting packets as they are.
    pub(crate) fn trim_newest(&mut self, switch: u32, at: u32, out: u32, packet: &Descriptor, rules: &Rules) {
        if packet.class == rules.class {
            self.drop_packet(at, packet.slot, DropReason::BufferFull);
        } else {
            self.trim(switch, at, out, packet, rules);
        }
    }

    /// Trims the last waiting packet to make space for this one at port `out`, or trims this one.
    fn trim_one(&mut self, switch: u32, at: u32, out: u32, packet: &Descriptor, rules: &Rules) {
        let line = self.line_of(out, packet.class);
        let line = &mut self.lines[line];
        if rules.trim_last.hits(self.trimmers[out].coin.next_u64()) && !line.is_empty() {
            let last = line.pop_last(&mut self.queues, &mut self.store);
            if line.is_empty() {
                // The new packet may be longer than the queue: no packet waits here then.
                self.egress[out].waiting &= !(1 << packet.class);
            }
            let ingress = self.switches[switch].facts.first_port + u32::from(last.port);
            self.release(switch, ingress, u64::from(last.frame), last.class);
            self.trim(switch, ingress, out, &last, rules);
            if self.find_room(switch, at, out, packet).is_ok() {
                return self.wait_there(switch, at, out, packet);
            }
            // The last packet was shorter than this one, or this one is longer than the queue.
        }
        self.trim(switch, at, out, packet, rules);
    }

    /// Cuts a packet that came through port `at`, and has no place in a queue, and adds it to the queue of headers.
    fn trim(&mut self, switch: u32, at: u32, out: u32, packet: &Descriptor, rules: &Rules) {
        let mut header = *packet;
        let whole = self.pool.get_mut(packet.slot);
        (whole.class, header.class) = (rules.class, rules.class);
        if whole.trim() {
            header = header.trimmed(whole.frame);
            self.extras[out].trims += 1;
            self.extras[at].note_loss(whole, TRIMMED);
            if RECORDED {
                self.note_trimmed(at, out, packet);
            }
        }
        match self.find_room(switch, at, out, &header) {
            Ok(()) => self.wait_there(switch, at, out, &header),
            Err(reason) => self.drop_packet(at, header.slot, reason),
        }
    }
}

/// Value that stands for a trim in the fingerprint.
const TRIMMED: u64 = 0x7472_696d;
