//! Settings of EQDS.

use alloc::format;
use alloc::string::String;

use selvedge_units::{Bytes, Duration, Rate, Setting, Toggle};
use selvedge_wire::eqds::Layout;

use super::eqif::EqifConfig;
use super::life::{Life, LifeConfig};
use super::loss::{Loss, LossConfig, Source};
use super::numbers::Numbers;
use super::pacer::Pulls;
use super::policy::Policy;
use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};

/// EQDS: an edge-queued datagram service (Olteanu et al., NSDI'22).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct EqdsConfig {
    /// Whether a new tunnel sends its first window unsolicited, as NDP does, or requests credit first (section 5).
    /// Default: "auto", true where switches trim packets.
    pub burst: Toggle,
    /// Bytes that a new or resumed tunnel sends unsolicited if it bursts; at most `window` counts. A small one lets
    /// short messages go at once where switches do not trim. Default: "auto", `window`.
    pub first_window: Setting<Bytes>,
    /// Credit of each tunnel, rounded up to whole packets, agreed between both ends. Default: "auto", the largest
    /// bandwidth-delay product of any path, serialisation included; at least 10 packets (section 5: "typically 10 to 30
    /// packets"). Tunnels inside servers, where NICs are faster, use the paths there.
    pub window: Setting<Bytes>,
    /// Packets that a tunnel may have in flight and the receiver keeps out of order: 2 to 512, half an epoch. Default:
    /// "auto", twice the window, at least 50 (section 8.5: 50 with DPDK, 150 in the kernel).
    pub reorder: Setting<u32>,
    /// Rate of the frames arriving at a host, gaps included: those that it grants credit for and the control frames
    /// that answer its own; never more than its own link's. Default: "auto", the link's rate (section 5: "the aggregate
    /// arrival rate matches the incoming link speed").
    pub pull_rate: Setting<Rate>,
    /// Most time lost by late wake-ups of the pacer that is made up with pulls sent at once, up to 1s: for hosts whose
    /// timers are late. Default: 0s; the timers of a simulation never are.
    pub pull_catch_up: Duration,
    /// Most quanta that one PULL grants, 1 to 1024: with more there are fewer PULLs, and burstier senders. Default: 1
    /// (section 5: "one MTU of credit" each "MTU-time").
    pub pull_quanta: u32,
    /// Sharing of a receiver's link among its senders. Default: fair (section 5).
    pub policy: Policy,
    /// Retransmission timeout of packets and requests. Default: "auto", the maximum round-trip time: where switches
    /// trim, with all data queues on the path full, and one header queue; else with one congested link. The paper gives
    /// none.
    pub rto: Setting<Duration>,
    /// Detection of lost packets. Default: by `rto`, and by reports of trimmed packets.
    pub loss: LossConfig,
    /// Origin of the bounds of tunnels. Measured: a tunnel's credit is what its round trips need at `pull-rate`, its
    /// packets in flight twice that (both within `window` and `reorder`), its reorder queue waits for as long as holes
    /// took to fill (within `reorder-timeout`), and busy times are computed from the rate of the pulls that left.
    /// Default: fixed.
    pub bounds: Source,
    /// Longest busy time that a sender believes. Default: "off", any.
    pub busy_ceiling: Setting<Duration>,
    /// End of idle tunnels and of tunnels to hosts that do not answer. Default: neither ends.
    pub life: LifeConfig,
    /// Timeouts in a row after which the tunnel is re-established (appendix A: "a large number"); at least 1. Default:
    /// 16.
    pub max_timeouts: u32,
    /// Bytes that may arrive before they are acknowledged; senders ask if nothing follows or can follow (`window`,
    /// `reorder`); at most 1GiB. Default: 0B, each packet (section 5).
    pub ack_after: Bytes,
    /// Path ids that a tunnel's packets use in turn, 1 to 65536 (256 in compact headers); 1 is a single path. Default:
    /// 256.
    pub paths: u32,
    /// Whether the receiver puts stacks' packets in order before delivery. Default: "auto", if there are such stacks.
    /// Packets of native messages carry their position and are not reordered (section 5, reorder queue).
    pub ordered: Toggle,
    /// Time that the reorder queue waits for a missing packet before it delivers the rest. Default: "auto", four times
    /// `rto`. The paper has a limit only when a connection is re-established.
    pub reorder_timeout: Setting<Duration>,
    /// Order in which a tunnel sends the native messages to one host. Default: turns.
    pub messages: Messages,
    /// Width of the tunnel header's fields. Default: wide, 16 bytes.
    pub headers: Headers,
    /// Bytes around a packet's payload, Ethernet to FCS. Default: "auto": Ethernet 14, IPv4 20, UDP 8, the tunnel
    /// header, a native message's header 8, FCS 4. At most 1KB.
    pub header: Setting<Bytes>,
    /// Frame of a control packet, 64B to 1KB. Default: "auto": as `header`, without the message's; at least 64B.
    pub control_frame: Setting<Bytes>,
    /// Stacks whose packets tunnels carry. Default: none.
    pub eqif: EqifConfig,
}

