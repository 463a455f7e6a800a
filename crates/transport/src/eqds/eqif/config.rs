//! Settings of sending EQIFs.

use alloc::format;

use selvedge_units::{Bytes, Chance, Duration, Rate, Setting};

use super::super::config::{EqdsConfig, EqdsParams, MOST_AROUND};
use super::super::service::Service;
use crate::fabric::{Fabric, SettingError, known, resolve};

/// Sending EQIFs: which of a host's stacks send through tunnels, and how (EQDS, section 6).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct EqifConfig {
    /// TCP's packets, acknowledgements included, go through tunnels. Default: absent, they do not.
    #[cfg_attr(feature = "config", serde(skip_serializing_if = "Option::is_none"))]
    pub tcp: Option<TcpEqif>,
    /// Packets of queue pairs, acknowledgements included, go through tunnels. Default: absent, they do not.
    #[cfg_attr(feature = "config", serde(skip_serializing_if = "Option::is_none"))]
    pub rdma: Option<RdmaEqif>,
    /// Share of native messages, if there are any. Their service is reliable and unordered.
    pub native: Share,
    /// Bytes that a tunnel adds to a frame that it carries. Default: "auto": IPv4 20, UDP 8, the tunnel header; the
    /// inner Ethernet header and FCS replace the outer ones ("for testing, we encapsulated plain IP traffic"). At most
    /// 1KB.
    pub encapsulation: Setting<Bytes>,
}

/// Share of an EQIF in an uplink that several EQIFs use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Share {
    /// Strict priority over EQIFs of lower priority, 0 to 7. Default: 0.
    pub priority: u8,
    /// Packets' worth of bytes per turn among EQIFs of equal priority, at least 1. Default: 1.
    pub weight: u16,
}

impl Default for Share {
    fn default() -> Self {
        Self { priority: 0, weight: 1 }
    }
}

/// The TCP-compatible EQIF: "a simple drop-tail queue for non-ECN traffic and a RED queue for ECN-capable traffic".
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct TcpEqif {
    /// Packets that may wait for one destination, at least 1. Default: "auto", 100 (section 8.5), or three windows
    /// (`window`) where that is more: at least one is needed for full rate (appendix B).
    pub limit: Setting<u32>,
    /// Bytes up to which packets with data of one connection that wait behind each other count as one, for `limit` and
    /// `red`: super-packets of segmentation offload, which stacks hand over whole. Linux has 64 KB. Absent: each packet
    /// counts for itself.
    #[cfg_attr(feature = "config", serde(skip_serializing_if = "Option::is_none"))]
    pub super_packet: Option<Bytes>,
    /// Marking of ECN-capable packets.
    pub red: Red,
    /// Service of the tunnels. Default: "auto", as `ordered` says.
    pub service: Service,
    /// Share of the uplink.
    pub share: Share,
}

impl Default for TcpEqif {
    fn default() -> Self {
        Self {
            limit: Setting::Auto,
            super_packet: None,
            red: Red::default(),
            service: Service::Auto,
            share: Share::default(),
        }
    }
}

/// RED on the packets that wait for one destination (Floyd and Jacobson 1993). Marks are spaced evenly, not random.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Red {
    /// Average queue below which nothing is marked. Default: "auto", 16 packets (appendix B: DCTCP with K = 16), or one
    /// and a half windows (`window`) where that is more, but not above `max`. Only waiting packets can be asked for, a
    /// round trip ahead: with less than a window, several senders to one receiver alternate between bursts and
    /// requests.
    pub min: Setting<u32>,
    /// Average queue from which every packet is marked, not below `min`. Default: "auto", as `min`.
    pub max: Setting<u32>,
    /// Probability of a mark just below `max`; rises linearly from zero at `min`. Default: 1.
    pub probability: Chance,
    /// Exponent of the average's weight, 0 to 16: each packet moves it by 2^-weight of the difference; an idle queue
    /// ages as if packets came at `pull-rate`. Default: 0, the length itself, as for DCTCP.
    pub weight: u8,
    /// Whether packets that are not ECN-capable are dropped instead of marked. Default: false, they are dropped when
    /// the queue is full (section 6).
    pub drops: bool,
}

impl Default for Red {
    fn default() -> Self {
        Self { min: Setting::Auto, max: Setting::Auto, probability: Chance::ALWAYS, weight: 0, drops: false }
    }
}

impl Red {
    /// DCTCP's K in appendix B.
    const K: u32 = 16;

