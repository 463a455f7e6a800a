//! Large pages for what is looked up at random.
//!
//! With hundreds of megabytes of packets in flight, most look-ups miss the processor's table of pages, and walking the
//! page tables takes as long as the memory itself. Systems that have large pages give them to who asks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;

/// What a large page holds.
const LARGE: usize = 2 << 20;

/// How to allocate so many `bytes`.
pub(crate) fn layout(bytes: usize) -> Layout {
    let align = if bytes >= LARGE { LARGE } else { 64 };
    Layout::from_size_align(bytes, align).expect("memory that can be addressed")
}

/// Asks for large pages, as many as fit into these `bytes`.
pub(crate) fn advise(begin: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        let before = begin.align_offset(LARGE);
        let pages = bytes.saturating_sub(before) / LARGE;
        if pages > 0 {
            // SAFETY: memory of ours, whose contents this does not change.
            let advised = unsafe {
                let first = begin.wrapping_add(before).cast();
                rustix::mm::madvise(first, pages * LARGE, rustix::mm::Advice::LinuxHugepage)
            };
            // A system without large pages is slower, and that is all.
            let _ = advised;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (begin, bytes);
}

/// Address space: memory that is there once it is used, in large pages.
pub(crate) struct Reserve {
    begin: NonNull<u8>,
    bytes: usize,
}

impl Reserve {
    /// So many bytes; `None` where the system gives none that it may not have.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        {
            use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
            let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
            // SAFETY: new memory, wherever the system likes.
            let begin = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) }.ok()?;
            let begin = NonNull::new(begin.cast::<u8>())?;
            advise(begin.as_ptr(), bytes);
            Some(Self { begin, bytes })
        }
        #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
        {
            let _ = bytes;
            None
        }
    }
    pub(crate) fn begin(&self) -> NonNull<u8> {
        self.begin
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        // SAFETY: it was mapped with this size, and nobody uses it any more.
        unsafe {
            // It cannot fail; and if it did, nothing would be wrong but memory that is lost.
            let _ = rustix::mm::munmap(self.begin.as_ptr().cast(), self.bytes);
        }
        #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
        let _ = (self.begin, self.bytes);
    }
}

/// The system's allocator, but when it has nothing left, `on_exhausted` is called with what was asked for, in place of
/// an abort. It must not allocate.
pub struct Allocator {
    /// Ends the process.
    pub on_exhausted: fn(Layout) -> !,
}

impl Allocator {
    #[inline]
    fn checked(&self, begin: *mut u8, layout: Layout) -> *mut u8 {
        if begin.is_null() { (self.on_exhausted)(layout) } else { begin }
    }
}

// SAFETY: all that it returns is the system's, with the layouts that it was asked for; it does not return otherwise.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.checked(unsafe { System.alloc(layout) }, layout)
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.checked(unsafe { System.alloc_zeroed(layout) }, layout)
    }
    #[inline]
    unsafe fn realloc(&self, begin: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises; sizes that are asked for can be rounded up to the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller's promises.
        self.checked(unsafe { System.realloc(begin, layout, size) }, wanted)
    }
    #[inline]
    unsafe fn dealloc(&self, begin: *mut u8, layout: Layout) {
        // SAFETY: it came from the system.
        unsafe { System.dealloc(begin, layout) }
    }
}

/// From now on, blocks from 128 kB on are returned to the system when they are freed. By itself glibc raises that bound
/// to the size of each such block that is freed, and keeps what is smaller: a study of very many flows, whose tables
/// grow and shrink, would need more memory than one of few.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number of the allocator's; it may be set at any time, and says itself whether it was.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}
