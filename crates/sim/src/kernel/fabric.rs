//! What all partitions share.

use std::sync::Arc;

use selvedge_nic::NicParams;
use selvedge_units::{Duration, HostId};

use super::pace::Pace;
use crate::config::BufferConfig;
use crate::net::buffer::{Accounting, Queueing};
use crate::topology::{Framing, InnerNics, Paths};

/// What all partitions share and nobody changes during a window.
pub(crate) struct FabricParams {
    /// What a NIC needs to know; see [`Host`](crate::net::host::Host) for what depends on its link.
    pub(crate) nic: Arc<NicParams>,
    /// What a NIC needs to know when a flow begins, by the class of its path; empty: what it knows itself.
    pub(crate) flows: Vec<Arc<NicParams>>,
    /// How many bytes of a host its visits touch.
    pub(crate) busy_host_bytes: usize,
    pub(crate) buffer: BufferConfig,
    pub(crate) accounting: Accounting,
    /// What outputs of switches do beyond serving their lines.
    pub(crate) queueing: Queueing,
    /// Of packets that arrive at a switch at the same time through several inputs, the first may get what the others do
    /// not.
    pub(crate) inputs_compete: bool,
    pub(crate) xon_gap: u64,
    /// An input that holds no more than this may always go on.
    pub(crate) xon: u64,
    pub(crate) quanta: u16,
    /// Number of traffic classes in use; packets carry an index below it.
    pub(crate) classes: u32,
    /// Bit per class in use.
    pub(crate) all_classes: u8,
    /// Class of a flow's data by its priority; behind them, that of flows with none.
    pub(crate) class_of: [u8; 9],
    /// Leaf switch of each host (as [`Routes`](crate::topology::Routes) numbers leaves) and the leaf's local port
    /// towards it.
    pub(crate) attachment: Vec<Attachment>,
    /// Partition and local number of each host.
    pub(crate) home: Vec<(u16, u32)>,
    pub(crate) pace: Pace,
    /// How long notices take: no longer than a packet from host to host.
    pub(crate) notice: Duration,
    /// Senders get no acknowledgements: receivers notify them outside the fabric.
    pub(crate) unacknowledged: bool,
    /// Class of what NetRT's switches send.
    pub(crate) netrt_class: u8,
    /// NICs have more to tell after a packet than what it finished: round-trip times that travel outside the fabric,
    /// several messages that one packet completed.
    pub(crate) has_more_to_tell: bool,
    /// Receivers want the headers of trimmed packets.
    pub(crate) hears_trims: bool,
    /// Switches write telemetry on packets.
    pub(crate) writes_telemetry: bool,
    /// Packets carry others.
    pub(crate) has_cargo: bool,
    /// Applications have queue pairs.
    pub(crate) has_verbs: bool,
    /// Hosts read what lies beside packets: one of these.
    pub(crate) reads_records: bool,
    pub(crate) seed: u64,
    pub(crate) paths: Arc<Paths>,
    pub(crate) inner: InnerNics,
    pub(crate) framing: Framing,
    /// Which workloads speak TCP.
    pub(crate) tcp_workloads: Vec<bool>,
    pub(crate) tcp_framing: Framing,
    /// Class of TCP's data, where a flow has none of its own.
    pub(crate) tcp_class: u8,
}

impl FabricParams {
    /// Whether hosts lay something beside packets that they send.
    pub(crate) fn hosts_load(&self) -> bool {
        self.has_cargo || self.has_verbs
    }
    /// Whether the hashes of packets tell ways apart, and not flows.
    pub(crate) fn senders_choose_ways(&self) -> bool {
        self.nic.eqds.is_some() || self.nic.ndp.is_some()
    }
    /// What the NICs of a flow between these hosts need to know at its beginning, `own` being what they know.
    pub(crate) fn flow_params<'a>(&'a self, own: &'a NicParams, src: HostId, dst: HostId) -> &'a NicParams {
        if self.flows.is_empty() {
            return own;
        }
        self.paths.class_of(src, dst).map_or(own, |class| &self.flows[class])
    }
    /// Whether flows of this workload speak TCP.
    #[inline]
    pub(crate) fn speaks_tcp(&self, workload: u16) -> bool {
        self.tcp_workloads[usize::from(workload)]
    }
}

/// Where a host hangs.
#[derive(Clone, Copy)]
pub(crate) struct Attachment {
    /// Index of its leaf switch among the leaves; `u32::MAX` where two hosts stand back to back.
    pub(crate) leaf: u32,
    /// The leaf's port towards it.
    pub(crate) port: u16,
}

impl Attachment {
    /// Of frames that stay on one link: some leaf, which switches may look up.
    pub(crate) const NONE: Self = Self { leaf: 0, port: 0 };
}
