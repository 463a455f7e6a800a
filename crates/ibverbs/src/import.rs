//! Objects that are shared by numbers (`ibv_import_device` and its relatives): a descriptor stands for a device,
//! handles for what was made on it. Within a process, that is; another has a NIC of its own.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use selvedge_nic::verbs::PdId;

use crate::abi::{ibv_context, ibv_mr, ibv_pd};
use crate::context::Context;
use crate::device::Listed;
use crate::error;
use crate::memory::Pd;

/// Devices that are open in this process, by the inode of what stands for them.
static OPEN: Mutex<BTreeMap<u64, &'static Listed>> = Mutex::new(BTreeMap::new());

fn open() -> std::sync::MutexGuard<'static, BTreeMap<u64, &'static Listed>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What stands for an open device: `cmd_fd`.
pub(crate) struct Token {
    file: File,
    /// It goes with this context; others only look at it.
    inode: Option<u64>,
}

impl Token {
    /// A new one.
    pub(crate) fn new(listed: &'static Listed) -> io::Result<Self> {
        // SAFETY: a descriptor of our own, if it is one.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"selvedge-device".as_ptr(), libc::MFD_CLOEXEC);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from_raw_fd(descriptor)
        };
        let inode = file.metadata()?.ino();
        open().insert(inode, listed);
        Ok(Self { file, inode: Some(inode) })
    }
    /// Its number in this process.
    pub(crate) fn descriptor(&self) -> c_int {
        self.file.as_raw_fd()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(inode) = self.inode {
            open().remove(&inode);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_device(descriptor: c_int) -> *mut ibv_context {
    // SAFETY: it is given back below, unless a context takes it, as rdma-core has it.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let found = file.metadata().ok().and_then(|metadata| open().get(&metadata.ino()).copied());
    let Some(listed) = found else {
        let _ = file.into_raw_fd();
        return error::null(libc::EOPNOTSUPP);
    };
    Context::with(listed, Token { file, inode: None }).unwrap_or_else(|problem| error::null(error::of_io(&problem)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_pd(context: *mut ibv_context, handle: u32) -> *mut ibv_pd {
    let adapter = unsafe { Context::of(context) }.adapter;
    Pd::leak(context, PdId(handle), adapter, None)
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_pd(pd: *mut ibv_pd) {
    drop(unsafe { Box::from_raw(pd.cast::<Pd>()) });
}

/// As elsewhere, it does not say where the memory is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_mr(pd: *mut ibv_pd, handle: u32) -> *mut ibv_mr {
    let context = unsafe { (*pd).context };
    let mr = ibv_mr { context, pd, addr: ptr::null_mut(), length: 0, handle, lkey: handle, rkey: handle };
    Box::into_raw(Box::new(mr))
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_unimport_mr(mr: *mut ibv_mr) {
    drop(unsafe { Box::from_raw(mr) });
}

/// Devices have no memory of their own.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_import_dm(_: *mut ibv_context, _: u32) -> *mut c_void {
    error::null(libc::EOPNOTSUPP)
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_unimport_dm(_: *mut c_void) {}
