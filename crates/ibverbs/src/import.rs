//! Import of objects by numbers (`ibv_import_device` and its relatives): a descriptor names a device, handles name
//! objects on it. Import works within one process only; another process has a NIC of its own.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use selvedge_nic::verbs::PdId;

use crate::abi::{ibv_context, ibv_mr};
use crate::borrowed::{Borrowed, Given};
use crate::context::Context;
use crate::device::DeviceEntry;
use crate::error;
use crate::memory::Pd;

/// Open devices of this process, by the inode of their token.
static OPEN: Mutex<BTreeMap<u64, &'static DeviceEntry>> = Mutex::new(BTreeMap::new());

fn open() -> std::sync::MutexGuard<'static, BTreeMap<u64, &'static DeviceEntry>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file that names an open device: `cmd_fd`.
pub(crate) struct Token {
    file: File,
    /// The inode to remove from [`OPEN`] when the token is dropped; `None` in a context from an import.
    inode: Option<u64>,
}

impl Token {
    /// Creates a token for a device.
    ///
    /// # Errors
    /// Returns an error when the process may not have more descriptors.
    pub(crate) fn new(listed: &'static DeviceEntry) -> io::Result<Self> {
        // SAFETY: the descriptor is new, and nobody else closes it.
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
    /// Returns the token's file descriptor.
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

/// Opens the device that a descriptor names. The context takes the descriptor over.
///
/// # Safety
/// The descriptor is open, and nobody closes it after a success.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_import_device(descriptor: c_int) -> *mut ibv_context {
    // SAFETY: as the caller promises; without a success, the descriptor is given back below.
    let file = unsafe { File::from_raw_fd(descriptor) };
    let found = file.metadata().ok().and_then(|metadata| open().get(&metadata.ino()).copied());
    let Some(listed) = found else {
        let _ = file.into_raw_fd();
        return error::null(libc::EOPNOTSUPP);
    };
    Context::with(listed, Token { file, inode: None }).unwrap_or_else(|problem| error::null(error::of_io(&problem)))
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_import_pd(context: Borrowed<'_, ibv_context>, handle: u32) -> Option<Given<Pd>> {
    Some(Pd::create(context, PdId(handle), context.whole().adapter, None))
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_unimport_pd(pd: Given<Pd>) {
    pd.free();
}

/// Returns a memory region by its handle. Like rdma-core, without the memory's address.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_import_mr(pd: Borrowed<'_, Pd>, handle: u32) -> Option<Given<ibv_mr>> {
    let (context, pd) = (pd.abi.context, pd.as_c());
    let mr = ibv_mr { context, pd, addr: ptr::null_mut(), length: 0, handle, lkey: handle, rkey: handle };
    Some(Given::new(mr))
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_unimport_mr(mr: Given<ibv_mr>) {
    mr.free();
}

/// Fails: devices have no memory of their own.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_import_dm(_: *mut ibv_context, _: u32) -> *mut c_void {
    error::null(libc::EOPNOTSUPP)
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_unimport_dm(_: *mut c_void) {}
