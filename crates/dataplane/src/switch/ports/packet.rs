//! A port on an Ethernet interface by `AF_PACKET`: arriving frames wait in a ring that the kernel and this process
//! share (`TPACKET_V2`: frame by frame, so that a lone frame does not wait for a block to fill); frames leave in
//! batches of `sendmmsg(2)`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use selvedge_wire::EtherType;

use super::system::{self, Mapping};
use crate::switch::checksum;

/// Bytes of a frame's place in the ring, for frames up to an MTU.
const SHORT: u32 = 2_048;
/// Bytes of a place for longer frames.
const LONG: u32 = 16_384;
/// Number of places. The ring takes 4 MB, or 32 MB.
const PLACES: u32 = 2_048;
/// Bytes that the kernel puts before a frame in its place, at most.
const BEFORE: u32 = 128;
/// Bytes of a block, a multiple of the page.
const BLOCK: u32 = 1 << 16;
/// Bytes of addresses, behind which a tag stands.
const ADDRESSES: usize = 12;
/// Frames of a batch.
const BATCH: usize = 64;
/// Status of a frame whose checksum was left to the interface.
const CHECKSUM_MISSING: u32 = libc::TP_STATUS_CSUMNOTREADY;
/// Status of a frame whose tag was taken out.
const TAGGED: u32 = libc::TP_STATUS_VLAN_VALID;
/// Status of a frame whose tag's type is known.
const TAG_TYPE: u32 = libc::TP_STATUS_VLAN_TPID_VALID;
/// Offsets in the head of a place: status, bytes in the place, offset of the frame, tag, its type.
const STATUS: usize = 0;
const LENGTH: usize = 4;
const KEPT: usize = 8;
const OFFSETS: usize = 12;
const TAG: usize = 24;

/// A port.
#[derive(Debug)]
pub(super) struct Packet {
    socket: OwnedFd,
    ring: Mapping,
    /// Bytes of a place.
    place: usize,
    /// Place of the next frame.
    next: u32,
    /// A frame that is not forwarded as it lies in the ring.
    amended: Vec<u8>,
    /// Frames to be sent, one behind the other, and their ends.
    waiting: Vec<u8>,
    ends: Vec<usize>,
    overflowed: u64,
    /// Frames that the interface has refused, whose sending had been accepted.
    pub(super) refused: u64,
    /// Frames that were longer than a place: super-packets of a host that was not asked to send none.
    oversized: u64,
}

