//! Load balancing: the choice among several equally short paths.
//!
//! ```text
//! route: Forwarding::port --one way, or ECMP's--> port
//!                         \--several ways-------> Balancer::choose(ways, queues) --> port
//! ```
//!
//! ECMP depends on the packet alone and is part of [`Forwarding`](crate::forward::Forwarding). Other state on which a
//! choice depends is kept in a [`Balancer`]; switches with ECMP have none. A switch decides by its own queues and its
//! own random stream, so that results do not depend on partitions.

use selvedge_units::{Duration, Instant, Rng, mix64};

use crate::descriptor::Descriptor;
use crate::environment::Environment;
use crate::switches::Switches;

/// Largest number of queues that [`Drill`] can draw or remember.
pub const MOST_CHOICES: usize = 8;

/// Largest number of flows that a switch can tell apart with [`Flowlet::entries`].
pub const MOST_ENTRIES: u32 = 1 << 20;

/// Choice among several equally short paths, other than by a flow's hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Balancing {
    /// Each packet takes a path at random.
    Spray,
    /// Each packet takes the shortest of a few queues.
    Drill(Drill),
    /// A flow may change its path after a pause.
    Flowlet(Flowlet),
}

/// DRILL (Ghorbani et al., SIGCOMM 2017).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drill {
    /// Queues that are drawn at random for each packet, 1 to [`MOST_CHOICES`].
    pub choices: usize,
    /// Shortest queues of the last time that are remembered for each leaf switch, 0 to [`MOST_CHOICES`].
    pub memory: usize,
}

/// LetFlow (Vanini et al., NSDI 2017).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flowlet {
    /// Silence after which a flow may change its path.
    pub gap: Duration,
    /// Flows that a switch can tell apart, 1 to [`MOST_ENTRIES`].
    pub entries: usize,
    /// Whether a flow changes to the path with the shortest queue; else to any.
    pub to_least_loaded: bool,
}

/// Load of an output: bytes that wait, then the time for which it is still busy.
pub type Load = (u64, Duration);

/// Load-balancing state of one switch.
pub struct Balancer {
    rng: Rng,
    scheme: Scheme,
    /// Port of the last packet, indexed by a flow's hash. For counting only.
    last: Vec<u16>,
    /// Data packets that took another path than the packet of their flow before.
    pub path_switches: u64,
}

enum Scheme {
    Spray,
    Drill(DrillState),
    Flowlet(Flowlets),
}

/// Marker of no port.
const NONE: u16 = u16::MAX;

impl Balancer {
    /// Returns the state of a switch that reaches `leaves` leaves.
    pub fn new(balancing: Balancing, leaves: usize, rng: Rng) -> Self {
        let scheme = match balancing {
            Balancing::Spray => Scheme::Spray,
            Balancing::Drill(drill) => Scheme::Drill(DrillState::new(drill, leaves)),
            Balancing::Flowlet(flowlet) => Scheme::Flowlet(Flowlets::new(flowlet)),
        };
        Self { rng, scheme, last: vec![NONE; WATCHED], path_switches: 0 }
    }

    /// Chooses one of `ways`, the ports that lead to `leaf`, for a packet of the flow with this `entropy`.
    pub fn choose(&mut self, ways: &[u16], leaf: u32, entropy: u32, now: Instant, load: impl Fn(u16) -> Load) -> u16 {
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
struct DrillState {
    drill: Drill,
    /// Remembered ports, `memory` per leaf, indexed by leaf.
    remembered: Vec<u16>,
}

impl DrillState {
    fn new(drill: Drill, leaves: usize) -> Self {
        Self { drill, remembered: vec![NONE; leaves * drill.memory] }
    }

    fn choose(&mut self, ways: &[u16], leaf: u32, rng: &mut Rng, load: impl Fn(u16) -> Load) -> u16 {
        let Drill { choices, memory } = self.drill;
        let remembered = &mut self.remembered[leaf as usize * memory..][..memory];
        let mut seen = [(Load::default(), NONE); 2 * MOST_CHOICES];
        let mut count = 0;
        let drawn = (0..choices).map(|_| any(ways, rng));
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
    to_least_loaded: bool,
    table: Vec<(Instant, u16)>,
}

impl Flowlets {
    fn new(Flowlet { gap, entries, to_least_loaded }: Flowlet) -> Self {
        Self { gap, to_least_loaded, table: vec![(Instant::ZERO, NONE); entries] }
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
            *port = if self.to_least_loaded { least_loaded(ways, rng, load) } else { any(ways, rng) };
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

impl Switches {
    /// Returns the port through which `switch` forwards a packet with several paths, numbered within the switch; `None`
    /// without a path.
    #[inline(never)]
    pub fn balance<E: Environment>(&mut self, env: &mut E, switch: u32, packet: &Descriptor) -> Option<u32> {
        let state = &self.switches[switch];
        let ways = self.forwarding.ways(state.facts.routes, packet.leaf);
        if ways.is_empty() {
            return None;
        }
        let (egress, lines, now) = (&self.egress, &self.lines, self.now);
        let classes = self.params.classes;
        let load = |port: u16| {
            let at = state.facts.first_port + u32::from(port);
            let waiting = lines.part(at * classes, classes).iter().map(|line| line.bytes).sum();
            (waiting, egress[at].busy_until.since(now))
        };
        let balancer = &mut self.balancers[switch];
        let port = balancer.choose(ways, packet.leaf, packet.entropy, now, load);
        if env.has_payload(packet.slot) {
            balancer.count(packet.leaf, packet.entropy, port);
        }
        Some(u32::from(port))
    }
}

#[cfg(test)]
mod tests;
