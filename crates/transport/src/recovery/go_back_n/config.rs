//! Settings of go-back-N.

use alloc::string::String;

use selvedge_units::{Bytes, Duration, Setting};

use crate::bitmap::WIDEST_WINDOW;
use crate::fabric::{Fabric, SettingError, check_timeout, resolve};
use crate::footprint::{Footprint, Scope};
use crate::recovery::Scheme;
use crate::recovery::timer::rto_low;

/// Go-back-N, as in RoCE NICs.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct GoBackNConfig {
    /// The retransmission timeout. Default: "auto", which is RTO_high (the maximum round-trip time
    /// with one congested link) without PFC, and off with it (IRN, section 4.1).
    pub rto: Setting<Duration>,
    /// A shorter timeout when few packets are in flight, as IRN's RTO_low: "IRN with go-back-N"
    /// keeps it (IRN, section 4.3). Default: "off": RoCE has one timeout. "auto": as IRN's, 100us, or rto where that
    /// is less; off where rto is.
    pub rto_low: Setting<Duration>,
    /// N: rto-low applies when at most this many packets are in flight. Default: 3.
    pub rto_low_packets: u32,
    /// Whether data packets are acknowledged. Default: "auto", which is none with PFC (the paper's
    /// baseline, section 5.2) unless congestion control needs them, and per-packet without.
    pub acks: Acks,
    /// How often a gap is reported. Default: once-per-gap.
    pub nack: Nacks,
    /// Packets a flow may have in flight. Default: "off": RoCE has no BDP-FC. "auto": the
    /// path's bandwidth-delay product over the largest data frame, as in IRN.
    pub bdp_cap: Setting<u32>,
}

impl Default for GoBackNConfig {
    fn default() -> Self {
        Self {
            rto: Setting::Auto,
            rto_low: Setting::Off,
            rto_low_packets: 3,
            acks: Acks::Auto,
            nack: Nacks::OncePerGap,
            bdp_cap: Setting::Off,
        }
    }
}

/// Whether data packets are acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Acks {
    /// As the scheme's paper has it: none with PFC, per packet without; per packet, too, for congestion
    /// control that lives by acknowledgements.
    #[default]
    Auto,
    /// Each one.
    PerPacket,
    /// None: only gaps are reported. A lost tail, or a lost NACK behind which nothing follows, is
    /// then lost for good, so this wants a fabric that drops nothing.
    None,
}

/// How often a gap is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Nacks {
    /// One NAK until the expected packet arrives (InfiniBand). If that NAK or the packet's
    /// retransmission is lost, only the timeout helps.
    #[default]
    OncePerGap,
    /// Every out-of-order packet.
    EveryPacket,
    /// At the first packet behind a gap, and while packets keep coming, again each time this much
    /// time has passed (ns-3's RDMA models).
    Interval(Duration),
    /// At most one per this much time, whichever gap it reports: what is lost soon after a NACK waits. Another
    /// reading of a "NACK interval", for what MELO compares itself with (section 4.1.1).
    Paced(Duration),
}

impl Scheme for GoBackNConfig {
    fn resolve(&mut self, fabric: &Fabric) {
        // No shorter than what shortens it.
        let low = self.rto_low.resolve(|| None).unwrap_or(Duration::ZERO);
        resolve(&mut self.rto, || (!fabric.pfc).then_some(fabric.congested_rtt.max(low)));
        let high = self.rto.resolve(|| None);
        resolve(&mut self.rto_low, || high.map(|high| rto_low(fabric, high)));
        resolve(&mut self.bdp_cap, || Some(fabric.frames_in_flight().min(WIDEST_WINDOW) as u32));
        if self.acks == Acks::Auto {
            self.acks = if fabric.pfc && !fabric.acks { Acks::None } else { Acks::PerPacket };
        }
    }
    fn check(&self) -> Result<(), SettingError> {
        if let Setting::Value(rto) = self.rto {
            check_timeout("rto", rto)?;
            if self.acks == Acks::None {
                return Err(SettingError::new(
                    "rto",
                    "without acknowledgements every flow would time out for ever; set rto to \"off\", or acks to \"per-packet\"",
                ));
            }
        }
        if let Setting::Value(low) = self.rto_low {
            check_timeout("rto-low", low)?;
            let message = match self.rto {
                Setting::Value(high) if low > high => {
                    alloc::format!("{low} is no time up to rto, {high}; give one, or \"off\"")
                }
                Setting::Value(_) => String::new(),
                _ => "it shortens rto, which is off; set both, or neither".into(),
            };
            if !message.is_empty() {
                return Err(SettingError::new("rto-low", message));
            }
        }
        if let Setting::Value(cap) = self.bdp_cap {
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
        }
        Ok(())
    }
    fn bdp_cap(&self) -> Setting<u32> {
        self.bdp_cap
    }
    fn acknowledges(&self) -> bool {
        self.acks != Acks::None
    }
    fn extra_header(&self) -> Bytes {
        Bytes::ZERO
    }
    /// RoCE NICs keep all of it already; what "IRN with go-back-N" takes over from IRN comes on top.
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
}
