//! Ports: one end of a link, with the state of its outgoing and its incoming direction.

use std::mem::offset_of;

use selvedge_units::{Bytes, Duration, Instant, PortId, Rate, mix64};

use crate::buffer::InputLimits;
use crate::marking::Red;

/// Egress: state of the packets that leave through a port, in one cache line.
#[repr(C, align(64))]
pub struct Egress {
    /// Time at which the last bit (and the gap after it) has left.
    pub busy_until: Instant,
    /// Propagation delay to the peer.
    pub delay: Duration,
    /// Frames sent.
    pub frames: u64,
    /// Picoseconds per byte; zero if that is no whole number.
    ps_per_byte: u32,
    /// Port at the other end, in its partition's numbering.
    pub peer: u32,
    /// Bytes sent. (Not adjacent to the frames: adding to both at once costs more than one after the other.)
    pub bytes: u64,
    /// Peer's node, in the numbering of the partition that sends there.
    pub peer_node: u32,
    /// Host or switch that the port belongs to, in its partition's numbering.
    pub owner: u32,
    /// Peer's number within its node.
    pub peer_port: u16,
    /// Partition of the other end.
    pub peer_partition: u16,
    /// Bit per class: packets of the class wait to leave.
    pub waiting: u8,
    /// Bit per class: packets of the class may not leave, because the peer has paused them, or (where switches trim)
    /// data has its turn. [`Egress::DOWN`] while the link is down.
    pub paused: u8,
    /// Whether a return of the node is scheduled for when the port is free.
    pub free_pending: bool,
    /// Rare conditions: [`PAUSE_DUE`], [`SLOW_PATH`].
    special: u8,
    /// Whether the port belongs to a host.
    pub is_host: bool,
    /// First queue of its lines, which are ordered by class, if the port belongs to a switch.
    pub first_queue: u32,
}

/// Bit of [`Egress::special`]: the peer has to be told of a pause or its end.
const PAUSE_DUE: u8 = 1;
/// Bit of [`Egress::special`]: packets that leave take the slow path, because of a rate of no whole picoseconds per
/// byte, or of records that travel with packets.
const SLOW_PATH: u8 = 2;

/// Ingress: state of the packets that have entered through a port, in half a cache line.
#[repr(align(32))]
pub struct Ingress {
    /// Bytes that entered here and are still in the switch.
    pub buffered: u64,
    /// Buffered bytes above which admission has something to do or to decide ([`Switches::admit`]).
    ///
    /// [`Switches::admit`]: crate::Switches::admit
    pub slow_above: u64,
    /// Buffered bytes below which a release has something to do ([`Switches::release`]).
    ///
    /// [`Switches::release`]: crate::Switches::release
    pub slow_below: u64,
    /// Largest number of bytes that can arrive during a window.
    pub most: u32,
    /// Whether arrivals take the slow path: because of a loss process, NetRT, or a link that is down.
    pub slow_path: bool,
    /// Bit per class: the peer should be paused, because the buffer is filling up.
    pub pausing: u8,
    /// Bit per class: the peer should be paused, because NetRT is retransmitting its packets.
    pub held_up: u8,
    /// Bit per class: the peer has been told to pause.
    pub announced: u8,
}

const _: () = assert!(size_of::<Egress>() == 64 && size_of::<Ingress>() == 32);

