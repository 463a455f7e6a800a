//! Replacements of C library functions that walk through folders internally, without the functions that this library
//! replaces.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::resolve::resolve;
use super::{real, shown_at};

/// C's structure `glob_t`.
#[repr(C)]
pub struct Glob {
    count: usize,
    paths: *mut *mut c_char,
    reserved: usize,
    flags: c_int,
    closes: Option<unsafe extern "C" fn(*mut libc::DIR) -> c_int>,
    reads: Option<unsafe extern "C" fn(*mut libc::DIR) -> *mut libc::dirent>,
    opens: Option<unsafe extern "C" fn(*const c_char) -> *mut libc::DIR>,
    asks_of_links: Option<unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int>,
    asks: Option<unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int>,
}

type GlobError = Option<unsafe extern "C" fn(*const c_char, c_int) -> c_int>;

/// Serves `glob` with this library's functions for folders, if the caller gives none, so that results have the tree's
/// paths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_glob(
    pattern: *const c_char,
    flags: c_int,
    problem: GlobError,
    to: *mut Glob,
) -> c_int {
    /// `GLOB_ALTDIRFUNC`.
    const BRINGS_FUNCTIONS: c_int = 1 << 9;
    let real = real!(c"glob64", unsafe extern "C" fn(*const c_char, c_int, GlobError, *mut Glob) -> c_int);
    if flags & BRINGS_FUNCTIONS != 0 || unsafe { resolve(libc::AT_FDCWD, pattern, false) }.is_none() {
        return unsafe { real(pattern, flags, problem, to) };
    }
    // SAFETY: as C has it.
    unsafe {
        (*to).closes = Some(libc::closedir);
        (*to).reads = Some(libc::readdir);
        (*to).opens = Some(super::selvedge_path_opendir);
        (*to).asks_of_links = Some(super::selvedge_path_lstat);
        (*to).asks = Some(super::selvedge_path_stat);
        real(pattern, flags | BRINGS_FUNCTIONS, problem, to)
    }
}

/// C's structure `struct FTW`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Depth {
    base: c_int,
    level: c_int,
}

type Visit = unsafe extern "C" fn(*const c_char, *const libc::stat, c_int, *mut Depth) -> c_int;

/// A walk of this thread through the tree.
#[derive(Clone, Copy)]
struct Walk {
    visit: Visit,
    /// Length of the physical path of the walk's root, in bytes.
    physical: usize,
    /// The path of the walk's root that the caller gave.
    shown: *const c_char,
}

thread_local! {
    static WALK: Cell<Option<Walk>> = const { Cell::new(None) };
}

unsafe extern "C" fn visit(path: *const c_char, status: *const libc::stat, kind: c_int, depth: *mut Depth) -> c_int {
    let Some(walk) = WALK.get() else { return -1 };
    // SAFETY: as C has it; the walk began at a path of that length.
    unsafe {
        let shown = CStr::from_ptr(walk.shown).to_bytes();
        let rest = CStr::from_ptr(path).to_bytes().get(walk.physical..).unwrap_or_default();
        let whole = [shown, rest].concat();
        let base = whole.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1) as c_int;
        let whole = CString::new(whole).unwrap_or_default();
        // The C library still needs its own structure unchanged.
        let mut copy = depth.as_ref().map(|depth| Depth { base, ..*depth });
        let told = (walk.visit)(whole.as_ptr(), status, kind, copy.as_mut().map_or(ptr::null_mut(), ptr::from_mut));
        // The callback may have walked, too.
        WALK.set(Some(walk));
        told
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_nftw(path: *const c_char, of: Visit, descriptors: c_int, flags: c_int) -> c_int {
    /// `FTW_PHYS`.
    const STAYS: c_int = 1;
    let real = real!(c"nftw64", unsafe extern "C" fn(*const c_char, Visit, c_int, c_int) -> c_int);
    let Some(place) = (unsafe { resolve(libc::AT_FDCWD, path, flags & STAYS == 0) }) else {
        return unsafe { real(path, of, descriptors, flags) };
    };
    let walk = Walk { visit: of, physical: place.physical.as_bytes().len(), shown: path };
    let before = WALK.replace(Some(walk));
    let told = unsafe { real(place.physical.as_ptr(), visit, descriptors, flags) };
    WALK.set(before);
    told
}

/// Serves `ftw`, which unlike `nftw` reports no depth; it follows links like `nftw` without `FTW_PHYS`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_ftw(path: *const c_char, of: Visit, descriptors: c_int) -> c_int {
    let real = real!(c"ftw64", unsafe extern "C" fn(*const c_char, Visit, c_int) -> c_int);
    let Some(place) = (unsafe { resolve(libc::AT_FDCWD, path, true) }) else {
        return unsafe { real(path, of, descriptors) };
    };
    let walk = Walk { visit: of, physical: place.physical.as_bytes().len(), shown: path };
    let before = WALK.replace(Some(walk));
    let told = unsafe { real(place.physical.as_ptr(), visit_without_depth, descriptors) };
    WALK.set(before);
    told
}

