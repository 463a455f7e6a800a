//! Access to the application's memory: the only module that touches it.
//!
//! Addresses come from registered regions, and the engine checks every access. A NIC has pinned pages, which a process
//! cannot have: an application may unmap memory and forget to deregister it. Hardware would go on with the old pages;
//! this process would be killed by SIGSEGV. So each access is one of a few instructions whose addresses are known, and
//! the handler of SIGSEGV and SIGBUS turns a fault there into an error. Faults anywhere else go to the handler that was
//! installed before. An application that installs a handler of its own afterwards disables the guard, and a fault kills
//! it, as an invalid access of its own would.
//!
//! The last byte of a write is written last, with release ordering: programs spin on it.
#![allow(
    unsafe_code,
    reason = "reads and writes the application's memory at addresses that come over the wire, checked"
)]

use selvedge_nic::verbs::Fault;

#[cfg(target_arch = "x86_64")]
#[path = "guard_x86_64.rs"]
mod guard;
#[cfg(not(target_arch = "x86_64"))]
#[path = "guard_none.rs"]
mod guard;

pub(super) use guard::{IS_GUARDED, install};

/// Reads memory from `address` on into `into`.
pub(super) fn read(address: u64, into: &mut [u8]) -> Result<(), Fault> {
    // SAFETY: `into` is ours; a fault at `address` is caught.
    unsafe { guard::copy(into.as_mut_ptr(), address as *const u8, into.len()) }
}

/// Writes `bytes` from `address` on, the last byte last.
pub(super) fn write(address: u64, bytes: &[u8]) -> Result<(), Fault> {
    let Some(before) = bytes.len().checked_sub(1) else { return Ok(()) };
    // SAFETY: `bytes` is ours; a fault at `address` is caught. That the memory may be written is what registering it
    // promised.
    unsafe {
        guard::copy(address as *mut u8, bytes.as_ptr(), before)?;
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        guard::copy((address as *mut u8).add(before), bytes.as_ptr().add(before), 1)
    }
}

/// Adds to 8 bytes at a multiple of 8 atomically; returns their old value.
pub(super) fn fetch_add(address: u64, add: u64) -> Result<u64, Fault> {
    // SAFETY: as `write`.
    unsafe { guard::fetch_add(address as *mut u64, add) }
}

/// Replaces 8 bytes at a multiple of 8 atomically if they have the value `compare`; returns their old value.
pub(super) fn compare_swap(address: u64, compare: u64, swap: u64) -> Result<u64, Fault> {
    // SAFETY: as `write`.
    unsafe { guard::compare_swap(address as *mut u64, compare, swap) }
}

/// Replaces 8 bytes at a multiple of 8 atomically.
pub(super) fn replace(address: u64, value: u64) -> Result<(), Fault> {
    let mut before = fetch_add(address, 0)?;
    loop {
        match compare_swap(address, before, value)? {
            found if found == before => return Ok(()),
            found => before = found,
        }
    }
}

/// Orders all earlier writes before all later ones (a full fence).
pub(super) fn settle() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Checks that memory can be registered: every page is mapped; the first and the last can be read, and written if
/// `written`.
pub(super) fn probe(address: u64, length: u64, written: bool) -> Result<(), Fault> {
    if length == 0 {
        return Ok(());
    }
    let last = address.checked_add(length - 1).ok_or(Fault)?;
    for at in [address, last] {
        if written {
            // SAFETY: adds nothing, at one stroke; a fault is caught.
            unsafe { guard::touch(at as *mut u8)? };
        } else {
            read(at, &mut [0])?;
        }
    }
    is_mapped(address, last)
}

/// Makes the system load the pages of some memory, for writing if `written`.
pub(super) fn prefetch(address: u64, length: u64, written: bool) -> Result<(), Fault> {
    const PAGE: u64 = 4_096;
    if length == 0 {
        return Ok(());
    }
    let (first, end) = (address / PAGE * PAGE, address.checked_add(length).ok_or(Fault)?);
    let advice = if written { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
    // SAFETY: it changes no contents; what is not mapped is an error.
    let outcome = unsafe { libc::madvise(first as *mut libc::c_void, (end - first) as usize, advice) };
    // Linux before 5.14 does not know this advice: it may be ignored.
    if outcome == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) {
        Ok(())
    } else {
        Err(Fault)
    }
}

fn is_mapped(first: u64, last: u64) -> Result<(), Fault> {
    const PAGE: u64 = 4_096;
    const AT_ONCE: u64 = 1 << 16;
    let mut residency = [0_u8; AT_ONCE as usize];
    let (mut page, end) = (first / PAGE, last / PAGE + 1);
    while page < end {
        let pages = (end - page).min(AT_ONCE);
        // SAFETY: writes one byte per page into `residency`, which has as many.
        let outcome = unsafe {
            libc::mincore((page * PAGE) as *mut libc::c_void, (pages * PAGE) as usize, residency.as_mut_ptr())
        };
        if outcome != 0 {
            return Err(Fault);
        }
        page += pages;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_written_and_what_is_gone_is_an_error() {
        install();
        let mut here = [0_u8; 24];
        let address = here.as_mut_ptr() as u64;
        assert!(probe(address, 24, true).is_ok() && prefetch(address, 24, true).is_ok());
        write(address, b"hello").expect("the memory is mapped");
        assert_eq!(&here[..6], b"hello\0");
        let mut back = [0; 5];
        read(address, &mut back).expect("the memory is mapped");
        assert_eq!(&back, b"hello");
        assert_eq!((read(8, &mut back), write(8, b"no"), probe(8, 8, false)), (Err(Fault), Err(Fault), Err(Fault)));
        assert_eq!((fetch_add(8, 1), compare_swap(16, 1, 2)), (Err(Fault), Err(Fault)));
        assert_eq!((prefetch(8, 8, false), prefetch(u64::MAX, 8, false)), (Err(Fault), Err(Fault)));
        assert!(write(0xffff_ffff_ffff_f000, b"no").is_err());
        assert_eq!(&here[..6], b"hello\0");
    }

    #[test]
    fn atomics_return_what_was_there() {
        install();
        let word = std::sync::atomic::AtomicU64::new(5);
        let address = word.as_ptr() as u64;
        assert_eq!(fetch_add(address, 3), Ok(5));
        assert_eq!(compare_swap(address, 7, 1), Ok(8));
        assert_eq!(compare_swap(address, 8, 1), Ok(8));
        assert_eq!((replace(address, 9), replace(address, 1), replace(8, 1)), (Ok(()), Ok(()), Err(Fault)));
        assert_eq!(word.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
}
