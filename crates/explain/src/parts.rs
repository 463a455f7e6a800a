//! What a completion time is made of.

use std::ops::{Index, IndexMut};

use selvedge_units::Duration;
use serde::{Serialize, Serializer};

macro_rules! parts {
    ($( $(#[$doc:meta])* $Part:ident = $name:literal, $letter:literal; )+) => {
        /// One cause of time.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Part {
            $( $(#[$doc])* $Part, )+
        }

        impl Part {
            /// All parts, in the order of tables.
            pub const ALL: &'static [Self] = &[$(Self::$Part),+];

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
    /// The flow's own bits on its slowest link, and the last packet's on the others.
    Serialisation = "serialisation", 's';
    /// The last packet in flight on its links.
    Propagation = "propagation", 'p';
    /// Behind packets of other flows in switches, on the way there or of acknowledgements back.
    Queueing = "queueing", 'Q';
    /// While priority flow control stopped a port, the sender's own or one on the way.
    Pause = "pause", 'P';
    /// Behind other queue pairs and acknowledgements at the sender's NIC.
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
}

/// A time, part by part.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Parts {
    spans: [Duration; Part::ALL.len()],
}

impl Parts {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.spans.iter().copied().sum()
    }
    /// Each part with its time, in the order of tables.
    pub fn iter(&self) -> impl Iterator<Item = (Part, Duration)> + '_ {
        Part::ALL.iter().map(|&part| (part, self[part]))
    }
    /// The largest part, the first of equals.
    pub fn largest(&self) -> Part {
        self.iter().fold(Part::Serialisation, |best, (part, span)| if span > self[best] { part } else { best })
    }
}

impl Index<Part> for Parts {
    type Output = Duration;
    fn index(&self, part: Part) -> &Duration {
        &self.spans[part as usize]
    }
}
impl IndexMut<Part> for Parts {
    fn index_mut(&mut self, part: Part) -> &mut Duration {
        &mut self.spans[part as usize]
    }
}

/// As `{ "serialisation_ps": 1, ... }`.
impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(part, span)| (format!("{}_ps", part.name()), span.as_ps())))
    }
}
