//! Settings of the tunnels themselves.

use schemars::JsonSchema;
use selvedge_units::{Bytes, Duration, Rate};
use serde::Deserialize;

/// Behaviour of tunnels. `window`, and the MTU of each peer, must be equal at both ends.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TunnelSettings {
    /// Credit of a tunnel in bytes of frames: most that is in flight to one peer per EQIF. Default: what the link
    /// carries in 2ms, 10 to 2048 packets.
    pub window: Option<Bytes>,
    /// Bytes that a tunnel sends without a request when it begins or was idle. Large ones meet in the buffers of an
    /// incast; with "0B" every packet after a pause waits for a round trip.
    pub first_window: Bytes,
    /// Rate at which this host grants credit. Default: 97 % of `link-rate`.
    pub pull_rate: Option<Rate>,
    /// Most time lost by late wake-ups for which credit is granted afterwards, at once.
    pub pull_catch_up: Duration,
    /// Packets that one PULL grants, 1 to 1024.
    pub pull_quanta: u32,
    /// Packets that are handed to the system together, over one path, 1 to 64. Fewer than the buffers of switches take.
    pub batch: u32,
    /// Retransmission timeout before round trips were measured.
    pub rto: Duration,
    /// Smallest retransmission timeout that is measured.
    pub rto_floor: Duration,
    /// Reordering that one path may cause: a packet is lost if one sent later over the same path has arrived, and this
    /// margin has passed.
    pub path_margin: Duration,
    /// Time for which a packet is missing before its receiver reports it.
    pub gap_wait: Duration,
    /// Pause after which a tunnel's state is dropped.
    pub idle_timeout: Duration,
    /// Silence after which a peer is given up; the stack is told by ICMP.
    pub unreachable_after: Duration,
    /// Bytes that may wait for one peer in one EQIF; more are dropped, as of a queue before a link. Default: six
    /// windows, at least "256KB".
    pub queue: Option<Bytes>,
    /// Bytes waiting for one peer in one EQIF above which packets that know ECN are marked. Default: half of `queue`.
    pub mark_above: Option<Bytes>,
    /// Whether segmentation is left to the other end: packets of up to 64KB cross the tunnel whole. Both ends must
    /// agree.
    pub offload: bool,
}

impl Default for TunnelSettings {
    fn default() -> Self {
        Self {
            window: None,
            first_window: Bytes::new(4_000),
            pull_rate: None,
            pull_catch_up: Duration::from_us(500),
            pull_quanta: 32,
            batch: 32,
            rto: Duration::from_ms(20),
            rto_floor: Duration::from_ms(5),
            path_margin: Duration::from_us(500),
            gap_wait: Duration::from_ms(1),
            idle_timeout: Duration::from_ms(30_000),
            unreachable_after: Duration::from_ms(5_000),
            queue: None,
            mark_above: None,
            offload: true,
        }
    }
}
