//! Memory that a NIC reads or a peer writes: buffers of a connection. No Rust reference to the memory exists; bytes are
//! copied in and out.

use std::ffi::c_int;
use std::ptr::{self, NonNull};

use crate::borrowed::{Borrowed, Given};
use crate::memory::{Mr, Pd, ibv_dereg_mr, ibv_reg_mr};

/// Flags of `enum ibv_access_flags`.
const LOCAL_WRITE: c_int = 1;
const REMOTE_WRITE: c_int = 1 << 1;

/// Registered memory of one connection, initially zero.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    length: usize,
    /// The region; `None` once it is deregistered.
    region: Option<Given<Mr>>,
}

// SAFETY: nothing of it belongs to a thread. The memory is reached through `&mut` and by the NIC, which has a lock.
unsafe impl Send for Memory {}

impl Memory {
    /// Maps memory and registers it; a peer may write it if `is_remote`.
    ///
    /// # Errors
    /// Returns `errno` if the system or the NIC has none left.
    pub(super) fn new(pd: Borrowed<'_, Pd>, length: usize, is_remote: bool) -> Result<Self, c_int> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping touches nothing that is there.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, kind, -1, 0) };
        let found = NonNull::new(start).filter(|_| start != libc::MAP_FAILED);
        let start = found.ok_or(libc::ENOMEM)?.cast::<u8>();
        let access = if is_remote { LOCAL_WRITE | REMOTE_WRITE } else { LOCAL_WRITE };
        // SAFETY: the mapping is ours, and stays until the region is gone.
        match unsafe { ibv_reg_mr(pd, start.as_ptr().cast(), length, access) } {
            region @ Some(_) => Ok(Self { start, length, region }),
            None => {
                let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOMEM);
                // SAFETY: it was mapped above, and nobody knows of it.
                unsafe { libc::munmap(start.as_ptr().cast(), length) };
                Err(errno)
            }
        }
    }

    /// Returns the address of the memory, for the NIC and the peer.
    pub(super) fn address(&self) -> u64 {
        self.start.as_ptr().expose_provenance() as u64
    }
    /// Returns the key of the memory, local and remote.
    pub(super) fn key(&self) -> u32 {
        self.region.as_ref().map_or(0, |region| region.abi.rkey)
    }

    /// Copies bytes to the memory at offset `at`.
    ///
    /// # Panics
    /// Panics if the bytes do not fit.
    pub(super) fn write(&mut self, at: usize, from: &[u8]) {
        assert!(at.checked_add(from.len()).is_some_and(|end| end <= self.length), "within the buffer");
        // SAFETY: within the mapping, by the assertion; the application's memory is another.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.start.as_ptr().add(at), from.len()) }
    }

    /// Copies bytes from the memory at offset `at`.
    ///
    /// # Panics
    /// Panics if the memory ends before.
    pub(super) fn read(&self, at: usize, to: &mut [u8]) {
        assert!(at.checked_add(to.len()).is_some_and(|end| end <= self.length), "within the buffer");
        // SAFETY: as in `write`. A peer that writes what was not granted to it changes bytes, not their place.
        unsafe { ptr::copy_nonoverlapping(self.start.as_ptr().add(at), to.as_mut_ptr(), to.len()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(region) = self.region.take() {
            ibv_dereg_mr(region);
        }
        // SAFETY: the mapping is ours; after the deregistration the NIC leaves the memory alone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
