//! What one run of the fabric is made of.

use std::borrow::Cow;
use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_transport::eqds::eqif::EqifParams;
use selvedge_transport::eqds::{EqdsConfig, EqdsParams};
use selvedge_transport::ndp::NdpConfig;
pub use selvedge_transport::netrt::NetRtConfig;
use selvedge_transport::tcp::{Ecn, TcpConfig};
use selvedge_transport::{
    CongestionConfig, Fabric, FeedbackConfig, Marking, Needs, ReceiverConfig, RecoveryConfig, Scheme, SenderConfig,
    Tuning,
};
use selvedge_units::{Bytes, Chance, Duration, Rate, Setting, Toggle};
use selvedge_wire::Header;
use serde::{Deserialize, Serialize};

use crate::beside::Beside;
use crate::fault::{LinkFailure, LossConfig};
pub use crate::net::balancing::{BalancingConfig, Choice, DrillConfig, FlowletConfig};
use crate::topology::{Framing, Graph, Link, Node};
use crate::workload::{Measure, Summary, WorkloadConfig};

/// Every switch of the fabric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SwitchConfig {
    /// Where packets wait, and how the buffer is shared.
    pub buffer: BufferConfig,
    /// Priority flow control.
    pub pfc: PfcConfig,
    /// ECN marking.
    pub ecn: EcnConfig,
    /// Which of several equally short ways packets take.
    pub balancing: BalancingConfig,
    /// Loss recovery between top-of-rack switches (NetRT).
    pub netrt: NetRtConfig,
}

/// Where packets wait, and how the buffer is shared.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferConfig {
    /// Virtual output queues at each input, outputs served round-robin over inputs (IRN section
    /// 4.1). Each input port has a buffer of its own.
    InputQueued(InputQueued),
    /// Output queues in one buffer that all ports share by dynamic thresholds (Choudhury and Hahne),
    /// as in common switch chips.
    SharedBuffer(SharedBuffer),
    /// Short output queues that cut packets to their headers instead of dropping them, and send headers
    /// first (Handley et al., NDP, SIGCOMM 2017).
    Trimming(Trimming),
    /// A queue for each flow at each output, served in turn: deficit round robin (Shreedhar and Varghese, SIGCOMM
    /// 1995).
    FairQueued(FairQueued),
}

impl Default for BufferConfig {
    fn default() -> Self {
        Self::InputQueued(InputQueued::default())
    }
}

/// Parameters of [`BufferConfig::InputQueued`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct InputQueued {
    /// Buffer of each input port. "auto": twice the bandwidth-delay product of the longest path
    /// (IRN section 4.1: 240 KB), or what the topology file gives each port (htsim's `Queue_Up` and
    /// `Queue_Down`); "off": without limit.
    pub per_port: Setting<Bytes>,
    /// Which input an output serves next. Default: round-robin (IRN section 4.1).
    pub arbitration: Arbitration,
}

impl InputQueued {
    /// Buffer of the port of `node` on `link`; `None`: without limit.
    pub fn room(&self, link: &Link, node: Node) -> Option<Bytes> {
        self.per_port.resolve(|| link.buffer_at(node))
    }
}

/// Which input an output serves next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The one after the last, packet by packet.
    #[default]
    RoundRobin,
    /// The one whose packet has waited longest: an input gets as much as it brings.
    OldestFirst,
}

/// Parameters of [`BufferConfig::SharedBuffer`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SharedBuffer {
    /// Buffer of the whole switch, headroom included.
    pub total: Bytes,
    /// A lossy output queue may hold this many times the free shared buffer; above zero.
    pub egress_alpha: f64,
    /// With PFC, an input may hold this many times the free shared buffer before it pauses its peer;
    /// above zero.
    pub ingress_alpha: f64,
}

impl Default for SharedBuffer {
    fn default() -> Self {
        Self { total: Bytes::new(9_000_000), egress_alpha: 1.0, ingress_alpha: 1.0 / 16.0 }
    }
}

