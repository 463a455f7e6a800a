//! Large pages for memory that is accessed at random.
//!
//! With hundreds of megabytes of packets in flight, most look-ups miss the TLB, and walking the page tables takes as
//! long as the memory access itself. Systems with large pages provide them on request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;

/// Size of a large page in bytes.
const LARGE: usize = 2 << 20;

/// Returns the layout in which to allocate `bytes` bytes.
pub fn layout(bytes: usize) -> Layout {
    let align = if bytes >= LARGE { LARGE } else { 64 };
    Layout::from_size_align(bytes, align).expect("memory that can be addressed")
}

/// Asks the system for large pages, as many as fit into these `bytes`.
pub fn advise(begin: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        let before = begin.align_offset(LARGE);
        let pages = bytes.saturating_sub(before) / LARGE;
        if pages > 0 {
            // SAFETY: memory of the caller, whose contents do not change.
            let advised = unsafe {
                let first = begin.wrapping_add(before).cast();
                rustix::mm::madvise(first, pages * LARGE, rustix::mm::Advice::LinuxHugepage)
            };
            // A failure only makes accesses slower.
            let _ = advised;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (begin, bytes);
}

/// Reserved address space: memory that is provided once it is used, in large pages.
pub(crate) struct Reserve {
    begin: NonNull<u8>,
    bytes: usize,
}

impl Reserve {
    /// Reserves `bytes` bytes; `None` where the system refuses.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
        {
            use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
            let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
            // SAFETY: new memory at any address.
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
        // SAFETY: the memory was mapped with this size, and is not used any more.
        unsafe {
            // A failure, which is not possible here, would only leak memory.
            let _ = rustix::mm::munmap(self.begin.as_ptr().cast(), self.bytes);
        }
        #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
        let _ = (self.begin, self.bytes);
    }
}

/// Allocator of the system, except that when memory is exhausted, `on_exhausted` is called with the requested layout
/// instead of an abort. That function must not allocate.
pub struct Allocator {
    /// Function that ends the process.
    pub on_exhausted: fn(Layout) -> !,
}

impl Allocator {
    #[inline]
    fn checked(&self, begin: *mut u8, layout: Layout) -> *mut u8 {
        if begin.is_null() { (self.on_exhausted)(layout) } else { begin }
    }
}

// SAFETY: all memory that is returned is the system's, with the requested layout; otherwise no call returns.
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
        // SAFETY: the memory came from the system.
        unsafe { System.dealloc(begin, layout) }
    }
}

/// Makes the C library return blocks of 128 kB or more to the system when they are freed. By default, glibc raises that
/// bound to the size of each such block that is freed, and keeps smaller blocks: a study of very many flows, whose
/// tables grow and shrink, would need more memory than one of few.
pub fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a parameter of the allocator, which may be set at any time; the call reports whether it succeeded.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}
