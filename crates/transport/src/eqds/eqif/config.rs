//! Settings of sending EQIFs.

use alloc::format;

use selvedge_units::{Bytes, Chance, Duration, Rate, Setting};

use super::super::config::{EqdsConfig, EqdsParams, MOST_AROUND};
use crate::fabric::{Fabric, SettingError, resolve, resolved};

/// Sending EQIFs: which of a host's stacks send through tunnels, and how (EQDS, section 6).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct EqifConfig {
    /// Packets of TCP go through tunnels, acknowledgements as well. Default: absent, they do not.
    #[cfg_attr(feature = "config", serde(skip_serializing_if = "Option::is_none"))]
    pub tcp: Option<TcpEqif>,
    /// Packets of queue pairs go through tunnels, acknowledgements as well. Default: absent, they do not.
    #[cfg_attr(feature = "config", serde(skip_serializing_if = "Option::is_none"))]
    pub rdma: Option<RdmaEqif>,
    /// The turns of native messages, where there are such.
    pub native: Share,
    /// Bytes that a tunnel adds to a frame that it carries. Default: "auto": IPv4 20, UDP 8, the tunnel header; the
    /// inner Ethernet header and FCS take the outer one's place ("for testing, we encapsulated plain IP traffic"). At
    /// most 1KB.
    pub encapsulation: Setting<Bytes>,
}

/// The turns of an EQIF where several share an uplink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Share {
    /// An EQIF goes before all of lower priority, 0 to 7. Default: 0.
    pub priority: u8,
    /// Packets' worth of bytes in its turn among those of its priority, at least 1. Default: 1.
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
    /// When ECN-capable packets are marked.
    pub red: Red,
    /// Its turns.
    pub share: Share,
}

impl Default for TcpEqif {
    fn default() -> Self {
        Self { limit: Setting::Auto, red: Red::default(), share: Share::default() }
    }
}

/// RED on the packets that wait for one destination (Floyd and Jacobson 1993). Marks are spaced evenly instead of
/// drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct Red {
    /// No mark below this average. Default: "auto", 16 packets (appendix B: DCTCP with K = 16), or one and a half
    /// windows (`window`) where that is more, but not above `max`. Only what waits can be asked for, a round trip
    /// ahead: with less than a window, several senders at one receiver go back and forth between bursts and requests.
    pub min: Setting<u32>,
    /// Every packet is marked from this average on, not below `min`. Default: "auto", as `min`.
    pub max: Setting<u32>,
    /// Probability of a mark just below `max`; rises linearly from zero at `min`. Default: 1.
    pub probability: Chance,
    /// The average moves by 2^-weight of the difference with each packet, 0 to 16; while none waits, as if some came
    /// at `pull-rate`. Default: 0, the length itself, as DCTCP wants it.
    pub weight: u8,
    /// Packets that are not ECN-capable are dropped where others would be marked. Default: false, they are dropped
    /// when the queue is full (section 6).
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

    /// Replaces every "auto"; a tunnel may have `window` packets under way.
    pub(super) fn resolve(&mut self, window: u32) {
        let usual = Self::K.max(window.saturating_mul(3).div_ceil(2));
        let least = self.min.resolve(|| Some(usual)).unwrap_or(usual);
        resolve(&mut self.max, || Some(usual.max(least)));
        let max = self.max.resolve(|| None).unwrap_or(usual);
        resolve(&mut self.min, || Some(usual.min(max)));
    }

    /// Where marks begin, and from where on every packet has one; resolved.
    #[inline]
    pub(super) fn ends(&self) -> (u32, u32) {
        (resolved(self.min, "red.min").unwrap_or(u32::MAX), resolved(self.max, "red.max").unwrap_or(u32::MAX))
    }
}

/// The RDMA EQIF, which drops nothing and slows the engine down instead.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct RdmaEqif {
    /// How.
    pub back_pressure: BackPressure,
    /// Rate at which the engine hands packets to the EQIF. Default: "auto", the hosts' line rate; "off": at once.
    pub engine_rate: Setting<Rate>,
    /// Its turns.
    pub share: Share,
}

/// How an RDMA EQIF slows the engine down.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum BackPressure {
    /// By CNPs where congestion control heeds them, else by PAUSE.
    #[default]
    Auto,
    /// PAUSE to the engine, all of it, as to the Stingray's.
    Pause(PauseConfig),
    /// CNPs to the queue pairs whose packets wait, as to the BlueField-2's.
    Cnp(CnpConfig),
}

/// PAUSE from the EQIF to its engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct PauseConfig {
    /// The engine is paused while more than this waits for some destination. Default: 584KB, the 375 packets of
    /// section 8.5.
    pub above: Bytes,
    /// It goes on when no more than this waits for any, not above `above`. Default: "auto", half of `above`; the paper
    /// does not say.
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
    /// No CNP up to so many bytes for one destination. Default: 72KB (appendix B).
    pub k_low: Bytes,
    /// Each packet asks for one above this, which is not below `k-low`. Default: 584KB (appendix B).
    pub k_high: Bytes,
    /// Probability just below `k-high`; rises linearly from zero at `k-low`. Default: 1; the paper does not say.
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

impl BackPressure {
    /// Below what the engine goes on.
    ///
    /// # Panics
    /// When the setting still says "auto".
    pub(super) fn resume(&self) -> Bytes {
        match self {
            Self::Pause(pause) => resolved(pause.resume, "resume").unwrap_or(Bytes::ZERO),
            Self::Auto | Self::Cnp(_) => Bytes::ZERO,
        }
    }
}

impl EqifConfig {
    /// IPv4 20, UDP 8.
    const AROUND: u64 = 20 + 8;

