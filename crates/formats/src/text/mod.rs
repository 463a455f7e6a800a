//! Parts that all readers share: lines with places, words, exact numbers.

mod line;
mod number;

pub(crate) use line::{LINE_ENDS, Line, Lines, Word, Words};
pub(crate) use number::Decimal;

/// Largest amount of data that a file may name: a thousand terabytes, for which the fastest links take hours.
pub(crate) const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// Returns a text such as "1 is missing" or "2 are missing".
pub(crate) fn missing(count: u64) -> String {
    format!("{count} {} missing", if count == 1 { "is" } else { "are" })
}
