//! Configuration of the engines at both ends of every flow.

use selvedge_nic::{FlowParams, RdmaParams, TcpParams};
use selvedge_transport::endpoint::{EndpointConfig, EndpointSettings};
use selvedge_transport::eqds::eqif::EqifParams;
use selvedge_transport::eqds::{EqdsConfig, EqdsParams};
use selvedge_transport::tcp::{Ecn, TcpConfig};
use selvedge_transport::{
    CongestionConfig, CongestionParams, Fabric, FeedbackConfig, Needs, RecoveryConfig, RecoveryParams, Scheme,
    SchemeParams, SenderParams, SettingError, Tuning,
};
use selvedge_units::{Bytes, Duration};
use selvedge_wire::Header;
use selvedge_wire::verbs::Headers;
use serde::{Deserialize, Serialize};

use super::NicConfig;
use super::table::TransportTable;
use crate::error::ConfigError;

/// Engines at both ends of every flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "TransportTable", into = "TransportTable")]
#[allow(clippy::large_enum_variant, reason = "settings are few")]
pub enum TransportConfig {
    /// RDMA queue pairs.
    Rdma(RdmaConfig),
    /// TCP.
    Tcp(TcpConfig),
    /// A transport of messages of the registry, or a user's own.
    Messages(EndpointConfig),
    /// Messages of EQDS tunnels themselves.
    Eqds(EqdsConfig),
    /// A stack beside EQDS tunnels, which carry its packets if their EQIFs say so.
    Tunnelled(TunnelledConfig),
}

/// RDMA queue pairs: any loss recovery with any congestion control.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RdmaConfig {
    /// Loss recovery.
    pub recovery: RecoveryConfig,
    /// Congestion control.
    pub congestion: CongestionConfig,
}

/// Default: IRN without congestion control.
impl Default for RdmaConfig {
    fn default() -> Self {
        Self {
            recovery: RecoveryConfig::Irn(Default::default()),
            congestion: CongestionConfig::None(Default::default()),
        }
    }
}

/// EQDS tunnels, and a stack.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TunnelledConfig {
    /// Tunnels.
    pub tunnels: EqdsConfig,
    /// Stack of the flows. Its packets go through the tunnels if `tunnels` has an EQIF for it; otherwise only TCP
    /// beside it may.
    pub stack: Stack,
    /// Most bytes that headers of packets of applications' queue pairs (`[workload.verbs]`) add to frames in tunnels;
    /// zero if there are none ([`TransportConfig::carry_verbs`]).
    pub verbs_headers: Bytes,
}

impl TunnelledConfig {
    /// Returns `stack` beside `tunnels`.
    pub fn new(tunnels: EqdsConfig, stack: impl Into<Stack>) -> Self {
        Self { tunnels, stack: stack.into(), verbs_headers: Bytes::ZERO }
    }
}

/// A stack whose packets EQDS tunnels can carry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Stack {
    /// RDMA queue pairs.
    Rdma(RdmaConfig),
    /// TCP.
    Tcp(TcpConfig),
}

impl From<RdmaConfig> for Stack {
    fn from(rdma: RdmaConfig) -> Self {
        Self::Rdma(rdma)
    }
}
impl From<TcpConfig> for Stack {
    fn from(tcp: TcpConfig) -> Self {
        Self::Tcp(tcp)
    }
}

/// Default: IRN without congestion control.
impl Default for TransportConfig {
    fn default() -> Self {
        Self::Rdma(RdmaConfig::default())
    }
}

impl From<RdmaConfig> for TransportConfig {
    fn from(rdma: RdmaConfig) -> Self {
        Self::Rdma(rdma)
    }
}
impl From<TcpConfig> for TransportConfig {
    fn from(tcp: TcpConfig) -> Self {
        Self::Tcp(tcp)
    }
}
impl From<EndpointConfig> for TransportConfig {
    fn from(messages: EndpointConfig) -> Self {
        Self::Messages(messages)
    }
}
impl From<EqdsConfig> for TransportConfig {
    /// Returns EQDS with messages of its own.
    fn from(eqds: EqdsConfig) -> Self {
        Self::Eqds(eqds)
    }
}
impl From<TunnelledConfig> for TransportConfig {
    fn from(tunnelled: TunnelledConfig) -> Self {
        Self::Tunnelled(tunnelled)
    }
}