    /// Replaces every "auto"; a tunnel may have `window` packets in flight.
    pub(super) fn resolve(&mut self, window: u32) {
        let usual = Self::K.max(window.saturating_mul(3).div_ceil(2));
        let least = self.min.resolve(|| Some(usual)).unwrap_or(usual);
        resolve(&mut self.max, || Some(usual.max(least)));
        let max = self.max.resolve(|| None).unwrap_or(usual);
        resolve(&mut self.min, || Some(usual.min(max)));
    }
}

/// The RDMA EQIF, which drops nothing but slows the engine down.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct RdmaEqif {
    /// Means of slowing the engine down.
    pub back_pressure: BackPressure,
    /// Rate at which the engine hands packets to the EQIF. Default: "auto", the hosts' line rate; "off": at once.
    pub engine_rate: Setting<Rate>,
    /// Time from the EQIF's decision until the engine acts on it: on a CNP, a PAUSE, or the end of a PAUSE. At most
    /// 1ms. Default: 0s; the paper calls the delay constant (section 6) and gives no value.
    pub delay: Duration,
    /// Service of the tunnels. Default: "auto", as `ordered` says.
    pub service: Service,
    /// Share of the uplink.
    pub share: Share,
}

/// Back-pressure from an RDMA EQIF to its engine.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum BackPressure {
    /// CNPs if congestion control reacts to them, else PAUSE.
    #[default]
    Auto,
    /// PAUSE to the entire engine, as on the Stingray.
    Pause(PauseConfig),
    /// CNPs to the queue pairs whose packets wait, as on the BlueField-2.
    Cnp(CnpConfig),
}

/// Longest delay of CNPs and PAUSE between an EQIF and its engine.
const LONGEST_DELAY: Duration = Duration::from_ms(1);

/// PAUSE from the EQIF to its engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct PauseConfig {
    /// Bytes waiting for some destination above which the engine is paused. Default: 584KB, the 375 packets of section
    /// 8.5.
    pub above: Bytes,
    /// Most bytes waiting for any destination when the engine resumes, not above `above`. Default: "auto", half of
    /// `above`; the paper does not say.
    pub resume: Setting<Bytes>,
}

impl Default for PauseConfig {
    fn default() -> Self {
        Self { above: Bytes::new(584_000), resume: Setting::Auto }
    }
}

/// CNPs from the EQIF to its engine.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct CnpConfig {
    /// Bytes for one destination up to which there is no CNP. Default: 72KB (appendix B).
    pub k_low: Bytes,
    /// Bytes above which each packet triggers a CNP, not below `k-low`. Default: 584KB (appendix B).
    pub k_high: Bytes,
    /// Probability of a CNP just below `k-high`; rises linearly from zero at `k-low`. Default: 1; the paper does not
    /// say.
    pub p_max: Chance,
    /// Least time between two CNPs to one queue pair. Default: 4us, as often as the rate decreases (appendix B, R_d).
    pub interval: Duration,
}

impl Default for CnpConfig {
    fn default() -> Self {
        Self {
            k_low: Bytes::new(72_000),
            k_high: Bytes::new(584_000),
            p_max: Chance::ALWAYS,
            interval: Duration::from_us(4),
        }
    }
}

impl EqifConfig {
    /// Bytes of IPv4 (20) and UDP (8) headers.
    const AROUND: u64 = 20 + 8;

    /// Returns whether any stack sends through tunnels.
    pub fn is_used(&self) -> bool {
        self.tcp.is_some() || self.rdma.is_some()
    }

    /// Replaces every "auto"; `header` is the length of a tunnel header, a tunnel may have `window` packets in flight,
    /// and `hears_cnps` tells whether congestion control reacts to CNPs.
    pub(in crate::eqds) fn resolve(&mut self, fabric: &Fabric, header: Bytes, window: u32, hears_cnps: bool) {
        let added = self.added(header);
        resolve(&mut self.encapsulation, || Some(added));
        if let Some(tcp) = &mut self.tcp {
            tcp.resolve(window);
        }
        let Some(rdma) = &mut self.rdma else { return };
        resolve(&mut rdma.engine_rate, || Some(fabric.line_rate));
        if rdma.back_pressure == BackPressure::Auto {
            rdma.back_pressure = match hears_cnps {
                true => BackPressure::Cnp(CnpConfig::default()),
                false => BackPressure::Pause(PauseConfig::default()),
            };
        }
        if let BackPressure::Pause(pause) = &mut rdma.back_pressure {
            resolve(&mut pause.resume, || Some(Bytes::new(pause.above.get() / 2)));
        }
    }

