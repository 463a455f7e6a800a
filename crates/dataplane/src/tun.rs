//! Network devices whose other end is a file (TUN).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use crate::iproute::explained;

const PATH: &str = "/dev/net/tun";

/// Flags of a device that carries IP packets alone, without a header of the device's own.
pub(crate) const PLAIN: libc::c_int = libc::IFF_TUN | libc::IFF_NO_PI;

/// The argument of `TUNSETIFF`: the head of `struct ifreq`, as long as the kernel copies it.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: u16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<Request>() == 40);

/// Creates the device `name` in the network namespace of this thread. Each read returns one packet that the kernel
/// sends to the device; each write is one packet that the device receives; neither waits. The device exists as long as
/// the file is open.
///
/// # Errors
/// Returns the system's error, for example without permission.
pub(crate) fn open(name: &str, flags: libc::c_int) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open(PATH).map_err(explained(&format!(
        "cannot open {PATH} (in a container it must be given: --device {PATH}; else: modprobe tun)"
    )))?;
    let mut request = Request { name: [0; libc::IFNAMSIZ], flags: flags as u16, rest: [0; 22] };
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, format!("\"{name}\" is too long for a device"));
    // The kernel reads a text with a zero at its end.
    request.name[..libc::IFNAMSIZ - 1].get_mut(..name.len()).ok_or_else(too_long)?.copy_from_slice(name.as_bytes());
    set_interface(&file, &mut request).map_err(explained(&format!("cannot make the device {name}")))?;
    Ok(file)
}

/// Sets the bytes of the `virtio_net_hdr` before each packet of a device with `IFF_VNET_HDR`.
///
/// # Errors
/// Returns the system's error.
#[expect(unsafe_code, reason = "there is no other way to say so")]
pub(crate) fn set_header_length(file: &File, bytes: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the kernel reads one `int` behind the pointer.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const bytes) })
}

/// Sets the work on packets (`TUN_F_*`) that the kernel may leave to the reader of the file.
///
/// # Errors
/// Returns the system's error: `EINVAL` if the kernel does not know one of them.
#[expect(unsafe_code, reason = "there is no other way to say so")]
pub(crate) fn set_offloads(file: &File, offloads: libc::c_uint) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the argument of this request is a number, not an address.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads)) })
}

#[expect(unsafe_code, reason = "there is no other way to make such a device")]
fn set_interface(file: &File, request: &mut Request) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the request is as long as the kernel reads and writes it.
    outcome(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, std::ptr::from_mut(request)) })
}

fn outcome(status: libc::c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