/// Parts of a transport.
impl TransportConfig {
    /// Returns the settings of queue pairs, if flows are queue pairs.
    pub const fn rdma(&self) -> Option<&RdmaConfig> {
        match self {
            Self::Rdma(rdma) | Self::Tunnelled(TunnelledConfig { stack: Stack::Rdma(rdma), .. }) => Some(rdma),
            _ => None,
        }
    }
    /// Returns the settings of queue pairs for changes, if flows are queue pairs.
    pub const fn rdma_mut(&mut self) -> Option<&mut RdmaConfig> {
        match self {
            Self::Rdma(rdma) | Self::Tunnelled(TunnelledConfig { stack: Stack::Rdma(rdma), .. }) => Some(rdma),
            _ => None,
        }
    }
    /// Returns the settings of TCP, if flows use it.
    pub const fn tcp(&self) -> Option<&TcpConfig> {
        match self {
            Self::Tcp(tcp) | Self::Tunnelled(TunnelledConfig { stack: Stack::Tcp(tcp), .. }) => Some(tcp),
            _ => None,
        }
    }
    /// Returns the settings of TCP for changes, if flows use it.
    pub const fn tcp_mut(&mut self) -> Option<&mut TcpConfig> {
        match self {
            Self::Tcp(tcp) | Self::Tunnelled(TunnelledConfig { stack: Stack::Tcp(tcp), .. }) => Some(tcp),
            _ => None,
        }
    }
    /// Returns the settings of EQDS tunnels, where there are any.
    pub const fn tunnels(&self) -> Option<&EqdsConfig> {
        match self {
            Self::Eqds(tunnels) | Self::Tunnelled(TunnelledConfig { tunnels, .. }) => Some(tunnels),
            _ => None,
        }
    }
    /// Returns the settings of EQDS tunnels for changes, where there are any.
    pub const fn tunnels_mut(&mut self) -> Option<&mut EqdsConfig> {
        match self {
            Self::Eqds(tunnels) | Self::Tunnelled(TunnelledConfig { tunnels, .. }) => Some(tunnels),
            _ => None,
        }
    }
    /// Returns EQDS if flows are its native messages.
    pub const fn native(&self) -> Option<&EqdsConfig> {
        if let Self::Eqds(tunnels) = self { Some(tunnels) } else { None }
    }
    /// Returns the settings of a transport of messages, if flows use one.
    pub const fn messages(&self) -> Option<&EndpointConfig> {
        if let Self::Messages(messages) = self { Some(messages) } else { None }
    }
    /// Returns the loss recovery of queue pairs.
    pub fn recovery(&self) -> Option<&RecoveryConfig> {
        self.rdma().map(|rdma| &rdma.recovery)
    }
    /// Returns the congestion control of queue pairs.
    pub fn congestion(&self) -> Option<&CongestionConfig> {
        self.rdma().map(|rdma| &rdma.congestion)
    }
}

