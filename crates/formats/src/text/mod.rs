//! What all readers share: lines with places, words, exact numbers.

mod line;
mod number;

pub(crate) use line::{Line, Lines, Word, Words};
pub(crate) use number::Decimal;

/// `count` of a thing, in words: "1 link", "65 links".
pub(crate) fn plural(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// The largest amount of data that a file may name, so that sums of two do not overflow: 1 EiB.
pub(crate) const BYTES_MAX: u64 = 1 << 60;
