use std::collections::VecDeque;

use selvedge_units::mix64;

use super::*;

/// Addresses and keys of an end's list and buffer; only their difference matters.
const LIST: (u64, u32) = (0x1000, 0x11);
const BUFFER: (u64, u32) = (0x1_0000_0000, 0x22);

const SMALL: Sizes = Sizes { send_queue: 16, receive_queue: 16, send_buffer: 8_192, receive_buffer: 8_192 };

/// A request that one end posted and the other has not received yet.
enum Posted {
    Data { address: u64, bytes: Vec<u8> },
    Control { message: Message, entry: Option<(u64, [u8; 16])> },
}

/// One end of a connection, with memory.
struct End {
    stream: Stream,
    ring: Vec<u8>,
    buffer: Vec<u8>,
    list: [u8; 32],
    posted: VecDeque<Posted>,
    sizes: Sizes,
}

impl End {
    fn new(sizes: Sizes) -> Self {
        let (ring, buffer) = (vec![0; sizes.send_buffer as usize], vec![0; sizes.receive_buffer as usize]);
        Self { stream: Stream::new(sizes), ring, buffer, list: [0; 32], posted: VecDeque::new(), sizes }
    }
    fn hello(&self) -> Hello {
        self.stream.hello(LIST, BUFFER)
    }
    /// Models `rsend`: posts as many of these bytes as possible; returns their number.
    fn send(&mut self, bytes: &[u8]) -> usize {
        let (mut sent, mut step) = (0, FIRST_TRANSFER);
        while let Some(transfer) = self.stream.poll_transfer(bytes.len() - sent, &mut step) {
            let length = transfer.length as usize;
            for (at, &byte) in bytes[sent..sent + length].iter().enumerate() {
                let place = (transfer.at as usize + at) % self.ring.len();
                self.ring[place] = byte;
            }
            assert_eq!(transfer.key, BUFFER.1);
            let bytes = (0..length).map(|at| self.ring[(transfer.at as usize + at) % self.ring.len()]).collect();
            self.posted.push_back(Posted::Data { address: transfer.address, bytes });
            sent += length;
        }
        sent
    }
    fn control(&mut self) {
        while let Some(Control { message, entry }) = self.stream.poll_control() {
            let entry = entry.map(|entry| {
                assert_eq!(entry.key, LIST.1);
                (entry.address, entry.encode(BUFFER.0, BUFFER.1))
            });
            self.posted.push_back(Posted::Control { message, entry });
        }
    }
    /// Models `rrecv`: reads up to `wanted` bytes.
    fn recv(&mut self, wanted: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < wanted {
            let (at, length) = self.stream.piece(0, wanted - bytes.len());
            if length == 0 {
                break;
            }
            bytes.extend_from_slice(&self.buffer[at as usize..(at + length) as usize]);
            self.stream.consume(length);
        }
        bytes
    }
    /// Delivers the peer's oldest request here, and completes it there; returns whether there was one.
    fn take(&mut self, peer: &mut Self) -> bool {
        let Some(posted) = peer.posted.pop_front() else { return false };
        let message = match posted {
            Posted::Data { address, bytes } => {
                let at = usize::try_from(address - BUFFER.0).expect("the address is within the buffer");
                self.buffer[at..at + bytes.len()].copy_from_slice(&bytes);
                let message = Message::Data(bytes.len() as u32);
                assert_eq!(self.stream.handle_message(message, bytes.len() as u32, None), Ok(()));
                message
            }
            Posted::Control { message, entry } => {
                let region = entry.map(|(address, bytes)| {
                    let at = (address - LIST.0) as usize;
                    self.list[at..at + 16].copy_from_slice(&bytes);
                    let expected = self.stream.expected_entry() as usize * 16;
                    Entry::decode(self.list[expected..].first_chunk().expect("a whole entry"))
                });
                let length = if entry.is_some() { ENTRY } else { 0 };
                assert_eq!(self.stream.handle_message(message, length, region), Ok(()));
                message
            }
        };
        peer.stream.handle_sent(message);
        true
    }
    fn invariants(&self) {
        let incoming = &self.stream.incoming;
        assert_eq!(incoming.arrived + incoming.announced + incoming.free, self.sizes.receive_buffer);
        assert!(self.stream.out.room <= self.sizes.send_buffer);
        assert!(self.stream.out.control_slots <= CONTROL_SLOTS);
    }
}

