//! Two streams of bytes over one connection: what may be posted next, and the effect of a completion. The module is
//! pure: memory, queue pair and clock are the caller's.
//!
//! 1. Each direction has two limits: bytes, by the buffers that the receiver announces in the sender's list, and
//!    messages, by credits. Control messages (credits, shutdown) need neither; some slots of the send queue are
//!    reserved for them.
//! 2. The receive buffer has two halves. The private data announces the first; each further one is announced once its
//!    bytes are read, in the list's next entry. So the peer never has more than one buffer and one waiting entry.
//! 3. An immediate's completion tells the length of its Write. An entry is read when a Write of an entry's length
//!    completes, and at no other time: it may be half written.
//! 4. A message counts as taken when it arrives, because only the sum of the bytes is kept.
//! 5. Numbers come from the peer. A message that contradicts what was announced to the peer is a [`Fault`], which ends
//!    the connection.

use std::collections::VecDeque;

use super::wire::{Hello, Message, Region};

/// Requests of the send queue that are reserved for control messages.
pub const CONTROL_SLOTS: u16 = 4;
/// Entries in the list into which the peer writes descriptions of its buffers.
pub const ENTRIES: u32 = 2;
/// Size of an entry in bytes.
pub const ENTRY: u32 = 16;
/// Sizes of the first and of the largest transfer of one call in bytes: the first is sent while the next is copied.
pub const FIRST_TRANSFER: usize = 2_048;
const LARGEST_TRANSFER: usize = 65_536;
/// Bytes that must be free in the send ring before it accepts more, so that transfers are not tiny.
const LEAST_ROOM: u32 = 2_048;

/// Sizes of one end: requests in its queues, bytes of its buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Requests in the send queue, at least [`Sizes::LEAST_QUEUE`].
    pub send_queue: u16,
    /// Data messages that the peer may send ahead, at least [`Sizes::LEAST_QUEUE`].
    pub receive_queue: u16,
    /// Bytes of the send ring.
    pub send_buffer: u32,
    /// Bytes of the receive buffer, an even number.
    pub receive_buffer: u32,
}

impl Sizes {
    /// Requests in the smallest queue.
    pub const LEAST_QUEUE: u16 = 16;
    /// Bytes of the smallest and of the largest buffer.
    pub const BUFFERS: std::ops::RangeInclusive<u32> = 4_096..=1 << 28;
}

/// Violation of the protocol by the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The peer's list of buffers has fewer than two entries.
    List,
    /// More bytes came than buffers were announced for, or their number differs from that of the Write.
    Bytes,
    /// A third buffer was announced while two are in use.
    Buffers,
}

/// State of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    /// Either side has ended the connection, or both have shut down their write sides.
    Closed,
    /// The connection was lost, with this `errno`.
    Failed(i32),
}

/// A Write of data: a piece of the send ring, which may wrap, to a place in the peer's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Offset in the send ring in bytes.
    pub at: u32,
    /// Length in bytes, not 0.
    pub length: u32,
    /// Address at the peer.
    pub address: u64,
    /// Remote key of the peer's buffer.
    pub key: u32,
}

/// A control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    pub message: Message,
    /// The entry that announces a buffer with the message, if any.
    pub entry: Option<Entry>,
}

/// An entry of the peer's list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Address of the entry at the peer.
    pub address: u64,
    /// Remote key of the peer's list.
    pub key: u32,
    /// Offset of the announced buffer in this end's receive buffer, in bytes.
    pub offset: u32,
    /// Length of the announced buffer in bytes.
    pub length: u32,
    /// Whether the peer reads numbers in network byte order.
    pub is_network_order: bool,
}

impl Entry {
    /// Encodes the entry, for a receive buffer at this address with this remote key.
    pub fn encode(&self, buffer: u64, key: u32) -> [u8; ENTRY as usize] {
        let address = buffer + u64::from(self.offset);
        let (address, key, length) = if self.is_network_order {
            (address.to_be_bytes(), key.to_be_bytes(), self.length.to_be_bytes())
        } else {
            (address.to_le_bytes(), key.to_le_bytes(), self.length.to_le_bytes())
        };
        let mut bytes = [0; ENTRY as usize];
        bytes[..8].copy_from_slice(&address);
        bytes[8..12].copy_from_slice(&key);
        bytes[12..].copy_from_slice(&length);
        bytes
    }

