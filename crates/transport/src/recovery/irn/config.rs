//! Settings of IRN.

use alloc::format;
use selvedge_units::{Bytes, Duration, Setting};

use crate::bitmap::WIDEST_WINDOW;
use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};
use crate::footprint::Footprint;
use crate::recovery::rto::RtoEstimator;
use crate::recovery::timer::{RtoRestart, Timer, rto_low};
use crate::recovery::{Scheme, SchemeParams};

use super::footprint;

/// The widest window with holes: half of what the 16 bits of a hole's start can number.
pub(super) const WIDEST_WITH_HOLES: u64 = 1 << 15;

/// IRN, the improved RoCE NIC.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct IrnConfig {
    /// The rule by which a packet counts as lost: the paper's text, its authors' hardware code, or the text and one
    /// more rule. Default: refined.
    pub mode: Mode,
    /// Whether a timeout leads to retransmission. Default: "auto", which is off with PFC and on without (section 4.1).
    pub timeouts: Timeouts,
    /// RTO_low, the timeout when few packets are in flight. Default: "auto", 100 us (section 4.1), or one and a half
    /// times the round trip of the empty network where that is longer, or RTO_high where that is less; "off": RTO_high
    /// alone.
    pub rto_low: Setting<Duration>,
    /// N: RTO_low applies when at most this many packets are in flight. Default: 3.
    pub rto_low_packets: u32,
    /// RTO_high, the timeout otherwise. Default: "auto", the maximum round-trip time with one
    /// congested link (section 4.1).
    pub rto_high: Setting<Duration>,
    /// BDP-FC: packets a flow may have in flight. Default: "auto", the bandwidth-delay product of its path (with
    /// `auto = "longest-path"`, like in the paper, the largest of any) over the largest data frame, rounded up. Where
    /// serialisation makes an idle path hold over a twentieth more than that (short links), or the path has a link
    /// slower than its sender's, "auto" is what the path holds. "off" is no limit (section 4.3).
    pub bdp_cap: Setting<u32>,
    /// The events that restart the retransmission timer while packets are in flight. The paper does not say; any-ack
    /// comes closest to its authors' trace of a receiver. Default: any-ack.
    pub rto_restart: RtoRestart,
    /// Fetch delay: the least time between the detection of a loss and the retransmission (section 6.3). Default: 0us.
    pub retransmit_delay: Duration,
    /// The source of the timeout. Default: "static", RTO_low and RTO_high (section 3.1).
    pub rto: Rto,
    /// Whether the sender keeps a bitmap of selective acknowledgements. Without it, the sender knows of one loss per
    /// round trip (section 4.3). Not in mode "hls". Default: true.
    pub sack: bool,
    /// Header bytes that each data packet carries on top of RoCE's (section 6.3: 16 bytes of RETH at worst). Default:
    /// 0B.
    pub extra_header: Bytes,
    /// NACKs without cumulative progress that it takes to begin recovery; more than 1 tolerates reordering (section 7).
    /// Not in mode "hls". Default: 1.
    pub nack_threshold: u32,
    /// Up to which packet a cumulative acknowledgement during recovery shows that the packet is lost where it stops.
    /// "auto": the rule of `mode`; without SACKs, and with time stamps, latest. Other values need SACKs and no time
    /// stamps, and not mode "hls". Default: auto.
    pub partial_acks: PartialAcks,
    /// Whether echoed time stamps show losses: a packet that was sent before one that has arrived, and has not arrived
    /// itself, is lost, even if it was retransmitted. For paths that keep order; not in the paper, which leaves such
    /// losses to the timeout. Not in mode "hls", and with SACKs only. Default: false.
    pub time_stamps: bool,
    /// Whether NACKs carry the three newest holes, like MELO's: one NACK can then replace several, and the packets of a
    /// lost NACK are not taken for lost. The paper's NACKs name one packet (section 3.1). Holes take 12 bytes. Not in
    /// mode "hls", and with SACKs only. Default: false.
    pub holes: bool,
    /// Packets that a timeout retransmits at most: the first sends one, each following timeout without an answer in
    /// between twice as many as the one before, up to this. A burst of losses may be limited by packets, not time; one
    /// packet per timeout outlasts it slowly. The paper's timeouts always send one (section 3.1), QUIC's up to two (RFC
    /// 9002, section 6.2.4). Not in mode "hls". Default: 1.
    pub probes: u16,
}

