//! Samples: the state of all ports at one time.

use std::mem::offset_of;

use selvedge_memory::prefetch_at;
use selvedge_switch::port::{Egress, PortExtra, Sampled};
use selvedge_telemetry::{PortRow, PortTotals};
use selvedge_units::{Bytes, Duration, Instant, Rate};

use super::partition::Partition;

/// Distance, in ports, at which the state that samples need is prefetched: it is too far apart for hardware
/// prefetching.
const AHEAD: usize = 8;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Writes one row per port of this partition, at the port's number in `rows`, for the interval that ends at `now`.
    pub(crate) fn sample(&mut self, now: Instant, rows: &mut [PortRow]) {
        for at in 0..self.net.extras.len() as u32 {
            let soon = self.net.extras.as_ptr().wrapping_add(at as usize + AHEAD);
            prefetch_at(soon);
            prefetch_at(soon.wrapping_byte_add(offset_of!(PortExtra, sampled)));
            let (port, entry) = (&self.net.egress[at], &self.net.ingress[at]);
            let extra = &self.net.extras[at];
            let current = Sampled {
                paused: extra.paused_time(now),
                busy: busy_time(port, extra.rate, self.net.params.gap, now),
                drops: extra.drops,
                trims: extra.trims,
            };
            let last = extra.sampled;
            let lines = self.net.lines_of(at);
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
            self.net.extras[at].sampled = current;
        }
    }

    /// Adds the totals of this partition's ports up to `now`.
    pub(crate) fn totals(&self, now: Instant, totals: &mut Vec<PortTotals>) {
        for at in 0..self.net.extras.len() as u32 {
            let (port, extra) = (&self.net.egress[at], &self.net.extras[at]);
            let lines = self.net.lines_of(at);
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
pub(crate) fn busy_time(port: &Egress, rate: Rate, gap: u64, now: Instant) -> Duration {
    port.serialisation(port.bytes + port.frames * gap, || rate).saturating_sub(port.busy_until.since(now))
}
