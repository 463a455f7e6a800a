//! Claimed or measured quantities: metrics of series, in cases.

use serde::Serialize;

use super::footprint::{self, Footprints};
use crate::{Estimate, Metric, SeriesSummary, Summary};

/// Several quantities, written as one: every metric of every pair of series in every case.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantities {
    /// Names of metrics.
    pub metrics: Vec<String>,
    /// Series, each with the one that it is compared with.
    pub pairs: Vec<(String, Option<String>)>,
    /// The cases.
    pub cases: Cases,
    /// The case that each case is compared with.
    pub than_case: Option<String>,
    /// Byte offset of `of` in the file, which names the series.
    pub place: usize,
}

/// The cases of a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cases {
    /// The study has no cases.
    None,
    /// All cases of the study except the one compared with.
    All,
    /// The named cases.
    These(Vec<String>),
}

/// One number of a study: a metric of a series, its ratio to another series, its ratio to another
/// case, or a ratio of ratios.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Quantity {
    /// Name of the metric.
    pub metric: String,
    /// Name of the series.
    pub of: String,
    /// Name of the series that `of` is compared with.
    pub than: Option<String>,
    /// Name of the case.
    pub case: Option<String>,
    /// Name of the case that `case` is compared with.
    pub than_case: Option<String>,
}

impl Quantities {
    /// Removes one case if there are several.
    pub(super) fn leave_out(&mut self, case: &str) {
        if let Cases::These(cases) = &mut self.cases
            && cases.len() > 1
        {
            cases.retain(|one| one != case);
        }
    }
    /// Returns whether these quantities name this case, as their own or as the one compared with.
    pub(super) fn names(&self, case: &str) -> bool {
        let is_about = if let Cases::These(cases) = &self.cases { cases.iter().any(|one| one == case) } else { false };
        is_about || self.than_case.as_deref() == Some(case)
    }
    /// Returns each quantity, cases outermost; `all` are the study's cases.
    pub(super) fn each(&self, all: &[Option<&str>]) -> Vec<Quantity> {
        let cases: Vec<Option<String>> = match &self.cases {
            Cases::None => vec![None],
            Cases::All => {
                let others = all.iter().copied().filter(|&case| case.is_none() || case != self.than_case.as_deref());
                others.map(|case| case.map(str::to_owned)).collect()
            }
            Cases::These(cases) => cases.iter().cloned().map(Some).collect(),
        };
        let mut each = Vec::new();
        for case in cases {
            for (of, than) in &self.pairs {
                each.extend(self.metrics.iter().map(|metric| Quantity {
                    metric: metric.clone(),
                    of: of.clone(),
                    than: than.clone(),
                    case: case.clone(),
                    than_case: self.than_case.clone(),
                }));
            }
        }
        each
    }

    /// Returns whether these quantities are ratios.
    pub(super) fn is_ratio(&self) -> bool {
        self.than_case.is_some() || self.pairs.iter().any(|(_, than)| than.is_some())
    }

    /// Returns a label that distinguishes `one` from the others; empty if there are no others.
    pub(super) fn label(&self, one: &Quantity) -> String {
        let mut parts = Vec::new();
        if !matches!(&self.cases, Cases::None) && !matches!(&self.cases, Cases::These(cases) if cases.len() == 1) {
            parts.extend(one.case.clone());
        }
        if self.pairs.len() > 1 {
            parts.push(match &one.than {
                Some(than) => format!("{} over {than}", one.of),
                None => one.of.clone(),
            });
        }
        if self.metrics.len() > 1 {
            parts.push(one.title());
        }
        parts.join(", ")
    }
}

impl Quantity {
    /// Returns the quantity's value in the study; `None` where a series or case is missing.
    pub(super) fn estimate(&self, summary: &Summary) -> Option<Estimate> {
        let here = self.in_case(summary, self.case.as_deref())?;
        match &self.than_case {
            None => Some(here),
            Some(other) => Some(Estimate::of_ratio(&here, &self.in_case(summary, Some(other))?)),
        }
    }

    /// Returns the series that the quantity is about, with their names, in each of its cases.
    pub(super) fn series<'a>(&'a self, summary: &'a Summary) -> impl Iterator<Item = (String, &'a SeriesSummary)> {
        let cases = std::iter::once(self.case.as_deref()).chain(self.than_case.as_deref().map(Some));
        let names = || std::iter::once(&self.of).chain(&self.than);
        cases.flat_map(move |case| {
            names().filter_map(move |name| {
                let in_case =
                    case.filter(|_| self.than_case.is_some()).map_or(String::new(), |case| format!(" ({case})"));
                Some((format!("{name}{in_case}"), summary.find_in(case, name)?))
            })
        })
    }

    fn in_case(&self, summary: &Summary, case: Option<&str>) -> Option<Estimate> {
        let of = summary.find_in(case, &self.of)?.metric(&self.metric)?;
        match &self.than {
            None => Some(of.clone()),
            Some(than) => Some(Estimate::of_ratio(of, summary.find_in(case, than)?.metric(&self.metric)?)),
        }
    }

    /// Returns the metric's displayed name.
    pub(crate) fn title(&self) -> String {
        if let Some(title) = footprint::title(&self.metric) {
            return title;
        }
        match (Metric::find(&self.metric), Metric::find_of_workload(&self.metric)) {
            (Some(metric), _) => metric.title.to_owned(),
            (None, Some((workload, metric))) => format!("{} of {workload}", metric.title),
            (None, None) => self.metric.clone(),
        }
    }

    /// Returns a message on the first thing that the study lacks: a case, a series, or, where `state` is given, the
    /// state of a series.
    pub(super) fn missing(&self, series: &[(Option<&str>, &str)], state: Option<&Footprints>) -> Option<String> {
        for case in std::iter::once(self.case.as_deref()).chain(self.than_case.as_deref().map(Some)) {
            if case.is_some() && !series.iter().any(|&(known, _)| known == case) {
                let mut cases: Vec<&str> = series.iter().filter_map(|&(case, _)| case).collect();
                cases.dedup();
                let known = if cases.is_empty() { "it has none".into() } else { format!("only {}", cases.join(", ")) };
                return Some(format!("the study has no case \"{}\", {known}", case.unwrap_or_default()));
            }
            for name in std::iter::once(&self.of).chain(&self.than) {
                if series.contains(&(case, name)) {
                    match state.and_then(|state| state.missing(&self.metric, case, name)) {
                        None => continue,
                        missing => return missing,
                    }
                }
                if case.is_none() && series.iter().all(|&(case, _)| case.is_some()) && !series.is_empty() {
                    return Some(
                        "the study has cases: say which, as in case = \"...\", or case = \"*\" for all".into(),
                    );
                }
                let here: Vec<&str> = series.iter().filter(|&&(at, _)| at == case).map(|&(_, name)| name).collect();
                return Some(format!("the study has no series \"{name}\", only {}", here.join(", ")));
            }
        }
        None
    }
}
