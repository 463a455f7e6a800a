//! Hosts by number, as the engines know them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use selvedge_units::HostId;

/// Numbers of hosts: an IPv4 address is its own number, IPv6 addresses are counted within the range 240.0.0.0/4, which
/// no host has.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: BTreeMap<Ipv6Addr, u32>,
    addresses: Vec<Ipv6Addr>,
}

/// First number of an IPv6 address.
const FIRST: u32 = 0xf000_0000;
/// IPv6 addresses that are known at a time. Flows of others pass untouched.
const MOST: usize = 1 << 16;

impl Names {
    /// Returns the number of a host; `None` if there are too many.
    pub(crate) fn number(&mut self, address: IpAddr) -> Option<HostId> {
        match address {
            IpAddr::V4(address) => Some(u32::from(address)).filter(|number| *number < FIRST).map(HostId),
            IpAddr::V6(address) => {
                if let Some(number) = self.numbers.get(&address) {
                    return Some(HostId(*number));
                }
                if self.addresses.len() >= MOST {
                    return None;
                }
                let number = FIRST + self.addresses.len() as u32;
                self.addresses.push(address);
                self.numbers.insert(address, number);
                Some(HostId(number))
            }
        }
    }

    /// Returns the address of a host.
    pub(crate) fn address(&self, host: HostId) -> Option<IpAddr> {
        match host.0.checked_sub(FIRST) {
            None => Some(Ipv4Addr::from(host.0).into()),
            Some(at) => self.addresses.get(at as usize).copied().map(IpAddr::from),
        }
    }
}
