//! `libselvedge-paths.so`: the files that programs expect of RDMA hardware, besides libibverbs' functions. UCX, for
//! example, looks for its device under /dev/infiniband and reads the types of GIDs under /sys/class/infiniband itself.
//!
//! The library is loaded before the C library, so that its functions replace those that take paths. A path that leads
//! into the [`tree`] is replaced by one into a copy of that tree in real files ([`store`]), so that open folders are
//! folders of the kernel; all other paths go to the C library unchanged. Paths that are returned are those of the tree,
//! not of the copy.

mod counters;
mod resolve;
mod sockets;
mod store;
mod tree;
mod walkers;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::fd::{FromRawFd, IntoRawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::borrowed::{Passed, Text, allocated, zeroed};
use crate::device::devices;
use crate::error;
use resolve::{ResolvedPath, resolve};

/// A function of the C library, looked up once.
struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }
    /// Returns the function's address in the C library itself, not the next in search order: that may be this library's
    /// own function.
    fn get(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: the C library is loaded, and never unloaded.
        let found = unsafe {
            let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            libc::dlsym(library, self.name.as_ptr())
        };
        assert!(!found.is_null(), "the C library has {:?}", self.name);
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// Looks up the C library's function of this name and type. A type whose parameters have contracts ([`Text`],
/// [`Passed`]) is that of a safe function.
macro_rules! real {
    ($name:literal, $kind:ty) => {{
        static REAL: $crate::paths::Real = $crate::paths::Real::new($name);
        // SAFETY: the type is that of the C library's manual, and states what the function requires.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, $kind>(REAL.get()) }
    }};
}
use real;

/// Calls a function with the path to use.
fn with<T>(path: Text<'_>, follows: bool, call: impl FnOnce(Text<'_>) -> T) -> T {
    match resolve(libc::AT_FDCWD, path, follows) {
        None => call(path),
        Some(place) => call(Text::of(&place.physical)),
    }
}

/// Calls a function with the folder and path to use, for functions that take paths relative to a folder.
fn with_at<T>(at: c_int, path: Text<'_>, follows: bool, call: impl FnOnce(c_int, Text<'_>) -> T) -> T {
    match resolve(at, path, follows) {
        None => call(at, path),
        Some(place) => call(libc::AT_FDCWD, Text::of(&place.physical)),
    }
}

