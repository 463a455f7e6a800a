//! Load balancing: the choice among several equally short paths.
//!
//! ```text
//! route: Forwarding::port --one way, or ECMP's--> port
//!                         \--several ways-------> Balancer::choose(ways, queues) --> port
//! ```
//!
//! ECMP depends on the packet alone and is part of [`Forwarding`](super::forward::Forwarding). Other state on which a
//! choice depends is kept in a [`Balancer`]; switches with ECMP have none. A switch decides by its own queues and its
//! own random stream, so that results do not depend on partitions.

use schemars::JsonSchema;
use selvedge_units::{Duration, Instant, Rng, Setting, mix64};
use selvedge_wire::Repr;
use serde::{Deserialize, Serialize};

use super::descriptor::Descriptor;
use crate::error::ConfigError;
use crate::kernel::partition::Partition;

/// Choice among several equally short paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BalancingConfig {
    /// All packets of a flow take the path that its hash chooses (RFC 2992).
    #[default]
    Ecmp,
    /// Each packet takes a path at random.
    Spray,
    /// Each packet takes the shortest of a few queues (DRILL, SIGCOMM 2017).
    Drill(DrillConfig),
    /// A flow may change its path after a pause (LetFlow, NSDI 2017).
    Flowlet(FlowletConfig),
}

/// Parameters of [`BalancingConfig::Drill`]: DRILL(choices, memory).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct DrillConfig {
    /// Queues that are drawn at random for each packet, 1 to 8 (DRILL's choice: 2). Each is drawn from all, so one may
    /// be drawn twice; ConWeave's ns-3 code draws different ones.
    pub choices: u8,
    /// Shortest queues of the last time that are remembered for each leaf switch, 0 to 8 (DRILL's choice: 1).
    pub memory: u8,
}

impl Default for DrillConfig {
    fn default() -> Self {
        Self { choices: 2, memory: 1 }
    }
}

/// Parameters of [`BalancingConfig::Flowlet`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FlowletConfig {
    /// Silence after which a flow may change its path. Nothing is reordered if paths differ by less. "auto": the base
    /// round-trip time of the longest path.
    pub gap: Setting<Duration>,
    /// Flows that a switch can tell apart, at least 1; flows with equal hashes count as one.
    pub entries: u32,
    /// Choice of the new path.
    pub choice: Choice,
}

impl Default for FlowletConfig {
    fn default() -> Self {
        Self { gap: Setting::Auto, entries: 1 << 12, choice: Choice::Random }
    }
}

/// Choice of a flowlet's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Any path (LetFlow).
    #[default]
    Random,
    /// Path with the shortest queue.
    LeastLoaded,
}

impl BalancingConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// If a value is out of range: names the key and the valid range.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Drill(drill) if !(1..=MOST_CHOICES).contains(&usize::from(drill.choices)) => Err(ConfigError::new(
                "drill.choices",
                format!("{} is out of range: 1 to {MOST_CHOICES}", drill.choices),
            )),
            Self::Drill(drill) if usize::from(drill.memory) > MOST_CHOICES => {
                Err(ConfigError::new("drill.memory", format!("{} is out of range: 0 to {MOST_CHOICES}", drill.memory)))
            }
            Self::Flowlet(flowlet) if !(1..=MOST_ENTRIES).contains(&flowlet.entries) => Err(ConfigError::new(
                "flowlet.entries",
                format!("{} is out of range: 1 to {MOST_ENTRIES} in each switch", flowlet.entries),
            )),
            Self::Flowlet(flowlet) if flowlet.gap == Setting::Off => Err(ConfigError::new(
                "flowlet.gap",
                "give a time, as in \"50us\", or \"auto\"; without gaps: \"spray\"",
            )),
            _ => Ok(()),
        }
    }
}

/// Largest number of queues that [`DrillConfig`] can draw or remember.
const MOST_CHOICES: usize = 8;

/// Largest number of flows that a switch can tell apart with [`FlowletConfig::entries`].
const MOST_ENTRIES: u32 = 1 << 20;

/// Load of an output: bytes that wait, then the time for which it is still busy.
pub(crate) type Load = (u64, Duration);

/// Load-balancing state of one switch.
pub(crate) struct Balancer {
    rng: Rng,
    scheme: Scheme,
    /// Port of the last packet, indexed by a flow's hash. For counting only.
    last: Vec<u16>,
    /// Data packets that took another path than the packet of their flow before.
    pub(crate) path_switches: u64,
}

enum Scheme {
    Spray,
    Drill(Drill),
    Flowlet(Flowlets),
}

/// Marker of no port.
const NONE: u16 = u16::MAX;

impl Balancer {
    /// Returns the state of a switch that reaches `leaves` leaves; `None` where forwarding needs none.
    pub(crate) fn new(config: &BalancingConfig, leaves: usize, rng: Rng) -> Option<Self> {
        let scheme = match config {
            BalancingConfig::Ecmp => return None,
            BalancingConfig::Spray => Scheme::Spray,
            BalancingConfig::Drill(drill) => Scheme::Drill(Drill::new(*drill, leaves)),
            BalancingConfig::Flowlet(flowlet) => Scheme::Flowlet(Flowlets::new(*flowlet)),
        };
        Some(Self { rng, scheme, last: vec![NONE; WATCHED], path_switches: 0 })
    }

