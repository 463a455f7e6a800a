//! Lines of text, and the formatting of numbers in them.

use std::fmt::{Arguments, Write};

use selvedge_sim::record::FlowKey;
use selvedge_units::{Bytes, Duration, Instant};

use crate::explanation::Explanation;

/// A text in construction.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Adds a line.
    pub(super) fn put(&mut self, text: Arguments<'_>) {
        let begin = self.0.len();
        self.0.write_fmt(text).expect("writing to a string cannot fail");
        self.0.truncate(begin + self.0[begin..].trim_end().len());
        self.0.push('\n');
    }
    /// Appends an empty line and a heading.
    pub(super) fn head(&mut self, text: Arguments<'_>) {
        self.0.push('\n');
        self.put(text);
    }
    /// Returns the whole text.
    pub(super) fn text(self) -> String {
        self.0
    }
}

/// Returns a time in microseconds with three decimals.
pub(super) fn us(time: Duration) -> String {
    format!("{:.3}", time.as_us_f64())
}

/// Returns a time of the run in microseconds with three decimals.
pub(super) fn at_us(at: Instant) -> String {
    us(at.since(Instant::ZERO))
}

/// Returns a time in microseconds with one decimal and the unit.
pub(super) fn about_us(time: Duration) -> String {
    format!("{:.1} us", time.as_us_f64())
}

/// Returns a size in kilobytes, rounded, with the unit.
pub(super) fn about_kb(bytes: Bytes) -> String {
    format!("{:.0} KB", bytes.get() as f64 / 1e3)
}

pub(super) fn percent(part: Duration, of: Duration) -> f64 {
    part.as_ps() as f64 / of.as_ps().max(1) as f64 * 100.0
}

/// Returns a number of things: "1 packet", "2 packets".
pub(super) fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Returns the flow's number: "17", or "1:17" for the second workload.
pub(super) fn number(explanation: &Explanation) -> String {
    named(FlowKey::from(&explanation.flow))
}

/// Returns the number of a flow by its key; see [`number`].
pub(super) fn named(FlowKey { workload, id }: FlowKey) -> String {
    if workload == 0 { id.to_string() } else { format!("{workload}:{id}") }
}

/// Returns the flow's time in microseconds, with ">" before it for an unfinished flow.
pub(super) fn took(explanation: &Explanation) -> String {
    format!("{}{}", more(explanation), us(explanation.parts.total()))
}

/// Returns the flow's slowdown: "12.34", or ">12.34" for an unfinished flow.
pub(super) fn slowdown(explanation: &Explanation) -> String {
    format!("{}{:.2}", more(explanation), explanation.slowdown())
}

fn more(explanation: &Explanation) -> &'static str {
    if explanation.awaited.is_some() { ">" } else { "" }
}
