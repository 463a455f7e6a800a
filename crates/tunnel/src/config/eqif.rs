//! Settings of EQIFs: the kinds of traffic that have queues and tunnels of their own.

use schemars::JsonSchema;
use selvedge_units::Bytes;
use selvedge_wire::eqds::v1;
use serde::Deserialize;

/// Kinds of traffic (EQIFs), each with queues and tunnels of its own.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct EqifTable {
    /// TCP.
    pub tcp: EqifSettings,
    /// RoCEv2: UDP to port 4791. Nothing is dropped: the queue has no bound of its own.
    pub rdma: EqifSettings,
    /// All other packets.
    pub other: EqifSettings,
    /// Native messages, of programs that use `libselvedge-eqds` or `libselvedge-udp`. Nothing is dropped: programs
    /// whose messages find the queue full wait.
    pub native: EqifSettings,
}

/// Settings of one kind of traffic. Shares concern what this host sends, and the credit that it gives to others.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct EqifSettings {
    /// Priority, 0 to 7, among the kinds: traffic of a greater priority is served first, whichever host it is from or
    /// for. Credit: within each class.
    #[schemars(range(max = 7))]
    pub priority: u32,
    /// Share among the kinds of one priority, relative to other weights. Credit: within each peer.
    #[schemars(range(min = 1, max = 1000))]
    pub weight: u32,
    /// Service of the tunnels by which this host sends.
    pub service: Service,
    /// Bytes that may wait for one peer; more are dropped. Default: `tunnel.queue`.
    pub queue: Option<Bytes>,
    /// Bytes waiting for one peer above which packets that know ECN are marked. Default: half of `queue` if that is
    /// given, else `tunnel.mark-above`.
    pub mark_above: Option<Bytes>,
}

impl Default for EqifSettings {
    fn default() -> Self {
        Self { priority: 0, weight: 1, service: Service::Ordered, queue: None, mark_above: None }
    }
}

/// Service of a tunnel to its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Lost packets are sent again, and packets are put in order before delivery.
    #[default]
    Ordered,
    /// Lost packets are sent again, and packets are delivered as they arrive.
    Unordered,
    /// Each packet is sent once and delivered when it arrives, if it does.
    Unreliable,
}

impl From<Service> for v1::Service {
    fn from(service: Service) -> Self {
        match service {
            Service::Ordered => Self::Ordered,
            Service::Unordered => Self::Unordered,
            Service::Unreliable => Self::Unreliable,
        }
    }
}
