//! From text to a [`FatTreeFile`]: first the keys, then whether their numbers fit together.

use std::io::BufRead;

use selvedge_units::{Bytes, Duration, Rate};

use super::{FatTreeFile, Tier};
use crate::text::{BYTES_MAX, Line, Lines, Word, nearest};
use crate::{Dialect, FormatError, Parsed, Warning};

/// Reads a topology and checks that its numbers fit together, by htsim's rules.
///
/// Warns where htsim wires another number of ports than the file gives a switch.
///
/// # Errors
/// Unknown, repeated and missing keys; numbers that are none, or zero, or do not fit together.
pub fn read(input: impl BufRead, file: &str) -> Result<Parsed<FatTreeFile>, FormatError> {
    let mut lines = Lines::new(input, file);
    let mut keys = Keys::default();
    while let Some(line) = lines.next_filled()? {
        keys.read(line)?;
    }
    let end = lines.error_at_end("");
    let (value, warnings) = keys.resolve(&end)?;
    Ok(Parsed { value, warnings, dialect: Dialect::HtsimTopology })
}

/// Keys before the first tier.
const HEADER_KEYS: [&str; 3] = ["Nodes", "Tiers", "Podsize"];
const NODES: usize = 0;
const TIERS: usize = 1;
const PODSIZE: usize = 2;

/// Keys of a tier, and the numbers that they may have.
const TIER_KEYS: [(&str, u64, u64); 9] = [
    ("Downlink_speed_Gbps", 1, 1_000_000),
    ("Downlink_Latency_ns", 1, u32::MAX as u64),
    ("Radix_Down", 1, 65_536),
    ("Radix_Up", 1, 65_536),
    ("Oversubscribed", 1, 65_536),
    ("Bundle", 1, 65_536),
    ("Switch_Latency_ns", 0, u32::MAX as u64),
    ("Queue_Up", 1, BYTES_MAX),
    ("Queue_Down", 1, BYTES_MAX),
];
const SPEED: usize = 0;
const LATENCY: usize = 1;
const RADIX_DOWN: usize = 2;
const RADIX_UP: usize = 3;
const OVERSUBSCRIBED: usize = 4;
const BUNDLE: usize = 5;
const SWITCH_LATENCY: usize = 6;
const QUEUE_UP: usize = 7;
const QUEUE_DOWN: usize = 8;

/// Hosts of the largest network that is believed; htsim's arrays end far below.
const HOSTS_MAX: u64 = 1 << 24;

/// The numbers as written.
#[derive(Default)]
struct Keys {
    header: [Option<Number>; HEADER_KEYS.len()],
    tiers: [Option<Block>; 3],
    current: Option<usize>,
}

/// What was said of one tier.
struct Block {
    place: Place,
    numbers: [Option<Number>; TIER_KEYS.len()],
}

/// A number and where it stands.
#[derive(Clone)]
struct Number {
    value: u64,
    place: Place,
}

/// Where an error would be reported: one whose message is still to come.
#[derive(Clone)]
struct Place(FormatError);

impl Place {
    fn of(word: Word<'_>) -> Self {
        Self(word.error(""))
    }
    fn error(&self, message: String) -> FormatError {
        FormatError { message, ..self.0.clone() }
    }
    fn warning(&self, message: String) -> Warning {
        Warning::new(self.0.line, message)
    }
}