    /// Decodes an entry of this end's list, which the peer writes in this end's byte order.
    pub fn decode(bytes: &[u8; ENTRY as usize]) -> Region {
        let [a, b, c, d, e, f, g, h, key @ .., i, j, k, l] = *bytes;
        Region {
            address: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            key: u32::from_ne_bytes(key),
            length: u32::from_ne_bytes([i, j, k, l]),
        }
    }
}

/// Sides that [`Stream::shutdown`] closes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Read,
    Write,
    Both,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Stream {
    sizes: Sizes,
    state: State,
    /// Whether more data may be accepted from the peer.
    is_readable: bool,
    /// Whether more data may be sent.
    is_writable: bool,
    /// Whether this end closed its write side.
    was_shut_here: bool,
    /// Whether the peer accepts nothing any more: unacknowledged bytes are lost.
    is_gone: bool,
    out: Outgoing,
    incoming: Incoming,
}

/// State of the direction to the peer.
#[derive(Debug)]
struct Outgoing {
    /// Data requests that may be posted.
    data_slots: u16,
    /// Control requests that may be posted.
    control_slots: u16,
    /// Offset of the next byte in the ring.
    at: u32,
    /// Bytes free in the ring.
    room: u32,
    /// Sequence number of the next data message, which must not be sent if it is [`Self::limit`].
    next: u16,
    limit: u16,
    /// The rest of the peer's buffer that is currently written.
    target: Region,
    /// The peer's buffers that follow the current one.
    waiting: VecDeque<Region>,
    /// Index of the entry that the peer writes next.
    entry: u32,
    /// The message that ends a direction, to be sent once a slot is free.
    end: Option<Message>,
    keepalive: bool,
}

/// State of the direction from the peer.
#[derive(Debug)]
struct Incoming {
    /// Offset of the next byte to read.
    at: u32,
    /// Bytes that arrived and are not read yet.
    arrived: u32,
    /// Bytes that the peer may still write.
    announced: u32,
    /// Bytes that are read and not announced again; the next half to announce is at offset [`Self::half`].
    free: u32,
    half: u32,
    /// Number of arrived data messages; credits are granted when it reaches [`Self::grant_at`].
    count: u16,
    grant_at: u16,
    /// The peer's list, in whose entry number [`Self::entry`] this end announces the next buffer.
    list: Region,
    entry: u32,
    is_network_order: bool,
}

impl Stream {
    /// Creates an end that has no data from its peer yet: nothing can be sent.
    pub fn new(sizes: Sizes) -> Self {
        let half = sizes.receive_buffer / 2;
        let nothing = Region { address: 0, key: 0, length: 0 };
        Self {
            sizes,
            state: State::Open,
            is_readable: true,
            is_writable: true,
            was_shut_here: false,
            is_gone: false,
            out: Outgoing {
                data_slots: sizes.send_queue - CONTROL_SLOTS,
                control_slots: 0,
                at: 0,
                room: sizes.send_buffer,
                next: 0,
                limit: 0,
                target: nothing,
                waiting: VecDeque::new(),
                entry: 1,
                end: None,
                keepalive: false,
            },
            incoming: Incoming {
                at: 0,
                arrived: 0,
                announced: half,
                free: half,
                half,
                count: 0,
                grant_at: sizes.receive_queue / 2,
                list: nothing,
                entry: 1,
                is_network_order: false,
            },
        }
    }

    /// Returns the private data for the peer; `list` and `buffer` are addresses and remote keys of this end's memory.
    pub fn hello(&self, list: (u64, u32), buffer: (u64, u32)) -> Hello {
        Hello {
            flags: u8::from(cfg!(target_endian = "big")),
            credits: self.sizes.receive_queue,
            maps: 0,
            list: Region { address: list.0, key: list.1, length: ENTRIES },
            buffer: Region { address: buffer.0, key: buffer.1, length: self.sizes.receive_buffer / 2 },
        }
    }