    /// Chooses one of `ways`, the ports that lead to `leaf`, for a packet of the flow with this `entropy`.
    pub(crate) fn choose(
        &mut self,
        ways: &[u16],
        leaf: u32,
        entropy: u32,
        now: Instant,
        load: impl Fn(u16) -> Load,
    ) -> u16 {
        match &mut self.scheme {
            Scheme::Spray => any(ways, &mut self.rng),
            Scheme::Drill(drill) => drill.choose(ways, leaf, &mut self.rng, load),
            Scheme::Flowlet(flowlets) => flowlets.choose(ways, leaf, entropy, now, &mut self.rng, load),
        }
    }

    /// Counts a change of path if a data packet takes another port than the one before.
    fn count(&mut self, leaf: u32, entropy: u32, port: u16) {
        let last = &mut self.last[index(leaf, entropy, WATCHED)];
        self.path_switches += u64::from(*last != NONE && *last != port);
        *last = port;
    }
}

/// Number of flows whose paths a balancer tells apart for counting.
const WATCHED: usize = 1 << 12;

/// Returns the index of a flow in a table of `entries`.
fn index(leaf: u32, entropy: u32, entries: usize) -> usize {
    let hash = mix64(u64::from(leaf) << 32 | u64::from(entropy));
    ((u128::from(hash) * entries as u128) >> 64) as usize
}

fn any(ways: &[u16], rng: &mut Rng) -> u16 {
    ways[rng.below(ways.len() as u64) as usize]
}

/// Queues that were shortest when a packet last went to each leaf.
struct Drill {
    choices: usize,
    memory: usize,
    /// Remembered ports, `memory` per leaf, indexed by leaf.
    remembered: Vec<u16>,
}

impl Drill {
    fn new(config: DrillConfig, leaves: usize) -> Self {
        let memory = usize::from(config.memory);
        Self { choices: usize::from(config.choices), memory, remembered: vec![NONE; leaves * memory] }
    }

    fn choose(&mut self, ways: &[u16], leaf: u32, rng: &mut Rng, load: impl Fn(u16) -> Load) -> u16 {
        let remembered = &mut self.remembered[leaf as usize * self.memory..][..self.memory];
        let mut seen = [(Load::default(), NONE); 2 * MOST_CHOICES];
        let mut count = 0;
        let drawn = (0..self.choices).map(|_| any(ways, rng));
        // Links may have failed since the ports were remembered.
        let known = remembered.iter().copied().filter(|port| ways.contains(port));
        for port in drawn.chain(known) {
            if seen[..count].iter().all(|&(_, other)| other != port) {
                seen[count] = (load(port), port);
                count += 1;
            }
        }
        // The sort is stable: of equals, drawn ports go before remembered ones, or one port would take all packets.
        let seen = &mut seen[..count];
        seen.sort_by_key(|&(load, _)| load);
        for (place, &(_, port)) in remembered.iter_mut().zip(&*seen) {
            *place = port;
        }
        seen[0].1
    }
}

/// Last port of each flow, and the time of its last packet.
struct Flowlets {
    gap: Duration,
    choice: Choice,
    table: Vec<(Instant, u16)>,
}

impl Flowlets {
    fn new(config: FlowletConfig) -> Self {
        Self {
            gap: config.gap.resolve(|| None).unwrap_or(Duration::ZERO),
            choice: config.choice,
            table: vec![(Instant::ZERO, NONE); config.entries as usize],
        }
    }

    fn choose(
        &mut self,
        ways: &[u16],
        leaf: u32,
        entropy: u32,
        now: Instant,
        rng: &mut Rng,
        load: impl Fn(u16) -> Load,
    ) -> u16 {
        let at = index(leaf, entropy, self.table.len());
        let (last, port) = &mut self.table[at];
        // The entry may belong to a flow with an equal hash that went elsewhere.
        if now.since(*last) > self.gap || !ways.contains(port) {
            *port = match self.choice {
                Choice::Random => any(ways, rng),
                Choice::LeastLoaded => least_loaded(ways, rng, load),
            };
        }
        *last = now;
        *port
    }
}

/// Returns the least loaded of `ways`; the search begins at a random one, so that equals take turns.
fn least_loaded(ways: &[u16], rng: &mut Rng, load: impl Fn(u16) -> Load) -> u16 {
    let (before, from) = ways.split_at(rng.below(ways.len() as u64) as usize);
    from.iter().chain(before).copied().min_by_key(|&port| load(port)).unwrap_or(NONE)
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Returns the port through which `switch` forwards a packet with several paths, numbered within the switch; `None`
    /// without a path.
    #[inline(never)]
    pub(crate) fn balance(&mut self, switch: u32, packet: &Descriptor) -> Option<u32> {
        let state = &self.switches[switch];
        let ways = self.forwarding.ways(state.facts.routes, packet.leaf);
        if ways.is_empty() {
            return None;
        }
        let (egress, lines, now) = (&self.egress, &self.lines, self.now);
        let classes = self.classes;
        let load = |port: u16| {
            let at = state.facts.first_port + u32::from(port);
            let waiting = lines.part(at * classes, classes).iter().map(|line| line.bytes).sum();
            (waiting, egress[at].busy_until.since(now))
        };
        let balancer = &mut self.balancers[switch];
        let port = balancer.choose(ways, packet.leaf, packet.entropy, now, load);
        let is_data = match self.pool.first(packet.slot).0.repr {
            Repr::Data(_) => true,
            Repr::Tcp(tcp) => tcp.payload() > 0,
            _ => false,
        };
        if is_data {
            balancer.count(packet.leaf, packet.entropy, port);
        }
        Some(u32::from(port))
    }
}

#[cfg(test)]
mod tests;
