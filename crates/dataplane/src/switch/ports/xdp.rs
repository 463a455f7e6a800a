//! A port on an Ethernet interface by `AF_XDP`, in copy mode: frames wait in rings that the kernel and this process
//! share.
//!
//! ```text
//! frames of 2 KB:  [ to be filled by arrivals ............... | to be sent ....... ]
//! fill ring  ── places for arrivals ──>  kernel  ── receive ring ──> this process
//! send ring  ── frames ───────────────>  kernel  ── completion ring ──> places for frames
//! ```
//!
//! A program of six instructions, which ends with this value or process, gives arriving frames to the socket before the
//! kernel looks at them. Other programs of the interface's namespace do not see these frames.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::system::{self, Mapping, Redirection};
use crate::switch::checksum;

/// Bytes of a frame's place.
const PLACE: usize = 2_048;
/// Bytes of a place before an arriving frame, which the kernel keeps free.
const HEADROOM: usize = 256;
/// Longest frame.
pub(super) const LONGEST: usize = PLACE - HEADROOM;
/// Places for arrivals, and size of the rings for them. A power of two.
const ARRIVALS: u32 = 2_048;
/// Places for frames to be sent, and size of the rings for them. A power of two.
const DEPARTURES: u32 = 1_024;
/// Frames that the kernel sends in one call at most, where it may be asked for more than 32.
const BUDGET: libc::c_int = 256;
/// Option for that number (Linux 6.17).
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// Calls in a row that try to send what is in the ring.
const TRIES: u32 = 64;

/// A port.
#[derive(Debug)]
pub(super) struct Xdp {
    socket: OwnedFd,
    memory: Mapping,
    fill: Ring,
    arrived: Ring,
    departing: Ring,
    completed: Ring,
    /// Places for frames to be sent.
    free: Vec<u64>,
    /// Whether frames wait in the ring for a call.
    is_waiting: bool,
    /// Whether checksums that a host's kernel has left out are completed.
    pub(super) completes: bool,
    /// A frame whose checksum was completed.
    amended: Vec<u8>,
    _redirection: Redirection,
}