/// Order in which a tunnel sends native messages. The paper has one queue per tunnel (figure 5), and evaluates one
/// message at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Messages {
    /// Packet by packet in turn: a short message does not wait for a long one, as with separate queue pairs.
    #[default]
    Turns,
    /// One message after the other: credit requested for one is not spent on later ones, which matters where senders
    /// request credit first.
    Queue,
}

/// Width of the tunnel header's fields: figure 4 of the paper lists the fields, not their widths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Headers {
    /// 16 bytes: 32-bit numbers, 16-bit paths.
    #[default]
    Wide,
    /// 8 bytes: 16-bit numbers, 8-bit paths.
    Compact,
}

impl From<Headers> for Layout {
    fn from(headers: Headers) -> Self {
        match headers {
            Headers::Wide => Self::Wide,
            Headers::Compact => Self::Compact,
        }
    }
}

impl Default for EqdsConfig {
    fn default() -> Self {
        Self {
            burst: Toggle::Auto,
            first_window: Setting::Auto,
            window: Setting::Auto,
            reorder: Setting::Auto,
            pull_rate: Setting::Auto,
            pull_catch_up: Duration::ZERO,
            pull_quanta: 1,
            policy: Policy::Fair,
            rto: Setting::Auto,
            loss: LossConfig::default(),
            bounds: Source::Fixed,
            busy_ceiling: Setting::Off,
            life: LifeConfig::default(),
            max_timeouts: 16,
            ack_after: Bytes::ZERO,
            paths: 256,
            ordered: Toggle::Auto,
            reorder_timeout: Setting::Auto,
            messages: Messages::Turns,
            headers: Headers::Wide,
            header: Setting::Auto,
            control_frame: Setting::Auto,
            eqif: EqifConfig::default(),
        }
    }
}

/// Largest header and largest frame without payload, as with RDMA: each then fits a frame.
pub(super) const MOST_AROUND: Bytes = Bytes::new(1_000);

impl EqdsConfig {
    /// Bytes of Ethernet (14), IPv4 (20), UDP (8) and FCS (4).
    const AROUND: u64 = 14 + 20 + 8 + 4;
    /// Bytes of a native packet's message id and position: two words.
    const MESSAGE: u64 = 8;
    /// Smallest credit that "auto" gives, in packets.
    const LEAST_WINDOW: u64 = 10;
    /// Smallest reorder queue that "auto" gives, in packets.
    const LEAST_REORDER: u32 = 50;

