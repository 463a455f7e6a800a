//! Settings of transports whose values depend on the host or on the path, as they are written.

use std::collections::BTreeMap;
use std::iter;

use selvedge_sim::Transports;
use selvedge_sim::config::TransportConfig;
use selvedge_units::{Bytes, Duration, Rate};

/// Returns the values that `transport` and `others` have in common; "auto" is left where hosts or paths have different
/// values.
pub(crate) fn in_common(transport: TransportConfig, others: &Transports) -> TransportConfig {
    fn keep(ours: &mut toml::Table, theirs: &toml::Table) {
        for (key, value) in ours {
            match (value, theirs.get(key)) {
                (toml::Value::Table(ours), Some(toml::Value::Table(theirs))) => keep(ours, theirs),
                (value, other) if Some(&*value) != other => *value = "auto".into(),
                _ => {}
            }
        }
    }
    let table = |transport| toml::Table::try_from(transport).expect("a transport can be written");
    let mut common = table(transport);
    others.all().for_each(|other| keep(&mut common, &table(*other)));
    common.try_into().expect("what depends on rates and paths may be \"auto\"")
}

/// Returns the keys of `[transport]` whose values depend on the host or on the path, each with the least and the
/// greatest.
pub(crate) fn ranges(transport: &TransportConfig, others: &Transports) -> Vec<(String, [String; 2])> {
    fn leaves(path: &str, value: &toml::Value, found: &mut impl FnMut(String, String)) {
        match value {
            toml::Value::Table(table) => {
                table.iter().for_each(|(key, value)| leaves(&format!("{path}.{key}"), value, found));
            }
            toml::Value::String(text) => found(path.to_owned(), text.clone()),
            other => found(path.to_owned(), other.to_string()),
        }
    }
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for transport in iter::once(transport).chain(others.all()) {
        let table = toml::Value::try_from(*transport).expect("a transport can be written");
        leaves("transport", &table, &mut |key, value| values.entry(key).or_default().push(value));
    }
    let extremes = |(key, mut values): (String, Vec<String>)| {
        values.sort_by(|a, b| magnitude(a).total_cmp(&magnitude(b)).then_with(|| a.cmp(b)));
        values.dedup();
        let [first, .., last] = &values[..] else { return None };
        Some((key, [first.clone(), last.clone()]))
    };
    values.into_iter().filter_map(extremes).collect()
}

/// Returns the magnitude of a written value, for comparison with other values of the same key.
fn magnitude(text: &str) -> f64 {
    let time = text.parse::<Duration>().map(|time| time.as_ps() as f64).ok();
    let size = text.parse::<Bytes>().map(|size| size.get() as f64).ok();
    let rate = text.parse::<Rate>().map(|rate| rate.as_bps() as f64).ok();
    text.parse().ok().or(time).or(size).or(rate).unwrap_or(f64::INFINITY)
}