impl Packet {
    /// Opens a port on an interface of this thread's network namespace, for frames of an MTU.
    ///
    /// # Errors
    /// Returns the system's error.
    pub(super) fn open(interface: u32, mtu: u32) -> io::Result<Self> {
        let place = if mtu + BEFORE <= SHORT { SHORT } else { LONG };
        let socket = system::socket(libc::AF_PACKET, libc::SOCK_RAW)?;
        let set = |name, value: libc::c_int| system::set_option(&socket, libc::SOL_PACKET, name, value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as libc::c_int)?;
        set(libc::PACKET_IGNORE_OUTGOING, 1)?;
        // Frames that leave meet no queue of the kernel.
        set(libc::PACKET_QDISC_BYPASS, 1)?;
        let ring = libc::tpacket_req {
            tp_block_size: BLOCK,
            tp_block_nr: PLACES * place / BLOCK,
            tp_frame_size: place,
            tp_frame_nr: PLACES,
        };
        system::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, ring)?;
        let ring = Mapping::of_socket(&socket, (PLACES * place) as usize, 0)?;
        let group = libc::packet_mreq {
            mr_ifindex: interface.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        system::set_option(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, group)?;
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: interface.cast_signed(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        system::bind(&socket, address)?;
        Ok(Self {
            socket,
            ring,
            place: place as usize,
            next: 0,
            amended: Vec::new(),
            waiting: Vec::new(),
            ends: Vec::new(),
            overflowed: 0,
            refused: 0,
            oversized: 0,
        })
    }

    /// Calls `take` for frames that have arrived, for `most` at most. Returns their number.
    pub(super) fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8])) -> u32 {
        for count in 0..most {
            let at = self.next as usize * self.place;
            let status = self.ring.word(at + STATUS).load(Acquire);
            if status & libc::TP_STATUS_USER == 0 {
                return count;
            }
            let word = |offset: usize| self.ring.word(at + offset).load(Relaxed);
            let [m0, m1, ..] = word(OFFSETS).to_ne_bytes();
            let kept = word(KEPT);
            if kept < word(LENGTH) {
                self.oversized += 1;
            } else {
                let frame = self.ring.bytes(at + usize::from(u16::from_ne_bytes([m0, m1])), kept as usize);
                if status & (CHECKSUM_MISSING | TAGGED) == 0 {
                    take(frame);
                } else {
                    amend(frame, status, word(TAG), &mut self.amended);
                    take(&self.amended);
                }
            }
            self.ring.word(at + STATUS).store(libc::TP_STATUS_KERNEL, Release);
            self.next = (self.next + 1) % PLACES;
        }
        most
    }

    /// Keeps a frame for the next batch; returns whether there was a place for it.
    pub(super) fn send(&mut self, frame: &[u8]) -> bool {
        if self.ends.len() == BATCH && !self.flush().is_ok_and(|is_left| !is_left) {
            return false;
        }
        self.waiting.extend_from_slice(frame);
        self.ends.push(self.waiting.len());
        true
    }

    /// Sends the batch. Returns whether any of it is left.
    ///
    /// # Errors
    /// Returns the system's error, for example if the interface is gone.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let mut sent = 0;
        let mut failed = None;
        while sent < self.ends.len() {
            let start = if sent == 0 { 0 } else { self.ends[sent - 1] };
            match system::send_all(&self.socket, &self.waiting, start, &self.ends[sent..]) {
                Ok(count) => sent += count,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::ENOBUFS) => break,
                    // Too long for the interface, or the interface is down.
                    Some(libc::EMSGSIZE | libc::EINVAL | libc::ENETDOWN) => {
                        self.refused += 1;
                        sent += 1;
                    }
                    _ => {
                        failed = Some(error);
                        break;
                    }
                },
            }
        }
        if sent > 0 {
            let start = self.ends[sent - 1];
            self.waiting.drain(..start);
            self.ends.drain(..sent);
            self.ends.iter_mut().for_each(|end| *end -= start);
        }
        failed.map_or(Ok(!self.ends.is_empty()), Err)
    }

    /// Returns whether a frame has arrived.
    pub(super) fn has_arrived(&self) -> bool {
        let status = self.ring.word(self.next as usize * self.place + STATUS).load(Acquire);
        status & libc::TP_STATUS_USER != 0
    }

    /// Returns the number of frames that found the ring full, or did not fit in it.
    pub(super) fn overflowed(&mut self) -> u64 {
        // The kernel forgets what it has told.
        let counts = system::option::<libc::tpacket_stats>(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        self.overflowed += counts.map_or(0, |counts| u64::from(counts.tp_drops));
        self.overflowed + self.oversized
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Copies a frame, with the tag that the kernel has taken out and the checksum that it has left out.
fn amend(frame: &[u8], status: u32, tag: u32, into: &mut Vec<u8>) {
    into.clear();
    let Some((addresses, rest)) = frame.split_at_checked(ADDRESSES) else { return };
    into.extend_from_slice(addresses);
    if status & TAGGED != 0 {
        let [t0, t1, k0, k1] = tag.to_ne_bytes();
        let kind = if status & TAG_TYPE != 0 { u16::from_ne_bytes([k0, k1]) } else { EtherType::VLAN };
        into.extend_from_slice(&kind.to_be_bytes());
        into.extend_from_slice(&u16::from_ne_bytes([t0, t1]).to_be_bytes());
    }
    into.extend_from_slice(rest);
    if status & CHECKSUM_MISSING != 0 {
        checksum::complete(into);
    }
}
