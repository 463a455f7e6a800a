//! The kernel's side of ports: sockets of `AF_PACKET` and `AF_XDP`, memory that both share, BPF, `ethtool`. All unsafe
//! code of ports is here.
//!
//! Shared memory is read and written in three ways. Words that both sides change are atomic ([`Mapping::word`]). Bytes
//! of a frame belong to one side at a time: a ring's indices, or a status word, hand them over with release and
//! acquire. [`Mapping::bytes`] and [`Mapping::copy`] are called between the two. Every offset is checked against the
//! mapping.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64};

use libc::{c_int, c_long, c_uint, c_void, socklen_t};

use crate::iproute::explained;

/// Memory that is shared with the kernel. Dropping the value unmaps it.
#[derive(Debug)]
pub(super) struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: the memory is no thread's own, and everything that both sides change at once is atomic.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of a socket's rings, at an offset that names the ring.
    pub(super) fn of_socket(socket: &OwnedFd, length: usize, offset: i64) -> io::Result<Self> {
        Self::new(length, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    /// Maps `length` bytes of new memory, for frames.
    pub(super) fn anonymous(length: usize) -> io::Result<Self> {
        Self::new(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn new(length: usize, flags: c_int, file: c_int, offset: i64) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else refers to it.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), length })
    }

    /// Returns the word at an offset.
    ///
    /// # Panics
    /// If the offset is not that of a word in the mapping.
    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.length, "offset {at} of {}", self.length);
        // SAFETY: the word is in the mapping, which lives as long as `self`, and aligned, as the mapping is to a page.
        // It is only accessed as an atomic.
        unsafe { &*self.start.add(at).cast() }
    }

    /// Returns the double word at an offset.
    ///
    /// # Panics
    /// If the offset is not that of a double word in the mapping.
    pub(super) fn double(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length, "offset {at} of {}", self.length);
        // SAFETY: as in `word`.
        unsafe { &*self.start.add(at).cast() }
    }

    /// Returns bytes that belong to this side for as long as they are borrowed.
    ///
    /// # Panics
    /// If they are not in the mapping.
    pub(super) fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(at <= self.length && length <= self.length - at, "{length} bytes at {at} of {}", self.length);
        // SAFETY: the bytes are in the mapping. The kernel does not write to them until the ring hands them back, which
        // callers do when they have done with the bytes.
        unsafe { std::slice::from_raw_parts(self.start.add(at), length) }
    }

    /// Copies bytes to a place that belongs to this side.
    ///
    /// # Panics
    /// If they are not in the mapping.
    pub(super) fn copy(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.length && bytes.len() <= self.length - at, "{} at {at} of {}", bytes.len(), self.length);
        // SAFETY: the place is in the mapping; `bytes` cannot overlap it, because `self` is borrowed mutably.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at), bytes.len()) };
    }

    /// Returns the address of the memory, for the kernel.
    pub(super) fn address(&self) -> u64 {
        self.start.addr() as u64
    }

    /// Returns the length in bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows it any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// Plain structures of the kernel's interface: any bytes are a value.
///
/// # Safety
/// The type has no padding that matters, no pointers, and every pattern of bits is a value.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: numbers, and structures of numbers.
unsafe impl Plain for c_int {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: a structure of numbers; the address in it is a number, too.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: a structure of numbers.
unsafe impl Plain for libc::sockaddr_xdp {}

/// Opens a socket that does not wait.
pub(super) fn socket(family: c_int, kind: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers alone.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
    outcome(socket.into())?;
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Sets an option of a socket.
pub(super) fn set_option<T: Plain>(socket: &OwnedFd, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = size_of::<T>() as socklen_t;
    let value = ptr::from_ref(&value).cast();
    // SAFETY: the value is as long as the kernel is told, and lives until the call returns.
    outcome(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, length) }.into())
}

/// Returns an option of a socket.
pub(super) fn option<T: Plain>(socket: &OwnedFd, level: c_int, name: c_int) -> io::Result<T> {
    // Kernels before a field was added write less.
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as socklen_t;
    let place = value.as_mut_ptr().cast();
    // SAFETY: the place is as long as the kernel is told.
    let status = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, place, &raw mut length) };
    outcome(status.into())?;
    // SAFETY: it was zeroed, and any bytes are a value of a plain type.
    Ok(unsafe { value.assume_init() })
}

