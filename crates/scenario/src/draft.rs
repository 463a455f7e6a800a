//! A scenario text with everything that the command line changes about it, expanded to one typed
//! scenario per series.

mod blame;

use selvedge_document::{Document, KeyPath, Mismatch, unknown_name};
use selvedge_sim::config::TransportConfig;
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::device::{self, Chosen, DeviceKind};
use crate::edit::{Applied, Edit};
use crate::error::{Place, ScenarioError};
use crate::plan::Changes;
use crate::preset::Preset;
use crate::scenario::{Case, Scenario};
use crate::schema::schema;
use crate::series::Series;
use crate::suggest;
use crate::sweep::{self, Expanded, Grid};

/// A scenario text and the changes to it.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    document: Document,
    schema: Json,
    /// The text as it was read.
    written: Scenario,
    /// The text's values, without its series.
    base: Table,
    /// Whether the text chooses transports, at least in part.
    has_transport: bool,
    /// Changes in order: files of the command line in place of written values, and `--set`.
    sets: Vec<Edit>,
    /// Place that asks for the seeds, if they are set outside of the text.
    seeds: Option<Place>,
    /// Points of the sweep, if there is one.
    sweep: Option<Expanded>,
}

/// Series of a draft in one case: the scenario with the values of both in place.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    /// Name of the series.
    pub(crate) name: String,
    pub(crate) case: Option<String>,
    pub(crate) scenario: Scenario,
    /// Changes in order: of two edits of a key the later wins.
    edits: Vec<Edit>,
    /// Place that asked for the series as a whole.
    pub(crate) place: Place,
    /// Scheme that sets the values which the series leaves open.
    preset: Option<String>,
    /// Devices that set the values which neither text nor edits set.
    pub(crate) devices: Vec<Chosen>,
}

impl Draft {
    /// Reads `document`, to which its own `[smoke]` applies if that is wanted, and then the other `changes`; its series
    /// are chosen later.
    pub(crate) fn read(document: Document, changes: &Changes) -> Result<Self, ScenarioError> {
        let schema = schema();
        let written: Scenario =
            document.read(&schema, suggest::elsewhere).map_err(|mismatch| document.error(mismatch))?;
        let mut base = document.table();
        base.remove("series");
        base.remove("smoke");
        base.remove("case");
        base.remove("sweep");
        // The default is a choice, too: an edit inside another kind must not replace it unawares.
        let has_transport = base.contains_key("transport");
        base.entry("transport").or_insert_with(default_transport);
        let smokes = written.smoke.iter().map(|(key, value)| {
            let origin = document.place(&path("smoke").join(key));
            Edit::new(&schema, &base, key, value.clone(), origin)
        });
        // Invalid edits are errors even without `--smoke`.
        let smokes: Vec<Edit> = smokes.collect::<Result<_, _>>()?;
        let wanted = if changes.smoke { smokes } else { Vec::new() };
        let files = [("topology", "file", &changes.topology), ("workload", "flows", &changes.flows)];
        let files = files.into_iter().filter_map(|(key, kind, path)| Some((key, kind, path.as_deref()?)));
        let files = files.map(|(key, kind, path)| Edit::from_file(&schema, key, kind, path));
        let sets = changes.sets.iter().map(|set| Edit::from_argument(&schema, &base, set));
        let sets: Vec<Edit> = wanted.into_iter().map(Ok).chain(files).chain(sets).collect::<Result<_, _>>()?;
        let sweep = sweep::expand(written.sweep.as_ref(), &changes.sweeps, &document)?;
        if sweep.is_some() && !written.case.is_empty() {
            let message = "a sweep makes the cases itself: put the keys of [[case]] into a [[sweep.zip]]";
            return Err(ScenarioError::new(document.place(&path("case").join("0")), "case", message));
        }
        let mut draft = Self { document, schema, written, base, has_transport, sets, seeds: None, sweep };
        draft.set_study_keys()?;
        if let Some(seeds) = &changes.seeds {
            draft.written.seeds = seeds.clone();
            draft.seeds = Some(Place::Argument(format!("--seeds {seeds}")));
        }
        Ok(draft)
    }

