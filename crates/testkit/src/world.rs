//! One transfer, and what comes of it, in any world.

use selvedge_transport::{SenderConfig, SenderStats};
use selvedge_units::{Bytes, Psn, Seq};

use crate::impair::Impairment;

/// A payload that shall get from one end to the other.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The engines; "auto" resolved.
    pub config: SenderConfig,
    /// The first packet's PSN.
    pub first_psn: Psn,
    /// What to transfer.
    pub payload: Vec<u8>,
    /// Payload per packet; the last may carry less.
    pub piece: usize,
    /// What happens to data.
    pub forward: Impairment,
    /// What happens to acknowledgements.
    pub backward: Impairment,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The sender has everything acknowledged, and the receiver has everything.
    pub finished: bool,
    /// What the receiver placed.
    pub placed: Placed,
    /// Arrivals of packets that it had before.
    pub duplicates: u64,
    /// What the sender did.
    pub stats: SenderStats,
}

/// Memory into which a receiver places payload, with a count per packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The memory.
    pub bytes: Vec<u8>,
    /// How many times each packet was placed.
    pub times: Vec<u32>,
    piece: usize,
}

/// Carries out transfers.
pub trait World {
    /// Carries out `transfer`, to the end or until it is stuck.
    fn run(&self, transfer: Transfer) -> Outcome;
}

impl Transfer {
    /// Bytes on the wire of a full-sized packet with an MTU of 1 KB: headers 62, gap 20.
    pub const FRAME: Bytes = Bytes::new(1024 + 62 + 20);

    /// `packets` packets with one byte each, in a world without impairments.
    pub fn of_packets(packets: u64, config: SenderConfig) -> Self {
        Self {
            config,
            first_psn: Psn::new(0),
            payload: (0..packets).map(|index| index as u8).collect(),
            piece: 1,
            forward: Impairment::none(),
            backward: Impairment::none(),
        }
    }
    /// How many packets it takes.
    pub fn packets(&self) -> u64 {
        self.payload.len().div_ceil(self.piece) as u64
    }
    /// The payload of packet `seq`.
    pub fn piece_of(&self, seq: Seq) -> &[u8] {
        let from = seq.index() as usize * self.piece;
        &self.payload[from..self.payload.len().min(from + self.piece)]
    }
}

impl Outcome {
    /// Fails unless everything arrived, once, and intact.
    ///
    /// # Panics
    /// With `case` in the message, if not.
    pub fn assert_intact(&self, payload: &[u8], case: &dyn core::fmt::Debug) {
        assert!(self.finished, "{case:?} did not finish: {:?}, {:?}", self.stats, self.placed.times);
        assert!(self.placed.times.iter().all(|&times| times == 1), "{case:?}: {:?}", self.placed.times);
        assert!(self.placed.bytes == payload, "{case:?}: what arrived is not what was sent");
    }
}

impl Placed {
    /// Empty memory for what `transfer` carries.
    pub fn for_transfer(transfer: &Transfer) -> Self {
        Self {
            bytes: vec![0; transfer.payload.len()],
            times: vec![0; transfer.packets() as usize],
            piece: transfer.piece,
        }
    }
    /// Places the payload of packet `seq`.
    ///
    /// # Panics
    /// When there is no such packet: a receiver must not accept one.
    pub fn place(&mut self, seq: Seq, payload: &[u8]) {
        let index = seq.index() as usize;
        self.times[index] += 1;
        self.bytes[index * self.piece..][..payload.len()].copy_from_slice(payload);
    }
    /// Whether every packet was placed.
    pub fn is_complete(&self) -> bool {
        self.times.iter().all(|&times| times > 0)
    }
}
