//! Settings of TCP.

use alloc::format;
use selvedge_units::{Bytes, Chance, Duration, Setting};

use super::congestion::{CongestionConfig, CongestionParams, Window, new_reno};
use super::rto::RetransmissionTimeout;
use super::sending::Settings;
use crate::congestion::{Marking, Tuning};
use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};

/// TCP, as used by iWARP or by a kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct TcpConfig {
    /// Congestion control. Default: NewReno.
    pub congestion: CongestionConfig,
    /// Payload of a full segment, 64 B to 9000 B; the MSS option announces it plus the bytes of the time stamps.
    /// Default: "auto", `nic.mtu`.
    pub mss: Setting<Bytes>,
    /// Segments that may be sent before the first acknowledgement. Default: "auto", 10, as many as
    /// `initial-window-cap` allows, and at least 2.
    pub initial_window: Setting<u32>,
    /// Most octets of an initial window that is "auto": with "auto" 14600 (RFC 6928, section 2). Default: off, as in
    /// Linux.
    pub initial_window_cap: Setting<Bytes>,
    /// Slow start threshold before the first loss. Default: off, unlimited (RFC 5681, section 3.1).
    pub initial_ssthresh: Setting<Bytes>,
    /// Segments by which one acknowledgement may enlarge the window in slow start: 1 in RFC 5681, 2 in RFC 3465; "off",
    /// as many as acknowledged, in Linux. Default: "auto", 8 with HyStart++ (RFC 9406, section 4.3), else 1.
    pub slow_start_limit: Setting<u32>,
    /// Growth of the round-trip time that ends slow start (HyStart++'s MIN_RTT_THRESH, RFC 9406), or an eighth of the
    /// round-trip time up to four times as much. "off": slow start ends by losses and marks only. Default: "auto", 4
    /// ms, which no fabric's queue reaches.
    pub hystart: Setting<Duration>,
    /// Smallest retransmission timeout. Default: "auto", the maximum round-trip time with one congested link (IRN's
    /// RTO_high), packets waiting in EQIFs included, and at least one and a half of an empty network's (of three such
    /// round trips through EQDS tunnels that do not burst, where data and acknowledgement wait for credit): the
    /// acknowledgement's delay may be a quarter of the timeout. RFC 6298 says 1 s, Linux 200 ms.
    pub min_rto: Setting<Duration>,
    /// Largest retransmission timeout. Default: 60s (RFC 6298, rule 2.5).
    pub max_rto: Duration,
    /// Retransmission timeout before the first sample. Default: "auto", 1 s with a handshake (RFC 6298, rule 2.1), else
    /// `min-rto`: the connection counts as an old one.
    pub initial_rto: Setting<Duration>,
    /// How losses are detected before a timeout. Without SACK always by duplicate acknowledgements. Default: "rack".
    pub loss_detection: LossDetection,
    /// Whether the tail of a flight whose acknowledgement does not come is probed after two round trips (RFC 8985,
    /// section 7). Only with RACK. Default: true.
    pub tail_loss_probe: bool,
    /// Duplicate acknowledgements that trigger fast retransmit; with RACK, segments SACKed after which reordering is
    /// not waited for unless seen before. Default: 3 (RFC 5681, section 3.2).
    pub dup_thresh: u32,
    /// Whether fast recovery sends in proportion to what is delivered (RFC 9937). Only with SACK. Default: true.
    pub prr: bool,
    /// Whether reductions of the window are taken back if time stamps show that nothing was lost (Eifel, RFC 3522 and
    /// 4015). Only with time stamps. Default: true.
    pub eifel: bool,
    /// Selective acknowledgements (RFC 2018) and recovery by them (RFC 6675); without, NewReno's (RFC 6582). Default:
    /// true.
    pub sack: bool,
    /// New segments on the first duplicate acknowledgements (RFC 3042). Default: true.
    pub limited_transmit: bool,
    /// Time stamps (RFC 7323): 12 bytes per segment, round-trip samples of retransmissions, too, protection against
    /// wrapped sequence numbers. Default: true.
    pub timestamps: bool,
    /// Longest wait of an acknowledgement for a second segment, at most 500 ms (RFC 1122, section 4.2.3.2). Default:
    /// "auto", a quarter of `min-rto` up to 40 ms, of the shortest of any host. "off" acknowledges each segment.
    pub delayed_ack: Setting<Duration>,
    /// Full segments after which an acknowledgement is sent at once. Default: 2 (RFC 5681, section 4.2).
    pub ack_every: u32,
    /// Receive buffer, up to 1 GiB: the largest window. Default: "auto", eight bandwidth-delay
    /// products, at least 64 KiB.
    pub receive_buffer: Setting<Bytes>,
    /// Window scaling (RFC 7323, section 2), without which windows end at 64 KiB. Default: true.
    pub window_scaling: bool,
    /// Nagle's algorithm (RFC 9293, section 3.7.4): a short segment waits while anything is in flight.
    /// Default: false, as for messages.
    pub nagle: bool,
    /// ECN (RFC 3168; with DCTCP RFC 8257). Default: "auto", on with DCTCP.
    pub ecn: Ecn,
    /// Whether a flow begins with a three-way handshake. Default: false: connections exist already.
    pub handshake: bool,
    /// Whether a flow ends with FINs. Default: false.
    pub fin: bool,
    /// Connections that carry a flow together, each on its own path: 1 to 8. More than 1 means MPTCP (RFC 8684),
    /// modelled as far as congestion is concerned: data goes to any subflow with room, and is not retransmitted on
    /// another. Default: 1.
    pub subflows: u8,
    /// Time for which the end that closed first remembers the connection: twice the segment lifetime. Default: 1ms; RFC
    /// 9293 says 4 minutes.
    pub time_wait: Duration,
}

