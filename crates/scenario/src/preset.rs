//! Schemes by their short names: "irn", "irn+pfc", "irn+go-back-n", "roce+pfc", "tcp+cubic".
//!
//! A name is a scheme and any number of modifiers: `<scheme>[+<modifier>]...`. To add a loss recovery, add its line to
//! [`SCHEMES`]; a variant of one, its line to [`VARIANTS`]. Every congestion control of the registry is a modifier
//! already, and TCP has a registry of its own; every transport of messages is a scheme already. With other schemes,
//! "+eqds" sends their packets through its tunnels.

mod table;

use selvedge_document::unknown_name;
use selvedge_sim::config::Trimming;
use selvedge_transport::endpoint::{EndpointConfig, EndpointSettings};
use selvedge_transport::{CongestionConfig, tcp};
use toml::{Table, Value};

use table::{ALIASES, BALANCINGS, Balancing, Beside, EQDS, Engine, IN_TUNNELS, PFC, SCHEMES, Scheme};
use table::{TCP, VARIANTS, Variant};

/// Name of a preset, split into its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Preset {
    scheme: &'static Scheme,
    variants: Vec<&'static Variant>,
    congestion: Option<&'static str>,
    pfc: bool,
    balancing: Option<&'static Balancing>,
    /// Whether the stack sends through EQDS's tunnels.
    carried: bool,
}

impl Preset {
    fn of(scheme: &'static Scheme) -> Self {
        Self { scheme, variants: Vec::new(), congestion: None, pfc: false, balancing: None, carried: false }
    }

