//! Checks that the numbers of a topology fit together, by the rules with which htsim counts its switches.
//!
//! Counts proceed tier by tier from below: hosts make pods, ports make ToRs, and the capacity that leaves one tier
//! (divided by its oversubscription) makes the links, and so the switches, of the next.

use selvedge_units::{Bytes, Duration, Rate};

use super::read::{
    BUNDLE, Block, HEADER_KEYS, HOSTS_MAX, Keys, LATENCY, NODES, Number, OVERSUBSCRIBED, PODSIZE, PendingError,
    QUEUE_DOWN, QUEUE_UP, RADIX_DOWN, RADIX_UP, SPEED, SWITCH_LATENCY, TIER_KEYS, TIERS,
};
use super::{FatTreeFile, Tier, WrittenQueue};
use crate::{FormatError, Warning};

/// Returns the network that `keys` describe; `end` is the end of the file.
pub(super) fn check(keys: &Keys, end: &PendingError) -> Result<(FatTreeFile, Vec<Warning>), FormatError> {
    let written = Written::new(keys, end)?;
    let pods = written.pods()?;
    written.check_bundles()?;
    let tors_per_pod = written.tors_per_pod()?;
    let tor_uplinks = written.tor_uplinks()?;
    let aggs_per_pod = written.aggs_per_pod(pods, tor_uplinks)?;
    let cores = written.cores(tor_uplinks, aggs_per_pod)?;

    // A hundred spines per host is taken for a mistake: counts of such a network need not fit 32 bits.
    let narrow = |count: u64| {
        let too_many =
            || written.nodes.place.error(format!("found numbers that make {count} switches, expected fewer"));
        u32::try_from(count).ok().filter(|_| count <= HOSTS_MAX).ok_or_else(too_many)
    };
    narrow(pods * aggs_per_pod)?;
    let tree = FatTreeFile {
        hosts: narrow(written.nodes.value)?,
        hosts_per_pod: narrow(written.podsize.value)?,
        tiers: written.tiers.iter().enumerate().map(|(tier, block)| block.tier(tier)).collect::<Result<_, _>>()?,
        pods: narrow(pods)?,
        tors_per_pod: narrow(tors_per_pod)?,
        aggs_per_pod: narrow(aggs_per_pod)?,
        cores: narrow(cores)?,
        least_queue: written.tiers.iter().flat_map(|block| block.queues()).min(),
    };
    let warnings = written.unequal_ports(tors_per_pod, pods)?;
    Ok((tree, warnings))
}

/// Numbers as written, with all required ones present.
struct Written<'a> {
    nodes: &'a Number,
    podsize: &'a Number,
    tiers: Vec<&'a Block>,
}

impl<'a> Written<'a> {
    fn new(keys: &'a Keys, end: &PendingError) -> Result<Self, FormatError> {
        let header = |which: usize| {
            let missing = || end.error(format!("the file ends here, expected \"{}\" and a number", HEADER_KEYS[which]));
            keys.header[which].as_ref().ok_or_else(missing)
        };
        let (nodes, tiers, podsize) = (header(NODES)?, header(TIERS)?, header(PODSIZE)?);
        let (used, unused) = keys.tiers.split_at(tiers.value as usize);
        let top = used.len() - 1;
        if let Some(block) = unused.iter().flatten().next() {
            return Err(block.place.error(format!("found tier {}, expected tiers 0 to {top} only", top + 1)));
        }
        let missing = |tier| end.error(format!("the file ends here, expected \"Tier {tier}\""));
        let tiers: Vec<&Block> = (used.iter().enumerate())
            .map(|(tier, block)| block.as_ref().ok_or_else(|| missing(tier)))
            .collect::<Result<_, _>>()?;

        for (tier, block) in tiers.iter().enumerate() {
            for which in [SPEED, LATENCY, RADIX_DOWN] {
                block.required(tier, which)?;
            }
            if tier < top {
                block.required(tier, RADIX_UP)?;
            } else if let Some(number) = block.numbers[RADIX_UP].as_ref().or(block.numbers[QUEUE_UP].as_ref()) {
                return Err(number
                    .place
                    .error(format!("found uplinks for tier {tier}, expected none at the top tier")));
            }
        }
        Ok(Self { nodes, podsize, tiers })
    }

