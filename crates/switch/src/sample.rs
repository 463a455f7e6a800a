//! Samples: the state of all ports at one time.

use std::mem::offset_of;

use selvedge_prefetch::prefetch_at;
use selvedge_telemetry::{PortRow, PortTotals};
use selvedge_units::{Bytes, Duration, Instant, Rate};

use crate::port::{Egress, PortExtra, Sampled};
use crate::switches::Switches;

/// Distance, in ports, at which the state that samples need is prefetched: it is too far apart for hardware
/// prefetching.
const AHEAD: usize = 8;

impl Switches {
    /// Writes one row per port, at the port's number in `rows`, for the interval between the last call and `now`.
    ///
    /// # Panics
    /// If `rows` is too short.
    pub fn sample(&mut self, now: Instant, rows: &mut [PortRow]) {
        for at in 0..self.extras.len() as u32 {
            let soon = self.extras.as_ptr().wrapping_add(at as usize + AHEAD);
            prefetch_at(soon);
            prefetch_at(soon.wrapping_byte_add(offset_of!(PortExtra, sampled)));
            let (port, entry) = (&self.egress[at], &self.ingress[at]);
            let extra = &self.extras[at];
            let current = Sampled {
                paused: extra.paused_time(now),
                busy: busy_time(port, extra.rate, self.params.gap, now),
                drops: extra.drops,
                trims: extra.trims,
            };
            let last = extra.sampled;
            let lines = self.lines_of(at);
            rows[extra.id.index()] = PortRow {
                time: now,
                port: extra.id,
                egress_queue: Bytes::new(lines.iter().map(|line| line.bytes).sum()),
                ingress_buffer: Bytes::new(entry.buffered),
                paused: current.paused.saturating_sub(last.paused),
                busy: current.busy.saturating_sub(last.busy),
                drops: (current.drops - last.drops) as u32,
                trims: (current.trims - last.trims) as u32,
            };
            self.extras[at].sampled = current;
        }
    }

    /// Adds the totals of all ports up to `now`.
    pub fn totals(&self, now: Instant, totals: &mut Vec<PortTotals>) {
        for at in 0..self.extras.len() as u32 {
            let (port, extra) = (&self.egress[at], &self.extras[at]);
            let lines = self.lines_of(at);
            totals.push(PortTotals {
                id: extra.id,
                frames: port.frames,
                bytes: Bytes::new(port.bytes),
                paused: extra.paused_time(now),
                pauses_sent: extra.pauses_sent,
                egress_peak: Bytes::new(lines.iter().map(|line| line.peak).sum()),
                drops: extra.drops,
                trims: extra.trims,
            });
        }
    }
}

/// Returns how long a port has been transmitting up to `now`. Rounding errors at odd rates do not justify a counter per
/// packet.
pub fn busy_time(port: &Egress, rate: Rate, gap: u64, now: Instant) -> Duration {
    port.serialisation(port.bytes + port.frames * gap, || rate).saturating_sub(port.busy_until.since(now))
}
