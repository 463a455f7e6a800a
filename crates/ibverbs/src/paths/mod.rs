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
use std::mem;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::device::devices;
use crate::error;
use resolve::{Place, resolve};

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

/// Looks up the C library's function of this name and type.
macro_rules! real {
    ($name:literal, $kind:ty) => {{
        static REAL: $crate::paths::Real = $crate::paths::Real::new($name);
        // SAFETY: the function is as C has it.
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, $kind>(REAL.get()) }
    }};
}
use real;

/// Calls a function with the path to use.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn with<T>(path: *const c_char, follows: bool, call: impl FnOnce(*const c_char) -> T) -> T {
    // SAFETY: the caller's.
    match unsafe { resolve(libc::AT_FDCWD, path, follows) } {
        None => call(path),
        Some(place) => call(place.physical.as_ptr()),
    }
}

/// Calls a function with the folder and path to use, for functions that take paths relative to a folder.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn with_at<T>(at: c_int, path: *const c_char, follows: bool, call: impl FnOnce(c_int, *const c_char) -> T) -> T {
    // SAFETY: the caller's.
    match unsafe { resolve(at, path, follows) } {
        None => call(at, path),
        Some(place) => call(libc::AT_FDCWD, place.physical.as_ptr()),
    }
}

/// Returns the descriptor of a new file in memory with this content.
///
/// # Errors
/// Returns an error when the process may not have more descriptors.
fn file(content: &str) -> std::io::Result<c_int> {
    // SAFETY: a descriptor of our own, if it is one.
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
fn live(place: &Place) -> Option<String> {
    if !place.is_ours || !place.shown.contains("counters/") {
        return None;
    }
    let devices = devices().ok()?;
    counters::read(&devices.iter().map(|listed| &listed.device).collect::<Vec<_>>(), &place.shown)
}

/// Opens a file of the tree, where nothing can be written; `call` opens it by its physical path.
fn open_place(place: &Place, flags: c_int, call: impl FnOnce(*const c_char) -> c_int) -> c_int {
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
    call(place.physical.as_ptr())
}

type Open = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_int) -> c_int;

/// Opens a path like `open`. The third argument is meaningless where the caller gave only two.
unsafe fn open_as(real: Open, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    match unsafe { resolve(libc::AT_FDCWD, path, flags & libc::O_NOFOLLOW == 0) } {
        None => unsafe { real(path, flags, mode) },
        Some(place) => open_place(&place, flags, |path| unsafe { real(path, flags, mode) }),
    }
}