    fn required(&self, tier: usize, which: usize) -> Result<&'a Number, FormatError> {
        self.tiers[tier].required(tier, which)
    }

    /// Returns a number, which is 1 where the file has none.
    fn or_one(&self, tier: usize, which: usize) -> u64 {
        self.tiers[tier].numbers[which].as_ref().map_or(1, |number| number.value)
    }

    fn pods(&self) -> Result<u64, FormatError> {
        let (hosts, podsize) = (self.nodes.value, self.podsize.value);
        let pods = divide(hosts, podsize, &self.podsize.place, || {
            format!("found pods of {podsize} for {hosts} nodes, expected a divisor of the nodes")
        })?;
        if self.tiers.len() == 2 && pods > 1 {
            let message = format!("found {pods} pods, expected one (Podsize {hosts}) with two tiers");
            return Err(self.podsize.place.error(message));
        }
        Ok(pods)
    }

    fn check_bundles(&self) -> Result<(), FormatError> {
        if let Some(bundle) = self.tiers[0].numbers[BUNDLE].as_ref().filter(|bundle| bundle.value > 1) {
            return Err(bundle.place.error("found bundled links to hosts, expected Bundle 1 at tier 0".to_owned()));
        }
        for tier in 1..self.tiers.len() {
            let bundle = self.or_one(tier, BUNDLE);
            let (down, up) = (self.required(tier, RADIX_DOWN)?, self.required(tier - 1, RADIX_UP)?);
            divide(down.value, bundle, &down.place, || {
                format!("found Radix_Down {} with bundles of {bundle}, expected a multiple", down.value)
            })?;
            divide(up.value, bundle, &up.place, || {
                format!("found Radix_Up {} under bundles of {bundle}, expected a multiple", up.value)
            })?;
        }
        Ok(())
    }

    fn tors_per_pod(&self) -> Result<u64, FormatError> {
        let (podsize, down) = (self.podsize.value, self.required(0, RADIX_DOWN)?);
        divide(podsize, down.value, &down.place, || {
            format!("found {} hosts per ToR in pods of {podsize}, expected a divisor", down.value)
        })
    }

    /// Returns the number of links from all ToRs to the tier above.
    fn tor_uplinks(&self) -> Result<u64, FormatError> {
        let (down, up) = (self.required(0, RADIX_DOWN)?, self.required(0, RADIX_UP)?);
        let oversubscription = self.or_one(0, OVERSUBSCRIBED);
        // htsim compares ports here, whatever their speeds.
        let ratio = down.value / up.value;
        if ratio == 0 {
            let and = if oversubscription == 1 { "" } else { ", Oversubscribed 1" };
            return Err(up.place.error(format!(
                "found {} ports down and {} up, expected no more up than down (Radix_Up {}{and})",
                down.value, up.value, down.value
            )));
        }
        if ratio != oversubscription {
            return Err(up.place.error(format!(
                "found {} ports down and {} up with Oversubscribed {oversubscription}, expected Oversubscribed {ratio}",
                down.value, up.value
            )));
        }
        self.links_above(0, self.nodes.value)
    }

    /// Returns the number of links from the tier above `tier` to `tier`, which has `below` links (or hosts) below it.
    fn links_above(&self, tier: usize, below: u64) -> Result<u64, FormatError> {
        let (lower, upper) = (self.required(tier, SPEED)?, self.required(tier + 1, SPEED)?);
        let oversubscription = self.or_one(tier, OVERSUBSCRIBED);
        divide(below * lower.value, upper.value * oversubscription, &upper.place, || {
            format!(
                "found {below} links of {} Gb/s, oversubscribed {oversubscription} to 1, below links of {} Gb/s, \
                 expected a whole number of those",
                lower.value, upper.value
            )
        })
    }

    fn aggs_per_pod(&self, pods: u64, tor_uplinks: u64) -> Result<u64, FormatError> {
        let (down, up) = (self.required(1, RADIX_DOWN)?, self.required(0, RADIX_UP)?);
        let aggs_per_pod = divide(tor_uplinks, pods * down.value, &down.place, || {
            format!(
                "found {tor_uplinks} uplinks of ToRs in {pods} pods for switches with {} ports, expected a multiple",
                down.value
            )
        })?;
        self.check_radix_up(up, aggs_per_pod, 1)?;
        Ok(aggs_per_pod)
    }

    /// Returns the number of core switches; zero for two tiers.
    fn cores(&self, tor_uplinks: u64, aggs_per_pod: u64) -> Result<u64, FormatError> {
        if self.tiers.len() == 2 {
            return Ok(0);
        }
        let (down, up) = (self.required(2, RADIX_DOWN)?, self.required(1, RADIX_UP)?);
        let agg_uplinks = self.links_above(1, tor_uplinks)?;
        let cores = divide(agg_uplinks, down.value, &down.place, || {
            format!("found {agg_uplinks} links for cores with {} ports, expected a multiple", down.value)
        })?;
        let cores_per_agg = divide(cores, aggs_per_pod, &down.place, || {
            format!("found {cores} cores for {aggs_per_pod} aggregation switches per pod, expected a multiple")
        })?;
        self.check_radix_up(up, cores_per_agg, 2)?;
        Ok(cores)
    }

    /// Checks that `up` ports reach `above` switches of tier `upper` each.
    fn check_radix_up(&self, up: &Number, above: u64, upper: usize) -> Result<(), FormatError> {
        let bundle = self.or_one(upper, BUNDLE);
        if above * bundle == up.value {
            return Ok(());
        }
        let remedy = match up.value / above {
            right if right > 0 && up.value.is_multiple_of(above) => format!(" or Bundle {right} at tier {upper}"),
            _ => String::new(),
        };
        Err(up.place.error(format!(
            "found Radix_Up {} to {above} switches above, in bundles of {bundle}, expected Radix_Up {}{remedy}",
            up.value,
            above * bundle
        )))
    }

    /// Returns warnings about switches for which htsim connects another number of ports than the file says.
    fn unequal_ports(&self, tors_per_pod: u64, pods: u64) -> Result<Vec<Warning>, FormatError> {
        let mut warnings = Vec::new();
        for (tier, nodes_below) in (1..self.tiers.len()).zip([tors_per_pod, pods]) {
            let (radix, ports) = (self.required(tier, RADIX_DOWN)?, nodes_below * self.or_one(tier, BUNDLE));
            if radix.value != ports {
                let message =
                    format!("Radix_Down is {}, but htsim connects {ports} ports: those are taken", radix.value);
                warnings.push(radix.place.warning(message));
            }
        }
        Ok(warnings)
    }
}

impl Block {
    fn required(&self, tier: usize, which: usize) -> Result<&Number, FormatError> {
        let key = TIER_KEYS[which].0;
        let missing = || self.place.error(format!("found tier {tier} without {key}, expected \"{key}\" and a number"));
        self.numbers[which].as_ref().ok_or_else(missing)
    }

    /// Returns the buffers that the file gives to ports.
    fn queues(&self) -> impl Iterator<Item = WrittenQueue> {
        [QUEUE_UP, QUEUE_DOWN].into_iter().filter_map(|which| {
            let Number { value, place } = self.numbers[which].as_ref()?;
            Some(WrittenQueue { room: Bytes::new(*value), place: place.position(), key: TIER_KEYS[which].0 })
        })
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

/// Returns `whole / part` if that is a whole number of at least 1.
fn divide(whole: u64, part: u64, place: &PendingError, message: impl Fn() -> String) -> Result<u64, FormatError> {
    if whole == 0 || !whole.is_multiple_of(part) { Err(place.error(message())) } else { Ok(whole / part) }
}
