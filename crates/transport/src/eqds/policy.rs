//! Policies by which a receiver shares its link among its senders: queues with insertion at any position and removal
//! from the front (PIFO, Sivaraman et al., SIGCOMM'16; section 5).

use alloc::collections::BinaryHeap;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::fabric::SettingError;

/// Policy by which a receiver shares its link among the sending hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Policy {
    /// Equal shares.
    #[default]
    Fair,
    /// Strict priority by the priority of the traffic; equal shares within a priority.
    Priority,
    /// Equal shares of the sending hosts, whatever the number of their tunnels and the priorities that they claim; each
    /// host's tunnels share its part.
    Hosts,
    /// Shares proportional to the weights of the priorities of the traffic: eight numbers from 1 to 65535, that of
    /// priority 0 first.
    Weighted([u16; 8]),
}

impl Policy {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        match self {
            Self::Weighted(weights) if weights.contains(&0) => {
                let message = format!("a weight of zero in {weights:?} starves that priority; give 1 or more");
                Err(SettingError::new("policy", message))
            }
            _ => Ok(()),
        }
    }
}

/// A queue ordered by lowest rank, then by arrival.
#[derive(Clone, Debug)]
pub(super) struct Pifo {
    policy: Policy,
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    pushed: u64,
    /// Virtual time: rank of the sender served last.
    time: u64,
    /// Virtual time at which a sender's granted credit is used up, and that which a quantum takes, indexed by sender.
    finish: Vec<(u64, u64)>,
}

/// Virtual time per quantum at a weight of 1; large enough for precise division by 16-bit weights.
const TURN: u64 = 1 << 20;

impl Pifo {
    /// Creates an empty queue.
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, heap: BinaryHeap::new(), pushed: 0, time: 0, finish: Vec::new() }
    }

    /// Returns whether no sender wants credit.
    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Adds a sender that will be granted a quantum.
    pub(super) fn push(&mut self, sender: u32, priority: u8) {
        let rank = match self.policy {
            Policy::Fair | Policy::Hosts => 0,
            Policy::Priority => u64::from(7 - priority.min(7)),
            Policy::Weighted(weights) => {
                let place = sender as usize;
                if self.finish.len() <= place {
                    self.finish.resize(place + 1, (0, 0));
                }
                let (finish, turn) = &mut self.finish[place];
                *turn = TURN / u64::from(weights[usize::from(priority.min(7))].max(1));
                *finish = self.time.max(*finish) + *turn;
                *finish
            }
        };
        self.heap.push(Reverse((rank, self.pushed, sender)));
        self.pushed += 1;
    }

    /// Removes and returns the first sender.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let Reverse((rank, _, sender)) = self.heap.pop()?;
        self.time = rank;
        Some(sender)
    }

    /// Charges a sender for `quanta` quanta beyond the one that it was added for.
    pub(super) fn charge(&mut self, sender: u32, quanta: u32) {
        if let Some((finish, turn)) = self.finish.get_mut(sender as usize) {
            *finish += *turn * u64::from(quanta);
        }
    }
}