    /// Replaces every "auto"; `frame` is the largest frame that a tunnel sends, `trims` tells whether switches trim,
    /// and `hears_cnps` whether the congestion control of the carried traffic reacts to CNPs.
    pub fn resolve(&mut self, fabric: &Fabric, frame: Bytes, trims: bool, hears_cnps: bool) {
        let (header, control) = (self.data_header(), self.answer_frame());
        resolve(&mut self.header, || Some(header));
        resolve(&mut self.control_frame, || Some(control));
        self.burst = self.burst.resolve(|| trims).into();
        let carries = self.eqif.is_used();
        self.ordered = self.ordered.resolve(|| carries).into();
        let frame = frame.get().max(1);
        resolve(&mut self.window, || {
            let packets = fabric.pipe().get().div_ceil(frame);
            Some(Bytes::new(packets.max(Self::LEAST_WINDOW) * frame))
        });
        if let Setting::Value(window) = &mut self.window {
            *window = Bytes::new(window.get().div_ceil(frame) * frame);
        }
        let window = self.window();
        resolve(&mut self.first_window, || Some(window));
        let window = window.get() / frame;
        let packets = u32::try_from(window).unwrap_or(u32::MAX);
        self.eqif.resolve(fabric, self.tunnel_header(), packets, hears_cnps);
        let widest = self.numbers().widest_window();
        resolve(&mut self.reorder, || Some(packets.saturating_mul(2).max(Self::LEAST_REORDER).min(widest)));
        resolve(&mut self.pull_rate, || Some(fabric.line_rate));
        let rto = resolve(&mut self.rto, || Some(fabric.congested_rtt)).unwrap_or(Duration::ZERO);
        self.loss.resolve(fabric);
        self.life.resolve();
        resolve(&mut self.busy_ceiling, || None);
        resolve(&mut self.reorder_timeout, || Some(rto.saturating_mul(4)));
    }

    /// Checks the resolved settings; `frame` as for [`EqdsConfig::resolve`].
    ///
    /// # Errors
    /// Those of [`EqdsConfig::params`].
    pub fn check(&self, frame: Bytes) -> Result<(), SettingError> {
        self.params(frame, Bytes::ZERO).map(drop)
    }