fn connected(first: Sizes, second: Sizes) -> (End, End) {
    let (mut a, mut b) = (End::new(first), End::new(second));
    assert_eq!(a.stream.handle_hello(&b.hello()), Ok(()));
    assert_eq!(b.stream.handle_hello(&a.hello()), Ok(()));
    (a, b)
}

fn bytes(count: usize, from: u64) -> Vec<u8> {
    (0..count as u64).map(|at| mix64(from + at) as u8).collect()
}

/// Delivers everything that is under way, on both sides.
fn settle(a: &mut End, b: &mut End) {
    loop {
        a.control();
        b.control();
        if !(a.take(b) | b.take(a)) {
            return;
        }
    }
}

#[test]
fn nothing_is_sent_before_the_peer_has_said_where() {
    let mut end = End::new(SMALL);
    assert_eq!(end.send(b"early"), 0);
    end.control();
    assert!(end.posted.is_empty());
}

#[test]
fn the_first_control_message_announces_the_second_half_in_the_second_entry() {
    let (mut a, _) = connected(SMALL, SMALL);
    let control = a.stream.poll_control().expect("a credit update: half of the buffer is free");
    let entry = control.entry.expect("the update announces buffer space");
    assert_eq!(control.message, Message::Credits(16));
    assert_eq!((entry.address, entry.offset, entry.length), (LIST.0 + 16, 4_096, 4_096));
    assert_eq!(a.stream.poll_control(), None);
}

#[test]
fn entries_are_in_the_byte_order_of_who_reads_them() {
    let entry = Entry { address: 0, key: 0, offset: 4, length: 8, is_network_order: true };
    let bytes = entry.encode(0x0102_0304_0506_0700, 0x1112_1314);
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 4, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 8]);
    let mut reversed = bytes;
    [0..8, 8..12, 12..16].into_iter().for_each(|range| reversed[range].reverse());
    assert_eq!(Entry { is_network_order: false, ..entry }.encode(0x0102_0304_0506_0700, 0x1112_1314), reversed);
}

#[test]
fn transfers_begin_small_and_grow() {
    let large = Sizes { send_buffer: 1 << 20, receive_buffer: 1 << 20, ..SMALL };
    let (mut a, mut b) = connected(large, large);
    assert_eq!(a.send(&bytes(200_000, 0)), 200_000);
    let lengths: Vec<_> =
        a.posted.iter().map(|posted| if let Posted::Data { bytes, .. } = posted { bytes.len() } else { 0 }).collect();
    assert_eq!(lengths, [2_048, 4_096, 8_192, 16_384, 32_768, 65_536, 65_536, 5_440]);
    settle(&mut a, &mut b);
    assert_eq!(b.recv(1 << 20), bytes(200_000, 0));
}

#[test]
fn credits_end_and_come_back() {
    let (mut a, mut b) = connected(SMALL, SMALL);
    let sent: usize = (0..40).map(|at| a.send(&bytes(1, at))).sum();
    assert_eq!(sent, 12, "slots of the send queue");
    while b.take(&mut a) {}
    let sent: usize = (12..40).map(|at| a.send(&bytes(1, at))).sum();
    assert_eq!(sent, 4, "credits");
    assert!(!a.stream.can_send());
    settle(&mut a, &mut b);
    assert!(a.stream.can_send(), "they were granted when the messages came");
    assert_eq!(b.recv(99), (0..16).flat_map(|at| bytes(1, at)).collect::<Vec<_>>());
}

#[test]
fn a_full_receive_buffer_stops_the_sender_until_half_is_read() {
    let (mut a, mut b) = connected(Sizes { send_buffer: 1 << 16, ..SMALL }, SMALL);
    settle(&mut a, &mut b);
    let data = bytes(20_000, 5);
    let mut sent = a.send(&data);
    settle(&mut a, &mut b);
    sent += a.send(&data[sent..]);
    settle(&mut a, &mut b);
    assert_eq!((sent, b.stream.arrived()), (8_192, 8_192));
    let mut got = b.recv(4_095);
    settle(&mut a, &mut b);
    assert_eq!(a.send(&data[sent..]), 0, "one byte is missing");
    got.extend(b.recv(1));
    settle(&mut a, &mut b);
    assert_eq!(a.send(&data[sent..]), 4_096);
    settle(&mut a, &mut b);
    got.extend(b.recv(1 << 20));
    assert_eq!(got, data[..12_288]);
}

