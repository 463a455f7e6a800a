//! The file format pcapng (IETF draft-ietf-opsawg-pcapng): blocks of little-endian words.
//!
//! | block                  | here                                                    |
//! |------------------------|---------------------------------------------------------|
//! | section header         | once, with the program that wrote it                    |
//! | interface description  | one per port, before its first packet                   |
//! | name resolution        | one per host, before its first packet                   |
//! | enhanced packet        | one per packet and port: time, direction, comment, bytes|

use std::io::{self, Write};
use std::net::Ipv4Addr;

use selvedge_units::{Instant, Rate};

/// A capture file in construction.
pub(crate) struct Pcapng<W> {
    out: W,
    /// Largest number of bytes kept of each packet.
    snaplen: usize,
    interfaces: u32,
    /// Content of the present block.
    block: Vec<u8>,
}

/// An interface of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interface(u32);

/// The direction of a packet, as seen by the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    In = 0b01,
    Out = 0b10,
}

/// Longest packet in bytes, for which readers allocate memory.
pub(crate) const LONGEST: usize = 262_144;

mod kind {
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const NAMES: u32 = 4;
    pub(super) const PACKET: u32 = 6;
}

mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const USER_APPLICATION: u16 = 4;
    pub(super) const NAME: u16 = 2;
    pub(super) const DESCRIPTION: u16 = 3;
    pub(super) const SPEED: u16 = 8;
    pub(super) const TIME_RESOLUTION: u16 = 9;
    pub(super) const FLAGS: u16 = 2;
}

/// Type of a record that names an IPv4 address.
const IPV4_NAME: u16 = 1;
/// Type of the record that ends a list of names.
const END_OF_NAMES: u16 = 0;
/// Link type of Ethernet in pcap.
const ETHERNET: u16 = 1;
/// Resolution of time stamps: nanoseconds, as a negative power of 10.
const NANOSECONDS: u8 = 9;

impl<W: Write> Pcapng<W> {
    /// Begins a capture by `program` that keeps at most `snaplen` bytes of each packet.
    pub(crate) fn begin(out: W, program: &str, snaplen: usize) -> io::Result<Self> {
        let mut file = Self { out, snaplen, interfaces: 0, block: Vec::new() };
        file.open(kind::SECTION);
        file.words(&[0x1a2b_3c4d, 0x0000_0001]); // byte order; version 1.0
        file.words(&[u32::MAX, u32::MAX]); // length of the section: unknown
        file.option(option::USER_APPLICATION, program.as_bytes());
        file.close()?;
        Ok(file)
    }

    /// Adds an interface.
    pub(crate) fn interface(&mut self, name: &str, description: &str, speed: Rate) -> io::Result<Interface> {
        self.open(kind::INTERFACE);
        self.block.extend(ETHERNET.to_le_bytes());
        self.block.extend([0; 2]);
        self.words(&[if self.snaplen < LONGEST { self.snaplen as u32 } else { 0 }]);
        self.option(option::NAME, name.as_bytes());
        self.option(option::DESCRIPTION, description.as_bytes());
        self.option(option::SPEED, &speed.as_bps().to_le_bytes());
        self.option(option::TIME_RESOLUTION, &[NANOSECONDS]);
        self.close()?;
        self.interfaces += 1;
        Ok(Interface(self.interfaces - 1))
    }

    /// Adds the name of an address.
    pub(crate) fn name(&mut self, address: Ipv4Addr, name: &str) -> io::Result<()> {
        self.open(kind::NAMES);
        let value = [&address.octets(), name.as_bytes(), &[0]].concat();
        self.option(IPV4_NAME, &value);
        self.option(END_OF_NAMES, &[]);
        self.close()
    }

    /// Adds a packet of `length` bytes that `interface` saw; `bytes` are the captured ones.
    pub(crate) fn packet(
        &mut self,
        interface: Interface,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
        length: usize,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let captured = &bytes[..bytes.len().min(self.snaplen).min(length)];
        let ns = at.as_ps() / 1_000;
        self.open(kind::PACKET);
        self.words(&[interface.0, (ns >> 32) as u32, ns as u32, captured.len() as u32, length as u32]);
        self.padded(captured);
        self.option(option::FLAGS, &(direction as u32).to_le_bytes());
        if let Some(comment) = comment {
            self.option(option::COMMENT, comment.as_bytes());
        }
        self.close()
    }

    /// Flushes everything to the operating system.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn open(&mut self, kind: u32) {
        self.block.clear();
        self.words(&[kind, 0]); // the length follows
    }

    /// Writes the block, with its length at both ends.
    fn close(&mut self) -> io::Result<()> {
        if self.block.len() > 8 {
            self.option(option::END, &[]);
        }
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.words(&[length]);
        self.out.write_all(&self.block)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn words(&mut self, words: &[u32]) {
        self.block.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Adds bytes, padded with zeros to the next word.
    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}
