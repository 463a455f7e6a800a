//! All headers of an InfiniBand transport packet (architecture, volume 1, chapter 9): the BTH, and the headers that its
//! opcode determines.
//!
//! | header     | of                                                    | bytes |
//! |------------|-------------------------------------------------------|-------|
//! | DETH       | datagrams                                             | 8     |
//! | FETH       | flush requests                                        | 4     |
//! | RETH       | first or only packets of Writes, Read and flush requests, atomic writes | 16 |
//! | AtomicETH  | atomic requests                                       | 28    |
//! | AETH       | acknowledgements, first, last or only Read responses  | 4     |
//! | AtomicAckETH | atomic responses                                    | 8     |
//! | ImmDt      | last or only packets with an immediate                | 4     |
//! | IETH       | last or only packets of Sends that invalidate         | 4     |
//!
//! Between two Selvedge ends, every packet of a Write has a RETH (IRN, section 5.3.1), every packet of a Read's answer
//! an AETH, and [`Extension`] and [`Placement`] follow: see [`Headers::ours`].

mod atomic;
mod datagram;
mod deth;
mod feth;
pub mod opcode;
mod placement;

pub use atomic::AtomicEth;
pub use datagram::Datagram;
pub use deth::Deth;
pub use feth::Feth;
pub use placement::Placement;

use crate::aeth::Aeth;
use crate::bth::Bth;
use crate::error::{ParseError, take};
use crate::extension::Extension;
use crate::holes::{Hole, Holes};
use crate::reth::Reth;

/// All headers of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Headers {
    /// The base transport header. Its `pad` is derived from the payload.
    pub bth: Bth,
    /// Selvedge's use of the BTH's reserved bits, which other implementations ignore.
    pub ours: Ours,
    /// Sender of a datagram.
    pub deth: Option<Deth>,
    /// Guarantee requested by a flush.
    pub flush: Option<Feth>,
    /// Memory that a Write, a Read or a flush is about.
    pub reth: Option<Reth>,
    /// Operands of an atomic operation.
    pub atomic: Option<AtomicEth>,
    /// Acknowledgement by the responder.
    pub aeth: Option<Aeth>,
    /// Value before an atomic operation.
    pub original: Option<u64>,
    /// Four bytes for the receiver's application.
    pub immediate: Option<[u8; 4]>,
    /// Key to be invalidated.
    pub invalidate: Option<u32>,
    /// Time stamp and SACK.
    pub extension: Option<Extension>,
    /// Position of the packet, independent of the order of arrival.
    pub placement: Option<Placement>,
    /// Missing packets (MELO).
    pub holes: Option<Holes>,
}

/// The seven reserved bits after the BTH's acknowledgement request: zero from other implementations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ours {
    /// A standard packet of an implementation without Selvedge's schemes.
    #[default]
    No,
    /// A standard packet of an end that prefers this scheme, 0 to 15.
    Offers(u8),
    /// A packet with Selvedge's headers, of a queue pair that uses this scheme, 0 to 15.
    Uses(u8),
}

impl Ours {
    const OFFERS: u8 = 0x20;
    const USES: u8 = 0x60;

    /// Decodes the reserved bits. Unknown values count as zero, as the standard requires.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0x70 {
            Self::OFFERS => Self::Offers(bits & 0x0f),
            Self::USES => Self::Uses(bits & 0x0f),
            _ => Self::No,
        }
    }
    /// Returns the reserved bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::No => 0,
            Self::Offers(scheme) => Self::OFFERS | scheme & 0x0f,
            Self::Uses(scheme) => Self::USES | scheme & 0x0f,
        }
    }
}

impl Headers {
    /// Most bytes of all headers together.
    pub const LONGEST: usize = 96;
    /// Position of the reserved bits in a BTH.
    const RESERVED: usize = 8;

