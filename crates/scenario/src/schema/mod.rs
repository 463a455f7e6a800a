//! JSON Schema of scenario files.

mod keys;

use std::collections::BTreeMap;

pub use keys::KeyHelp;
use selvedge_document::{KeyPath, View, views};
use serde_json::Value;

use crate::device::{Device, DeviceKind};
use crate::scenario::Scenario;

/// Returns the JSON Schema (draft 2020-12) of a scenario file, for editors and `selvedge schema`.
pub fn schema() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    let mut schema = settings.into_generator().into_root_schema_for::<Scenario>().to_value();
    for (table, kind) in [("NicConfig", DeviceKind::Nic), ("SwitchConfig", DeviceKind::Switch)] {
        let of_kind = Device::all().iter().filter(|device| device.kind() == kind);
        let names: Vec<Value> = of_kind.flat_map(Device::names).map(Value::from).collect();
        schema["$defs"][table]["properties"]["preset"]["enum"] = Value::Array(names);
    }
    schema
}

/// Returns the paths of all keys of a scenario, with an element of a list as its first; keys of cases, of series and of
/// maps with free keys are left out.
pub(crate) fn all_paths(schema: &Value) -> Vec<KeyPath> {
    // Bound of the recursion; all keys are above it.
    const DEEPEST: usize = 12;
    let mut all = Vec::new();
    let mut open = vec![(KeyPath::root(), vec![schema])];
    while let Some((path, nodes)) = open.pop() {
        let views: Vec<View<'_>> = nodes.iter().flat_map(|node| views(schema, node)).collect();
        let mut inside: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for view in &views {
            match view {
                View::Keys { properties, .. } => {
                    properties.iter().for_each(|(name, node)| inside.entry(name.clone()).or_default().push(node));
                }
                View::Elements(node) => inside.entry("0".to_owned()).or_default().push(node),
            }
        }
        for (name, nodes) in inside {
            let path = path.join(name);
            let is_own = ["series", "case", "sweep"].contains(&&*path.steps()[0]);
            if path.steps().len() < DEEPEST && !is_own {
                all.push(path.clone());
                open.push((path, nodes));
            }
        }
    }
    all
}
