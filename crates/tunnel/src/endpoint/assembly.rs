//! Packets put together from the parts that arrive in order through one tunnel.

use selvedge_wire::eqds::v1::{Next, Words};

use super::inside::VnetHeader;

/// The packet that is being put together.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// Words of the packet's parts; `None` between packets.
    words: Option<Words>,
    /// A `virtio_net_hdr` of this host, and the IP packet as far as it has come.
    bytes: Vec<u8>,
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
    /// Adds the next part.
    pub(super) fn add(&mut self, next: Next, payload: &[u8], is_marked: bool) -> Added {
        match next {
            Next::Ip => {
                self.begin(is_marked);
                self.bytes.extend_from_slice(&VnetHeader::default().to_host());
                self.bytes.extend_from_slice(payload);
                Added::Whole { is_marked }
            }
            Next::Super => self.add_part(payload, is_marked).unwrap_or_else(|| {
                self.words = None;
                Added::Broken
            }),
            Next::Native | Next::Vxlan | Next::Other(_) => Added::Broken,
        }
    }

    fn begin(&mut self, is_marked: bool) {
        self.words = None;
        self.bytes.clear();
        self.is_marked = is_marked;
    }

    fn add_part(&mut self, payload: &[u8], is_marked: bool) -> Option<Added> {
        let (words, part) = Words::parse(payload).ok()?;
        if words.offset == 0 {
            self.begin(is_marked);
        } else {
            let own = self.words.filter(|own| own.message == words.message && own.length == words.length)?;
            if own.offset != words.offset {
                return None;
            }
            self.is_marked |= is_marked;
        }
        let offset = words.offset + part.len() as u32;
        self.bytes.extend_from_slice(part);
        if offset < words.length {
            // A part without content would let a sender go on for ever.
            self.words = Some(Words { offset, ..words }).filter(|_| !part.is_empty());
            return self.words.map(|_| Added::Incomplete);
        }
        self.words = None;
        let (header, packet) = self.bytes.split_first_chunk_mut::<{ VnetHeader::LENGTH }>()?;
        *header = VnetHeader::from_peer(header).checked(packet.len())?.to_host();
        Some(Added::Whole { is_marked: self.is_marked })
    }

    /// Returns the packet that was completed last, `virtio_net_hdr` included.
    pub(super) fn packet(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Drops an incomplete packet; returns whether there was one.
    pub(super) fn reset(&mut self) -> bool {
        self.words.take().is_some()
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
    fn parts_of_different_packets_are_not_mixed() {
        let mut assembly = Assembly::default();
        let first = part(1, 0, 30, &[0; 12]);
        for wrong in [part(2, 12, 30, b"x"), part(1, 12, 31, b"x"), part(1, 13, 30, b"x"), part(1, 12, 30, b"")] {
            assert_eq!(assembly.add(Next::Super, &first, false), Added::Incomplete);
            assert_eq!(assembly.add(Next::Super, &wrong, false), Added::Broken);
            assert!(!assembly.reset(), "nothing is left of it");
            assert_eq!(assembly.add(Next::Super, &part(1, 12, 30, &[0; 18]), false), Added::Broken);
        }
        assert_eq!(assembly.add(Next::Super, b"short", false), Added::Broken);
        assert_eq!(assembly.add(Next::Super, &part(3, 0, 4, b"none"), false), Added::Broken, "no room for a header");
        let wrong = [9, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(assembly.add(Next::Super, &part(3, 0, 10, &wrong), false), Added::Broken, "unknown flags");
        assert_eq!(assembly.add(Next::Other(9), b"?", false), Added::Broken);
    }
}