impl TransportConfig {
    /// Returns whether flows are queue pairs.
    pub const fn is_rdma(&self) -> bool {
        self.rdma().is_some()
    }
    /// Returns whether flows go through tunnels that carry packets.
    pub const fn is_carried(&self) -> bool {
        match self {
            Self::Tunnelled(TunnelledConfig { tunnels, stack: Stack::Rdma(_), .. }) => tunnels.eqif.rdma.is_some(),
            Self::Tunnelled(TunnelledConfig { tunnels, stack: Stack::Tcp(_), .. }) => tunnels.eqif.tcp.is_some(),
            _ => false,
        }
    }
    /// Makes frames of tunnels large enough for packets of applications' queue pairs, where tunnels carry those. Must
    /// precede [`TransportConfig::resolve`].
    pub fn carry_verbs(&mut self) {
        if self.is_carried()
            && let Self::Tunnelled(tunnelled) = self
        {
            tunnelled.verbs_headers = Bytes::new(Headers::LONGEST as u64);
        }
    }
    /// Returns the most bytes that headers of packets of applications' queue pairs add to frames in tunnels.
    pub(crate) const fn verbs_headers(&self) -> Bytes {
        if let Self::Tunnelled(tunnelled) = self { tunnelled.verbs_headers } else { Bytes::ZERO }
    }
    /// Returns the bytes of headers on each data packet that recovery and congestion control of queue pairs add to
    /// RoCE's.
    pub(crate) fn extra_header(&self) -> Bytes {
        let extra = |rdma: &RdmaConfig| rdma.recovery.extra_header() + rdma.congestion.extra_header();
        self.rdma().map(extra).unwrap_or_default()
    }
    /// Returns the size of the largest frame that tunnels send; `None`: there are no tunnels.
    pub fn tunnel_frame(&self, nic: &NicConfig) -> Option<Bytes> {
        let eqds = self.tunnels()?;
        let native = self.native().map(|eqds| eqds.data_header());
        let tcp = self.tcp().map_or_else(|| TcpConfig::default().header(), TcpConfig::header);
        let tcp = eqds.eqif.tcp.map(|_| Header::ETHERNET_IPV4 + Bytes::new(tcp) + eqds.encapsulation());
        let rdma = nic.header + self.extra_header() + eqds.encapsulation();
        let rdma = eqds.eqif.rdma.map(|_| rdma + self.verbs_headers());
        [native, tcp, rdma].into_iter().flatten().max().map(|around| nic.mtu + around)
    }
    /// Returns the scheme's name: that of the loss recovery, or that of another transport, such as "tcp".
    pub fn recovery_name(&self) -> &'static str {
        match self {
            Self::Eqds(_) => "eqds",
            Self::Messages(messages) => messages.name(),
            Self::Tcp(tcp) | Self::Tunnelled(TunnelledConfig { stack: Stack::Tcp(tcp), .. }) => {
                if tcp.subflows == 1 {
                    "tcp"
                } else {
                    "mptcp"
                }
            }
            Self::Rdma(rdma) | Self::Tunnelled(TunnelledConfig { stack: Stack::Rdma(rdma), .. }) => {
                rdma.recovery.name()
            }
        }
    }
    /// Returns the congestion control's name; "none" without a choice.
    pub fn congestion_name(&self) -> &'static str {
        let of_rdma = || self.congestion().map_or("none", CongestionConfig::name);
        self.tcp().map_or_else(of_rdma, |tcp| tcp.congestion.name())
    }
    /// Replaces every "auto" by what it means with `fabric` and the NIC; returns what the transport needs from switches
    /// and receivers. `trims` says whether switches cut packets to their headers.
    pub fn resolve(&mut self, fabric: &Fabric, nic: &NicConfig, trims: bool) -> Needs {
        let hears_cnps = self.congestion().is_some_and(CongestionConfig::hears_cnps);
        if let (Some(frame), Some(tunnels)) = (self.tunnel_frame(nic), self.tunnels_mut()) {
            tunnels.resolve(fabric, frame, trims, hears_cnps);
        }
        let around = self.around_stack(fabric);
        let is_carried = self.is_carried();
        let needs = match self {
            Self::Rdma(rdma) | Self::Tunnelled(TunnelledConfig { stack: Stack::Rdma(rdma), .. }) => {
                rdma.congestion.resolve(&around);
                let needs = rdma.congestion.needs();
                rdma.recovery.resolve(&Fabric { acks: needs.acks, ..around });
                needs
            }
            Self::Tcp(tcp) | Self::Tunnelled(TunnelledConfig { stack: Stack::Tcp(tcp), .. }) => {
                tcp.resolve(&around, nic.mtu);
                Needs { marking: tcp.marking(&around), acks: true, ..Needs::default() }
            }
            Self::Messages(messages) => {
                messages.resolve(&around);
                Needs { acks: true, ..Needs::default() }
            }
            Self::Eqds(_) => Needs { acks: true, ..Needs::default() },
        };
        // Queues, and hence marks, are in EQIFs.
        Needs { marking: needs.marking.filter(|_| !is_carried), ..needs }
    }
    /// Returns this unresolved transport with the settings of `resolved` that both ends have to agree upon: a tunnel's
    /// credit, and all of those that a transport has in common at all hosts.
    #[must_use]
    pub fn agreeing_with(mut self, resolved: &Self) -> Self {
        if self.messages().is_some_and(EndpointSettings::is_global) {
            return *resolved;
        }
        if let (Some(own), Some(resolved)) = (self.tunnels_mut(), resolved.tunnels()) {
            (own.window, own.reorder) = (resolved.window, resolved.reorder);
        }
        self
    }
    /// Returns this unresolved transport for flows on some paths, with the settings of `nic` that are not theirs alone:
    /// tunnels, and the threshold at which switches mark. `nic` is the resolved transport of their sender's NIC.
    #[must_use]
    pub fn of_paths(mut self, nic: &Self) -> Self {
        if self.messages().is_some_and(EndpointSettings::is_global) {
            return *nic;
        }
        if let (Some(own), Some(resolved)) = (self.tunnels_mut(), nic.tunnels()) {
            *own = *resolved;
        }
        if let (
            Some(RdmaConfig { congestion: CongestionConfig::Dctcp(own), .. }),
            Some(CongestionConfig::Dctcp(resolved)),
        ) = (self.rdma_mut(), nic.congestion())
        {
            (own.k, own.line_rate) = (resolved.k, resolved.line_rate);
        }
        self
    }
    /// Checks the resolved settings of the engines.
    ///
    /// # Errors
    /// The first setting that cannot work, with its key in a scenario.
    pub fn check_engines(&self) -> Result<(), ConfigError> {
        if let Some(tcp) = self.tcp() {
            return tcp.check().map_err(|error| wrong("tcp", error));
        }
        if let Some(messages) = self.messages() {
            return messages.check().map_err(|error| wrong(messages.name(), error));
        }
        self.rdma().map_or(Ok(()), |rdma| rdma.engines().map(drop))
    }
    /// Returns the fabric as a stack sees it.
    ///
    /// RDMA packets that go through tunnels may wait there for long, which RDMA notices by its timeout alone. "auto" is
    /// then the usual timeout of RoCE's drivers, 4.096 us times 2^14. Even when nothing else is under way, the stack's
    /// round trip may take three of the network's: data and acknowledgements may each wait one for credit.
    fn around_stack(&self, fabric: &Fabric) -> Fabric {
        if self.tcp().is_some() {
            return self.around_tcp(fabric);
        }
        if !self.is_carried() {
            return *fabric;
        }
        let usual = Duration::from_ns(4_096 << 14);
        let [base_rtt, fill_time] = [fabric.base_rtt, fabric.fill_time].map(|time| time.saturating_mul(3));
        Fabric { bdp: fabric.bdp * 3, base_rtt, fill_time, congested_rtt: fabric.congested_rtt.max(usual), ..*fabric }
    }
    /// Returns the fabric as TCP sees it, whose packets may go through tunnels.
    ///
    /// Packets that wait in TCP's EQIF, and those that its tunnel may have in flight, are in flight for TCP. Half of an
    /// automatic receive buffer is for these. The longest queue of the network is in EQIFs, too: as inputs of a switch
    /// wait for one output, so may equally many full EQIFs share a receiver's link.
    pub fn around_tcp(&self, fabric: &Fabric) -> Fabric {
        let Some((eqds, eqif)) = self.tunnels().and_then(|eqds| Some((eqds, eqds.eqif.tcp?))) else { return *fabric };
        let full = fabric.frame * u64::from(eqif.limit());
        let held = full + eqds.window();
        let waits = fabric.line_rate.time_for(full * u64::from(fabric.inputs));
        Fabric {
            bdp: fabric.bdp.max(Bytes::new(held.get() / 4)),
            // A sender that does not burst asks for credit first, and so does a receiver that acknowledges.
            base_rtt: if eqds.bursts() { fabric.base_rtt } else { fabric.base_rtt.saturating_mul(3) },
            congested_rtt: fabric.congested_rtt.saturating_add(waits),
            ..*fabric
        }
    }
    /// Returns whether the transport reacts to the marks of switches; every "auto" is resolved.
    pub fn hears_marks(&self) -> bool {
        let of_rdma = || self.congestion().is_some_and(|congestion| congestion.needs().marking.is_some());
        !self.is_carried() && self.tcp().map_or_else(of_rdma, |tcp| tcp.ecn == Ecn::On)
    }
    /// Returns whether switches write the state of their outputs on packets.
    pub(crate) fn needs_telemetry(&self) -> bool {
        self.congestion().is_some_and(|congestion| congestion.needs().telemetry)
    }
    /// Returns whether the hashes of packets identify paths rather than flows.
    pub(crate) fn chooses_ways(&self) -> bool {
        self.tunnels().is_some() || self.messages().is_some_and(EndpointSettings::chooses_paths)
    }
    /// Returns whether receivers want the headers of packets that switches have trimmed
    /// ([`BufferConfig::Trimming`](super::BufferConfig::Trimming)). If so, such packets reach
    /// [`selvedge_nic::Nic::handle_packet`] with [`Packet::is_trimmed`](selvedge_wire::Packet::is_trimmed) set; if not,
    /// the host drops and counts them ([`DropReason::Trimmed`](selvedge_telemetry::DropReason::Trimmed)), and its
    /// receivers detect the loss like any other.
    pub fn hears_trims(&self) -> bool {
        self.tunnels().is_some() || self.messages().is_some_and(EndpointSettings::needs_trimming)
    }
    /// Returns whether a sender learns that its data has arrived.
    pub(crate) fn acknowledges(&self) -> bool {
        self.recovery().is_none_or(Scheme::acknowledges)
    }
    /// Returns the number of priorities among which the transport itself chooses, from 0 on; zero if flows have one
    /// each.
    pub fn priorities(&self) -> u8 {
        self.messages().map_or(0, EndpointSettings::priorities)
    }
    /// Returns the parameters of tunnels and of EQIFs; every "auto" is resolved.
    ///
    /// # Errors
    /// The first setting that cannot work, with its key in a scenario.
    pub(crate) fn tunnel_params(
        &self,
        nic: &NicConfig,
    ) -> Result<(Option<EqdsParams>, Option<EqifParams>), ConfigError> {
        let (Some(eqds), Some(frame)) = (self.tunnels(), self.tunnel_frame(nic)) else { return Ok((None, None)) };
        let wrong = |error| wrong("eqds", error);
        let own = eqds.params(frame, nic.gap).map_err(wrong)?;
        Ok((Some(own), eqds.eqif_params(&own, self.native().is_some()).map_err(wrong)?))
    }
    /// Returns the parameters of flows; every "auto" is resolved.
    ///
    /// # Errors
    /// Those of [`TransportConfig::check_engines`].
    pub(crate) fn flows(&self, nic: &NicConfig, ack_class: u8) -> Result<FlowParams, ConfigError> {
        Ok(match self {
            Self::Rdma(rdma) | Self::Tunnelled(TunnelledConfig { stack: Stack::Rdma(rdma), .. }) => {
                let framing = nic.framing(self);
                FlowParams::Rdma(rdma.params(framing.mtu + framing.overhead)?)
            }
            Self::Tcp(tcp) | Self::Tunnelled(TunnelledConfig { stack: Stack::Tcp(tcp), .. }) => {
                FlowParams::Tcp(TcpParams { config: tcp.params().map_err(|error| wrong("tcp", error))?, ack_class })
            }
            Self::Messages(messages) => {
                FlowParams::Messages(messages.params().map_err(|error| wrong(messages.name(), error))?)
            }
            Self::Eqds(_) => FlowParams::Eqds,
        })
    }
    /// Returns whether receivers report arrivals to senders outside the fabric.
    pub(crate) fn reports_freely(&self) -> bool {
        self.rdma().is_some_and(|rdma| rdma.feedback().reports_freely())
    }
}