    /// Handles the peer's private data: from now on data can be sent.
    ///
    /// # Errors
    /// Returns [`Fault::List`] if the peer's list is too short.
    pub fn handle_hello(&mut self, hello: &Hello) -> Result<(), Fault> {
        if hello.list.length < 2 {
            return Err(Fault::List);
        }
        self.out.target = hello.buffer;
        self.out.limit = hello.credits;
        self.out.control_slots = CONTROL_SLOTS;
        self.incoming.list = hello.list;
        self.incoming.is_network_order = hello.flags & 1 != 0;
        Ok(())
    }

    /// Returns the index of the entry of this end's list that the peer writes next.
    pub fn expected_entry(&self) -> u32 {
        self.out.entry
    }

    /// Handles a message that came with a Write of `length` bytes; `entry` is [the expected one](Self::expected_entry)
    /// if the Write was as long as an entry.
    ///
    /// # Errors
    /// Returns a [`Fault`] if the peer may not send this message.
    pub fn handle_message(&mut self, message: Message, length: u32, entry: Option<Region>) -> Result<(), Fault> {
        match message {
            Message::Data(bytes) => {
                let incoming = &mut self.incoming;
                if bytes != length || bytes > incoming.announced {
                    return Err(Fault::Bytes);
                }
                incoming.announced -= bytes;
                incoming.arrived += bytes;
                incoming.count = incoming.count.wrapping_add(1);
            }
            Message::Credits(limit) => {
                self.out.limit = limit;
                if let Some(region) = entry {
                    if self.out.waiting.len() >= ENTRIES as usize {
                        return Err(Fault::Buffers);
                    }
                    self.out.waiting.push_back(region);
                    self.out.entry = (self.out.entry + 1) % ENTRIES;
                }
            }
            // The sender counts this message among its data messages.
            Message::Map(_) => self.incoming.count = self.incoming.count.wrapping_add(1),
            Message::Keepalive => {}
            Message::Shutdown => {
                self.is_readable = false;
                if !self.is_writable {
                    self.close();
                }
            }
            Message::Disconnect => {
                self.is_gone = true;
                self.close();
            }
        }
        Ok(())
    }

    /// Handles the completion of a request that carried this message.
    pub fn handle_sent(&mut self, message: Message) {
        match message {
            Message::Data(bytes) => {
                self.out.data_slots += 1;
                self.out.room += bytes;
            }
            _ => self.out.control_slots += 1,
        }
        if message == Message::Disconnect {
            self.close();
        }
    }

    /// Marks the connection as lost: arrived bytes can still be read, then this `errno` is reported.
    pub fn fail(&mut self, errno: i32) {
        self.is_gone = true;
        if self.state == State::Open {
            self.state = State::Failed(errno);
            self.is_readable = false;
            self.is_writable = false;
        }
    }

    fn close(&mut self) {
        if self.state == State::Open {
            self.state = State::Closed;
        }
        self.is_readable = false;
        self.is_writable = false;
    }

    /// Closes a side of this end, and sends the peer a message where it needs one.
    pub fn shutdown(&mut self, how: How) {
        let (could_read, could_write) = (self.is_readable, self.is_writable);
        if self.state != State::Open || (!could_read && !could_write) {
            return;
        }
        if how != How::Read {
            self.is_writable = false;
            self.was_shut_here = true;
        }
        if how != How::Write {
            self.is_readable = false;
        }
        if !self.is_readable && !self.is_writable {
            self.out.end = Some(Message::Disconnect);
        } else if could_write && !self.is_writable {
            self.out.end = Some(Message::Shutdown);
        }
    }

    /// Requests a keep-alive message to the peer.
    pub fn keep_alive(&mut self) {
        self.out.keepalive = true;
    }

    /// Returns the next data message, of up to `wanted` bytes that are not in the ring yet. `step` limits the length of
    /// a transfer: it begins with [`FIRST_TRANSFER`] and grows during one call of `rsend`.
    pub fn poll_transfer(&mut self, wanted: usize, step: &mut usize) -> Option<Transfer> {
        if wanted == 0 || !self.can_send() {
            return None;
        }
        let out = &mut self.out;
        let mut most = wanted;
        if *step < wanted {
            most = *step;
            *step = (*step * 2).min(LARGEST_TRANSFER);
        }
        let length = u32::try_from(most).unwrap_or(u32::MAX).min(out.room).min(out.target.length);
        let transfer = Transfer { at: out.at, length, address: out.target.address, key: out.target.key };
        out.target.address = out.target.address.wrapping_add(length.into());
        out.target.length -= length;
        out.room -= length;
        out.data_slots -= 1;
        out.next = out.next.wrapping_add(1);
        out.at = (out.at + length) % self.sizes.send_buffer;
        Some(transfer)
    }

