//! Schemes by their short names: "irn", "irn+pfc", "irn+go-back-n", "roce+pfc", "tcp+cubic".
//!
//! A name is a loss recovery and any number of modifiers: `<recovery>[+<modifier>]...`. To add a
//! recovery, add its line to [`RECOVERIES`]; a variant of one, its line to [`VARIANTS`]. Every
//! congestion control of the registry is a modifier already. TCP stands where a recovery does, and has
//! a registry of its own; EQDS stands there, too, and has none. Behind others, "+eqds" sends what they send through
//! its tunnels.

use selvedge_sim::config::Trimming;
use selvedge_transport::{CongestionConfig, tcp};
use toml::{Table, Value};

use crate::document::unknown_name;

/// Loss recoveries: short name, key in `[transport.recovery.<key>]`, what it is.
const RECOVERIES: &[(&str, &str, &str)] = &[
    ("irn", "irn", "selective retransmission, BDP-FC (IRN)"),
    ("roce", "go-back-n", "go-back-N, as in RoCE NICs"),
    (NETRT, "go-back-n", "go-back-N behind top-of-rack switches that repair losses (NetRT)"),
    ("melo", "melo", "selective retransmission with bitmaps from a shared pool (MELO)"),
];

/// Go-back-N, helped by switches.
const NETRT: &str = "netrt";

/// TCP: short name, and key in `[transport.tcp]`.
const TCP: &str = "tcp";
/// EQDS: short name, and key in `[transport.eqds]`.
const EQDS: &str = "eqds";
/// NDP: short name, and key in `[transport.ndp]`.
const NDP: &str = "ndp";
/// Keys of `[transport]` that are a stack.
const STACKS: &[&str] = &[TCP, "recovery", "congestion", NDP];
/// A congestion control that EQIFs slow down; and its settings for that, which suit a short control loop (EQDS,
/// appendix B: R_d 4 us, R_i 750 us, R_AI 5 Mbps; the rest is the firmware's).
const DCQCN: &str = "dcqcn";
const NEAR_DCQCN: &[(&str, &str)] =
    &[("transport.congestion.dcqcn.defaults", "'connect-x'"), ("transport.congestion.dcqcn.increase-timer", "'750us'")];
/// Transports that are not a recovery and a congestion control.
const WHOLE: &[(&str, &str)] = &[
    (TCP, "TCP, as in iWARP NICs"),
    (EQDS, "EQDS: credit from receivers, switches that trim, sprayed packets"),
    (NDP, "NDP: receivers pull, switches trim, packets spread over paths"),
];

/// A variant of a scheme that a paper compares with it.
#[derive(PartialEq, Eq, Debug)]
struct Variant {
    /// The modifier.
    name: &'static str,
    /// Short name of the scheme.
    of: &'static str,
    about: &'static str,
    /// Keys of `[transport]`, and values as TOML.
    sets: &'static [(&'static str, &'static str)],
}

/// Variants of schemes.
const VARIANTS: &[Variant] = &[
    Variant {
        name: GO_BACK_N,
        of: "irn",
        about: "IRN with go-back-N recovery; BDP-FC and timeouts stay (IRN 4.3)",
        sets: &[
            ("transport.recovery.go-back-n.acks", "'per-packet'"),
            ("transport.recovery.go-back-n.bdp-cap", "'auto'"),
            ("transport.recovery.go-back-n.rto-low", "'auto'"),
        ],
    },
    Variant {
        name: "hls",
        of: "irn",
        about: "IRN as its authors' hardware code has it (IRN 6.2)",
        sets: &[("transport.recovery.irn.mode", "'hls'")],
    },
    Variant {
        name: "no-bdp-fc",
        of: "irn",
        about: "IRN without BDP-FC (IRN 4.3)",
        sets: &[("transport.recovery.irn.bdp-cap", "'off'")],
    },
    Variant {
        name: "no-sack",
        of: "irn",
        about: "selective retransmission without SACKs (IRN 4.3)",
        sets: &[("transport.recovery.irn.sack", "false")],
    },
    Variant {
        name: "dynamic-rto",
        of: "irn",
        about: "timeouts computed as TCP's (IRN 4.3)",
        sets: &[("transport.recovery.irn.rto", "{ dynamic = {} }")],
    },
    Variant {
        name: "overheads",
        of: "irn",
        about: "worst-case overheads: lost packets are fetched for 2 us, 16 B more header (IRN 6.3)",
        sets: &[("transport.recovery.irn.retransmit-delay", "'2us'"), ("transport.recovery.irn.extra-header", "'16B'")],
    },
    Variant {
        name: MULTIPATH,
        of: TCP,
        about: "MPTCP: 8 subflows with linked increases (RFC 6356)",
        sets: &[("transport.tcp.subflows", "8")],
    },
    Variant {
        name: RTS,
        of: EQDS,
        about: "EQDS on switches that do not trim: credit is requested first (EQDS 5)",
        sets: &[("transport.eqds.burst", "false")],
    },
];

