//! Tables of entities, indexed by numbers that the builder assigned.
//!
//! Tables that grow during a run (packets, and queue entries) are large in large fabrics, and copying them to larger
//! memory, with a page fault for each new page, takes a considerable part of the time. So large tables that grow
//! reserve address space, far more than they will need, and use as much of it as they have entries for.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::ptr::{self, NonNull};
use std::slice;

use super::pages::{self, Reserve};

/// Message of a panic. It does not tell the index, which would have to be kept in a register at every access: with the
/// checks of slices, a run takes 2 % more instructions.
const BEYOND: &str = "a number beyond the end of a table of the partition";

/// Vector that is indexed by 32-bit numbers.
///
/// # Panics
/// When an index is out of range.
pub struct Table<T> {
    begin: NonNull<T>,
    len: usize,
    room: usize,
    /// Address space in which the entries lie, if they are not in memory of the allocator.
    reserve: Option<Reserve>,
    entries: PhantomData<T>,
}

// SAFETY: the table owns its entries, as a vector does.
unsafe impl<T: Send> Send for Table<T> {}
// SAFETY: the table owns its entries, as a vector does.
unsafe impl<T: Sync> Sync for Table<T> {}

/// Size in bytes from which a growing table gets address space of its own, and the size of that address space.
const LARGE: usize = 4 << 20;
const RESERVED: usize = (32_u64 << 30) as usize; // none, where that cannot be addressed

impl<T> Table<T> {
    /// Creates an empty table.
    pub const fn new() -> Self {
        const { assert!(size_of::<T>() > 0, "entries take room") };
        Self { begin: NonNull::dangling(), len: 0, room: 0, reserve: None, entries: PhantomData }
    }
    /// Returns a table of `count` entries that `make` makes.
    pub fn of(count: usize, make: impl FnMut() -> T) -> Self {
        let mut entries = Self::with_room(count);
        entries.extend(std::iter::repeat_with(make).take(count));
        entries
    }
    /// Adds an entry.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.len == self.room {
            self.grow();
        }
        // SAFETY: the capacity suffices for one more entry.
        unsafe { self.begin.add(self.len).write(entry) };
        self.len += 1;
    }
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let wanted = (2 * self.len).max(4);
        let large = wanted * size_of::<T>() >= LARGE && self.reserve.is_none();
        let mut larger = large.then(Self::with_reserve).flatten().unwrap_or_else(|| Self::with_room(wanted));
        // SAFETY: the new capacity is twice as large; the entries are moved, and forgotten here.
        unsafe { ptr::copy_nonoverlapping(self.begin.as_ptr(), larger.begin.as_ptr(), self.len) };
        larger.len = std::mem::take(&mut self.len);
        *self = larger;
    }
    /// Returns an empty table with capacity for `count` entries, in large pages if it is large.
    pub fn with_room(count: usize) -> Self {
        if count == 0 {
            return Self::new();
        }
        let layout = Layout::array::<T>(count).expect("memory that can be addressed");
        // SAFETY: the layout is not empty.
        let begin = unsafe { alloc(layout) };
        let Some(begin) = NonNull::new(begin) else { handle_alloc_error(layout) };
        pages::advise(begin.as_ptr(), layout.size());
        Self { begin: begin.cast(), len: 0, room: count, reserve: None, entries: PhantomData }
    }
    /// Returns an empty table with far more capacity than will be needed; `None` where the system refuses the address
    /// space.
    fn with_reserve() -> Option<Self> {
        let reserve = Reserve::new(RESERVED)?;
        let (begin, room) = (reserve.begin().cast(), RESERVED / size_of::<T>());
        Some(Self { begin, len: 0, room, reserve: Some(reserve), entries: PhantomData })
    }
    /// Returns `count` entries from `first` on.
    ///
    /// # Panics
    /// If the table has fewer.
    #[inline(always)]
    pub fn part(&self, first: u32, count: u32) -> &[T] {
        assert!(first as usize + count as usize <= self.len, "{BEYOND}");
        // SAFETY: all of these entries exist, as asserted.
        unsafe { slice::from_raw_parts(self.begin.as_ptr().add(first as usize), count as usize) }
    }
    /// Returns `count` entries from `first` on, to be changed.
    ///
    /// # Panics
    /// If the table has fewer.
    #[inline(always)]
    pub fn part_mut(&mut self, first: u32, count: u32) -> &mut [T] {
        assert!(first as usize + count as usize <= self.len, "{BEYOND}");
        // SAFETY: all of these entries exist, as asserted.
        unsafe { slice::from_raw_parts_mut(self.begin.as_ptr().add(first as usize), count as usize) }
    }
    /// Adds entries.
    pub fn extend(&mut self, entries: impl IntoIterator<Item = T>) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: this many entries have been written, and are not used any more; their memory was allocated with this
        // layout, or goes with its reserve.
        unsafe {
            ptr::slice_from_raw_parts_mut(self.begin.as_ptr(), self.len).drop_in_place();
            if self.room > 0 && self.reserve.is_none() {
                dealloc(self.begin.as_ptr().cast(), Layout::array::<T>(self.room).expect("the former layout"));
            }
        }
    }
}

impl<T> From<Vec<T>> for Table<T> {
    fn from(entries: Vec<T>) -> Self {
        let mut table = Self::with_room(entries.len());
        table.extend(entries);
        table
    }
}

impl<T> Index<u32> for Table<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, at: u32) -> &T {
        assert!((at as usize) < self.len, "{BEYOND}");
        // SAFETY: the entry exists, as asserted.
        unsafe { &*self.begin.as_ptr().add(at as usize) }
    }
}

impl<T> IndexMut<u32> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, at: u32) -> &mut T {
        assert!((at as usize) < self.len, "{BEYOND}");
        // SAFETY: the entry exists, as asserted.
        unsafe { &mut *self.begin.as_ptr().add(at as usize) }
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: this many entries have been written.
        unsafe { slice::from_raw_parts(self.begin.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: this many entries have been written.
        unsafe { slice::from_raw_parts_mut(self.begin.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn entries_outlive_every_move_and_go_with_the_table() {
        let alive = Rc::new(());
        let mut table = Table::new();
        // More bytes than the size from which a table has address space of its own.
        let count = 3 * LARGE / size_of::<(usize, Rc<()>)>();
        for n in 0..count {
            table.push((n, Rc::clone(&alive)));
        }
        assert!(table.iter().enumerate().all(|(n, entry)| entry.0 == n));
        assert_eq!((table[7].0, table.part(count as u32 - 2, 2)[1].0), (7, count - 1));
        table[7].0 = 1;
        assert_eq!(table[7].0, 1);
        assert_eq!(Rc::strong_count(&alive), count + 1);
        drop(table);
        assert_eq!(Rc::strong_count(&alive), 1);
        let table: Table<_> = vec![Rc::clone(&alive); 3].into();
        drop((Table::<u64>::new(), Table::of(0, || 1), table));
        assert_eq!(Rc::strong_count(&alive), 1);
    }
}
