//! Memory of inboxes: where messages lie until they are read.
//!
//! Every hop writes a message, half a cache line in the simulator, and reads it a window later, which is much of the
//! memory traffic of a busy fabric. Inboxes lie in blocks that are cut from large pieces ([`pages`]); the blocks that
//! were read last are given out first, so that what is written next is still in the cache.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr;

use selvedge_memory::{CACHE, advise, layout};
use selvedge_prefetch::prefetch_at;

use super::nodes::Message;

/// Inbox of one node for one window: messages in no order. Its memory is a block borrowed from [`InboxArena`].
pub(crate) struct Inbox<M> {
    /// Beginning of the block.
    begin: *mut M,
    tail: InboxCursor<M>,
}

/// End of the messages in an inbox, and end of its block, whose capacity is zero or a power of two.
pub(crate) struct InboxCursor<M> {
    next: *mut M,
    end: *mut M,
}

// SAFETY: the owner of the inbox is the only one who reads and writes its memory.
unsafe impl<M: Send> Send for Inbox<M> {}

impl<M: Message> Inbox<M> {
    /// Empty inbox without memory.
    pub(crate) const NONE: Self = {
        let nowhere = ptr::dangling_mut();
        Self { begin: nowhere, tail: InboxCursor { next: nowhere, end: nowhere } }
    };

    /// Returns an empty inbox in a block for two to the power of `size` messages that begins at `begin`.
    fn in_block(begin: *mut M, size: u32) -> Self {
        Self { begin, tail: InboxCursor { next: begin, end: begin.wrapping_add(1 << size) } }
    }

    fn has_room(&self) -> bool {
        self.begin != self.tail.end
    }

    #[inline(always)]
    fn count(&self) -> usize {
        bytes_between(self.begin, self.tail.next) / size_of::<M>()
    }

    /// Returns the binary logarithm of the inbox's capacity, if it has any.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        bytes_between(self.begin, self.tail.end).ilog2() - size_of::<M>().ilog2()
    }

    /// Returns whether the block is full, or the inbox has none.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.tail.is_full()
    }

    /// Adds a packet that will enter through `port`, `at` picoseconds after the window's beginning.
    ///
    /// # Panics
    /// If the block is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, packet: impl WriteMessage<M>, at: u32, port: u16) {
        assert!(!self.is_full(), "the caller has made room for one more");
        // SAFETY: the block is not full.
        unsafe { self.tail.push(packet, at, port) };
    }

    /// Returns a copy of the end of the messages. Many packets can be added there, before the inbox
    /// [advances](Inbox::advance_to) to it.
    #[inline(always)]
    pub(crate) fn cursor(&self) -> InboxCursor<M> {
        self.tail
    }

    /// Makes the packets that were added at `cursor` contents of the inbox.
    ///
    /// # Safety
    /// `cursor` began as a [copy](Inbox::cursor) of this inbox's end, and the inbox has been neither changed nor moved
    /// to another block since then.
    #[inline(always)]
    pub(crate) unsafe fn advance_to(&mut self, cursor: InboxCursor<M>) {
        self.tail = cursor;
    }

    /// Makes all messages of `other` the contents of this inbox.
    fn copy(&mut self, other: &[M]) {
        assert!(other.len() <= 1 << self.size(), "there is room for all");
        // SAFETY: the block suffices, and `other` lies elsewhere, as `self` is borrowed for writing.
        unsafe { ptr::copy_nonoverlapping(other.as_ptr(), self.begin, other.len()) };
        self.tail.next = self.begin.wrapping_add(other.len());
    }
}

fn bytes_between<M>(begin: *const M, end: *const M) -> usize {
    end.addr() - begin.addr()
}

/// Message that is written into an inbox, in one of several forms.
pub(crate) trait WriteMessage<M> {
    /// Writes the message to `place`.
    ///
    /// # Safety
    /// `place` is in a block of an inbox.
    unsafe fn write(self, place: *mut M);
    /// Shows the message to `see`.
    fn show<R>(self, see: impl FnOnce(&M) -> R) -> R;
}