/// Schemes by other names.
const ALIASES: &[(&str, &str)] = &[("mptcp", "tcp+multipath")];

/// The variant that does without trimming.
const RTS: &str = "rts";
/// The variant that changes the engine.
const GO_BACK_N: &str = "go-back-n";
/// The variant of TCP that has several subflows, and how their windows are coupled unless something else is asked for.
const MULTIPATH: &str = "multipath";
const LINKED: &str = "lia";

/// What a preset sets, apart from the recovery and congestion controls.
const PFC: &str = "pfc";

/// Load balancing other than ECMP: modifier, value of `switch.balancing`, what it is.
type Balancing = (&'static str, &'static str, &'static str);
const BALANCINGS: &[Balancing] = &[
    ("spray", "'spray'", "packets take any of the shortest ways"),
    ("drill", "{ drill = {} }", "packets take the shortest of a few queues (DRILL)"),
    ("flowlet", "{ flowlet = {} }", "flows may change ways where they pause (LetFlow)"),
];

/// One scheme, taken apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Preset {
    recovery: &'static str,
    variants: Vec<&'static Variant>,
    congestion: Option<&'static str>,
    pfc: bool,
    balancing: Option<&'static Balancing>,
    netrt: bool,
    /// Goes through EQDS's tunnels.
    carried: bool,
}

