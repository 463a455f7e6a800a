//! A reference model of TCP receivers, by definition.

use std::collections::BTreeSet;

use selvedge_units::Octet;

/// A receiver that records every octet that has arrived.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    arrived: BTreeSet<Octet>,
    expected: Octet,
}

impl Default for TcpReceiver {
    fn default() -> Self {
        Self { arrived: BTreeSet::new(), expected: Octet::FIRST }
    }
}

impl TcpReceiver {
    /// Returns RCV.NXT: the first octet that has not arrived.
    pub fn expected(&self) -> Octet {
        self.expected
    }
    /// Returns the number of these octets that have not arrived yet.
    pub fn fresh(&self, start: Octet, octets: u64) -> u64 {
        (0..octets).filter(|&index| !self.arrived.contains(&(start + index))).count() as u64
    }
    /// Records the arrival of octets.
    pub fn take(&mut self, start: Octet, octets: u64) {
        self.arrived.extend((0..octets).map(|index| start + index));
        while self.arrived.contains(&self.expected) {
            self.expected += 1;
        }
    }
    /// Returns whether all octets from `from` to `to` (exclusive) have arrived.
    pub fn has(&self, from: Octet, to: Octet) -> bool {
        (0..to.since(from)).all(|index| self.arrived.contains(&(from + index)))
    }
}
