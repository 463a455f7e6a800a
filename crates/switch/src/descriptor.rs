//! Descriptors: the state of a packet that switches need.
//!
//! The packet itself stays in the memory of whoever runs the switches. Its descriptor, half a cache line with all that
//! forwarding needs, travels from node to node and waits in queues.

use std::mem::offset_of;

use selvedge_wire::{Ecn, Packet, Repr};

/// Handle of a packet in the memory of whoever runs the switches. The handles of successive packets of a train, which
/// differ in their numbers alone, differ by [`TRAIN_STEP`].
pub type Slot = u32;

/// Difference between the handles of successive packets of a train.
pub const TRAIN_STEP: Slot = 1 << 27;

/// Handle of no packet.
pub const NO_SLOT: Slot = u32::MAX;

/// Point where a host is attached to the fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// Index of the host's leaf switch among the leaves; `u32::MAX` where two hosts stand back to back.
    pub leaf: u32,
    /// Port of the leaf towards the host.
    pub port: u16,
}

impl Attachment {
    /// Attachment of frames that stay on one link: some leaf, which switches may look up.
    pub const NONE: Self = Self { leaf: 0, port: 0 };
}

/// Packet on its way, as switches see it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub struct Descriptor {
    /// Leaf switch of the destination.
    pub leaf: u32,
    /// Value that ECMP hashes.
    pub entropy: u32,
    /// Traffic class.
    pub class: u8,
    /// Flags, a bit each: pause frame, ECN-capable, trimmed.
    pub flags: u8,
    /// On a link: the port through which the packet will enter, numbered within its switch. In a queue: the port
    /// through which it has entered.
    pub port: u16,
    /// On a link: time of arrival, in picoseconds after the beginning of the window of its arrival. In a queue: place
    /// of the descriptor behind this one.
    pub at: u32,
    /// Handle of the packet in the pool.
    pub slot: Slot,
    /// Bytes of the frame.
    pub frame: u16,
    /// Leaf's port towards the destination.
    pub exit: u16,
    /// In a queue: number of packets of the train that share the place and follow this one. On a link: without meaning.
    pub more: u32,
}

const _: () = assert!(size_of::<Descriptor>() == 32);
const _: () = assert!(offset_of!(Descriptor, port) == 10 && offset_of!(Descriptor, at) == 12);

impl Descriptor {
    const PAUSE: u8 = 1;
    const ECN_CAPABLE: u8 = 2;
    const TRIMMED: u8 = 4;

    /// Descriptor of no packet.
    pub const EMPTY: Self =
        Self { at: u32::MAX, slot: 0, leaf: 0, entropy: 0, frame: 0, port: 0, exit: 0, class: 0, flags: 0, more: 0 };

    /// Returns the descriptor of `packet`, which is kept at `slot` and goes to the host at `to`.
    #[inline]
    pub fn of(packet: &Packet, slot: Slot, to: Attachment) -> Self {
        let pause = if let Repr::Pause(_) = packet.repr { Self::PAUSE } else { 0 };
        let capable = if packet.ecn == Ecn::Capable { Self::ECN_CAPABLE } else { 0 };
        Self {
            at: 0,
            slot,
            leaf: to.leaf,
            entropy: packet.entropy,
            frame: packet.frame,
            port: 0,
            exit: to.port,
            class: packet.class,
            flags: pause | capable,
            more: 0,
        }
    }

    /// Returns the descriptor of the packet in `slot`, with a frame of `frame` bytes, that goes to the host at `to` as
    /// `class`. ECMP hashes `entropy`; `is_markable` says whether the packet may be marked.
    pub fn new(slot: Slot, to: Attachment, class: u8, entropy: u32, frame: u16, is_markable: bool) -> Self {
        let flags = if is_markable { Self::ECN_CAPABLE } else { 0 };
        Self { slot, leaf: to.leaf, exit: to.port, class, entropy, frame, flags, at: 0, port: 0, more: 0 }
    }

    /// Returns the descriptor of the pause frame in `slot`, of `frame` bytes. It stays on one link.
    pub fn pause(slot: Slot, frame: u16) -> Self {
        Self { flags: Self::PAUSE, ..Self::new(slot, Attachment::NONE, 0, 0, frame, false) }
    }

    /// Turns into the descriptor of the next packet that shares the place in a queue; returns whether there is one.
    #[inline(always)]
    pub fn give_way(&mut self) -> bool {
        if self.more == 0 {
            return false;
        }
        self.more -= 1;
        self.slot += TRAIN_STEP;
        true
    }

    /// Returns the handles of the packets that share the place in a queue, this packet's first.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        let first = self.slot;
        (0..=self.more).map(move |n| first + n * TRAIN_STEP)
    }

    /// Returns the time of arrival in the upper half, and the port above the lower 16 bits, which are arbitrary.
    #[inline(always)]
    pub fn way(&self) -> u64 {
        // Compiled to one load: the four fields are neighbours.
        u64::from(self.at) << 32 | u64::from(self.port) << 16 | u64::from(self.flags) << 8 | u64::from(self.class)
    }

    /// Returns whether the packet is a pause frame.
    #[inline]
    pub fn is_pause(&self) -> bool {
        self.flags & Self::PAUSE != 0
    }

    /// Returns whether the packet takes the slow path wherever it arrives: a pause frame, or a trimmed packet.
    #[inline]
    pub fn takes_slow_path(&self) -> bool {
        self.flags & (Self::PAUSE | Self::TRIMMED) != 0
    }

    /// Returns whether the packet has been cut to its headers.
    pub fn is_trimmed(&self) -> bool {
        self.flags & Self::TRIMMED != 0
    }

    /// Returns the descriptor of the packet after it is cut to `frame` bytes.
    pub fn trimmed(&self, frame: u16) -> Self {
        Self { frame, flags: self.flags | Self::TRIMMED, ..*self }
    }

    /// Returns whether the packet may be marked, and has not been.
    #[inline]
    pub fn is_markable(&self) -> bool {
        self.flags & Self::ECN_CAPABLE != 0
    }

    /// Returns whether the packet is neither a pause frame nor one that may be marked.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.flags & (Self::PAUSE | Self::ECN_CAPABLE) == 0
    }

    /// Returns the flags of the packet after it is marked.
    pub fn flags_when_marked(&self) -> u8 {
        self.flags & !Self::ECN_CAPABLE
    }
}