#[test]
fn bytes_can_be_looked_at_before_they_are_read() {
    let (mut a, mut b) = connected(SMALL, SMALL);
    a.send(&bytes(100, 0));
    settle(&mut a, &mut b);
    assert_eq!(b.stream.piece(0, 1_000), (0, 100));
    assert_eq!(b.stream.piece(40, 1_000), (40, 60));
    assert_eq!(b.stream.piece(100, 1_000), (100, 0));
    assert_eq!(b.stream.piece(200, 1_000).1, 0);
    assert_eq!(b.recv(1_000), bytes(100, 0));
}

#[test]
fn one_side_closes_and_the_other_goes_on() {
    let (mut a, mut b) = connected(SMALL, SMALL);
    a.send(b"question");
    a.stream.shutdown(How::Write);
    assert_eq!(a.send(b"more"), 0);
    settle(&mut a, &mut b);
    assert!(!b.stream.is_readable() && b.stream.is_writable() && a.stream.is_readable());
    assert_eq!(b.recv(99), b"question");
    assert_eq!(b.send(b"answer"), 6);
    b.stream.shutdown(How::Write);
    settle(&mut a, &mut b);
    assert_eq!(a.recv(99), b"answer");
    assert!(!a.stream.is_open() && !b.stream.is_open());
    assert!(a.stream.is_settled() && b.stream.is_settled());
    assert_eq!((a.stream.failure(), b.stream.failure()), (None, None));
}

#[test]
fn both_close_at_once_and_what_is_under_way_still_counts() {
    let (mut a, mut b) = connected(SMALL, SMALL);
    settle(&mut a, &mut b);
    for end in [&mut a, &mut b] {
        end.send(b"last words");
        end.stream.shutdown(How::Write);
        end.control();
    }
    while a.take(&mut b) {}
    assert!(!a.stream.is_open());
    assert!(!a.stream.is_settled(), "its last words are not with the peer yet");
    settle(&mut a, &mut b);
    assert!(a.stream.is_settled());
    assert_eq!((a.recv(99), b.recv(99)), (b"last words".to_vec(), b"last words".to_vec()));
}

#[test]
fn what_arrived_before_the_end_can_be_read_after_it() {
    let (mut a, mut b) = connected(SMALL, SMALL);
    a.send(b"bye");
    a.stream.shutdown(How::Both);
    settle(&mut a, &mut b);
    assert!(!b.stream.is_open() && !b.stream.is_writable());
    assert_eq!(b.recv(99), b"bye");
    assert_eq!(b.stream.failure(), None);
    let (_, mut c) = connected(SMALL, SMALL);
    c.stream.fail(libc::ECONNRESET);
    assert_eq!(c.stream.failure(), Some(libc::ECONNRESET));
    assert!(c.stream.is_settled() && !c.stream.can_send());
}

#[test]
fn signs_of_life_are_sent_and_ignored() {
    let (mut a, mut b) = connected(SMALL, SMALL);
    settle(&mut a, &mut b);
    a.stream.keep_alive();
    a.control();
    assert_eq!(a.posted.len(), 1);
    settle(&mut a, &mut b);
    assert!(a.stream.is_settled() && b.stream.is_open());
}

#[test]
fn what_a_peer_may_not_say_is_a_fault() {
    let region = Region { address: 1, key: 2, length: 3 };
    let list = |length| Hello { list: Region { length, ..region }, ..End::new(SMALL).hello() };
    for length in [0, 1] {
        assert_eq!(Stream::new(SMALL).handle_hello(&list(length)), Err(Fault::List));
    }
    assert_eq!(Stream::new(SMALL).handle_hello(&list(u32::MAX)), Ok(()));
    let mut end = Stream::new(SMALL);
    assert_eq!(end.handle_message(Message::Data(4_097), 4_097, None), Err(Fault::Bytes), "more than there is room for");
    assert_eq!(end.handle_message(Message::Data(5), 4, None), Err(Fault::Bytes), "more than it wrote");
    assert_eq!(end.handle_message(Message::Data(4_096), 4_096, None), Ok(()));
    assert_eq!(end.handle_message(Message::Data(1), 1, None), Err(Fault::Bytes));
    for _ in 0..2 {
        assert_eq!(end.handle_message(Message::Credits(0), ENTRY, Some(region)), Ok(()));
    }
    assert_eq!(end.handle_message(Message::Credits(0), ENTRY, Some(region)), Err(Fault::Buffers));
}