    /// Returns the scenario that all series share: as written, with the study's own keys as set.
    pub(crate) fn written(&self) -> &Scenario {
        &self.written
    }

    /// Returns the keys that cases change, in the order of their first mention.
    pub(crate) fn swept(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        let of_grid = self.sweep.iter().flat_map(|sweep| &sweep.grid.axes).flat_map(|axis| &axis.keys);
        for key in self.written.case.iter().flat_map(|case| case.set.keys()).chain(of_grid) {
            let key = KeyPath::parse(key).map_or_else(|| key.clone(), |path| path.to_string());
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Returns the points of the sweep, if there is one.
    pub(crate) fn grid(&self) -> Option<&Grid> {
        self.sweep.as_ref().map(|sweep| &sweep.grid)
    }

    /// Returns the series to run: those named by `--series`, else those of the text, else the text itself.
    pub(crate) fn variants(&self, chosen: Option<&str>) -> Result<Vec<Variant>, ScenarioError> {
        let own: Vec<(Series, Place)> = self.own_series();
        let wanted: Vec<(Series, Place)> = match chosen {
            None => own,
            // A text without series has no names of series to choose from.
            Some(names) => chosen_series(if self.written.series.is_some() { &own } else { &[] }, names)?,
        };
        if wanted.is_empty() {
            let place = self.document.place(&path("series"));
            return Err(ScenarioError::new(place, "series", "no series to run; give at least one"));
        }
        let variants = self.in_cases(&wanted)?;
        for (index, variant) in variants.iter().enumerate() {
            if variants[..index].iter().any(|other| (&other.case, &other.name) == (&variant.case, &variant.name)) {
                let message = format!("two series are called \"{}\"; give each a name of its own", variant.name);
                return Err(ScenarioError::new(variant.place.clone(), "series", message));
            }
        }
        self.refuse_idle(&self.sets, &variants)?;
        Ok(variants)
    }

    /// Returns the text itself as one series, whether or not it has series.
    pub(crate) fn base_variant(&self) -> Result<Variant, ScenarioError> {
        let series = Series { name: Some(scheme_name(&self.written)), ..Series::default() };
        let variant = self.variant(&series, self.document.place(&KeyPath::root()), None)?;
        self.refuse_idle(&self.sets, std::slice::from_ref(&variant))?;
        Ok(variant)
    }

    /// Returns the series of the text, or the text itself as one series.
    fn own_series(&self) -> Vec<(Series, Place)> {
        match &self.written.series {
            Some(list) => {
                let place = |index: usize| self.document.place(&path("series").join(index.to_string()));
                list.iter().enumerate().map(|(index, series)| (series.clone(), place(index))).collect()
            }
            None => {
                let series = Series { name: Some(scheme_name(&self.written)), ..Series::default() };
                vec![(series, self.document.place(&KeyPath::root()))]
            }
        }
    }

    /// Returns the series of each case.
    fn in_cases(&self, wanted: &[(Series, Place)]) -> Result<Vec<Variant>, ScenarioError> {
        let cases = self.cases()?;
        if cases.is_empty() {
            return wanted.iter().map(|(series, place)| self.variant(series, place.clone(), None)).collect();
        }
        let is_case = |name: &String| cases.iter().any(|case| case.name == *name);
        if let Some((series, place)) =
            wanted.iter().find(|(series, _)| series.case.as_ref().is_some_and(|case| !is_case(case)))
        {
            let names: Vec<&str> = cases.iter().map(|case| &*case.name).collect();
            let message = unknown_name("case", series.case.as_deref().unwrap_or_default(), &names);
            return Err(ScenarioError::new(place.clone(), "series.case", message));
        }
        let mut variants = Vec::new();
        for case in &cases {
            let runs = |series: &Series| series.case.as_ref().is_none_or(|name| *name == case.name);
            let first = variants.len();
            for (series, place) in wanted.iter().filter(|(series, _)| runs(series)) {
                variants.push(self.variant(series, place.clone(), Some(case))?);
            }
            self.refuse_idle(&case.edits, &variants[first..])?;
        }
        Ok(variants)
    }

    /// Returns the cases of the text, after checking that the schema has their keys.
    fn cases(&self) -> Result<Vec<Condition>, ScenarioError> {
        if let Some(sweep) = &self.sweep {
            let edit = |(key, value): (&String, &Value)| self.edit_of_series(key, value, sweep.places[key].clone());
            let condition = |case: Case| {
                let edits = case.set.iter().map(edit).collect::<Result<_, _>>()?;
                Ok(Condition { name: case.name, edits })
            };
            return sweep.cases().into_iter().map(condition).collect();
        }
        let mut cases: Vec<Condition> = Vec::new();
        for (index, case) in self.written.case.iter().enumerate() {
            let here = path("case").join(index.to_string());
            let wrong = |message: String| Err(ScenarioError::new(self.document.place(&here), "case.name", message));
            if case.name.trim().is_empty() || case.name.contains(['/', '\\', '\n']) {
                return wrong(format!("\"{}\" is not a name; give the case one, without slashes", case.name));
            }
            if let Err(message) = check_name(&case.name) {
                return wrong(message);
            }
            if cases.iter().any(|other| other.name == case.name) {
                return wrong(format!("two cases are called \"{}\"; give each a name of its own", case.name));
            }
            let edits = case.set.iter().map(|(key, value)| {
                let origin = self.document.place(&here.join("set").join(key));
                self.edit_of_series(key, value, origin)
            });
            cases.push(Condition { name: case.name.clone(), edits: edits.collect::<Result<_, _>>()? });
        }
        Ok(cases)
    }

    /// Returns an edit of one series or case, which must not change the study as a whole.
    fn edit_of_series(&self, key: &str, value: &Value, origin: Place) -> Result<Edit, ScenarioError> {
        let edit = Edit::new(&self.schema, &self.base, key, value.clone(), origin)?;
        if STUDY_KEYS.iter().any(|study| path(study).contains(&edit.path)) {
            return Err(edit.refused(format!("{key} belongs to the study as a whole, not to one series")));
        }
        Ok(edit)
    }

    fn variant(&self, series: &Series, place: Place, case: Option<&Condition>) -> Result<Variant, ScenarioError> {
        let name = series_name(series).to_owned();
        if name.trim().is_empty() || name.contains(['/', '\\', '\n']) {
            let message = format!("\"{name}\" is not a name; give the series one, without slashes");
            return Err(ScenarioError::new(place, "series.name", message));
        }
        check_name(&name).map_err(|message| ScenarioError::new(place.clone(), "series.name", message))?;
        let mut edits = Vec::new();
        if let Some(preset) = &series.preset {
            let preset = Preset::parse(preset).map_err(|message| ScenarioError::new(place.clone(), "", message))?;
            for (path, value) in preset.sets(&self.base) {
                edits.push(Edit::new(&self.schema, &self.base, path, value, place.clone())?);
            }
        }
        for (key, value) in &series.set {
            edits.push(self.edit_of_series(key, value, self.place_of_set(&place, key))?);
        }
        let later: Vec<&Edit> = case.into_iter().flat_map(|case| &case.edits).chain(&self.sets).collect();
        let devices = self.devices(&edits, &later)?;
        let mut table = self.base_with(&devices, series);
        for edit in &edits {
            if let Applied::OtherKind { at, chosen } = edit.apply(&mut table)? {
                return Err(edit.other_kind(&at, &chosen));
            }
        }
        for set in later {
            if let Applied::Yes = set.apply_where_it_fits(&mut table)? {
                edits.push(set.clone());
            }
        }
        // Values of devices go before all edits, which have precedence.
        let mut filled = Vec::new();
        for chosen in &devices {
            filled.extend(device::fill(chosen, &self.schema, &mut table)?);
        }
        edits.splice(0..0, filled);
        let mut scenario = self.typed(&table, &edits)?;
        scenario.series = None;
        scenario.case = Vec::new();
        scenario.sweep = None;
        scenario.seeds = self.written.seeds.clone();
        // Without cases of its own, a resolved scenario still has the cases of its series.
        let case = case.map(|case| case.name.clone()).or_else(|| series.case.clone());
        // A text without series is named after the scheme that its devices choose.
        let name = match self.written.series.is_none() && series.preset.is_none() && !devices.is_empty() {
            true => scheme_name(&scenario),
            false => name,
        };
        Ok(Variant { name, case, scenario, edits, place, preset: series.preset.clone(), devices })
    }

    /// Returns the devices that a series names: in `edits`, in the `later` ones that fit, or in the text.
    fn devices(&self, edits: &[Edit], later: &[&Edit]) -> Result<Vec<Chosen>, ScenarioError> {
        let mut table = self.base.clone();
        let mut all: Vec<Edit> = edits.to_vec();
        all.extend(later.iter().map(|edit| (*edit).clone()));
        for edit in &all {
            // Edits that do not fit are reported when the series is put together.
            let _ = edit.apply_where_it_fits(&mut table);
        }
        let mut devices = Vec::new();
        for kind in [DeviceKind::Nic, DeviceKind::Switch] {
            let key = path(kind.key());
            let value = key.steps().iter().skip(1).fold(table.get(&key.steps()[0]), |value, step| value?.get(step));
            if let Some(name) = value.and_then(Value::as_str) {
                let place = self.origin(&all, &key);
                let device = device::find(Some(kind), name)
                    .map_err(|message| ScenarioError::new(place.clone(), kind.key(), message))?;
                devices.push(Chosen { device, place });
            }
        }
        Ok(devices)
    }

    /// Returns the values of the text, with the devices' choice of a transport where neither the text nor a preset of
    /// `series` chooses one.
    fn base_with(&self, devices: &[Chosen], series: &Series) -> Table {
        let mut table = self.base.clone();
        let chooser = devices.iter().find(|chosen| chosen.device.kind() == DeviceKind::Nic);
        let Some(nic) = chooser.filter(|_| series.preset.is_none()) else { return table };
        let Some(transport) = table.get_mut("transport").and_then(Value::as_table_mut) else { return table };
        let default = if self.has_transport { Table::new() } else { std::mem::take(transport) };
        device::choose(nic.device, transport);
        // The default holds for properties that the device leaves unknown.
        for (key, value) in default {
            transport.entry(key).or_insert(value);
        }
        table
    }

    /// Reads a table that edits have changed; an error is attributed to the edit that put the faulty value there.
    fn typed(&self, table: &Table, edits: &[Edit]) -> Result<Scenario, ScenarioError> {
        typed(table, &self.schema).map_err(|Mismatch { path, message, .. }| {
            // The text alone was valid, so an edit is the cause even if it only lies inside `path`.
            let inside = edits.iter().rev().find(|edit| path.contains(&edit.path));
            let place = inside.map_or_else(|| self.origin(edits, &path), |edit| edit.origin.clone());
            ScenarioError::new(place, path.to_string(), message)
        })
    }

    /// Applies the sets of keys that belong to the study as a whole.
    fn set_study_keys(&mut self) -> Result<(), ScenarioError> {
        let mut table = self.base.clone();
        let study: Vec<Edit> = self
            .sets
            .iter()
            .filter(|set| STUDY_KEYS.iter().any(|key| path(key).contains(&set.path)))
            .cloned()
            .collect();
        for set in &study {
            match &*set.path.steps()[0] {
                "series" => return Err(set.refused("series are chosen by --series, as in --series irn,roce+pfc")),
                "case" => return Err(set.refused("cases are written in the scenario")),
                "sweep" => {
                    return Err(set.refused("sweeps are given by --sweep, as in --sweep workload.poisson.load=0.3,0.5"));
                }
                _ => {}
            }
            set.apply(&mut table)?;
        }
        if !study.is_empty() {
            let changed = self.typed(&table, &study)?;
            let (series, case) = (self.written.series.take(), std::mem::take(&mut self.written.case));
            self.written = Scenario { series, case, sweep: self.written.sweep.take(), ..changed };
        }
        Ok(())
    }

    /// Returns an error if a `--set` changes nothing in any series.
    fn refuse_idle(&self, sets: &[Edit], variants: &[Variant]) -> Result<(), ScenarioError> {
        for set in sets {
            if !variants.iter().any(|variant| variant.edits.contains(set)) {
                let mut table = self.base.clone();
                if let Some(first) = variants.first() {
                    for edit in &first.edits {
                        edit.apply(&mut table)?;
                    }
                }
                if let Applied::OtherKind { at, chosen } = set.apply_where_it_fits(&mut table)? {
                    return Err(set.other_kind(&at, &chosen));
                }
            }
        }
        Ok(())
    }
}

/// Returns the series that `--series` names: series of the text, in each of their cases, or else schemes.
fn chosen_series(own: &[(Series, Place)], names: &str) -> Result<Vec<(Series, Place)>, ScenarioError> {
    let wrong = |message: String| Err(ScenarioError::argument(format!("--series {names}"), message));
    let mut wanted = Vec::new();
    let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            return wrong(format!("\"{name}\" would run twice, to the same results; name it once"));
        }
        let before = wanted.len();
        wanted.extend(own.iter().filter(|(series, _)| series_name(series) == *name).cloned());
        if wanted.len() == before {
            let scheme = Series::of_preset(name);
            wanted.push((scheme, Place::Argument(format!("--series {name}"))));
        }
    }
    if wanted.is_empty() { wrong("no series to run; give at least one".to_owned()) } else { Ok(wanted) }
}

