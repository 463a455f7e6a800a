//! What partitions send each other.

use selvedge_units::Instant;
use selvedge_wire::Packet;
use selvedge_wire::verbs::Headers;

use crate::net::descriptor::Descriptor;
use crate::net::notice::Notice;
use crate::net::records::Record;

/// A packet on its way to another partition.
pub(crate) struct Parcel {
    pub(crate) at: Instant,
    pub(crate) node: u32,
    pub(crate) descriptor: Descriptor,
    pub(crate) packet: Packet,
}

/// What a partition has for another one at the end of a window.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) parcels: Vec<Parcel>,
    /// What lies beside each of them, where something does.
    pub(crate) records: Vec<Record>,
    pub(crate) headers: Vec<Headers>,
    pub(crate) notices: Vec<(u32, Notice)>,
}
