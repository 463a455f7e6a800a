//! A link's parameters.

use schemars::JsonSchema;
use selvedge_units::{Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// A link's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Rate of each direction; above zero, at most 100 Tb/s.
    pub rate: Rate,
    /// Propagation delay of each direction; above zero, at most 100 s.
    pub delay: Duration,
}

impl LinkConfig {
    /// No link is longer, so that round trips can be counted in picoseconds on any path.
    const LONGEST: Duration = Duration::from_us(100_000_000);
    /// No link is faster, so that what is under way on one can be counted in bytes, and a frame takes some time.
    const FASTEST: Rate = Rate::from_gbps(100_000);

    /// Whether such a link can exist; `key` is the table it was read from.
    pub(super) fn check(self, key: &str) -> Result<(), ConfigError> {
        let error = |field, message| Err(ConfigError::new(field, message).within(key));
        if self.rate.is_zero() {
            return error("rate", "nothing crosses a link of rate zero: set a rate as \"40Gbps\"");
        }
        if self.rate > Self::FASTEST {
            return error("rate", "no port is nearly as fast: set 100Tbps at most");
        }
        if self.delay.is_zero() {
            // The lookahead of conservative windows (Chandy and Misra).
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

/// An error unless `count` is at least `least`.
pub(super) fn at_least(key: &str, count: u32, least: u32, what: &str) -> Result<(), ConfigError> {
    if count < least {
        return Err(ConfigError::new(key, format!("found {count}, but {what} at least {least}")));
    }
    Ok(())
}
