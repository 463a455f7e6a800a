//! Commercial devices, for `nic.preset` and `switch.preset`: the values of public documents take the place of defaults.
//!
//! Design notes.
//! 1. *Data.* `device/data/*.toml` has a file for each family. Each value stands beside its source; what no document
//!    says is listed as unknown, what the simulator cannot express as not modelled, both with what holds instead.
//! 2. *Precedence.* Defaults, device, scenario, series, case, `--set`: each goes before those to its left. So a device
//!    is put in place last, and sets only what is not set then.
//! 3. *Choices.* A device fills in the settings of the kinds that are chosen. It chooses a loss recovery and a
//!    congestion control only where neither the scenario nor a preset of the series does.

mod data;
mod fill;
mod findings;
mod text;

use std::sync::OnceLock;

use selvedge_document::unknown_name;

pub use data::{Device, DeviceKind};
pub(crate) use fill::{choose, fill};
pub(crate) use findings::findings;
pub use text::DeviceTable;
pub(crate) use text::comment;

use crate::error::{Place, ScenarioError};

/// Device that a scenario names, and the place where it does.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Chosen {
    pub(crate) device: &'static Device,
    pub(crate) place: Place,
}

impl Device {
    /// Returns all devices: NICs, then switches, by family and name.
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Device>> = OnceLock::new();
        ALL.get_or_init(|| FAMILIES.iter().flat_map(|(file, text)| data::read(file, text)).collect())
    }

    /// Returns the device called `name`.
    ///
    /// # Errors
    /// Returns an error if there is no such device; the message suggests the nearest name.
    pub fn named(name: &str) -> Result<&'static Self, ScenarioError> {
        find(None, name).map_err(|message| ScenarioError::argument(name, message))
    }

    /// Returns whether `name` is one of the device's names.
    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.also.iter().any(|also| also == name)
    }
}

/// Returns the device of this kind (`None`: of any kind) that is called `name`, or an error message.
pub(crate) fn find(kind: Option<DeviceKind>, name: &str) -> Result<&'static Device, String> {
    let is_meant = |device: &&Device| kind.is_none_or(|kind| device.kind == kind);
    if let Some(device) = Device::all().iter().filter(is_meant).find(|device| device.is_called(name)) {
        return Ok(device);
    }
    if let Some(other) = Device::all().iter().find(|device| device.is_called(name)) {
        return Err(format!("\"{name}\" is a {}: give it as {}", other.kind.noun(), other.kind.key()));
    }
    let of_chip: Vec<String> = Device::all()
        .iter()
        .filter(is_meant)
        .filter(|device| device.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')))
        .map(|device| format!("\"{}\"", device.name))
        .collect();
    if of_chip.len() > 1 {
        return Err(format!(
            "several profiles of \"{name}\" are published: give {}",
            selvedge_units::words::one_of(&of_chip)
        ));
    }
    let known: Vec<&str> = Device::all().iter().filter(is_meant).map(|device| &*device.name).collect();
    let what = kind.map_or("device", DeviceKind::noun);
    Err(unknown_name(what, name, &known) + " (`selvedge presets` lists all)")
}

/// Families of devices, by file.
const FAMILIES: [(&str, &str); 6] = [
    ("connectx.toml", include_str!("device/data/connectx.toml")),
    ("pollara.toml", include_str!("device/data/pollara.toml")),
    ("thor.toml", include_str!("device/data/thor.toml")),
    ("spectrum.toml", include_str!("device/data/spectrum.toml")),
    ("tomahawk.toml", include_str!("device/data/tomahawk.toml")),
    ("trident.toml", include_str!("device/data/trident.toml")),
];

#[cfg(test)]
mod tests;
