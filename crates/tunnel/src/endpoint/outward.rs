//! The sending end of a tunnel, with the packets that wait for it.

use std::collections::VecDeque;

use selvedge_transport::eqds::{EqdsParams, Paths, Sender, Transmit};
use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::v1::{Next, Words};

use super::native::Origin;
use super::params::{Limits, Sizes};
use super::store::Store;

/// Facts about a packet of this host on its way to a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Outgoing {
    /// Name of the tunnel.
    pub(super) tunnel: u32,
    /// Form of the payload: the packet as it is, or parts of it.
    pub(super) next: Next,
    /// Message id of a packet that is sent in parts.
    pub(super) message: u32,
    /// ECN field of datagrams with this packet.
    pub(super) ecn: u8,
    /// Bytes of each part but the last.
    pub(super) part: u32,
    /// Parts that have not arrived.
    pub(super) missing: u32,
    /// Whether parts arrived at a receiver that has lost them since: the packet will not be complete.
    pub(super) is_torn: bool,
    /// Of native messages, whom to tell.
    pub(super) origin: Origin,
}

impl Outgoing {
    /// Returns the number of parts of a packet of `length` bytes.
    fn parts(&self, length: usize) -> u32 {
        (length as u32).div_ceil(self.part)
    }
}

impl Store<Outgoing> {
    /// Notes that a part of a packet is needed no longer, and frees the packet with its last; returns it then.
    pub(super) fn release(&mut self, slot: u32) -> Option<Outgoing> {
        let about = self.about(slot)?;
        about.missing -= 1;
        let about = *about;
        if about.missing > 0 {
            return None;
        }
        self.free(slot);
        Some(about)
    }

    /// Notes that the receiver of a tunnel has lost the packets of which it had parts.
    pub(super) fn tear(&mut self, tunnel: u32) {
        let begun: Vec<u32> = self.slots(|about| about.tunnel == tunnel).collect();
        for slot in begun {
            let Some((bytes, about)) = self.get(slot) else { continue };
            let parts = about.parts(bytes.len());
            if let Some(about) = self.about(slot) {
                about.is_torn |= about.missing < parts;
            }
        }
    }
}

/// Part of a packet: the content of one datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) slot: u32,
    offset: u32,
    length: u32,
}

/// The content of a datagram with a part, joined.
pub(super) struct Content<'a> {
    words: [u8; Words::LENGTH],
    has_words: bool,
    bytes: &'a [u8],
    pub(super) about: Outgoing,
}

impl Content<'_> {
    pub(super) fn payload(&self) -> [&[u8]; 2] {
        [if self.has_words { &self.words } else { &[] }, self.bytes]
    }
}

impl Part {
    /// Returns the content of the datagram.
    pub(super) fn content<'a>(&self, packets: &'a Store<Outgoing>) -> Option<Content<'a>> {
        let (bytes, about) = packets.get(self.slot)?;
        let has_words = words(about.next) > 0;
        let words = Words { message: about.message, offset: self.offset, length: bytes.len() as u32 };
        let part = bytes.get(self.offset as usize..(self.offset + self.length) as usize)?;
        Some(Content { words: words.emit(), has_words, bytes: part, about: *about })
    }
}

/// Packets that wait for a tunnel.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Slots of the packets; the first may have been sent in part, up to `offset`.
    slots: VecDeque<u32>,
    offset: u32,
    /// Bytes that wait.
    pub(super) waiting: u64,
    messages: u32,
}

impl Waiting {
    /// Adds a packet, of `bytes` in pieces, that is sent in parts of at most `part` bytes or as it is; returns the
    /// bytes of credit that it takes.
    pub(super) fn push<const N: usize>(
        &mut self,
        packets: &mut Store<Outgoing>,
        bytes: [&[u8]; N],
        about: Outgoing,
        sizes: &Sizes,
    ) -> u64 {
        let length = bytes.iter().map(|piece| piece.len()).sum::<usize>() as u32;
        let parts = about.parts(length as usize);
        let message = self.messages;
        self.messages = message.wrapping_add(1);
        self.slots.push_back(packets.put(bytes, Outgoing { message, missing: parts, ..about }));
        self.waiting += u64::from(length);
        u64::from(length) + u64::from(parts) * u64::from(sizes.credit_header() + words(about.next))
    }

    /// Returns the first part that waits, and the bytes of credit that it takes.
    fn first(&self, packets: &Store<Outgoing>, sizes: &Sizes) -> Option<(Part, u32)> {
        let slot = *self.slots.front()?;
        let (bytes, about) = packets.get(slot)?;
        let length = about.part.min(bytes.len() as u32 - self.offset);
        Some((Part { slot, offset: self.offset, length }, length + words(about.next) + sizes.credit_header()))
    }

    /// Returns the bytes of credit that the first part takes.
    pub(super) fn head(&self, packets: &Store<Outgoing>, sizes: &Sizes) -> Option<u32> {
        self.first(packets, sizes).map(|(_, bytes)| bytes)
    }