/// State of a port that few events need. What pauses need of the port comes first, then what samples need, then what
/// pauses need of the first three classes, in a cache line each.
#[repr(C, align(64))]
pub struct PortExtra {
    /// Global number of the port.
    pub id: PortId,
    /// Whether the link is down.
    pub down: bool,
    /// Limits of this input, if its classes share one account ([`Accounting`](crate::buffer::Accounting)).
    pub limits: InputLimits,
    /// Beginning of the present pause; [`Instant::NEVER`] while the port is not paused.
    pub paused_since: Instant,
    /// Total time of pauses that have ended.
    pub paused_total: Duration,
    /// Time of the valid pause timer; earlier timers are stale.
    pub timer_at: Instant,
    /// Time at which the peer has to be reminded of its pause.
    pub refresh_at: Instant,
    /// Packets that entered here and were dropped.
    pub drops: u64,
    /// Packets that were cut to their headers at this output.
    pub trims: u64,
    /// Values at the last sample.
    pub sampled: Sampled,
    /// Rate of the link.
    pub rate: Rate,
    /// Losses of packets that entered here, for the fingerprint: a sum, so that it does not matter which other packets
    /// had arrived when one was lost.
    pub losses: u64,
    /// Pauses that the peer was told of, with reminders.
    pub pauses_sent: u64,
    /// Pause frames sent, with those that end a pause.
    pub pause_frames: u64,
    /// Pause of each class.
    pub pauses: [ClassPause; 8],
    /// ECN marking at this output.
    pub red: Red,
}

const _: () = assert!(offset_of!(PortExtra, drops) == 64 && offset_of!(PortExtra, pauses_sent) == 128);

/// Pause of one class, which may be over.
#[derive(Clone, Copy)]
pub struct ClassPause {
    /// Time at which the pause expires unless it is refreshed; meaningless unless the class is paused.
    pub expires: Instant,
    /// Beginning of the pause; meaningless unless the class is paused.
    pub since: Instant,
}

/// Totals of a port at the last sample.
#[derive(Clone, Copy, Default)]
pub struct Sampled {
    /// Time for which the port was paused.
    pub paused: Duration,
    /// Time for which it was sending.
    pub busy: Duration,
    /// Packets dropped.
    pub drops: u64,
    /// Packets cut to their headers.
    pub trims: u64,
}

impl Egress {
    /// Value of `paused` while the link is down; no peer pauses that many classes.
    pub const DOWN: u8 = u8::MAX;