/// The rule by which the sender counts a packet as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Mode {
    /// The rule of the text, or the packet was sent before the first retransmission of the recovery and is missing when
    /// a retransmission has arrived. Of the three, this mode has the fewest spurious retransmissions, and does not
    /// leave a retransmission that is lost in an incast to the timeout.
    #[default]
    Refined,
    /// The rule of the text of section 3.1: lost "only if another packet with a higher sequence number has been
    /// selectively acked", or by a timeout.
    Paper,
    /// The rule of the published hardware modules of section 6.2.
    Hls,
}

/// The packets that a partial acknowledgement may show to be lost: those sent before a certain retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum PartialAcks {
    /// The mode's: first where it is refined, none with the paper's text, latest with the hardware code.
    #[default]
    Auto,
    /// The latest, like in the authors' hardware code: an acknowledgement triggered by an earlier retransmission is
    /// misread, and so are all that come after it.
    Latest,
    /// The first of the recovery: a packet sent before it that is missing when any retransmission has arrived is lost
    /// wherever paths keep order.
    First,
    /// None: a packet is lost "only if another packet with a higher sequence number has been selectively acked"
    /// (section 3.1), or by a timeout.
    None,
}

/// Whether a timeout leads to retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Timeouts {
    /// Off with PFC, on without.
    #[default]
    Auto,
    /// On.
    On,
    /// Off: a packet lost behind the last acknowledgement stays lost.
    Off,
}

/// The source of the timeout.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Rto {
    /// RTO_low and RTO_high.
    #[default]
    Static,
    /// From round-trip times, "as with TCP" (section 4.3): RFC 6298. RTO_low and N are not used.
    Dynamic(DynamicRto),
}

/// Parameters of [`Rto::Dynamic`]. The paper gives none.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct DynamicRto {
    /// The timeout of a flow that has no sample yet. Default: "auto", which is RTO_high, but no more than
    /// `max`.
    pub initial: Setting<Duration>,
    /// The least timeout. Default: 100us, RTO_low's.
    pub min: Duration,
    /// The largest timeout, after back-off. Default: 10ms.
    pub max: Duration,
}

impl Default for DynamicRto {
    fn default() -> Self {
        Self { initial: Setting::Auto, min: Duration::from_us(100), max: Duration::from_us(10_000) }
    }
}

impl Default for IrnConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Refined,
            timeouts: Timeouts::Auto,
            rto_low: Setting::Auto,
            rto_low_packets: 3,
            rto_high: Setting::Auto,
            bdp_cap: Setting::Auto,
            rto_restart: RtoRestart::AnyAck,
            retransmit_delay: Duration::ZERO,
            rto: Rto::Static,
            sack: true,
            extra_header: Bytes::ZERO,
            nack_threshold: 1,
            partial_acks: PartialAcks::Auto,
            time_stamps: false,
            holes: false,
            probes: 1,
        }
    }
}

impl IrnConfig {
    /// Returns RTO_low where RTO_high is `high`.
    pub(super) fn rto_low_beside(&self, high: Duration) -> Duration {
        self.rto_low.resolve(|| None).unwrap_or(high)
    }

    /// Returns the packets that partial acknowledgements may show to be lost: never "auto".
    pub(super) fn told_by_partial_acks(&self) -> PartialAcks {
        match (self.partial_acks, self.mode) {
            (PartialAcks::Auto, _) if !self.sack || self.time_stamps => PartialAcks::Latest,
            (PartialAcks::Auto, Mode::Refined) => PartialAcks::First,
            (PartialAcks::Auto, Mode::Paper) => PartialAcks::None,
            (PartialAcks::Auto, Mode::Hls) => PartialAcks::Latest,
            (chosen, _) => chosen,
        }
    }

