//! What lies beside packets: telemetry that switches write (see [`super::int`]), and packets that others carry (EQDS).
//!
//! Off, it costs nothing: ports that read or write count as ports of an awkward rate
//! ([`Egress::look_closely`](super::port::Egress::look_closely)), for which sending takes the slow way
//! anyway. Records lie by the packets' places in the pool.

use selvedge_nic::Handled;
use selvedge_transport::Cx;
use selvedge_units::{Bytes, Duration};
use selvedge_wire::{Packet, PathRecord};

use super::descriptor::Descriptor;
use super::pool::Slot;
use crate::kernel::partition::Partition;

/// What lies beside one packet.
#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "values that cross partitions with their packets; only where INT or tunnels are on"
)]
pub(crate) enum Record {
    Nothing,
    /// What switches have written.
    Path(PathRecord),
    /// The packet that it carries.
    Cargo(Packet),
}

impl Record {
    pub(crate) fn path(self) -> PathRecord {
        if let Self::Path(path) = self { path } else { PathRecord::EMPTY }
    }
    fn cargo(self) -> Option<Packet> {
        if let Self::Cargo(packet) = self { Some(packet) } else { None }
    }
}

/// What lies beside the packets of one partition; nothing where nothing reads it.
#[derive(Default)]
pub(crate) struct Records(Vec<Record>);

impl Records {
    /// Whether there was never any.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(crate) fn get(&self, slot: Slot) -> Record {
        self.0.get(slot as usize).copied().unwrap_or(Record::Nothing)
    }
    pub(crate) fn put(&mut self, slot: Slot, record: Record) {
        let slot = slot as usize;
        if slot >= self.0.len() {
            self.0.resize(slot + 1, Record::Nothing);
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
        if self.fabric.has_cargo {
            self.load(at, packet.slot);
        }
        self.extras[at].rate.time_for(Bytes::new(u64::from(packet.frame) + self.gap))
    }

    /// A packet that has just left a host's NIC takes along what it carries.
    fn load(&mut self, at: u32, slot: Slot) {
        let port = &self.egress[at];
        if port.is_host
            && let Some(cargo) = self.hosts[port.owner].nic.poll_cargo()
        {
            self.records.put(slot, Record::Cargo(cargo));
        }
    }

    /// Hands a packet to its NIC, with what lies beside it.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_with_record(&mut self, host: u32, slot: Slot) -> Handled {
        let (packet, record) = (self.pool.get(slot), self.records.get(slot));
        let nic = &mut self.hosts[host].nic;
        let mut cx = Cx { now: self.now, probe: self.log.probe::<RECORDED>() };
        if self.fabric.has_cargo {
            return nic.handle_carrier(&mut cx, &self.fabric.nic, packet, record.cargo());
        }
        let handled = nic.handle_packet(&mut cx, &self.fabric.nic, packet);
        nic.handle_path(self.now, packet, &record.path());
        handled
    }
}
