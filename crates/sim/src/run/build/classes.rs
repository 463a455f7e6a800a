//! Traffic classes in use.

use crate::config::{MOST_CLASSES, SimConfig};
use crate::error::ConfigError;
use crate::workload::WorkloadSummary;

/// Priorities in use, and the classes that packets carry inside the fabric for them: 0 for the lowest priority.
pub(super) struct Classes {
    /// Class of flows, indexed by their priority; the last entry is that of flows without a priority.
    pub(super) of_flow: [u8; 9],
    /// Bit per class that flows may have.
    pub(super) all_data: u8,
    pub(super) ack: u8,
    pub(super) cnp: u8,
    /// Classes of data and of acknowledgements of TCP beside the transport.
    pub(super) beside: u8,
    pub(super) beside_ack: u8,
    pub(super) count: u32,
    priorities: Vec<u8>,
}

impl Classes {
    pub(super) fn of(config: &SimConfig, workloads: &[WorkloadSummary]) -> Result<Self, ConfigError> {
        let nic = &config.nic;
        let priorities = config.switch.priorities(nic, &config.transport, config.beside.as_ref(), workloads);
        if priorities.len() > MOST_CLASSES {
            let message = format!("{} priorities are in use; at most {MOST_CLASSES} can be", priorities.len());
            return Err(ConfigError::new("workload", message));
        }
        let index = |priority| priorities.iter().position(|&p| p == priority).unwrap_or(0) as u8;
        let of_flow = std::array::from_fn(|priority| match priority as u8 {
            priority @ 0..=7 => index(priority),
            _ => index(nic.data_class),
        });
        let data = config.switch.data_priorities(nic, &config.transport, config.beside.as_ref(), workloads);
        let guest = config.beside.as_ref().and_then(|beside| beside.class);
        Ok(Self {
            of_flow,
            all_data: data.into_iter().fold(0, |bits, priority| bits | 1 << index(priority)),
            ack: index(nic.ack_class),
            cnp: index(nic.cnp_class),
            beside: guest.map_or(index(nic.data_class), index),
            beside_ack: guest.map_or(index(nic.ack_class), index),
            count: priorities.len() as u32,
            priorities,
        })
    }

    /// Returns `given`, which is indexed by priority, indexed by class instead.
    pub(super) fn of_priorities(&self, given: [u16; 8]) -> [u16; 8] {
        let mut by_class = given;
        by_class.iter_mut().zip(&self.priorities).for_each(|(own, &priority)| *own = given[usize::from(priority)]);
        by_class
    }

    /// Returns the weights of the classes in use, of `given`, which is indexed by priority; those of others are 0.
    pub(super) fn weights(&self, given: &[u16; 8]) -> [u16; 8] {
        std::array::from_fn(|class| self.priorities.get(class).map_or(0, |&priority| given[usize::from(priority)]))
    }

    /// Returns the class of a priority that is in use.
    pub(super) fn index(&self, priority: u8) -> u8 {
        self.priorities.iter().position(|&p| p == priority).unwrap_or(0) as u8
    }

    /// Returns a bit set of the classes whose priorities are listed.
    pub(super) fn bits(&self, listed: &[u8]) -> u8 {
        let listed = (0u8..).zip(&self.priorities).filter(|(_, priority)| listed.contains(priority));
        listed.fold(0, |bits, (class, _)| bits | 1 << class)
    }
}
