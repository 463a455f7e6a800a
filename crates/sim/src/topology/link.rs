//! A link's parameters.

use schemars::JsonSchema;
use selvedge_units::{Duration, Rate};
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// A link's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Rate of each direction; above zero.
    pub rate: Rate,
    /// Propagation delay of each direction; above zero.
    pub delay: Duration,
}

impl LinkConfig {
    /// Whether such a link can exist; `key` is the table it was read from.
    pub(super) fn check(self, key: &str) -> Result<(), ConfigError> {
        let error = |field, message| Err(ConfigError::new(field, message).within(key));
        if self.rate.is_zero() {
            return error("rate", "nothing crosses a link of rate zero: set a rate as \"40Gbps\"");
        }
        if self.delay.is_zero() {
            // The lookahead of conservative windows (Chandy and Misra).
            return error(
                "delay",
                "a link needs a propagation delay above zero, as \"1us\": threads may simulate that far ahead of each other",
            );
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
