//! Values of a device in the place of defaults.

use selvedge_document::KeyPath;
use selvedge_transport::endpoint::EndpointConfig;
use serde_json::Value as Json;
use toml::{Table, Value};

use super::{Chosen, Device};
use crate::edit::{Applied, Edit};
use crate::error::ScenarioError;

/// Puts the values of `chosen` into `table`, a scenario that is complete otherwise, for keys that are not set. Returns
/// the edits made.
pub(crate) fn fill(chosen: &Chosen, schema: &Json, table: &mut Table) -> Result<Vec<Edit>, ScenarioError> {
    let values = chosen.device.set.iter().map(|setting| (&*setting.key, setting.value.value.clone()));
    let headroom = chosen.device.headroom.as_ref().map(|headroom| {
        let rows: Vec<_> = headroom.by_link().collect();
        (HEADROOM_BY_LINK, Value::try_from(rows).expect("rows can be written"))
    });
    let others = Others::of(table);
    let mut filled = Vec::new();
    for (key, value) in values.chain(headroom) {
        let edit = Edit::new(schema, table, key, value, chosen.place.clone())?;
        if others.leave(key) && !is_set(table, &edit.path) && has_kind(table, &edit.path) {
            // Where another kind is chosen, the settings are others.
            if edit.apply(table)? == Applied::Yes {
                filled.push(edit);
            }
        }
    }
    Ok(filled)
}

/// Chooses a device's loss recovery and congestion control in `transport`, where RDMA's are not chosen.
pub(crate) fn choose(device: &Device, transport: &mut Table) {
    if ["tcp", "eqds"].iter().chain(EndpointConfig::NAMES).any(|other| transport.contains_key(*other)) {
        return;
    }
    for (role, scheme) in [("recovery", &device.recovery), ("congestion", &device.congestion)] {
        if let Some(scheme) = scheme {
            let kind = || Value::Table(Table::from_iter([(scheme.value.clone(), Value::Table(Table::new()))]));
            transport.entry(role).or_insert_with(kind);
        }
    }
}

/// Settings made elsewhere that make some of a device's values meaningless.
struct Others {
    /// Whether DCQCN's defaults are set.
    dcqcn_defaults: bool,
    headroom: bool,
    /// Whether the buffer is of another kind than the device's.
    buffer: bool,
}

impl Others {
    fn of(table: &Table) -> Self {
        let is_set = |path: &str| is_set(table, &KeyPath::parse(path).expect("a literal path"));
        Self {
            dcqcn_defaults: is_set(&format!("{DCQCN}.defaults")),
            headroom: is_set("switch.pfc.headroom"),
            buffer: is_set("switch.buffer") && !is_set(SHARED_BUFFER),
        }
    }
    /// Returns whether these settings leave the key `key` to the device.
    fn leave(&self, key: &str) -> bool {
        let of_buffer = key.starts_with(SHARED_BUFFER) || [HEADROOM_BY_LINK, XON_GAP, XON].contains(&key);
        !(self.dcqcn_defaults && key.starts_with(DCQCN)
            || self.headroom && key == HEADROOM_BY_LINK
            || self.buffer && of_buffer)
    }
}

/// Returns whether `table` has a value at `path`.
fn is_set(table: &Table, path: &KeyPath) -> bool {
    let (first, rest) = path.steps().split_first().expect("a path has a step");
    let value = table.get(first);
    rest.iter().fold(value, |value, step| value?.get(step)).is_some()
}

/// Returns whether `table` chooses the scheme that the key at `path` belongs to; keys outside of `transport` need none.
fn has_kind(table: &Table, path: &KeyPath) -> bool {
    let steps = path.steps();
    let parent = steps[..steps.len() - 1].iter().fold(KeyPath::root(), |path, step| path.join(step));
    steps[0] != "transport" || is_set(table, &parent)
}

const DCQCN: &str = "transport.congestion.dcqcn";
const SHARED_BUFFER: &str = "switch.buffer.shared-buffer";
const HEADROOM_BY_LINK: &str = "switch.pfc.headroom-by-link";
const XON_GAP: &str = "switch.pfc.xon-gap";
const XON: &str = "switch.pfc.xon";