/// Calls the visitor of `ftw`, which takes no fourth argument.
unsafe extern "C" fn visit_without_depth(
    path: *const c_char,
    status: *const libc::stat,
    kind: c_int,
    _: *mut Depth,
) -> c_int {
    unsafe { visit(path, status, kind, ptr::null_mut()) }
}

/// The beginning of C's structure `FTSENT`.
#[repr(C)]
pub struct Entry {
    _cycle: *mut c_void,
    _parent: *mut Entry,
    link: *mut Entry,
    _number: std::ffi::c_long,
    _pointer: *mut c_void,
    _access_path: *mut c_char,
    path: *mut c_char,
}

/// Serves `fts_open`, with the paths to use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fts_open(
    paths: *const *mut c_char,
    options: c_int,
    compares: *mut c_void,
) -> *mut c_void {
    /// `FTS_COMFOLLOW | FTS_LOGICAL`.
    const FOLLOWS: c_int = 0b11;
    let real = real!(c"fts_open", unsafe extern "C" fn(*const *mut c_char, c_int, *mut c_void) -> *mut c_void);
    let mut kept = Vec::new();
    let mut all = Vec::new();
    // SAFETY: as C has it: the list ends with null.
    unsafe {
        let mut at = paths;
        while !(*at).is_null() {
            match resolve(libc::AT_FDCWD, *at, options & FOLLOWS != 0) {
                None => all.push(*at),
                Some(place) => {
                    super::resolve::enter();
                    all.push(place.physical.as_ptr().cast_mut());
                    kept.push(place);
                }
            }
            at = at.add(1);
        }
        all.push(ptr::null_mut());
        // The C library copies the paths.
        real(all.as_ptr(), options, compares)
    }
}

/// Replaces an entry's path by the tree's. The path for opening it, `fts_accpath`, stays as it is.
unsafe fn presented(entry: *mut Entry) -> *mut Entry {
    // SAFETY: as C has it.
    unsafe {
        if let Some(entry) = entry.as_mut()
            && !entry.path.is_null()
            && let Some(at) = shown_at(CStr::from_ptr(entry.path).to_bytes())
        {
            entry.path = entry.path.add(at);
        }
    }
    entry
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fts_read(walk: *mut c_void) -> *mut Entry {
    let real = real!(c"fts_read", unsafe extern "C" fn(*mut c_void) -> *mut Entry);
    unsafe { presented(real(walk)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fts_children(walk: *mut c_void, options: c_int) -> *mut Entry {
    let real = real!(c"fts_children", unsafe extern "C" fn(*mut c_void, c_int) -> *mut Entry);
    unsafe {
        let first = real(walk, options);
        let mut entry = first;
        while !entry.is_null() {
            presented(entry);
            entry = (*entry).link;
        }
        first
    }
}
