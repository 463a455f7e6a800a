//! Names of series, metrics and ratios in sentences.

use selvedge_units::words::all_of;

use super::comparison::{decisive, ratio};
use crate::metric::Unit;
use crate::number::{Scale, digits};
use crate::stall::{Stall, stall, unfinished};
use crate::traits::Compared;
use crate::{Bound, Estimate, SeriesSummary, Summary};

/// The wording of sentences about a study.
pub(super) struct Wording {
    /// Labels of series by name: their traits where those are distinct, else their names.
    by_name: Vec<(String, String)>,
    /// Whether runs do not depend on the seed, so that there are no intervals.
    pub(super) ignores_seeds: bool,
    /// Remarks on unfinished flows, by series name.
    stalls: Vec<(String, Stall)>,
}

impl Wording {
    pub(super) fn new(summary: &Summary) -> Self {
        let series = &summary.series;
        let one_congestion = series.windows(2).all(|pair| pair[0].traits.congestion == pair[1].traits.congestion);
        let describe = |series: &SeriesSummary| {
            let traits = &series.traits;
            let congestion = match traits.congestion.as_str() {
                "" | "none" => String::new(),
                _ if one_congestion => String::new(),
                other => format!(" + {}", title(other)),
            };
            let pfc = if traits.pfc { "with" } else { "without" };
            format!("{}{congestion} {pfc} PFC", title(&traits.recovery))
        };
        let mut by_name: Vec<_> = series.iter().map(|series| (series.name.clone(), describe(series))).collect();
        let clash =
            |at: usize| by_name.iter().enumerate().any(|(other, (_, label))| other != at && *label == by_name[at].1);
        if (0..by_name.len()).any(clash) {
            for ((_, label), series) in by_name.iter_mut().zip(series) {
                let pfc = if series.traits.pfc { "with" } else { "without" };
                *label = format!("\"{}\" ({pfc} PFC)", series.series);
            }
        }
        let ignores_seeds = summary.ignores_seeds();
        let stalled = |one: &SeriesSummary| Some((one.name.clone(), stall(one, series, ignores_seeds)?));
        let stalls = series.iter().filter_map(stalled).collect();
        Self { by_name, ignores_seeds, stalls }
    }

    pub(super) fn of<'a>(&'a self, series: &'a SeriesSummary) -> &'a str {
        self.by_name.iter().find(|(name, _)| *name == series.name).map_or(&series.name, |(_, label)| label)
    }

    fn found(&self, series: &SeriesSummary) -> Option<&Stall> {
        self.stalls.iter().find(|(name, _)| *name == series.name).map(|(_, stall)| stall)
    }

    /// Returns the reason why a series cannot win, to follow its name; `None` if it can.
    pub(super) fn stall(&self, series: &SeriesSummary) -> Option<&str> {
        match self.found(series)? {
            Stall::Stalled(clause) => Some(clause),
            Stall::Alike { .. } => None,
        }
    }

    /// Returns a clause on what a series that may still win leaves unfinished.
    pub(super) fn alike(&self, series: &SeriesSummary) -> Option<String> {
        let Stall::Alike { clause, rival, rival_leaves } = self.found(series)? else { return None };
        let of_rival = self.by_name.iter().find(|(name, _)| name == rival).map_or(rival, |(_, label)| label);
        Some(format!("; {} {clause}, not clearly more than {of_rival} ({rival_leaves})", self.of(series)))
    }

    /// Returns "IRN without PFC completes its flows", or what it leaves unfinished.
    pub(super) fn completes(&self, series: &SeriesSummary) -> String {
        let what = unfinished(series).unwrap_or_else(|| format!("completes its {}", series.traits.awaited()));
        format!("{} {what}", self.of(series))
    }

    /// Returns the speed of a single series: "flows in 1.62 times the ideal time on average".
    pub(super) fn pace(&self, series: &SeriesSummary) -> Option<String> {
        if !series.traits.goes_by_groups() {
            let slowdown = series.metric("slowdown_mean").filter(|slowdown| slowdown.mean.is_some())?;
            return Some(format!(
                "flows in {} times the ideal time on average{}",
                number(slowdown),
                self.known_bracket(slowdown)
            ));
        }
        let metrics = decisive(series, series);
        let time = |metric: &Compared| {
            let time = series.metric(&metric.metric).cloned().unwrap_or_default();
            let scale = Scale::of(Unit::Us, time.mean.unwrap_or_default());
            let [mean, low, high] = [time.mean, time.ci95.map(|ci| ci[0]), time.ci95.map(|ci| ci[1])]
                .map(|value| value.map_or("-".into(), |value| digits(value * scale.factor, 4)));
            let is_known = time.ci95.is_some() && !self.ignores_seeds;
            let interval = if is_known { format!(" (95 % CI {low}-{high})") } else { String::new() };
            let bound = Bound::in_words(time.bound);
            format!("{} in {bound}{mean} {}{interval}", what_completes(metric), scale.unit)
        };
        let is_known =
            metrics.iter().any(|metric| series.metric(&metric.metric).is_some_and(|time| time.mean.is_some()));
        is_known.then(|| format!("{} on average", each(&metrics, time)))
    }