/// Detection of losses before a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum LossDetection {
    /// By time: what was sent sufficiently long before something that arrived is lost (RFC 8985).
    #[default]
    Rack,
    /// By number: duplicate acknowledgements, or as much SACKed (RFC 5681, 6675).
    Dupacks,
}

/// Explicit congestion notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Ecn {
    /// On with DCTCP, else off.
    #[default]
    Auto,
    /// Packets are ECN-capable, and marks are echoed and obeyed.
    On,
    /// Packets are not ECN-capable.
    Off,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            congestion: new_reno::Config {}.into(),
            mss: Setting::Auto,
            initial_window: Setting::Auto,
            initial_window_cap: Setting::Off,
            initial_ssthresh: Setting::Off,
            slow_start_limit: Setting::Auto,
            hystart: Setting::Auto,
            min_rto: Setting::Auto,
            max_rto: Duration::from_ms(60_000),
            initial_rto: Setting::Auto,
            loss_detection: LossDetection::Rack,
            tail_loss_probe: true,
            dup_thresh: 3,
            prr: true,
            eifel: true,
            sack: true,
            limited_transmit: true,
            timestamps: true,
            delayed_ack: Setting::Auto,
            ack_every: 2,
            receive_buffer: Setting::Auto,
            window_scaling: true,
            nagle: false,
            ecn: Ecn::Auto,
            handshake: false,
            fin: false,
            subflows: 1,
            time_wait: Duration::from_ms(1),
        }
    }
}

/// Parameters of both ends of a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Params {
    /// Payload of a full segment, in octets.
    pub mss: u64,
    /// Whether a flow begins with a three-way handshake.
    pub handshake: bool,
    /// Whether a flow ends with FINs.
    pub fin: bool,
    /// Connections that carry a flow together.
    pub subflows: u8,
    pub(super) congestion: CongestionParams,
    pub(super) window: Window,
    pub(super) hystart: Option<Duration>,
    pub(super) rto: RetransmissionTimeout,
    pub(super) settings: Settings,
    /// Octets of the receive buffer.
    pub(super) buffer: u64,
    /// The window scale that lets the window field express the buffer (RFC 7323, section 2.3), if windows are scaled.
    pub(super) scale: Option<u8>,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) ecn: bool,
    pub(super) time_wait: Duration,
}

impl Params {
    /// Returns the value of the MSS option: the payload of segments without options (RFC 6691).
    pub(super) fn announced_mss(&self) -> u16 {
        (self.mss + if self.timestamps { TcpConfig::STAMP } else { 0 }) as u16
    }
}

impl TcpConfig {
    /// Bytes of the time stamps option and its padding.
    pub(super) const STAMP: u64 = 12;
    /// Most subflows of a connection.
    pub const MOST_SUBFLOWS: u8 = 8;
    const LARGEST_BUFFER: Bytes = Bytes::new(1 << 30);
    const LARGEST_UNSCALED: Bytes = Bytes::new(u16::MAX as u64);

