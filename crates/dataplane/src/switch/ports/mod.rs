//! Ports: interfaces of Linux, and how frames are read from them and written to them.
//!
//! | kind | interface | how |
//! |---|---|---|
//! | `xdp` | one that exists: an end of a veth pair, a network card | rings of `AF_XDP`; needs root |
//! | `packet` | the same | a ring of `AF_PACKET` for arrivals, batches for departures |
//! | `tap` | one that the port makes, and whose other end is the port | a call for each frame |
//!
//! A host must hand over frames as they are on a wire: with checksums, cut to the MTU. [`plain`] makes its end of a
//! veth pair so. A port of kind `packet` completes checksums that are missing all the same; nobody cuts frames that are
//! too long: they are dropped and counted.

mod packet;
mod place;
#[expect(unsafe_code, reason = "the kernel's interface to rings of packets is pointers and system calls")]
mod system;
mod tap;
mod xdp;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::net::if_::if_nametoindex;

use self::packet::Packet;
pub use self::place::PortPlace;
use self::tap::Tap;
use self::xdp::Xdp;
use crate::iproute::explained;

/// Kinds of ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// Rings of `AF_XDP`.
    Xdp,
    /// `AF_PACKET`.
    Packet,
    /// A TAP device.
    Tap,
}

impl PortKind {
    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xdp => "xdp",
            Self::Packet => "packet",
            Self::Tap => "tap",
        }
    }
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A port. Dropping the value leaves the interface as it was; a TAP device that is not persistent ends.
#[derive(Debug)]
pub struct Port {
    io: Io,
}

#[derive(Debug)]
enum Io {
    Xdp(Box<Xdp>),
    Packet(Box<Packet>),
    Tap(Tap),
}

impl Port {
    /// Opens a port of a kind on the interface `name` of this thread's network namespace.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, or the system's: without permission, or if the interface cannot
    /// be used in this way.
    pub fn open(kind: PortKind, name: &str) -> io::Result<Self> {
        let unable = || format!("cannot open a port on {name} ({kind})");
        let io = match kind {
            PortKind::Tap => Io::Tap(Tap::open(name)?),
            PortKind::Xdp | PortKind::Packet => {
                let interface = if_nametoindex(name).map_err(|errno| explained(&unable())(errno.into()))?;
                let mtu = mtu(name).map_err(explained(&unable()))?;
                if kind == PortKind::Xdp {
                    suits_xdp(name, mtu).map_err(explained(&unable()))?;
                    let opened = Xdp::open(interface).map_err(|error| match error.kind() {
                        io::ErrorKind::PermissionDenied => explained("BPF programs need root")(error),
                        _ => error,
                    });
                    Io::Xdp(Box::new(opened.map_err(explained(&unable()))?))
                } else {
                    Io::Packet(Box::new(Packet::open(interface, mtu).map_err(explained(&unable()))?))
                }
            }
        };
        Ok(Self { io })
    }

    /// Opens a port on an existing interface in the best way that the kernel allows. Returns why it is not the best, if
    /// it is not.
    ///
    /// # Errors
    /// Returns an error under the conditions of [`Port::open`].
    pub fn open_best(name: &str) -> io::Result<(Self, Option<io::Error>)> {
        match Self::open(PortKind::Xdp, name) {
            Ok(port) => Ok((port, None)),
            Err(error) => Self::open(PortKind::Packet, name).map(|port| (port, Some(error))),
        }
    }

    /// Lets the port complete checksums that the host's kernel has left to its interface. Costs a look at each frame.
    pub fn complete_checksums(&mut self) {
        // Other kinds are told which frames lack them, or have them.
        if let Io::Xdp(port) = &mut self.io {
            port.completes = true;
        }
    }

    /// Returns the kind of the port.
    pub fn kind(&self) -> PortKind {
        match self.io {
            Io::Xdp(_) => PortKind::Xdp,
            Io::Packet(_) => PortKind::Packet,
            Io::Tap(_) => PortKind::Tap,
        }
    }

    /// Calls `take` for frames that have arrived, for `most` at most. Returns their number.
    ///
    /// # Errors
    /// Returns the system's error, for example if the interface is gone.
    pub fn receive(&mut self, most: u32, take: impl FnMut(&[u8])) -> io::Result<u32> {
        match &mut self.io {
            Io::Xdp(port) => Ok(port.receive(most, take)),
            Io::Packet(port) => Ok(port.receive(most, take)),
            Io::Tap(port) => port.receive(most, take),
        }
    }

