//! Where the completion time of a series goes, for people.

use crate::{SeriesSummary, TimePart};

/// What a measured flow of a series spends on average.
pub(crate) struct Split {
    /// In microseconds, all of it.
    pub(crate) total: f64,
    /// Parts that there are, in the order of [`TimePart::ALL`], each in microseconds.
    pub(crate) parts: Vec<(TimePart, f64)>,
}

impl Split {
    /// That of a series; `None` if nobody has looked at its flows.
    pub(crate) fn of(series: &SeriesSummary) -> Option<Self> {
        let mean = |part: TimePart| Some((part, series.time_of(part)?.mean?));
        let parts: Vec<_> = TimePart::ALL.into_iter().filter_map(mean).filter(|&(_, us)| us > 0.0).collect();
        let total = parts.iter().map(|&(_, us)| us).sum::<f64>();
        (total > 0.0).then_some(Self { total, parts })
    }

    /// A part as a share of all, 0 to 1.
    pub(crate) fn share(&self, us: f64) -> f64 {
        us / self.total
    }

    /// So many letters, shared among the parts.
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

    /// The largest parts, largest first.
    pub(crate) fn largest(&self) -> Vec<(TimePart, f64)> {
        let mut parts = self.parts.clone();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        parts
    }
}

/// A share in per cent: "43 %", "<1 %".
pub(crate) fn per_cent(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "<1 %".into() } else { format!("{:.0} %", share * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_as_many_letters_as_they_shall() {
        let parts = vec![(TimePart::Serialisation, 1.0), (TimePart::Queueing, 1.0), (TimePart::Pause, 1.0)];
        let split = Split { total: 3.0, parts };
        for letters in 0..50 {
            assert_eq!(split.bar(letters).chars().count(), letters);
        }
        assert_eq!(split.bar(10), "sssQQQQPPP");
        assert_eq!(split.largest()[0].0, TimePart::Serialisation, "the first of equals");
        assert_eq!([0.0, 0.001, 0.43, 1.0].map(per_cent), ["0 %", "<1 %", "43 %", "100 %"]);
    }
}
