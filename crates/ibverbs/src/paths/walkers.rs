//! Replacements of C library functions that walk through folders internally, without the functions that this library
//! replaces.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use super::resolve::{ResolvedPath, resolve};
use super::{real, shown_at};
use crate::borrowed::{Borrowed, Linked, List, Passed, Text};

/// C's structure `glob_t`.
#[repr(C)]
pub struct Glob {
    count: usize,
    paths: *mut *mut c_char,
    reserved: usize,
    flags: c_int,
    closes: Option<unsafe extern "C" fn(*mut libc::DIR) -> c_int>,
    reads: Option<unsafe extern "C" fn(*mut libc::DIR) -> *mut libc::dirent>,
    opens: Option<extern "C" fn(Text<'_>) -> *mut libc::DIR>,
    asks_of_links: Option<extern "C" fn(Text<'_>, Passed<libc::stat>) -> c_int>,
    asks: Option<extern "C" fn(Text<'_>, Passed<libc::stat>) -> c_int>,
}

type GlobError = Option<unsafe extern "C" fn(*const c_char, c_int) -> c_int>;

/// Serves `glob` with this library's functions for folders, if the caller gives none, so that results have the tree's
/// paths.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_glob(pattern: Text<'_>, flags: c_int, problem: GlobError, to: Passed<Glob>) -> c_int {
    /// `GLOB_ALTDIRFUNC`.
    const BRINGS_FUNCTIONS: c_int = 1 << 9;
    let real = real!(c"glob64", extern "C" fn(Text<'_>, c_int, GlobError, Passed<Glob>) -> c_int);
    if flags & BRINGS_FUNCTIONS != 0 || resolve(libc::AT_FDCWD, pattern, false).is_none() {
        return real(pattern, flags, problem, to);
    }
    let functions = to.as_ptr();
    // SAFETY: by the contract of `glob`, the structure is there; some of its other fields may be uninitialised.
    unsafe {
        (*functions).closes = Some(libc::closedir);
        (*functions).reads = Some(libc::readdir);
        (*functions).opens = Some(super::selvedge_path_opendir);
        (*functions).asks_of_links = Some(super::selvedge_path_lstat);
        (*functions).asks = Some(super::selvedge_path_stat);
    }
    real(pattern, flags | BRINGS_FUNCTIONS, problem, to)
}

/// C's structure `struct FTW`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Depth {
    base: c_int,
    level: c_int,
}

type Visit = extern "C" fn(Text<'_>, *const libc::stat, c_int, Option<Borrowed<'_, Depth>>) -> c_int;

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

extern "C" fn visit(
    path: Text<'_>,
    status: *const libc::stat,
    kind: c_int,
    depth: Option<Borrowed<'_, Depth>>,
) -> c_int {
    let Some(walk) = WALK.get() else { return -1 };
    // SAFETY: the walk's path lives until its function returns, and this call is within that.
    let shown = unsafe { Text::new(walk.shown) }.get().unwrap_or_default().to_bytes();
    let rest = path.get().unwrap_or_default().to_bytes().get(walk.physical..).unwrap_or_default();
    let whole = [shown, rest].concat();
    let base = whole.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1) as c_int;
    let whole = CString::new(whole).unwrap_or_default();
    // The C library still needs its own structure unchanged.
    let copy = depth.map(|depth| Cell::new(Depth { base, ..*depth }));
    // SAFETY: the copy lives until the visitor returns, which may change it.
    let depth = copy.as_ref().and_then(|copy| unsafe { Borrowed::new(copy.as_ptr()) });
    let told = (walk.visit)(Text::of(&whole), status, kind, depth);
    // The callback may have walked, too.
    WALK.set(Some(walk));
    told
}

/// Calls a function that walks with a visitor, with this library's visitor in the place of the program's.
fn walk(place: &ResolvedPath, shown: Text<'_>, visit: Visit, real: impl FnOnce(Text<'_>) -> c_int) -> c_int {
    let walk = Walk { visit, physical: place.physical.as_bytes().len(), shown: shown.as_ptr() };
    let before = WALK.replace(Some(walk));
    let told = real(Text::of(&place.physical));
    WALK.set(before);
    told
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_nftw(path: Text<'_>, of: Visit, descriptors: c_int, flags: c_int) -> c_int {
    /// `FTW_PHYS`.
    const STAYS: c_int = 1;
    let real = real!(c"nftw64", extern "C" fn(Text<'_>, Visit, c_int, c_int) -> c_int);
    match resolve(libc::AT_FDCWD, path, flags & STAYS == 0) {
        None => real(path, of, descriptors, flags),
        Some(place) => walk(&place, path, of, |path| real(path, visit, descriptors, flags)),
    }
}

/// Serves `ftw`, which unlike `nftw` reports no depth; it follows links like `nftw` without `FTW_PHYS`.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_ftw(path: Text<'_>, of: Visit, descriptors: c_int) -> c_int {
    let real = real!(c"ftw64", extern "C" fn(Text<'_>, Visit, c_int) -> c_int);
    match resolve(libc::AT_FDCWD, path, true) {
        None => real(path, of, descriptors),
        Some(place) => walk(&place, path, of, |path| real(path, visit_without_depth, descriptors)),
    }
}

/// Calls the visitor of `ftw`, which takes no fourth argument: the register may hold anything, and is not read.
extern "C" fn visit_without_depth(
    path: Text<'_>,
    status: *const libc::stat,
    kind: c_int,
    _: Option<Borrowed<'_, Depth>>,
) -> c_int {
    visit(path, status, kind, None)
}

/// The beginning of C's structure `FTSENT`.
#[repr(C)]
pub struct Entry {
    _cycle: *mut c_void,
    _parent: *mut Entry,
    link: Cell<*mut Entry>,
    _number: std::ffi::c_long,
    _pointer: *mut c_void,
    _access_path: *mut c_char,
    path: Cell<*mut c_char>,
}

/// Serves `fts_open`, with the paths to use.
///
/// # Safety
/// `paths` is a list of C strings, which a null pointer ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fts_open(
    paths: *const *mut c_char,
    options: c_int,
    compares: Passed<c_void>,
) -> *mut c_void {
    /// `FTS_COMFOLLOW | FTS_LOGICAL`.
    const FOLLOWS: c_int = 0b11;
    let real = real!(c"fts_open", unsafe extern "C" fn(*const *mut c_char, c_int, Passed<c_void>) -> *mut c_void);
    let mut kept = Vec::new();
    let mut all = Vec::new();
    // SAFETY: as the caller promises; the new list ends with a null pointer, too.
    unsafe {
        let mut at = paths;
        while !(*at).is_null() {
            match resolve(libc::AT_FDCWD, Text::new(*at), options & FOLLOWS != 0) {
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

// SAFETY: the entries of a folder are a list, which the C library made.
unsafe impl Linked for Entry {
    fn next(&self) -> *mut Self {
        self.link.get()
    }
}

/// Replaces an entry's path by the tree's. The path for opening it, `fts_accpath`, stays as it is.
fn present(entry: Borrowed<'_, Entry>) {
    let path = entry.path.get();
    // SAFETY: the path of an entry is null, or a C string of the C library's.
    let text = unsafe { Text::new(path) }.get();
    if let Some(at) = text.and_then(|text| shown_at(text.to_bytes())) {
        entry.path.set(path.wrapping_add(at));
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_fts_read(walk: Passed<c_void>) -> Option<Borrowed<'static, Entry>> {
    let real = real!(c"fts_read", extern "C" fn(Passed<c_void>) -> Option<Borrowed<'static, Entry>>);
    real(walk).inspect(|&entry| present(entry))
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_fts_children(walk: Passed<c_void>, options: c_int) -> Option<Borrowed<'static, Entry>> {
    let real = real!(c"fts_children", extern "C" fn(Passed<c_void>, c_int) -> Option<Borrowed<'static, Entry>>);
    let first = real(walk, options);
    List(first).for_each(present);
    first
}