    /// Returns the timer, and the estimator where the timeout is not static.
    fn timing(&self) -> Result<(Timer, Option<RtoEstimator>), SettingError> {
        Ok(match (self.timeouts, self.rto) {
            (Timeouts::Auto, _) => return Err(SettingError::left_auto("timeouts")),
            (Timeouts::Off, _) => (Timer::single(Duration::MAX), None),
            (Timeouts::On, Rto::Static) => {
                let high = known(self.rto_high, "rto-high")?.unwrap_or(Duration::MAX);
                let low = known(self.rto_low, "rto-low")?.unwrap_or(high);
                (Timer::new(low, high, self.rto_low_packets).restarted_by(self.rto_restart), None)
            }
            (Timeouts::On, Rto::Dynamic(DynamicRto { initial, min, max })) => {
                let initial = known(initial, "rto.dynamic.initial")?.unwrap_or(max);
                let estimator = RtoEstimator::new(initial, min, max);
                (Timer::single(initial).restarted_by(self.rto_restart), Some(estimator))
            }
        })
    }

    /// Checks RTO_low and RTO_high.
    fn check_static(&self) -> Result<(), SettingError> {
        for (key, setting) in [("rto-high", self.rto_high), ("rto-low", self.rto_low)] {
            if let Setting::Value(timeout) = setting {
                check_timeout(key, timeout)?;
            }
        }
        let low = self.rto_low_beside(Duration::ZERO);
        match self.rto_high {
            Setting::Value(high) if high < low => {
                let message = format!("{high} is less than rto-low, {low}; RTO_high is the longer one");
                Err(SettingError::new("rto-high", message))
            }
            Setting::Off if self.timeouts == Timeouts::On => {
                Err(SettingError::new("rto-high", "there is no IRN with RTO_low alone; set timeouts to \"off\""))
            }
            _ => Ok(()),
        }
    }
}

impl DynamicRto {
    fn check(&self) -> Result<(), SettingError> {
        let &Self { initial, min, max } = self;
        let Setting::Value(initial) = initial else {
            return Err(SettingError::new("rto.dynamic.initial", "a flow without samples needs a timeout; give one"));
        };
        check_timeout("rto.dynamic.initial", initial)?;
        check_timeout("rto.dynamic.min", min)?;
        for (name, other) in [("min", min), ("initial", initial)] {
            if other > max {
                let message = format!("{max} is less than {name}, {other}; give the longest here");
                return Err(SettingError::new("rto.dynamic.max", message));
            }
        }
        Ok(())
    }
}

/// Parameters of both ends of IRN.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IrnParams {
    pub(super) mode: Mode,
    pub(super) timer: Timer,
    /// The estimator, where timeouts follow round-trip times.
    pub(super) estimator: Option<RtoEstimator>,
    pub(super) rto_low_packets: u32,
    /// Packets in flight; `None` is no limit.
    cap: Option<u32>,
    pub(super) retransmit_delay: Duration,
    pub(super) sack: bool,
    pub(super) nack_threshold: u32,
    /// Never "auto".
    pub(super) partial_acks: PartialAcks,
    pub(super) time_stamps: bool,
    pub(super) holes: bool,
    pub(super) probes: u16,
}

/// Returns how many packets a flow with this limit may have in flight.
pub(super) fn window(cap: Option<u32>) -> u64 {
    cap.map_or(WIDEST_WINDOW, u64::from)
}

impl SchemeParams for IrnParams {
    fn bdp_cap(&self) -> Option<u32> {
        self.cap
    }
    fn set_receivers_cap(&mut self, cap: Option<u32>) {
        self.cap = cap;
    }
    fn wire_id(&self) -> Option<u8> {
        Some(1)
    }
}

impl Scheme for IrnConfig {
    type Params = IrnParams;

