//! The list of devices, and opening them.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use selvedge_dataplane::rnic::Device;

use crate::abi::{ibv_context, ibv_device};
use crate::borrowed::{Borrowed, Out, Text, allocated};
use crate::context::Context;
use crate::error;
use crate::paths;

/// A device: C's structure, and this library's description. A device is never freed: programs keep pointers after they
/// free the list.
#[repr(C)]
pub struct DeviceEntry {
    abi: ibv_device,
    /// Zeros behind `ibv_device`, where libraries for real hardware look for marks of their own.
    nothing: [u8; 4096],
    pub(crate) device: Device,
}

impl DeviceEntry {
    fn new(device: Device) -> Self {
        let abi = ibv_device {
            _ops: [None; 2],
            node_type: 1,
            transport_type: 0,
            name: text(&device.name),
            dev_name: text(&format!("uverbs{}", device.index)),
            dev_path: text(&format!("/sys/class/infiniband_verbs/uverbs{}", device.index)),
            ibdev_path: text(&format!("/sys/class/infiniband/{}", device.name)),
        };
        Self { abi, nothing: [0; 4096], device }
    }
    pub(crate) fn as_c(&'static self) -> *mut ibv_device {
        ptr::from_ref(self).cast_mut().cast()
    }
}

impl Borrowed<'_, DeviceEntry> {
    fn forever(self) -> &'static DeviceEntry {
        // SAFETY: devices are never freed.
        unsafe { &*self.as_ptr() }
    }
}

/// Returns a C string of a fixed size, padded with zeros.
pub(crate) fn text<const N: usize>(from: &str) -> [c_char; N] {
    let mut to = [0; N];
    for (to, from) in to[..N - 1].iter_mut().zip(from.bytes()) {
        *to = from as c_char;
    }
    to
}

static KNOWN: Mutex<Vec<&'static DeviceEntry>> = Mutex::new(Vec::new());

/// Returns the current devices; unchanged devices keep their addresses.
///
/// # Errors
/// Returns an error when the system does not tell its interfaces.
pub(crate) fn devices() -> std::io::Result<Vec<&'static DeviceEntry>> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let listed = Device::all()?.into_iter().map(|device| {
        known.iter().copied().find(|listed| listed.device == device).unwrap_or_else(|| {
            let listed: &'static DeviceEntry = Box::leak(Box::new(DeviceEntry::new(device)));
            known.push(listed);
            listed
        })
    });
    Ok(listed.collect())
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_device_list(mut count: Option<Out<'_, c_int>>) -> *mut *mut ibv_device {
    if let Some(count) = &mut count {
        count.write(0);
    }
    let devices = match devices() {
        Ok(devices) => devices,
        Err(problem) => {
            error::say(&format!("cannot list the network interfaces of this host: {problem}"));
            return error::null(error::of_io(&problem));
        }
    };
    let all: Vec<_> = devices.iter().map(|listed| listed.device.clone()).collect();
    Device::misspellings(&all).iter().for_each(|problem| error::say(problem));
    if devices.is_empty() {
        error::say("no RDMA devices: no network interface of this host has an IPv4 or a global IPv6 address");
    }
    if let Some(count) = &mut count {
        count.write(devices.len() as c_int);
    }
    let list: Vec<_> = devices.iter().map(|device| device.as_c()).chain([ptr::null_mut()]).collect();
    allocated(&list)
}

/// Frees a list of devices.
///
/// # Safety
/// The list is from `ibv_get_device_list`, or null, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: as the caller promises.
    unsafe { libc::free(list.cast()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_device_name(device: Borrowed<'_, DeviceEntry>) -> *const c_char {
    device.abi.name.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_device_index(device: Borrowed<'_, DeviceEntry>) -> c_int {
    device.device.index as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_device_guid(device: Borrowed<'_, DeviceEntry>) -> u64 {
    u64::from_ne_bytes(device.device.guid())
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_open_device(device: Borrowed<'_, DeviceEntry>) -> *mut ibv_context {
    let listed = device.forever();
    match Context::open(listed) {
        Ok(context) => context,
        Err(problem) => {
            error::say(&format!("cannot open {}: {problem}", listed.device.name));
            error::null(error::of_io(&problem))
        }
    }
}

/// Closes a device.
///
/// # Safety
/// Nobody uses the device or its objects afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_close_device(context: Borrowed<'_, ibv_context>) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { Context::close(context) };
    0
}

/// Ignores libraries of other providers, which register themselves when they are loaded.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_register_driver(_: *const c_char, _: *const ()) {}

/// Reads a file below a folder of `/sys`; returns the number of bytes, or -1.
///
/// # Safety
/// `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_read_sysfs_file(
    directory: Text<'_>,
    file: Text<'_>,
    buffer: *mut c_char,
    size: usize,
) -> c_int {
    let path = [directory, file].map(|part| part.get().unwrap_or_default().to_string_lossy()).join("/");
    let known = paths::content(&path).map(String::into_bytes);
    let Some(mut found) = known.or_else(|| std::fs::read(path).ok()) else { return -1 };
    found.truncate(size);
    if found.last() == Some(&b'\n') {
        found.pop();
    }
    let ends = found.len() < size;
    // SAFETY: at most `size` bytes, and the zero only where one more fits.
    unsafe {
        ptr::copy_nonoverlapping(found.as_ptr(), buffer.cast(), found.len());
        if ends {
            *buffer.add(found.len()) = 0;
        }
    }
    found.len() as c_int
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}