/// Binds a socket.
pub(super) fn bind<T: Plain>(socket: &OwnedFd, address: T) -> io::Result<()> {
    let (address, length) = (ptr::from_ref(&address).cast(), size_of::<T>() as socklen_t);
    // SAFETY: the address is as long as the kernel is told, and lives until the call returns.
    outcome(unsafe { libc::bind(socket.as_raw_fd(), address, length) }.into())
}

/// Asks the kernel to send the frames in a ring.
pub(super) fn kick(socket: &OwnedFd) -> io::Result<()> {
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: no data, no address.
    outcome(unsafe { libc::sendto(socket.as_raw_fd(), ptr::null(), 0, flags, ptr::null(), 0) } as c_long)
}

/// Takes the pending error of a socket, and returns one if its interface is gone.
pub(super) fn check(socket: BorrowedFd<'_>) -> io::Result<()> {
    let socket = socket.try_clone_to_owned()?;
    let _: c_int = option(&socket, libc::SOL_SOCKET, libc::SO_ERROR)?;
    // Sending nothing tells: no interface, one that is down, or nothing to send.
    match kick(&socket) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {
            Err(explained("the interface of a port is gone")(error))
        }
        _ => Ok(()),
    }
}

/// Sends frames in one call, which are parts of `bytes` from `start` on with these ends. Returns the number that the
/// kernel took.
pub(super) fn send_all(socket: &OwnedFd, bytes: &[u8], mut start: usize, ends: &[usize]) -> io::Result<usize> {
    /// Most frames of a call.
    const MOST: usize = 64;
    let ends = &ends[..ends.len().min(MOST)];
    // SAFETY: zero is a value of these structures: no pointer, no length.
    let mut parts: [libc::iovec; MOST] = unsafe { mem::zeroed() };
    // SAFETY: as above.
    let mut headers: [libc::mmsghdr; MOST] = unsafe { mem::zeroed() };
    for ((part, header), end) in parts.iter_mut().zip(&mut headers).zip(ends) {
        let frame = &bytes[start..*end];
        part.iov_base = frame.as_ptr().cast_mut().cast();
        part.iov_len = frame.len();
        header.msg_hdr.msg_iov = ptr::from_mut(part);
        header.msg_hdr.msg_iovlen = 1;
        start = *end;
    }
    let (headers, count) = (headers.as_mut_ptr(), ends.len() as c_uint);
    // SAFETY: the headers point to parts, and these to bytes, which live until the call returns; the kernel only reads
    // the bytes.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), headers, count, libc::MSG_DONTWAIT) };
    outcome(sent.into())?;
    Ok(sent as usize)
}

/// Operations of `bpf(2)`.
#[derive(Clone, Copy)]
enum Operation {
    MapCreate = 0,
    MapUpdate = 2,
    ProgramLoad = 5,
    LinkCreate = 28,
}

/// Type of a map of sockets.
const MAP_OF_SOCKETS: u32 = 17;
/// Type of a program that sees frames as they arrive.
const PROGRAM_XDP: u32 = 6;
/// Place of such a program.
const ATTACH_XDP: u32 = 37;

/// A program that gives the frames of an interface to a socket. Dropping the value ends that.
#[derive(Debug)]
pub(super) struct Redirection {
    _map: OwnedFd,
    _program: OwnedFd,
    _link: OwnedFd,
}