/// Reads `table` as a scenario, which `schema` describes; errors name the key.
fn typed(table: &Table, schema: &Json) -> Result<Scenario, Mismatch> {
    let text = toml::to_string(table).expect("a table can be written");
    let document = Document::parse("", &text).expect("valid TOML from the serializer");
    document.read(schema, suggest::elsewhere)
}

fn default_transport() -> Value {
    Value::try_from(TransportConfig::default()).expect("a table can be written")
}

/// Keys that describe the study as a whole.
const STUDY_KEYS: &[&str] = &["title", "description", "seeds", "series", "case", "sweep", "smoke"];

/// Case, split into its parts.
struct Condition {
    name: String,
    edits: Vec<Edit>,
}

/// Checks that the name can be part of a file's name, because files are named after series and cases.
fn check_name(name: &str) -> Result<(), String> {
    match name.len() {
        _ if name.contains(char::is_control) => {
            Err(format!("the name {name:?} has a control character, and files are called after it; leave that out"))
        }
        ..=LONGEST_NAME => Ok(()),
        len => Err(format!(
            "a name of {len} bytes is too long for files that are called after it; give at most {LONGEST_NAME}"
        )),
    }
}

/// Length limit of names in bytes; file names have 255 at most.
const LONGEST_NAME: usize = 100;

fn series_name(series: &Series) -> &str {
    series.name.as_deref().or(series.preset.as_deref()).unwrap_or_default()
}

/// Returns the name of a scenario without series: its recovery, and PFC.
fn scheme_name(scenario: &Scenario) -> String {
    let recovery = scenario.transport.recovery_name();
    if scenario.switch.pfc.enabled { format!("{recovery}+pfc") } else { recovery.to_owned() }
}

fn path(text: &str) -> KeyPath {
    KeyPath::parse(text).expect("a literal path")
}
