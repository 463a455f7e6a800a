//! In-band network telemetry (INT): what the switches on a packet's way write on it.
//!
//! HPCC (SIGCOMM'19, section 4.1 and figure 7): each switch adds eight bytes when it sends the packet on, its receiver
//! copies all of them to the acknowledgement. As there, times are counted in ticks and wrap around; here a tick is
//! shorter, and they wrap later.

use selvedge_units::{Bytes, Duration, Instant, SwitchId};
use wide::{f32x4, i32x4};

/// What one output was like when it began to send the packet.
///
/// Bytes are told as the time that the link takes for them (txBytes and qLen, divided by B): senders ask for nothing
/// but shares of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// When that was (ts).
    pub at: Instant,
    /// How long the output had been sending before, gaps included (txBytes / B).
    pub busy: Duration,
    /// How long it takes to send what waited behind the packet (qLen / B).
    pub queue: Duration,
}

/// Four hops, side by side, because processors do the same to all at once; one that is not there is all zero. See
/// [`Hop`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hops {
    /// In ticks ([`PathRecord::TICK`]), modulo 2^32.
    pub at: i32x4,
    /// As `at`.
    pub busy: i32x4,
    /// In ticks.
    pub queue: f32x4,
}

impl Hops {
    /// Outputs that have done nothing.
    pub const ZERO: Self = Self { at: i32x4::ZERO, busy: i32x4::ZERO, queue: f32x4::ZERO };
}

/// What a packet's switches have written, in the order of its way.
#[derive(Clone, Copy, Debug)]
pub struct PathRecord {
    hops: [Hops; Self::MOST / 4],
    written_at: Instant,
    count: u32,
    id: u32,
}

impl PathRecord {
    /// Switches that can write; those behind them find no room.
    pub const MOST: usize = 8;
    /// What the paper's header takes on the wire: 2 bytes, and 8 for each of 5 switches.
    pub const LENGTH: Bytes = Bytes::new(2 + 5 * 8);
    /// What times are counted in: a quarter of a nanosecond, roughly; the paper's are 1 ns.
    pub const TICK: Duration = Duration::from_ps(1 << TICK_BITS);
    /// Records further apart than this cannot be compared: their differences in ticks may have wrapped around.
    pub const MEMORY: Duration = Duration::from_ps(1 << (TICK_BITS + 30));

    /// A packet that has met no switch.
    pub const EMPTY: Self = Self { hops: [Hops::ZERO; Self::MOST / 4], written_at: Instant::ZERO, count: 0, id: 0 };

    /// A switch writes.
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
    /// What was written.
    #[inline]
    pub fn hops(&self) -> &[Hops; Self::MOST / 4] {
        &self.hops
    }
    /// When the last switch wrote.
    #[inline]
    pub fn written_at(&self) -> Instant {
        self.written_at
    }
    /// Which way the packet took: the number of its switches, and their identities, exclusive-or (nHop and pathID).
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