/// Message that lies somewhere else, as a whole.
pub(crate) struct Copied<'a, M>(pub(crate) &'a M);

impl<M: Copy> WriteMessage<M> for Copied<'_, M> {
    #[inline(always)]
    unsafe fn write(self, place: *mut M) {
        // SAFETY: the caller passes a place in a block of an inbox.
        unsafe { place.write(*self.0) };
    }
    #[inline(always)]
    fn show<R>(self, see: impl FnOnce(&M) -> R) -> R {
        see(self.0)
    }
}

/// Message that is put together where it is written. Assembled elsewhere, it could not be copied as a whole before
/// all of its parts have left the processor's store buffer.
impl<M, F: FnOnce() -> M> WriteMessage<M> for F {
    #[inline(always)]
    unsafe fn write(self, place: *mut M) {
        // SAFETY: the caller passes a place in a block of an inbox.
        unsafe { place.write(self()) };
    }
    #[inline(always)]
    fn show<R>(self, see: impl FnOnce(&M) -> R) -> R {
        see(&self())
    }
}

/// Writes the message of a packet that will enter through `port`, `at` picoseconds after the window's beginning.
///
/// # Safety
/// `place` is in a block of an inbox.
#[inline(always)]
unsafe fn write<M: Message>(place: *mut M, packet: impl WriteMessage<M>, at: u32, port: u16) {
    // SAFETY: the caller passes a place in a block of an inbox.
    unsafe {
        // Written as a whole and then changed: the copy takes two vector stores.
        packet.write(place);
        (*place).set_arrival(at, port);
    }
    // Place of the next descriptor but one of this inbox.
    prefetch_at(place.wrapping_add(2));
}

/// Independent of whether messages can be copied.
impl<M> Clone for InboxCursor<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for InboxCursor<M> {}

impl<M: Message> InboxCursor<M> {
    /// Returns whether the block is full.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.next == self.end
    }

    /// Adds a packet that will enter through `port`, `at` picoseconds after the window's beginning.
    ///
    /// # Safety
    /// The block is not full, and still belongs to the inbox that the cursor was copied from.
    #[inline(always)]
    pub(crate) unsafe fn push(&mut self, packet: impl WriteMessage<M>, at: u32, port: u16) {
        debug_assert!(!self.is_full(), "the caller has made room for one more");
        // SAFETY: the block is not full, as the caller promises.
        unsafe { write(self.next, packet, at, port) };
        self.next = self.next.wrapping_add(1);
    }
}

impl<M: Message> Deref for Inbox<M> {
    type Target = [M];

    #[inline(always)]
    fn deref(&self) -> &[M] {
        // SAFETY: this many messages have been written.
        unsafe { std::slice::from_raw_parts(self.begin, self.count()) }
    }
}

impl<M: Message> DerefMut for Inbox<M> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [M] {
        // SAFETY: this many messages have been written.
        unsafe { std::slice::from_raw_parts_mut(self.begin, self.count()) }
    }
}

/// Pool of memory blocks for inboxes.
pub(crate) struct InboxArena<M> {
    /// Pieces of memory from the allocator: beginning and layout of each.
    pieces: Vec<(*mut M, Layout)>,
    /// Size of all pieces together, in bytes.
    bytes: usize,
    /// Beginning of the part of the last piece that has not been cut into blocks, and its capacity in messages.
    rest: *mut M,
    left: usize,
    /// Free blocks, indexed by the binary logarithm of their capacity.
    free: [Vec<*mut M>; SIZES],
}

// SAFETY: the pool owns its memory.
unsafe impl<M: Send> Send for InboxArena<M> {}

/// Binary logarithm of the smallest block's capacity: two cache lines, which the processor fetches together.
pub(crate) const SMALLEST: u32 = 2;
/// Number of block sizes: capacities up to what 16 bits can count.
const SIZES: usize = 17;

impl<M: Message> InboxArena<M> {
    pub(crate) const fn new() -> Self {
        Self { pieces: Vec::new(), bytes: 0, rest: ptr::null_mut(), left: 0, free: [const { Vec::new() }; SIZES] }
    }

