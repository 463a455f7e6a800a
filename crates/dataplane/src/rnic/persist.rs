//! Persistence: memory that is a file survives the loss of power once the system has written it there.
#![allow(unsafe_code, reason = "the system is asked to write mappings of the application's to their files")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use selvedge_nic::verbs::Fault;

const PAGE: u64 = 4_096;

/// Makes the system write these bytes to their files, and waits until that is done.
pub(super) fn write_back(address: u64, length: u64) -> Result<(), Fault> {
    let first = address / PAGE * PAGE;
    let length = address.checked_add(length).ok_or(Fault)? - first;
    // SAFETY: it changes no contents; what is not mapped is an error.
    match unsafe { libc::msync(first as *mut libc::c_void, length as usize, libc::MS_SYNC) } {
        0 => Ok(()),
        _ => Err(Fault),
    }
}

/// Returns whether all of these bytes are shared mappings of files that survive a restart.
pub(super) fn is_kept(address: u64, length: u64) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let Some(end) = address.checked_add(length) else { return false };
    let mut at = address;
    for mapping in maps.lines().filter_map(Mapping::of).filter(|mapping| mapping.end > address && mapping.first < end) {
        if mapping.first > at || !mapping.is_shared || !is_on_disk(mapping.path) {
            return false;
        }
        at = mapping.end;
    }
    at >= end
}

/// A line of `/proc/self/maps`.
struct Mapping<'a> {
    first: u64,
    end: u64,
    is_shared: bool,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (first, end) = words.next()?.split_once('-')?;
        let is_shared = words.next()?.ends_with('s');
        let path = line.find('/').map_or("", |at| &line[at..]);
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Self { first: number(first)?, end: number(end)?, is_shared, path })
    }
}

/// Returns whether a file is on persistent storage, not in a file system that is memory itself.
fn is_on_disk(path: &str) -> bool {
    let Ok(name) = CString::new(Path::new(path).as_os_str().as_bytes()) else { return false };
    // SAFETY: zeros are numbers; the name ends with a zero, and the answer is ours.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let found = unsafe { libc::statfs(name.as_ptr(), &raw mut about) } == 0;
    const RAMFS: libc::c_long = 0x8584_58f6;
    found && ![libc::TMPFS_MAGIC, libc::HUGETLBFS_MAGIC, RAMFS].contains(&about.f_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_and_ordinary_memory_is_not() {
        let ours = vec![0_u8; 8_192];
        assert!(!is_kept(ours.as_ptr() as u64, 8_192));
        assert_eq!(write_back(8, 8), Err(Fault));
        let line = "7f0000001000-7f0000003000 rw-s 00000000 fe:00 131 /tmp/a file";
        let mapping = Mapping::of(line).expect("a mapping");
        assert_eq!((mapping.first, mapping.end), (0x7f00_0000_1000, 0x7f00_0000_3000));
        assert_eq!((mapping.is_shared, mapping.path), (true, "/tmp/a file"));
        assert!(!is_on_disk("/tmp/a file (deleted)") && !is_on_disk(""));
    }
}
