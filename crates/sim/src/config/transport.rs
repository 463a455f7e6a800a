//! Configuration of the engines at both ends of every flow.

use selvedge_transport::eqds::eqif::EqifParams;
use selvedge_transport::eqds::{EqdsConfig, EqdsParams};
use selvedge_transport::ndp::NdpConfig;
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::tcp::{Ecn, TcpConfig};
use selvedge_transport::{
    CongestionConfig, Fabric, FeedbackConfig, Needs, ReceiverConfig, RecoveryConfig, Scheme, SenderConfig,
    SettingError, Tuning,
};
use selvedge_units::{Bytes, Duration, Setting};
use selvedge_wire::Header;
use selvedge_wire::verbs::Headers;
use serde::{Deserialize, Serialize};

use super::NicConfig;
use super::table::TransportTable;

/// Engines at both ends of every flow: RDMA, TCP, EQDS or NDP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "TransportTable", into = "TransportTable")]
pub struct TransportConfig {
    /// Loss recovery.
    pub recovery: RecoveryConfig,
    /// Congestion control.
    pub congestion: CongestionConfig,
    /// TCP, instead of recovery and congestion control of RDMA.
    pub tcp: Option<TcpConfig>,
    /// EQDS tunnels: for native messages instead of a stack, or for what a stack sends.
    pub eqds: Option<EqdsConfig>,
    /// Whether queue pairs with `recovery` and `congestion` send through the tunnels of `eqds`: their flows are no
    /// native messages.
    pub has_rdma_stack: bool,
    /// Most bytes that headers of packets of applications' queue pairs (`[workload.verbs]`) add to frames in tunnels;
    /// zero if there are none ([`TransportConfig::carry_verbs`]).
    pub verbs_headers: Bytes,
    /// NDP, instead of recovery and congestion control of RDMA.
    pub ndp: Option<NdpConfig>,
}

/// Default: IRN without congestion control.
impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            recovery: RecoveryConfig::Irn(Default::default()),
            congestion: CongestionConfig::None(Default::default()),
            tcp: None,
            eqds: None,
            has_rdma_stack: false,
            verbs_headers: Bytes::ZERO,
            ndp: None,
        }
    }
}

impl From<TcpConfig> for TransportConfig {
    fn from(tcp: TcpConfig) -> Self {
        Self { tcp: Some(tcp), ..Self::default() }
    }
}
impl From<NdpConfig> for TransportConfig {
    fn from(ndp: NdpConfig) -> Self {
        Self { ndp: Some(ndp), ..Self::default() }
    }
}
impl From<EqdsConfig> for TransportConfig {
    /// Returns EQDS with messages of its own.
    fn from(eqds: EqdsConfig) -> Self {
        Self { eqds: Some(eqds), ..Self::default() }
    }
}