    /// Reads "irn+pfc".
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let (first, rest) = name.split_at(name.find('+').unwrap_or(name.len()));
        let alias = ALIASES.iter().find(|(alias, _)| *alias == first.trim());
        let long = alias.map(|(_, long)| format!("{long}{rest}"));
        let mut words = long.as_deref().unwrap_or(name).split('+').map(str::trim);
        let first = words.next().unwrap_or_default();
        let Some(scheme) = SCHEMES.iter().find(|scheme| scheme.name == first) else {
            let known = SCHEMES.iter().map(|scheme| scheme.name).chain(ALIASES.iter().map(|&(alias, _)| alias));
            let known: Vec<&str> = known.collect();
            return Err(unknown_name("scheme", first, &known) + &format!(" (in \"{name}\"; {EXAMPLE})"));
        };
        let modifiers: Vec<&str> = words.collect();
        let mut preset = Self::of(scheme);
        // The engine determines whether EQDS's variants are among the modifiers, wherever its word stands.
        preset.carried = scheme.can_be_carried() && modifiers.contains(&EQDS);
        if preset.carried && modifiers.iter().filter(|word| **word == EQDS).count() > 1 {
            return Err(format!("\"{name}\" says {EQDS} twice"));
        }
        for word in modifiers {
            preset.modify(word, name)?;
        }
        Ok(preset)
    }

    /// Applies one modifier of `name`.
    fn modify(&mut self, word: &str, name: &str) -> Result<(), String> {
        if word == EQDS && self.carried {
            Ok(())
        } else if word == PFC {
            match std::mem::replace(&mut self.pfc, true) {
                true => Err(format!("\"{name}\" says pfc twice")),
                false => Ok(()),
            }
        } else if let Some(variant) = VARIANTS.iter().find(|variant| variant.name == word) {
            self.vary(variant, name)
        } else if let Some(balancing) = BALANCINGS.iter().find(|balancing| balancing.name == word) {
            match self.balancing.replace(balancing) {
                Some(other) => Err(format!("\"{name}\" balances by {} and by {word}; give one", other.name)),
                None => Ok(()),
            }
        } else if let Some(control) = self.scheme.controls().iter().find(|control| **control == word) {
            match self.congestion.replace(control) {
                Some(_) => Err(format!("\"{name}\" names two congestion controls; give one")),
                None => Ok(()),
            }
        } else {
            let known = self.scheme.modifiers();
            Err(unknown_name("modifier", word, &known) + &format!(" (in \"{name}\"; {EXAMPLE})"))
        }
    }

    fn vary(&mut self, variant: &'static Variant, name: &str) -> Result<(), String> {
        let scheme = self.scheme.name;
        if variant.of != scheme && !(variant.of == EQDS && self.carried) {
            return Err(format!("\"{name}\": {} is a variant of {}, not of {scheme}", variant.name, variant.of));
        }
        if self.variants.contains(&variant) {
            return Err(format!("\"{name}\" says {} twice", variant.name));
        }
        self.variants.push(variant);
        let other_engine = self.variants.iter().find(|variant| matches!(variant.beside, Beside::Engine(_)));
        if let Some(other) = other_engine.filter(|_| self.variants.len() > 1) {
            let message =
                format!("with {} there is nothing left of {} that could vary", other.name, other.of.to_uppercase());
            return Err(format!("\"{name}\": {message}"));
        }
        Ok(())
    }

    fn engine(&self) -> Engine {
        let of_variants = self.variants.iter().find_map(|variant| match variant.beside {
            Beside::Engine(engine) => Some(engine),
            _ => None,
        });
        of_variants.unwrap_or(self.scheme.engine)
    }

    /// Returns the congestion control that the preset asks for.
    fn control(&self) -> Option<&'static str> {
        let of_variants = self.variants.iter().find_map(|variant| match variant.beside {
            Beside::Congestion(control) => Some(control),
            _ => None,
        });
        self.congestion.or(of_variants)
    }

    /// Returns the keys and values that the preset sets in the scenario `base`. An algorithm that the base has chosen
    /// already keeps the base's settings.
    pub(crate) fn sets(&self, base: &Table) -> Vec<(&'static str, Value)> {
        let mut sets = vec![("switch.pfc.enabled", Value::Boolean(self.pfc))];
        let other = self.around_tunnels(base);
        sets.extend(other.clone().map(|transport| ("transport", transport)));
        let transport = other.as_ref().or(base.get("transport"));
        let base_has = |name: &str| transport.is_some_and(|transport| transport.get(name).is_some());
        if self.carried {
            sets.extend(self.trimming(base));
        }
        let has_messages = EndpointConfig::NAMES.iter().any(|name| base_has(name));
        let chosen = |role| transport.and_then(|transport| transport.get(role));
        let roles = match self.engine() {
            engine @ (Engine::Eqds | Engine::Messages(_)) => {
                if !base_has(engine.key()) {
                    sets.push(("transport", of_kind(engine.key())));
                }
                sets.extend(self.around_messages(base));
                Vec::new()
            }
            Engine::Tcp => {
                if !base_has(TCP) {
                    sets.push(("transport", of_kind(TCP)));
                }
                let chosen = chosen(TCP).and_then(|tcp| tcp.get("congestion"));
                vec![("transport.tcp.congestion", self.control(), chosen)]
            }
            // All keys of stacks are removed.
            Engine::Recovery(key) if base_has(TCP) || has_messages || (base_has(EQDS) && !self.carried) => {
                let recovery = Table::from_iter([("recovery".to_owned(), of_kind(key))]);
                sets.push(("transport", Value::Table(recovery)));
                vec![("transport.congestion", self.control(), None)]
            }
            Engine::Recovery(key) => vec![
                ("transport.recovery", Some(key), chosen("recovery")),
                ("transport.congestion", self.control(), chosen("congestion")),
            ],
        };
        for (path, algorithm, chosen) in roles {
            let Some(algorithm) = algorithm else { continue };
            if chosen.is_none_or(|chosen| chosen.get(algorithm).is_none()) {
                sets.push((path, of_kind(algorithm)));
                let in_tunnels = IN_TUNNELS.iter().filter(|(name, _)| self.carried && *name == algorithm);
                sets.extend(literals(in_tunnels.flat_map(|(_, sets)| *sets)));
            }
        }
        let helped = base.get("switch").and_then(|switch| switch.get("netrt")?.get("enabled")?.as_bool());
        if self.scheme.netrt != helped.unwrap_or(false) {
            sets.push(("switch.netrt.enabled", Value::Boolean(self.scheme.netrt)));
        }
        let balanced = base.get("switch").and_then(|switch| switch.get("balancing"));
        if let Some(Balancing { name, value, .. }) = self.balancing
            && balanced.is_none_or(|balancing| balancing.get(name).is_none())
        {
            sets.push(("switch.balancing", literal(value)));
        }
        sets.extend(literals(self.variants.iter().flat_map(|variant| variant.sets)));
        sets
    }

    /// Returns the settings of switches and NICs that EQDS or a transport of messages needs: trimming, or control
    /// packets above the priorities that it gives to data.
    fn around_messages(&self, base: &Table) -> Vec<(&'static str, Value)> {
        let Engine::Messages(name) = self.engine() else { return self.trimming(base) };
        let Some(messages) = EndpointConfig::all().find(|messages| messages.name() == name) else { return Vec::new() };
        if messages.needs_trimming() {
            return self.trimming(base);
        }
        let is_chosen = base.get("nic").is_some_and(|nic| nic.get("ack-class").is_some());
        let highest = messages.priorities().checked_sub(1).filter(|_| !is_chosen);
        highest.map(|highest| ("nic.ack-class", Value::Integer(highest.into()))).into_iter().collect()
    }

    /// Returns the settings of switches that EQDS and NDP need: trimming, and acknowledgements in the class of trimmed
    /// headers. With [`Beside::NoTrimming`], returns the setting that turns trimming off, if there is trimming.
    fn trimming(&self, base: &Table) -> Vec<(&'static str, Value)> {
        let buffer = base.get("switch").and_then(|switch| switch.get("buffer"));
        let trims = buffer.is_some_and(|buffer| buffer.get("trimming").is_some());
        match self.variants.iter().any(|variant| variant.beside == Beside::NoTrimming) {
            true if trims => vec![("switch.buffer", of_kind("input-queued"))],
            true => Vec::new(),
            false => {
                let trimming = buffer.and_then(|buffer| buffer.get("trimming"));
                let class = trimming.and_then(|trimming| trimming.get("header-class")).cloned();
                let class = class.unwrap_or_else(|| Value::Integer(Trimming::default().header_class.into()));
                let is_chosen = base.get("nic").is_some_and(|nic| nic.get("ack-class").is_some());
                let buffer = (!trims).then(|| ("switch.buffer", of_kind("trimming")));
                let acks = (!trims || !is_chosen).then_some(("nic.ack-class", class));
                buffer.into_iter().chain(acks).collect()
            }
        }
    }

    /// Returns the base's `[transport]` with tunnels for this stack, or without tunnels for another one; `None` if it
    /// may stay as it is.
    fn around_tunnels(&self, base: &Table) -> Option<Value> {
        let mut transport = base.get("transport").and_then(Value::as_table).cloned().unwrap_or_default();
        let is_carried = transport.contains_key(EQDS) && stacks().any(|stack| transport.contains_key(stack));
        if !self.carried && !is_carried {
            return None;
        }
        let engine = self.engine();
        let (own, eqif): (&[&str], _) = match engine {
            Engine::Tcp => (&[TCP], TCP),
            Engine::Eqds | Engine::Messages(_) => (&[], ""),
            Engine::Recovery(_) => (&["recovery", "congestion"], "rdma"),
        };
        for stack in stacks().filter(|stack| !own.contains(stack)) {
            transport.remove(stack);
        }
        if self.carried {
            let tunnels = transport.entry(EQDS).or_insert_with(|| Value::Table(Table::new())).as_table_mut()?;
            let eqifs = tunnels.entry("eqif").or_insert_with(|| Value::Table(Table::new())).as_table_mut()?;
            // TCP beside RDMA has tunnels where it was given some.
            let is_needed = |other: &str| other == eqif || (other == "tcp" && base.contains_key("beside"));
            for other in ["tcp", "rdma"].into_iter().filter(|other| !is_needed(other)) {
                eqifs.remove(other);
            }
            eqifs.entry(eqif).or_insert_with(|| Value::Table(Table::new()));
        } else if engine != Engine::Eqds {
            transport.remove(EQDS);
        } else if let Some(tunnels) = transport.get_mut(EQDS).and_then(Value::as_table_mut) {
            tunnels.remove("eqif");
        }
        match engine {
            Engine::Tcp => {
                transport.entry(TCP).or_insert_with(|| Value::Table(Table::new()));
            }
            Engine::Recovery(key) => {
                transport.entry("recovery").or_insert_with(|| of_kind(key));
            }
            Engine::Eqds | Engine::Messages(_) => (),
        }
        Some(Value::Table(transport))
    }
}

