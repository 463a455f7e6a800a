//! Comparison of two folders of results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use selvedge_results::{Comparison, FlowsMatch, KeyDifference, SeriesSummary, Summary, read_flows, render_comparison};
use selvedge_scenario::{StoredSeries, stored_series};
use selvedge_units::mix64;

use crate::StudyError;
use crate::finished::{anew, check_complete, read_summary};
use crate::folder::{SCENARIO, without_trailing_slash};

/// Two complete studies, compared series by series.
#[derive(Debug)]
pub struct Contrast {
    comparison: Comparison,
    summaries: [Summary; 2],
}

impl Contrast {
    /// Compares the results in `folders`; ratios are the second over the first.
    ///
    /// # Errors
    /// Returns an error if a folder holds no results, incomplete results or those of another version, or if no series
    /// is in both.
    pub fn of(folders: [&Path; 2]) -> Result<Self, StudyError> {
        let (comparison, summaries) = between(folders)?;
        if comparison.series.is_empty() {
            return Err(StudyError::input(format!(
                "{} and {} have no series in common: {}; {}: compare results whose series have the same names and cases",
                comparison.a.folder,
                comparison.b.folder,
                the_first(&comparison.only_in_a),
                the_first(&comparison.only_in_b)
            )));
        }
        Ok(Self { comparison, summaries })
    }

    /// Returns the whole comparison as JSON.
    pub fn to_json(&self) -> String {
        self.comparison.to_json()
    }

    /// Returns the comparison for a terminal of `width` columns.
    pub fn render(&self, width: usize, color: bool) -> String {
        let [a, b] = &self.summaries;
        render_comparison(&self.comparison, [a, b], width, color)
    }
}

/// Returns the comparison of two folders, which is empty if they have no series in common, and their summaries.
pub(crate) fn between(folders: [&Path; 2]) -> Result<(Comparison, [Summary; 2]), StudyError> {
    let [a, b] = folders.map(Opened::open);
    let (a, b) = (a?, b?);
    let flows = [a.flows()?, b.flows()?];
    let is_the_same = |series: &SeriesSummary| {
        let key = (series.series.clone(), series.case.clone().unwrap_or_default());
        compare_flows(flows[0].get(&key), flows[1].get(&key))
    };
    let names = [&a, &b].map(|side| side.folder.display().to_string());
    let sides = [(names[0].as_str(), &a.summary), (names[1].as_str(), &b.summary)];
    let comparison = Comparison::new(sides, differences(&a, &b), is_the_same);
    Ok((comparison, [a.summary, b.summary]))
}

/// An opened folder of results.
struct Opened {
    folder: PathBuf,
    summary: Summary,
    series: Vec<StoredSeries>,
}

/// A digest of a run's flows that is independent of the order in which they finished.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Digest {
    count: u64,
    /// Sum over flows of a hash of workload, id, source, destination and size.
    what: u64,
    /// Sum over flows of the same hash combined with the start time.
    when: u64,
}

/// Digests by series and case, and by seed.
type FlowsOf = BTreeMap<(String, String), BTreeMap<u64, Digest>>;

impl Opened {
    fn open(folder: &Path) -> Result<Self, StudyError> {
        let folder = without_trailing_slash(folder);
        check_complete(&folder)?;
        let scenario = folder.join(SCENARIO);
        let summary = read_summary(&folder, &anew(&folder, false))?;
        let series = stored_series(&scenario).map_err(|error| StudyError::input(error.to_string()))?;
        Ok(Self { folder, summary, series })
    }

    /// Returns the digests of the flows of each run.
    fn flows(&self) -> Result<FlowsOf, StudyError> {
        let remedy = anew(&self.folder, false);
        let mut all = FlowsOf::new();
        let flows = read_flows(&self.folder.join("flows.parquet"));
        for row in flows.map_err(|error| error.with_remedy(remedy.clone()))? {
            let row = row.map_err(|error| error.with_remedy(remedy.clone()))?;
            let runs = match all.get_mut(&(row.series.to_string(), row.case.to_string())) {
                Some(runs) => runs,
                None => all.entry((row.series.to_string(), row.case.to_string())).or_default(),
            };
            let digest = runs.entry(row.seed).or_default();
            let flow = row.flow;
            let ends = u64::from(flow.src.0) << 32 | u64::from(flow.dst.0);
            let what = [u64::from(flow.workload), flow.id, ends, flow.size.get()];
            let what = what.into_iter().fold(0, |hash, word| mix64(hash ^ word));
            digest.count += 1;
            digest.what = digest.what.wrapping_add(what);
            digest.when = digest.when.wrapping_add(mix64(what ^ flow.start.as_ps()));
        }
        Ok(all)
    }
}

/// Compares the flows of a series for all seeds that both studies have.
fn compare_flows(a: Option<&BTreeMap<u64, Digest>>, b: Option<&BTreeMap<u64, Digest>>) -> FlowsMatch {
    let Some((a, b)) = a.zip(b) else { return FlowsMatch::Different };
    let compare = |(seed, one): (&u64, &Digest)| {
        let other = b.get(seed)?;
        Some(match one {
            _ if one == other => FlowsMatch::Same,
            _ if (one.count, one.what) == (other.count, other.what) => FlowsMatch::OtherStarts,
            _ => FlowsMatch::Different,
        })
    };
    a.iter().filter_map(compare).max().unwrap_or(FlowsMatch::NoCommonSeed)
}

/// Returns the differences between the scenarios of series that both studies have.
fn differences(a: &Opened, b: &Opened) -> Vec<KeyDifference> {
    let other =
        |one: &StoredSeries| b.series.iter().find(|other| (&other.series, &other.case) == (&one.series, &one.case));
    let pairs: Vec<(&StoredSeries, &StoredSeries)> =
        a.series.iter().filter_map(|one| Some((one, other(one)?))).collect();
    let mut found: Vec<KeyDifference> = Vec::new();
    for (one, other) in &pairs {
        for (key, a, b) in one.differences(other) {
            let name = match &one.case {
                Some(case) => format!("{case}: {}", one.series),
                None => one.series.clone(),
            };
            match found.iter_mut().find(|known| (&known.key, &known.a, &known.b) == (&key, &a, &b)) {
                Some(known) => known.series.push(name),
                None => found.push(KeyDifference { key, series: vec![name], a, b }),
            }
        }
    }
    for difference in &mut found {
        if difference.series.len() == pairs.len() {
            difference.series.clear();
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

/// Returns the names of series; only the first few if there are many.
fn the_first(names: &[String]) -> String {
    const FEW: usize = 4;
    match names.len().checked_sub(FEW) {
        Some(more) if more > 1 => format!("{} and {more} more", names[..FEW].join(", ")),
        _ => names.join(", "),
    }
}