    /// Resets the headers to `bth` alone. Faster than constructing new headers, which are large.
    #[inline]
    pub fn begin(&mut self, bth: Bth) {
        self.bth = bth;
        self.ours = Ours::No;
        (self.deth, self.flush, self.reth, self.atomic, self.aeth) = (None, None, None, None, None);
        (self.original, self.immediate, self.invalidate) = (None, None, None);
        (self.extension, self.placement, self.holes) = (None, None, None);
    }

    /// Returns the bytes of the headers.
    pub fn length(&self) -> usize {
        let of = |there: bool, length: usize| if there { length } else { 0 };
        Bth::LENGTH
            + of(self.deth.is_some(), Deth::LENGTH)
            + of(self.flush.is_some(), Feth::LENGTH)
            + of(self.reth.is_some(), Reth::LENGTH)
            + of(self.atomic.is_some(), AtomicEth::LENGTH)
            + of(self.aeth.is_some(), Aeth::LENGTH)
            + of(self.original.is_some(), size_of::<u64>())
            + of(self.immediate.is_some(), 4)
            + of(self.invalidate.is_some(), size_of::<u32>())
            + of(self.extension.is_some(), Extension::LENGTH)
            + of(self.placement.is_some(), Placement::LENGTH)
            + of(self.holes.is_some(), Hole::THREE)
    }

    /// Returns the bytes of the headers in a standard packet with this opcode, without Selvedge's additions.
    pub fn standard_length(&self) -> usize {
        let layout = opcode::layout(self.bth.opcode).unwrap_or_default();
        let of = |there: bool, length: usize| if there { length } else { 0 };
        let ours = of(self.extension.is_some(), Extension::LENGTH)
            + of(self.placement.is_some(), Placement::LENGTH)
            + of(self.holes.is_some(), Hole::THREE)
            + of(layout.write && self.reth.is_some(), Reth::LENGTH)
            + of(layout.middle && self.aeth.is_some(), Aeth::LENGTH);
        self.length() - ours
    }
    /// Returns the bytes of the headers that a packet of a queue pair with a Selvedge scheme has in the format of IRN's
    /// paper, sections 5.3 and 6.3:
    ///
    /// | packet | on top of RoCE's headers |
    /// |---|---|
    /// | each of a Send | 6 bytes: recv_WQE_SN and the packet's place in the message |
    /// | each of a Write | a RETH, 16 bytes, which in RoCE the first packet alone has |
    /// | the last of a Write with an immediate | 3 bytes more: recv_WQE_SN |
    /// | a request that has an answer | 3 bytes: read_WQE_SN |
    /// | answers, acknowledgements | nothing |
    ///
    /// A standard packet has its own length.
    pub fn irn_length(&self) -> usize {
        use opcode::operation as op;
        /// Bytes of a sequence number.
        const NUMBER: usize = 3;
        let standard = self.standard_length();
        if !matches!(self.ours, Ours::Uses(_)) {
            return standard;
        }
        let more = match self.bth.opcode {
            op::SEND_FIRST..=op::SEND_ONLY_IMMEDIATE | op::SEND_LAST_INVALIDATE | op::SEND_ONLY_INVALIDATE => {
                2 * NUMBER
            }
            op::WRITE_MIDDLE | op::WRITE_LAST => Reth::LENGTH,
            op::WRITE_LAST_IMMEDIATE => Reth::LENGTH + NUMBER,
            op::WRITE_ONLY_IMMEDIATE
            | op::READ_REQUEST
            | op::COMPARE_SWAP
            | op::FETCH_ADD
            | op::ATOMIC_WRITE
            | op::FLUSH => NUMBER,
            _ => 0,
        };
        standard + more
    }

