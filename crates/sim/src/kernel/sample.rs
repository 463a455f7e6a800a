//! What the ports look like at one time.

use selvedge_telemetry::{PortRow, PortTotals};
use selvedge_units::{Bytes, Instant};

use super::partition::Partition;
use crate::net::port::Sampled;

impl Partition {
    /// One row per port for the interval that ends at `now`.
    pub(crate) fn sample(&mut self, now: Instant, rows: &mut Vec<PortRow>) {
        let classes = self.fabric.classes as usize;
        for (at, (port, extra)) in self.ports.iter().zip(&mut self.extras).enumerate() {
            let current = Sampled {
                paused: extra.paused_time(port.paused != 0 && !extra.down, now),
                busy: port.busy_time(now, self.fabric.gap),
                drops: extra.drops,
            };
            let last = std::mem::replace(&mut extra.sampled, current);
            let lines = &self.lines[at * classes..(at + 1) * classes];
            rows.push(PortRow {
                time: now,
                port: extra.id,
                egress_queue: Bytes::new(lines.iter().map(|line| line.bytes).sum()),
                ingress_buffer: Bytes::new(port.buffered + port.in_headroom),
                paused: current.paused.saturating_sub(last.paused),
                busy: current.busy.saturating_sub(last.busy),
                drops: (current.drops - last.drops) as u32,
            });
        }
    }

    /// Totals of the ports up to `now`.
    pub(crate) fn totals(&self, now: Instant, totals: &mut Vec<PortTotals>) {
        let classes = self.fabric.classes as usize;
        for (at, (port, extra)) in self.ports.iter().zip(&self.extras).enumerate() {
            let lines = &self.lines[at * classes..(at + 1) * classes];
            totals.push(PortTotals {
                id: extra.id,
                frames: port.frames,
                bytes: Bytes::new(port.bytes),
                paused: extra.paused_time(port.paused != 0 && !extra.down, now),
                pauses_sent: extra.pauses_sent,
                egress_peak: Bytes::new(lines.iter().map(|line| line.peak).sum()),
                ingress_peak: Bytes::new(extra.ingress_peak),
                drops: extra.drops,
            });
        }
    }
}
