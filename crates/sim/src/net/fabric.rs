//! Parameters that all partitions share.

use std::sync::Arc;

use selvedge_nic::{Carrier, NicParams};
use selvedge_switch::descriptor::Attachment;
use selvedge_units::{Duration, HostId};

use crate::kernel::schedule::WindowSchedule;
use crate::topology::{Framing, InnerNics, Paths};

/// Parameters that all partitions share and that do not change during a window.
pub(crate) struct FabricParams {
    /// Parameters of NICs; see [`Host`](crate::net::host::Host) for those that depend on the link.
    pub(crate) nic: Arc<NicParams>,
    /// Parameters of a flow at its beginning, by the class of its path; empty if these are the NIC's own.
    pub(crate) flows: Vec<Arc<NicParams>>,
    /// Bytes of a host's state that its visits touch.
    pub(crate) busy_host_bytes: usize,
    /// Bit per class in use.
    pub(crate) all_classes: u8,
    /// Class of a flow's data, indexed by priority; the last entry is that of flows without a priority.
    pub(crate) class_of: [u8; 9],
    /// Leaf switch of each host (as [`Routes`](crate::topology::Routes) numbers leaves) and the leaf's local port
    /// towards it.
    pub(crate) attachment: Vec<Attachment>,
    /// Partition and local number of each host.
    pub(crate) home: Vec<(u16, u32)>,
    pub(crate) schedule: WindowSchedule,
    /// Delay of notices: no longer than that of a packet from host to host.
    pub(crate) notice: Duration,
    /// Whether senders get no acknowledgements, because receivers notify them outside the fabric.
    pub(crate) unacknowledged: bool,
    /// Whether NICs have more to report after a packet than what it finished: round-trip times that travel outside the
    /// fabric, or several messages that one packet completed.
    pub(crate) has_more_to_tell: bool,
    /// Whether the hashes of packets identify paths rather than flows.
    pub(crate) senders_choose_ways: bool,
    /// Whether receivers want the headers of trimmed packets.
    pub(crate) hears_trims: bool,
    /// Whether switches write telemetry on packets.
    pub(crate) writes_telemetry: bool,
    /// Whether packets carry others.
    pub(crate) has_cargo: bool,
    /// Whether applications have queue pairs.
    pub(crate) has_verbs: bool,
    /// Whether hosts read the records that belong to packets: telemetry, carried packets, or headers of applications.
    pub(crate) reads_records: bool,
    pub(crate) seed: u64,
    pub(crate) paths: Arc<Paths>,
    pub(crate) inner: InnerNics,
    pub(crate) framing: Framing,
    /// Carrier of each workload.
    pub(crate) carriers: Vec<Carrier>,
    /// How TCP beside the transport is framed.
    pub(crate) beside_framing: Framing,
    /// Class of its data, where a flow has none of its own.
    pub(crate) beside_class: u8,
}

impl FabricParams {
    /// Returns whether hosts attach records to packets that they send.
    pub(crate) fn hosts_load(&self) -> bool {
        self.has_cargo || self.has_verbs
    }
    /// Returns the parameters at its beginning of a flow between these hosts; `own` are those of the NIC.
    pub(crate) fn flow_params<'a>(&'a self, own: &'a NicParams, src: HostId, dst: HostId) -> &'a NicParams {
        if self.flows.is_empty() {
            return own;
        }
        self.paths.class_of(src, dst).map_or(own, |class| &self.flows[class])
    }
    /// Returns who carries the flows of a workload.
    #[inline]
    pub(crate) fn carrier_of(&self, workload: u16) -> Carrier {
        self.carriers[usize::from(workload)]
    }
    /// Returns whether flows of this workload use TCP.
    #[inline]
    pub(crate) fn speaks_tcp(&self, workload: u16) -> bool {
        self.nic.tcp_of(self.carrier_of(workload)).is_some()
    }
    /// Returns how the payload of `carrier` is framed.
    pub(crate) fn framing_of(&self, carrier: Carrier) -> Framing {
        match carrier {
            Carrier::Transport => self.framing,
            Carrier::Beside => self.beside_framing,
        }
    }
    /// Returns the class of `carrier`'s data, where a flow has none of its own.
    pub(crate) fn class_of(&self, carrier: Carrier) -> u8 {
        match carrier {
            Carrier::Transport => self.class_of[8],
            Carrier::Beside => self.beside_class,
        }
    }
}
