//! Choice of the flows that are measured.

use schemars::JsonSchema;
use selvedge_units::words::plural;
use selvedge_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::{Extent, Fraction};
use crate::ConfigError;

/// Choice of the flows that are measured. The others load the network before (warm-up) and after.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// All flows.
    #[default]
    All,
    /// Middle fraction of the flows by number in order of start: 0.8 leaves out the first and the last tenth. Needs a
    /// known number of flows. Flows that wait for others (closed loops, permutations, all-to-all, triggers) have no
    /// number beforehand and are all measured.
    Middle(Fraction),
    /// Flows that start in a window of time, of whatever workload.
    Window(Window),
}

/// Window of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Window {
    /// First instant of the window, from the beginning of the run.
    #[serde(default)]
    pub from: Duration,
    /// First instant after the window. Absent: the window has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
}

impl Measure {
    /// Returns whether a flow is measured that starts at `start` and has no number beforehand.
    pub fn counts(&self, start: Instant) -> bool {
        match self {
            Self::All | Self::Middle(_) => true,
            Self::Window(window) => {
                let offset = start.since(Instant::ZERO);
                offset >= window.from && window.to.is_none_or(|to| offset < to)
            }
        }
    }
    /// Returns the numbers of the measured flows of a stream, as `first..end`.
    ///
    /// # Errors
    /// A window without time in it; a middle of an unknown number of flows, or of so few that it contains none.
    pub(super) fn numbers(&self, extent: Extent) -> Result<std::ops::Range<u64>, ConfigError> {
        match self {
            Self::Window(Window { from, to: Some(to) }) if to <= from => Err(ConfigError::new(
                "measure.window",
                format!("nothing starts from {from} until {to}: `to` must be later than `from`"),
            )),
            Self::All | Self::Window(_) => Ok(0..u64::MAX),
            Self::Middle(part) => {
                let total = extent.known().ok_or_else(|| {
                    ConfigError::new(
                        "measure.middle",
                        "the number of flows is not known beforehand: set stop.flows, or the workload's `flows`, or measure a window of time",
                    )
                })?;
                let counted = part.of(total);
                if counted == 0 && total > 0 {
                    let message = format!(
                        "the middle {part} of {} is less than one: give more, or let there be more flows",
                        plural(total, "flow")
                    );
                    return Err(ConfigError::new("measure.middle", message));
                }
                let first = (total - counted) / 2;
                Ok(first..first + counted)
            }
        }
    }
}