    /// Sends a frame, at [`Port::flush`] at the latest; returns whether there was a place for it.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        match &mut self.io {
            Io::Xdp(port) => port.send(frame),
            Io::Packet(port) => port.send(frame),
            Io::Tap(port) => port.send(frame),
        }
    }

    /// Lets the interface have what waits. Returns whether anything is left: it is tried again at the next call.
    ///
    /// # Errors
    /// Returns the system's error, for example if the interface is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.io {
            Io::Xdp(port) => port.flush(),
            Io::Packet(port) => port.flush(),
            Io::Tap(port) => Ok(port.flush()),
        }
    }

    /// Looks whether the interface is still there, after its file has told of an error.
    ///
    /// # Errors
    /// Returns an error if the interface is gone. One that is down may come up again.
    pub(super) fn check(&self) -> io::Result<()> {
        match &self.io {
            Io::Xdp(_) | Io::Packet(_) => system::check(self.as_fd()),
            // The next read tells.
            Io::Tap(_) => Ok(()),
        }
    }

    /// Returns whether there may be frames to receive. For a TAP device, [`Port::note_arrival`] says so.
    pub fn has_arrived(&self) -> bool {
        match &self.io {
            Io::Xdp(port) => port.has_arrived(),
            Io::Packet(port) => port.has_arrived(),
            Io::Tap(port) => port.has_arrived(),
        }
    }

    /// Records that the port's file can be read.
    pub fn note_arrival(&mut self) {
        if let Io::Tap(port) = &mut self.io {
            port.note_arrival();
        }
    }

    /// Returns the number of frames that were lost because the port was not read in time.
    pub(super) fn overflowed(&mut self) -> u64 {
        match &mut self.io {
            Io::Xdp(port) => port.overflowed(),
            Io::Packet(port) => port.overflowed(),
            // The device counts them, in the host's namespace.
            Io::Tap(_) => 0,
        }
    }

    /// Returns the number of frames that the interface has refused, whose sending had been accepted.
    pub(super) fn refused(&self) -> u64 {
        match &self.io {
            Io::Xdp(_) => 0,
            Io::Packet(port) => port.refused,
            Io::Tap(port) => port.refused,
        }
    }
}

impl AsFd for Port {
    /// Returns the file to wait for.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.io {
            Io::Xdp(port) => port.as_fd(),
            Io::Packet(port) => port.as_fd(),
            Io::Tap(port) => port.as_fd(),
        }
    }
}

/// Makes an interface of this thread's network namespace hand over frames as they are on a wire: with checksums, cut to
/// the MTU, with their tags. Does what the driver allows.
///
/// # Errors
/// Returns the system's error if the interface is gone, or without permission.
pub fn plain(name: &str) -> io::Result<()> {
    for command in [SET_CHECKSUMS, SET_TSO, SET_GSO, SET_GRO] {
        ignore_unsupported(system::ethtool(name, &mut [command, 0]))?;
    }
    let mut flags = [GET_FLAGS, 0];
    ignore_unsupported(system::ethtool(name, &mut flags))?;
    ignore_unsupported(system::ethtool(name, &mut [SET_FLAGS, flags[1] & !(TAGS_SENT | TAGS_RECEIVED | LRO)]))
}

/// Commands of `ethtool`.
const SET_CHECKSUMS: u32 = 0x17;
const SET_TSO: u32 = 0x1f;
const SET_GSO: u32 = 0x24;
const SET_GRO: u32 = 0x2c;
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
const GET_CHANNELS: u32 = 0x3c;
/// Flags of offloads.
const TAGS_SENT: u32 = 1 << 7;
const TAGS_RECEIVED: u32 = 1 << 8;
const LRO: u32 = 1 << 15;

fn ignore_unsupported(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL)) => Ok(()),
        other => other,
    }
}

/// Returns an error if rings of `AF_XDP` would miss frames of an interface.
fn suits_xdp(name: &str, mtu: u32) -> io::Result<()> {
    /// Bytes of an Ethernet header with two tags.
    const HEADER: u32 = 22;
    if (mtu + HEADER) as usize > xdp::LONGEST {
        return Err(io::Error::other(format!("its MTU of {mtu} is too large for AF_XDP's frames")));
    }
    // Maximum and present numbers of receiving, sending, other and combined queues follow.
    let mut channels = [GET_CHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
    ignore_unsupported(system::ethtool(name, &mut channels))?;
    let [.., receiving, _, _, combined] = channels;
    if receiving + combined > 1 {
        let queues = receiving + combined;
        return Err(io::Error::other(format!("it has {queues} queues: `ethtool -L {name} rx 1 tx 1` leaves one")));
    }
    Ok(())
}

/// Returns the MTU of an interface of this thread's network namespace.
fn mtu(name: &str) -> io::Result<u32> {
    // The files in /sys are those of the namespace in which it was mounted.
    system::mtu(name)
}

/// Returns whether an interface exists in this thread's network namespace.
pub fn exists(name: &str) -> bool {
    if_nametoindex(name).is_ok()
}
