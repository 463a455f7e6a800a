//! In-band network telemetry (INT): what the switches on a packet's way write on it.
//!
//! HPCC (SIGCOMM'19, section 4.1 and figure 7): each switch adds eight bytes when it sends the packet on, its receiver copies all of
//! them to the acknowledgement. Here the fields have all their bits; on the wire they take what the paper's take.

use selvedge_units::{Bytes, SwitchId};

/// What one output was like when it began to send the packet.
///
/// In floats, because senders ask for nothing but ratios of them, for each acknowledgement; they are exact below 2^53, which is two
/// and a half hours, or nine petabytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hop {
    /// When that was (ts), in ps.
    pub at_ps: f64,
    /// Bytes on the wire that the output had sent before (txBytes).
    pub sent: f64,
    /// Bytes that waited behind the packet (qLen).
    pub queue: f64,
    /// What the link can carry (B), as the time that a byte takes, in ps.
    pub ps_per_byte: f64,
}

impl Hop {
    /// An output that has done nothing.
    pub const ZERO: Self = Self { at_ps: 0.0, sent: 0.0, queue: 0.0, ps_per_byte: 0.0 };
}

/// What a packet's switches have written, in the order of its way.
#[derive(Clone, Copy, Debug)]
pub struct PathRecord {
    hops: [Hop; Self::MOST],
    count: u32,
    id: u32,
}

impl PathRecord {
    /// Switches that can write; those behind them find no room.
    pub const MOST: usize = 8;
    /// What the paper's header takes on the wire: 2 bytes, and 8 for each of 5 switches.
    pub const LENGTH: Bytes = Bytes::new(2 + 5 * 8);

    /// A packet that has met no switch.
    pub const EMPTY: Self = Self { hops: [Hop::ZERO; Self::MOST], count: 0, id: 0 };

    /// A switch writes.
    pub fn push(&mut self, switch: SwitchId, hop: Hop) {
        self.id ^= switch.0;
        if let Some(place) = self.hops.get_mut(self.count as usize) {
            *place = hop;
            self.count += 1;
        }
    }
    /// What was written.
    #[inline]
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..self.count as usize]
    }
    /// Which way the packet took: the number of its switches, and their identities, exclusive-or (nHop and pathID).
    #[inline]
    pub fn way(&self) -> (u32, u32) {
        (self.count, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(switches: impl IntoIterator<Item = u32>) -> PathRecord {
        let mut record = PathRecord::EMPTY;
        for switch in switches {
            record.push(SwitchId(switch), Hop { sent: f64::from(switch), ..Hop::ZERO });
        }
        record
    }

    #[test]
    fn switches_write_in_order_and_stop_where_there_is_no_room() {
        let record = record(0..12);
        assert_eq!(record.hops().len(), PathRecord::MOST);
        assert!(record.hops().iter().zip(0..).all(|(hop, switch)| hop.sent == f64::from(switch)));
    }

    #[test]
    fn another_way_is_known_by_its_switches() {
        assert_eq!(record([4, 9, 5]).way(), record([4, 9, 5]).way());
        assert_ne!(record([4, 9, 5]).way(), record([4, 8, 5]).way());
        assert_ne!(record([4, 9, 5]).way(), record([4, 9, 5, 0]).way());
    }
}