/// Checks that arbitrary messages of a peer cause no panic and keep the sums consistent.
#[test]
fn nothing_that_a_peer_says_does_harm() {
    for seed in 0..2_000_u64 {
        let mut random = (0..).map(move |at| mix64(seed << 32 | at));
        let mut number = move || random.next().expect("an endless sequence");
        let mut end = End::new(SMALL);
        let region = |n: u64| Region { address: n, key: n as u32, length: (n >> 32) as u32 };
        let hello = Hello { list: region(number()), buffer: region(number()), credits: number() as u16, ..end.hello() };
        let _ = end.stream.handle_hello(&hello);
        for _ in 0..200 {
            let n = number();
            match n % 9 {
                0 => {
                    _ = end.stream.handle_message(Message::Data((n >> 8) as u32 % 3_000), (n >> 8) as u32 % 3_000, None)
                }
                1 => _ = end.stream.handle_message(Message::Credits((n >> 8) as u16), 0, None),
                2 => _ = end.stream.handle_message(Message::Credits((n >> 8) as u16), 16, Some(region(number()))),
                3 => _ = end.stream.handle_message(Message::Map(7), 24, None),
                4 if n >> 60 == 0 => _ = end.stream.handle_message(Message::Shutdown, 0, None),
                5 if n >> 60 == 0 => _ = end.stream.handle_message(Message::Disconnect, 0, None),
                6 => _ = end.recv((n >> 8) as usize % 5_000),
                7 => {
                    let mut step = FIRST_TRANSFER;
                    if let Some(transfer) = end.stream.poll_transfer((n >> 8) as usize % 5_000, &mut step) {
                        assert!(transfer.at < SMALL.send_buffer && transfer.length <= SMALL.send_buffer);
                        end.stream.handle_sent(Message::Data(transfer.length));
                    }
                }
                _ => {
                    if let Some(control) = end.stream.poll_control() {
                        end.stream.handle_sent(control.message);
                    }
                }
            }
            end.invariants();
        }
    }
}

/// Checks that every byte arrives in order, in both directions, under random schedules of calls and arrivals.
#[test]
fn every_byte_arrives_in_order_whatever_the_schedule() {
    for seed in 0..300_u64 {
        let mut random = (0..).map(move |at| mix64(seed << 32 | at));
        let mut number = move |below: u64| random.next().expect("an endless sequence") % below;
        let sizes = |n: u64, m: u64| Sizes {
            send_queue: 16 + (n % 50) as u16,
            receive_queue: 16 + (m % 50) as u16,
            send_buffer: 4_096 + (n % 9_000) as u32,
            receive_buffer: 4_096 + (m % 9_000) as u32 / 2 * 2,
        };
        let (first, second) = (sizes(number(1 << 20), number(1 << 20)), sizes(number(1 << 20), number(1 << 20)));
        let (mut a, mut b) = connected(first, second);
        let data = [bytes(100_000, seed), bytes(70_000, seed + 1)];
        let (mut sent, mut got) = ([0, 0], [Vec::new(), Vec::new()]);
        for step in 0.. {
            assert!(step < 1_000_000, "seed {seed}: it stands still at {sent:?}");
            let turn = number(2) as usize;
            let (one, other) = if turn == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            let most = if number(4) == 0 { 20_000 } else { 300 };
            match number(4) {
                0 => {
                    let end = data[turn].len().min(sent[turn] + 1 + number(most) as usize);
                    sent[turn] += one.send(&data[turn][sent[turn]..end]);
                    if sent[turn] == data[turn].len() && one.stream.is_writable() {
                        one.stream.shutdown(How::Write);
                    }
                }
                1 => got[1 - turn].extend(one.recv(1 + number(most) as usize)),
                2 => one.control(),
                _ => _ = one.take(other),
            }
            a.invariants();
            b.invariants();
            let is_over = |end: &End| !end.stream.is_readable() && end.stream.arrived() == 0 && end.stream.is_settled();
            if is_over(&a) && is_over(&b) {
                break;
            }
        }
        assert!(got == data, "seed {seed}");
    }
}

/// Checks the wrap of 16-bit sequence numbers.
#[test]
fn sequence_numbers_wrap() {
    let sizes = Sizes { receive_queue: 384, send_queue: 384, ..SMALL };
    let (mut a, mut b) = connected(sizes, sizes);
    for at in 0..200_000 {
        assert_eq!(a.send(&[at as u8]), 1, "{at}");
        settle(&mut a, &mut b);
        assert_eq!(b.recv(2), [at as u8]);
    }
}