/// Returns the error of a setting of `engine`, with its key in a scenario.
fn wrong(engine: &str, error: SettingError) -> ConfigError {
    ConfigError::new(&format!("transport.{engine}.{}", error.key), error.message)
}

impl RdmaConfig {
    /// Returns the parameters of both engines; every "auto" is resolved.
    pub(super) fn engines(&self) -> Result<(RecoveryParams, CongestionParams), ConfigError> {
        let Self { recovery, congestion } = self;
        Ok((
            recovery.params().map_err(|error| wrong(&format!("recovery.{}", recovery.name()), error))?,
            congestion.params().map_err(|error| wrong(&format!("congestion.{}", congestion.name()), error))?,
        ))
    }
    /// Returns the parameters of queue pairs whose full packets occupy `frame` bytes on the wire; every "auto" is
    /// resolved.
    ///
    /// The receiver is without a BDP cap: the sender may have a faster link, and so a larger cap, and packets beyond a
    /// receiver's reach are dropped unanswered.
    fn params(&self, frame: Bytes) -> Result<RdmaParams, ConfigError> {
        let (recovery, congestion) = self.engines()?;
        let mut receiver = recovery;
        receiver.set_receivers_cap(None);
        Ok(RdmaParams { sender: SenderParams { recovery, congestion, frame }, receiver, feedback: self.feedback() })
    }
    fn feedback(&self) -> FeedbackConfig {
        FeedbackConfig::new(&self.congestion.needs(), self.recovery.acknowledges())
    }
}