/// Parameters of [`BufferConfig::Trimming`].
///
/// Each output has a queue for each class of data and one for headers. Data that finds its queue full is
/// cut to its headers (64 bytes), which go to the header queue with the class `header-class`; so do
/// whole packets that are no longer than that. Transports whose control packets shall travel with the
/// headers send them in that class, too (`nic.ack-class`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Trimming {
    /// Full frames that a data queue holds, at least 1. Default: 8 (NDP section 3.1). EQDS's simulator has
    /// 35.
    pub packets: u32,
    /// Bytes that the header queue holds; what finds it full is dropped. "auto": twice as much as a data
    /// queue, as in htsim; "off": without limit.
    pub headers: Setting<Bytes>,
    /// Traffic class of headers, 0 to 7: above that of data.
    pub header_class: u8,
    /// Headers that go before a waiting data packet has its turn, at least 1. "auto": 10 (NDP section 3.1);
    /// htsim has 100,000. "off": headers always go first.
    pub headers_per_data: Setting<u32>,
    /// How often it is the last packet of the queue that is cut, and not the one that finds it full.
    /// Default: every other time (NDP section 3.1).
    pub trim_last: Chance,
}

impl Trimming {
    /// What is left of a packet that is cut.
    pub const HEADER: Bytes = Header::MINIMUM_FRAME;
    /// NDP section 3.1.
    pub const HEADERS_PER_DATA: u32 = 10;
    /// Bytes that a data queue holds, of full frames of `frame` bytes.
    pub fn data_room(&self, frame: Bytes) -> Bytes {
        frame * u64::from(self.packets)
    }
    /// Bytes that the header queue holds; `None`: without limit.
    pub fn header_room(&self, frame: Bytes) -> Option<Bytes> {
        self.headers.resolve(|| Some(self.data_room(frame) * 2))
    }
}

impl Default for Trimming {
    fn default() -> Self {
        Self {
            packets: 8,
            headers: Setting::Auto,
            header_class: 6,
            headers_per_data: Setting::Auto,
            trim_last: Chance::ratio(1, 2),
        }
    }
}

/// Parameters of [`BufferConfig::FairQueued`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FairQueued {
    /// Bytes of each class that may wait for one output. Beyond, the first packet of the longest queue is dropped. "auto":
    /// twice the bandwidth-delay product of the longest path; "off": without limit.
    pub per_port: Setting<Bytes>,
    /// Bytes of one queue that may wait for one output; what comes beyond is dropped. Default: off, the flow that
    /// takes most gives way.
    pub per_flow: Setting<Bytes>,
    /// Queues per output and class, 1 to 65,536; flows with the same hash share one. Default: 1024 (McKenney, INFOCOM
    /// 1990: several times as many as flows).
    pub queues: u32,
    /// Bytes that a queue may send in its turn, at least 64. "auto": a full frame, which makes the work per packet
    /// constant.
    pub quantum: Setting<Bytes>,
}

impl Default for FairQueued {
    fn default() -> Self {
        Self { per_port: Setting::Auto, per_flow: Setting::Off, queues: 1_024, quantum: Setting::Auto }
    }
}

/// Priority flow control (802.1Qbb).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PfcConfig {
    /// Whether switches pause their peers instead of dropping.
    pub enabled: bool,
    /// Room kept free per input for what arrives after X-OFF. "auto": the link's bandwidth-delay
    /// product plus what else may come before the pause takes effect (three frames, the pause frame);
    /// the IRN paper counts the product alone. "off": none.
    pub headroom: Setting<Bytes>,
    /// X-ON is sent when an input has fallen this far below its X-OFF threshold. The IRN paper
    /// gives no hysteresis; one frame avoids a pause frame per packet. "auto": two frames.
    pub xon_gap: Setting<Bytes>,
    /// Pause time in each X-OFF, in quanta of 512 bit times; refreshed at half of it while the
    /// input stays full. At least 2.
    pub quanta: u16,
    /// Classes that are lossless. Classes without PFC drop when the buffer is full.
    pub classes: Vec<u8>,
}

