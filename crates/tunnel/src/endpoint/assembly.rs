//! Packets put together from parts, which an unordered tunnel hands over in any order.

use std::collections::VecDeque;

use selvedge_wire::eqds::v1::{Head, Next, Words};

use super::Endpoint;
use super::inside::VnetHeader;

/// Most bytes of incomplete packets, and most of these packets; beyond, the oldest are dropped. What an honest sender
/// has in flight is less.
const MOST_BYTES: usize = 16 << 20;
const MOST_PACKETS: usize = 4_096;
/// Most gaps in a packet.
const MOST_GAPS: usize = 1_024;

/// Incomplete packets of one tunnel, and the packet that was completed last.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Incomplete packets, by message id: the oldest first, unless ids have wrapped.
    partial: VecDeque<Partial>,
    /// Bytes that the packets of `partial` take in memory.
    held: usize,
    /// A `virtio_net_hdr` of this host and the IP packet, or a native message.
    whole: Vec<u8>,
}

/// A packet of which parts are missing.
#[derive(Debug)]
struct Partial {
    message: u32,
    length: u32,
    /// The packet as far as it has come; bytes within gaps are zero.
    bytes: Vec<u8>,
    /// Bytes at the start without a gap.
    filled: u32,
    /// Ranges that have come, from and to, each behind a gap; the first begins after `filled`.
    beyond: Vec<(u32, u32)>,
    /// Whether a part carried a mark of congestion.
    is_marked: bool,
}

/// Result of a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Added {
    /// The packet is complete; `is_marked` tells whether a datagram with one of its parts carried a mark of congestion.
    Whole {
        /// Whether a part was marked.
        is_marked: bool,
    },
    /// Parts are missing.
    Incomplete,
    /// The part belongs to no packet, or its protocol is unknown.
    Broken,
}

impl Assembly {
    /// Adds a part.
    pub(super) fn add(&mut self, next: Next, payload: &[u8], is_marked: bool) -> Added {
        match next {
            Next::Ip => {
                self.whole.clear();
                self.whole.extend_from_slice(&VnetHeader::default().to_host());
                self.whole.extend_from_slice(payload);
                Added::Whole { is_marked }
            }
            Next::Super => match self.add_part(payload, is_marked, Endpoint::LONGEST_INSIDE) {
                Some(Added::Whole { is_marked }) if self.take_header().is_some() => Added::Whole { is_marked },
                Some(Added::Incomplete) => Added::Incomplete,
                _ => Added::Broken,
            },
            Next::Native => {
                let longest = Endpoint::LONGEST_MESSAGE + Head::LONGEST;
                self.add_part(payload, is_marked, longest).unwrap_or(Added::Broken)
            }
            Next::Vxlan | Next::Other(_) => Added::Broken,
        }
    }

    /// Turns the header of a super-packet of a peer into one of this host.
    fn take_header(&mut self) -> Option<()> {
        let (header, packet) = self.whole.split_first_chunk_mut::<{ VnetHeader::LENGTH }>()?;
        *header = VnetHeader::from_peer(header).checked(packet.len())?.to_host();
        Some(())
    }

    fn add_part(&mut self, payload: &[u8], is_marked: bool, longest: usize) -> Option<Added> {
        let (words, part) = Words::parse(payload).ok()?;
        // A part without content would let a sender go on for ever.
        if part.is_empty() || words.length as usize > longest {
            return None;
        }
        let at = match self.partial.binary_search_by_key(&words.message, |partial| partial.message) {
            Ok(at) => at,
            Err(at) => {
                self.begin(at, &words);
                at
            }
        };
        let partial = &mut self.partial[at];
        let before = partial.bytes.len();
        if partial.length != words.length || partial.beyond.len() > MOST_GAPS {
            self.drop_at(at);
            return None;
        }
        partial.is_marked |= is_marked;
        partial.fill(words.offset, part);
        if partial.filled < partial.length {
            self.held += partial.bytes.len() - before;
            while self.held > MOST_BYTES || self.partial.len() > MOST_PACKETS {
                self.drop_at(0);
            }
            return Some(Added::Incomplete);
        }
        self.held -= before;
        let Partial { bytes, is_marked, .. } = self.partial.remove(at)?;
        self.whole = bytes;
        Some(Added::Whole { is_marked })
    }

    /// Begins a packet at a place in the list, with the memory of the last one.
    fn begin(&mut self, at: usize, words: &Words) {
        let mut bytes = std::mem::take(&mut self.whole);
        bytes.clear();
        let Words { message, length, .. } = *words;
        let partial = Partial { message, length, bytes, filled: 0, beyond: Vec::new(), is_marked: false };
        self.partial.insert(at, partial);
    }

    fn drop_at(&mut self, at: usize) {
        let dropped = self.partial.remove(at);
        self.held -= dropped.map_or(0, |partial| partial.bytes.len());
    }

    /// Returns the packet that was completed last, `virtio_net_hdr` included, or the native message with its head.
    pub(super) fn packet(&mut self) -> &mut Vec<u8> {
        &mut self.whole
    }

    /// Drops incomplete packets.
    pub(super) fn reset(&mut self) {
        self.partial.clear();
        self.held = 0;
    }
}