impl Keys {
    fn read(&mut self, line: Line<'_>) -> Result<(), FormatError> {
        let mut words = line.words();
        let key = words.require("a key")?;
        let is = |name: &str| name.eq_ignore_ascii_case(key.text());
        if is("Tier") {
            let word = words.require("the tier, 0 to 2")?;
            let tier = word.integer("a tier", 0..=2)? as usize;
            if let Some(earlier) = &self.tiers[tier] {
                let line = earlier.place.0.line;
                return Err(
                    word.error(format!("found tier {tier}, which begins in line {line}, expected each tier once"))
                );
            }
            self.tiers[tier] = Some(Block { place: Place::of(key), numbers: Default::default() });
            self.current = Some(tier);
        } else if let Some(which) = HEADER_KEYS.iter().position(|name| is(name)) {
            let word = words.require("a number")?;
            let range = if which == TIERS { 2..=3 } else { 1..=HOSTS_MAX };
            let value = word.integer(&format!("a number for {}", HEADER_KEYS[which]), range)?;
            set(&mut self.header[which], HEADER_KEYS[which], key, Number { value, place: Place::of(word) })?;
        } else if let Some(which) = TIER_KEYS.iter().position(|(name, ..)| is(name)) {
            let (name, least, most) = TIER_KEYS[which];
            let tier = self.current.and_then(|tier| self.tiers[tier].as_mut());
            let block = tier.ok_or_else(|| key.unexpected("\"Tier 0\" before the keys of a tier"))?;
            let word = words.require("a number")?;
            let value = word.integer(&format!("a number for {name}"), least..=most)?;
            set(&mut block.numbers[which], name, key, Number { value, place: Place::of(word) })?;
        } else {
            let keys: Vec<&str> =
                ["Tier"].into_iter().chain(HEADER_KEYS).chain(TIER_KEYS.iter().map(|(name, ..)| *name)).collect();
            return Err(match nearest(key.text(), &keys) {
                Some(meant) => key.unexpected(&format!("{meant:?}")),
                None => key.unexpected(&format!("one of {}", keys.join(", "))),
            });
        }
        words.finish()
    }