impl Default for PfcConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            headroom: Setting::Auto,
            xon_gap: Setting::Auto,
            quanta: u16::MAX,
            classes: (0..8).collect(),
        }
    }
}

impl PfcConfig {
    /// Headroom of an input whose link has this rate and delay: what is set, or what "auto" means.
    ///
    /// The frame that crosses the threshold lies beyond it but for a byte. Then the pause frame may wait
    /// for one frame that is being sent, takes its own time and the link's delay; its peer may have
    /// just begun a frame; and what fills the link then still arrives.
    pub fn headroom_on(&self, rate: Rate, delay: Duration, nic: &NicConfig) -> Bytes {
        let auto = || {
            let frame = nic.mtu + nic.header + nic.gap;
            Some(rate.amount_in(delay * 2) + frame * 3 + Header::MINIMUM_FRAME + nic.gap)
        };
        self.headroom.resolve(auto).unwrap_or(Bytes::ZERO)
    }
}

/// RED marking on the bytes that wait for an output (DCQCN section 3.1).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct EcnConfig {
    /// Whether switches mark. Packets of ECN-capable transports only. "auto": where congestion control
    /// hears marks.
    pub enabled: Toggle,
    /// No mark up to this queue length. "auto": as the congestion control's paper has it, for the hosts'
    /// line rate; DCQCN's where it has nothing to say (5 KB at 40 Gb/s).
    pub k_min: Setting<Bytes>,
    /// Every packet marked above this queue length. "auto": as for `k-min` (DCQCN: 200 KB at 40 Gb/s).
    pub k_max: Setting<Bytes>,
    /// Probability of a mark just below `k-max`; rises linearly from zero at `k-min`. "auto": as for
    /// `k-min` (DCQCN: 0.01).
    pub p_max: Setting<Chance>,
    /// `k-min` and `k-max` are meant for links of this rate; others scale them in proportion. "auto": the
    /// hosts' line rate; "off": the same for all links.
    pub at_rate: Setting<Rate>,
}

impl EcnConfig {
    /// The curve on links of this rate, where switches mark.
    pub(crate) fn curve_on(&self, rate: Rate) -> Option<Marking> {
        let auto = Marking::DCQCN;
        let given = Marking {
            k_min: self.k_min.resolve(|| Some(auto.k_min)).unwrap_or(Bytes::ZERO),
            k_max: self.k_max.resolve(|| Some(auto.k_max)).unwrap_or(Bytes::MAX),
            p_max: self.p_max.resolve(|| Some(auto.p_max)).unwrap_or(Chance::NEVER),
            rate: self.at_rate.resolve(|| None).unwrap_or(rate),
        };
        self.enabled.resolve(|| false).then(|| given.on(rate))
    }
}

impl SwitchConfig {
    /// Priorities that these NICs, workloads and the switches themselves use, lowest first: packets carry their
    /// positions here as classes.
    pub fn priorities(&self, nic: &NicConfig, beside: Option<&Beside>, workloads: &[Summary]) -> Vec<u8> {
        let own = [nic.data_class, nic.ack_class, nic.cnp_class];
        let headers = match self.buffer {
            BufferConfig::Trimming(trimming) => Some(trimming.header_class),
            BufferConfig::InputQueued(_) | BufferConfig::SharedBuffer(_) | BufferConfig::FairQueued(_) => None,
        };
        let asked = workloads.iter().flat_map(|workload| workload.priorities.iter().copied());
        let guest = beside.and_then(|beside| beside.class);
        let netrt = self.netrt.enabled.then_some(self.netrt.priority);
        own.into_iter()
            .chain(headers)
            .chain(guest)
            .chain(netrt)
            .chain(asked)
            .collect::<BTreeSet<u8>>()
            .into_iter()
            .collect()
    }
}