    /// Whether some stack sends through tunnels.
    pub fn is_used(&self) -> bool {
        self.tcp.is_some() || self.rdma.is_some()
    }

    /// Replaces every "auto"; `header` is the length of a tunnel header, a tunnel may have `window` packets under way,
    /// and `hears_cnps` says whether congestion control does.
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

    /// What is wrong with the resolved settings, if anything is.
    pub(in crate::eqds) fn check(&self) -> Result<(), SettingError> {
        let wrong = |key, message| Err(SettingError::new(key, message));
        let added = self.added(Bytes::ZERO);
        if self.encapsulation == Setting::Off || added < Bytes::new(Self::AROUND) {
            return wrong("eqif.encapsulation", format!("IP and UDP take {}B; give more", Self::AROUND));
        }
        if added > MOST_AROUND {
            return wrong("eqif.encapsulation", format!("{added} is out of range; give at most {MOST_AROUND}"));
        }
        check_share(&self.native, "eqif.native.priority", "eqif.native.weight")?;
        if let Some(tcp) = &self.tcp {
            tcp.check()?;
        }
        self.rdma.map_or(Ok(()), |rdma| rdma.check())
    }

    /// Bytes that a tunnel with such a header adds to a frame, resolved or not.
    pub(in crate::eqds) fn added(&self, header: Bytes) -> Bytes {
        self.encapsulation.resolve(|| Some(Bytes::new(Self::AROUND) + header)).unwrap_or(Bytes::ZERO)
    }
}

impl TcpEqif {
    /// The least that "auto" lets wait.
    const LEAST_LIMIT: u32 = 100;

    /// Replaces every "auto"; a tunnel may have `window` packets under way.
    pub(super) fn resolve(&mut self, window: u32) {
        resolve(&mut self.limit, || Some(Self::LEAST_LIMIT.max(window.saturating_mul(3))));
        self.red.resolve(window);
    }

    /// Packets that may wait for one destination; resolved.
    #[inline]
    pub fn limit(&self) -> u32 {
        resolved(self.limit, "limit").unwrap_or(u32::MAX)
    }

    fn check(&self) -> Result<(), SettingError> {
        let wrong = |key, message| Err(SettingError::new(key, message));
        if self.limit == Setting::Off {
            return wrong("eqif.tcp.limit", "a queue has an end; give a number of packets".into());
        }
        if self.limit() == 0 {
            return wrong("eqif.tcp.limit", "nothing could wait, so nothing would be sent; give 1 or more".into());
        }
        let Red { min, max, weight, .. } = self.red;
        if let Some((_, key)) =
            [(min, "eqif.tcp.red.min"), (max, "eqif.tcp.red.max")].iter().find(|(end, _)| *end == Setting::Off)
        {
            return wrong(*key, "marks begin somewhere; for none at all give more packets than `limit`".into());
        }
        let (min, max) = self.red.ends();
        if min > max {
            let message =
                format!("marks would begin at {min} packets and be certain from {max} on; give {min} or more");
            return wrong("eqif.tcp.red.max", message);
        }
        if weight > 16 {
            return wrong("eqif.tcp.red.weight", format!("2^-{weight} is out of range; give 0 to 16"));
        }
        check_share(&self.share, "eqif.tcp.share.priority", "eqif.tcp.share.weight")
    }
}

impl RdmaEqif {
    fn check(&self) -> Result<(), SettingError> {
        let wrong = |key, message| Err(SettingError::new(key, message));
        if let Setting::Value(rate) = self.engine_rate
            && rate.as_bps() == 0
        {
            return wrong("eqif.rdma.engine-rate", "nothing would ever be sent; give a rate above zero".into());
        }
        match self.back_pressure {
            BackPressure::Pause(pause) => {
                let resume = self.back_pressure.resume();
                if resume > pause.above {
                    let message = format!("{resume} is more than the {} at which it stops; give less", pause.above);
                    return wrong("eqif.rdma.back-pressure.pause.resume", message);
                }
            }
            BackPressure::Cnp(CnpConfig { k_low, k_high, .. }) if k_low > k_high => {
                let message = format!("CNPs would begin at {k_low} and be certain from {k_high} on; give more");
                return wrong("eqif.rdma.back-pressure.cnp.k-high", message);
            }
            BackPressure::Auto | BackPressure::Cnp(_) => {}
        }
        check_share(&self.share, "eqif.rdma.share.priority", "eqif.rdma.share.weight")
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

/// What the EQIFs of all hosts share.
#[derive(Clone, Debug)]
pub struct EqifParams {
    /// Of the tunnels that carry packets.
    pub tunnel: EqdsParams,
    /// See [`EqifConfig::tcp`].
    pub tcp: Option<TcpEqif>,
    /// See [`EqifConfig::rdma`].
    pub rdma: Option<RdmaEqif>,
    /// Flows that are not TCP's are native messages.
    pub has_native: bool,
    /// Turns of native messages, TCP and RDMA.
    pub shares: [Share; 3],
}

impl EqdsConfig {
    /// What EQIFs are built from, where a stack has one; `own` are the parameters of all tunnels, and `has_native` says
    /// whether there are native messages, too.
    pub fn eqif_params(&self, own: &EqdsParams, has_native: bool) -> Option<EqifParams> {
        let EqifConfig { tcp, rdma, native, .. } = self.eqif;
        let tunnel =
            EqdsParams { header: self.encapsulation().get() as u32, ordered: self.delivers_in_order(), ..*own };
        let shares = [native, tcp.unwrap_or_default().share, rdma.unwrap_or_default().share];
        self.eqif.is_used().then_some(EqifParams { tunnel, tcp, rdma, has_native, shares })
    }
}