    /// Returns an empty inbox with capacity for two to the power of `size` messages; `size` is at least
    /// [`SMALLEST`].
    pub(crate) fn lend(&mut self, size: u32) -> Inbox<M> {
        let begin = self.free[size as usize].pop().unwrap_or_else(|| self.cut(1 << size));
        Inbox::in_block(begin, size)
    }

    /// Takes back the block of an inbox.
    #[inline(always)]
    pub(crate) fn take_back(&mut self, inbox: Inbox<M>) {
        if inbox.has_room() {
            self.free[inbox.size() as usize].push(inbox.begin);
        }
    }

    /// Moves an inbox to a block with capacity for two to the power of `size` messages, more than before.
    pub(crate) fn enlarge(&mut self, inbox: &mut Inbox<M>, size: u32) {
        let mut larger = self.lend(size);
        larger.copy(inbox);
        self.take_back(std::mem::replace(inbox, larger));
    }

    /// Returns an inbox with the rest of `inbox`, whose block can be taken back then.
    pub(crate) fn keep<'m>(&mut self, inbox: &'m Inbox<M>, rest: impl Iterator<Item = &'m M>) -> Inbox<M> {
        let mut kept = self.lend(inbox.size());
        rest.for_each(|packet| kept.push(Copied(packet), packet.at(), packet.port()));
        kept
    }

    /// Returns whether all blocks together take more memory than stays in the cache.
    #[inline]
    pub(crate) fn exceed_cache(&self) -> bool {
        self.bytes > CACHE
    }

    /// Returns a new block.
    #[cold]
    fn cut(&mut self, count: usize) -> *mut M {
        if self.left < count {
            // As large as all other pieces together: so pieces are few, and at most half of the memory is unused.
            let bytes = (count * size_of::<M>()).max(self.bytes.next_power_of_two()).clamp(1 << 16, 1 << 25);
            self.bytes += bytes;
            let layout = layout(bytes);
            // SAFETY: the layout is not empty.
            let begin = unsafe { alloc(layout) }.cast::<M>();
            if begin.is_null() {
                handle_alloc_error(layout);
            }
            advise(begin.cast(), bytes);
            self.pieces.push((begin, layout));
            (self.rest, self.left) = (begin, bytes / size_of::<M>());
        }
        let begin = self.rest;
        self.left -= count;
        // SAFETY: this many messages are left in the piece.
        self.rest = unsafe { begin.add(count) };
        begin
    }
}

impl<M> Drop for InboxArena<M> {
    fn drop(&mut self) {
        for &(begin, layout) in &self.pieces {
            // SAFETY: allocated with this layout; no inbox outlives the calendar.
            unsafe { dealloc(begin.cast(), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;
    use crate::kernel::tests::Numbered;

    #[test]
    fn each_inbox_keeps_its_own_messages() {
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        let mut arena = InboxArena::new();
        let mut held: Vec<(Inbox<Numbered>, Vec<u32>)> = Vec::new();
        for slot in 0..100_000 {
            if rng.below(100) == 0 || held.is_empty() {
                held.push((arena.lend(SMALLEST + rng.below(5) as u32), Vec::new()));
            }
            let at = rng.below(held.len() as u64) as usize;
            let (inbox, model) = &mut held[at];
            if inbox.is_full() {
                arena.enlarge(inbox, inbox.size() + 1);
            }
            inbox.push(Copied(&Numbered { number: slot, at: 0, port: 0 }), slot, 7);
            model.push(slot);
            match rng.below(200) {
                0 => {
                    let (inbox, model) = held.swap_remove(at);
                    assert!(inbox.iter().map(|packet| packet.number).eq(model));
                    arena.take_back(inbox);
                }
                1 => {
                    let rest = model.split_off(model.len() / 2);
                    let kept = arena.keep(inbox, inbox[model.len()..].iter());
                    arena.take_back(std::mem::replace(inbox, kept));
                    *model = rest;
                }
                _ => {}
            }
        }
        assert!(held.iter().all(|(inbox, model)| inbox.iter().map(|packet| packet.number).eq(model.iter().copied())));
        assert!(arena.pieces.len() < 12, "blocks are used again");
    }
}
