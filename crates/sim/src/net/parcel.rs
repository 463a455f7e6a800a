//! Data that partitions send each other.

use std::mem;

use selvedge_switch::descriptor::Descriptor;
use selvedge_wire::Packet;
use selvedge_wire::verbs::Headers;

use crate::kernel::nodes::Exchange;
use crate::net::notice::Notice;
use crate::net::records::Record;

/// Descriptors for a node of another partition, as a part of an [`Outbox`].
pub(crate) struct Parcel {
    pub(crate) node: u32,
    pub(crate) window: u64,
    /// Number of descriptors.
    pub(crate) count: usize,
}

/// Everything that a partition has for another one at the end of a window.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) parcels: Vec<Parcel>,
    /// Descriptors of all parcels, one after the other.
    pub(crate) inbox: Vec<Descriptor>,
    /// Packet of each descriptor.
    pub(crate) packets: Vec<Packet>,
    /// Records that belong to the packets that have one.
    pub(crate) records: Vec<Record>,
    pub(crate) headers: Vec<Headers>,
    pub(crate) notices: Vec<(u32, Notice)>,
}

impl Exchange for Outbox {
    fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            return mem::swap(self, other);
        }
        self.parcels.append(&mut other.parcels);
        self.inbox.append(&mut other.inbox);
        self.packets.append(&mut other.packets);
        self.records.append(&mut other.records);
        self.headers.append(&mut other.headers);
        self.notices.append(&mut other.notices);
    }

    fn is_empty(&self) -> bool {
        self.parcels.is_empty() && self.notices.is_empty()
    }
}