    /// Creates a port that is not connected, on a link of this delay and rate.
    pub fn new(delay: Duration, is_host: bool, owner: u32, rate: Rate) -> Self {
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
    /// Returns the state of an empty input whose buffering nothing limits; at most `most` bytes can arrive during a
    /// window.
    pub fn new(most: Bytes) -> Self {
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

    /// Returns whether neither arrivals nor departures during a window can require any action here. An input that has
    /// to react to departures has a `slow_below`.
    #[inline(always)]
    pub fn is_far_from_limits(&self) -> bool {
        self.slow_below == 0 && self.buffered + u64::from(self.most) <= self.slow_above
    }

    /// Returns a bit per class for which the peer should be paused, for whatever reason.
    #[inline]
    pub fn shall_pause(&self) -> u8 {
        self.pausing | self.held_up
    }
}

impl Egress {
    /// Returns whether nothing waits, nothing forbids to send, and no return is scheduled: one comparison.
    #[inline(always)]
    pub fn is_clear(&self) -> bool {
        self.state() & !u32::from_ne_bytes([0, 0, 0, SLOW_PATH]) == 0
    }

    /// Returns whether nothing waits, nothing forbids to send, no return is scheduled, and packets that leave take no
    /// slow path: one comparison.
    #[inline(always)]
    pub fn is_plainly_clear(&self) -> bool {
        self.state() == 0
    }

    /// Returns whether, with one class, a packet waits that may leave, the scheduled return is due, there is nothing
    /// else to send, and the slow path is not needed: one comparison.
    #[inline(always)]
    pub fn is_plainly_due(&self) -> bool {
        self.state() == u32::from_ne_bytes([1, 0, 1, 0])
    }

    #[inline(always)]
    fn state(&self) -> u32 {
        u32::from_ne_bytes([self.waiting, self.paused, u8::from(self.free_pending), self.special])
    }

    /// Returns whether the peer has to be told of a pause or its end.
    #[inline(always)]
    pub fn pause_due(&self) -> bool {
        self.special & PAUSE_DUE != 0
    }

    /// Sets whether the peer has to be told of a pause or its end.
    pub fn set_pause_due(&mut self, due: bool) {
        self.special = self.special & !PAUSE_DUE | if due { PAUSE_DUE } else { 0 };
    }

    /// Returns whether packets that leave take the slow path, for any reason.
    #[inline(always)]
    pub fn takes_slow_path(&self) -> bool {
        self.special & SLOW_PATH != 0
    }

    /// Makes packets that leave take the slow path.
    pub fn take_slow_path(&mut self) {
        self.special |= SLOW_PATH;
    }

    /// Returns whether nothing waits, and nothing forbids to send: one comparison.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        u16::from_ne_bytes([self.waiting, self.paused]) == 0
    }

    /// Returns a bit per class of which packets wait that may leave.
    #[inline(always)]
    pub fn ready(&self) -> u8 {
        self.waiting & !self.paused
    }

    /// Begins to send a frame of `bytes` that takes `serialisation` on the wire; returns its time of arrival.
    #[inline(always)]
    pub fn begin_frame(&mut self, now: Instant, serialisation: Duration, bytes: u64) -> Instant {
        self.busy_until = now + serialisation;
        self.frames += 1;
        self.bytes += bytes;
        self.busy_until + self.delay
    }

    /// Counts a frame of `bytes` that is on the wire until `ends`.
    #[inline(always)]
    pub fn add_frame(&mut self, ends: u64, bytes: u64) {
        self.busy_until = Instant::from_ps(ends);
        self.frames += 1;
        self.bytes += bytes;
    }

    /// Counts frames that have been sent, the last of which ends at `busy_until`.
    #[inline(always)]
    pub fn add_frames(&mut self, busy_until: Instant, frames: u64, bytes: u64) {
        self.busy_until = busy_until;
        self.frames += frames;
        self.bytes += bytes;
    }

    /// Returns the picoseconds per byte, which must be a whole number.
    #[inline(always)]
    pub fn ps_per_byte(&self) -> u64 {
        u64::from(self.ps_per_byte)
    }

    /// Returns how long `bytes` take on the wire, at a whole number of picoseconds per byte.
    #[inline(always)]
    pub fn plain_serialisation(&self, bytes: u64) -> Duration {
        Duration::from_ps(bytes * u64::from(self.ps_per_byte))
    }

    /// Returns how long `bytes` take on the wire; `rate` is the port's.
    #[inline]
    pub fn serialisation(&self, bytes: u64, rate: impl FnOnce() -> Rate) -> Duration {
        if self.ps_per_byte == 0 { slow_serialisation(bytes, rate()) } else { self.plain_serialisation(bytes) }
    }
}

impl PortExtra {
    /// Returns when the first pause of these `classes` expires.
    pub fn first_expiry(&self, classes: u8) -> Instant {
        of_bits(classes).map(|class| self.pauses[class].expires).min().unwrap_or(Instant::NEVER)
    }

    /// Creates the state of a port without limits.
    pub fn new(id: PortId, rate: Rate, red: Red) -> Self {
        Self {
            id,
            rate,
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

    /// Counts the packet with this name, which entered here and was lost, as a whole or in part; `how` tells in which
    /// way.
    pub fn note_loss(&mut self, name: u64, how: u64) {
        self.losses = self.losses.wrapping_add(mix64(name.wrapping_add(how)));
    }

    /// Returns how long the port has been paused up to `now`.
    pub fn paused_time(&self, now: Instant) -> Duration {
        if self.paused_since == Instant::NEVER {
            self.paused_total
        } else {
            self.paused_total + now.since(self.paused_since)
        }
    }

    /// Ends the present pause, if there is one.
    pub fn end_pause(&mut self, now: Instant) {
        self.paused_total = self.paused_time(now);
        self.paused_since = Instant::NEVER;
    }
}

/// Returns the classes whose bits are set, ascending.
pub fn of_bits(mut classes: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let class = classes.trailing_zeros();
        classes &= classes.wrapping_sub(1);
        (class < u8::BITS).then_some(class as usize)
    })
}

/// Returns how long `bytes` take at a rate that is no whole number of picoseconds per byte.
#[cold]
fn slow_serialisation(bytes: u64, rate: Rate) -> Duration {
    rate.time_for(Bytes::new(bytes))
}