/// Every host's NIC, and how packets look on the wire.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NicConfig {
    /// Payload of a full packet, 64 B to 9000 B.
    pub mtu: Bytes,
    /// Headers and trailers of a data frame: Ethernet, IPv4, UDP, BTH, ICRC, FCS.
    pub header: Bytes,
    /// Whole frame of an acknowledgement.
    pub ack_frame: Bytes,
    /// Whole frame of a congestion notification.
    pub cnp_frame: Bytes,
    /// What every frame takes on the wire beside itself: preamble and inter-packet gap.
    pub gap: Bytes,
    /// Packets that a queue pair sends before the next one's turn, at least 1. The IRN paper has queue
    /// pairs poll the MAC layer "periodically": round-robin, packet by packet, by default.
    pub qp_burst: u32,
    /// Traffic class of data: its 802.1Q priority, 0 to 7. Flow lists may give other ones to their flows.
    pub data_class: u8,
    /// Traffic class of acknowledgements; higher classes go first. The IRN paper leaves open
    /// whether they are prioritised: same class by default.
    pub ack_class: u8,
    /// Traffic class of congestion notifications. The same class by default; RoCE deployments give them a
    /// higher one.
    pub cnp_class: u8,
}

impl Default for NicConfig {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(1024),
            header: Bytes::new(62),
            ack_frame: Bytes::new(66),
            cnp_frame: Header::CNP,
            gap: Bytes::new(20),
            qp_burst: 1,
            data_class: 3,
            ack_class: 3,
            cnp_class: 3,
        }
    }
}

/// The engines at both ends of every flow: RDMA's, TCP, EQDS or NDP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "TransportTable", into = "TransportTable")]
pub struct TransportConfig {
    /// Loss recovery.
    pub recovery: RecoveryConfig,
    /// Congestion control.
    pub congestion: CongestionConfig,
    /// TCP instead of both.
    pub tcp: Option<TcpConfig>,
    /// EQDS tunnels: for messages of their own instead, or for what a stack sends.
    pub eqds: Option<EqdsConfig>,
    /// Beside `eqds`, `recovery` and `congestion` stand as well: queue pairs are no native messages.
    pub has_rdma_stack: bool,
    /// NDP instead of both.
    pub ndp: Option<NdpConfig>,
}

/// The table that is written for it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TransportTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<RecoveryConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<CongestionConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eqds: Option<EqdsConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ndp: Option<NdpConfig>,
}

impl TryFrom<TransportTable> for TransportConfig {
    type Error = &'static str;

    fn try_from(table: TransportTable) -> Result<Self, Self::Error> {
        let TransportTable { recovery, congestion, tcp, eqds, ndp } = table;
        if let Some(tunnels) = &eqds {
            return Self::with_tunnels(tunnels, recovery, congestion, tcp, ndp);
        }
        if tcp.is_some() {
            if recovery.is_some() || congestion.is_some() {
                return Err("tcp stands alone: flows that speak TCP have its loss recovery and congestion control, \
                            which are chosen in transport.tcp; leave out recovery and congestion");
            }
            if ndp.is_some() {
                return Err("tcp and ndp are two transports; give one");
            }
            return Ok(Self { tcp, ..Self::default() });
        }
        if ndp.is_some() {
            if recovery.is_some() || congestion.is_some() {
                return Err(
                    "ndp stands alone: it has a loss recovery of its own, and its receivers set the pace; leave out \
                            recovery and congestion",
                );
            }
            return Ok(Self { ndp, ..Self::default() });
        }
        let recovery = recovery.ok_or("missing field `recovery`")?;
        Ok(Self { recovery, congestion: congestion.unwrap_or(Self::default().congestion), ..Self::default() })
    }
}