unsafe fn openat_as(real: OpenAt, at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    match unsafe { resolve(at, path, flags & libc::O_NOFOLLOW == 0) } {
        None => unsafe { real(at, path, flags, mode) },
        Some(place) => open_place(&place, flags, |path| unsafe { real(libc::AT_FDCWD, path, flags, mode) }),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"open", Open);
    unsafe { open_as(real, path, flags, mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"open64", Open);
    unsafe { open_as(real, path, flags, mode) }
}
/// Opens a path for programs that are built with checks of their arguments (fortified `open`): no mode is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_open_checked(path: *const c_char, flags: c_int) -> c_int {
    let real = real!(c"open64", Open);
    unsafe { open_as(real, path, flags, 0) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_openat(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"openat", OpenAt);
    unsafe { openat_as(real, at, path, flags, mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_openat64(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let real = real!(c"openat64", OpenAt);
    unsafe { openat_as(real, at, path, flags, mode) }
}
/// Opens a path relative to a folder for programs that are built with checks of their arguments (fortified `openat`):
/// no mode is needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_openat_checked(at: c_int, path: *const c_char, flags: c_int) -> c_int {
    let real = real!(c"openat64", OpenAt);
    unsafe { openat_as(real, at, path, flags, 0) }
}

type OpenStream = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE;

unsafe fn stream_as(real: OpenStream, path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    let Some(place) = (unsafe { resolve(libc::AT_FDCWD, path, true) }) else { return unsafe { real(path, mode) } };
    let is_written = unsafe { CStr::from_ptr(mode) }.to_bytes().iter().any(|letter| b"wa+".contains(letter));
    if place.is_ours && is_written {
        return error::null(libc::EACCES);
    }
    let Some(content) = live(&place) else { return unsafe { real(place.physical.as_ptr(), mode) } };
    match file(&content) {
        Ok(descriptor) => unsafe { libc::fdopen(descriptor, c"r".as_ptr()) },
        Err(problem) => error::null(error::of_io(&problem)),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    let real = real!(c"fopen", OpenStream);
    unsafe { stream_as(real, path, mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    let real = real!(c"fopen64", OpenStream);
    unsafe { stream_as(real, path, mode) }
}

/// Calls `fstatat` of the kernel: before glibc 2.33 the C library had no `stat` to call. On 64-bit machines all these
/// functions share one structure, which has only one version.
unsafe fn stat_as(at: c_int, path: *const c_char, to: *mut libc::stat, flags: c_int) -> c_int {
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    unsafe { with_at(at, path, follows, |at, path| libc::syscall(libc::SYS_newfstatat, at, path, to, flags) as c_int) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_stat(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(libc::AT_FDCWD, path, to, 0) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_lstat(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(libc::AT_FDCWD, path, to, libc::AT_SYMLINK_NOFOLLOW) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fstatat(
    at: c_int,
    path: *const c_char,
    to: *mut libc::stat,
    flags: c_int,
) -> c_int {
    unsafe { stat_as(at, path, to, flags) }
}
/// Serves `stat` of programs that were built before glibc 2.33.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_xstat(_version: c_int, path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(libc::AT_FDCWD, path, to, 0) }
}
/// Serves `lstat` of programs that were built before glibc 2.33.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_lxstat(_version: c_int, path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(libc::AT_FDCWD, path, to, libc::AT_SYMLINK_NOFOLLOW) }
}
/// Serves `fstatat` of programs that were built before glibc 2.33.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fxstatat(
    _version: c_int,
    at: c_int,
    path: *const c_char,
    to: *mut libc::stat,
    flags: c_int,
) -> c_int {
    unsafe { stat_as(at, path, to, flags) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_statx(
    at: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut c_void,
) -> c_int {
    let real = real!(c"statx", unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint, *mut c_void) -> c_int);
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    unsafe { with_at(at, path, follows, |at, path| real(at, path, flags, mask, to)) }
}

type Access = unsafe extern "C" fn(*const c_char, c_int) -> c_int;

/// Checks access rights; nothing in the tree can be written, not even by root.
unsafe fn access_as(
    at: c_int,
    path: *const c_char,
    mode: c_int,
    follows: bool,
    call: impl FnOnce(c_int, *const c_char) -> c_int,
) -> c_int {
    match unsafe { resolve(at, path, follows) } {
        None => call(at, path),
        Some(place) => match call(libc::AT_FDCWD, place.physical.as_ptr()) {
            0 if place.is_ours && mode & libc::W_OK != 0 => {
                error::set(libc::EACCES);
                -1
            }
            told => told,
        },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_access(path: *const c_char, mode: c_int) -> c_int {
    let real = real!(c"access", Access);
    unsafe { access_as(libc::AT_FDCWD, path, mode, true, |_, path| real(path, mode)) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_euidaccess(path: *const c_char, mode: c_int) -> c_int {
    let real = real!(c"euidaccess", Access);
    unsafe { access_as(libc::AT_FDCWD, path, mode, true, |_, path| real(path, mode)) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_faccessat(at: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
    let real = real!(c"faccessat", unsafe extern "C" fn(c_int, *const c_char, c_int, c_int) -> c_int);
    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    unsafe { access_as(at, path, mode, follows, |at, path| real(at, path, mode, flags)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_opendir(path: *const c_char) -> *mut libc::DIR {
    let real = real!(c"opendir", unsafe extern "C" fn(*const c_char) -> *mut libc::DIR);
    match unsafe { resolve(libc::AT_FDCWD, path, true) } {
        None => unsafe { real(path) },
        Some(place) => {
            resolve::enter();
            unsafe { real(place.physical.as_ptr()) }
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_chdir(path: *const c_char) -> c_int {
    let real = real!(c"chdir", unsafe extern "C" fn(*const c_char) -> c_int);
    match unsafe { resolve(libc::AT_FDCWD, path, true) } {
        None => unsafe { real(path) },
        Some(place) => {
            resolve::enter();
            unsafe { real(place.physical.as_ptr()) }
        }
    }
}

/// Returns the working folder, by its path in the tree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_getcwd(to: *mut c_char, size: usize) -> *mut c_char {
    let real = real!(c"getcwd", unsafe extern "C" fn(*mut c_char, usize) -> *mut c_char);
    let found = unsafe { real(to, size) };
    if !found.is_null() {
        // SAFETY: a C string of the C library's, in memory that is ours to write.
        unsafe {
            let path = CStr::from_ptr(found).to_bytes();
            if let Some(at) = shown_at(path) {
                ptr::copy(found.add(at), found, path.len() - at + 1);
            }
        }
    }
    found
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_getcwd_checked(to: *mut c_char, size: usize, _length: usize) -> *mut c_char {
    unsafe { selvedge_path_getcwd(to, size) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_get_current_dir_name() -> *mut c_char {
    unsafe { selvedge_path_getcwd(ptr::null_mut(), 0) }
}

/// Returns the position in a path where the path in the tree begins; `None` if it leads into no copy.
fn shown_at(path: &[u8]) -> Option<usize> {
    let path = std::str::from_utf8(path).ok()?;
    let shown = store::shown(path)?;
    path.ends_with(shown).then(|| path.len() - shown.len())
}

/// Reads a link. Links in `/proc` name the copies, and are translated to paths in the tree.
unsafe fn readlink_as(at: c_int, path: *const c_char, to: *mut c_char, size: usize) -> isize {
    let length = unsafe {
        with_at(at, path, false, |at, path| libc::syscall(libc::SYS_readlinkat, at, path, to, size) as isize)
    };
    let of_process = |path: *const c_char| unsafe { CStr::from_ptr(path) }.to_bytes().starts_with(b"/proc/");
    if length <= 0 || path.is_null() || !of_process(path) {
        return length;
    }
    // SAFETY: so many bytes were written.
    unsafe {
        let found = std::slice::from_raw_parts(to.cast::<u8>(), length as usize);
        shown_at(found).map_or(length, |at| {
            ptr::copy(to.add(at), to, length as usize - at);
            length - at as isize
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_readlink(path: *const c_char, to: *mut c_char, size: usize) -> isize {
    unsafe { readlink_as(libc::AT_FDCWD, path, to, size) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_readlinkat(
    at: c_int,
    path: *const c_char,
    to: *mut c_char,
    size: usize,
) -> isize {
    unsafe { readlink_as(at, path, to, size) }
}

/// Serves `realpath`: returns the path in the tree, if something exists there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_realpath(path: *const c_char, to: *mut c_char) -> *mut c_char {
    let real = real!(c"realpath", unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut c_char);
    let Some(place) = (unsafe { resolve(libc::AT_FDCWD, path, true) }) else { return unsafe { real(path, to) } };
    // SAFETY: as C has it; what is shown has no zeros, as it came from C strings.
    unsafe {
        let mut found: libc::stat = mem::zeroed();
        if libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, place.physical.as_ptr(), &raw mut found, 0) != 0 {
            return ptr::null_mut();
        }
        let shown = CString::new(place.shown).unwrap_or_default();
        let length = shown.as_bytes_with_nul().len();
        if length > libc::PATH_MAX as usize {
            return error::null(libc::ENAMETOOLONG);
        }
        let to = if to.is_null() { libc::malloc(length).cast::<c_char>() } else { to };
        if !to.is_null() {
            ptr::copy_nonoverlapping(shown.as_ptr(), to, length);
        }
        to
    }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_realpath_checked(
    path: *const c_char,
    to: *mut c_char,
    _length: usize,
) -> *mut c_char {
    unsafe { selvedge_path_realpath(path, to) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_canonicalize_file_name(path: *const c_char) -> *mut c_char {
    unsafe { selvedge_path_realpath(path, ptr::null_mut()) }
}

/// Defines functions that take a path and more arguments, and call the C library's with the path to use.
macro_rules! others {
    ($($export:ident is $name:literal, follows $follows:literal: ($($argument:ident: $kind:ty),*) -> $told:ty;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $export(path: *const c_char $(, $argument: $kind)*) -> $told {
            let real = real!($name, unsafe extern "C" fn(*const c_char $(, $kind)*) -> $told);
            unsafe { with(path, $follows, |path| real(path $(, $argument)*)) }
        }
    )*};
}

others! {
    selvedge_path_getxattr is c"getxattr", follows true:
        (name: *const c_char, to: *mut c_void, size: usize) -> isize;
    selvedge_path_lgetxattr is c"lgetxattr", follows false:
        (name: *const c_char, to: *mut c_void, size: usize) -> isize;
    selvedge_path_listxattr is c"listxattr", follows true: (to: *mut c_char, size: usize) -> isize;
    selvedge_path_llistxattr is c"llistxattr", follows false: (to: *mut c_char, size: usize) -> isize;
    selvedge_path_statfs is c"statfs64", follows true: (to: *mut c_void) -> c_int;
    selvedge_path_statvfs is c"statvfs64", follows true: (to: *mut c_void) -> c_int;
    selvedge_path_scandir is c"scandir64", follows true: (to: *mut c_void, takes: *mut c_void, orders: *mut c_void) -> c_int;
}

/// Returns the content of a file in the tree, or behind it.
pub(crate) fn content(path: &str) -> Option<String> {
    let path = CString::new(path).ok()?;
    // SAFETY: it is a C string.
    let place = unsafe { resolve(libc::AT_FDCWD, path.as_ptr(), true) }?;
    live(&place).or_else(|| std::fs::read_to_string(place.physical.to_str().ok()?).ok())
}