impl Scheme {
    /// Returns whether EQDS's tunnels can carry this stack.
    fn can_be_carried(&self) -> bool {
        matches!(self.engine, Engine::Recovery(_) | Engine::Tcp) && !self.netrt
    }

    /// Returns the congestion controls to choose from.
    fn controls(&self) -> &'static [&'static str] {
        match self.engine {
            Engine::Recovery(_) => CongestionConfig::NAMES,
            Engine::Tcp => tcp::congestion::CongestionConfig::NAMES,
            Engine::Eqds | Engine::Messages(_) => &[],
        }
    }

    /// Returns the variants of the preset.
    fn variants(&self) -> impl Iterator<Item = &'static Variant> {
        VARIANTS.iter().filter(|variant| variant.of == self.name)
    }

    /// Returns the modifiers to choose from.
    fn modifiers(&self) -> Vec<&'static str> {
        [PFC]
            .into_iter()
            .chain(self.can_be_carried().then_some(EQDS))
            .chain(self.controls().iter().copied())
            .chain(self.variants().map(|variant| variant.name))
            .chain(BALANCINGS.iter().map(|balancing| balancing.name))
            .collect()
    }
}

impl Engine {
    /// Returns the key of the engine: in `[transport]`, or in `[transport.recovery]`.
    fn key(self) -> &'static str {
        match self {
            Self::Recovery(key) => key,
            Self::Tcp => TCP,
            Self::Eqds => EQDS,
            Self::Messages(name) => name,
        }
    }
}

