//! Numbers that are known from one side only.
//!
//! A flow that has not finished when its run ends has taken its age so far, and takes more. It counts with its age: a
//! mean over such flows is a lower bound of the one that is asked for, and so is a quantile that one of them could
//! still raise. A ratio inherits that from its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a number says of the one that is asked for, where runs ended before that was known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// A lower bound: some of what the number is taken over had not finished, and counts with its age.
    AtLeast,
    /// An upper bound: a ratio to a lower bound.
    AtMost,
    /// Nothing is known from either side, as of a ratio of two lower bounds: there is no number.
    Undecided,
}

impl Bound {
    /// The bound of a ratio whose parts have these.
    pub(crate) fn of_ratio(of: Option<Self>, to: Option<Self>) -> Option<Self> {
        let inverse = match to {
            Some(Self::AtLeast) => Some(Self::AtMost),
            Some(Self::AtMost) => Some(Self::AtLeast),
            other => other,
        };
        Self::joined(of, inverse)
    }

    /// The bound of what grows with two numbers that have these, as a mean does.
    pub(crate) fn joined(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (None, other) | (other, None) => other,
            (Some(a), Some(b)) => Some(if a == b { a } else { Self::Undecided }),
        }
    }

    /// The bound of a mean over runs that have these.
    pub(crate) fn of_all(bounds: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        bounds.into_iter().fold(None, Self::joined)
    }

    /// `interval`, as far as that is known: open on the side where nothing is. Of what cannot be negative.
    pub(crate) fn opened(bound: Option<Self>, [low, high]: [f64; 2]) -> [f64; 2] {
        match bound {
            None => [low, high],
            Some(Self::AtLeast) => [low, f64::INFINITY],
            Some(Self::AtMost) => [0.0, high],
            Some(Self::Undecided) => [0.0, f64::INFINITY],
        }
    }

    /// What stands before the number in tables and charts: "≥ ", "≤ ", or nothing.
    pub(crate) fn sign(bound: Option<Self>) -> &'static str {
        match bound {
            Some(Self::AtLeast) => "≥ ",
            Some(Self::AtMost) => "≤ ",
            Some(Self::Undecided) | None => "",
        }
    }

    /// What stands before the number in sentences: "at least ", "at most ", or nothing.
    pub(crate) fn in_words(bound: Option<Self>) -> &'static str {
        match bound {
            Some(Self::AtLeast) => "at least ",
            Some(Self::AtMost) => "at most ",
            Some(Self::Undecided) | None => "",
        }
    }
}

/// What stands in place of a number that is not known from either side.
pub(crate) const UNDECIDED: &str = "undecided";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_bounded_by_its_censored_part() {
        let (none, low) = (None, Some(Bound::AtLeast));
        let of = [(none, none), (low, none), (none, low), (low, low)].map(|(of, to)| Bound::of_ratio(of, to));
        assert_eq!(of, [None, Some(Bound::AtLeast), Some(Bound::AtMost), Some(Bound::Undecided)]);
        // A ratio of ratios: "at most" below the line is "at least" again.
        assert_eq!(Bound::of_ratio(none, Some(Bound::AtMost)), Some(Bound::AtLeast));
        assert_eq!(Bound::of_ratio(none, Some(Bound::Undecided)), Some(Bound::Undecided));
    }

    #[test]
    fn runs_that_are_bounded_from_both_sides_decide_nothing_together() {
        let (low, high) = (Some(Bound::AtLeast), Some(Bound::AtMost));
        assert_eq!(Bound::of_all([None, low, None, low]), low);
        assert_eq!(Bound::of_all([low, high]), Some(Bound::Undecided));
        assert_eq!(Bound::of_all([]), None);
    }
}