    /// Returns whether a data message may be sent.
    pub fn can_send(&mut self) -> bool {
        let out = &mut self.out;
        while out.target.length == 0
            && let Some(next) = out.waiting.pop_front()
        {
            out.target = next;
        }
        let least = LEAST_ROOM.min(self.sizes.send_buffer / 2);
        let has_room = out.data_slots > 0 && out.room >= least;
        self.is_writable && has_room && out.next != out.limit && out.target.length > 0
    }

    /// Returns the next control message that is due.
    pub fn poll_control(&mut self) -> Option<Control> {
        let may = self.out.control_slots > 0 && !self.is_gone;
        let message = if may { self.next_control() } else { None };
        if message.is_some() {
            self.out.control_slots -= 1;
        }
        message
    }

    fn next_control(&mut self) -> Option<Control> {
        let plain = |message| Some(Control { message, entry: None });
        let (incoming, half) = (&mut self.incoming, self.sizes.receive_buffer / 2);
        let has_half = incoming.free >= half;
        let is_due = incoming.count.wrapping_sub(incoming.grant_at).cast_signed() >= 0;
        // A peer that will send no more data needs neither buffers nor credits.
        if self.is_readable && (has_half || is_due) {
            incoming.grant_at = incoming.count.wrapping_add(self.sizes.receive_queue / 2);
            let message = Message::Credits(incoming.count.wrapping_add(self.sizes.receive_queue));
            if !has_half {
                return plain(message);
            }
            let entry = Entry {
                address: incoming.list.address.wrapping_add(u64::from(incoming.entry) * u64::from(ENTRY)),
                key: incoming.list.key,
                offset: incoming.half,
                length: half,
                is_network_order: incoming.is_network_order,
            };
            incoming.entry = (incoming.entry + 1) % incoming.list.length;
            incoming.half = if incoming.half == 0 { half } else { 0 };
            incoming.free -= half;
            incoming.announced += half;
            return Some(Control { message, entry: Some(entry) });
        }
        if let Some(message) = self.out.end.take() {
            return plain(message);
        }
        if std::mem::take(&mut self.out.keepalive) && self.state == State::Open {
            plain(Message::Keepalive)
        } else {
            None
        }
    }

    /// Returns offset and length of the next bytes to read in the receive buffer: `skipped` bytes behind the first, up
    /// to `wanted` and up to the buffer's end. The length is 0 if there are none.
    pub fn piece(&self, skipped: u32, wanted: usize) -> (u32, u32) {
        let incoming = &self.incoming;
        let at = (incoming.at + skipped) % self.sizes.receive_buffer;
        let most = (incoming.arrived - skipped.min(incoming.arrived)).min(self.sizes.receive_buffer - at);
        (at, u32::try_from(wanted).unwrap_or(u32::MAX).min(most))
    }

    /// Marks `bytes` bytes of [`Self::piece`] as read.
    pub fn consume(&mut self, bytes: u32) {
        let incoming = &mut self.incoming;
        incoming.at = (incoming.at + bytes) % self.sizes.receive_buffer;
        incoming.arrived -= bytes;
        incoming.free += bytes;
    }

    /// Returns the number of bytes that can be read.
    pub fn arrived(&self) -> u32 {
        self.incoming.arrived
    }
    /// Returns whether more bytes may come.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }
    /// Returns whether more bytes may be sent.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }
    /// Returns whether this end closed its write side.
    pub fn was_shut_here(&self) -> bool {
        self.was_shut_here
    }
    /// Returns whether neither side has ended the connection.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }
    /// Returns the `errno` with which the connection was lost, if it was.
    pub fn failure(&self) -> Option<i32> {
        if let State::Failed(errno) = self.state { Some(errno) } else { None }
    }
    /// Returns whether all messages are sent and acknowledged, or never will be.
    pub fn is_settled(&self) -> bool {
        let Self { out, sizes, .. } = self;
        self.is_gone || (out.end.is_none() && out.data_slots + out.control_slots == sizes.send_queue)
    }
}

#[cfg(test)]
mod tests;
