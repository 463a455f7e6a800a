//! Packets to one peer: numbers, MACs, encryption.

use selvedge_wire::eqds::v1::{Body, Flags, LONGEST, MAC, Packet};

use crate::auth::TAG;
use crate::epoch::{EpochError, Epochs};
use crate::keys::{Direction, EpochKeys};

/// State of the packets to one peer.
pub struct Outbound {
    direction: Direction,
    keys: EpochKeys,
    /// Packet number of the next packet.
    next: u32,
    /// Whether payloads are encrypted.
    sealed: bool,
    /// Answer to the peer's challenge, for requests and reports with SYN: data have no room for it.
    answer: Option<u64>,
}

impl Outbound {
    /// Packets under one key epoch; another begins before a number could repeat.
    pub const PACKETS: u32 = 1 << 31;

    /// Begins a key epoch with a peer.
    ///
    /// # Errors
    /// If there is no epoch.
    pub fn new(direction: Direction, sealed: bool, epochs: &mut Epochs) -> Result<Self, EpochError> {
        let keys = direction.epoch(epochs.advance()?);
        Ok(Self { direction, keys, next: 0, sealed, answer: None })
    }

    /// Returns the present key epoch.
    pub fn epoch(&self) -> u32 {
        self.keys.epoch
    }
    /// Returns the packet number of the next packet.
    pub fn next_number(&self) -> u32 {
        self.next
    }

    /// Begins another key epoch.
    ///
    /// # Errors
    /// If there is no epoch.
    pub fn renew(&mut self, epochs: &mut Epochs) -> Result<(), EpochError> {
        self.keys = self.direction.epoch(epochs.advance()?);
        self.next = 0;
        Ok(())
    }

    /// Begins an epoch greater than `floor`, if the present one is not: the peer has said that it accepts no other.
    ///
    /// # Errors
    /// If the floor is too far ahead to be true, or there is no epoch.
    pub fn exceed(&mut self, floor: u32, epochs: &mut Epochs) -> Result<(), EpochError> {
        if self.keys.epoch > floor {
            return Ok(());
        }
        epochs.exceed(floor)?;
        self.renew(epochs)
    }

    /// Records the answer to a challenge of the peer and begins another epoch: the peer cannot tell which packets of
    /// the present one it has seen. Does nothing if the challenge was answered before.
    ///
    /// # Errors
    /// If there is no epoch.
    pub fn answer(&mut self, challenge: u64, epochs: &mut Epochs) -> Result<(), EpochError> {
        if self.answer == Some(challenge) {
            return Ok(());
        }
        self.renew(epochs)?;
        self.answer = Some(challenge);
        Ok(())
    }

    /// Returns the bytes of the whole packet around `payload` bytes.
    pub fn length(&self, packet: &Packet, payload: usize) -> usize {
        self.with_answer(packet).header() + payload + self.tag(payload)
    }

    /// Writes a packet, whose payload is `payload` joined, to the start of `buffer`: key id, epoch and number are
    /// filled in, the payload is encrypted if the peer wants that, the MAC is computed. Returns the packet's bytes.
    ///
    /// # Errors
    /// If a new key epoch is necessary and there is none.
    ///
    /// # Panics
    /// If `buffer` is shorter than [`Outbound::length`] says.
    pub fn write<'a>(
        &mut self,
        packet: &Packet,
        payload: [&[u8]; 2],
        epochs: &mut Epochs,
        buffer: &'a mut [u8],
    ) -> Result<&'a [u8], EpochError> {
        if self.next >= Self::PACKETS {
            self.renew(epochs)?;
        }
        let number = self.next;
        self.next += 1;
        let mut packet = self.with_answer(packet);
        let length = payload[0].len() + payload[1].len();
        let tag = self.tag(length);
        packet.common.flags = packet.common.flags.without(Flags::TRIMMED.with(Flags::SEALED));
        packet.common.flags = packet.common.flags.with(Flags::SEALED.when(tag > 0));
        packet.common.key_id = self.direction.id;
        packet.common.key_epoch = self.keys.epoch;
        packet.common.packet_number = number;
        let (bytes, _) = buffer.split_at_mut(packet.header() + length + tag);
        let (header, rest) = bytes.split_at_mut(packet.header());
        packet.emit(length + tag, header);
        let (covered, mac) = header.split_at_mut(packet.header() - MAC);
        mac.copy_from_slice(&self.keys.mac(covered));
        let (content, place) = rest.split_at_mut(length);
        let (first, second) = content.split_at_mut(payload[0].len());
        first.copy_from_slice(payload[0]);
        second.copy_from_slice(payload[1]);
        if tag > 0 {
            place.copy_from_slice(&self.keys.seal(number, header, content));
        }
        Ok(bytes)
    }

    /// Returns the bytes of the tag behind a payload; packets without payload have none.
    fn tag(&self, payload: usize) -> usize {
        if self.sealed && payload > 0 { TAG } else { 0 }
    }

    /// Returns the packet with the answer to the peer's challenge, if it is one that may carry it.
    fn with_answer(&self, packet: &Packet) -> Packet {
        let mut packet = *packet;
        if packet.common.flags.any(Flags::SYN) && !matches!(packet.body, Body::Data(_)) {
            packet.options.answer = self.answer;
        }
        packet
    }
}

const _: () = assert!(LONGEST <= u16::MAX as usize);
