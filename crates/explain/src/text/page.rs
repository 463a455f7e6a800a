//! Lines of text, and how numbers are written in them.

use std::fmt::{Arguments, Write};

use selvedge_sim::record::FlowKey;
use selvedge_units::{Bytes, Duration, Instant};

use crate::explanation::Explanation;

/// Text in the making.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Adds a line.
    pub(super) fn put(&mut self, text: Arguments<'_>) {
        let begin = self.0.len();
        self.0.write_fmt(text).expect("a string takes it");
        self.0.truncate(begin + self.0[begin..].trim_end().len());
        self.0.push('\n');
    }
    /// Adds an empty line and one that says what follows.
    pub(super) fn head(&mut self, text: Arguments<'_>) {
        self.0.push('\n');
        self.put(text);
    }
    /// The whole text.
    pub(super) fn text(self) -> String {
        self.0
    }
}

/// Microseconds to the nanosecond.
pub(super) fn us(time: Duration) -> String {
    format!("{:.3}", time.as_us_f64())
}

/// A time of the run in microseconds, to the nanosecond.
pub(super) fn at_us(at: Instant) -> String {
    us(at.since(Instant::ZERO))
}

/// Microseconds to a tenth.
pub(super) fn about_us(time: Duration) -> String {
    format!("{:.1} us", time.as_us_f64())
}

/// Kilobytes.
pub(super) fn about_kb(bytes: Bytes) -> String {
    format!("{:.0} KB", bytes.get() as f64 / 1e3)
}

pub(super) fn percent(part: Duration, of: Duration) -> f64 {
    part.as_ps() as f64 / of.as_ps().max(1) as f64 * 100.0
}

/// "1 packet", "2 packets".
pub(super) fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// "17", or "1:17" of the second workload.
pub(super) fn number(explanation: &Explanation) -> String {
    named(FlowKey::from(&explanation.flow))
}

/// See [`number`].
pub(super) fn named(FlowKey { workload, id }: FlowKey) -> String {
    if workload == 0 { id.to_string() } else { format!("{workload}:{id}") }
}

/// Its time in microseconds; ">" before it says that it had not finished.
pub(super) fn took(explanation: &Explanation) -> String {
    format!("{}{}", more(explanation), us(explanation.parts.total()))
}

/// "12.34", or ">12.34" of a flow that had not finished.
pub(super) fn slowdown(explanation: &Explanation) -> String {
    format!("{}{:.2}", more(explanation), explanation.slowdown())
}

fn more(explanation: &Explanation) -> &'static str {
    if explanation.awaited.is_some() { ">" } else { "" }
}