    /// Checks the resolved settings, and returns the parameters of the EQIFs of TCP and RDMA that they make.
    ///
    /// # Errors
    /// If a setting is out of range, contradicts another, or still says "auto".
    pub(in crate::eqds) fn params(&self) -> Result<(Option<TcpEqifParams>, Option<RdmaEqifParams>), SettingError> {
        let wrong = |key, message| Err(SettingError::new(key, message));
        let added = self.added(Bytes::ZERO);
        if self.encapsulation == Setting::Off || added < Bytes::new(Self::AROUND) {
            return wrong("eqif.encapsulation", format!("IP and UDP take {}B; give more", Self::AROUND));
        }
        if added > MOST_AROUND {
            return wrong("eqif.encapsulation", format!("{added} is out of range; give at most {MOST_AROUND}"));
        }
        check_share(&self.native, "eqif.native.priority", "eqif.native.weight")?;
        let tcp = self.tcp.map(|tcp| tcp.params()).transpose()?;
        Ok((tcp, self.rdma.map(|rdma| rdma.params()).transpose()?))
    }

    /// Returns the bytes that a tunnel with a header of this length adds to a frame; works before "auto" is resolved,
    /// too.
    pub(in crate::eqds) fn added(&self, header: Bytes) -> Bytes {
        self.encapsulation.resolve(|| Some(Bytes::new(Self::AROUND) + header)).unwrap_or(Bytes::ZERO)
    }
}

impl TcpEqif {
    /// Smallest queue limit that "auto" gives, in packets.
    const LEAST_LIMIT: u32 = 100;

    /// Replaces every "auto"; a tunnel may have `window` packets in flight.
    pub(super) fn resolve(&mut self, window: u32) {
        resolve(&mut self.limit, || Some(Self::LEAST_LIMIT.max(window.saturating_mul(3))));
        self.red.resolve(window);
    }

    /// Returns the resolved limit: packets that may wait for one destination.
    pub fn limit(&self) -> u32 {
        self.limit.resolve(|| None).unwrap_or(u32::MAX)
    }

    pub(super) fn params(&self) -> Result<TcpEqifParams, SettingError> {
        let wrong = |key, message| Err(SettingError::new(key, message));
        let Some(limit) = known(self.limit, "eqif.tcp.limit")? else {
            return wrong("eqif.tcp.limit", "a queue has an end; give a number of packets".into());
        };
        if limit == 0 {
            return wrong("eqif.tcp.limit", "nothing could wait, so nothing would be sent; give 1 or more".into());
        }
        let Red { min, max, probability, weight, drops } = self.red;
        let end = |setting, key| {
            let none = "marks begin somewhere; for none at all give more packets than `limit`";
            known(setting, key)?.ok_or_else(|| SettingError::new(key, none))
        };
        let (min, max) = (end(min, "eqif.tcp.red.min")?, end(max, "eqif.tcp.red.max")?);
        if min > max {
            let message =
                format!("marks would begin at {min} packets and be certain from {max} on; give {min} or more");
            return wrong("eqif.tcp.red.max", message);
        }
        if weight > 16 {
            return wrong("eqif.tcp.red.weight", format!("2^-{weight} is out of range; give 0 to 16"));
        }
        check_share(&self.share, "eqif.tcp.share.priority", "eqif.tcp.share.weight")?;
        Ok(TcpEqifParams { limit, super_packet: self.super_packet, min, max, probability, weight, drops })
    }
}

impl RdmaEqif {
    fn params(&self) -> Result<RdmaEqifParams, SettingError> {
        let wrong = |key, message| Err(SettingError::new(key, message));
        let engine_rate = known(self.engine_rate, "eqif.rdma.engine-rate")?;
        if engine_rate == Some(Rate::ZERO) {
            return wrong("eqif.rdma.engine-rate", "nothing would ever be sent; give a rate above zero".into());
        }
        if self.delay > LONGEST_DELAY {
            let message = format!("{} is out of range; give at most {LONGEST_DELAY}", self.delay);
            return wrong("eqif.rdma.delay", message);
        }
        let pressure = match self.back_pressure {
            BackPressure::Auto => return Err(SettingError::left_auto("eqif.rdma.back-pressure")),
            BackPressure::Pause(PauseConfig { above, resume }) => {
                let key = "eqif.rdma.back-pressure.pause.resume";
                let resume = known(resume, key)?.unwrap_or(Bytes::ZERO);
                if resume > above {
                    return wrong(key, format!("{resume} is more than the {above} at which it stops; give less"));
                }
                Pressure::Pause { above, resume }
            }
            BackPressure::Cnp(CnpConfig { k_low, k_high, .. }) if k_low > k_high => {
                let message = format!("CNPs would begin at {k_low} and be certain from {k_high} on; give more");
                return wrong("eqif.rdma.back-pressure.cnp.k-high", message);
            }
            BackPressure::Cnp(cnp) => Pressure::Cnp(cnp),
        };
        check_share(&self.share, "eqif.rdma.share.priority", "eqif.rdma.share.weight")?;
        Ok(RdmaEqifParams { engine_rate, delay: self.delay, pressure })
    }
}

