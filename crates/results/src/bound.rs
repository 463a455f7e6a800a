//! Numbers that are known from one side only.
//!
//! A flow that has not finished when its run ends has taken its age so far, and takes more. Such a flow counts with its
//! age. A mean over such flows is therefore a lower bound of the requested mean, and so is a quantile that one of the
//! flows could still raise. A ratio inherits its bound from its parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The side from which a number bounds the requested one, in runs that ended before that one was known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// A lower bound: some of the flows (or groups) behind the number had not finished, and count with their age.
    AtLeast,
    /// An upper bound: a ratio to a lower bound.
    AtMost,
    /// No bound from either side, as for a ratio of two lower bounds: there is no number.
    Undecided,
}

impl Bound {
    /// Returns the bound of a ratio from the bounds of its numerator and its denominator.
    pub(crate) fn of_ratio(of: Option<Self>, to: Option<Self>) -> Option<Self> {
        let inverse = match to {
            Some(Self::AtLeast) => Some(Self::AtMost),
            Some(Self::AtMost) => Some(Self::AtLeast),
            other => other,
        };
        Self::joined(of, inverse)
    }

    /// Returns the bound of a quantity that grows with two numbers, such as a mean, from the bounds of both.
    pub(crate) fn joined(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (None, other) | (other, None) => other,
            (Some(a), Some(b)) => Some(if a == b { a } else { Self::Undecided }),
        }
    }

    /// Returns the bound of a mean over runs from the bounds of the runs.
    pub(crate) fn of_all(bounds: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        bounds.into_iter().fold(None, Self::joined)
    }

    /// Returns `interval` as far as it is known: open on the side that `bound` leaves open. For non-negative
    /// quantities.
    pub(crate) fn opened(bound: Option<Self>, [low, high]: [f64; 2]) -> [f64; 2] {
        match bound {
            None => [low, high],
            Some(Self::AtLeast) => [low, f64::INFINITY],
            Some(Self::AtMost) => [0.0, high],
            Some(Self::Undecided) => [0.0, f64::INFINITY],
        }
    }

    /// Returns the prefix of a bounded number in tables and charts: "≥ ", "≤ ", or nothing.
    pub(crate) fn sign(bound: Option<Self>) -> &'static str {
        match bound {
            Some(Self::AtLeast) => "≥ ",
            Some(Self::AtMost) => "≤ ",
            Some(Self::Undecided) | None => "",
        }
    }

    /// Returns the prefix of a bounded number in sentences: "at least ", "at most ", or nothing.
    pub(crate) fn in_words(bound: Option<Self>) -> &'static str {
        match bound {
            Some(Self::AtLeast) => "at least ",
            Some(Self::AtMost) => "at most ",
            Some(Self::Undecided) | None => "",
        }
    }
}

/// Text in place of a number that is known from neither side.
pub(crate) const UNDECIDED: &str = "undecided";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_bounded_by_its_censored_part() {
        let (none, low) = (None, Some(Bound::AtLeast));
        let of = [(none, none), (low, none), (none, low), (low, low)].map(|(of, to)| Bound::of_ratio(of, to));
        assert_eq!(of, [None, Some(Bound::AtLeast), Some(Bound::AtMost), Some(Bound::Undecided)]);
        // In a ratio of ratios, an upper bound in the denominator becomes a lower bound.
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
