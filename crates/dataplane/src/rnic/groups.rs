//! Multicast groups that this process has joined, with their interfaces and queue pairs.
//!
//! The sockets join a group: the kernel tells routers (IGMP, MLD), and gives a copy to each socket on port 4791 that
//! has joined, whichever process owns it. Interfaces are distinguished when a group is joined, not when its packets
//! arrive: a process that has joined one group on two interfaces receives both.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use rustix::net::sockopt::{
    set_ip_add_membership_with_ifindex, set_ip_drop_membership_with_ifindex, set_ipv6_add_membership,
    set_ipv6_drop_membership,
};
use selvedge_units::QpNumber;

use super::port::Sockets;

/// Members of groups: interface index, group address, number of the queue pair.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeSet<(u32, Ipv6Addr, u32)>);

impl Groups {
    /// Adds a queue pair to a group on an interface; the first member makes the sockets join.
    pub(super) fn join(&mut self, sockets: &Sockets, interface: u32, group: Ipv6Addr, qp: QpNumber) -> io::Result<()> {
        if !self.has(interface, group) {
            match group.to_ipv4_mapped() {
                Some(v4) => {
                    set_ip_add_membership_with_ifindex(&sockets.v4, &v4, &Ipv4Addr::UNSPECIFIED, interface)?;
                }
                None => set_ipv6_add_membership(v6_of(sockets)?, &group, interface)?,
            }
        }
        self.0.insert((interface, group, qp.0));
        Ok(())
    }
    /// Removes a queue pair from `group`, or from all groups if `None`.
    pub(super) fn leave(&mut self, sockets: &Sockets, group: Option<Ipv6Addr>, qp: QpNumber) {
        let ends = |entry: &(u32, Ipv6Addr, u32)| entry.2 == qp.0 && group.is_none_or(|group| group == entry.1);
        let ended: Vec<_> = self.0.iter().copied().filter(ends).collect();
        for entry in ended {
            self.0.remove(&entry);
            let (interface, group, _) = entry;
            if self.has(interface, group) {
                continue;
            }
            // The kernel removes memberships of an interface that no longer exists.
            let _ = match group.to_ipv4_mapped() {
                Some(v4) => set_ip_drop_membership_with_ifindex(&sockets.v4, &v4, &Ipv4Addr::UNSPECIFIED, interface),
                None => match v6_of(sockets) {
                    Ok(v6) => set_ipv6_drop_membership(v6, &group, interface),
                    Err(_) => Ok(()),
                },
            };
        }
    }
    fn has(&self, interface: u32, group: Ipv6Addr) -> bool {
        self.0.range((interface, group, 0)..=(interface, group, u32::MAX)).next().is_some()
    }
}

fn v6_of(sockets: &Sockets) -> io::Result<&std::os::fd::OwnedFd> {
    sockets.v6.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
}
