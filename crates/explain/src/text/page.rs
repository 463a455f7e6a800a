//! Lines of text, and how numbers are written in them.

use std::fmt::{Arguments, Write};

use selvedge_units::{Bytes, Duration};

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
    let flow = &explanation.flow;
    if flow.workload == 0 { flow.id.to_string() } else { format!("{}:{}", flow.workload, flow.id) }
}

/// "12.34", or a dash.
pub(super) fn slowdown(explanation: &Explanation) -> String {
    explanation.flow.slowdown().map_or_else(|| "-".to_owned(), |slowdown| format!("{slowdown:.2}"))
}