    /// Replaces every "auto"; `mtu` is the NIC's payload of a full packet.
    pub fn resolve(&mut self, fabric: &Fabric, mtu: Bytes) {
        self.congestion.resolve(fabric);
        let mss = resolve(&mut self.mss, || Some(mtu)).map_or(0, Bytes::get);
        let cap = resolve(&mut self.initial_window_cap, || Some(Bytes::new(14_600))).map_or(u64::MAX, Bytes::get);
        resolve(&mut self.initial_window, || Some((cap / mss.max(1)).clamp(2, 10) as u32));
        resolve(&mut self.initial_ssthresh, || None);
        resolve(&mut self.hystart, || Some(Duration::from_ms(4)));
        let limit = if self.hystart == Setting::Off { 1 } else { 8 };
        resolve(&mut self.slow_start_limit, || Some(limit));
        let least = fabric.congested_rtt.max(fabric.base_rtt.saturating_mul(3) / 2);
        let min_rto = resolve(&mut self.min_rto, || Some(least)).unwrap_or(Duration::ZERO);
        let first = if self.handshake { Duration::from_ms(1_000) } else { min_rto };
        resolve(&mut self.initial_rto, || Some(first.max(min_rto)));
        resolve(&mut self.delayed_ack, || Some((min_rto / 4).min(Duration::from_ms(40))));
        resolve(&mut self.receive_buffer, || {
            let most = if self.window_scaling { Self::LARGEST_BUFFER } else { Self::LARGEST_UNSCALED };
            Some((fabric.bdp * 8).max(Bytes::new(1 << 16)).min(most))
        });
        if self.ecn == Ecn::Auto {
            self.ecn = if matches!(self.congestion, CongestionConfig::Dctcp(_)) { Ecn::On } else { Ecn::Off };
        }
    }

    /// Returns the marking that switches use for TCP with ECN: for DCTCP above [its
    /// threshold](Fabric::dctcp_threshold), rounded up to whole frames; else a RED curve.
    pub fn marking(&self, fabric: &Fabric) -> Option<Marking> {
        let threshold = fabric.dctcp_threshold(fabric.line_rate).get();
        let threshold = fabric.frame * threshold.div_ceil(fabric.frame.get().max(1)).max(1);
        let step = Marking { k_min: threshold, k_max: threshold, p_max: Chance::ALWAYS, rate: fabric.line_rate };
        let is_dctcp = matches!(self.congestion, CongestionConfig::Dctcp(_));
        (self.ecn == Ecn::On).then_some(if is_dctcp { step } else { Marking::DCQCN })
    }

    /// Checks the resolved settings.
    ///
    /// # Errors
    /// Those of [`TcpConfig::params`].
    pub fn check(&self) -> Result<(), SettingError> {
        self.params().map(drop)
    }

