//! Configuration of a laboratory: sizes, names, addresses.

use std::net::Ipv4Addr;

use selvedge_units::Rate;

use super::layout::Layout;
use crate::netns;

/// Greatest number of hosts. Addresses leave room for 250.
const MOST_HOSTS: u32 = 200;
/// Greatest number of paths.
const MOST_PATHS: u32 = 64;
/// Longest name. The names of namespaces and the path of a control socket have it in them.
const LONGEST_NAME: usize = 32;

/// Configuration of a laboratory. Hosts count from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Beginning of the names of all namespaces.
    pub name: String,
    /// Number of hosts, 1 to 200.
    pub hosts: u32,
    /// Rate of each link; `None` for as fast as the machine is.
    pub rate: Option<Rate>,
    /// Capacity of a switch's queue towards each link, in packets of full length. Without a rate, there is no queue.
    pub buffer: u32,
    /// MTU of all links in bytes.
    pub mtu: u16,
    /// Number of equal-cost paths between two hosts of different switches, 1 to 64. With one, all hosts are at one
    /// switch.
    pub paths: u32,
}

impl Plan {
    /// Checks the numbers and the name.
    ///
    /// # Errors
    /// Returns what is wrong, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        if self.hosts == 0 {
            return Err("a laboratory without hosts has no use; give 1 to 200, as in --hosts 8".to_owned());
        }
        if self.hosts > MOST_HOSTS {
            return Err(format!("{} hosts are too many for one machine; give 1 to {MOST_HOSTS}", self.hosts));
        }
        if !(1..=MOST_PATHS).contains(&self.paths) {
            return Err(format!("{} paths; give 1 to {MOST_PATHS}", self.paths));
        }
        if self.paths > 1 && self.hosts < 2 {
            return Err("several paths need at least 2 hosts".to_owned());
        }
        if self.rate.is_some_and(|rate| rate.as_bps() < 100_000) {
            return Err("a link slower than 100 kb/s keeps a program waiting for ever; give 100Kbps or more".to_owned());
        }
        if self.buffer < 2 {
            return Err("a queue of fewer than 2 packets drops what comes while one is sent; give 2 or more".to_owned());
        }
        if self.name.len() > LONGEST_NAME {
            return Err(format!("the name \"{}\" is too long; give at most {LONGEST_NAME} letters", self.name));
        }
        netns::check_name(&self.name)
    }

    /// Returns the names of all namespaces, of hosts and switches.
    pub fn namespaces(&self) -> Vec<String> {
        Layout::new(self).nodes.into_iter().map(|node| node.name).collect()
    }
    /// Returns the numbers of all hosts.
    pub fn all(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.hosts
    }
    /// Returns the name of a host's namespace.
    pub fn host(&self, host: u32) -> String {
        format!("{}-h{host}", self.name)
    }
    /// Returns the address of a host in the network outside tunnels.
    pub fn outer(&self, host: u32) -> Ipv4Addr {
        Ipv4Addr::new(10, 79, 0, host as u8)
    }
    /// Returns the address of a host inside tunnels.
    pub fn inner(&self, host: u32) -> Ipv4Addr {
        Ipv4Addr::new(10, 80, host as u8, 1)
    }
    /// Returns the prefix of the addresses that a host serves inside tunnels.
    pub fn prefix(&self, host: u32) -> String {
        format!("10.80.{host}.0/24")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn plan(hosts: u32, paths: u32) -> Plan {
        let rate = Some(Rate::from_bps(100_000_000));
        Plan { name: "lab".into(), hosts, rate, buffer: 20, mtu: 1_500, paths }
    }

    #[test]
    fn numbers_are_checked() {
        let wrong = |change: fn(&mut Plan)| {
            let mut plan = plan(4, 1);
            change(&mut plan);
            plan.check().unwrap_err()
        };
        assert_eq!(plan(4, 2).check(), Ok(()));
        assert!(wrong(|plan| plan.hosts = 0).contains("--hosts 8"));
        assert!(wrong(|plan| plan.hosts = 201).contains("give 1 to 200"));
        assert!(wrong(|plan| plan.paths = 65).contains("give 1 to 64"));
        assert!(wrong(|plan| plan.rate = Some(Rate::from_bps(9))).contains("100Kbps or more"));
        assert!(wrong(|plan| plan.buffer = 1).contains("2 or more"));
        assert!(wrong(|plan| plan.name = "a/b".into()).contains("is no name"));
        assert!(wrong(|plan| plan.name = "x".repeat(33)).contains("at most 32"));
    }
}
