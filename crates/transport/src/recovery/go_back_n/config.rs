//! Settings of go-back-N.

use alloc::string::String;

use selvedge_units::{Bytes, Duration, Setting};

use crate::bitmap::WIDEST_WINDOW;
use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};
use crate::footprint::{Footprint, Scope};
use crate::recovery::timer::{RtoRestart, Timer, rto_low};
use crate::recovery::{Scheme, SchemeParams};

/// Go-back-N, the loss recovery of RoCE NICs.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct GoBackNConfig {
    /// The retransmission timeout. Default: "auto", which is RTO_high (the maximum round-trip time with one congested
    /// link; IRN, section 4.1) without PFC; with PFC, where pauses of any length delay acknowledgements, 67.1 ms or
    /// RTO_high if that is longer (InfiniBand's timeout code 14, which perftest and many applications ask for). Off
    /// where nothing is acknowledged, and with PFC where there is a rto-low.
    pub rto: Setting<Duration>,
    /// A shorter timeout when few packets are in flight, like IRN's RTO_low: "IRN with go-back-N" keeps it (IRN,
    /// section 4.3). Default: "off": RoCE has one timeout. "auto": like IRN's, 100us, or rto where that is less; off
    /// where rto is.
    pub rto_low: Setting<Duration>,
    /// N: rto-low applies when at most this many packets are in flight. Default: 3.
    pub rto_low_packets: u32,
    /// The events that restart the retransmission timer while packets are in flight; going back always does. Default:
    /// progress.
    pub rto_restart: RtoRestart,
    /// The time that a sender needs to process a NACK; it sends nothing meanwhile. Default: 0us. NICs do not say.
    pub nack_processing: Duration,
    /// The data packets that are acknowledged. Default: "auto", which is coalesced, or per-packet where congestion
    /// control or bdp-cap needs that.
    pub acks: Acks,
    /// With coalesced acknowledgements: the last packet of a message is acknowledged, and any other once this many have
    /// come since the last acknowledgement. Default: 256; 1 to 65,535. NICs do not say; Linux and UCX let ConnectX ask
    /// for an acknowledgement every 2^8 packets (`log_ack_req_freq`).
    pub ack_every: u16,
    /// With coalesced acknowledgements: the time after the last one that also makes one due, so that timeouts see
    /// progress of slow flows. Default: "auto", the round-trip time of the longest empty path. "off": only ack-every.
    pub ack_interval: Setting<Duration>,
    /// The frequency of reports of a gap. Default: once-per-gap.
    pub nack: Nacks,
    /// Packets a flow may have in flight. Default: "off": RoCE has no BDP-FC. "auto": the path's bandwidth-delay
    /// product over the largest data frame, like in IRN.
    pub bdp_cap: Setting<u32>,
}

impl Default for GoBackNConfig {
    fn default() -> Self {
        Self {
            rto: Setting::Auto,
            rto_low: Setting::Off,
            rto_low_packets: 3,
            rto_restart: RtoRestart::Progress,
            nack_processing: Duration::ZERO,
            acks: Acks::Auto,
            ack_every: 256,
            ack_interval: Setting::Auto,
            nack: Nacks::OncePerGap,
            bdp_cap: Setting::Off,
        }
    }
}

/// The data packets that are acknowledged. In each mode, a duplicate is acknowledged unless nothing is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Acks {
    /// Coalesced, like in RoCE NICs; per packet for congestion control that needs acknowledgements, or with a cap on
    /// packets in flight.
    #[default]
    Auto,
    /// Each packet.
    PerPacket,
    /// The last packet of each message, and others from time to time: see `ack-every` and `ack-interval`.
    Coalesced,
    /// None with PFC, each packet without (the baseline of the IRN paper, sections 4.1 and 5.2); each packet, too, for
    /// congestion control that needs acknowledgements.
    WithoutPfc,
    /// None: only gaps are reported. A lost tail, or a lost NACK without packets behind it, is then never repaired, so
    /// the fabric must not drop packets.
    None,
}

/// The least timeout with PFC: 4.096 us times 2 to the 14th (InfiniBand, volume 1, 9.7.6.1.3).
const RTO_WITH_PFC: Duration = Duration::from_ns(4_096 << 14);

