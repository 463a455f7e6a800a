//! Memory that a program and the daemon share: a sealed memfd, mapped as atomic words.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::ring::{AtomicU64, Ring, Shape};

/// Ring of messages from a program to the daemon.
const OUT: Shape = Shape { descriptors: 1_024, data: 1 << 18 };
/// Ring of messages from the daemon to a program.
const IN: Shape = Shape { descriptors: 1_024, data: 1 << 18 };
/// Ring of notices from the daemon to a program.
const NOTICES: Shape = Shape { descriptors: 1_024, data: 0 };
const WORDS: usize = OUT.words() + IN.words() + NOTICES.words();
/// Bytes of the memory.
const LENGTH: usize = 8 * WORDS;

/// Memory of one socket's rings.
pub(crate) struct Memory {
    start: NonNull<AtomicU64>,
    file: OwnedFd,
}

// SAFETY: the memory is accessed by atomic words alone, and stays mapped for as long as the value lives.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Makes new memory, whose size nobody can change: an access beyond the end of a file would end the process.
    pub(crate) fn create() -> io::Result<Self> {
        let file = memfd_create(c"selvedge-eqds", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, LENGTH as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::map(file)
    }

    /// Maps the memory that the other side has made.
    pub(crate) fn open(file: OwnedFd) -> io::Result<Self> {
        let is_ours = fstat(&file)?.st_size as usize == LENGTH && fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
        if !is_ours {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the daemon is of another version of Selvedge"));
        }
        Self::map(file)
    }

    fn map(file: OwnedFd) -> io::Result<Self> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a free place. The file has LENGTH bytes, and a seal keeps it from shrinking.
        let start = unsafe { mmap(std::ptr::null_mut(), LENGTH, access, flags, &file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, file })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: WORDS words are mapped at a page's start until the value is dropped. Atomic words have every bit
        // pattern and may be changed by others at any time.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), WORDS) }
    }

    /// Ring of messages from the program.
    pub(crate) fn out(&self) -> Ring<'_> {
        Ring::new(&self.words()[..OUT.words()], OUT)
    }
    /// Ring of messages to the program.
    pub(crate) fn incoming(&self) -> Ring<'_> {
        Ring::new(&self.words()[OUT.words()..OUT.words() + IN.words()], IN)
    }
    /// Ring of notices to the program.
    pub(crate) fn notices(&self) -> Ring<'_> {
        Ring::new(&self.words()[OUT.words() + IN.words()..], NOTICES)
    }
}

impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and nobody has a reference to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), LENGTH) };
    }
}
