//! One transfer and its outcome, in any world.

use selvedge_transport::{SenderParams, SenderStats};
use selvedge_units::{Bytes, Psn, Seq};

use crate::impair::Impairment;

/// A payload to be transferred from one end to the other, with the conditions.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Parameters of the engines.
    pub params: SenderParams,
    /// PSN of the first packet.
    pub first_psn: Psn,
    /// Payload to transfer.
    pub payload: Vec<u8>,
    /// Payload per packet; the last may carry less.
    pub piece: usize,
    /// Impairment of data packets.
    pub forward: Impairment,
    /// Impairment of acknowledgements.
    pub backward: Impairment,
}

/// The outcome of a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Whether the receiver has everything, and the sender has everything acknowledged.
    pub finished: bool,
    /// Payload placed by the receiver.
    pub placed: Placed,
    /// Number of duplicates received.
    pub duplicates: u64,
    /// Counters of the sender.
    pub stats: SenderStats,
}

/// Memory into which a receiver places payload, with a count per packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Contents of the memory.
    pub bytes: Vec<u8>,
    /// How many times each packet was placed.
    pub times: Vec<u32>,
    piece: usize,
}

/// An environment that carries out transfers.
pub trait World {
    /// Carries out `transfer`, until it is complete or stuck.
    fn run(&self, transfer: Transfer) -> Outcome;
}

impl Transfer {
    /// Bytes on the wire of a full packet with an MTU of 1 KB: headers 62, gap 20.
    pub const FRAME: Bytes = Bytes::new(1024 + 62 + 20);

    /// Creates a transfer of `packets` packets of one byte each, without impairments.
    pub fn of_packets(packets: u64, params: SenderParams) -> Self {
        Self {
            params,
            first_psn: Psn::new(0),
            payload: (0..packets).map(|index| index as u8).collect(),
            piece: 1,
            forward: Impairment::none(),
            backward: Impairment::none(),
        }
    }
    /// Returns the number of packets of the transfer.
    pub fn packets(&self) -> u64 {
        self.payload.len().div_ceil(self.piece) as u64
    }
    /// Returns the payload of packet `seq`.
    pub fn piece_of(&self, seq: Seq) -> &[u8] {
        let from = seq.index() as usize * self.piece;
        &self.payload[from..self.payload.len().min(from + self.piece)]
    }
}

impl Outcome {
    /// Checks that everything arrived, once, and intact.
    ///
    /// # Panics
    /// If not, with `case` in the message.
    pub fn assert_intact(&self, payload: &[u8], case: &dyn core::fmt::Debug) {
        assert!(self.finished, "{case:?} did not finish: {:?}, {:?}", self.stats, self.placed.times);
        assert!(self.placed.times.iter().all(|&times| times == 1), "{case:?}: {:?}", self.placed.times);
        assert!(self.placed.bytes == payload, "{case:?}: what arrived is not what was sent");
    }
}

impl Placed {
    /// Creates empty memory for the payload of `transfer`.
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
    /// If there is no such packet: a receiver must not accept one.
    pub fn place(&mut self, seq: Seq, payload: &[u8]) {
        let index = seq.index() as usize;
        self.times[index] += 1;
        self.bytes[index * self.piece..][..payload.len()].copy_from_slice(payload);
    }
    /// Returns whether every packet was placed.
    pub fn is_complete(&self) -> bool {
        self.times.iter().all(|&times| times > 0)
    }
}
