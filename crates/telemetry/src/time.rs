//! Where completion time goes, over all flows of a run.

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

            /// Its name in tables.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Part => $name),+ }
            }
            /// Its letter in bars.
            pub const fn letter(self) -> char {
                match self { $(Self::$Part => $letter),+ }
            }
        }
    };
}

parts! {
    /// Sending its own bits for the first time, on its slowest link; the last packet's on all.
    Serialisation = "serialisation", 's';
    /// The last packet in flight on links.
    Propagation = "propagation", 'p';
    /// Behind data packets in switches, on the way there or of acknowledgements back.
    Queueing = "queueing", 'Q';
    /// Behind acknowledgements and congestion notifications, in switches or at the sender's NIC.
    Acks = "acks", 'A';
    /// While priority flow control stopped a port, the sender's own or one on the way.
    Pause = "pause", 'P';
    /// Behind other queue pairs at the sender's NIC.
    Nic = "nic", 'N';
    /// Because congestion control spaced packets.
    Pacing = "pacing", 'R';
    /// Because congestion control's window was smaller than an undisturbed round trip asks for.
    Window = "window", 'W';
    /// Because the loss recovery's limit on packets in flight (BDP-FC) was.
    Cap = "cap", 'B';
    /// Until the sender knew of a loss, sending packets again, and waiting for what that set right.
    Recovery = "recovery", 'L';
    /// Until a retransmission timeout ran out.
    Timeout = "timeout", 'T';
    /// While a link on the way was down.
    Outage = "outage", 'D';
    /// What cannot be told: messages that share a queue pair, packets inside tunnels of others.
    Other = "other", '?';
}

/// Time of many flows together, part by part, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartTimes([u128; TimePart::ALL.len()]);

impl PartTimes {
    /// All of it.
    pub fn total(&self) -> u128 {
        self.0.iter().sum()
    }
    /// Each part with its time, in the order of tables.
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

/// What the measured flows of one workload spent, in estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkloadTime {
    /// By part; of flows that never finished, their time until the end of the run.
    pub parts: PartTimes,
    /// How many flows were looked at, each as often as it was.
    pub samples: u64,
}

impl WorkloadTime {
    /// Adds that of other flows.
    pub fn add(&mut self, other: &Self) {
        self.parts.add(&other.parts);
        self.samples += other.samples;
    }
}

/// Where the completion time of a run's measured flows went, from looks at some of those under way at chosen instants:
/// a sample, whose shares have an error.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TimeProfile {
    /// By workload; shorter where the last ones have no flows that were looked at.
    pub workloads: Vec<WorkloadTime>,
    /// How often somebody has looked.
    pub looks: u64,
}