impl Partial {
    /// Puts a part, which lies within the packet, to its place; bytes that came before stay or are replaced.
    fn fill(&mut self, offset: u32, part: &[u8]) {
        let (from, to) = (offset as usize, offset as usize + part.len());
        if from == self.bytes.len() {
            self.bytes.extend_from_slice(part);
        } else {
            self.bytes.resize(self.bytes.len().max(to), 0);
            self.bytes[from..to].copy_from_slice(part);
        }
        self.note(offset, to as u32);
    }

    /// Notes that the bytes from `from` to `to` have come.
    fn note(&mut self, from: u32, mut to: u32) {
        if from > self.filled {
            let first = self.beyond.partition_point(|range| range.1 < from);
            let after = self.beyond.partition_point(|range| range.0 <= to);
            let joined = self.beyond.drain(first..after);
            let range = joined.fold((from, to), |(a, b), (c, d)| (a.min(c), b.max(d)));
            self.beyond.insert(first, range);
            return;
        }
        let reached = self.beyond.partition_point(|range| range.0 <= to);
        to = self.beyond.drain(..reached).fold(to, |to, range| to.max(range.1));
        self.filled = self.filled.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(message: u32, offset: u32, length: u32, bytes: &[u8]) -> Vec<u8> {
        [&Words { message, offset, length }.emit()[..], bytes].concat()
    }

    #[test]
    fn parts_in_order_make_a_packet() {
        let mut assembly = Assembly::default();
        let vnet = [0; VnetHeader::LENGTH];
        assert_eq!(assembly.add(Next::Super, &part(1, 0, 14, &vnet), false), Added::Incomplete);
        assert_eq!(assembly.add(Next::Super, &part(1, 10, 14, b"ab"), true), Added::Incomplete);
        assert_eq!(assembly.add(Next::Super, &part(1, 12, 14, b"cd"), false), Added::Whole { is_marked: true });
        assert_eq!(assembly.packet()[VnetHeader::LENGTH..], *b"abcd");
        assert_eq!(assembly.add(Next::Ip, b"whole", false), Added::Whole { is_marked: false });
        assert_eq!(assembly.packet()[VnetHeader::LENGTH..], *b"whole");
    }

    #[test]
    fn parts_in_any_order_and_of_several_packets_make_packets() {
        let content: Vec<u8> = (0..=255).collect();
        let packet = [&[0; VnetHeader::LENGTH][..], &content].concat();
        // Parts of 7 bytes, in an order that leaves gaps, each twice, of three packets at a time.
        let mut places: Vec<usize> = (0..packet.len()).step_by(7).collect();
        places.sort_by_key(|at| at * 5 % 38);
        let mut assembly = Assembly::default();
        let mut whole = 0;
        for (count, at) in places.iter().flat_map(|at| [at, at]).enumerate() {
            let bytes = &packet[*at..(at + 7).min(packet.len())];
            for message in [9, 3, 7] {
                let added = assembly.add(Next::Super, &part(message, *at as u32, packet.len() as u32, bytes), false);
                if let Added::Whole { .. } = added {
                    whole += 1;
                    assert_eq!(assembly.packet()[VnetHeader::LENGTH..], content);
                    assert_eq!(count + 2, 2 * places.len(), "the last part completes it");
                }
            }
        }
        assert_eq!(whole, 3);
        assembly.reset();
        assert_eq!((assembly.held, assembly.partial.len()), (0, 0));
    }

    #[test]
    fn a_sender_that_completes_nothing_is_bounded() {
        let mut assembly = Assembly::default();
        let full = Endpoint::LONGEST_INSIDE as u32;
        for message in 0..MOST_PACKETS as u32 + 100 {
            assembly.add(Next::Super, &part(message, full - 2, full, b"x"), false);
        }
        assert!(assembly.held <= MOST_BYTES && assembly.partial.len() <= MOST_PACKETS);
        for message in 0..2 * MOST_PACKETS as u32 {
            assembly.add(Next::Super, &part(message, 1, 3, b"x"), false);
        }
        assert!(assembly.partial.len() <= MOST_PACKETS);
        let held: usize = assembly.partial.iter().map(|partial| partial.bytes.len()).sum();
        assert_eq!(assembly.held, held);
        let last = 3 * MOST_PACKETS as u32;
        let added: Vec<Added> = (0..=2 * MOST_GAPS as u32 + 2)
            .map(|at| assembly.add(Next::Super, &part(last, 2 * at + 1, full, b"x"), false))
            .collect();
        assert!(added.contains(&Added::Broken), "gaps without end");
        assert_eq!(assembly.add(Next::Super, &part(1, 0, full + 1, b"x"), false), Added::Broken, "too long");
    }

    #[test]
    fn wrong_parts_are_refused() {
        let mut assembly = Assembly::default();
        let first = part(1, 0, 30, &[0; 12]);
        for wrong in [part(1, 12, 31, b"x"), part(1, 12, 29, b"x"), part(1, 12, 30, b""), b"short".to_vec()] {
            assert_eq!(assembly.add(Next::Super, &first, false), Added::Incomplete);
            assert_eq!(assembly.add(Next::Super, &wrong, false), Added::Broken);
            assembly.reset();
        }
        assert_eq!(assembly.add(Next::Super, &part(3, 0, 4, b"none"), false), Added::Broken, "no room for a header");
        let wrong = [9, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(assembly.add(Next::Super, &part(3, 0, 10, &wrong), false), Added::Broken, "unknown flags");
        assert_eq!(assembly.add(Next::Other(9), b"?", false), Added::Broken);
    }
}