impl TransportConfig {
    /// Returns EQDS if flows are its native messages.
    pub fn native(&self) -> Option<&EqdsConfig> {
        self.eqds.as_ref().filter(|_| self.tcp.is_none() && !self.has_rdma_stack)
    }
    /// Returns whether flows are queue pairs with `recovery` and `congestion`.
    pub fn is_rdma(&self) -> bool {
        self.tcp.is_none() && self.ndp.is_none() && self.native().is_none()
    }
    /// Returns whether flows go through tunnels that carry packets.
    pub fn is_carried(&self) -> bool {
        let eqif = self.eqds.map(|eqds| eqds.eqif).unwrap_or_default();
        if self.tcp.is_some() { eqif.tcp.is_some() } else { self.is_rdma() && eqif.rdma.is_some() }
    }
    /// Makes frames of tunnels large enough for packets of applications' queue pairs, where tunnels carry those. Must
    /// precede [`TransportConfig::resolve`].
    pub fn carry_verbs(&mut self) {
        if self.is_carried() {
            self.verbs_headers = Bytes::new(Headers::LONGEST as u64);
        }
    }
    /// Returns the size of the largest frame that tunnels send; `None`: there are no tunnels.
    pub fn tunnel_frame(&self, nic: &NicConfig) -> Option<Bytes> {
        let eqds = self.eqds.as_ref()?;
        let native = self.native().map(|eqds| eqds.data_header());
        let tcp = self.tcp.as_ref().map_or_else(|| TcpConfig::default().header(), TcpConfig::header);
        let tcp = eqds.eqif.tcp.map(|_| Header::ETHERNET_IPV4 + Bytes::new(tcp) + eqds.encapsulation());
        let rdma = nic.header + self.recovery.extra_header() + self.congestion.extra_header() + eqds.encapsulation();
        let rdma = eqds.eqif.rdma.map(|_| rdma + self.verbs_headers);
        [native, tcp, rdma].into_iter().flatten().max().map(|around| nic.mtu + around)
    }
    /// Returns the scheme's name: that of the loss recovery, or "tcp", "mptcp", "eqds" or "ndp".
    pub fn recovery_name(&self) -> &'static str {
        match self {
            _ if self.native().is_some() => "eqds",
            Self { ndp: Some(_), .. } => "ndp",
            Self { tcp: Some(TcpConfig { subflows: 1, .. }), .. } => "tcp",
            Self { tcp: Some(_), .. } => "mptcp",
            _ => self.recovery.name(),
        }
    }
    /// Returns the congestion control's name.
    pub fn congestion_name(&self) -> &'static str {
        self.tcp.as_ref().map_or(self.congestion.name(), |tcp| tcp.congestion.name())
    }
    /// Replaces every "auto" by what it means with `fabric` and the NIC; returns what the transport needs from switches
    /// and receivers. `trims` says whether switches cut packets to their headers.
    pub fn resolve(&mut self, fabric: &Fabric, nic: &NicConfig, trims: bool) -> Needs {
        if let Some(frame) = self.tunnel_frame(nic) {
            let hears_cnps = self.congestion.hears_cnps();
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
    /// Returns this unresolved transport with the settings of `resolved` that both ends have to agree upon: a tunnel's
    /// credit.
    #[must_use]
    pub fn agreeing_with(mut self, resolved: &Self) -> Self {
        if let (Some(eqds), Some(resolved)) = (&mut self.eqds, &resolved.eqds) {
            (eqds.window, eqds.reorder) = (resolved.window, resolved.reorder);
        }
        self
    }
    /// Returns this unresolved transport for flows on some paths, with the settings of `nic` that are not theirs alone:
    /// tunnels, and the threshold at which switches mark. `nic` is the resolved transport of their sender's NIC.
    #[must_use]
    pub fn of_paths(mut self, nic: &Self) -> Self {
        self.eqds = nic.eqds;
        if let (CongestionConfig::Dctcp(own), CongestionConfig::Dctcp(resolved)) =
            (&mut self.congestion, &nic.congestion)
        {
            (own.k, own.line_rate) = (resolved.k, resolved.line_rate);
        }
        self
    }
    /// Checks the resolved settings of the engines.
    ///
    /// # Errors
    /// The first setting that cannot work, with its key within `transport`.
    pub fn check_engines(&self) -> Result<(), (String, SettingError)> {
        if let Some(tcp) = &self.tcp {
            return tcp.check().map_err(|error| ("tcp".to_owned(), error));
        }
        if let Some(ndp) = &self.ndp {
            return ndp.check().map_err(|error| ("ndp".to_owned(), error));
        }
        if !self.is_rdma() {
            return Ok(());
        }
        let of = |role: &str, name: &str| format!("{role}.{name}");
        self.recovery.check().map_err(|error| (of("recovery", self.recovery.name()), error))?;
        self.congestion.check().map_err(|error| (of("congestion", self.congestion.name()), error))
    }
    /// Returns the fabric as a stack sees it.
    ///
    /// RDMA packets that go through tunnels may wait there for long, which RDMA notices by its timeout alone. "auto" is
    /// then the usual timeout of RoCE's drivers, 4.096 us times 2^14. Even when nothing else is under way, the stack's
    /// round trip may take three of the network's: data and acknowledgements may each wait one for credit.
    fn around_stack(&self, fabric: &Fabric) -> Fabric {
        if self.tcp.is_some() {
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
        let eqds = self.eqds.as_ref();
        let Some((eqds, eqif)) = eqds.and_then(|eqds| Some((eqds, eqds.eqif.tcp?))) else { return *fabric };
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
    /// Returns whether the transport reacts to the marks of switches; every "auto" is resolved.
    pub fn hears_marks(&self) -> bool {
        let of_rdma = self.is_rdma() && self.congestion.needs().marking.is_some();
        !self.is_carried() && self.tcp.as_ref().map_or(of_rdma, |tcp| tcp.ecn == Ecn::On)
    }
    /// Returns whether switches write the state of their outputs on packets.
    pub(crate) fn needs_telemetry(&self) -> bool {
        self.is_rdma() && self.congestion.needs().telemetry
    }
    /// Returns whether receivers want the headers of packets that switches have trimmed
    /// ([`BufferConfig::Trimming`](super::BufferConfig::Trimming)). If so, such packets reach
    /// [`selvedge_nic::Nic::handle_packet`] with [`Packet::is_trimmed`](selvedge_wire::Packet::is_trimmed) set; if not,
    /// the host drops and counts them ([`DropReason::Trimmed`](selvedge_telemetry::DropReason::Trimmed)), and its
    /// receivers detect the loss like any other.
    pub fn hears_trims(&self) -> bool {
        self.eqds.is_some() || self.ndp.is_some()
    }
    /// Returns whether a sender learns that its data has arrived.
    pub(crate) fn acknowledges(&self) -> bool {
        !self.is_rdma() || self.recovery.acknowledges()
    }
    /// Returns the parameters of tunnels and of EQIFs.
    pub(crate) fn tunnels(&self, nic: &NicConfig) -> (Option<EqdsParams>, Option<EqifParams>) {
        let (Some(eqds), Some(frame)) = (&self.eqds, self.tunnel_frame(nic)) else { return (None, None) };
        let own = eqds.params(frame, nic.gap);
        (Some(own), eqds.eqif_params(&own, self.native().is_some()))
    }
    pub(crate) fn sender(&self, nic: &NicConfig) -> SenderConfig {
        let framing = nic.framing(self);
        SenderConfig { recovery: self.recovery, congestion: self.congestion, frame: framing.mtu + framing.overhead }
    }
    /// Returns the configuration of the receiver, without a BDP cap: the sender may have a faster link, and so a larger
    /// cap, and packets beyond a receiver's reach are dropped unanswered.
    pub(crate) fn receiver(&self) -> ReceiverConfig {
        let recovery = match self.recovery {
            RecoveryConfig::Irn(irn) => RecoveryConfig::Irn(IrnConfig { bdp_cap: Setting::Off, ..irn }),
            other @ (RecoveryConfig::GoBackN(_) | RecoveryConfig::Melo(_)) => other,
        };
        ReceiverConfig { recovery }
    }
    pub(crate) fn feedback(&self) -> FeedbackConfig {
        FeedbackConfig::new(&self.congestion.needs(), self.recovery.acknowledges())
    }
}