    /// Checks the resolved settings, and returns the parameters of tunnels that they make; `quantum` is the largest
    /// frame that a tunnel sends.
    ///
    /// # Errors
    /// If a setting is out of range, contradicts another, or still says "auto".
    pub fn params(&self, quantum: Bytes, gap: Bytes) -> Result<EqdsParams, SettingError> {
        let wrong = |key, message: String| Err(SettingError::new(key, message));
        let (header, control, most) = (self.data_header(), self.answer_frame(), MOST_AROUND);
        if self.header == Setting::Off || header < Bytes::new(Self::AROUND) {
            return wrong("header", format!("Ethernet, IP and UDP take {}B; give more", Self::AROUND));
        }
        if header > most {
            return wrong("header", format!("{header} is out of range; give at most {most}"));
        }
        if self.control_frame == Setting::Off || control < Bytes::new(64) {
            return wrong("control-frame", "the smallest frame has 64B; give that or more".into());
        }
        if control > most {
            return wrong("control-frame", format!("{control} is out of range; give at most {most}"));
        }
        let Some(window) = known(self.window, "window")?.filter(|&window| window >= quantum) else {
            return wrong("window", format!("credit for less than one packet of {quantum}; give more"));
        };
        for (key, bytes) in [("window", window), ("ack-after", self.ack_after)] {
            if bytes > Bytes::new(1 << 30) {
                return wrong(key, format!("{bytes} is out of range; give at most 1GiB"));
            }
        }
        let widest = self.numbers().widest_window();
        let Some(first_window) = known(self.first_window, "first-window")? else {
            return wrong("first-window", "a size in bytes; to request credit first, give `burst = false`".into());
        };
        let reorder = match known(self.reorder, "reorder")? {
            Some(packets) if (2..=widest).contains(&packets) => packets,
            Some(packets) => {
                return wrong("reorder", format!("{packets} is out of range; give 2 to {widest} packets"));
            }
            None => return wrong("reorder", format!("epochs end it: give 2 to {widest} packets")),
        };
        let Some(rate) = known(self.pull_rate, "pull-rate")?.filter(|rate| !rate.is_zero()) else {
            return wrong("pull-rate", "nothing would ever be granted; give a rate above zero".into());
        };
        if self.pull_catch_up > Duration::from_ms(1_000) {
            let message = format!("{} is out of range; give at most 1s", self.pull_catch_up);
            return wrong("pull-catch-up", message);
        }
        if !(1..=1_024).contains(&self.pull_quanta) {
            return wrong("pull-quanta", format!("{} is out of range; give 1 to 1024", self.pull_quanta));
        }
        let rto = known(self.rto, "rto")?.unwrap_or(Duration::ZERO);
        check_timeout("rto", rto)?;
        let (loss, life) = (self.loss.params()?, self.life.params()?);
        if self.max_timeouts == 0 {
            return wrong("max-timeouts", "no tunnel would last; give 1 or more".into());
        }
        let most = if self.headers == Headers::Wide { 1 << 16 } else { 1 << 8 };
        if !(1..=most).contains(&self.paths) {
            return wrong("paths", format!("{} is out of range; give 1 to {most}", self.paths));
        }
        if self.ordered == Toggle::On && !self.eqif.is_used() {
            return wrong("ordered", "native messages say where their packets belong; give false or \"auto\"".into());
        }
        self.eqif.params()?;
        self.policy.check()?;
        if self.burst == Toggle::Auto {
            return Err(SettingError::left_auto("burst"));
        }
        Ok(EqdsParams {
            numbers: self.numbers(),
            quantum: quantum.get() as u32,
            header: header.get() as u32,
            window: window.get() as u32,
            reorder,
            bursts: self.bursts(),
            first_window: first_window.min(window).get() as u32,
            ordered: false,
            reliable: true,
            rto,
            reorder_timeout: known(self.reorder_timeout, "reorder-timeout")?,
            loss,
            bounds: self.bounds,
            busy_ceiling: known(self.busy_ceiling, "busy-ceiling")?.unwrap_or(Duration::MAX),
            life,
            housekeeping: loss.gap_wait.is_some() || life.idle.is_some() || life.most != u32::MAX,
            max_timeouts: self.max_timeouts,
            ack_after: self.ack_after.get() as u32,
            paths: self.paths,
            control_frame: control.get() as u16,
            pull_interval: rate.time_for(quantum + gap),
            pull_catch_up: self.pull_catch_up,
            pull_quanta: self.pull_quanta,
            gap: gap.get() as u32,
            policy: self.policy,
            messages: self.messages,
        })
    }

    /// Returns the width of numbers in the chosen headers.
    pub fn numbers(&self) -> Numbers {
        Numbers::new(Layout::from(self.headers).number_bits(), Numbers::LOW)
    }

    fn tunnel_header(&self) -> Bytes {
        Bytes::new(Layout::from(self.headers).length() as u64)
    }
    /// Returns the bytes that a tunnel adds to a frame that it carries; works before "auto" is resolved, too.
    pub fn encapsulation(&self) -> Bytes {
        self.eqif.added(self.tunnel_header())
    }
    /// Returns whether packets of stacks are put in order.
    pub(super) fn delivers_in_order(&self) -> bool {
        self.ordered == Toggle::On
    }

    /// Returns the bytes around a payload; works before "auto" is resolved, too.
    pub fn data_header(&self) -> Bytes {
        let auto = Bytes::new(Self::AROUND + Self::MESSAGE) + self.tunnel_header();
        self.header.resolve(|| Some(auto)).unwrap_or(Bytes::ZERO)
    }
    /// Returns the frame size of a control packet; works before "auto" is resolved, too.
    pub fn answer_frame(&self) -> Bytes {
        let auto = (Bytes::new(Self::AROUND) + self.tunnel_header()).max(Bytes::new(64));
        self.control_frame.resolve(|| Some(auto)).unwrap_or(Bytes::ZERO)
    }
    /// Returns the credit of a tunnel, with resolved settings.
    pub fn window(&self) -> Bytes {
        self.window.resolve(|| None).unwrap_or(Bytes::ZERO)
    }
    /// Returns whether tunnels send their first window unsolicited, with resolved settings.
    pub fn bursts(&self) -> bool {
        self.burst == Toggle::On
    }
}

