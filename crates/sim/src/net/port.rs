//! One end of a link: what leaves through it, and what has entered through it.

use std::mem::offset_of;

use selvedge_units::{Bytes, Duration, Instant, PortId, Rate, mix64};
use selvedge_wire::Packet;

use super::buffer::InputLimits;
use super::clock::NicClock;
use super::marking::Red;
use crate::fault::LaneLoss;

/// What leaves through a port: one cache line.
#[repr(C, align(64))]
pub(crate) struct Egress {
    /// When the last bit (and the gap after it) has left.
    pub(crate) busy_until: Instant,
    /// Propagation delay to the peer.
    pub(crate) delay: Duration,
    /// Frames sent.
    pub(crate) frames: u64,
    /// Picoseconds per byte; zero if that is no whole number.
    ps_per_byte: u32,
    /// The port at the other end, in its partition's numbering.
    pub(crate) peer: u32,
    /// Bytes sent. (Not beside the frames: adding to both at once costs more than one after the other.)
    pub(crate) bytes: u64,
    /// The peer's node, in the numbering of the partition that sends there.
    pub(crate) peer_node: u32,
    /// The host or switch that this port belongs to, in its partition's numbering.
    pub(crate) owner: u32,
    /// The peer's number within its node.
    pub(crate) peer_port: u16,
    /// The partition of the other end.
    pub(crate) peer_partition: u16,
    /// Bit per class: packets of it wait to leave.
    pub(crate) waiting: u8,
    /// Bit per class: it may not leave. The peer has paused it, or (where switches trim) data has its turn.
    /// [`Egress::DOWN`] while the link is down.
    pub(crate) paused: u8,
    /// Whether its node will come back when it is free.
    pub(crate) free_pending: bool,
    /// What is out of the ordinary: [`PAUSE_DUE`], [`SLOW_PATH`].
    special: u8,
    /// Whether the port belongs to a host.
    pub(crate) is_host: bool,
    /// Where the queues of its lines begin, class by class, if it belongs to a switch.
    pub(crate) first_queue: u32,
}

/// Bits of [`Egress::special`]. The peer has to be told of a pause or its end.
const PAUSE_DUE: u8 = 1;
/// What it sends takes the slow path: at a rate of no whole picoseconds per byte, or with [records](super::records)
/// beside it.
const SLOW_PATH: u8 = 2;

/// What has entered through a port: half a cache line.
#[repr(align(32))]
pub(crate) struct Ingress {
    /// Bytes that entered here and are still in the switch.
    pub(crate) buffered: u64,
    /// With more than this buffered, something is to be done or decided ([`Partition::admit`]).
    ///
    /// [`Partition::admit`]: crate::kernel::partition::Partition::admit
    pub(crate) slow_above: u64,
    /// With less than this buffered, too ([`Partition::release`]).
    ///
    /// [`Partition::release`]: crate::kernel::partition::Partition::release
    pub(crate) slow_below: u64,
    /// No more bytes than these come in during a window.
    pub(crate) most: u32,
    /// Whether arrivals take the slow path: there is a loss process, NetRT, or the link is down.
    pub(crate) slow_path: bool,
    /// Bit per class: the peer shall be paused, as the buffer is filling up.
    pub(crate) pausing: u8,
    /// Bit per class: the peer shall be paused, as NetRT sends again what it had sent.
    pub(crate) held_up: u8,
    /// Bit per class: the peer has been told so.
    pub(crate) announced: u8,
}

const _: () = assert!(size_of::<Egress>() == 64 && size_of::<Ingress>() == 32);

/// What few events need. What pauses need of the port comes first, then what samples need, then what pauses need of the
/// first three classes, a cache line each.
#[repr(C, align(64))]
pub(crate) struct PortExtra {
    pub(crate) id: PortId,
    pub(crate) down: bool,
    /// Of this input, if its classes have one account together ([`Accounting`](super::buffer::Accounting)).
    pub(crate) limits: InputLimits,
    /// Since when it is paused; never, unless it is.
    pub(crate) paused_since: Instant,
    /// Paused time of pauses that have ended.
    pub(crate) paused_total: Duration,
    /// When the pause timer that counts will fire; earlier ones are stale.
    pub(crate) timer_at: Instant,
    /// When the peer has to be reminded of its pause.
    pub(crate) refresh_at: Instant,
    pub(crate) drops: u64,
    pub(crate) trims: u64,
    /// Values at the last sample.
    pub(crate) sampled: Sampled,
    pub(crate) rate: Rate,
    /// What was lost of what entered here, for the fingerprint: a sum, so that it does not matter what else had
    /// arrived when it was lost.
    pub(crate) losses: u64,
    pub(crate) pauses_sent: u64,
    pub(crate) pause_frames: u64,
    /// Of each class.
    pub(crate) pauses: [ClassPause; 8],
    /// ECN marking at this output.
    pub(crate) red: Red,
    /// What the link loses on the way here.
    pub(crate) loss: Option<Box<LaneLoss>>,
    /// Of a NIC that does not keep the nominal time.
    pub(crate) clock: Option<Box<NicClock>>,
}

