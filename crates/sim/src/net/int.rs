//! In-band network telemetry: switches write on data what their outputs are like (HPCC, section 4.1).

use selvedge_wire::{Hop, Repr};

use super::beside::Record;
use super::pool::Slot;
use crate::kernel::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Port `at` begins to send a packet: hosts give it what it shall carry, switches write on data.
    pub(super) fn write_telemetry(&mut self, at: u32, slot: Slot) {
        let port = &self.egress[at];
        let packet = self.pool.get(slot);
        if port.is_host {
            let path = self.hosts[port.owner].nic.poll_path(packet);
            self.records.put(slot, Record::Path(path));
        } else if let Repr::Data(_) = packet.repr {
            let queue: u64 = (0..self.classes).map(|class| self.lines[at * self.classes + class].bytes).sum();
            let mut path = self.records.get(slot).path();
            let ps_per_byte = BYTE_PS / self.extras[at].rate.as_bps() as f64;
            let hop = Hop {
                at_ps: self.now.as_ps() as f64,
                busy_ps: (port.bytes + port.frames * self.gap) as f64 * ps_per_byte,
                queue_ps: queue as f64 * ps_per_byte,
            };
            path.push(self.switches[port.owner].id, hop);
            self.records.put(slot, Record::Path(path));
        }
    }
}

/// Eight bits, in bits per second times picoseconds.
const BYTE_PS: f64 = 8e12;
