//! The split of a series' completion time into parts, for display.

use crate::number::{Scale, digits};
use crate::{Bound, SeriesSummary, Summary, TimePart, Unit};

/// The mean time of a measured flow of a series, by part.
pub(crate) struct Split {
    /// Sum of all parts, in microseconds.
    pub(crate) total: f64,
    /// Parts with time spent, in the order of [`TimePart::ALL`], each in microseconds.
    pub(crate) parts: Vec<(TimePart, f64)>,
    /// The bound that the times are, if unfinished flows count with their time so far.
    pub(crate) bound: Option<Bound>,
}

impl Split {
    /// Returns the split of a series; `None` if its flows were not sampled.
    pub(crate) fn of(series: &SeriesSummary) -> Option<Self> {
        let mean = |part: TimePart| Some((part, series.time_of(part)?.mean?));
        let parts: Vec<_> = TimePart::ALL.into_iter().filter_map(mean).filter(|&(_, us)| us > 0.0).collect();
        let total = parts.iter().map(|&(_, us)| us).sum::<f64>();
        let bound = Bound::of_all(TimePart::ALL.into_iter().filter_map(|part| Some(series.time_of(part)?.bound)));
        (total > 0.0).then_some(Self { total, parts, bound })
    }

    /// Returns a part as a share of the total, 0 to 1.
    pub(crate) fn share(&self, us: f64) -> f64 {
        us / self.total
    }

    /// Returns a bar of `letters` letters, divided among the parts.
    pub(crate) fn bar(&self, letters: usize) -> String {
        let mut bar = String::new();
        let (mut before, mut count) = (0.0, 0);
        for &(part, us) in &self.parts {
            before += us;
            let until = (before / self.total * letters as f64).round() as usize;
            bar.extend(std::iter::repeat_n(part.letter(), until.saturating_sub(count)));
            count = count.max(until);
        }
        bar
    }

    /// Returns the parts, largest first.
    pub(crate) fn largest(&self) -> Vec<(TimePart, f64)> {
        let mut parts = self.parts.clone();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts
    }
}

/// Smallest share of a difference at which a part is named.
const NAMED: f64 = 0.1;
/// Smallest difference that is reported, as a share of the faster series' time. Flows are sampled, so that smaller
/// differences may be chance.
const TOLD: f64 = 0.05;

/// Names the parts that cause the difference of mean completion time between the two series that the verdict compares.
///
/// Example: "Flows of roce+pfc take 31.2 us longer than those of irn on average: pause +21.0, queueing +9.5 us." `None`
/// where the verdict compares no two series, they differ by less than 5 %, the flows of one of them were not sampled,
/// or those of the faster one had not all finished.
pub(crate) fn difference(summary: &Summary) -> Option<String> {
    let find = |name: &Option<String>| summary.series.iter().find(|series| Some(&series.name) == name.as_ref());
    let (with, without) = (find(&summary.verdict.best_with)?, find(&summary.verdict.best_without)?);
    let (of_with, of_without) = (Split::of(with)?, Split::of(without)?);
    let is_slower = of_with.total >= of_without.total;
    let (slower, faster) = if is_slower { (with, without) } else { (without, with) };
    let (of_slower, of_faster) = if is_slower { (&of_with, &of_without) } else { (&of_without, &of_with) };
    if of_faster.bound.is_some() {
        return None;
    }
    let total = (of_with.total - of_without.total).abs();
    if total < TOLD * of_with.total.min(of_without.total) {
        return None;
    }
    let scale = Scale::of(Unit::Us, total);
    let mean = |series: &SeriesSummary, part| series.time_of(part).and_then(|time| time.mean).unwrap_or(0.0);
    let mut parts: Vec<(TimePart, f64)> =
        TimePart::ALL.into_iter().map(|part| (part, mean(slower, part) - mean(faster, part))).collect();
    parts.retain(|(_, us)| us.abs() >= NAMED * total);
    parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let told = |&(part, us): &(TimePart, f64)| {
        let sign = if us < 0.0 { '-' } else { '+' };
        format!("{} {sign}{}", part.name(), digits(us.abs() * scale.factor, 3))
    };
    let parts: Vec<String> = parts.iter().map(told).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Flows of {} take {}{} {} longer than those of {} on average: {} {}.",
            slower.name,
            Bound::in_words(of_slower.bound),
            digits(total * scale.factor, 3),
            scale.unit,
            faster.name,
            parts.join(", "),
            scale.unit
        )
    })
}

/// Returns a share in per cent: "43 %", "<1 %".
pub(crate) fn per_cent(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "<1 %".into() } else { format!("{:.0} %", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_as_many_letters_as_they_shall() {
        let parts = vec![(TimePart::Serialisation, 1.0), (TimePart::Queueing, 1.0), (TimePart::Pause, 1.0)];
        let split = Split { total: 3.0, parts, bound: None };
        for letters in 0..50 {
            assert_eq!(split.bar(letters).chars().count(), letters);
        }
        assert_eq!(split.bar(10), "sssQQQQPPP");
        assert_eq!(split.largest()[0].0, TimePart::Serialisation, "the first of equals");
        assert_eq!([0.0, 0.001, 0.43, 1.0].map(per_cent), ["0 %", "<1 %", "43 %", "100 %"]);
    }
}