/// Lets the kernel give all frames that arrive at the first queue of an interface to a socket of `AF_XDP`.
///
/// # Errors
/// Returns the system's error: without the right to load programs, or if another program is at the interface.
pub(super) fn redirect(interface: u32, socket: &OwnedFd) -> io::Result<Redirection> {
    let map = bpf(Operation::MapCreate, &[pair(MAP_OF_SOCKETS, 4), pair(4, 1)])?;
    let (key, value) = (0u32, socket.as_raw_fd());
    let update = [
        u64::from(map.as_raw_fd().cast_unsigned()),
        ptr::from_ref(&key).addr() as u64,
        ptr::from_ref(&value).addr() as u64,
        0,
    ];
    bpf_call(Operation::MapUpdate, &update)?;
    let map_number = map.as_raw_fd().cast_unsigned();
    // return bpf_redirect_map(&map, ctx->rx_queue_index, XDP_PASS)
    let code: [u64; 6] = [
        instruction(0x61, 2, 1, 16, 0),
        instruction(0x18, 1, 1, 0, map_number),
        0,
        instruction(0xb7, 3, 0, 0, 2),
        instruction(0x85, 0, 0, 0, 51),
        instruction(0x95, 0, 0, 0, 0),
    ];
    let license = c"GPL";
    let load = [
        pair(PROGRAM_XDP, code.len() as u32),
        code.as_ptr().addr() as u64,
        license.as_ptr().addr() as u64,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    let program = bpf(Operation::ProgramLoad, &load)?;
    let link =
        bpf(Operation::LinkCreate, &[pair(program.as_raw_fd().cast_unsigned(), interface), pair(ATTACH_XDP, 0)])?;
    Ok(Redirection { _map: map, _program: program, _link: link })
}

/// Returns an instruction of BPF.
fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: u32) -> u64 {
    let [o0, o1] = offset.to_ne_bytes();
    let [i0, i1, i2, i3] = immediate.to_ne_bytes();
    u64::from_ne_bytes([code, source << 4 | destination, o0, o1, i0, i1, i2, i3])
}

/// Returns two words in a row.
fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Calls `bpf(2)` for an operation that makes a file.
fn bpf(operation: Operation, attributes: &[u64]) -> io::Result<OwnedFd> {
    let file = bpf_call(operation, attributes)?;
    // SAFETY: these operations return a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(file as c_int) })
}

fn bpf_call(operation: Operation, attributes: &[u64]) -> io::Result<c_long> {
    let (attributes, length) = (attributes.as_ptr(), size_of_val(attributes));
    // SAFETY: the attributes are as long as the kernel is told, and whatever they point to lives until the call
    // returns: it is held by the caller.
    let status = unsafe { libc::syscall(libc::SYS_bpf, operation as c_long, attributes, length) };
    outcome(status)?;
    Ok(status)
}

/// The argument of `SIOCETHTOOL` and others: `struct ifreq` with a pointer.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut c_void,
    rest: [u8; 16],
}

const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());

/// Calls `ioctl(2)` with `SIOCETHTOOL` for an interface of this thread's network namespace. The words of `value` begin
/// with the command.
pub(super) fn ethtool<const N: usize>(name: &str, value: &mut [u32; N]) -> io::Result<()> {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM)?;
    let mut request = Request { name: name_of(name)?, data: value.as_mut_ptr().cast(), rest: [0; 16] };
    // SAFETY: the request points to as many words as the command reads and writes, which live until the call returns.
    outcome(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, ptr::from_mut(&mut request)) }.into())
}

/// Returns the MTU of an interface of this thread's network namespace.
pub(super) fn mtu(name: &str) -> io::Result<u32> {
    const SIOCGIFMTU: libc::c_ulong = 0x8921;
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM)?;
    let mut request = Request { name: name_of(name)?, data: ptr::null_mut(), rest: [0; 16] };
    // SAFETY: the kernel writes a number into the request, where a pointer is for other commands.
    outcome(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGIFMTU as _, ptr::from_mut(&mut request)) }.into())?;
    let [m0, m1, m2, m3, ..] = request.data.addr().to_ne_bytes();
    Ok(u32::from_ne_bytes([m0, m1, m2, m3]))
}

/// Returns the name of an interface as the kernel reads it, with a zero at its end.
fn name_of(name: &str) -> io::Result<[u8; libc::IFNAMSIZ]> {
    let mut bytes = [0; libc::IFNAMSIZ];
    let place = bytes[..libc::IFNAMSIZ - 1].get_mut(..name.len());
    place.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    Ok(bytes)
}

fn outcome(status: c_long) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