    /// Checks the numbers as htsim's `set_custom_params` does, and counts switches.
    fn resolve(&self, end: &FormatError) -> Result<(FatTreeFile, Vec<Warning>), FormatError> {
        let header = |which: usize| {
            let missing = || FormatError {
                message: format!("the file ends here, expected \"{}\" and a number", HEADER_KEYS[which]),
                ..end.clone()
            };
            self.header[which].clone().ok_or_else(missing)
        };
        let (nodes, tier_count, podsize) = (header(NODES)?, header(TIERS)?, header(PODSIZE)?);
        let blocks = self.blocks(tier_count.value as usize, end)?;
        let number = |tier: usize, which: usize| blocks[tier].numbers[which].as_ref();
        let required = |tier: usize, which: usize| blocks[tier].required(tier, which);
        let optional = |tier: usize, which: usize, default: u64| number(tier, which).map_or(default, |n| n.value);
        let top = blocks.len() - 1;

        for (tier, block) in blocks.iter().enumerate() {
            for which in [SPEED, LATENCY, RADIX_DOWN] {
                block.required(tier, which)?;
            }
            if tier < top {
                block.required(tier, RADIX_UP)?;
            } else if let Some(number) = number(tier, RADIX_UP).or(number(tier, QUEUE_UP)) {
                return Err(number
                    .place
                    .error(format!("found uplinks for tier {tier}, expected none at the top tier")));
            }
        }

        let (hosts, hosts_per_pod) = (nodes.value, podsize.value);
        let pods = divide(hosts, hosts_per_pod, &podsize.place, || {
            format!("found pods of {hosts_per_pod} for {hosts} nodes, expected a divisor of the nodes")
        })?;
        if top == 1 && pods > 1 {
            return Err(podsize
                .place
                .error(format!("found {pods} pods, expected one (Podsize {hosts}) with two tiers")));
        }
        if let Some(bundle) = number(0, BUNDLE).filter(|bundle| bundle.value > 1) {
            return Err(bundle.place.error("found bundled links to hosts, expected Bundle 1 at tier 0".to_owned()));
        }
        for tier in 0..=top {
            let bundle = optional(tier, BUNDLE, 1);
            let down = required(tier, RADIX_DOWN)?;
            divide(down.value, bundle, &down.place, || {
                format!("found Radix_Down {} with bundles of {bundle}, expected a multiple", down.value)
            })?;
            if tier > 0 {
                let up = required(tier - 1, RADIX_UP)?;
                divide(up.value, bundle, &up.place, || {
                    format!("found Radix_Up {} under bundles of {bundle}, expected a multiple", up.value)
                })?;
            }
        }

        // Tier 0: pods are made of ToRs.
        let (tor_down, tor_up) = (required(0, RADIX_DOWN)?, required(0, RADIX_UP)?);
        let tors_per_pod = divide(hosts_per_pod, tor_down.value, &tor_down.place, || {
            format!("found {} hosts per ToR in pods of {hosts_per_pod}, expected a divisor", tor_down.value)
        })?;
        let ratio = optional(0, OVERSUBSCRIBED, 1);
        if tor_down.value / tor_up.value != ratio {
            return Err(tor_up.place.error(format!(
                "found {} ports down and {} up with Oversubscribed {ratio}, expected Oversubscribed {}",
                tor_down.value,
                tor_up.value,
                tor_down.value / tor_up.value
            )));
        }

        // Tier 1: as many switches as take the ToRs' uplinks.
        let (tor_speed, agg_speed) = (required(0, SPEED)?, required(1, SPEED)?);
        let tor_uplinks = divide(hosts * tor_speed.value, agg_speed.value * ratio, &agg_speed.place, || {
            let (tor, agg) = (tor_speed.value, agg_speed.value);
            format!("found {hosts} hosts at {tor} Gb/s over {ratio} above links of {agg} Gb/s, expected a whole number")
        })?;
        let agg_down = required(1, RADIX_DOWN)?;
        let aggs_per_pod = divide(tor_uplinks, pods * agg_down.value, &agg_down.place, || {
            let down = agg_down.value;
            format!(
                "found {tor_uplinks} uplinks of ToRs for {pods} pods of switches with {down} ports, expected a multiple"
            )
        })?;
        let agg_bundle = optional(1, BUNDLE, 1);
        if aggs_per_pod * agg_bundle != tor_up.value {
            return Err(tor_up.place.error(radix_mismatch(tor_up.value, aggs_per_pod, agg_bundle, 1)));
        }

        // Tier 2: as many as take theirs.
        let mut cores = 0;
        if top == 2 {
            let (core_speed, core_down, agg_up) =
                (required(2, SPEED)?, required(2, RADIX_DOWN)?, required(1, RADIX_UP)?);
            let ratio = optional(1, OVERSUBSCRIBED, 1);
            let agg_uplinks =
                divide(tor_uplinks * agg_speed.value, core_speed.value * ratio, &core_speed.place, || {
                    let (agg, core) = (agg_speed.value, core_speed.value);
                    format!(
                        "found {tor_uplinks} links of {agg} Gb/s over {ratio} above links of {core} Gb/s, \
                     expected a whole number"
                    )
                })?;
            cores = divide(agg_uplinks, core_down.value, &core_down.place, || {
                format!("found {agg_uplinks} links for cores with {} ports, expected a multiple", core_down.value)
            })?;
            let cores_per_agg = divide(cores, aggs_per_pod, &core_down.place, || {
                format!("found {cores} cores for {aggs_per_pod} aggregation switches per pod, expected a multiple")
            })?;
            let core_bundle = optional(2, BUNDLE, 1);
            if cores_per_agg * core_bundle != agg_up.value {
                return Err(agg_up.place.error(radix_mismatch(agg_up.value, cores_per_agg, core_bundle, 2)));
            }
        }

        let mut warnings = Vec::new();
        let mut check_ports = |tier: usize, nodes_below: u64| -> Result<(), FormatError> {
            let (radix, ports) = (required(tier, RADIX_DOWN)?, nodes_below * optional(tier, BUNDLE, 1));
            if radix.value != ports {
                let message =
                    format!("Radix_Down is {}, but htsim connects {ports} ports: those are taken", radix.value);
                warnings.push(radix.place.warning(message));
            }
            Ok(())
        };
        check_ports(1, tors_per_pod)?;
        if top == 2 {
            check_ports(2, pods)?;
        }

        let tiers = (0..=top).map(|tier| blocks[tier].tier(tier)).collect::<Result<_, _>>()?;
        // None of the counts exceeds the hosts times a radix of at most 65,536; checked all the same.
        let narrow = |count: u64| {
            let too_many = || nodes.place.error(format!("found numbers that make {count} switches, expected fewer"));
            u32::try_from(count).ok().filter(|&count| u64::from(count) <= HOSTS_MAX).ok_or_else(too_many)
        };
        narrow(pods * aggs_per_pod)?;
        let tree = FatTreeFile {
            hosts: narrow(hosts)?,
            hosts_per_pod: narrow(hosts_per_pod)?,
            tiers,
            pods: narrow(pods)?,
            tors_per_pod: narrow(tors_per_pod)?,
            aggs_per_pod: narrow(aggs_per_pod)?,
            cores: narrow(cores)?,
        };
        Ok((tree, warnings))
    }

