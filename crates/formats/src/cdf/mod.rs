//! Distributions of flow sizes.
//!
//! Two columns are bytes and a cumulative share, in percent if the last is 100 and in fractions if it is 1. Three
//! columns are a size, an unused weight, and a cumulative fraction (or percent): YAPS and pHost count the size in
//! packets of 1,460 B, ns-2 scripts in bytes, and nothing in the file distinguishes them. The rule of
//! [`SizeUnit::Auto`]: sizes are packets if the smallest is below 32 and the largest below 1,000,000, as in no
//! distribution of bytes in use.
//!
//! Between points sizes are interpolated linearly; two points with one size are a step, two points with one share a
//! range that never occurs. The share of the first point is the probability of exactly its size.

mod known;

use std::io::BufRead;

use selvedge_units::Bytes;
use selvedge_units::words::plural;

use crate::text::{BYTES_MAX, Line, Lines, Word};
use crate::{Dialect, FormatError, Parsed, Warning};

pub use known::{NAMES, known};

/// Cumulative distribution function of flow sizes, by points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CdfPoints {
    /// `(size, P(X <= size) in units of 2^-64)`: at least one point, both non-decreasing, sizes above
    /// zero wherever the probability is, the last probability `u64::MAX`, which stands for 1.
    pub points: Vec<(Bytes, u64)>,
}

/// Unit of sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SizeUnit {
    /// Bytes in files of two columns; bytes or packets in files of three columns, by the rule of this module.
    #[default]
    Auto,
    /// Bytes.
    Bytes,
    /// Packets with this many bytes of payload each, above zero.
    Packets(Bytes),
}

/// Payload of YAPS' and pHost's packets.
pub const YAPS_PAYLOAD: Bytes = Bytes::new(1_460);

impl CdfPoints {
    /// Returns the mean size, rounded to the nearest byte.
    pub fn mean(&self) -> Bytes {
        let mut before = match self.points.first() {
            Some(&(size, _)) => (size, 0),
            None => return Bytes::ZERO,
        };
        // Twice the mean in units of 2^-64 bytes: shares add up to 2^64, sizes are below 2^60 + 1.
        let mut doubled = 0u128;
        for &(size, share) in &self.points {
            let sizes = u128::from(before.0.get()) + u128::from(size.get());
            doubled += u128::from(share - before.1) * sizes;
            before = (size, share);
        }
        Bytes::new(((doubled + (1 << 64)) >> 65) as u64)
    }

    /// Returns points with shares in units of `1 / whole`, the last of which is `whole`.
    fn from_parts(table: &[(u64, u32)], whole: u32) -> Self {
        let share = |parts: u32| match parts {
            parts if parts == whole => u64::MAX,
            parts => ((u128::from(parts) << 64) / u128::from(whole)) as u64,
        };
        Self { points: table.iter().map(|&(size, parts)| (Bytes::new(size), share(parts))).collect() }
    }
}

/// Reads a distribution in any of the dialects.
///
/// Warns where the unit of sizes had to be guessed.
///
/// ```
/// use selvedge_formats::cdf::{self, SizeUnit};
/// use selvedge_units::Bytes;
///
/// let parsed = cdf::read(&b"0 0\n1000 50\n3000 100\n"[..], "sizes.txt", SizeUnit::Auto)?;
/// assert_eq!(parsed.value.points[1], (Bytes::new(1000), 1 << 63));
/// assert_eq!(parsed.value.mean(), Bytes::new(1250));
/// # Ok::<(), selvedge_formats::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error for: no points; sizes or shares that descend; a last share that is neither 100 nor 1; a positive
/// share of flows without bytes; a word that is not a number.
pub fn read(input: impl BufRead, file: &str, unit: SizeUnit) -> Result<Parsed<CdfPoints>, FormatError> {
    let mut lines = Lines::new(input, file);
    let mut rows = Vec::new();
    let mut columns = None;
    while let Some(line) = lines.next_filled()? {
        let row = Row::parse(line, &mut columns)?;
        row.check_order(rows.last())?;
        rows.push(row);
    }
    let Some(last) = rows.last() else { return Err(lines.error_at_end("a point as in \"10000 15\"")) };
    let whole = last.whole().ok_or_else(|| last.share_error("100 (percent) or 1 at the last point"))?;
    let is_wide = columns == Some(3);

    let mut warnings = Vec::new();
    let payload = match unit {
        SizeUnit::Bytes => None,
        SizeUnit::Packets(payload) => Some(payload),
        SizeUnit::Auto if !is_wide => None,
        SizeUnit::Auto => {
            let packets = (rows[0].size < 32 && last.size < 1_000_000).then_some(YAPS_PAYLOAD);
            let taken = if packets.is_some() { "packets of 1460 bytes" } else { "bytes" };
            let message =
                format!("three columns: sizes are taken as {taken}; if they are not, write two, bytes and share");
            warnings.push(Warning::new(rows[0].line, message));
            packets
        }
    };
    let points = rows.iter().map(|row| row.point(payload, whole)).collect::<Result<_, _>>()?;
    let dialect = match (payload, is_wide, whole) {
        (Some(_), ..) => Dialect::CdfPackets,
        (None, true, _) => Dialect::CdfNs2,
        (None, false, 100) => Dialect::CdfPercent,
        (None, false, _) => Dialect::CdfFraction,
    };
    Ok(Parsed { value: CdfPoints { points }, warnings, dialect })
}

