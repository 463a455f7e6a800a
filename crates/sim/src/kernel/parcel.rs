//! What partitions send each other.

use std::mem;

use selvedge_wire::Packet;
use selvedge_wire::verbs::Headers;

use crate::net::descriptor::Descriptor;
use crate::net::notice::Notice;
use crate::net::records::Record;

/// Mail of a node of another partition.
pub(crate) struct Parcel {
    pub(crate) node: u32,
    pub(crate) window: u64,
    /// How much it is.
    pub(crate) count: usize,
}

/// What a partition has for another one at the end of a window.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) parcels: Vec<Parcel>,
    /// The mail of all of them, one after the other.
    pub(crate) mail: Vec<Descriptor>,
    /// The packet of each.
    pub(crate) packets: Vec<Packet>,
    /// What lies beside each of them, where something does.
    pub(crate) records: Vec<Record>,
    pub(crate) headers: Vec<Headers>,
    pub(crate) notices: Vec<(u32, Notice)>,
}

impl Outbox {
    /// Takes all that `other` holds.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return mem::swap(self, other);
        }
        self.parcels.append(&mut other.parcels);
        self.mail.append(&mut other.mail);
        self.packets.append(&mut other.packets);
        self.records.append(&mut other.records);
        self.headers.append(&mut other.headers);
        self.notices.append(&mut other.notices);
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.notices.is_empty()
    }
}
