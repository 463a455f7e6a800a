//! In-band network telemetry: switches write on data what their outputs are like (HPCC, section 4.1).
//!
//! Off, it costs nothing: ports that write count as ports of an awkward rate
//! ([`Egress::look_closely`](super::port::Egress::look_closely)), for which sending takes the slow way
//! anyway. What is written lies beside the packets, by their places in the pool.

use selvedge_units::{Bytes, Duration};
use selvedge_wire::{Hop, PathRecord, Repr};

use super::descriptor::Descriptor;
use super::pool::Slot;
use crate::kernel::partition::Partition;

/// What is written on the packets of one partition; nothing where nothing writes.
#[derive(Default)]
pub(crate) struct Records(Vec<PathRecord>);

impl Records {
    /// Whether nothing was ever written.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn get(&self, slot: Slot) -> PathRecord {
        self.0.get(slot as usize).copied().unwrap_or(PathRecord::EMPTY)
    }
    pub(crate) fn put(&mut self, slot: Slot, record: PathRecord) {
        let slot = slot as usize;
        if slot >= self.0.len() {
            self.0.resize(slot + 1, PathRecord::EMPTY);
        }
        self.0[slot] = record;
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// How long a packet takes through a port that wants a closer look.
    #[cold]
    pub(crate) fn look_closer(&mut self, at: u32, packet: &Descriptor) -> Duration {
        if self.fabric.writes_telemetry {
            self.write_telemetry(at, packet.slot);
        }
        self.extras[at].rate.time_for(Bytes::new(u64::from(packet.frame) + self.gap))
    }

    /// Port `at` begins to send a packet: hosts give it what it shall carry, switches write on data.
    fn write_telemetry(&mut self, at: u32, slot: Slot) {
        let port = &self.egress[at];
        let packet = self.pool.get(slot);
        if port.is_host {
            let record = self.hosts[port.owner].nic.poll_path(packet);
            self.records.put(slot, record);
        } else if let Repr::Data(_) = packet.repr {
            let queue: u64 = (0..self.classes).map(|class| self.lines[at * self.classes + class].bytes).sum();
            let mut record = self.records.get(slot);
            record.push(Hop {
                at: self.now,
                sent: (port.bytes + port.frames * self.gap) as u32,
                queue: u32::try_from(queue).unwrap_or(u32::MAX),
                ps_per_byte: BYTE_PS / self.extras[at].rate.as_bps() as f64,
            });
            self.records.put(slot, record);
        }
    }
}

/// Eight bits, in bits per second times picoseconds.
const BYTE_PS: f64 = 8e12;
