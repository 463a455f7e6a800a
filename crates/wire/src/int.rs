//! In-band network telemetry (INT): what the switches on a packet's way write on it.
//!
//! HPCC (SIGCOMM'19, section 4.1 and figure 7): each switch adds eight bytes when it sends the packet on, its receiver copies all of
//! them to the acknowledgement. Here the fields have all their bits; on the wire they take what the paper's take.

use selvedge_units::{Bytes, Instant};

/// What one output was like when it began to send the packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hop {
    /// When that was (ts).
    pub at: Instant,
    /// Bytes on the wire that the output had sent before, modulo 2^32 (txBytes).
    pub sent: u32,
    /// Bytes that waited behind the packet (qLen).
    pub queue: u32,
    /// What the link can carry (B), as the time that a byte takes, in ps.
    pub ps_per_byte: f64,
}

/// What a packet's switches have written, in the order of its way.
#[derive(Clone, Copy, Debug)]
pub struct PathRecord {
    hops: [Hop; Self::MOST],
    count: u8,
}

impl PathRecord {
    /// Switches that can write; those behind them find no room.
    pub const MOST: usize = 8;
    /// What the paper's header takes on the wire: 2 bytes, and 8 for each of 5 switches.
    pub const LENGTH: Bytes = Bytes::new(2 + 5 * 8);

    /// A packet that has met no switch.
    pub const EMPTY: Self =
        Self { hops: [Hop { at: Instant::ZERO, sent: 0, queue: 0, ps_per_byte: 0.0 }; Self::MOST], count: 0 };

    /// A switch writes.
    pub fn push(&mut self, hop: Hop) {
        if let Some(place) = self.hops.get_mut(usize::from(self.count)) {
            *place = hop;
            self.count += 1;
        }
    }
    /// What was written.
    #[inline]
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.count)]
    }
}

impl PartialEq for PathRecord {
    fn eq(&self, other: &Self) -> bool {
        self.hops() == other.hops()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_write_in_order_and_stop_where_there_is_no_room() {
        let hop = |sent| Hop { at: Instant::ZERO, sent, queue: 0, ps_per_byte: 200.0 };
        let mut record = PathRecord::EMPTY;
        (0..12).for_each(|switch| record.push(hop(switch)));
        assert_eq!(record.hops().len(), PathRecord::MOST);
        assert!(record.hops().iter().zip(0..).all(|(hop, switch)| hop.sent == switch));
        assert_ne!(record, PathRecord::EMPTY);
    }
}
