//! Conversion of text to keys with numbers and places.

use std::io::BufRead;

use super::FatTreeFile;
use super::check::check;
use selvedge_units::words::nearest;

use crate::text::{BYTES_MAX, Line, Lines, Word};
use crate::{Dialect, FormatError, Parsed, Warning};

/// Reads a topology and checks that its numbers fit together, by htsim's rules.
///
/// Warns where htsim wires another number of ports than the file gives a switch.
///
/// ```
/// use selvedge_formats::htsim_topo;
///
/// let file = b"Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down 2\n\
///              Radix_Up 2\nTier 1\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down 2\n";
/// let tree = htsim_topo::read(&file[..], "tiny.topo")?.value;
/// assert_eq!((tree.tors(), tree.aggs()), (2, 2));
/// let last = tree.links().last().unwrap();
/// assert_eq!(format!("{}-{}", last.lower, last.upper), "tor1-agg1");
/// # Ok::<(), selvedge_formats::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error for: unknown, repeated and missing keys; words that are not numbers; numbers that are zero, or do
/// not fit together.
pub fn read(input: impl BufRead, file: &str) -> Result<Parsed<FatTreeFile>, FormatError> {
    let mut lines = Lines::new(input, file);
    let mut keys = Keys::default();
    while let Some(line) = lines.next_filled()? {
        keys.read(line)?;
    }
    let (value, warnings) = check(&keys, &PendingError(lines.error_at_end("")))?;
    Ok(Parsed { value, warnings, dialect: Dialect::HtsimTopology })
}

/// Keys before the first tier.
pub(super) const HEADER_KEYS: [&str; 3] = ["Nodes", "Tiers", "Podsize"];
pub(super) const NODES: usize = 0;
pub(super) const TIERS: usize = 1;
pub(super) const PODSIZE: usize = 2;

/// Keys of a tier, and the numbers that they may have.
pub(super) const TIER_KEYS: [(&str, u64, u64); 9] = [
    ("Downlink_speed_Gbps", 1, 1_000_000),
    ("Downlink_Latency_ns", 1, u32::MAX as u64),
    ("Radix_Down", 1, 65_536),
    ("Radix_Up", 1, 65_536),
    ("Oversubscribed", 1, 65_536),
    ("Bundle", 1, 65_536),
    ("Switch_Latency_ns", 0, u32::MAX as u64),
    ("Queue_Up", 1, BYTES_MAX),
    ("Queue_Down", 1, BYTES_MAX),
];
pub(super) const SPEED: usize = 0;
pub(super) const LATENCY: usize = 1;
pub(super) const RADIX_DOWN: usize = 2;
pub(super) const RADIX_UP: usize = 3;
pub(super) const OVERSUBSCRIBED: usize = 4;
pub(super) const BUNDLE: usize = 5;
pub(super) const SWITCH_LATENCY: usize = 6;
pub(super) const QUEUE_UP: usize = 7;
pub(super) const QUEUE_DOWN: usize = 8;

/// Number of hosts of the largest network that is accepted; htsim's arrays end far below.
pub(super) const HOSTS_MAX: u64 = 1 << 24;

/// Numbers as written.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) header: [Option<Number>; HEADER_KEYS.len()],
    pub(super) tiers: [Option<Block>; 3],
    current: Option<usize>,
}

/// Properties of one tier read so far.
pub(super) struct Block {
    pub(super) place: PendingError,
    pub(super) numbers: [Option<Number>; TIER_KEYS.len()],
}

/// Number, and its place.
pub(super) struct Number {
    pub(super) value: u64,
    pub(super) place: PendingError,
}

/// Place of a possible error: an error without its message.
pub(super) struct PendingError(FormatError);

impl PendingError {
    fn of(word: Word<'_>) -> Self {
        Self(word.error(""))
    }
    pub(super) fn error(&self, message: String) -> FormatError {
        FormatError { message, ..self.0.clone() }
    }
    /// Returns line and column.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.0.line, self.0.column)
    }
    pub(super) fn warning(&self, message: String) -> Warning {
        Warning::new(self.0.line, message)
    }
}

impl Keys {
    fn read(&mut self, line: Line<'_>) -> Result<(), FormatError> {
        let mut words = line.words();
        let key = words.require("a key")?;
        let is = |name: &str| name.eq_ignore_ascii_case(key.text());
        if is("Tier") {
            let word = words.require("the tier, 0 to 2")?;
            let tier = word.integer("a tier", 0..=2)? as usize;
            if let Some(earlier) = &self.tiers[tier] {
                let line = earlier.place.0.line;
                return Err(
                    word.error(format!("found tier {tier}, which begins in line {line}, expected each tier once"))
                );
            }
            self.tiers[tier] = Some(Block { place: PendingError::of(key), numbers: Default::default() });
            self.current = Some(tier);
        } else if let Some(which) = HEADER_KEYS.iter().position(|name| is(name)) {
            let word = words.require("a number")?;
            let range = if which == TIERS { 2..=3 } else { 1..=HOSTS_MAX };
            let value = word.integer(&format!("a number for {}", HEADER_KEYS[which]), range)?;
            set(&mut self.header[which], HEADER_KEYS[which], key, Number { value, place: PendingError::of(word) })?;
        } else if let Some(which) = TIER_KEYS.iter().position(|(name, ..)| is(name)) {
            let (name, least, most) = TIER_KEYS[which];
            let tier = self.current.and_then(|tier| self.tiers[tier].as_mut());
            let block = tier.ok_or_else(|| key.unexpected("\"Tier 0\" before the keys of a tier"))?;
            let word = words.require("a number")?;
            let value = word.integer(&format!("a number for {name}"), least..=most)?;
            set(&mut block.numbers[which], name, key, Number { value, place: PendingError::of(word) })?;
        } else {
            let keys: Vec<&str> =
                ["Tier"].into_iter().chain(HEADER_KEYS).chain(TIER_KEYS.iter().map(|(name, ..)| *name)).collect();
            return Err(match nearest(key.text(), keys.iter().copied()) {
                Some(meant) => key.unexpected(&format!("{meant:?}")),
                None => key.unexpected(&format!("one of {}", keys.join(", "))),
            });
        }
        words.finish()
    }
}

/// Sets a key that must not have been set.
fn set(slot: &mut Option<Number>, name: &str, key: Word<'_>, number: Number) -> Result<(), FormatError> {
    if let Some(earlier) = slot {
        let line = earlier.place.0.line;
        return Err(key.error(format!("found {name}, which stands in line {line} already, expected each key once")));
    }
    *slot = Some(number);
    Ok(())
}