/// The frequency of reports of a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Nacks {
    /// One NAK until the expected packet arrives (InfiniBand). If that NAK or the packet's retransmission is lost, only
    /// the timeout repairs the loss.
    #[default]
    OncePerGap,
    /// Every out-of-order packet.
    EveryPacket,
    /// At the first packet behind a gap, and while packets keep coming, again each time this much
    /// time has passed (ns-3's RDMA models).
    Interval(Duration),
    /// At most one per this much time, for any gap: the report of a packet lost soon after a NACK waits. Another
    /// reading of a "NACK interval", for the schemes that MELO is compared with (section 4.1.1).
    Paced(Duration),
}

/// Parameters of both ends of go-back-N.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GoBackNParams {
    pub(super) timer: Timer,
    pub(super) nack_processing: Duration,
    /// Packets in flight; `None` is no limit.
    cap: Option<u32>,
    /// Packets in order per acknowledgement: 1 to acknowledge each, 0 for none.
    pub(super) ack_every: u16,
    /// The time after an acknowledgement that also makes one due.
    pub(super) ack_interval: Duration,
    /// The time after a NACK in which its gap triggers no other.
    pub(super) nack_interval: Duration,
    /// Whether a NACK also suppresses NACKs of other gaps.
    pub(super) paced: bool,
}

impl GoBackNParams {
    /// Returns the parameters of go-back-N as in the InfiniBand specification: each packet is acknowledged, each gap
    /// reported once; with the timeout `rto`, if any, and at most `cap` packets in flight.
    pub fn standard(rto: Option<Duration>, cap: u32) -> Self {
        Self {
            timer: Timer::single(rto.unwrap_or(Duration::MAX)),
            nack_processing: Duration::ZERO,
            cap: Some(cap),
            ack_every: 1,
            ack_interval: Duration::MAX,
            nack_interval: Duration::MAX,
            paced: false,
        }
    }
    /// Returns the most packets in flight. PSN arithmetic limits only flows that wait for acknowledgements.
    pub(super) fn window(&self) -> u64 {
        let widest = if self.acknowledges() { WIDEST_WINDOW } else { u64::MAX };
        self.cap.map_or(widest, u64::from)
    }
}

impl SchemeParams for GoBackNParams {
    fn bdp_cap(&self) -> Option<u32> {
        self.cap
    }
    fn acknowledges(&self) -> bool {
        self.ack_every > 0
    }
    fn acknowledges_each(&self) -> bool {
        self.ack_every == 1
    }
    fn wire_id(&self) -> Option<u8> {
        None
    }
}

impl Scheme for GoBackNConfig {
    type Params = GoBackNParams;

