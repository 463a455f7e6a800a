//! The wire format that two ends exchange: private data of the connection, and immediates.

/// Length of the private data of a request and of a reply in bytes.
pub const HELLO: usize = 40;
const VERSION: u8 = 1;
const NUMBER: u32 = (1 << 29) - 1;

/// Memory of the peer: address, remote key, length (bytes, or entries for a list of buffers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    pub address: u64,
    pub key: u32,
    pub length: u32,
}

/// Private data of a connection's request or reply. All numbers are big-endian on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Flags. Bit 0: the sender has network byte order. Bit 1: it has a table of mapped regions.
    pub flags: u8,
    /// Number of receives that the sender posted: messages that may be sent to it.
    pub credits: u16,
    /// Scaled size of the table of mapped regions, as encoded on the wire.
    pub maps: u8,
    /// List into which the receiver writes the addresses of its own buffers; its length is a number of entries.
    pub list: Region,
    /// First buffer that the receiver may write into.
    pub buffer: Region,
}

impl Hello {
    pub fn encode(&self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[0] = VERSION;
        bytes[1] = self.flags;
        bytes[2..4].copy_from_slice(&self.credits.to_be_bytes());
        bytes[7] = self.maps;
        for (at, region) in [(8, self.list), (24, self.buffer)] {
            bytes[at..at + 8].copy_from_slice(&region.address.to_be_bytes());
            bytes[at + 8..at + 12].copy_from_slice(&region.key.to_be_bytes());
            bytes[at + 12..at + 16].copy_from_slice(&region.length.to_be_bytes());
        }
        bytes
    }

    /// Decodes private data, which the CM may have padded; `None` if it is too short or of another version.
    pub fn decode(bytes: &[u8]) -> Option<Hello> {
        let bytes: &[u8; HELLO] = bytes.first_chunk()?;
        let long = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let region = |at: usize| {
            let address = u64::from(long(at)?) << 32 | u64::from(long(at + 4)?);
            Some(Region { address, key: long(at + 8)?, length: long(at + 12)? })
        };
        let credits = u16::from_be_bytes([bytes[2], bytes[3]]);
        let hello = Hello { flags: bytes[1], credits, maps: bytes[7], list: region(8)?, buffer: region(24)? };
        (bytes[0] == VERSION).then_some(hello)
    }
}

/// A message in an immediate: the three high bits are the kind, the 29 low bits the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Bytes written into the buffer, at most 2^29 - 1.
    Data(u32),
    /// Sequence number (modulo 2^16) up to which the sender can accept messages.
    Credits(u16),
    /// Index of the changed entry in the table of mapped regions.
    Map(u16),
    Disconnect,
    Keepalive,
    /// The sender sends no more data.
    Shutdown,
}

impl Message {
    /// Returns the immediate in host byte order; the poster converts it to network byte order.
    pub fn encode(self) -> u32 {
        let (kind, number) = match self {
            Message::Data(bytes) => (0, bytes & NUMBER),
            Message::Credits(last) => (4, last.into()),
            Message::Map(index) => (6, index.into()),
            Message::Disconnect => (7, 0),
            Message::Keepalive => (7, 1),
            Message::Shutdown => (7, 2),
        };
        kind << 29 | number
    }

    /// Decodes an immediate in host byte order; `None` for reserved kinds and for unknown control messages.
    pub fn decode(immediate: u32) -> Option<Message> {
        let number = immediate & NUMBER;
        match (immediate >> 29, number) {
            (0, _) => Some(Message::Data(number)),
            // rdma-core adds to a 16-bit number without truncating the sum: the bits above are carry.
            (4, _) => Some(Message::Credits((number & 0xffff) as u16)),
            (6, _) => Some(Message::Map((number & 0xffff) as u16)),
            (7, 0) => Some(Message::Disconnect),
            (7, 1) => Some(Message::Keepalive),
            (7, 2) => Some(Message::Shutdown),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_data_has_its_fields_where_the_peer_reads_them() {
        let list = Region { address: 0x0102_0304_0506_0708, key: 0x1112_1314, length: 2 };
        let buffer = Region { address: 0x2122_2324_2526_2728, key: 0x3132_3334, length: 65_536 };
        let hello = Hello { flags: 2, credits: 384, maps: 5, list, buffer };
        let bytes = hello.encode();
        assert_eq!(bytes[..8], [1, 2, 1, 128, 0, 0, 0, 5]);
        assert_eq!(bytes[8..24], [1, 2, 3, 4, 5, 6, 7, 8, 17, 18, 19, 20, 0, 0, 0, 2]);
        assert_eq!(bytes[36..], [0, 1, 0, 0]);
        let mut padded = bytes.to_vec();
        padded.resize(56, 0);
        assert_eq!(Hello::decode(&padded), Some(hello));
        assert_eq!(Hello::decode(&bytes[..39]), None);
        padded[0] = 2;
        assert_eq!(Hello::decode(&padded), None);
    }

    #[test]
    fn immediates_survive_and_reserved_kinds_are_refused() {
        let known = [
            (Message::Data(NUMBER), 0x1fff_ffff),
            (Message::Credits(65_535), 0x8000_ffff),
            (Message::Map(3), 0xc000_0003),
            (Message::Disconnect, 0xe000_0000),
            (Message::Keepalive, 0xe000_0001),
            (Message::Shutdown, 0xe000_0002),
        ];
        for (message, immediate) in known {
            assert_eq!(message.encode(), immediate);
            assert_eq!(Message::decode(immediate), Some(message));
        }
        for immediate in [1 << 29, 2 << 29, 3 << 29, 5 << 29, 0xe000_0003] {
            assert_eq!(Message::decode(immediate), None, "{immediate:#x}");
        }
    }

    #[test]
    fn credits_of_a_peer_whose_sequence_wraps_are_cut_to_16_bits() {
        assert_eq!(Message::decode(4 << 29 | (65_500 + 384)), Some(Message::Credits(348)));
    }
}