impl TransportConfig {
    /// EQDS, with a stack that sends through its tunnels or without.
    fn with_tunnels(
        tunnels: &EqdsConfig,
        recovery: Option<RecoveryConfig>,
        congestion: Option<CongestionConfig>,
        tcp: Option<TcpConfig>,
        ndp: Option<NdpConfig>,
    ) -> Result<Self, &'static str> {
        let has_rdma = recovery.is_some();
        let eqif = &tunnels.eqif;
        match () {
            () if ndp.is_some() => Err("eqds and ndp are two transports; give one"),
            () if congestion.is_some() && !has_rdma => Err("missing field `recovery`"),
            () if tcp.is_some() && has_rdma => Err("tcp stands where recovery and congestion do; give one of them"),
            () if tcp.is_some() && eqif.tcp.is_none() => Err("tcp beside eqds sends through its tunnels: write \
                            [transport.eqds.eqif.tcp] as well, or leave out one of them"),
            () if has_rdma && !eqif.is_used() => {
                Err("eqds by itself carries messages of its own; for queue pairs in its \
                            tunnels write [transport.eqds.eqif.rdma] as well, or leave out recovery and congestion")
            }
            () if eqif.rdma.is_some() && !has_rdma => {
                Err("there are no queue pairs for eqds.eqif.rdma; write [transport.recovery], or leave it out")
            }
            () => Ok(Self {
                recovery: recovery.unwrap_or(Self::default().recovery),
                congestion: congestion.unwrap_or(Self::default().congestion),
                tcp,
                eqds: Some(*tunnels),
                has_rdma_stack: has_rdma,
                ndp: None,
            }),
        }
    }
}

impl From<TransportConfig> for TransportTable {
    fn from(config: TransportConfig) -> Self {
        let TransportConfig { recovery, congestion, tcp, eqds, ndp, .. } = config;
        let of_rdma = config.is_rdma();
        Self { recovery: of_rdma.then_some(recovery), congestion: of_rdma.then_some(congestion), tcp, eqds, ndp }
    }
}

