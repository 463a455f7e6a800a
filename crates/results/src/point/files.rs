//! The files of a point, written completely or not at all, and verified when read.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::PointSummary;
use crate::tables::{Digest, check_part};
use crate::{ResultsError, Table};

/// The files of one point, inside a folder of parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PointFiles {
    /// Flows of the point, Parquet.
    pub flows: PathBuf,
    /// Port samples of the point, Parquet.
    pub ports: PathBuf,
    /// [`PointSummary`] as JSON; written last, so that its presence means "complete".
    pub summary: PathBuf,
}

impl PointFiles {
    /// Returns the paths in `folder` for the series at index `series` of its plan.
    pub fn new(folder: &Path, series: usize, seed: u64) -> Self {
        let file = |what| folder.join(format!("{series:03}-seed-{seed}.{what}"));
        Self { flows: file("flows.parquet"), ports: file("ports.parquet"), summary: file("summary.json") }
    }

    /// Loads the point if an earlier run completed it: all three files exist, as that run wrote them, and belong to
    /// this series and seed.
    ///
    /// # Errors
    /// Returns an error that says which file is wrong, and how; the point must then be run again.
    pub fn completed(&self, series: &str, seed: u64) -> Result<PointSummary, ResultsError> {
        let (point, parts) = Saved::load(&self.summary)?;
        if point.series != series || point.seed != seed {
            let what = format!("about series \"{}\", seed {}, not \"{series}\", seed {seed}", point.series, point.seed);
            return Err(ResultsError::damaged(&self.summary, what));
        }
        check_part(&self.flows, Table::Flows, parts.flows)?;
        check_part(&self.ports, Table::Ports, parts.ports)?;
        Ok(point)
    }
}

impl PointSummary {
    /// Writes the summary as JSON, with the digests of its parts; the file appears when it is complete.
    pub(crate) fn save(&self, parts: PartDigests, path: &Path) -> Result<(), ResultsError> {
        let partial = path.with_extension("json.partial");
        let saved = Saved { parts, digest: self.digest(), point: Cow::Borrowed(self) };
        let text = serde_json::to_vec(&saved).expect(TEXT_KEYS);
        fs::write(&partial, text).map_err(|error| ResultsError::io(&partial, "write it", &error))?;
        fs::rename(&partial, path).map_err(|error| ResultsError::io(path, "put it in place", &error))
    }

    /// Loads a summary.
    ///
    /// # Errors
    /// Returns an error when the file is missing, damaged, or by another version.
    pub fn load(path: &Path) -> Result<Self, ResultsError> {
        Saved::load(path).map(|(point, _)| point)
    }

    /// Returns a digest of the summary's JSON. Numbers survive writing and reading unchanged, so the digest does, too.
    fn digest(&self) -> u64 {
        Digest::of(&serde_json::to_vec(self).expect(TEXT_KEYS))
    }
}

/// Digests of the files of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PartDigests {
    pub(crate) flows: u64,
    pub(crate) ports: u64,
}

/// Content of the file of a summary.
#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    parts: PartDigests,
    /// Digest of `point`; see [`PointSummary::digest`].
    digest: u64,
    point: Cow<'a, PointSummary>,
}

impl Saved<'_> {
    fn load(path: &Path) -> Result<(PointSummary, PartDigests), ResultsError> {
        let text = fs::read(path).map_err(|error| ResultsError::io(path, "read it", &error))?;
        let saved: Self = serde_json::from_slice(&text).map_err(|error| {
            let what = format!("not the summary of a point by this version: {error}");
            ResultsError::damaged(path, what)
        })?;
        let point = saved.point.into_owned();
        if point.digest() != saved.digest {
            return Err(ResultsError::damaged(path, "not as it was written: it is damaged"));
        }
        Ok((point, saved.parts))
    }
}

const TEXT_KEYS: &str = "a point has text keys only";
