//! Records that belong to packets: telemetry that switches write (see [`super::int`]), packets that others carry
//! (EQDS), and the headers of RDMA packets (see [`super::verbs`]).
//!
//! Where no records are in use, they cost nothing: packets that leave through ports that read or write records take the
//! slow path ([`Egress::takes_slow_path`](super::port::Egress::takes_slow_path)), which exists anyway for rates of no
//! whole picoseconds per byte. Records are indexed by the packets' places in the pool.

use selvedge_nic::{Handled, REQUESTS};
use selvedge_switch::Switches;
use selvedge_switch::descriptor::{Descriptor, Slot};
use selvedge_transport::Cx;
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Packet, PathRecord};

use super::host::Host;
use crate::net::edge::Edge;
use crate::net::fabric::FabricParams;
use crate::net::parcel::Outbox;
use crate::net::partition::Partition;

/// Record of one packet.
#[derive(Clone, Copy)]
pub(crate) enum Record {
    Nothing,
    /// Telemetry that switches have written.
    Path(PathRecord),
    /// Packet that this packet carries.
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

/// Records of the packets of one partition; empty where nothing reads them. Headers are large, and have a table of
/// their own.
#[derive(Default)]
pub(crate) struct Records {
    records: Vec<Record>,
    headers: Vec<Headers>,
}

impl Records {
    /// Returns whether there was never any record other than headers.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
    pub(crate) fn get(&self, slot: Slot) -> Record {
        self.records.get(slot as usize).copied().unwrap_or(Record::Nothing)
    }
    pub(crate) fn put(&mut self, slot: Slot, record: Record) {
        put(&mut self.records, slot, record, Record::Nothing);
    }
    /// Returns the headers of a packet, or of the packet that it carries; meaningless unless that belongs to an
    /// application's queue pair.
    pub(crate) fn headers(&self, slot: Slot) -> Headers {
        self.headers.get(slot as usize).copied().unwrap_or_default()
    }
    fn put_headers(&mut self, slot: Slot, headers: Headers) {
        put(&mut self.headers, slot, headers, Headers::default());
    }
    /// Copies the records of a packet that leaves the partition to `outbox`: an entry for each packet, so that all
    /// lists stay aligned.
    #[cold]
    pub(crate) fn send_away(&self, fabric: &FabricParams, slot: Slot, outbox: &mut Outbox) {
        if fabric.has_cargo || fabric.writes_telemetry {
            outbox.records.push(self.get(slot));
        }
        if fabric.has_verbs {
            outbox.headers.push(self.headers(slot));
        }
    }
    /// Takes in the records of a packet from another partition.
    pub(crate) fn take_in(&mut self, slot: Slot, record: Option<Record>, headers: Option<Headers>) {
        if let Some(record) = record {
            self.put(slot, record);
        }
        if let Some(headers) = headers {
            self.put_headers(slot, headers);
        }
    }
}

fn put<T: Copy>(all: &mut Vec<T>, slot: Slot, one: T, nothing: T) {
    let slot = slot as usize;
    if slot >= all.len() {
        all.resize(slot + 1, nothing);
    }
    all[slot] = one;
}

impl<const RECORDED: bool> Edge<RECORDED> {
    /// Writes the records of a packet that leaves through port `at`, which are read where it arrives.
    pub(crate) fn write_records(&mut self, net: &Switches, at: u32, packet: &Descriptor) {
        if self.fabric.writes_telemetry {
            self.write_telemetry(net, at, packet.slot);
        }
        if self.fabric.has_cargo {
            self.load(net, at, packet.slot);
        }
        if self.fabric.has_verbs {
            self.head(net, at, packet.slot);
        }
    }

    /// Stores the packet that is carried by a packet that has just left a host's NIC.
    fn load(&mut self, net: &Switches, at: u32, slot: Slot) {
        let port = &net.egress[at];
        if port.is_host
            && let Some(cargo) = self.hosts[port.owner].nic.poll_cargo()
        {
            self.records.put(slot, Record::Cargo(cargo));
        }
    }

    /// Stores the headers of a packet that has just left a host's NIC, or of the packet that it carries, if that
    /// belongs to an application's queue pair.
    fn head(&mut self, net: &Switches, at: u32, slot: Slot) {
        let port = &net.egress[at];
        if port.is_host
            && let Some(headers) = self.hosts[port.owner].nic.poll_headers()
        {
            self.records.put_headers(slot, headers);
        }
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Hands a packet to its NIC, with its record.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_with_record(&mut self, host: u32, slot: Slot) -> Handled {
        if self.edge.pool.get(slot).slot == REQUESTS {
            return self.handle_verbs(host, slot);
        }
        let (packet, record) = (self.edge.pool.get(slot), self.edge.records.get(slot));
        if self.edge.fabric.has_cargo {
            return self.handle_carrier(host, slot, &packet, record.cargo());
        }
        let Host { nic, params, .. } = &mut self.edge.hosts[host];
        let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
        let handled = nic.handle_packet(&mut cx, params, &packet);
        nic.handle_path(params, self.net.now, &packet, &record.path());
        handled
    }

    /// Hands a packet to its NIC, with the packet that it carries.
    fn handle_carrier(&mut self, host: u32, slot: Slot, packet: &Packet, cargo: Option<Packet>) -> Handled {
        let headers = self.edge.records.headers.get(slot as usize);
        let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
        let Host { nic, params, .. } = &mut self.edge.hosts[host];
        let handled = nic.handle_carrier(&mut cx, params, packet, cargo, headers);
        if self.edge.fabric.has_verbs {
            self.attend_applications(host);
        }
        handled
    }

    /// Hands a packet of an application's queue pair to its NIC, with its headers.
    fn handle_verbs(&mut self, host: u32, slot: Slot) -> Handled {
        let (packet, headers) = (self.edge.pool.get(slot), self.edge.records.headers(slot));
        let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
        let Host { nic, params, .. } = &mut self.edge.hosts[host];
        let handled = nic.handle_verbs(&mut cx, params, &packet, &headers);
        self.attend_applications(host);
        handled
    }
}