    /// Returns the advantage of the better of two series in these metrics.
    pub(super) fn gain(&self, metrics: &[Compared], better: &SeriesSummary, worse: &SeriesSummary) -> String {
        let part = |metric: &Compared| {
            let ratio = ratio(worse, better, metric);
            (number(&ratio), self.bracket(&ratio))
        };
        match metrics {
            [metric] if metric.completes.is_none() => {
                let (number, interval) = part(metric);
                let title = with_article(&metric.title);
                let is_known = |metric: &Compared| ratio(worse, better, metric).bound.is_none();
                let mean = match decisive(worse, better).iter().all(is_known) {
                    true => "the same average FCT (within 5 %) and ",
                    false => "",
                };
                format!("has {mean}{title} {number}x lower{interval}")
            }
            _ => {
                let faster = |metric: &Compared| {
                    let (number, interval) = part(metric);
                    format!("{} {number}x faster{interval}", what_completes(metric))
                };
                format!("completes {}", each(metrics, faster))
            }
        }
    }

    /// Returns a clause on what both series complete equally fast, if they differ in `metrics` only.
    pub(super) fn same_rest(&self, metrics: &[Compared], of: &SeriesSummary, to: &SeriesSummary) -> String {
        let mut rest = decisive(of, to);
        rest.retain(|metric| !metrics.contains(metric));
        if rest.is_empty() || metrics[0].completes.is_none() {
            return String::new();
        }
        let how_alike = each(&rest, |metric| self.interval(&ratio(of, to, metric)));
        format!("; {} take as long, within 5 % ({how_alike})", each(&rest, what_completes))
    }

    /// Returns " (95 % CI 1.07-1.09)"; empty where runs do not depend on the seed.
    pub(super) fn bracket(&self, estimate: &Estimate) -> String {
        if self.ignores_seeds { String::new() } else { format!(" ({})", self.interval(estimate)) }
    }

    /// Returns " (95 % CI 1.07-1.09)"; empty without an interval, or where runs do not depend on the seed.
    fn known_bracket(&self, estimate: &Estimate) -> String {
        estimate.ci95.map_or(String::new(), |_| self.bracket(estimate))
    }

    /// Returns "95 % CI 1.07-1.09"; where runs do not depend on the seed, the factor itself.
    pub(super) fn interval(&self, estimate: &Estimate) -> String {
        let decimals = estimate.mean.map_or(2, decimals);
        match estimate.ci95 {
            _ if self.ignores_seeds => format!("a factor of {}", number(estimate)),
            Some([low, high]) => format!("95 % CI {low:.decimals$}-{high:.decimals$}"),
            None => "no interval".into(),
        }
    }

    pub(super) fn with_interval(&self, estimate: &Estimate) -> String {
        format!("{}{}", number(estimate), self.bracket(estimate))
    }

    pub(super) fn with_known_interval(&self, estimate: &Estimate) -> String {
        format!("{}{}", number(estimate), self.known_bracket(estimate))
    }

    /// Returns a remark on missing intervals.
    pub(super) fn remark(&self) -> &'static str {
        if self.ignores_seeds { " Nothing here depends on the seed." } else { "" }
    }
}

/// Returns the usual spelling of a registry name.
fn title(name: &str) -> String {
    match name {
        "go-back-n" => "RoCE (go-back-N)".into(),
        "new-reno" => "NewReno".into(),
        "timely" => "TIMELY".into(),
        "swift" => "Swift".into(),
        "netrt" => "NetRT".into(),
        "irn" | "melo" | "eqds" | "ndp" | "tcp" | "mptcp" | "dcqcn" | "dctcp" | "aimd" | "hpcc" | "cubic" | "lia"
        | "bbr" => name.to_uppercase(),
        "none" | "fixed" => name.into(),
        // Names as of people and places: Homa, Vegas.
        other => {
            let mut letters = other.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        }
    }
}

/// Returns a ratio or another number in a sentence: "1.62", "at least 1.62".
pub(super) fn number(estimate: &Estimate) -> String {
    let bound = Bound::in_words(estimate.bound);
    estimate.mean.map_or("unknown".into(), |mean| format!("{bound}{mean:.*}", decimals(mean)))
}

/// Returns the decimals of a ratio and its interval: two below 2, where they decide; one below 100, none beyond.
fn decimals(mean: f64) -> usize {
    match mean {
        ..2.0 => 2,
        ..100.0 => 1,
        _ => 0,
    }
}

/// Returns what completes in the time that this metric measures.
pub(super) fn what_completes(metric: &Compared) -> String {
    metric.completes.clone().unwrap_or_default()
}

/// Returns the texts of all metrics, joined: "a, b and c".
pub(super) fn each(metrics: &[Compared], tell: impl Fn(&Compared) -> String) -> String {
    let parts: Vec<String> = metrics.iter().map(tell).collect();
    all_of(&parts)
}

/// Returns the title with its article: "an average slowdown", "a 99th percentile FCT".
fn with_article(title: &str) -> String {
    let article = if title.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {title}")
}