    /// Checks the resolved settings, and returns the parameters that they make.
    ///
    /// # Errors
    /// If a setting is out of range, contradicts another, or still says "auto".
    pub fn params(&self) -> Result<Params, SettingError> {
        let wrong = |key, message: alloc::string::String| Err(SettingError::new(key, message));
        let mss = match known(self.mss, "mss")? {
            Some(mss) if (Bytes::new(64)..=Bytes::new(9_000)).contains(&mss) => mss.get(),
            Some(mss) => return wrong("mss", format!("{mss} is out of range: a segment carries 64B to 9KB")),
            None => return wrong("mss", "a segment carries something; give 64B to 9KB".into()),
        };
        let Some(initial_window @ 1..) = known(self.initial_window, "initial-window")? else {
            return wrong("initial-window", "nothing can begin with nothing; give 1 segment or more".into());
        };
        let hystart = known(self.hystart, "hystart")?;
        if hystart == Some(Duration::ZERO) {
            return wrong("hystart", "every round trip would be too long; give more than 0, or \"off\"".into());
        }
        let limit = known(self.slow_start_limit, "slow-start-limit")?;
        if limit == Some(0) {
            return wrong("slow-start-limit", "a window that never grows; give 1 segment or more, or \"off\"".into());
        }
        let min_rto = known(self.min_rto, "min-rto")?.unwrap_or(Duration::ZERO);
        check_timeout("min-rto", min_rto)?;
        if self.max_rto < min_rto {
            return wrong("max-rto", format!("{} is less than min-rto, {min_rto}; give more", self.max_rto));
        }
        let initial_rto = known(self.initial_rto, "initial-rto")?.unwrap_or(Duration::ZERO);
        check_timeout("initial-rto", initial_rto)?;
        if self.dup_thresh == 0 {
            return wrong(
                "dup-thresh",
                "fast retransmit begins with a duplicate acknowledgement; give 1 or more".into(),
            );
        }
        if !(1..=Self::MOST_SUBFLOWS).contains(&self.subflows) {
            return wrong("subflows", format!("found {}, expected 1 to {}", self.subflows, Self::MOST_SUBFLOWS));
        }
        let ack_delay = self.ack_delay()?;
        let buffer = self.buffer(mss)?;
        if matches!(self.congestion, CongestionConfig::Dctcp(_)) && self.ecn == Ecn::Off {
            return wrong(
                "ecn",
                "DCTCP without marks hears nothing; give \"on\", or another congestion control".into(),
            );
        }
        let congestion = self.congestion.params()?;
        let ssthresh = known(self.initial_ssthresh, "initial-ssthresh")?.map_or(u64::MAX, Bytes::get);
        let segments = |count: u32| u64::from(count) * mss;
        let scale = (0..14).find(|shift: &u8| buffer >> shift <= u64::from(u16::MAX)).unwrap_or(14);
        Ok(Params {
            mss,
            handshake: self.handshake,
            fin: self.fin,
            subflows: self.subflows,
            congestion,
            window: Window::new(segments(initial_window), ssthresh, mss, limit.map_or(u64::MAX, segments)),
            hystart,
            rto: RetransmissionTimeout::new(initial_rto, min_rto, self.max_rto),
            settings: Settings {
                threshold: self.dup_thresh,
                has_limited_transmit: self.limited_transmit,
                has_nagle: self.nagle,
                initial_window: segments(initial_window),
                initial_rto,
                has_sack: false,
                has_timestamps: false,
                has_ecn: false,
                has_rack: self.loss_detection == LossDetection::Rack,
                has_tail_loss_probe: self.tail_loss_probe,
                has_prr: self.prr,
                has_eifel: self.eifel,
                ack_delay,
                ack_every: segments(self.ack_every),
            },
            buffer,
            scale: self.window_scaling.then_some(scale),
            sack: self.sack,
            timestamps: self.timestamps,
            ecn: match self.ecn {
                Ecn::Auto => return Err(SettingError::left_auto("ecn")),
                ecn => ecn == Ecn::On,
            },
            time_wait: self.time_wait,
        })
    }

    /// Returns the longest delay of acknowledgements, zero without.
    fn ack_delay(&self) -> Result<Duration, SettingError> {
        let delay = known(self.delayed_ack, "delayed-ack")?;
        if let Some(delay) = delay
            && (delay.is_zero() || delay > Duration::from_ms(500))
        {
            let message = format!("{delay} is out of range: give up to 500ms (RFC 1122), or \"off\"");
            return Err(SettingError::new("delayed-ack", message));
        }
        if self.ack_every == 0 {
            return Err(SettingError::new("ack-every", "something must be received first; give 1 or more"));
        }
        Ok(delay.unwrap_or(Duration::ZERO))
    }

    /// Returns the octets of the receive buffer.
    fn buffer(&self, mss: u64) -> Result<u64, SettingError> {
        let most = if self.window_scaling { Self::LARGEST_BUFFER } else { Self::LARGEST_UNSCALED };
        let message = match known(self.receive_buffer, "receive-buffer")? {
            Some(buffer) if buffer > most => {
                let why = if self.window_scaling { "with window scaling" } else { "without window scaling" };
                format!("{buffer} cannot be announced: at most {most} {why}")
            }
            Some(buffer) if buffer.get() >= mss => return Ok(buffer.get()),
            _ => format!("less than one segment of {mss}B; give more"),
        };
        Err(SettingError::new("receive-buffer", message))
    }

    /// Returns the bytes of a data segment's TCP header.
    pub fn header(&self) -> u64 {
        20 + if self.timestamps { Self::STAMP } else { 0 }
    }
}