const _: () = assert!(offset_of!(PortExtra, drops) == 64 && offset_of!(PortExtra, pauses_sent) == 128);

/// The pause of one class, which may be over.
#[derive(Clone, Copy)]
pub(crate) struct ClassPause {
    /// When it runs out unless it is refreshed; meaningless unless the class is paused.
    pub(crate) expires: Instant,
    /// Since when the class is paused; meaningless unless it is.
    pub(crate) since: Instant,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Sampled {
    pub(crate) paused: Duration,
    pub(crate) busy: Duration,
    pub(crate) drops: u64,
    pub(crate) trims: u64,
}

impl Egress {
    /// What `paused` is while the link is down; no peer pauses that many classes.
    pub(crate) const DOWN: u8 = u8::MAX;

    pub(crate) fn new(delay: Duration, is_host: bool, owner: u32, rate: Rate) -> Self {
        let ps_per_byte = rate.whole_ps_per_byte().and_then(|ps| u32::try_from(ps).ok()).unwrap_or(0);
        Self {
            busy_until: Instant::ZERO,
            delay,
            frames: 0,
            bytes: 0,
            ps_per_byte,
            peer: u32::MAX,
            peer_node: u32::MAX,
            owner,
            peer_port: 0,
            peer_partition: 0,
            waiting: 0,
            paused: 0,
            free_pending: false,
            special: if ps_per_byte == 0 { SLOW_PATH } else { 0 },
            is_host,
            first_queue: 0,
        }
    }
}

impl Ingress {
    /// Nothing has entered, and buffering is somebody else's business. In a window, so many bytes may come in.
    pub(crate) fn new(most: Bytes) -> Self {
        Self {
            buffered: 0,
            slow_above: 0,
            slow_below: u64::MAX,
            most: u32::try_from(most.get()).unwrap_or(u32::MAX),
            slow_path: false,
            pausing: 0,
            held_up: 0,
            announced: 0,
        }
    }

    /// Whether nothing is to be done or decided here, whatever comes in during a window, and whatever leaves. One that
    /// wants to hear of packets that leave has a `slow_below`.
    #[inline(always)]
    pub(crate) fn is_calm(&self) -> bool {
        self.slow_below == 0 && self.buffered + u64::from(self.most) <= self.slow_above
    }

    /// Bit per class: the peer shall be paused, for whatever reason.
    #[inline]
    pub(crate) fn shall_pause(&self) -> u8 {
        self.pausing | self.held_up
    }
}

impl Egress {
    /// Whether nothing waits, nothing forbids to send, and nobody is about to come back: one comparison.
    #[inline(always)]
    pub(crate) fn is_clear(&self) -> bool {
        self.state() & !u32::from_ne_bytes([0, 0, 0, SLOW_PATH]) == 0
    }

    /// The same where what it sends takes no slow path, either.
    #[inline(always)]
    pub(crate) fn is_plainly_clear(&self) -> bool {
        self.state() == 0
    }

    /// Where there is one class: whether something waits, nothing forbids to send it, its node has come back for that,
    /// there is nothing else to send, and it takes no slow path: one comparison.
    #[inline(always)]
    pub(crate) fn is_plainly_due(&self) -> bool {
        self.state() == u32::from_ne_bytes([1, 0, 1, 0])
    }

    #[inline(always)]
    fn state(&self) -> u32 {
        u32::from_ne_bytes([self.waiting, self.paused, u8::from(self.free_pending), self.special])
    }

    /// Whether the peer has to be told of a pause or its end.
    #[inline(always)]
    pub(crate) fn pause_due(&self) -> bool {
        self.special & PAUSE_DUE != 0
    }

    pub(crate) fn set_pause_due(&mut self, due: bool) {
        self.special = self.special & !PAUSE_DUE | if due { PAUSE_DUE } else { 0 };
    }

    /// Whether what it sends takes the slow path, for one of the reasons there are.
    #[inline(always)]
    pub(crate) fn takes_slow_path(&self) -> bool {
        self.special & SLOW_PATH != 0
    }