/// Returns `{ kind = {} }`: this kind of something, with its defaults.
fn of_kind(kind: &str) -> Value {
    Value::Table(Table::from_iter([(kind.to_owned(), Value::Table(Table::new()))]))
}

/// Parses a value of the tables.
fn literal(text: &str) -> Value {
    let mut table: Table = toml::from_str(&format!("value = {text}")).expect("a literal value");
    table.remove("value").expect("the key \"value\" of the literal")
}

/// Parses keys and values of the tables.
fn literals(
    sets: impl Iterator<Item = &'static (&'static str, &'static str)>,
) -> impl Iterator<Item = (&'static str, Value)> {
    sets.map(|&(path, value)| (path, literal(value)))
}

/// Returns the grammar and all names, for help texts: one line per name.
pub fn preset_help() -> String {
    let mut lines = vec!["<recovery>[+<modifier>]..., as in irn+pfc".to_owned()];
    lines.extend(SCHEMES.iter().map(|Scheme { name, about, .. }| format!("  {name:12} {about}")));
    lines.push(format!("  +{PFC:11} priority flow control"));
    lines.push(format!("  +{EQDS:11} through EQDS's tunnels: any recovery but netrt, and tcp"));
    lines.extend(BALANCINGS.iter().map(|Balancing { name, about, .. }| format!("  +{name:11} {about}")));
    lines.extend(VARIANTS.iter().map(|Variant { name, about, .. }| format!("  +{name:11} {about}")));
    lines.extend(ALIASES.iter().map(|(alias, long)| format!("  {alias:12} {long}")));
    lines.push("congestion controls behind irn, roce, netrt and melo:".to_owned());
    lines.extend(controls(CongestionConfig::NAMES, CongestionConfig::ABOUTS));
    lines.push("congestion controls behind tcp:".to_owned());
    let of_tcp = [tcp::congestion::CongestionConfig::NAMES, tcp::congestion::CongestionConfig::ABOUTS];
    lines.extend(controls(of_tcp[0], of_tcp[1]));
    lines.join("\n")
}

/// Returns a line for each congestion control, without the full stop of its description.
fn controls(names: &[&str], abouts: &[&str]) -> Vec<String> {
    let line = |(name, about): (&&str, &&str)| format!("  +{name:11} {}", about.trim_end_matches('.'));
    names.iter().zip(abouts).map(line).collect()
}

/// Returns every loss recovery and each of its variants by itself.
pub fn scheme_names() -> Vec<String> {
    let of = |scheme: &'static Scheme| {
        let variants = scheme.variants().map(|variant| format!("{}+{}", scheme.name, variant.name));
        [scheme.name.to_owned()].into_iter().chain(variants)
    };
    SCHEMES.iter().filter(|scheme| matches!(scheme.engine, Engine::Recovery(_))).flat_map(of).collect()
}

/// Returns the keys of `[transport]` with stacks that EQDS's tunnels can carry, or that replace the tunnels.
fn stacks() -> impl Iterator<Item = &'static str> {
    [TCP, "recovery", "congestion"].into_iter().chain(EndpointConfig::NAMES.iter().copied())
}

const EXAMPLE: &str = "schemes are written as in irn, irn+pfc, roce+pfc, tcp, eqds";

#[cfg(test)]
mod tests;
