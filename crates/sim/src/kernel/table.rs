//! Tables of entities, indexed by numbers that the builder handed out.
//!
//! Every hop looks into half a dozen of them. Checking each index against the length again was a tenth
//! of all instructions (callgrind, RoCE + PFC permutation on 128 hosts: 556 and 505 per packet-hop),
//! although no number ever comes from outside: ports, lines, queues and switches are numbered by
//! `kernel::build`, packets by `net::pool`, and both tables and numbers live as long as the partition.
//! Debug builds check.

use std::ops::{Deref, DerefMut, Index, IndexMut};

use super::pages;

/// A table whose indices are known to be in range.
pub(crate) struct Table<T>(Vec<T>);

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }
    /// `count` entries that `make` makes.
    pub(crate) fn of(count: usize, make: impl FnMut() -> T) -> Self {
        let mut entries = Self::with_capacity(count);
        entries.extend(std::iter::repeat_with(make).take(count));
        Self(entries)
    }
    pub(crate) fn push(&mut self, entry: T) {
        if self.0.len() == self.0.capacity() {
            self.grow();
        }
        self.0.push(entry);
    }
    #[cold]
    fn grow(&mut self) {
        let mut larger = Self::with_capacity((2 * self.0.len()).max(4));
        larger.append(&mut self.0);
        self.0 = larger;
    }
    /// Room for so many entries, in large pages if it is large.
    fn with_capacity(count: usize) -> Vec<T> {
        let mut room = Vec::<T>::with_capacity(count);
        pages::advise(room.as_mut_ptr().cast(), room.capacity() * size_of::<T>());
        room
    }
    /// `count` entries from `first` on, all of which must exist.
    #[inline(always)]
    pub(crate) fn part(&self, first: u32, count: u32) -> &[T] {
        debug_assert!(first as usize + count as usize <= self.0.len(), "the builder numbered what is in the table");
        // SAFETY: as for one entry.
        unsafe { self.0.get_unchecked(first as usize..first as usize + count as usize) }
    }
    pub(crate) fn extend(&mut self, entries: impl IntoIterator<Item = T>) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl<T> From<Vec<T>> for Table<T> {
    fn from(entries: Vec<T>) -> Self {
        Self(entries)
    }
}

impl<T> Index<u32> for Table<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, at: u32) -> &T {
        debug_assert!((at as usize) < self.0.len(), "the builder numbered what is in the table");
        // SAFETY: indices come from the builder (or the pool), which put an entry at each of them;
        // tables never shrink. Checked in debug builds, in which all tests run too.
        unsafe { self.0.get_unchecked(at as usize) }
    }
}

impl<T> IndexMut<u32> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, at: u32) -> &mut T {
        debug_assert!((at as usize) < self.0.len(), "the builder numbered what is in the table");
        // SAFETY: as above.
        unsafe { self.0.get_unchecked_mut(at as usize) }
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