fn check_share(share: &Share, priority: &'static str, weight: &'static str) -> Result<(), SettingError> {
    if share.priority > 7 {
        return Err(SettingError::new(priority, format!("{} is no priority: they are 0 to 7", share.priority)));
    }
    if share.weight == 0 {
        return Err(SettingError::new(weight, "a weight of zero starves it; give 1 or more"));
    }
    Ok(())
}

/// Parameters of TCP's EQIF, see [`TcpEqif`] and [`Red`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpEqifParams {
    pub(super) limit: u32,
    pub(super) super_packet: Option<Bytes>,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) probability: Chance,
    pub(super) weight: u8,
    pub(super) drops: bool,
}

/// Parameters of the RDMA EQIF, see [`RdmaEqif`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RdmaEqifParams {
    /// Rate at which the engine hands packets over; `None`: at once.
    pub engine_rate: Option<Rate>,
    /// Time from the EQIF's decision until the engine acts on it.
    pub delay: Duration,
    /// Means of slowing the engine down.
    pub pressure: Pressure,
}

/// Back-pressure from an RDMA EQIF to its engine, see [`BackPressure`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pressure {
    /// PAUSE.
    Pause {
        /// Bytes waiting for some destination above which the engine is paused.
        above: Bytes,
        /// Most bytes waiting for any destination when it resumes.
        resume: Bytes,
    },
    /// CNPs.
    Cnp(CnpConfig),
}

/// Parameters shared by the EQIFs of all hosts.
#[derive(Clone, Debug)]
pub struct EqifParams {
    /// Parameters that all tunnels share; their service is that of `auto`. [`EqifParams::of`] has those of one EQIF.
    pub tunnel: EqdsParams,
    /// Parameters of the tunnels of each EQIF: native messages, TCP and RDMA.
    pub tunnels: [EqdsParams; 3],
    /// TCP's EQIF, see [`EqifConfig::tcp`].
    pub tcp: Option<TcpEqifParams>,
    /// The RDMA EQIF, see [`EqifConfig::rdma`].
    pub rdma: Option<RdmaEqifParams>,
    /// Whether flows other than TCP's are native messages.
    pub has_native: bool,
    /// Shares of native messages, TCP and RDMA.
    pub shares: [Share; 3],
}

impl EqifParams {
    /// Returns the parameters of the tunnels of an EQIF, known by its sender ID.
    #[inline]
    pub fn of(&self, eqif: u8) -> &EqdsParams {
        self.tunnels.get(usize::from(eqif)).unwrap_or(&self.tunnel)
    }
}

impl EqdsConfig {
    /// Returns the parameters of the EQIFs, if any stack has one; `own` are the parameters of all tunnels, and
    /// `has_native` tells whether there are native messages, too.
    ///
    /// # Errors
    /// Those of [`EqdsConfig::params`].
    pub fn eqif_params(&self, own: &EqdsParams, has_native: bool) -> Result<Option<EqifParams>, SettingError> {
        let EqifConfig { tcp, rdma, native, .. } = self.eqif;
        let tunnel =
            EqdsParams { header: self.encapsulation().get() as u32, ordered: self.delivers_in_order(), ..*own };
        let shares = [native, tcp.unwrap_or_default().share, rdma.unwrap_or_default().share];
        let services = [Service::Unordered, tcp.unwrap_or_default().service, rdma.unwrap_or_default().service];
        let auto = tunnel.ordered;
        let tunnels = services.map(|service| EqdsParams {
            ordered: service.is_ordered(auto),
            reliable: service.is_reliable(),
            ..tunnel
        });
        let (tcp, rdma) = self.eqif.params()?;
        Ok(self.eqif.is_used().then_some(EqifParams { tunnel, tunnels, tcp, rdma, has_native, shares }))
    }
}