impl Preset {
    /// Reads "irn+pfc".
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let (first, rest) = name.split_at(name.find('+').unwrap_or(name.len()));
        let alias = ALIASES.iter().find(|(alias, _)| *alias == first.trim());
        let long = alias.map(|(_, long)| format!("{long}{rest}"));
        let mut words = long.as_deref().unwrap_or(name).split('+').map(str::trim);
        let short = words.next().unwrap_or_default();
        let whole = WHOLE.iter().map(|&(short, _)| (short, short));
        let schemes = RECOVERIES.iter().map(|&(short, key, _)| (short, key)).chain(whole);
        let Some((_, recovery)) = schemes.clone().find(|(known, _)| *known == short) else {
            let aliases = ALIASES.iter().map(|&(alias, _)| alias);
            let known: Vec<&str> = schemes.map(|(short, _)| short).chain(aliases).collect();
            return Err(unknown_name("scheme", short, &known) + &format!(" (in \"{name}\"; {EXAMPLE})"));
        };
        let words: Vec<&str> = words.collect();
        let can_be_carried = !matches!(short, EQDS | NDP | NETRT);
        let carried = can_be_carried && words.contains(&EQDS);
        let mut preset = Self { recovery, netrt: short == NETRT, carried, ..Self::default() };
        let controls = preset.controls();
        for word in words {
            if word == EQDS && can_be_carried {
                continue;
            }
            if let Some(variant) = VARIANTS.iter().find(|variant| variant.name == word) {
                preset.vary(variant, short, name)?;
                continue;
            }
            if let Some(balancing) = BALANCINGS.iter().find(|balancing| balancing.0 == word) {
                if let Some(other) = preset.balancing.replace(balancing) {
                    return Err(format!("\"{name}\" balances by {} and by {word}; give one", other.0));
                }
                continue;
            }
            match controls.iter().find(|control| **control == word) {
                _ if word == PFC && !preset.pfc => preset.pfc = true,
                Some(control) if preset.congestion.is_none() => preset.congestion = Some(control),
                Some(_) => return Err(format!("\"{name}\" names two congestion controls; give one")),
                None if word == PFC => return Err(format!("\"{name}\" says pfc twice")),
                None => {
                    let variants = VARIANTS.iter().filter(|variant| variant.of == short).map(|variant| variant.name);
                    let known: Vec<&str> = [PFC]
                        .into_iter()
                        .chain(can_be_carried.then_some(EQDS))
                        .chain(controls.iter().copied())
                        .chain(variants)
                        .chain(BALANCINGS.iter().map(|balancing| balancing.0))
                        .collect();
                    return Err(unknown_name("modifier", word, &known) + &format!(" (in \"{name}\"; {EXAMPLE})"));
                }
            }
        }
        Ok(preset)
    }

    /// The congestion controls to choose from.
    fn controls(&self) -> &'static [&'static str] {
        match self.recovery {
            TCP => tcp::congestion::CongestionConfig::NAMES,
            EQDS | NDP => &[],
            _ => CongestionConfig::NAMES,
        }
    }

    /// What EQDS and NDP want of switches: that they trim, and that control packets travel with the headers; or
    /// neither.
    fn trimming(&self, base: &Table) -> Vec<(&'static str, Value)> {
        let buffer = base.get("switch").and_then(|switch| switch.get("buffer"));
        let trims = buffer.is_some_and(|buffer| buffer.get("trimming").is_some());
        match self.variants.iter().any(|variant| variant.name == RTS) {
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

    /// The base's `[transport]` with tunnels for this stack, or without those that it has for one; `None` if it may
    /// stay as it is.
    fn around_tunnels(&self, base: &Table) -> Option<Value> {
        let mut transport = base.get("transport").and_then(Value::as_table).cloned().unwrap_or_default();
        let is_carried = transport.contains_key(EQDS) && STACKS.iter().any(|stack| transport.contains_key(*stack));
        if !self.carried && !is_carried {
            return None;
        }
        let (own, eqif): (&[&str], _) = match self.recovery {
            TCP => (&[TCP], TCP),
            EQDS | NDP => (&[], ""),
            _ => (&["recovery", "congestion"], "rdma"),
        };
        for stack in STACKS.iter().filter(|stack| !own.contains(stack)) {
            transport.remove(*stack);
        }
        if self.carried {
            let tunnels = transport.entry(EQDS).or_insert_with(|| Value::Table(Table::new())).as_table_mut()?;
            let eqifs = tunnels.entry("eqif").or_insert_with(|| Value::Table(Table::new())).as_table_mut()?;
            for other in ["tcp", "rdma"].iter().filter(|other| **other != eqif) {
                eqifs.remove(*other);
            }
            eqifs.entry(eqif).or_insert_with(|| Value::Table(Table::new()));
        } else if self.recovery != EQDS {
            transport.remove(EQDS);
        } else if let Some(tunnels) = transport.get_mut(EQDS).and_then(Value::as_table_mut) {
            tunnels.remove("eqif");
        }
        if self.recovery == TCP {
            transport.entry(TCP).or_insert_with(|| Value::Table(Table::new()));
        } else if !own.is_empty() {
            transport.entry("recovery").or_insert_with(|| of_kind(self.recovery));
        }
        Some(Value::Table(transport))
    }

    fn vary(&mut self, variant: &'static Variant, short: &str, name: &str) -> Result<(), String> {
        if variant.of != short && !(variant.of == EQDS && self.carried) {
            return Err(format!("\"{name}\": {} is a variant of {}, not of {short}", variant.name, variant.of));
        }
        if self.variants.contains(&variant) {
            return Err(format!("\"{name}\" says {} twice", variant.name));
        }
        self.variants.push(variant);
        if self.variants.len() > 1 && self.variants.iter().any(|variant| variant.name == GO_BACK_N) {
            return Err(format!("\"{name}\": with go-back-n there is nothing left of IRN that could vary"));
        }
        if variant.name == GO_BACK_N {
            self.recovery = GO_BACK_N;
        }
        Ok(())
    }

    /// What it sets in the scenario `base`: keys and values. An algorithm that the base has chosen
    /// already keeps the base's settings.
    pub(crate) fn sets(&self, base: &Table) -> Vec<(&'static str, Value)> {
        let mut sets = vec![("switch.pfc.enabled", Value::Boolean(self.pfc))];
        let other = self.around_tunnels(base);
        sets.extend(other.clone().map(|transport| ("transport", transport)));
        let transport = other.as_ref().or(base.get("transport"));
        let tcp = transport.and_then(|transport| transport.get(TCP));
        let base_has = |name: &str| transport.is_some_and(|transport| transport.get(name).is_some());
        if self.carried {
            sets.extend(self.trimming(base));
        }
        let roles = if matches!(self.recovery, EQDS | NDP) {
            if !base_has(self.recovery) {
                sets.push(("transport", of_kind(self.recovery)));
            }
            sets.extend(self.trimming(base));
            Vec::new()
        } else if self.recovery == TCP {
            if tcp.is_none() {
                sets.push(("transport", of_kind(TCP)));
            }
            let chosen = tcp.and_then(|tcp| tcp.get("congestion"));
            let is_multipath = self.variants.iter().any(|variant| variant.name == MULTIPATH);
            let congestion = self.congestion.or(is_multipath.then_some(LINKED));
            vec![("transport.tcp.congestion", congestion, chosen)]
        } else if WHOLE.iter().any(|(name, _)| base_has(name) && !(self.carried && *name == EQDS)) {
            // Nothing of these may stay.
            let recovery = Table::from_iter([("recovery".to_owned(), of_kind(self.recovery))]);
            sets.push(("transport", Value::Table(recovery)));
            vec![("transport.congestion", self.congestion, None)]
        } else {
            let chosen = |role| transport.and_then(|transport| transport.get(role));
            vec![
                ("transport.recovery", Some(self.recovery), chosen("recovery")),
                ("transport.congestion", self.congestion, chosen("congestion")),
            ]
        };
        for (path, algorithm, chosen) in roles {
            let Some(algorithm) = algorithm else { continue };
            if chosen.is_none_or(|chosen| chosen.get(algorithm).is_none()) {
                sets.push((path, of_kind(algorithm)));
                if self.carried && algorithm == DCQCN {
                    sets.extend(NEAR_DCQCN.iter().map(|&(path, value)| (path, literal(value))));
                }
            }
        }
        let helped = base.get("switch").and_then(|switch| switch.get(NETRT)?.get("enabled")?.as_bool());
        if self.netrt != helped.unwrap_or(false) {
            sets.push(("switch.netrt.enabled", Value::Boolean(self.netrt)));
        }
        let balanced = base.get("switch").and_then(|switch| switch.get("balancing"));
        if let Some(&(kind, value, _)) = self.balancing
            && balanced.is_none_or(|balancing| balancing.get(kind).is_none())
        {
            sets.push(("switch.balancing", literal(value)));
        }
        let varied = self.variants.iter().flat_map(|variant| variant.sets);
        sets.extend(varied.map(|&(path, value)| (path, literal(value))));
        sets
    }
}

/// `{ kind = {} }`: this kind of something, with its defaults.
fn of_kind(kind: &str) -> Value {
    Value::Table(Table::from_iter([(kind.to_owned(), Value::Table(Table::new()))]))
}

/// A value of the tables above.
fn literal(text: &str) -> Value {
    let mut table: Table = toml::from_str(&format!("value = {text}")).expect("a literal value");
    table.remove("value").expect("it is there")
}

/// The grammar and all names, for help texts: one line per name.
pub fn preset_help() -> String {
    let mut lines = vec!["<recovery>[+<modifier>]..., as in irn+pfc".to_owned()];
    lines.extend(RECOVERIES.iter().map(|(short, _, about)| format!("  {short:12} {about}")));
    lines.extend(WHOLE.iter().map(|(short, about)| format!("  {short:12} {about}")));
    lines.push(format!("  +{PFC:11} priority flow control"));
    lines.push(format!("  +{EQDS:11} through EQDS's tunnels: any recovery but netrt, and tcp"));
    lines.extend(CongestionConfig::NAMES.iter().map(|name| format!("  +{name:11} congestion control")));
    lines.extend(BALANCINGS.iter().map(|(name, _, about)| format!("  +{name:11} {about}")));
    lines.extend(VARIANTS.iter().map(|Variant { name, about, .. }| format!("  +{name:11} {about}")));
    lines.extend(ALIASES.iter().map(|(alias, long)| format!("  {alias:12} {long}")));
    let controls = tcp::congestion::CongestionConfig::NAMES.join(", +");
    lines.push(format!("  behind tcp: +{controls}"));
    lines.join("\n")
}

/// Every loss recovery and each of its variants by itself.
pub fn scheme_names() -> Vec<String> {
    let of = |short: &'static str| {
        let variants = VARIANTS.iter().filter(move |variant| variant.of == short);
        [short.to_owned()].into_iter().chain(variants.map(move |variant| format!("{short}+{}", variant.name)))
    };
    RECOVERIES.iter().flat_map(|&(short, ..)| of(short)).collect()
}

const EXAMPLE: &str = "schemes are written as in irn, irn+pfc, roce+pfc, tcp, eqds";

#[cfg(test)]
mod tests;