    fn resolve(&mut self, fabric: &Fabric) {
        self.acks = match self.acks {
            Acks::Auto if !fabric.acks && self.bdp_cap == Setting::Off => Acks::Coalesced,
            Acks::WithoutPfc if fabric.pfc && !fabric.acks => Acks::None,
            Acks::Auto | Acks::WithoutPfc => Acks::PerPacket,
            chosen => chosen,
        };
        resolve(&mut self.ack_interval, || Some(fabric.base_rtt));
        // The timeout is at least the shorter timeout.
        let low = self.rto_low.resolve(|| None).unwrap_or(Duration::ZERO);
        let least = if fabric.pfc { RTO_WITH_PFC.max(low) } else { low };
        // IRN with go-back-N keeps IRN's timeouts, which IRN has only without PFC.
        let has_timeouts = self.acks != Acks::None && !(fabric.pfc && self.rto_low != Setting::Off);
        let high = resolve(&mut self.rto, || has_timeouts.then_some(fabric.congested_rtt.max(least)));
        resolve(&mut self.rto_low, || high.map(|high| rto_low(fabric, high)));
        resolve(&mut self.bdp_cap, || Some(fabric.frames_in_flight().min(WIDEST_WINDOW) as u32));
    }
    fn params(&self) -> Result<GoBackNParams, SettingError> {
        if self.ack_every == 0 {
            return Err(SettingError::new("ack-every", "an acknowledgement every 0 packets is none; give 1 or more"));
        }
        let high = known(self.rto, "rto")?;
        if let Some(rto) = high {
            check_timeout("rto", rto)?;
            if self.acks == Acks::None {
                return Err(SettingError::new(
                    "rto",
                    "without acknowledgements every flow would time out for ever; set rto to \"off\", or acks to \"per-packet\"",
                ));
            }
        }
        let low = known(self.rto_low, "rto-low")?;
        if let Some(low) = low {
            check_timeout("rto-low", low)?;
            let message = match high {
                Some(high) if low > high => alloc::format!("{low} is no time up to rto, {high}; give one, or \"off\""),
                Some(_) => String::new(),
                None => "it shortens rto, which is off; set both, or neither".into(),
            };
            if !message.is_empty() {
                return Err(SettingError::new("rto-low", message));
            }
        }
        let cap = known(self.bdp_cap, "bdp-cap")?;
        if let Some(cap) = cap {
            if cap == 0 || u64::from(cap) > WIDEST_WINDOW {
                let message = alloc::format!("{cap} packets; give 1 to {WIDEST_WINDOW}, or \"off\"");
                return Err(SettingError::new("bdp-cap", message));
            }
            if self.acks == Acks::None {
                return Err(SettingError::new(
                    "bdp-cap",
                    "without acknowledgements a cap stops every flow; set it to \"off\", or acks to \"per-packet\"",
                ));
            }
            if self.acks == Acks::Coalesced && u32::from(self.ack_every) > cap {
                let every = self.ack_every;
                let message = alloc::format!(
                    "one acknowledgement every {every} packets comes too late for a cap of {cap} (bdp-cap): the flow stops \
                     before; give at most {cap}, or set acks to \"per-packet\""
                );
                return Err(SettingError::new("ack-every", message));
            }
        }
        let (ack_every, ack_interval) = match self.acks {
            Acks::Auto | Acks::WithoutPfc => return Err(SettingError::left_auto("acks")),
            Acks::None => (0, None),
            Acks::PerPacket => (1, None),
            Acks::Coalesced => (self.ack_every, known(self.ack_interval, "ack-interval")?),
        };
        let nack_interval = match self.nack {
            Nacks::OncePerGap => Duration::MAX,
            Nacks::EveryPacket => Duration::ZERO,
            Nacks::Interval(interval) | Nacks::Paced(interval) => interval,
        };
        let high = high.unwrap_or(Duration::MAX);
        let timer = low.map_or(Timer::single(high), |low| Timer::new(low, high, self.rto_low_packets));
        Ok(GoBackNParams {
            timer: timer.restarted_by(self.rto_restart),
            nack_processing: self.nack_processing,
            cap,
            ack_every,
            ack_interval: ack_interval.unwrap_or(Duration::MAX),
            nack_interval,
            paced: matches!(self.nack, Nacks::Paced(_)),
        })
    }
    fn bdp_cap(&self) -> Option<u32> {
        self.bdp_cap.resolve(|| None)
    }
    fn acknowledges(&self) -> bool {
        self.acks != Acks::None
    }
    fn acknowledges_each(&self) -> bool {
        self.acks == Acks::PerPacket
    }
    fn extra_header(&self) -> Bytes {
        Bytes::ZERO
    }
    /// Returns the state beyond that of RoCE NICs: only the parts that "IRN with go-back-N" takes over from IRN.
    fn footprint(&self) -> Footprint {
        let mut footprint = Footprint::default();
        if let Setting::Value(_) = self.bdp_cap {
            footprint = footprint.with("bdp-cap", Scope::Shared, 32, "BDP cap");
        }
        if let Setting::Value(_) = self.rto_low {
            footprint = footprint
                .with("flag", Scope::QueuePair, 2, "flag: the short timeout runs, at requester and responder")
                .with("rto-low", Scope::Shared, 32, "RTO_low")
                .with("n", Scope::Shared, 16, "N, up to which RTO_low applies");
        }
        footprint
    }
    fn keeps_out_of_order(&self) -> bool {
        false
    }
    fn survives_reordering(&self) -> bool {
        self.rto != Setting::Off || self.nack == Nacks::EveryPacket
    }
    fn longest_timeout(&self) -> Duration {
        let given = |timeout: Setting<Duration>| timeout.resolve(|| None).unwrap_or(Duration::ZERO);
        given(self.rto).max(given(self.rto_low))
    }
    fn shortest_timeout(&self) -> Option<(&'static str, Duration)> {
        let low = self.rto_low.resolve(|| None).map(|rto| ("rto-low", rto));
        low.or_else(|| self.rto.resolve(|| None).map(|rto| ("rto", rto)))
    }
    fn forget_pfc(&mut self) {
        self.rto = Setting::Auto;
    }
    fn wire_id(&self) -> Option<u8> {
        None
    }
}
