//! Parameters of links.

use schemars::JsonSchema;
use selvedge_units::{Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// Parameters of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Rate of each direction; above zero, at most 100 Tb/s.
    pub rate: Rate,
    /// Propagation delay of each direction; above zero, at most 100 s.
    pub delay: Duration,
}

impl LinkConfig {
    /// Longest delay of a link, so that round trips can be counted in picoseconds on any path.
    const LONGEST: Duration = Duration::from_us(100_000_000);
    /// Highest rate of a link, so that the bytes in flight on one can be counted, and a frame takes some time.
    const FASTEST: Rate = Rate::from_gbps(100_000);

    /// Checks that such a link can exist; `key` is the table from which it was read.
    pub(super) fn check(self, key: &str) -> Result<(), ConfigError> {
        let error = |field, message| Err(ConfigError::new(field, message).within(key));
        if self.rate.is_zero() {
            return error("rate", "nothing crosses a link of rate zero: set a rate as \"40Gbps\"");
        }
        if self.rate > Self::FASTEST {
            return error("rate", "no port is nearly as fast: set 100Tbps at most");
        }
        if self.delay.is_zero() {
            // The delay is the lookahead of conservative windows (Chandy and Misra).
            return error(
                "delay",
                "a link needs a propagation delay above zero, as \"1us\": threads may simulate that far ahead of each other",
            );
        }
        if self.delay > Self::LONGEST {
            return error("delay", "light itself is hardly ever under way for so long: set 100s at most");
        }
        Ok(())
    }
}

/// Returns an error unless `count` is at least `least`.
pub(super) fn at_least(key: &str, count: u32, least: u32, what: &str) -> Result<(), ConfigError> {
    if count < least {
        return Err(ConfigError::new(key, format!("found {count}, but {what} at least {least}")));
    }
    Ok(())
}