    /// Lets what it sends take the slow path.
    pub(crate) fn take_slow_path(&mut self) {
        self.special |= SLOW_PATH;
    }

    /// Whether nothing waits, and nothing forbids to send: one comparison.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        u16::from_ne_bytes([self.waiting, self.paused]) == 0
    }

    /// Bit per class: packets of it wait, and may leave.
    #[inline(always)]
    pub(crate) fn ready(&self) -> u8 {
        self.waiting & !self.paused
    }

    /// Puts a frame of `bytes` on the wire, for as long as that takes; returns when it will have arrived.
    #[inline(always)]
    pub(crate) fn begin_frame(&mut self, now: Instant, serialisation: Duration, bytes: u64) -> Instant {
        self.busy_until = now + serialisation;
        self.frames += 1;
        self.bytes += bytes;
        self.busy_until + self.delay
    }

    /// Counts a frame of `bytes` that is on the wire until `ends`.
    #[inline(always)]
    pub(crate) fn add_frame(&mut self, ends: u64, bytes: u64) {
        self.busy_until = Instant::from_ps(ends);
        self.frames += 1;
        self.bytes += bytes;
    }

    /// Counts frames that have been put on the wire, the last of which leaves until `busy_until`.
    #[inline(always)]
    pub(crate) fn add_frames(&mut self, busy_until: Instant, frames: u64, bytes: u64) {
        self.busy_until = busy_until;
        self.frames += frames;
        self.bytes += bytes;
    }

    /// Picoseconds per byte, where nothing is rare about that.
    #[inline(always)]
    pub(crate) fn ps_per_byte(&self) -> u64 {
        u64::from(self.ps_per_byte)
    }

    /// How long `bytes` take on the wire, where nothing is rare about that.
    #[inline(always)]
    pub(crate) fn plain_serialisation(&self, bytes: u64) -> Duration {
        Duration::from_ps(bytes * u64::from(self.ps_per_byte))
    }

    /// How long `bytes` take on the wire; `rate` is the port's.
    #[inline]
    pub(crate) fn serialisation(&self, bytes: u64, rate: impl FnOnce() -> Rate) -> Duration {
        if self.ps_per_byte == 0 { slow_serialisation(bytes, rate()) } else { self.plain_serialisation(bytes) }
    }
}

impl PortExtra {
    /// When the first of the paused `classes` may go on by itself.
    pub(crate) fn first_expiry(&self, classes: u8) -> Instant {
        of_bits(classes).map(|class| self.pauses[class].expires).min().unwrap_or(Instant::NEVER)
    }

    pub(crate) fn new(id: PortId, rate: Rate, red: Red) -> Self {
        Self {
            id,
            rate,
            loss: None,
            clock: None,
            down: false,
            red,
            limits: InputLimits::NONE,
            pauses: [ClassPause { expires: Instant::ZERO, since: Instant::ZERO }; 8],
            paused_since: Instant::NEVER,
            paused_total: Duration::ZERO,
            timer_at: Instant::NEVER,
            refresh_at: Instant::NEVER,
            pauses_sent: 0,
            pause_frames: 0,
            drops: 0,
            trims: 0,
            losses: 0,
            sampled: Sampled::default(),
        }
    }

    /// Counts a packet that entered here and was lost, or a part of it.
    pub(crate) fn note_loss(&mut self, packet: &Packet, how: u64) {
        let name = mix64(packet.sent_at.as_ps() ^ u64::from(packet.src.0) << 40);
        self.losses = self.losses.wrapping_add(mix64(name.wrapping_add(how)));
    }

    /// How long the port has been paused up to `now`.
    pub(crate) fn paused_time(&self, now: Instant) -> Duration {
        if self.paused_since == Instant::NEVER {
            self.paused_total
        } else {
            self.paused_total + now.since(self.paused_since)
        }
    }

    /// A pause ends, if there is one.
    pub(crate) fn end_pause(&mut self, now: Instant) {
        self.paused_total = self.paused_time(now);
        self.paused_since = Instant::NEVER;
    }
}

/// The classes whose bits are set, ascending.
pub(crate) fn of_bits(mut classes: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let class = classes.trailing_zeros();
        classes &= classes.wrapping_sub(1);
        (class < u8::BITS).then_some(class as usize)
    })
}

/// How long `bytes` take at a rate that is no whole number of picoseconds per byte.
#[cold]
fn slow_serialisation(bytes: u64, rate: Rate) -> Duration {
    rate.time_for(Bytes::new(bytes))
}
