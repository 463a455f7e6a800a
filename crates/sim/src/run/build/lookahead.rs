//! Window schedule of a network: how far nodes run in one visit, and which take turns.

use selvedge_units::{Duration, Rate, SwitchId};
use selvedge_wire::Header;

use super::frames::longest_frame;
use super::sides::{Sides, has_hosts_back_to_back};
use crate::config::SimConfig;
use crate::kernel::schedule::WindowSchedule;
use crate::topology::{Graph, Ports};

/// Window schedule and delays that the links' delays and rates allow.
pub(super) struct Lookahead {
    pub(super) schedule: WindowSchedule,
    pub(super) sides: Sides,
    /// Delay of hosts' notices about connections to other hosts.
    pub(super) notice: Duration,
    /// Time that a full frame takes to the other end of the slowest link, in picoseconds.
    pub(super) reach: u64,
}

impl Lookahead {
    /// Returns the schedule of a network. Windows are as short as possible unless nodes are free to run ahead of others
    /// (`is_free`); in that case sides take turns if `in_turns` is set.
    pub(super) fn new(config: &SimConfig, ports: &Ports, is_free: bool, in_turns: bool) -> Self {
        let graph = config.paths.graph();
        let lookahead = graph.links.iter().map(|link| link.delay).min().unwrap_or(Duration::from_us(1));
        let step = if is_free { step(graph, ports, lookahead) } else { Duration::from_ps(1) };
        let sides = if is_free && in_turns { Sides::two(graph) } else { None };
        Self {
            schedule: WindowSchedule::new(step, sides.as_ref().map(Sides::smaller)),
            sides: sides.unwrap_or_else(|| Sides::one(graph)),
            // Where hosts stand back to back, a packet takes one link; else at least two.
            notice: lookahead * if has_hosts_back_to_back(graph) { 1 } else { 2 },
            reach: reach(graph, config),
        }
    }
}

/// Returns how far nodes may run ahead: no link may deliver what was sent in the same step, a switch must not receive
/// more packets in two steps than 16 bits can count, and times within two steps must fit into 32 bits.
fn step(graph: &Graph, ports: &Ports, lookahead: Duration) -> Duration {
    let shortest_frame = Header::MINIMUM_FRAME + Header::GAP;
    let rate_into =
        |switch| -> u64 { ports.of(switch).iter().map(|port| graph.links[port.link as usize].rate.as_bps()).sum() };
    let most = (0..graph.switches.len() as u32).map(|switch| rate_into(SwitchId(switch))).max().unwrap_or(0);
    let fits = Rate::from_bps(most.max(1)).time_for(shortest_frame * u64::from(u16::MAX / 4));
    lookahead.min(fits).min(Duration::from_ps(u64::from(u32::MAX / 2)))
}

fn reach(graph: &Graph, config: &SimConfig) -> u64 {
    let frame = longest_frame(config);
    graph.links.iter().map(|link| (link.rate.time_for(frame) + link.delay).as_ps()).max().unwrap_or(1)
}
