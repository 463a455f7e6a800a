//! Hosts of a laboratory as daemons and programs see them, whatever network is between them.

use std::net::Ipv4Addr;

use selvedge_dataplane::lab::{Plan, RackPlan};
use selvedge_units::Rate;

/// Hosts, numbered from 1.
pub(super) struct Sites {
    hosts: Vec<Site>,
    /// MTU of their links in bytes.
    pub(super) mtu: u16,
}

struct Site {
    namespace: String,
    outer: Ipv4Addr,
    rate: Option<Rate>,
}

impl Sites {
    /// Returns the hosts of a network of the kernel's switches.
    pub(super) fn of_plan(plan: &Plan) -> Self {
        let site = |host| Site { namespace: plan.host(host), outer: plan.outer(host), rate: plan.rate };
        Self { hosts: plan.all().map(site).collect(), mtu: plan.mtu }
    }

    /// Returns the hosts of a rack.
    pub(super) fn of_rack(plan: &RackPlan) -> Self {
        let site = |host: usize| Site {
            namespace: plan.namespace(host),
            outer: plan.address(host),
            rate: plan.hosts[host].rate,
        };
        Self { hosts: (0..plan.hosts.len()).map(site).collect(), mtu: plan.mtu }
    }

    /// Returns the number of hosts.
    pub(super) fn count(&self) -> u32 {
        self.hosts.len() as u32
    }
    /// Returns the numbers of all hosts.
    pub(super) fn all(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.count()
    }
    /// Returns the name of a host's namespace.
    pub(super) fn host(&self, host: u32) -> &str {
        &self.site(host).namespace
    }
    /// Returns the address of a host in the network outside tunnels.
    pub(super) fn outer(&self, host: u32) -> Ipv4Addr {
        self.site(host).outer
    }
    /// Returns the rate of a host's link; `None`: as fast as the machine is.
    pub(super) fn rate(&self, host: u32) -> Option<Rate> {
        self.site(host).rate
    }
    /// Returns the address of a host inside tunnels.
    pub(super) fn inner(&self, host: u32) -> Ipv4Addr {
        Ipv4Addr::new(10, 80, host as u8, 1)
    }
    /// Returns the prefix of the addresses that a host serves inside tunnels.
    pub(super) fn prefix(&self, host: u32) -> String {
        format!("10.80.{host}.0/24")
    }

    fn site(&self, host: u32) -> &Site {
        &self.hosts[(host - 1) as usize]
    }
}
