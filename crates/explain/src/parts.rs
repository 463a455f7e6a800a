//! The parts of a completion time.

use std::ops::{Index, IndexMut};

use selvedge_telemetry::TimePart;
use selvedge_units::Duration;
use serde::{Serialize, Serializer};

/// The parts that explanations distinguish, in the order of tables. A recording tells behind which packets each packet
/// waited, so that time behind acknowledgements is [`TimePart::Nic`] or [`TimePart::Queueing`], and no time is
/// unexplained.
pub const EXPLAINED: [TimePart; 11] = [
    TimePart::Serialisation,
    TimePart::Propagation,
    TimePart::Queueing,
    TimePart::Pause,
    TimePart::Nic,
    TimePart::Pacing,
    TimePart::Window,
    TimePart::Cap,
    TimePart::Recovery,
    TimePart::Timeout,
    TimePart::Outage,
];

/// A time, split into parts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Parts {
    spans: [Duration; TimePart::ALL.len()],
}

impl Parts {
    /// Returns the sum of all parts.
    pub fn total(&self) -> Duration {
        self.spans.iter().copied().sum()
    }
    /// Returns each part of [`EXPLAINED`] with its time, in that order.
    pub fn iter(&self) -> impl Iterator<Item = (TimePart, Duration)> + '_ {
        EXPLAINED.into_iter().map(|part| (part, self[part]))
    }
    /// Returns the largest part; of equal parts, the first.
    pub fn largest(&self) -> TimePart {
        self.iter().fold(TimePart::Serialisation, |best, (part, span)| if span > self[best] { part } else { best })
    }
}

impl Index<TimePart> for Parts {
    type Output = Duration;
    fn index(&self, part: TimePart) -> &Duration {
        &self.spans[part as usize]
    }
}
impl IndexMut<TimePart> for Parts {
    fn index_mut(&mut self, part: TimePart) -> &mut Duration {
        &mut self.spans[part as usize]
    }
}

/// Serialises as `{ "serialisation_ps": 1, ... }`.
impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(part, span)| (format!("{}_ps", part.name()), span.as_ps())))
    }
}
