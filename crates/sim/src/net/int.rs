//! In-band network telemetry: switches write on data what their outputs are like (HPCC, section 4.1).

use selvedge_units::Duration;
use selvedge_wire::{Hop, Repr};

use super::pool::Slot;
use super::records::Record;
use crate::kernel::partition::Partition;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Port `at` begins to send a packet: hosts give it what it shall carry, switches write on data.
    pub(super) fn write_telemetry(&mut self, at: u32, slot: Slot) {
        let port = &self.egress[at];
        let packet = self.pool.get(slot);
        if port.is_host {
            let path = self.hosts[port.owner].nic.poll_path(&packet);
            self.records.put(slot, Record::Path(path));
        } else if let Repr::Data(_) = packet.repr {
            let queue: u64 = self.lines_of(at).iter().map(|line| line.bytes).sum();
            let mut path = self.records.get(slot).path();
            // In floats: whole numbers are divided more slowly, and a float is exact where the link's picoseconds are
            // whole.
            let ps_per_byte = BYTE_PS / self.extras[at].rate.as_bps() as f64;
            let time_for = |bytes: u64| Duration::from_ps((bytes as f64 * ps_per_byte) as u64);
            let busy = time_for(port.bytes + port.frames * self.gap);
            let hop = Hop { at: self.now, busy, queue: time_for(queue) };
            path.push(self.switches[port.owner].id, hop);
            self.records.put(slot, Record::Path(path));
        }
    }
}

/// Eight bits, in bits per second times picoseconds.
const BYTE_PS: f64 = 8e12;
