//! Conversion of a plan into a scenario file.

use selvedge_document::KeyPath;
use selvedge_sim::Transports;
use selvedge_sim::config::BufferConfig;
use selvedge_units::Setting;
use toml::{Table, Value};

use crate::device::{self, DeviceKind};
use crate::plan::{KeyValue, Plan, PlannedSeries};
use crate::ranges::ranges;
use crate::scenario::{Scenario, Seeds};
use crate::series::Series;

/// Returns the resolved scenario of `plan`: what all series share, and what each sets.
pub(crate) fn written(plan: &Plan) -> String {
    let tables: Vec<Table> = plan.series.iter().map(|series| values(&series.scenario)).collect();
    let base = &tables[0];
    let series = plan.series.iter().zip(&tables).map(|(series, table)| {
        let mut set = std::collections::BTreeMap::new();
        differences(base, table, &KeyPath::root(), &mut |path, value| {
            set.insert(path.to_string(), value.clone());
        });
        // The root cannot be replaced; the keys that may be absent there are lists.
        for key in base.keys().filter(|key| !table.contains_key(*key)) {
            set.insert(key.clone(), Value::Array(Vec::new()));
        }
        Series { name: Some(series.series.clone()), preset: None, case: series.case.clone(), set }
    });
    let whole = Scenario {
        title: plan.title.clone(),
        description: plan.description.clone(),
        seeds: Seeds::List(plan.seeds.clone()),
        smoke: Default::default(),
        series: Some(series.collect()),
        ..plan.series[0].scenario.clone()
    };
    let text = toml::to_string_pretty(&whole).expect("a scenario can be written");
    let any = |is: &dyn Fn(&PlannedSeries) -> bool| plan.series.iter().any(is);
    let of_hosts = any(&|series| !series.transports.is_empty());
    let of_paths = any(&|series| !series.path_transports.distinct.is_empty());
    let of_links = any(&|series| series.scenario.switch.pfc.headroom == Setting::Auto);
    let of_file = any(&|series| match &series.scenario.switch.buffer {
        BufferConfig::InputQueued(own) => own.per_port == Setting::Auto,
        _ => false,
    });
    let left = [
        (of_hosts, "what fits the link of each host"),
        (of_paths, "what fits the path of each flow"),
        (of_links, "the headroom of each link"),
        (of_file, "the buffers that the topology's file gives to ports"),
    ];
    let left: Vec<&str> = left.into_iter().filter_map(|(is_left, what)| is_left.then_some(what)).collect();
    let but = if left.is_empty() { String::new() } else { format!(", but {}", left.join(", and ")) };
    let (devices, ranges) = (devices(plan), ranges_in(plan));
    format!(
        "# The resolved scenario: every \"auto\" has its value{but}. Running it gives the same results.\n{ranges}{devices}{text}"
    )
}

/// Returns comments about unknown and unmodelled properties of the devices of `plan`.
fn devices(plan: &Plan) -> String {
    let named = plan.series.iter().flat_map(|PlannedSeries { scenario, .. }| {
        [(DeviceKind::Nic, &scenario.nic.preset), (DeviceKind::Switch, &scenario.switch.preset)]
    });
    let mut comments: Vec<String> = Vec::new();
    for (kind, name) in named {
        // A series is planned if its devices are known.
        let Some(device) = name.as_deref().and_then(|name| device::find(Some(kind), name).ok()) else { continue };
        let comment = device::comment(device);
        if !comments.contains(&comment) {
            comments.push(comment);
        }
    }
    comments.concat()
}

/// Returns the values of "auto" where hosts and paths differ, one line of comment per key and series; series with the
/// same values share a line.
fn ranges_in(plan: &Plan) -> String {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    for series in &plan.series {
        let others = Transports { hosts: series.transports.clone(), paths: series.path_transports.clone() };
        for (key, [least, most]) in ranges(&series.transport, &others) {
            let line = format!("{key}: {least} to {most}");
            match lines.iter_mut().find(|(known, _)| *known == line) {
                Some((_, names)) => names.push(&series.name),
                None => lines.push((line, vec![&series.name])),
            }
        }
    }
    lines.into_iter().fold(String::new(), |text, (line, names)| format!("{text}# {line} ({})\n", names.join(", ")))
}

/// Returns the values of one series as TOML.
pub(crate) fn written_values(scenario: &Scenario) -> String {
    toml::to_string(&values(scenario)).expect("a scenario can be written")
}

/// Returns the value of the key at the dotted path `key`, if there is one.
pub(crate) fn value_of(scenario: &Scenario, key: &str) -> Option<KeyValue> {
    let root = Value::Table(values(scenario));
    let at = |value: &Value, step: &String| match value {
        Value::Table(table) => table.get(step).cloned(),
        Value::Array(elements) => elements.get(step.parse::<usize>().ok()?).cloned(),
        _ => None,
    };
    let found = KeyPath::parse(key)?.steps().iter().try_fold(root, |value, step| at(&value, step))?;
    Some(match found {
        Value::Integer(number) => KeyValue::Number(number as f64),
        Value::Float(number) => KeyValue::Number(number),
        Value::String(text) => KeyValue::Text(text),
        other => KeyValue::Text(other.to_string()),
    })
}

/// Returns the values of one series that may differ from those of another.
pub(crate) fn values(scenario: &Scenario) -> Table {
    let mut table = Table::try_from(scenario).expect("a scenario can be written");
    for key in ["title", "description", "seeds", "series", "case", "sweep", "smoke"] {
        table.remove(key);
    }
    table
}

/// Calls `found` with the paths at which `other` must be set to turn `base` into it. A table is set
/// as a whole where keys of `base` would have to go.
fn differences(base: &Table, other: &Table, path: &KeyPath, found: &mut impl FnMut(&KeyPath, &Value)) {
    for (key, value) in other {
        let path = path.join(key);
        match (base.get(key), value) {
            (Some(before), after) if before == after => {}
            (Some(Value::Table(before)), Value::Table(after)) if before.keys().all(|key| after.contains_key(key)) => {
                differences(before, after, &path, found);
            }
            (_, after) => found(&path, after),
        }
    }
}
