//! In-band network telemetry (INT): what the switches on a packet's way write on it.
//!
//! HPCC (SIGCOMM'19, section 4.1 and figure 7): each switch adds eight bytes when it sends the packet on, its receiver copies all of
//! them to the acknowledgement. Here the fields have all their bits; on the wire they take what the paper's take.

use selvedge_units::{Bytes, SwitchId};
use wide::f64x2;

/// What one output was like when it began to send the packet.
///
/// Bytes are told as the time that the link takes for them (txBytes and qLen, divided by B): senders ask for nothing but shares of time.
/// In floats, because they ask for ratios, for each acknowledgement; these are exact below 2^53, which is two and a half hours.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hop {
    /// When that was (ts), in ps.
    pub at_ps: f64,
    /// How long the output had been sending before, gaps included (txBytes / B), in ps.
    pub busy_ps: f64,
    /// How long it takes to send what waited behind the packet (qLen / B), in ps.
    pub queue_ps: f64,
}

/// Two hops, side by side, because processors do the same to both at once; one that is not there is all zero. See [`Hop`].
#[derive(Clone, Copy, PartialEq, Debug)]
#[expect(missing_docs, reason = "as in Hop")]
pub struct HopPair {
    pub at_ps: f64x2,
    pub busy_ps: f64x2,
    pub queue_ps: f64x2,
}

impl HopPair {
    /// Outputs that have done nothing.
    pub const ZERO: Self = Self { at_ps: f64x2::ZERO, busy_ps: f64x2::ZERO, queue_ps: f64x2::ZERO };
}

/// What a packet's switches have written, in the order of its way.
#[derive(Clone, Copy, Debug)]
pub struct PathRecord {
    pairs: [HopPair; Self::PAIRS],
    count: u32,
    id: u32,
}

impl PathRecord {
    /// Switches that can write; those behind them find no room.
    pub const MOST: usize = 8;
    /// The same in pairs.
    pub const PAIRS: usize = Self::MOST / 2;
    /// What the paper's header takes on the wire: 2 bytes, and 8 for each of 5 switches.
    pub const LENGTH: Bytes = Bytes::new(2 + 5 * 8);

    /// A packet that has met no switch.
    pub const EMPTY: Self = Self { pairs: [HopPair::ZERO; Self::PAIRS], count: 0, id: 0 };

    /// A switch writes.
    pub fn push(&mut self, switch: SwitchId, hop: Hop) {
        self.id ^= switch.0;
        let (pair, lane) = (self.count as usize / 2, self.count as usize % 2);
        if let Some(pair) = self.pairs.get_mut(pair) {
            pair.at_ps.as_mut_array()[lane] = hop.at_ps;
            pair.busy_ps.as_mut_array()[lane] = hop.busy_ps;
            pair.queue_ps.as_mut_array()[lane] = hop.queue_ps;
            self.count += 1;
        }
    }
    /// What was written.
    #[inline]
    pub fn pairs(&self) -> impl Iterator<Item = &HopPair> {
        self.pairs.iter().take(self.count.div_ceil(2) as usize)
    }
    /// Which way the packet took: the number of its switches, and their identities, exclusive-or (nHop and pathID).
    #[inline]
    pub fn way(&self) -> u64 {
        u64::from(self.count) | u64::from(self.id) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(switches: impl IntoIterator<Item = u32>) -> PathRecord {
        let mut record = PathRecord::EMPTY;
        for switch in switches {
            record.push(SwitchId(switch), Hop { at_ps: 0.0, busy_ps: f64::from(switch), queue_ps: 0.0 });
        }
        record
    }

    #[test]
    fn switches_write_in_order_and_stop_where_there_is_no_room() {
        let record = record(0..12);
        assert!(record.pairs().flat_map(|pair| pair.busy_ps.to_array()).eq((0..8).map(f64::from)));
    }

    #[test]
    fn another_way_is_known_by_its_switches() {
        assert_eq!(record([4, 9, 5]).way(), record([4, 9, 5]).way());
        assert_ne!(record([4, 9, 5]).way(), record([4, 8, 5]).way());
        assert_ne!(record([4, 9, 5]).way(), record([4, 9, 5, 0]).way());
    }
}