/// Parameters shared by the engines of all tunnels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EqdsParams {
    /// Width of sequence and pull numbers.
    pub numbers: Numbers,
    /// Bytes of credit in one pull: an MTU, headers included.
    pub quantum: u32,
    /// Bytes around a packet's payload, counted against its credit.
    pub header: u32,
    /// Credit of a tunnel, in bytes.
    pub window: u32,
    /// Packets that may be in flight, or wait out of order.
    pub reorder: u32,
    /// Whether a tunnel may send its first window unsolicited.
    pub bursts: bool,
    /// Most bytes that such a tunnel sends unsolicited, at most `window`.
    pub first_window: u32,
    /// Whether receivers put packets in order: those of stacks, not of native messages.
    pub ordered: bool,
    /// Whether lost packets are sent again.
    pub reliable: bool,
    /// Retransmission timeout, see `rto` of [`EqdsConfig`].
    pub rto: Duration,
    /// Detection of lost packets.
    pub loss: Loss,
    /// Origin of the bounds of tunnels, see [`EqdsConfig::bounds`].
    pub bounds: Source,
    /// Longest busy time that a sender believes.
    pub busy_ceiling: Duration,
    /// End of tunnels.
    pub life: Life,
    /// Whether the owner of receivers sees to gaps, pauses and the number of tunnels: settings ask for any of these.
    pub housekeeping: bool,
    /// Patience of the reorder queue, see [`EqdsConfig::reorder_timeout`]; `None`: unlimited.
    pub reorder_timeout: Option<Duration>,
    /// Consecutive timeouts before a new epoch, see [`EqdsConfig::max_timeouts`].
    pub max_timeouts: u32,
    /// Bytes per acknowledgement, see [`EqdsConfig::ack_after`].
    pub ack_after: u32,
    /// Path ids, see [`EqdsConfig::paths`].
    pub paths: u32,
    /// Bytes of the frame of a control packet.
    pub control_frame: u16,
    /// Time from one quantum of credit to the next.
    pub pull_interval: Duration,
    /// Depth of the pacer's token bucket, see [`Pulls::catch_up`].
    pub pull_catch_up: Duration,
    /// Most quanta granted by one PULL.
    pub pull_quanta: u32,
    /// Bytes that every frame takes on the wire in addition to its own length.
    pub gap: u32,
    /// Policy of the pacer, see [`EqdsConfig::policy`].
    pub policy: Policy,
    /// Order of native messages, see [`EqdsConfig::messages`].
    pub messages: Messages,
}

impl EqdsParams {
    /// Returns whether senders measure round trips and paths: callers then give them each packet's path
    /// ([`Sender::note_path`](super::Sender::note_path)).
    #[inline]
    pub fn measures(&self) -> bool {
        self.loss.measured.is_some() || self.loss.path_margin.is_some() || self.bounds == Source::Measured
    }

    /// Returns the timing of a pacer that grants one quantum per `interval`.
    pub fn pulls(&self, interval: Duration) -> Pulls {
        let control = self.control_time(interval);
        let measures = self.bounds == Source::Measured;
        Pulls { interval, control, catch_up: self.pull_catch_up, quanta: self.pull_quanta, measures }
    }

    /// Returns the link time of a control frame if one pull's worth of frames takes `interval`.
    pub fn control_time(&self, interval: Duration) -> Duration {
        let bytes = |frame: u32| u64::from(frame + self.gap);
        Duration::from_ps(interval.as_ps() * bytes(self.control_frame.into()) / bytes(self.quantum).max(1))
    }
}