/// The kinds of tables, for the schema.
impl JsonSchema for TransportConfig {
    fn schema_name() -> Cow<'static, str> {
        "TransportConfig".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let recovery = generator.subschema_for::<RecoveryConfig>();
        let congestion = generator.subschema_for::<CongestionConfig>();
        let tcp = generator.subschema_for::<TcpConfig>();
        let ndp = generator.subschema_for::<NdpConfig>();
        let eqds = generator.subschema_for::<EqdsConfig>();
        json_schema!({
            "description": "The engines at both ends of every flow: RDMA's, TCP, EQDS or NDP.",
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "recovery": { "description": "Loss recovery.", "allOf": [recovery.clone()] },
                        "congestion": { "description": "Congestion control.", "allOf": [congestion.clone()] }
                    },
                    "required": ["recovery"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": { "tcp": { "description": "TCP instead of both.", "allOf": [tcp.clone()] } },
                    "required": ["tcp"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": { "ndp": { "description": "NDP instead of both.", "allOf": [ndp] } },
                    "required": ["ndp"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": {
                        "eqds": { "description": "Messages in EQDS tunnels instead.", "allOf": [eqds.clone()] }
                    },
                    "required": ["eqds"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": {
                        "tcp": { "description": "A stack in EQDS tunnels.", "allOf": [tcp] },
                        "eqds": { "description": "The tunnels; eqif.tcp must be there.", "allOf": [eqds.clone()] }
                    },
                    "required": ["tcp", "eqds"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": {
                        "recovery": { "description": "Loss recovery.", "allOf": [recovery] },
                        "congestion": { "description": "Congestion control.", "allOf": [congestion] },
                        "eqds": { "description": "Tunnels; eqif says whose packets they carry.", "allOf": [eqds] }
                    },
                    "required": ["recovery", "eqds"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

/// IRN without congestion control.
impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            recovery: RecoveryConfig::Irn(Default::default()),
            congestion: CongestionConfig::None(Default::default()),
            tcp: None,
            eqds: None,
            has_rdma_stack: false,
            ndp: None,
        }
    }
}

/// Priorities that can be in use together: a port of which all eight are paused would look like one whose link
/// is down.
pub const MOST_CLASSES: usize = 7;

impl NicConfig {
    /// Bytes of headers and trailers on each data frame, with those that the transport adds. A TCP
    /// segment has its own: Ethernet, IPv4, TCP with its time stamps, FCS.
    pub fn data_header(&self, transport: &TransportConfig) -> Bytes {
        if let Some(eqds) = transport.native() {
            return eqds.data_header();
        }
        match &transport.tcp {
            None => self.header + transport.recovery.extra_header() + transport.congestion.extra_header(),
            Some(tcp) => Header::ETHERNET_IPV4 + Bytes::new(tcp.header()),
        }
    }
    /// Payload of a full packet.
    pub fn payload(&self, transport: &TransportConfig) -> Bytes {
        match transport.tcp {
            Some(TcpConfig { mss: Setting::Value(mss), .. }) => mss,
            _ => self.mtu,
        }
    }
    /// Bytes of the frame of an acknowledgement; TCP's are longer by their SACK blocks.
    pub fn ack_frame(&self, transport: &TransportConfig) -> Bytes {
        if let Some(eqds) = transport.native() {
            return eqds.answer_frame();
        }
        match transport.tcp {
            None => self.ack_frame + transport.congestion.extra_header(),
            Some(_) => self.data_header(transport).max(Header::MINIMUM_FRAME),
        }
    }
    /// How payload becomes what a link carries.
    pub fn framing(&self, transport: &TransportConfig) -> Framing {
        Framing { mtu: self.payload(transport), overhead: self.data_header(transport) + self.gap }
    }
}

impl TransportConfig {
    /// EQDS, where flows are its native messages.
    pub fn native(&self) -> Option<&EqdsConfig> {
        self.eqds.as_ref().filter(|_| self.tcp.is_none() && !self.has_rdma_stack)
    }
    /// Whether flows are queue pairs with `recovery` and `congestion`.
    pub fn is_rdma(&self) -> bool {
        self.tcp.is_none() && self.ndp.is_none() && self.native().is_none()
    }
    /// Whether what flows send goes through tunnels that carry packets.
    pub fn is_carried(&self) -> bool {
        let eqif = self.eqds.map(|eqds| eqds.eqif).unwrap_or_default();
        if self.tcp.is_some() { eqif.tcp.is_some() } else { self.is_rdma() && eqif.rdma.is_some() }
    }
    /// The largest frame that tunnels send, where there are any.
    pub fn tunnel_frame(&self, nic: &NicConfig) -> Option<Bytes> {
        let eqds = self.eqds.as_ref()?;
        let native = self.native().map(|eqds| eqds.data_header());
        let tcp = self.tcp.as_ref().map_or_else(|| TcpConfig::default().header(), TcpConfig::header);
        let tcp = eqds.eqif.tcp.map(|_| Header::ETHERNET_IPV4 + Bytes::new(tcp) + eqds.encapsulation());
        let rdma = nic.header + self.recovery.extra_header() + self.congestion.extra_header() + eqds.encapsulation();
        let rdma = eqds.eqif.rdma.map(|_| rdma);
        [native, tcp, rdma].into_iter().flatten().max().map(|around| nic.mtu + around)
    }
    /// The scheme's name: of the loss recovery, or "tcp", "mptcp", "eqds" or "ndp".
    pub fn recovery_name(&self) -> &'static str {
        match self {
            _ if self.native().is_some() => "eqds",
            Self { ndp: Some(_), .. } => "ndp",
            Self { tcp: Some(TcpConfig { subflows: 1, .. }), .. } => "tcp",
            Self { tcp: Some(_), .. } => "mptcp",
            _ => self.recovery.name(),
        }
    }
    /// The congestion control's name.
    pub fn congestion_name(&self) -> &'static str {
        self.tcp.as_ref().map_or(self.congestion.name(), |tcp| tcp.congestion.name())
    }
    /// Replaces every "auto" by what `fabric` and the NIC make of it; returns what the transport needs from
    /// switches and receivers. `trims` says whether switches cut packets to their headers.
    pub fn resolve(&mut self, fabric: &Fabric, nic: &NicConfig, trims: bool) -> Needs {
        if let Some(frame) = self.tunnel_frame(nic) {
            let hears_cnps = matches!(self.congestion, CongestionConfig::Dcqcn(_));
            let is_native = self.native().is_some();
            if let Some(eqds) = &mut self.eqds {
                eqds.resolve(fabric, frame, trims, hears_cnps);
            }
            if is_native {
                return Needs { acks: true, ..Needs::default() };
            }
        }
        let is_carried = self.is_carried();
        let needs = self.resolve_stack(&self.around_stack(fabric), nic);
        // Queues, and hence marks, are in EQIFs.
        Needs { marking: needs.marking.filter(|_| !is_carried), ..needs }
    }
    /// The fabric as a stack sees it: RDMA whose packets go through tunnels, where they may wait for long, has no other notion
    /// of that than its timeout. "auto" then is the usual one of RoCE's drivers, 4.096 us times 2^14.
    fn around_stack(&self, fabric: &Fabric) -> Fabric {
        if self.tcp.is_some() {
            return self.around_tcp(fabric);
        }
        let usual = Duration::from_ns(4_096 << 14);
        let congested_rtt = if self.is_carried() { fabric.congested_rtt.max(usual) } else { fabric.congested_rtt };
        Fabric { congested_rtt, ..*fabric }
    }
    /// The fabric as TCP sees it, whose packets may go through tunnels: what waits in its EQIF, and what its tunnel may have
    /// under way, is under way for TCP. Half of what "auto" is then for a receive buffer is for that.
    pub fn around_tcp(&self, fabric: &Fabric) -> Fabric {
        let eqds = self.eqds.as_ref();
        let Some((eqds, eqif)) = eqds.and_then(|eqds| Some((eqds, eqds.eqif.tcp?))) else { return *fabric };
        let held = fabric.frame * u64::from(eqif.limit) + eqds.window();
        Fabric { bdp: fabric.bdp.max(Bytes::new(held.get() / 4)), ..*fabric }
    }
    fn resolve_stack(&mut self, fabric: &Fabric, nic: &NicConfig) -> Needs {
        if let Some(tcp) = &mut self.tcp {
            tcp.resolve(fabric, nic.mtu);
            return Needs { marking: tcp.marking(fabric), acks: true, ..Needs::default() };
        }
        if let Some(ndp) = &mut self.ndp {
            ndp.resolve(fabric);
            return Needs { acks: true, ..Needs::default() };
        }
        self.congestion.resolve(fabric);
        let needs = self.congestion.needs();
        self.recovery.resolve(&Fabric { acks: needs.acks, ..*fabric });
        needs
    }
    /// Whether it heeds the marks of switches; every "auto" is resolved.
    pub fn hears_marks(&self) -> bool {
        let of_rdma = self.is_rdma() && self.congestion.needs().marking.is_some();
        !self.is_carried() && self.tcp.as_ref().map_or(of_rdma, |tcp| tcp.ecn == Ecn::On)
    }
    /// Whether switches write on packets what their outputs are like.
    pub(crate) fn needs_telemetry(&self) -> bool {
        self.is_rdma() && self.congestion.needs().telemetry
    }
    /// Whether its receivers want the headers of packets that switches have trimmed
    /// ([`BufferConfig::Trimming`]). If so, such packets reach [`selvedge_nic::Nic::handle_packet`] with
    /// [`Packet::is_trimmed`](selvedge_wire::Packet::is_trimmed) set; if not, the host drops and counts
    /// them ([`DropReason::Trimmed`](selvedge_telemetry::DropReason::Trimmed)), and its receivers
    /// find out as about any loss.
    pub fn hears_trims(&self) -> bool {
        self.eqds.is_some() || self.ndp.is_some()
    }
    /// Whether a sender hears that its data has arrived.
    pub(crate) fn acknowledges(&self) -> bool {
        !self.is_rdma() || self.recovery.acknowledges()
    }
    /// What tunnels are built from, and EQIFs.
    pub(crate) fn tunnels(&self, nic: &NicConfig) -> (Option<EqdsParams>, Option<EqifParams>) {
        let (Some(eqds), Some(frame)) = (&self.eqds, self.tunnel_frame(nic)) else { return (None, None) };
        let own = eqds.params(frame, nic.gap);
        (Some(own), eqds.eqif_params(&own, self.native().is_some()))
    }
    pub(crate) fn sender(&self, nic: &NicConfig) -> SenderConfig {
        let framing = nic.framing(self);
        SenderConfig { recovery: self.recovery, congestion: self.congestion, frame: framing.mtu + framing.overhead }
    }
    pub(crate) fn receiver(&self) -> ReceiverConfig {
        ReceiverConfig { recovery: self.recovery }
    }
    pub(crate) fn feedback(&self) -> FeedbackConfig {
        FeedbackConfig::new(&self.congestion.needs(), self.recovery.acknowledges())
    }
}