    fn resolve(&mut self, fabric: &Fabric) {
        if self.timeouts == Timeouts::Auto {
            self.timeouts = if fabric.pfc { Timeouts::Off } else { Timeouts::On };
        }
        let low = self.rto_low.resolve(|| None).unwrap_or(Duration::ZERO);
        let high = resolve(&mut self.rto_high, || Some(fabric.congested_rtt.max(low))).unwrap_or(Duration::MAX);
        resolve(&mut self.rto_low, || Some(rto_low(fabric, high)));
        self.rto_low = Setting::Value(self.rto_low_beside(high));
        if let (Rto::Dynamic(dynamic), Setting::Value(high)) = (&mut self.rto, self.rto_high) {
            resolve(&mut dynamic.initial, || Some(high.min(dynamic.max)));
        }
        self.partial_acks = self.told_by_partial_acks();
        resolve(&mut self.bdp_cap, || Some(fabric.frames_in_flight().min(WIDEST_WINDOW) as u32));
    }
    fn params(&self) -> Result<IrnParams, SettingError> {
        self.check_static()?;
        let cap = known(self.bdp_cap, "bdp-cap")?;
        if let Some(cap) = cap
            && (cap == 0 || u64::from(cap) > WIDEST_WINDOW)
        {
            return Err(SettingError::new("bdp-cap", format!("{cap} packets; give 1 to {WIDEST_WINDOW}, or \"off\"")));
        }
        if self.nack_threshold == 0 {
            return Err(SettingError::new("nack-threshold", "recovery begins with a NACK; give 1 or more"));
        }
        if !self.sack && self.mode == Mode::Hls {
            return Err(SettingError::new("sack", "the hardware code keeps SACKs; give true, or another mode"));
        }
        for (key, is_on) in [("time-stamps", self.time_stamps), ("holes", self.holes)] {
            if is_on && (self.mode == Mode::Hls || !self.sack) {
                return Err(SettingError::new(key, "they need sack = true, and another mode than \"hls\""));
            }
        }
        let is_fixed = self.mode == Mode::Hls || self.time_stamps || !self.sack;
        let partial_acks = self.told_by_partial_acks();
        if is_fixed && partial_acks != PartialAcks::Latest {
            let message = "\"first\" and \"none\" need SACKs, time-stamps = false, and another mode than \"hls\"";
            return Err(SettingError::new("partial-acks", message));
        }
        if self.probes == 0 {
            return Err(SettingError::new("probes", "a timeout that sends nothing never ends; give 1 or more"));
        }
        if self.probes > 1 && self.mode == Mode::Hls {
            return Err(SettingError::new("probes", "the hardware code sends one; give 1, or another mode"));
        }
        if self.holes && window(cap) > WIDEST_WITH_HOLES {
            let message = format!("starts of holes have 16 bits; give a bdp-cap of up to {WIDEST_WITH_HOLES}");
            return Err(SettingError::new("holes", message));
        }
        if let Rto::Dynamic(dynamic) = self.rto {
            dynamic.check()?;
        }
        if self.nack_threshold > 1 && self.mode == Mode::Hls {
            return Err(SettingError::new("nack-threshold", "the hardware code has none; give 1, or another mode"));
        }
        let (timer, estimator) = self.timing()?;
        let Self { mode, rto_low_packets, retransmit_delay, sack, nack_threshold, time_stamps, holes, probes, .. } =
            *self;
        Ok(IrnParams {
            mode,
            timer,
            estimator,
            rto_low_packets,
            cap,
            retransmit_delay,
            sack,
            nack_threshold,
            partial_acks,
            time_stamps,
            holes,
            probes,
        })
    }
    fn bdp_cap(&self) -> Option<u32> {
        self.bdp_cap.resolve(|| None)
    }
    fn acknowledges(&self) -> bool {
        true
    }
    fn extra_header(&self) -> Bytes {
        self.extra_header
    }
    fn footprint(&self) -> Footprint {
        footprint::of(self)
    }
    fn extends_nacks(&self) -> bool {
        true
    }
    fn longest_timeout(&self) -> Duration {
        let given = |timeout: Setting<Duration>| timeout.resolve(|| None).unwrap_or(Duration::ZERO);
        let dynamic = match self.rto {
            Rto::Static => Duration::ZERO,
            Rto::Dynamic(dynamic) => dynamic.max.max(given(dynamic.initial)),
        };
        given(self.rto_high).max(given(self.rto_low)).max(dynamic).saturating_add(self.retransmit_delay)
    }
    fn shortest_timeout(&self) -> Option<(&'static str, Duration)> {
        let is_static = self.timeouts == Timeouts::On && self.rto == Rto::Static;
        self.rto_low.resolve(|| None).filter(|_| is_static).map(|rto| ("rto-low", rto))
    }
    fn forget_pfc(&mut self) {
        self.timeouts = Timeouts::Auto;
    }
    fn wire_id(&self) -> Option<u8> {
        Some(1)
    }
}
