//! In-band network telemetry (INT): the records that switches on a packet's path add to it.
//!
//! HPCC (SIGCOMM'19, section 4.1 and figure 7): each switch adds eight bytes when it forwards the packet, and the
//! receiver copies all of them to the acknowledgement. As in the paper, times are counted in ticks and wrap around;
//! here a tick is shorter, and times wrap later.

use selvedge_units::{Bytes, Duration, Instant, SwitchId};
use wide::{f32x4, i32x4};

/// The state of an output port when it began to send the packet.
///
/// Byte counts are expressed as the time that the link takes for them (txBytes and qLen, divided by B), since senders
/// use only fractions of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Time at which the output began to send the packet (ts).
    pub at: Instant,
    /// Total time for which the output had been sending before, gaps included (txBytes / B).
    pub busy: Duration,
    /// Transmission time of the packets waiting behind this one (qLen / B).
    pub queue: Duration,
}

/// Four hops in SIMD vectors, processed together; an absent hop is all zero. See [`Hop`] for the fields.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hops {
    /// Time stamps in ticks ([`PathRecord::TICK`]), modulo 2^32.
    pub at: i32x4,
    /// Busy times in ticks, modulo 2^32.
    pub busy: i32x4,
    /// Queueing times in ticks.
    pub queue: f32x4,
}

impl Hops {
    /// Hops of outputs without any activity.
    pub const ZERO: Self = Self { at: i32x4::ZERO, busy: i32x4::ZERO, queue: f32x4::ZERO };
}

/// The records of a packet's switches, in the order of its path.
#[derive(Clone, Copy, Debug)]
pub struct PathRecord {
    hops: [Hops; Self::MOST / 4],
    written_at: Instant,
    count: u32,
    id: u32,
}

impl PathRecord {
    /// Most switches that can add a record; later ones are not recorded.
    pub const MOST: usize = 8;
    /// Length of the paper's header on the wire: 2 bytes, and 8 for each of 5 switches.
    pub const LENGTH: Bytes = Bytes::new(2 + 5 * 8);
    /// Unit of the recorded times: about a quarter of a nanosecond; the paper's is 1 ns.
    pub const TICK: Duration = Duration::from_ps(1 << TICK_BITS);
    /// Largest distance of two comparable records: beyond it, their differences in ticks may have wrapped around.
    pub const MEMORY: Duration = Duration::from_ps(1 << (TICK_BITS + 30));

    /// Record of a packet that has passed no switch.
    pub const EMPTY: Self = Self { hops: [Hops::ZERO; Self::MOST / 4], written_at: Instant::ZERO, count: 0, id: 0 };

    /// Adds the record of a switch.
    pub fn push(&mut self, switch: SwitchId, hop: Hop) {
        self.id ^= switch.0;
        let (hops, lane) = (self.count as usize / 4, self.count as usize % 4);
        if let Some(hops) = self.hops.get_mut(hops) {
            hops.at.as_mut_array()[lane] = (hop.at.as_ps() >> TICK_BITS) as i32;
            hops.busy.as_mut_array()[lane] = (hop.busy.as_ps() >> TICK_BITS) as i32;
            hops.queue.as_mut_array()[lane] = hop.queue.as_ps() as f32 / (1 << TICK_BITS) as f32;
            self.written_at = hop.at;
            self.count += 1;
        }
    }
    /// Returns the recorded hops.
    #[inline]
    pub fn hops(&self) -> &[Hops; Self::MOST / 4] {
        &self.hops
    }
    /// Returns the time of the last record.
    #[inline]
    pub fn written_at(&self) -> Instant {
        self.written_at
    }
    /// Returns an identifier of the packet's path: the number of its switches, and the exclusive-or of their identities
    /// (nHop and pathID).
    #[inline]
    pub fn way(&self) -> u64 {
        u64::from(self.count) | u64::from(self.id) << 32
    }
}

const TICK_BITS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(switches: impl IntoIterator<Item = u32>) -> PathRecord {
        let mut record = PathRecord::EMPTY;
        for switch in switches {
            let busy = PathRecord::TICK * u64::from(switch);
            record.push(SwitchId(switch), Hop { at: Instant::ZERO, busy, queue: Duration::ZERO });
        }
        record
    }

    #[test]
    fn switches_write_in_order_and_stop_where_there_is_no_room() {
        let record = record(0..12);
        assert!(record.hops().iter().flat_map(|hops| hops.busy.to_array()).eq(0..8));
    }

    #[test]
    fn times_wrap_around_and_their_differences_do_not() {
        let mut record = PathRecord::EMPTY;
        let wrap = Duration::from_ps(1 << (TICK_BITS + 32));
        for at in [Instant::ZERO + wrap - PathRecord::TICK, Instant::ZERO + wrap + PathRecord::TICK * 2] {
            record.push(SwitchId(1), Hop { at, busy: Duration::ZERO, queue: PathRecord::TICK });
        }
        let [before, after, ..] = record.hops()[0].at.to_array();
        assert_eq!((after.wrapping_sub(before), record.hops()[0].queue.to_array()[0]), (3, 1.0));
        assert_eq!(record.written_at(), Instant::ZERO + wrap + PathRecord::TICK * 2);
    }

    #[test]
    fn another_way_is_known_by_its_switches() {
        assert_eq!(record([4, 9, 5]).way(), record([4, 9, 5]).way());
        assert_ne!(record([4, 9, 5]).way(), record([4, 8, 5]).way());
        assert_ne!(record([4, 9, 5]).way(), record([4, 9, 5, 0]).way());
    }
}
