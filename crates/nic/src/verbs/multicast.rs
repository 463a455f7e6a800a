//! Multicast: datagrams for a group go to every queue pair that is attached to it (InfiniBand architecture, volume 1,
//! section 10.5).
//!
//! The destination queue pair of such datagrams is [`MULTICAST`], and the group is their network address. A queue pair
//! that sends to its own group does not receive its own datagrams; others of the host do.

use alloc::collections::BTreeSet;
use core::net::Ipv6Addr;
use core::ops::RangeInclusive;

use selvedge_transport::Cx;
use selvedge_units::QpNumber;

use super::arrival::Arrival;
use super::attributes::Service;
use super::error::VerbsError;
use super::memory::Memory;
use super::rnic::{Limits, Rnic};

/// Destination queue pair of datagrams to a group.
pub const MULTICAST: QpNumber = QpNumber(0xff_ffff);

/// Returns whether an address is a group's: IPv6's `ff00::/8`, or IPv4's `224.0.0.0/4` as `::ffff:a.b.c.d`.
pub fn is_group(address: &Ipv6Addr) -> bool {
    address.to_ipv4_mapped().map_or_else(|| address.is_multicast(), |v4| v4.is_multicast())
}

/// Memberships: pairs of group address and queue pair number.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeSet<(Ipv6Addr, u32)>);

impl Groups {
    fn all_of(group: Ipv6Addr) -> RangeInclusive<(Ipv6Addr, u32)> {
        (group, 0)..=(group, u32::MAX)
    }
    /// Removes a destroyed queue pair from all groups.
    pub(super) fn forget(&mut self, qp: QpNumber) {
        self.0.retain(|&(_, member)| member != qp.0);
    }
}

impl Rnic {
    /// Attaches a queue pair for datagrams to a group; returns whether it was not attached already.
    ///
    /// # Errors
    /// Fails if the queue pair does not exist, the address is no group's, or the limit of attachments is reached.
    pub fn attach(&mut self, qp: QpNumber, group: Ipv6Addr) -> Result<bool, VerbsError> {
        let pair = self.qps.get(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        if pair.init.service != Service::Datagram || !is_group(&group) {
            return Err(VerbsError::Invalid("only queue pairs for datagrams can be attached, and only to groups"));
        }
        if self.groups.0.contains(&(group, qp.0)) {
            return Ok(false);
        }
        if self.groups.0.len() >= Limits::HERE.attachments as usize {
            return Err(VerbsError::Exhausted("places in multicast groups"));
        }
        Ok(self.groups.0.insert((group, qp.0)))
    }
    /// Detaches a queue pair from a group.
    ///
    /// # Errors
    /// Fails if the queue pair is not attached to the group.
    pub fn detach(&mut self, qp: QpNumber, group: Ipv6Addr) -> Result<(), VerbsError> {
        if self.groups.0.remove(&(group, qp.0)) { Ok(()) } else { Err(VerbsError::NoSuch("member of the group")) }
    }

    /// Delivers a packet for a group to each of its members, as if it were sent to that member alone.
    pub(super) fn handle_for_group(&mut self, cx: &mut Cx<'_>, memory: &mut impl Memory, arrival: &Arrival<'_>) {
        for (_, qp) in self.groups.0.range(Groups::all_of(arrival.route.local)) {
            if let Some(pair) = self.qps.get_mut(qp)
                && !pair.is_sender_of(arrival)
            {
                pair.handle_packet(cx, &mut self.shared, memory, arrival);
            }
        }
    }
}