    /// Removes the first part; returns it with the bytes of credit that it takes.
    ///
    /// # Panics
    /// If nothing waits.
    pub(super) fn take(&mut self, packets: &Store<Outgoing>, sizes: &Sizes) -> (Part, u32) {
        let first = self.first(packets, sizes).expect("a packet waits, of which the head was given");
        let (part, _) = first;
        self.waiting -= u64::from(part.length);
        self.offset += part.length;
        if packets.get(part.slot).is_none_or(|(bytes, _)| bytes.len() as u32 <= self.offset) {
            self.slots.pop_front();
            self.offset = 0;
        }
        first
    }

    /// Returns the number of packets none of whose parts was sent.
    pub(super) fn unsent(&self) -> usize {
        self.slots.len() - usize::from(self.offset > 0)
    }
}

/// The sending end of a tunnel.
#[derive(Debug)]
pub(super) struct Outward {
    /// Parameters, with the service of the settings.
    pub(super) params: EqdsParams,
    pub(super) limits: Limits,
    pub(super) sender: Sender<Part>,
    pub(super) queue: Waiting,
    pub(super) paths: Paths,
    health: Vec<Health>,
    /// Whether the tunnel is in the schedule.
    pub(super) is_scheduled: bool,
    /// Earliest entry in the heap of deadlines.
    pub(super) armed: Instant,
    pub(super) counts: Sent,
}

/// Counters of a tunnel's sending end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) data: u64,
    pub(super) retransmissions: u64,
    pub(super) requests: u64,
    pub(super) dropped: u64,
    pub(super) marked: u64,
}

impl Sent {
    /// Counts a datagram.
    pub(super) fn note(&mut self, sent: &Transmit<Part>) {
        self.data += u64::from(sent.cargo.is_some());
        self.requests += u64::from(sent.cargo.is_none());
        self.retransmissions += u64::from(sent.retransmission);
    }
}

/// Observations of a path.
#[derive(Clone, Copy, Debug)]
struct Health {
    arrived: u64,
    lost: u64,
    /// Time until which the path is left out.
    bad_until: Instant,
}

/// Losses, more than arrivals, after which a path is left out.
const LOSSES: u64 = 4;
/// Time for which a path is left out.
const PENALTY: Duration = Duration::from_ms(1_000);

impl Outward {
    pub(super) fn new(params: EqdsParams, limits: Limits, key: u64) -> Self {
        Self {
            params,
            limits,
            sender: Sender::new(),
            queue: Waiting::default(),
            paths: Paths::new(key),
            health: Vec::new(),
            is_scheduled: false,
            armed: Instant::NEVER,
            counts: Sent::default(),
        }
    }

    /// Forgets all packets; their slots are the caller's to free.
    pub(super) fn clear(&mut self) {
        self.sender.forget(&self.params, self.params.life.memory);
        self.queue = Waiting { messages: self.queue.messages, ..Waiting::default() };
    }

    /// Chooses the path of the next batch: all in turn, but those that have lost more than they delivered.
    pub(super) fn choose_path(&mut self, now: Instant) -> u16 {
        let count = self.params.paths;
        let mut path = self.paths.next(count).0;
        for _ in 1..count {
            if !self.is_bad(path, now) {
                break;
            }
            path = self.paths.next(count).0;
        }
        path
    }

    fn is_bad(&mut self, path: u16, now: Instant) -> bool {
        let at = usize::from(path);
        let Some(report) = self.sender.paths().get(at) else { return false };
        if self.health.len() <= at {
            self.health.resize(at + 1, Health { arrived: 0, lost: 0, bad_until: Instant::ZERO });
        }
        let health = &mut self.health[at];
        // A new epoch counts from zero.
        let arrived = report.arrived.saturating_sub(health.arrived);
        let lost = report.lost.saturating_sub(health.lost);
        if report.arrived < health.arrived || arrived + lost >= 2 * LOSSES {
            (health.arrived, health.lost) = (report.arrived, report.lost);
            if lost >= LOSSES && lost > arrived {
                health.bad_until = now + PENALTY;
            }
        }
        now < health.bad_until
    }

    /// Moves the origin of time by `by`.
    pub(super) fn rebase(&mut self, by: Duration) {
        self.sender.rebase(by);
        super::rebase(&mut self.armed, by);
        self.health.iter_mut().for_each(|health| super::rebase(&mut health.bad_until, by));
    }
}

/// Returns the bytes of `virtio_net_hdr` at the start of a packet of this form.
pub(super) fn vnet_length(next: Next) -> usize {
    if next == Next::Super { super::inside::VnetHeader::LENGTH } else { 0 }
}

/// Returns the bytes before each part of a packet.
fn words(next: Next) -> u32 {
    if matches!(next, Next::Super | Next::Native) { Words::LENGTH as u32 } else { 0 }
}