/// Line of a file, with errors for faults that only the whole file can show.
struct Row {
    line: u64,
    size: u64,
    /// Share as a part of 100, in units of 2^-64, exact for the comparison with 1 and 100; a share above 100 is an
    /// error.
    percent: u64,
    /// Share as a part of 1, if it is at most 1.
    fraction: Option<u64>,
    size_place: FormatError,
    share_place: FormatError,
}

impl Row {
    fn parse(line: Line<'_>, columns: &mut Option<usize>) -> Result<Self, FormatError> {
        let words: Vec<Word<'_>> = line.words().collect();
        let expected = columns.map_or("2 (size share) or 3 (size weight share)".to_owned(), |n| n.to_string());
        let wrong = || line.error(0, format!("found {}, expected {expected}", plural(words.len() as u64, "word")));
        if columns.is_some_and(|columns| columns != words.len()) {
            return Err(wrong());
        }
        let (size, share) = match *words {
            [size, share] => (size, share),
            [size, weight, share] => {
                weight.decimal("a weight, as in \"1\"")?;
                (size, share)
            }
            _ => return Err(wrong()),
        };
        *columns = Some(words.len());
        let expected = "a cumulative share from 0 to 100 percent, or from 0 to 1";
        let number = share.decimal(expected)?;
        Ok(Self {
            line: line.number(),
            size: size.integer("a size", 0..=BYTES_MAX)?,
            percent: number.part_of(100).ok_or_else(|| share.unexpected(expected))?,
            fraction: number.part_of(1),
            size_place: size.unexpected(""),
            share_place: share.unexpected(""),
        })
    }

    fn check_order(&self, before: Option<&Self>) -> Result<(), FormatError> {
        let Some(before) = before else { return Ok(()) };
        if self.size < before.size {
            return Err(self.size_error(&format!("a size of at least {}, as in the line above", before.size)));
        }
        if self.percent < before.percent {
            return Err(self.share_error("at least the share in the line above"));
        }
        Ok(())
    }

    /// Returns the number that the shares of the file are parts of, if this is its last row.
    fn whole(&self) -> Option<u64> {
        match (self.percent, self.fraction) {
            (u64::MAX, _) => Some(100),
            (_, Some(u64::MAX)) => Some(1),
            _ => None,
        }
    }

    fn point(&self, payload: Option<Bytes>, whole: u64) -> Result<(Bytes, u64), FormatError> {
        let share = match whole {
            100 => self.percent,
            // Shares ascend to 1, so that none is above 1.
            _ => self.fraction.unwrap_or(u64::MAX),
        };
        if self.size == 0 && share > 0 {
            return Err(self.size_error("sizes above zero where the share is above zero"));
        }
        let size = self.size.checked_mul(payload.map_or(1, Bytes::get)).filter(|&bytes| bytes <= BYTES_MAX);
        let size = size.ok_or_else(|| self.size_error("a size of at most 1 EiB"))?;
        Ok((Bytes::new(size), share))
    }

    fn size_error(&self, expected: &str) -> FormatError {
        completed(&self.size_place, expected)
    }
    fn share_error(&self, expected: &str) -> FormatError {
        completed(&self.share_place, expected)
    }
}

/// Returns the error "found ..., expected" with its end.
fn completed(place: &FormatError, expected: &str) -> FormatError {
    FormatError { message: format!("{}{expected}", place.message), ..place.clone() }
}
