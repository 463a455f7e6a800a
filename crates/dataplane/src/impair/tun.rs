//! Network devices whose other end is a file (TUN).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use super::namespace::explained;

const PATH: &str = "/dev/net/tun";

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
pub(super) fn open(name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open(PATH).map_err(explained(&format!(
        "cannot open {PATH} (in a container it must be given: --device {PATH}; else: modprobe tun)"
    )))?;
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as u16;
    let mut request = Request { name: [0; libc::IFNAMSIZ], flags, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    set_interface(&file, &mut request).map_err(explained(&format!("cannot make the device {name}")))?;
    Ok(file)
}

#[expect(unsafe_code, reason = "there is no other way to make such a device")]
fn set_interface(file: &File, request: &mut Request) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the request is as long as the kernel reads and writes it.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, std::ptr::from_mut(request)) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
