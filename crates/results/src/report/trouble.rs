//! The first section of a report: warnings, and explanations of deadlocks.

use std::fmt::Write;

use super::Study;
use super::axis::Quantity;
use super::html::{escape, prose};
use crate::{SeedDeadlock, SeriesSummary};

/// Returns the section; empty without warnings and deadlocks.
pub(super) fn trouble(study: &Study<'_>) -> String {
    let mut out = String::new();
    if !study.summary.warnings.is_empty() {
        out += "<aside class=\"warnings\" role=\"note\"><h2>Before you trust the numbers</h2><ul>";
        for warning in &study.summary.warnings {
            let _ = write!(out, "<li>{}</li>", prose(warning));
        }
        out += "</ul></aside>";
    }
    for series in &study.summary.series {
        if let Some(first) = series.deadlocks.first() {
            out += &explain(series, first);
        }
    }
    out
}

fn explain(series: &SeriesSummary, found: &SeedDeadlock) -> String {
    let deadlock = &found.deadlock;
    let mut chain = String::new();
    for hop in &deadlock.cycle {
        let _ = write!(
            chain,
            "<li><b>{}</b> port {} <span>{} wait here</span> <em>paused by {}</em></li>",
            escape(&hop.node),
            hop.port,
            Quantity::Size.label(hop.waiting_bytes as f64),
            escape(&hop.paused_by)
        );
    }
    let others = series.deadlocks.len() - 1;
    let more = if others == 0 { String::new() } else { format!(" {others} more of its runs ended the same way.") };
    format!(
        "<aside class=\"deadlock\" role=\"note\"><h2>PFC deadlock in {}</h2><p>With seed {}, nothing in this cycle has moved since {}; \
         it was found at {}. Each port waits until the node ahead takes a packet, and that node waits for the next; \
         the last waits for the first.{more}</p><ol class=\"cycle\">{chain}</ol></aside>",
        escape(&series.name),
        found.seed,
        Quantity::Time.label(deadlock.since_us),
        Quantity::Time.label(deadlock.at_us),
    )
}
