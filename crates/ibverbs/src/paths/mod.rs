//! `libselvedge-paths.so`: files that programs expect of RDMA hardware, beside libibverbs' functions. UCX, for one,
//! looks for its device under /dev/infiniband and reads the types of GIDs under /sys/class/infiniband itself.
//!
//! Loaded before the C library, its functions stand before those that open files and ask about them. They answer for
//! what [`tree`] knows; all else goes to the C library as it came.

mod tree;

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::device::devices;
use crate::error;
use tree::Found;

/// What stands for a device, which programs look at and do not use.
const DEVICE: &CStr = c"/dev/null";
/// What stands for a folder, which programs look for and do not list.
const FOLDER: &CStr = c"/sys/class";

/// A function of the C library, looked up once.
struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }
    /// Not the next in the order of search: that may be ourselves again.
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

/// What is known of a path.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn find(path: *const c_char) -> Option<Found> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    let path = unsafe { CStr::from_ptr(path) }.to_str().ok()?;
    // Before anything else: this is on the way of every file that a program opens.
    if !tree::is_ours(path) {
        return None;
    }
    let devices = devices().ok()?;
    tree::find(&devices.iter().map(|listed| &listed.device).collect::<Vec<_>>(), path)
}

/// A file with this content.
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

/// The path to ask about instead.
fn stand_in(found: &Found) -> CString {
    match found {
        Found::Device | Found::File(_) => DEVICE.to_owned(),
        Found::Folder => FOLDER.to_owned(),
        Found::At(path) => CString::new(path.as_str()).unwrap_or_default(),
    }
}

/// The path to ask about, where that is a path of its own.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn moved(path: *const c_char) -> Option<CString> {
    // SAFETY: the caller's.
    unsafe { find(path) }.filter(|found| matches!(found, Found::At(_))).map(|found| stand_in(&found))
}

unsafe fn open_as(real: &Real, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: the function is as C has it; the third argument of those who gave two means nothing.
    let real: unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int = unsafe { mem::transmute(real.get()) };
    match unsafe { find(path) } {
        None => unsafe { real(path, flags, mode) },
        Some(Found::File(content)) => file(&content).unwrap_or_else(|problem| {
            error::set(error::of_io(&problem));
            -1
        }),
        Some(other) => unsafe { real(stand_in(&other).as_ptr(), flags, mode) },
    }
}

unsafe fn stream_as(real: &Real, path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    // SAFETY: the function is as C has it.
    let real: unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE =
        unsafe { mem::transmute(real.get()) };
    match unsafe { find(path) } {
        None => unsafe { real(path, mode) },
        Some(Found::File(content)) => match file(&content) {
            Ok(descriptor) => unsafe { libc::fdopen(descriptor, c"r".as_ptr()) },
            Err(problem) => error::null(error::of_io(&problem)),
        },
        Some(other) => unsafe { real(stand_in(&other).as_ptr(), mode) },
    }
}

unsafe fn stat_as(real: &Real, path: *const c_char, to: *mut libc::stat) -> c_int {
    // SAFETY: the function is as C has it.
    let real: unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int = unsafe { mem::transmute(real.get()) };
    let found = unsafe { find(path) };
    let other = found.as_ref().map(stand_in);
    let status = unsafe { real(other.as_ref().map_or(path, |other| other.as_ptr()), to) };
    if let (Some(Found::File(content)), 0) = (found, status) {
        // SAFETY: it was filled in.
        let to = unsafe { &mut *to };
        (to.st_mode, to.st_size) = (libc::S_IFREG | 0o444, content.len() as i64);
    }
    status
}

static OPEN: Real = Real::new(c"open");
static OPEN64: Real = Real::new(c"open64");
static FOPEN: Real = Real::new(c"fopen");
static FOPEN64: Real = Real::new(c"fopen64");
static STAT: Real = Real::new(c"stat");
static STAT64: Real = Real::new(c"stat64");
static LSTAT: Real = Real::new(c"lstat");
static STATX: Real = Real::new(c"statx");
static ACCESS: Real = Real::new(c"access");
static OPENDIR: Real = Real::new(c"opendir");
static REALPATH: Real = Real::new(c"realpath");

#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    unsafe { open_as(&OPEN, path, flags, mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_open64(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    unsafe { open_as(&OPEN64, path, flags, mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    unsafe { stream_as(&FOPEN, path, mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    unsafe { stream_as(&FOPEN64, path, mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_stat(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(&STAT, path, to) }
}
/// The same structure, on machines of 64 bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_stat64(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(&STAT64, path, to) }
}
/// What programs call that were built before glibc 2.33; the version of the structure has never been another.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_xstat(_version: c_int, path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(&STAT, path, to) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the function is as C has it.
    let real: unsafe extern "C" fn(*const c_char, c_int) -> c_int = unsafe { mem::transmute(ACCESS.get()) };
    let other = unsafe { find(path) }.as_ref().map(stand_in);
    unsafe { real(other.as_ref().map_or(path, |other| other.as_ptr()), mode) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_lstat(path: *const c_char, to: *mut libc::stat) -> c_int {
    unsafe { stat_as(&LSTAT, path, to) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_statx(
    at: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    to: *mut c_void,
) -> c_int {
    // SAFETY: the function is as C has it.
    let real: unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint, *mut c_void) -> c_int =
        unsafe { mem::transmute(STATX.get()) };
    let other = unsafe { find(path) }.as_ref().map(stand_in);
    unsafe { real(at, other.as_ref().map_or(path, |other| other.as_ptr()), flags, mask, to) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_opendir(path: *const c_char) -> *mut libc::DIR {
    // SAFETY: the function is as C has it.
    let real: unsafe extern "C" fn(*const c_char) -> *mut libc::DIR = unsafe { mem::transmute(OPENDIR.get()) };
    let other = unsafe { moved(path) };
    unsafe { real(other.as_ref().map_or(path, |other| other.as_ptr())) }
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_path_realpath(path: *const c_char, to: *mut c_char) -> *mut c_char {
    // SAFETY: the function is as C has it.
    let real: unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut c_char =
        unsafe { mem::transmute(REALPATH.get()) };
    let other = unsafe { moved(path) };
    unsafe { real(other.as_ref().map_or(path, |other| other.as_ptr()), to) }
}

/// The content of a file that we stand for.
pub(crate) fn content(path: &str) -> Option<String> {
    let path = std::ffi::CString::new(path).ok()?;
    // SAFETY: it is a C string.
    match unsafe { find(path.as_ptr()) }? {
        Found::File(content) => Some(content),
        Found::At(path) => std::fs::read_to_string(path).ok(),
        Found::Device | Found::Folder => None,
    }
}
