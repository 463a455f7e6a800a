//! What switches know of a packet.
//!
//! The packet itself stays in its partition's pool from its source to its destination; what travels from
//! node to node, and waits in queues, is this: half a cache line with all that forwarding needs.

use std::mem::offset_of;

use selvedge_wire::{Ecn, Packet, Repr};

use super::pool::{Pool, Slot};
use crate::kernel::fabric::Attachment;

/// A packet on its way, as switches see it.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Descriptor {
    /// The leaf switch of its destination.
    pub(crate) leaf: u32,
    /// What ECMP hashes.
    pub(crate) entropy: u32,
    /// Traffic class.
    pub(crate) class: u8,
    /// See [`Descriptor::PAUSE`] and what follows it.
    pub(crate) flags: u8,
    /// On a link: the port through which it will enter, numbered within its switch. In a queue: through
    /// which it has entered.
    pub(crate) port: u16,
    /// On a link: when it arrives, in picoseconds after the beginning of the window of its arrival. In a queue: what
    /// comes after it.
    pub(crate) at: u32,
    /// Where the packet is kept.
    pub(crate) slot: Slot,
    /// Bytes of the frame.
    pub(crate) frame: u16,
    /// The leaf's port towards the destination.
    pub(crate) exit: u16,
    /// In a queue: how many packets of its train share its place there, and come next. On a link: anything.
    pub(crate) more: u32,
}

const _: () = assert!(size_of::<Descriptor>() == 32);
const _: () = assert!(offset_of!(Descriptor, port) == 10 && offset_of!(Descriptor, at) == 12);

impl Descriptor {
    const PAUSE: u8 = 1;
    const ECN_CAPABLE: u8 = 2;
    const TRIMMED: u8 = 4;

    /// Describes nothing.
    pub(crate) const EMPTY: Self =
        Self { at: u32::MAX, slot: 0, leaf: 0, entropy: 0, frame: 0, port: 0, exit: 0, class: 0, flags: 0, more: 0 };

    /// Describes `packet`, which is kept at `slot` and goes to the host at `to`.
    #[inline]
    pub(crate) fn of(packet: &Packet, slot: Slot, to: Attachment) -> Self {
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

    /// Becomes the next packet of those that share its place in a queue; returns whether there is one.
    #[inline(always)]
    pub(super) fn give_way(&mut self) -> bool {
        if self.more == 0 {
            return false;
        }
        self.more -= 1;
        self.slot += Pool::STEP;
        true
    }

    /// The handles of the packets that share its place in a queue, its own first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        let first = self.slot;
        (0..=self.more).map(move |n| first + n * Pool::STEP)
    }

    /// When it arrives, in the upper half, and through which port, above the lower 16 bits, which are anything.
    #[inline(always)]
    pub(crate) fn way(&self) -> u64 {
        #[cfg(target_endian = "little")]
        {
            // SAFETY: that is how they lie in memory.
            unsafe { (&raw const *self).cast::<u64>().add(1).read() }
        }
        #[cfg(not(target_endian = "little"))]
        {
            u64::from(self.at) << 32 | u64::from(self.port) << 16
        }
    }

    /// Whether it is a pause frame.
    #[inline]
    pub(crate) fn is_pause(&self) -> bool {
        self.flags & Self::PAUSE != 0
    }

    /// Whether it takes the slow path wherever it arrives: a pause frame, or one that was trimmed.
    #[inline]
    pub(crate) fn takes_slow_path(&self) -> bool {
        self.flags & (Self::PAUSE | Self::TRIMMED) != 0
    }

    /// Whether it has been cut to its headers.
    pub(crate) fn is_trimmed(&self) -> bool {
        self.flags & Self::TRIMMED != 0
    }

    /// The packet once it is cut to `frame` bytes.
    pub(crate) fn trimmed(&self, frame: u16) -> Self {
        Self { frame, flags: self.flags | Self::TRIMMED, ..*self }
    }

    /// Whether it may be marked, and has not been.
    #[inline]
    pub(crate) fn is_markable(&self) -> bool {
        self.flags & Self::ECN_CAPABLE != 0
    }

    /// Whether it is neither a pause frame nor one that may be marked.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.flags & (Self::PAUSE | Self::ECN_CAPABLE) == 0
    }

    /// Its flags once it is marked.
    pub(crate) fn flags_when_marked(&self) -> u8 {
        self.flags & !Self::ECN_CAPABLE
    }
}
