//! Network devices whose other end is a file.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result, ensure};

/// Longest name of a device, with the zero at its end.
const NAME_LENGTH: usize = 16;

/// Argument of `TUNSETIFF`: the head of `struct ifreq`, as long as the kernel copies it.
#[repr(C)]
struct Request {
    name: [u8; NAME_LENGTH],
    flags: u16,
    rest: [u8; 22],
}

/// IP packets, without a header of the device's own (`IFF_TUN | IFF_NO_PI`).
const FLAGS: u16 = 0x0001 | 0x1000;

/// Makes the device `name` in this network namespace. Each read returns one packet that the kernel sends to the device;
/// each write is one packet received from it. The device exists as long as the file is open, also after a move to
/// another namespace.
pub(super) fn open(name: &str) -> Result<File> {
    ensure!(name.len() < NAME_LENGTH, "\"{name}\" is too long for a device");
    let path = "/dev/net/tun";
    let file = OpenOptions::new().read(true).write(true).open(path).with_context(|| format!("cannot open {path}"))?;
    let mut request = Request { name: [0; NAME_LENGTH], flags: FLAGS, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    set_interface(&file, &mut request).with_context(|| format!("cannot make the device {name}"))?;
    Ok(file)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no other way to make such a device")]
fn set_interface(file: &File, request: &mut Request) -> std::io::Result<()> {
    const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
    // SAFETY: the descriptor is open, and the request is as long as the kernel reads and writes it.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, std::ptr::from_mut(request)) };
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(not(target_os = "linux"))]
fn set_interface(file: &File, _: &mut Request) -> std::io::Result<()> {
    let _ = file.as_raw_fd();
    Err(std::io::ErrorKind::Unsupported.into())
}

const _: () = assert!(size_of::<Request>() == 40);
