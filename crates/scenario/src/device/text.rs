//! Text about devices: a table of all, a page about each, comments in resolved scenarios.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use selvedge_units::words::lines;
use serde::Serialize;

use super::data::Gap;
use super::{Device, DeviceKind};

/// All devices, as a table.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct DeviceTable(&'static [Device]);

impl DeviceTable {
    /// Returns the table of all devices.
    pub fn new() -> Self {
        Self(Device::all())
    }
}

impl Default for DeviceTable {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for DeviceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, [name, kind, links, sets, by]: [&str; 5], about: &str| {
            writeln!(f, "{name:18} {kind:6} {links:>9}  {sets:16} {by:7} {about}")
        };
        row(f, ["name", "for", "Gb/s", "sets", "source"], "what")?;
        for device in self.0 {
            let kind = match device.kind {
                DeviceKind::Nic => "nic",
                DeviceKind::Switch => "switch",
            };
            // The manufacturer is left out: it is in the source or in the name.
            let about = device.about.split_once(' ').map_or(&*device.about, |(_, about)| about);
            row(f, [&device.name, kind, &device.links(), &device.sets(), &device.by], about)?;
        }
        let text = "In a scenario: nic.preset = \"NAME\", switch.preset = \"NAME\". What a scenario writes goes before it. \
                    Nothing is calibrated; what is unknown or not modelled is listed by `selvedge presets NAME`, with the \
                    source of each value.";
        writeln!(f)?;
        lines(text, WIDTH).iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl Device {
    /// Returns the rates of the device's links in Gb/s: "10 to 400", "up to 400".
    fn links(&self) -> String {
        let gbps = |rate: selvedge_units::Rate| rate.as_gbps_f64();
        if let Some(fastest) = &self.fastest {
            return format!("<= {}", gbps(fastest.value));
        }
        let rows = self.headroom.iter().flat_map(|headroom| &headroom.rows).map(|row| row.rate);
        match (rows.clone().min(), rows.max()) {
            (Some(least), Some(most)) => format!("{} to {}", gbps(least), gbps(most)),
            _ => "unknown".to_owned(),
        }
    }

    /// Returns the subjects of the settings, by parts of their keys.
    fn sets(&self) -> String {
        let part = |key: &str| match key.split('.').collect::<Vec<_>>()[..] {
            ["nic", ..] => "classes",
            ["transport", "congestion", "dcqcn", ..] => "dcqcn",
            ["switch", "buffer", ..] => "buffer",
            ["switch", "pfc", ..] => "pfc",
            ["switch", "ecn", ..] => "ecn",
            _ => "others",
        };
        let parts: BTreeSet<&str> = self.set.iter().map(|setting| part(&setting.key)).collect();
        parts.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Returns all sources, each once.
    pub(super) fn sources(&self) -> Vec<&str> {
        let schemes = [&self.recovery, &self.congestion].into_iter().flatten().map(|scheme| &*scheme.source);
        let fastest = self.fastest.iter().map(|fastest| &*fastest.source);
        let set = self.set.iter().map(|setting| &*setting.value.source);
        let headroom = self.headroom.iter().map(|headroom| &*headroom.source);
        let mut sources = Vec::new();
        for source in fastest.chain(schemes).chain(set).chain(headroom) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }
}

/// Page about the device, for a terminal.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources = self.sources();
        let number = |source: &str| sources.iter().position(|known| *known == source).map_or(0, |at| at + 1);
        writeln!(f, "{}: {} ({})", self.name, self.about, self.kind.key())?;
        if !self.also.is_empty() {
            writeln!(f, "also called {}", self.also.join(", "))?;
        }
        writeln!(
            f,
            "Values of public documents, by source; none is calibrated. What a scenario writes goes before them."
        )?;
        if let Some(fastest) = &self.fastest {
            writeln!(f, "\nports of up to {} [{}]", fastest.value, number(&fastest.source))?;
        }
        let schemes = [("transport.recovery", &self.recovery), ("transport.congestion", &self.congestion)];
        if schemes.iter().any(|(_, scheme)| scheme.is_some()) {
            writeln!(f, "\nwhere neither the scenario nor a preset of the series chooses:")?;
        }
        for (key, scheme) in schemes {
            if let Some(scheme) = scheme {
                entry(f, &format!("{key} = {{ {} = {{}} }}", scheme.value), &scheme.note, number(&scheme.source))?;
            }
        }
        if !self.set.is_empty() {
            writeln!(f, "\nsets, where its kind is chosen and nobody sets it:")?;
        }
        for setting in &self.set {
            let value = &setting.value;
            entry(f, &format!("{} = {}", setting.key, value.value), &value.note, number(&value.source))?;
        }
        if let Some(headroom) = &self.headroom {
            writeln!(
                f,
                "\nswitch.pfc.headroom-by-link, bytes for each lossless class, by cable (5 ns per metre) [{}]:",
                number(&headroom.source)
            )?;
            let mut head = format!("{:>12}", "");
            headroom.cables.iter().try_for_each(|metres| write!(head, " {:>11}", format!("{metres} m")))?;
            writeln!(f, "{head}")?;
            for row in &headroom.rows {
                let mut line = format!("{:>12}", row.rate.to_string());
                row.bytes.iter().try_for_each(|bytes| write!(line, " {bytes:>11}"))?;
                writeln!(f, "{line}")?;
            }
        }
        for (title, gaps) in [("unknown", &self.unknown), ("not modelled", &self.not_modelled)] {
            if !gaps.is_empty() {
                writeln!(f, "\n{title}; taken instead:")?;
                gaps.iter().try_for_each(|gap| write_gap(f, gap))?;
            }
        }
        writeln!(f, "\nsources:")?;
        for (at, source) in sources.iter().enumerate() {
            writeln!(f, "  [{}] {source}", at + 1)?;
        }
        Ok(())
    }
}

/// Writes a key with its value, its name in the source, and the number of the source.
fn entry(f: &mut fmt::Formatter<'_>, text: &str, note: &str, source: usize) -> fmt::Result {
    if text.len() + note.len() + 10 <= WIDTH {
        writeln!(f, "  {text}  ({note}) [{source}]")
    } else {
        writeln!(f, "  {text}")?;
        writeln!(f, "      ({note}) [{source}]")
    }
}

fn write_gap(f: &mut fmt::Formatter<'_>, gap: &Gap) -> fmt::Result {
    let text = format!("{}; {}", gap.what, gap.instead);
    let mut indent = "  ";
    for line in lines(&text, WIDTH - 6) {
        writeln!(f, "{indent}{line}")?;
        indent = "      ";
    }
    Ok(())
}

/// Returns the comment about a device at the head of a resolved scenario.
pub(crate) fn comment(device: &Device) -> String {
    let mut text = format!(
        "# {} \"{}\": {}. Values of public documents, none calibrated; `selvedge presets {1}` has their sources.\n",
        device.kind.key(),
        device.name,
        device.about
    );
    for (title, gaps) in [("unknown", &device.unknown), ("not modelled", &device.not_modelled)] {
        for Gap { what, instead } in gaps {
            let _ = writeln!(text, "#   {title}: {what}; taken instead: {instead}");
        }
    }
    text
}

/// Columns of a terminal.
const WIDTH: usize = 100;