    /// What was said of each of `count` tiers.
    fn blocks(&self, count: usize, end: &FormatError) -> Result<Vec<&Block>, FormatError> {
        if let Some(extra) = self.tiers[count..].iter().flatten().next() {
            return Err(extra.place.error(format!("found tier {count}, expected tiers 0 to {} only", count - 1)));
        }
        let tiers = self.tiers[..count].iter().enumerate();
        let missing =
            |tier| FormatError { message: format!("the file ends here, expected \"Tier {tier}\""), ..end.clone() };
        tiers.map(|(tier, block)| block.as_ref().ok_or_else(|| missing(tier))).collect()
    }
}

impl Block {
    fn required(&self, tier: usize, which: usize) -> Result<&Number, FormatError> {
        let missing = || self.place.error(format!("found tier {tier} without {0}, expected {0}", TIER_KEYS[which].0));
        self.numbers[which].as_ref().ok_or_else(missing)
    }

    fn tier(&self, tier: usize) -> Result<Tier, FormatError> {
        let number = |which: usize| self.numbers[which].as_ref().map(|number| number.value);
        let required = |which: usize| self.required(tier, which).map(|number| number.value);
        // The ranges of TIER_KEYS make counts fit 32 bits and the products 64.
        Ok(Tier {
            downlink_rate: Rate::from_gbps(required(SPEED)?),
            downlink_delay: Duration::from_ns(required(LATENCY)?),
            radix_down: required(RADIX_DOWN)? as u32,
            radix_up: number(RADIX_UP).map(|radix| radix as u32),
            oversubscription: number(OVERSUBSCRIBED).unwrap_or(1) as u32,
            bundle: number(BUNDLE).unwrap_or(1) as u32,
            switch_delay: Duration::from_ns(number(SWITCH_LATENCY).unwrap_or(0)),
            queue_up: number(QUEUE_UP).map(Bytes::new),
            queue_down: number(QUEUE_DOWN).map(Bytes::new),
        })
    }
}

/// Sets a key that must not have been set.
fn set(slot: &mut Option<Number>, name: &str, key: Word<'_>, number: Number) -> Result<(), FormatError> {
    if let Some(earlier) = slot {
        let line = earlier.place.0.line;
        return Err(key.error(format!("found {name}, which stands in line {line} already, expected each key once")));
    }
    *slot = Some(number);
    Ok(())
}

/// `whole / part` if that is a whole number of at least 1.
fn divide(whole: u64, part: u64, place: &Place, message: impl Fn() -> String) -> Result<u64, FormatError> {
    if whole == 0 || !whole.is_multiple_of(part) { Err(place.error(message())) } else { Ok(whole / part) }
}

/// Why the uplinks of tier `upper - 1` do not match the switches above, and the likely remedy.
fn radix_mismatch(radix_up: u64, above: u64, bundle: u64, upper: usize) -> String {
    let remedy = match radix_up.checked_div(above) {
        Some(right) if radix_up.is_multiple_of(above) => format!(" or Bundle {right} at tier {upper}"),
        _ => String::new(),
    };
    format!(
        "found Radix_Up {radix_up} to {above} switches above, in bundles of {bundle}, expected Radix_Up {}{remedy}",
        above * bundle
    )
}
