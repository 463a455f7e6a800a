//! Composition of the completion time over all flows of a run.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

macro_rules! parts {
    ($( $(#[$doc:meta])* $Part:ident = $name:literal, $letter:literal; )+) => {
        /// One cause of completion time. Explanations of recorded runs have all but [`TimePart::Acks`] and
        /// [`TimePart::Other`], which samples of a running fabric need.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum TimePart {
            $( $(#[$doc])* $Part, )+
        }

        impl TimePart {
            /// All parts, in the order of tables.
            pub const ALL: [Self; [$($letter),+].len()] = [$(Self::$Part),+];

            /// Returns the part's name in tables.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Part => $name),+ }
            }
            /// Returns the part's letter in bars.
            pub const fn letter(self) -> char {
                match self { $(Self::$Part => $letter),+ }
            }
        }
    };
}

parts! {
    /// Transmission of the flow's bits for the first time on its slowest link, and of the last packet on all.
    Serialisation = "serialisation", 's';
    /// Propagation of the last packet on links.
    Propagation = "propagation", 'p';
    /// Waiting behind data packets in switches, by data or by acknowledgements.
    Queueing = "queueing", 'Q';
    /// Waiting behind acknowledgements and congestion notifications, in switches or at the sender's NIC.
    Acks = "acks", 'A';
    /// Waiting while priority flow control stopped a port, the sender's own or one on the path.
    Pause = "pause", 'P';
    /// Waiting behind other queue pairs at the sender's NIC.
    Nic = "nic", 'N';
    /// Spacing of packets by congestion control.
    Pacing = "pacing", 'R';
    /// Limitation by congestion control's window, smaller than an undisturbed round trip requires.
    Window = "window", 'W';
    /// Limitation by the loss recovery's limit on packets in flight (BDP-FC).
    Cap = "cap", 'B';
    /// Time until the sender detected a loss, retransmissions, and waiting for their effect.
    Recovery = "recovery", 'L';
    /// Waiting for a retransmission timeout.
    Timeout = "timeout", 'T';
    /// Waiting while a link on the path was down.
    Outage = "outage", 'D';
    /// Unknown causes: messages that share a queue pair, packets inside tunnels of others.
    Other = "other", '?';
}

/// Total time of many flows by part, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartTimes([u128; TimePart::ALL.len()]);

impl PartTimes {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u128 {
        self.0.iter().sum()
    }
    /// Returns each part with its time, in the order of tables.
    pub fn iter(&self) -> impl Iterator<Item = (TimePart, u128)> + '_ {
        TimePart::ALL.into_iter().zip(self.0)
    }
    /// Adds the times of other flows.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl Index<TimePart> for PartTimes {
    type Output = u128;
    fn index(&self, part: TimePart) -> &u128 {
        &self.0[part as usize]
    }
}

impl IndexMut<TimePart> for PartTimes {
    fn index_mut(&mut self, part: TimePart) -> &mut u128 {
        &mut self.0[part as usize]
    }
}

/// Estimated time of the measured flows of one workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkloadTime {
    /// Time by part; for flows that never finished, until the end of the run.
    pub parts: PartTimes,
    /// Number of samples; a flow counts once per sample.
    pub samples: u64,
}

impl WorkloadTime {
    /// Adds the estimate for other flows.
    pub fn add(&mut self, other: &Self) {
        self.parts.add(&other.parts);
        self.samples += other.samples;
    }
}

/// Composition of the completion time of a run's measured flows, from samples of flows in progress at random times; the
/// shares have a sampling error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TimeProfile {
    /// Estimates by workload; shorter if the last workloads have no sampled flows.
    pub workloads: Vec<WorkloadTime>,
    /// Number of sampling times.
    pub looks: u64,
}
