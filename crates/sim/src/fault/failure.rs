//! Links that fail and come back.

use schemars::JsonSchema;
use selvedge_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::LinkSelector;
use crate::ConfigError;
use crate::topology::Graph;

/// Links that fail at one time, in both directions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkFailure {
    /// Links that fail.
    pub link: LinkSelector,
    /// Time at which the links fail, from the beginning of the run.
    pub at: Duration,
    /// Time at which the links work again. Absent: never. Of the packets on the wire, only those that arrive while the
    /// link is down are lost: a failure shorter than a link's delay spares some of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
}

/// Change of a link's state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkEvent {
    /// Time of the change.
    pub at: Instant,
    /// Index of the link.
    pub link: u32,
    /// Whether the link works from then on.
    pub up: bool,
}

/// Returns the changes of the links of `graph`, by ascending time, then link. A link is down while any of `failures`
/// holds, and each event changes its state.
///
/// # Errors
/// A selector that selects nothing, or an end that is not after the beginning; keys are like "\[1\].until".
pub fn link_events(graph: &Graph, failures: &[LinkFailure]) -> Result<Vec<LinkEvent>, ConfigError> {
    let mut spans: Vec<(u32, Duration, Duration)> = Vec::new();
    for (n, failure) in failures.iter().enumerate() {
        let within = |error: ConfigError| error.within(&format!("[{n}]"));
        let links = failure.link.links(graph).map_err(|error| within(error.within("link")))?;
        let until = failure.until.unwrap_or(Duration::MAX);
        if until <= failure.at {
            let message = format!("the link cannot work again at {until}, before it fails at {}", failure.at);
            return Err(within(ConfigError::new("until", message)));
        }
        spans.extend(links.into_iter().map(|link| (link, failure.at, until)));
    }
    spans.sort();
    let mut merged: Vec<(u32, Duration, Duration)> = Vec::new();
    for (link, at, until) in spans {
        match merged.last_mut() {
            Some((same, _, end)) if *same == link && at <= *end => *end = (*end).max(until),
            _ => merged.push((link, at, until)),
        }
    }
    let mut events = Vec::new();
    for (link, at, until) in merged {
        events.push(LinkEvent { at: Instant::ZERO + at, link, up: false });
        if until < Duration::MAX {
            events.push(LinkEvent { at: Instant::ZERO + until, link, up: true });
        }
    }
    events.sort();
    Ok(events)
}
