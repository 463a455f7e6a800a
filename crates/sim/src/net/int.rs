//! In-band network telemetry: switches write the state of their outputs on data packets (HPCC, section 4.1).

use selvedge_switch::Switches;
use selvedge_switch::descriptor::Slot;
use selvedge_units::Duration;
use selvedge_wire::{Hop, Repr};

use super::records::Record;
use crate::net::edge::Edge;

impl<const RECORDED: bool> Edge<RECORDED> {
    /// Writes telemetry as port `at` begins to send a packet: hosts initialise the record of the packet, switches add
    /// to that of data packets.
    pub(super) fn write_telemetry(&mut self, net: &Switches, at: u32, slot: Slot) {
        let port = &net.egress[at];
        let packet = self.pool.get(slot);
        if port.is_host {
            let path = self.hosts[port.owner].nic.poll_path(&packet);
            self.records.put(slot, Record::Path(path));
        } else if let Repr::Data(_) = packet.repr {
            let queue: u64 = net.lines_of(at).iter().map(|line| line.bytes).sum();
            let mut path = self.records.get(slot).path();
            // In floating point: integer division is slower, and the result is exact where the link takes whole
            // picoseconds per byte.
            let ps_per_byte = BYTE_PS / net.extras[at].rate.as_bps() as f64;
            let time_for = |bytes: u64| Duration::from_ps((bytes as f64 * ps_per_byte) as u64);
            let busy = time_for(port.bytes + port.frames * net.params.gap);
            let hop = Hop { at: net.now, busy, queue: time_for(queue) };
            path.push(net.switches[port.owner].id, hop);
            self.records.put(slot, Record::Path(path));
        }
    }
}

/// Bits per byte times picoseconds per second.
const BYTE_PS: f64 = 8e12;