/// Returns the descriptor of a new file in memory with this content.
///
/// # Errors
/// Returns an error when the process may not have more descriptors.
fn file(content: &str) -> std::io::Result<c_int> {
    // SAFETY: the descriptor is new, and nobody else closes it.
    let mut file = unsafe {
        let descriptor = libc::memfd_create(c"selvedge".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        std::fs::File::from_raw_fd(descriptor)
    };
    std::io::Write::write_all(&mut file, content.as_bytes())?;
    std::io::Seek::rewind(&mut file)?;
    Ok(file.into_raw_fd())
}

/// Returns the current content of a file that changes with each read; `None` for all other files.
fn live(place: &ResolvedPath) -> Option<String> {
    if !place.is_ours || !place.shown.contains("counters/") {
        return None;
    }
    let devices = devices().ok()?;
    counters::read(&devices.iter().map(|listed| &listed.device).collect::<Vec<_>>(), &place.shown)
}

/// Opens a file of the tree, where nothing can be written; `call` opens it by its physical path.
fn open_place(place: &ResolvedPath, flags: c_int, call: impl FnOnce(Text<'_>) -> c_int) -> c_int {
    if place.is_ours && (flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_CREAT != 0) {
        error::set(libc::EACCES);
        return -1;
    }
    if flags & (libc::O_DIRECTORY | libc::O_PATH) == 0
        && let Some(content) = live(place)
    {
        return file(&content).unwrap_or_else(|problem| {
            error::set(error::of_io(&problem));
            -1
        });
    }
    if place.is_ours {
        resolve::enter();
    }
    call(Text::of(&place.physical))
}

type Open = extern "C" fn(Text<'_>, c_int, c_int) -> c_int;
type OpenAt = extern "C" fn(c_int, Text<'_>, c_int, c_int) -> c_int;

/// Opens a path like `open`. The third argument is meaningless where the caller gave only two.
fn open_as(real: Open, path: Text<'_>, flags: c_int, mode: c_int) -> c_int {
    match resolve(libc::AT_FDCWD, path, flags & libc::O_NOFOLLOW == 0) {
        None => real(path, flags, mode),
        Some(place) => open_place(&place, flags, |path| real(path, flags, mode)),
    }
}

fn openat_as(real: OpenAt, at: c_int, path: Text<'_>, flags: c_int, mode: c_int) -> c_int {
    match resolve(at, path, flags & libc::O_NOFOLLOW == 0) {
        None => real(at, path, flags, mode),
        Some(place) => open_place(&place, flags, |path| real(libc::AT_FDCWD, path, flags, mode)),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_open(path: Text<'_>, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"open", Open);
    open_as(real, path, flags, mode)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_open64(path: Text<'_>, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"open64", Open);
    open_as(real, path, flags, mode)
}
/// Opens a path for programs that are built with checks of their arguments (fortified `open`): no mode is needed.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_open_checked(path: Text<'_>, flags: c_int) -> c_int {
    let real = real!(c"open64", Open);
    open_as(real, path, flags, 0)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_openat(at: c_int, path: Text<'_>, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"openat", OpenAt);
    openat_as(real, at, path, flags, mode)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_openat64(at: c_int, path: Text<'_>, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"openat64", OpenAt);
    openat_as(real, at, path, flags, mode)
}
/// Opens a path relative to a folder for programs that are built with checks of their arguments (fortified `openat`):
/// no mode is needed.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_openat_checked(at: c_int, path: Text<'_>, flags: c_int) -> c_int {
    let real = real!(c"openat64", OpenAt);
    openat_as(real, at, path, flags, 0)
}

type OpenStream = extern "C" fn(Text<'_>, Text<'_>) -> *mut libc::FILE;

fn stream_as(real: OpenStream, path: Text<'_>, mode: Text<'_>) -> *mut libc::FILE {
    let Some(place) = resolve(libc::AT_FDCWD, path, true) else { return real(path, mode) };
    let mode_text = mode.get().unwrap_or_default().to_bytes();
    let is_written = mode_text.iter().any(|letter| b"wa+".contains(letter));
    if place.is_ours && is_written {
        return error::null(libc::EACCES);
    }
    let Some(content) = live(&place) else { return real(Text::of(&place.physical), mode) };
    match file(&content) {
        // SAFETY: the descriptor is new, and the mode is a C string.
        Ok(descriptor) => unsafe { libc::fdopen(descriptor, c"r".as_ptr()) },
        Err(problem) => error::null(error::of_io(&problem)),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_fopen(path: Text<'_>, mode: Text<'_>) -> *mut libc::FILE {
    let real = real!(c"fopen", OpenStream);
    stream_as(real, path, mode)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_fopen64(path: Text<'_>, mode: Text<'_>) -> *mut libc::FILE {
    let real = real!(c"fopen64", OpenStream);
    stream_as(real, path, mode)
}

/// Calls `fstatat` of the kernel: before glibc 2.33 the C library had no `stat` to call. On 64-bit machines all these
/// functions share one structure, which has only one version.
fn stat_as(at: c_int, path: Text<'_>, to: Passed<libc::stat>, flags: c_int) -> c_int {
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    with_at(at, path, follows, |at, path| stat_of_kernel(at, path, to, flags))
}

fn stat_of_kernel(at: c_int, path: Text<'_>, to: Passed<libc::stat>, flags: c_int) -> c_int {
    // SAFETY: the kernel checks the pointers; by their contracts they are a string, and room for the status.
    unsafe { libc::syscall(libc::SYS_newfstatat, at, path.as_ptr(), to.as_ptr(), flags) as c_int }
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_stat(path: Text<'_>, to: Passed<libc::stat>) -> c_int {
    stat_as(libc::AT_FDCWD, path, to, 0)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_lstat(path: Text<'_>, to: Passed<libc::stat>) -> c_int {
    stat_as(libc::AT_FDCWD, path, to, libc::AT_SYMLINK_NOFOLLOW)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_fstatat(at: c_int, path: Text<'_>, to: Passed<libc::stat>, flags: c_int) -> c_int {
    stat_as(at, path, to, flags)
}
/// Serves `stat` of programs that were built before glibc 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_xstat(_version: c_int, path: Text<'_>, to: Passed<libc::stat>) -> c_int {
    stat_as(libc::AT_FDCWD, path, to, 0)
}
/// Serves `lstat` of programs that were built before glibc 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_lxstat(_version: c_int, path: Text<'_>, to: Passed<libc::stat>) -> c_int {
    stat_as(libc::AT_FDCWD, path, to, libc::AT_SYMLINK_NOFOLLOW)
}
/// Serves `fstatat` of programs that were built before glibc 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_fxstatat(
    _version: c_int,
    at: c_int,
    path: Text<'_>,
    to: Passed<libc::stat>,
    flags: c_int,
) -> c_int {
    stat_as(at, path, to, flags)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_statx(
    at: c_int,
    path: Text<'_>,
    flags: c_int,
    mask: c_uint,
    to: Passed<c_void>,
) -> c_int {
    let real = real!(c"statx", extern "C" fn(c_int, Text<'_>, c_int, c_uint, Passed<c_void>) -> c_int);
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    with_at(at, path, follows, |at, path| real(at, path, flags, mask, to))
}

type Access = extern "C" fn(Text<'_>, c_int) -> c_int;

/// Checks access rights; nothing in the tree can be written, not even by root.
fn access_as(
    at: c_int,
    path: Text<'_>,
    mode: c_int,
    follows: bool,
    call: impl FnOnce(c_int, Text<'_>) -> c_int,
) -> c_int {
    match resolve(at, path, follows) {
        None => call(at, path),
        Some(place) => match call(libc::AT_FDCWD, Text::of(&place.physical)) {
            0 if place.is_ours && mode & libc::W_OK != 0 => {
                error::set(libc::EACCES);
                -1
            }
            told => told,
        },
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_access(path: Text<'_>, mode: c_int) -> c_int {
    let real = real!(c"access", Access);
    access_as(libc::AT_FDCWD, path, mode, true, |_, path| real(path, mode))
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_euidaccess(path: Text<'_>, mode: c_int) -> c_int {
    let real = real!(c"euidaccess", Access);
    access_as(libc::AT_FDCWD, path, mode, true, |_, path| real(path, mode))
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_faccessat(at: c_int, path: Text<'_>, mode: c_int, flags: c_int) -> c_int {
    let real = real!(c"faccessat", extern "C" fn(c_int, Text<'_>, c_int, c_int) -> c_int);
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    access_as(at, path, mode, follows, |at, path| real(at, path, mode, flags))
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_opendir(path: Text<'_>) -> *mut libc::DIR {
    let real = real!(c"opendir", extern "C" fn(Text<'_>) -> *mut libc::DIR);
    match resolve(libc::AT_FDCWD, path, true) {
        None => real(path),
        Some(place) => {
            resolve::enter();
            real(Text::of(&place.physical))
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_chdir(path: Text<'_>) -> c_int {
    let real = real!(c"chdir", extern "C" fn(Text<'_>) -> c_int);
    match resolve(libc::AT_FDCWD, path, true) {
        None => real(path),
        Some(place) => {
            resolve::enter();
            real(Text::of(&place.physical))
        }
    }
}

/// Returns the working folder, by its path in the tree.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_getcwd(to: Passed<c_char>, size: usize) -> *mut c_char {
    let real = real!(c"getcwd", extern "C" fn(Passed<c_char>, usize) -> *mut c_char);
    let found = real(to, size);
    if !found.is_null() {
        // SAFETY: a C string of the C library's, in memory that is the program's.
        unsafe {
            let path = CStr::from_ptr(found).to_bytes();
            let (length, at) = (path.len(), shown_at(path));
            if let Some(at) = at {
                ptr::copy(found.add(at), found, length - at + 1);
            }
        }
    }
    found
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_getcwd_checked(to: Passed<c_char>, size: usize, _length: usize) -> *mut c_char {
    selvedge_path_getcwd(to, size)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_get_current_dir_name() -> *mut c_char {
    selvedge_path_getcwd(Passed::null(), 0)
}

/// Returns the position in a path where the path in the tree begins; `None` if it leads into no copy.
fn shown_at(path: &[u8]) -> Option<usize> {
    let path = std::str::from_utf8(path).ok()?;
    let shown = store::shown(path)?;
    path.ends_with(shown).then(|| path.len() - shown.len())
}

/// Reads a link. Links in `/proc` name the copies, and are translated to paths in the tree.
fn readlink_as(at: c_int, path: Text<'_>, to: Passed<c_char>, size: usize) -> isize {
    let length = with_at(at, path, false, |at, path| {
        // SAFETY: the kernel checks the pointers; by their contracts they are a string, and room for `size` bytes.
        unsafe { libc::syscall(libc::SYS_readlinkat, at, path.as_ptr(), to.as_ptr(), size) as isize }
    });
    let of_process = path.get().is_some_and(|path| path.to_bytes().starts_with(b"/proc/"));
    if length <= 0 || !of_process {
        return length;
    }
    let to = to.as_ptr();
    // SAFETY: the kernel has written so many bytes; the slice ends before they are moved.
    unsafe {
        let found = std::slice::from_raw_parts(to.cast::<u8>(), length as usize);
        shown_at(found).map_or(length, |at| {
            ptr::copy(to.add(at), to, length as usize - at);
            length - at as isize
        })
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_readlink(path: Text<'_>, to: Passed<c_char>, size: usize) -> isize {
    readlink_as(libc::AT_FDCWD, path, to, size)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_readlinkat(at: c_int, path: Text<'_>, to: Passed<c_char>, size: usize) -> isize {
    readlink_as(at, path, to, size)
}

/// Serves `realpath`: returns the path in the tree, if something exists there.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_realpath(path: Text<'_>, to: Passed<c_char>) -> *mut c_char {
    let real = real!(c"realpath", extern "C" fn(Text<'_>, Passed<c_char>) -> *mut c_char);
    let Some(place) = resolve(libc::AT_FDCWD, path, true) else { return real(path, to) };
    let mut found: libc::stat = zeroed();
    // SAFETY: there is room for a status.
    let status = unsafe { Passed::new(&raw mut found) };
    if stat_of_kernel(libc::AT_FDCWD, Text::of(&place.physical), status, 0) != 0 {
        return ptr::null_mut();
    }
    // The path came from C strings, and has no zeros.
    let shown = CString::new(place.shown).unwrap_or_default();
    let shown = shown.as_bytes_with_nul();
    if shown.len() > libc::PATH_MAX as usize {
        return error::null(libc::ENAMETOOLONG);
    }
    let to = to.as_ptr();
    if to.is_null() {
        return allocated(shown).cast();
    }
    // SAFETY: by the contract of `realpath`, there is room for `PATH_MAX` bytes.
    unsafe { ptr::copy_nonoverlapping(shown.as_ptr(), to.cast(), shown.len()) };
    to
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_realpath_checked(path: Text<'_>, to: Passed<c_char>, _length: usize) -> *mut c_char {
    selvedge_path_realpath(path, to)
}
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_path_canonicalize_file_name(path: Text<'_>) -> *mut c_char {
    selvedge_path_realpath(path, Passed::null())
}

/// Defines functions that take a path and more arguments, and call the C library's with the path to use.
macro_rules! others {
    ($($export:ident is $name:literal, follows $follows:literal: ($($argument:ident: $kind:ty),*) -> $told:ty;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $export(path: Text<'_> $(, $argument: $kind)*) -> $told {
            let real = real!($name, extern "C" fn(Text<'_> $(, $kind)*) -> $told);
            with(path, $follows, |path| real(path $(, $argument)*))
        }
    )*};
}

others! {
    selvedge_path_getxattr is c"getxattr", follows true:
        (name: Text<'_>, to: Passed<c_void>, size: usize) -> isize;
    selvedge_path_lgetxattr is c"lgetxattr", follows false:
        (name: Text<'_>, to: Passed<c_void>, size: usize) -> isize;
    selvedge_path_listxattr is c"listxattr", follows true: (to: Passed<c_char>, size: usize) -> isize;
    selvedge_path_llistxattr is c"llistxattr", follows false: (to: Passed<c_char>, size: usize) -> isize;
    selvedge_path_statfs is c"statfs64", follows true: (to: Passed<c_void>) -> c_int;
    selvedge_path_statvfs is c"statvfs64", follows true: (to: Passed<c_void>) -> c_int;
    selvedge_path_scandir is c"scandir64", follows true:
        (to: Passed<c_void>, takes: Passed<c_void>, orders: Passed<c_void>) -> c_int;
}

/// Returns the content of a file in the tree, or behind it.
pub(crate) fn content(path: &str) -> Option<String> {
    let path = CString::new(path).ok()?;
    let place = resolve(libc::AT_FDCWD, Text::of(&path), true)?;
    live(&place).or_else(|| std::fs::read_to_string(place.physical.to_str().ok()?).ok())
}