    /// Reads the headers of a packet without its ICRC; also returns the payload without padding.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut headers = Self::default();
        let payload = headers.read(bytes)?;
        Ok((headers, payload))
    }
    /// Reads the headers of a packet without its ICRC into `self`, replacing all fields; returns the payload without
    /// padding.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], ParseError> {
        let (bth, rest) = Bth::parse(bytes)?;
        self.bth = bth;
        self.ours = Ours::from_bits(bytes[Self::RESERVED] & 0x7f);
        let layout = opcode::layout(bth.opcode).ok_or(ParseError::Opcode(bth.opcode))?;
        let is_ours = matches!(self.ours, Ours::Uses(_));
        let mut reader = Reader(rest);
        reader.read(&mut self.deth, layout.deth, Deth::parse)?;
        reader.read(&mut self.flush, layout.flush, Feth::parse)?;
        reader.read(&mut self.reth, layout.reth || (is_ours && layout.write), Reth::parse)?;
        reader.read(&mut self.atomic, layout.atomic, AtomicEth::parse)?;
        reader.read(&mut self.aeth, layout.aeth || (is_ours && layout.middle), Aeth::parse)?;
        reader.read(&mut self.original, layout.original, |bytes| {
            take::<8>(bytes).map(|(value, rest)| (u64::from_be_bytes(*value), rest))
        })?;
        reader.read(&mut self.immediate, layout.immediate, |bytes| {
            take::<4>(bytes).map(|(value, rest)| (*value, rest))
        })?;
        reader.read(&mut self.invalidate, layout.invalidate, |bytes| {
            take::<4>(bytes).map(|(value, rest)| (u32::from_be_bytes(*value), rest))
        })?;
        reader.read(&mut self.extension, is_ours, Extension::parse)?;
        reader.read(&mut self.placement, is_ours && layout.placed, Placement::parse)?;
        let has_holes = self.extension.is_some_and(|extension| extension.holes);
        reader.read(&mut self.holes, has_holes, Hole::parse_three)?;
        let padded = reader.0;
        let payload = padded.len().checked_sub(usize::from(bth.pad)).filter(|_| padded.len().is_multiple_of(4));
        let payload = payload.ok_or(ParseError::Padding(bth.pad))?;
        Ok(&padded[..payload])
    }

    /// Writes the headers of a packet with `payload` bytes to the start of `buffer`; returns their length. The payload
    /// and zeros up to a multiple of four bytes are to follow them.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`Headers::LONGEST`].
    pub fn emit(&self, payload: usize, buffer: &mut [u8]) -> usize {
        let pad = payload.next_multiple_of(4) - payload;
        let mut writer = Writer { buffer, at: 0 };
        let mut bth = Bth { pad: pad as u8, ..self.bth }.emit();
        bth[Self::RESERVED] |= self.ours.bits();
        writer.write(&bth);
        writer.option(self.deth.map(|deth| deth.emit()));
        writer.option(self.flush.map(|flush| flush.emit()));
        writer.option(self.reth.map(|reth| reth.emit()));
        writer.option(self.atomic.map(|atomic| atomic.emit()));
        writer.option(self.aeth.map(|aeth| aeth.emit()));
        writer.option(self.original.map(u64::to_be_bytes));
        writer.option(self.immediate);
        writer.option(self.invalidate.map(u32::to_be_bytes));
        writer.option(self.extension.map(|extension| Extension { holes: self.holes.is_some(), ..extension }.emit()));
        writer.option(self.placement.map(|placement| placement.emit()));
        writer.option(self.holes.map(|holes| Hole::emit_three(&holes)));
        writer.at
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    fn read<T>(
        &mut self,
        into: &mut Option<T>,
        there: bool,
        parse: impl FnOnce(&'a [u8]) -> Result<(T, &'a [u8]), ParseError>,
    ) -> Result<(), ParseError> {
        *into = None;
        if there {
            let (value, rest) = parse(self.0)?;
            *into = Some(value);
            self.0 = rest;
        }
        Ok(())
    }
}

struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.buffer[self.at..][..bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
    fn option<const N: usize>(&mut self, bytes: Option<[u8; N]>) {
        if let Some(bytes) = bytes {
            self.write(&bytes);
        }
    }
}

#[cfg(test)]
mod tests;