impl Xdp {
    /// Opens a port on an interface of this thread's network namespace, which must have one queue.
    ///
    /// # Errors
    /// Returns the system's error: without the right to load BPF programs, or if another program is at the interface.
    pub(super) fn open(interface: u32) -> io::Result<Self> {
        let socket = system::socket(libc::AF_XDP, libc::SOCK_RAW)?;
        let memory = Mapping::anonymous(PLACE * (ARRIVALS + DEPARTURES) as usize)?;
        let region = libc::xdp_umem_reg {
            addr: memory.address(),
            len: memory.length() as u64,
            chunk_size: PLACE as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        system::set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, region)?;
        for (ring, size) in [
            (libc::XDP_UMEM_FILL_RING, ARRIVALS),
            (libc::XDP_RX_RING, ARRIVALS),
            (libc::XDP_TX_RING, DEPARTURES),
            (libc::XDP_UMEM_COMPLETION_RING, DEPARTURES),
        ] {
            system::set_option(&socket, libc::SOL_XDP, ring, size.cast_signed())?;
        }
        // Older kernels send 32 frames in a call.
        let _ = system::set_option(&socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, BUDGET);
        let offsets: libc::xdp_mmap_offsets = system::option(&socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let ring = |offsets: &libc::xdp_ring_offset, size: u32, entry: usize, page: u64| {
            let descriptors = offsets.desc as usize;
            let map = Mapping::of_socket(&socket, descriptors + size as usize * entry, page as i64)?;
            Ok::<_, io::Error>(Ring {
                map,
                producer: offsets.producer as usize,
                consumer: offsets.consumer as usize,
                descriptors,
                size,
            })
        };
        let mut fill = ring(&offsets.fr, ARRIVALS, ADDRESS, libc::XDP_UMEM_PGOFF_FILL_RING)?;
        let completed = ring(&offsets.cr, DEPARTURES, ADDRESS, libc::XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let arrived = ring(&offsets.rx, ARRIVALS, DESCRIPTOR, libc::XDP_PGOFF_RX_RING as u64)?;
        let departing = ring(&offsets.tx, DEPARTURES, DESCRIPTOR, libc::XDP_PGOFF_TX_RING as u64)?;
        fill.fill((0..u64::from(ARRIVALS)).map(|place| place * PLACE as u64));
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: interface,
            sxdp_queue_id: 0,
            sxdp_shared_umem_fd: 0,
        };
        system::bind(&socket, address)?;
        let redirection = system::redirect(interface, &socket)?;
        let free = (ARRIVALS..ARRIVALS + DEPARTURES).map(|place| u64::from(place) * PLACE as u64).collect();
        Ok(Self {
            socket,
            memory,
            fill,
            arrived,
            departing,
            completed,
            free,
            is_waiting: false,
            completes: false,
            amended: Vec::new(),
            _redirection: redirection,
        })
    }

    /// Calls `take` for frames that have arrived, for `most` at most. Returns their number.
    pub(super) fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8])) -> u32 {
        let (begin, ready) = self.arrived.ready();
        let count = ready.min(most);
        if count == 0 {
            return 0;
        }
        let fill = self.fill.map.word(self.fill.producer).load(Relaxed);
        for ahead in 0..count {
            let at = self.arrived.descriptor(begin.wrapping_add(ahead));
            let address = self.arrived.map.double(at).load(Relaxed);
            let length = self.arrived.map.word(at + ADDRESS).load(Relaxed);
            let frame = self.memory.bytes(address as usize, length as usize);
            if self.completes && checksum::is_left_out(frame) {
                self.amended.clear();
                self.amended.extend_from_slice(frame);
                checksum::complete(&mut self.amended);
                take(&self.amended);
            } else {
                take(frame);
            }
            // The place begins at a multiple of its size; the frame does not.
            let place = address & !(PLACE as u64 - 1);
            self.fill.map.double(self.fill.address(fill.wrapping_add(ahead))).store(place, Relaxed);
        }
        self.arrived.map.word(self.arrived.consumer).store(begin.wrapping_add(count), Release);
        self.fill.map.word(self.fill.producer).store(fill.wrapping_add(count), Release);
        count
    }

    /// Puts a frame into the ring; returns whether there was a place for it.
    pub(super) fn send(&mut self, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            // An error comes again at the next flush, whose caller hears of it.
            let _ = self.flush();
            self.reap();
        }
        if frame.len() > PLACE {
            return false;
        }
        let Some(place) = self.free.pop() else { return false };
        self.memory.copy(place as usize, frame);
        // There are as many places as the ring has entries.
        let producer = self.departing.map.word(self.departing.producer).load(Relaxed);
        let at = self.departing.descriptor(producer);
        self.departing.map.double(at).store(place, Relaxed);
        self.departing.map.double(at + ADDRESS).store(frame.len() as u64, Relaxed);
        self.departing.map.word(self.departing.producer).store(producer.wrapping_add(1), Release);
        self.is_waiting = true;
        true
    }

    /// Lets the kernel send what is in the ring. Returns whether anything is left there.
    ///
    /// # Errors
    /// Returns the system's error, for example if the interface is gone.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        for _ in 0..TRIES {
            if !self.is_waiting {
                return Ok(false);
            }
            match system::kick(&self.socket) {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    // A part has been sent, or the device is busy.
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => {}
                    // What fits waits in the ring until the interface is up.
                    Some(libc::ENETDOWN) => return Ok(true),
                    _ => return Err(error),
                },
            }
            let producer = self.departing.map.word(self.departing.producer).load(Relaxed);
            self.is_waiting = self.departing.map.word(self.departing.consumer).load(Acquire) != producer;
        }
        Ok(self.is_waiting)
    }

    /// Returns whether a frame has arrived.
    pub(super) fn has_arrived(&self) -> bool {
        self.arrived.ready().1 > 0
    }

    /// Returns the number of frames that found the ring full.
    pub(super) fn overflowed(&self) -> u64 {
        let statistics = system::option::<libc::xdp_statistics>(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS);
        statistics.map_or(0, |counts| counts.rx_dropped + counts.rx_ring_full + counts.rx_fill_ring_empty_descs)
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes back the places of frames that have been sent.
    fn reap(&mut self) {
        let (begin, ready) = self.completed.ready();
        for ahead in 0..ready {
            let at = self.completed.address(begin.wrapping_add(ahead));
            self.free.push(self.completed.map.double(at).load(Relaxed));
        }
        self.completed.map.word(self.completed.consumer).store(begin.wrapping_add(ready), Release);
    }
}

/// Bytes of an entry that is an address.
const ADDRESS: usize = 8;
/// Bytes of an entry that is an address, a length and options.
const DESCRIPTOR: usize = 16;

/// A ring of entries, with the indices of both sides.
#[derive(Debug)]
struct Ring {
    map: Mapping,
    /// Offsets of the indices and of the entries.
    producer: usize,
    consumer: usize,
    descriptors: usize,
    /// Number of entries.
    size: u32,
}

impl Ring {
    /// Returns the index of the first entry that the kernel has produced, and their number.
    fn ready(&self) -> (u32, u32) {
        let consumer = self.map.word(self.consumer).load(Relaxed);
        (consumer, self.map.word(self.producer).load(Acquire).wrapping_sub(consumer))
    }

    /// Produces entries that are addresses.
    fn fill(&mut self, addresses: impl Iterator<Item = u64>) {
        let mut producer = self.map.word(self.producer).load(Relaxed);
        for address in addresses {
            self.map.double(self.address(producer)).store(address, Relaxed);
            producer = producer.wrapping_add(1);
        }
        self.map.word(self.producer).store(producer, Release);
    }

    /// Returns the offset of an entry that is an address.
    fn address(&self, index: u32) -> usize {
        self.descriptors + (index & (self.size - 1)) as usize * ADDRESS
    }

    /// Returns the offset of an entry that is a descriptor.
    fn descriptor(&self, index: u32) -> usize {
        self.descriptors + (index & (self.size - 1)) as usize * DESCRIPTOR
    }
}
