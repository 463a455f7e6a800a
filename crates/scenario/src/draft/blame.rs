//! Places where values were written, and the place to report for an error in them.

use selvedge_document::KeyPath;

use super::{Draft, Variant, path};
use crate::edit::Edit;
use crate::error::{Place, ScenarioError};

impl Draft {
    /// Returns the place where the key at `path` of the study was written.
    pub(crate) fn place(&self, path: &str) -> Place {
        if let Some(origin) = self.seeds.as_ref().filter(|_| path == "seeds") {
            return origin.clone();
        }
        let path = KeyPath::parse(path).unwrap_or_default();
        match self.sets.iter().rev().find(|edit| edit.path.contains(&path)) {
            Some(edit) => edit.origin.clone(),
            None => self.document.place(&path),
        }
    }

    /// Returns the place of the key `key` in the `set` of the series at `series`, or `series` if the text does not
    /// write it.
    pub(super) fn place_of_set(&self, series: &Place, key: &str) -> Place {
        let count = self.written.series.as_ref().map_or(0, Vec::len);
        let of = |index: usize| path("series").join(index.to_string());
        let index = (0..count).find(|&index| self.document.place(&of(index)) == *series);
        index.map_or_else(|| series.clone(), |index| self.document.place(&of(index).join("set").join(key)))
    }

    /// Returns the place where the value at `path` came from: the last edit that covers it, or the text.
    pub(super) fn origin(&self, edits: &[Edit], path: &KeyPath) -> Place {
        let edit = edits.iter().rev().find(|edit| edit.path.contains(path));
        edit.map_or_else(|| self.document.place(path), |edit| edit.origin.clone())
    }

    /// Returns an error about the key `key` of `variant`, at the place where its value was written, or else at the
    /// place of the scheme that it belongs to.
    pub(crate) fn error(&self, variant: &Variant, key: &str, message: impl Into<String>) -> ScenarioError {
        let mut path = KeyPath::parse(key).unwrap_or_default();
        let is_in_edits = |path: &KeyPath| variant.edits.iter().any(|edit| edit.path.contains(path));
        // Where no edit sets the headroom, the device's table is the cause.
        let table = KeyPath::parse(HEADROOM_BY_LINK).filter(|table| key == HEADROOM && is_in_edits(table));
        path = table.filter(|_| !is_in_edits(&path)).unwrap_or(path);
        let place = self.origin(&variant.edits, &path);
        let is_set = is_in_edits(&path);
        let device =
            variant.devices.iter().find(|chosen| is_set && chosen.place == place && key != chosen.device.kind().key());
        let message = match (&variant.preset, device) {
            (_, Some(chosen)) => format!("{} (\"{}\" sets this)", message.into(), chosen.device.name()),
            (Some(preset), _) if is_set && place == variant.place => {
                format!("{} (\"{preset}\" sets this)", message.into())
            }
            _ => message.into(),
        };
        ScenarioError::new(place, key, message)
    }

    /// Returns `error`, if the text alone does not cause it, with the place of the last edit of the series or its case
    /// inside the error's key, or else inside one of `others`.
    pub(crate) fn blamed(&self, variant: &Variant, error: ScenarioError, others: &[&str]) -> ScenarioError {
        let keys = [&*error.key].into_iter().chain(others.iter().copied()).filter_map(KeyPath::parse);
        let last = |key: KeyPath| variant.edits.iter().rev().find(|edit| key.contains(&edit.path));
        let Some(edit) = keys.into_iter().find_map(last) else { return error };
        let place = edit.origin.clone();
        // An argument is quoted in full, and applies to all series.
        if let Place::Argument(_) = place {
            return ScenarioError { place, ..error };
        }
        let case = variant.case.as_ref().map_or(String::new(), |case| format!(", case \"{case}\""));
        let message = format!("{} (series \"{}\"{case}: {} is set here)", error.message, variant.name, edit.path);
        ScenarioError { place, message, ..error }
    }

    /// Returns an error if the text asks all series for a value that `variant` lacks because its preset overrides it.
    pub(crate) fn overruled(&self, variant: &Variant) -> Option<ScenarioError> {
        let path = path(PFC);
        let asked = self.base.get("switch")?.get("pfc")?.get("enabled")?.as_bool()?;
        let last = variant.edits.iter().rev().find(|edit| edit.path.contains(&path))?;
        let is_preset = variant.preset.is_some() && last.origin == variant.place;
        let message = format!(
            "series \"{}\" has no PFC in spite of this: schemes say themselves whether they have, as \"irn+pfc\" does",
            variant.name
        );
        let is_overruled = asked && is_preset && !variant.scenario.switch.pfc.enabled;
        is_overruled.then(|| ScenarioError::new(self.document.place(&path), PFC, message))
    }

    /// Returns an error if a series is named like its preset but its PFC differs from what that name says, because
    /// another setting changed it.
    pub(crate) fn mislabelled(&self, variant: &Variant) -> Option<ScenarioError> {
        let name = variant.preset.as_ref().filter(|preset| **preset == variant.name)?;
        let says = name.split('+').any(|word| word == "pfc");
        let place = self.origin(&variant.edits, &path(PFC));
        let (runs, other) = match (says, variant.scenario.switch.pfc.enabled) {
            (true, false) => ("without", "one without \"+pfc\""),
            (false, true) => ("with", "one with \"+pfc\""),
            _ => return None,
        };
        let message =
            format!("series \"{name}\" runs {runs} PFC because of this, in spite of its name; choose {other}");
        (place != variant.place).then(|| ScenarioError::new(place, PFC, message))
    }
}

/// Key of PFC, which every preset sets.
const PFC: &str = "switch.pfc.enabled";
/// Key that a device's table of headroom sets where all links are alike.
const HEADROOM: &str = "switch.pfc.headroom";
const HEADROOM_BY_LINK: &str = "switch.pfc.headroom-by-link";