/// When a run ends: at the earliest of these. Without any: when all flows are done.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Stop {
    /// No flow begins after this many have begun; the run ends when all of them are done. Flows that
    /// follow others are counted from time to time, so a few more of them may begin.
    pub flows: Option<u64>,
    /// Simulated time at which everything ends, finished or not.
    pub time: Option<Duration>,
}

impl Stop {
    /// A run ends when no receiver has accepted anything for this long although flows are open and
    /// none is about to begin: far longer than any timeout of RDMA, so that only a run that would never
    /// end is cut short.
    const STALL: Duration = Duration::from_ms(200);

    /// The same for any transport: longer than the longest timeout of TCP, too.
    pub(crate) fn stall(transport: &TransportConfig, beside: Option<&Beside>) -> Duration {
        let tcp = transport.tcp.as_ref().or(beside.map(|beside| &beside.tcp));
        let timeout = tcp.map_or(Duration::ZERO, |tcp| tcp.max_rto);
        Self::STALL.saturating_add(timeout).saturating_add(timeout)
    }
}

/// One run: a network, what it carries, and what happens to it. Every "auto" is resolved.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The network.
    pub graph: Graph,
    /// Its switches.
    pub switch: SwitchConfig,
    /// Its NICs.
    pub nic: NicConfig,
    /// The engines at both ends of each queue pair.
    pub transport: TransportConfig,
    /// The traffic.
    pub workload: WorkloadConfig,
    /// That part of it which speaks TCP beside the transport.
    pub beside: Option<Beside>,
    /// Which flows count.
    pub measure: Measure,
    /// Loss on links.
    pub loss: Vec<LossConfig>,
    /// Links that go down.
    pub failures: Vec<LinkFailure>,
    /// What all random streams derive from.
    pub seed: u64,
    /// When it ends.
    pub stop: Stop,
    /// How often ports are sampled; `None`: never.
    pub sample: Option<Duration>,
}

impl SimConfig {
    /// The largest frame that is sent.
    pub(crate) fn largest_frame(&self) -> Bytes {
        let own = self.nic.payload(&self.transport) + self.nic.data_header(&self.transport);
        own.max(self.transport.tunnel_frame(&self.nic).unwrap_or(Bytes::ZERO))
    }
}
