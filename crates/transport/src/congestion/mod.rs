//! Congestion control: how many packets a flow may have in flight, and at which rate it sends.
//!
//! An algorithm is a folder with its settings (`Config`) and its state (`Control`, a
//! [`Congestion`]), and one line in the registry at the end of this file.

use selvedge_units::{Bytes, Chance, Duration, Instant, Rate, Seq, Setting};
use selvedge_wire::PathRecord;

use crate::fabric::{Fabric, SettingError};
use crate::registry::registry;
use crate::role::Cx;

pub mod aimd;
pub mod dcqcn;
pub mod dctcp;
pub mod fixed;
mod growing;
pub mod hpcc;
pub mod none;
pub mod own;
pub mod swift;
pub mod timely;

pub use growing::WindowConfig;

/// A congestion control: handles signals, and keeps a window and a rate.
///
/// Fields of a signal that an algorithm does not read cost nothing: signals are plain values that the compiler computes
/// only where a match arm uses them.
pub trait Congestion {
    /// Sets the number of links on the flow's path, if it is known. Called once, before the first packet is sent.
    fn on_path(&mut self, links: u32) {
        _ = links;
    }
    /// Handles the telemetry that switches wrote on a packet, returned by an acknowledgement whose signal was handled
    /// just before.
    #[inline]
    fn handle_telemetry(&mut self, path: &PathRecord) {
        _ = path;
    }
    /// Returns whether any input has an effect.
    #[inline]
    fn listens(&self) -> bool {
        true
    }
    /// Handles a signal.
    fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal);
    /// Returns the bytes on the wire that may be in flight; [`Bytes::MAX`] without a limit. One packet may always be in
    /// flight, for any window.
    fn window(&self) -> Bytes;
    /// Returns the rate on the wire, headers and gaps included; [`Rate::MAX`] without a limit.
    #[inline]
    fn rate(&self) -> Rate {
        Rate::MAX
    }
    /// Returns when to call [`Congestion::handle_timeout`]; [`Instant::NEVER`] without a timer.
    #[inline]
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }
    /// Handles the deadline, which has passed.
    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        _ = cx;
    }
}

/// An input of a congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// An acknowledgement, positive or negative, or a report in its place (see [`Needs::reports`]).
    Acked {
        /// Bytes on the wire (full-sized packets assumed) that are newly known to have arrived.
        bytes: Bytes,
        /// The time from the data packet's departure to the acknowledgement's arrival.
        rtt: Duration,
        /// Bytes on the wire (full-sized packets assumed) that are still in flight.
        in_flight: Bytes,
        /// Whether the data packet that triggered the acknowledgement was ECN-marked.
        marked: bool,
        /// The first packet not yet acknowledged.
        acked: Seq,
        /// The first packet never sent.
        sent: Seq,
    },
    /// A congestion notification packet: marked packets have arrived at the receiver.
    Cnp,
    /// A packet was sent. Signalled only while [`Congestion::rate`] is a limit.
    Sent {
        /// The packet's size on the wire.
        bytes: Bytes,
    },
    /// The beginning of loss recovery because of a NACK. Signalled once per episode.
    Lost,
    /// The beginning of loss recovery because of a retransmission timeout.
    TimedOut,
}

/// The signals that a congestion control needs from receivers and switches.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Needs {
    /// ECN marks, with this curve unless the scenario has its own.
    pub marking: Option<Marking>,
    /// Congestion notification packets; the least time between two of one queue pair.
    pub cnp_interval: Option<Duration>,
    /// Whether acknowledgements are needed, with PFC as well.
    pub acks: bool,
    /// RTT samples where the loss recovery has no acknowledgements.
    pub reports: Option<Reports>,
    /// Whether losses are needed, because they are the only sign of congestion.
    pub losses: bool,
    /// Whether telemetry is needed: switches write the state of their outputs on each packet (INT).
    pub telemetry: bool,
}

/// A RED marking curve for links of one rate; links of other rates scale both thresholds in proportion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Marking {
    /// Queue length up to which no packet is marked.
    pub k_min: Bytes,
    /// Queue length above which every packet is marked.
    pub k_max: Bytes,
    /// Probability of a mark just below `k_max`.
    pub p_max: Chance,
    /// The rate of the links.
    pub rate: Rate,
}

impl Marking {
    /// The DCQCN paper's curve (section 5), for 40 Gb/s.
    pub const DCQCN: Self = Self {
        k_min: Bytes::from_kb(5),
        k_max: Bytes::from_kb(200),
        p_max: Chance::ratio(1, 100),
        rate: Rate::from_gbps(40),
    };

    /// Returns the curve for links of another rate, with proportional thresholds.
    pub fn on(self, rate: Rate) -> Self {
        let scale = |k: Bytes| {
            let scaled = u128::from(k.get()) * u128::from(rate.as_bps()) / u128::from(self.rate.as_bps().max(1));
            Bytes::new(u64::try_from(scaled).unwrap_or(u64::MAX))
        };
        Self { k_min: scale(self.k_min), k_max: scale(self.k_max), p_max: self.p_max, rate }
    }
}

/// Reports of round-trip times by receivers, where the loss recovery has no acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reports {
    /// The bytes per report; the last packet triggers one, too.
    pub every: Bytes,
    /// The transport of the reports.
    pub by: ReportBy,
}

/// The transport of reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum ReportBy {
    /// Outside the fabric: a report takes the path's propagation delay and uses no link.
    #[default]
    Free,
    /// Acknowledgement packets, one per segment.
    SegmentAcks,
}

/// The properties of an algorithm that follow from its settings.
pub trait Tuning {
    /// The parameters of the algorithm's state: checked values, none of them "auto".
    type Params;

    /// Replaces every "auto" by a value for `fabric`.
    fn resolve(&mut self, fabric: &Fabric);
    /// Checks the resolved settings, and returns the parameters that they make.
    ///
    /// # Errors
    /// When a setting cannot work, or still says "auto".
    fn params(&self) -> Result<Self::Params, SettingError>;
    /// Checks the resolved settings.
    ///
    /// # Errors
    /// Those of [`Tuning::params`].
    fn check(&self) -> Result<(), SettingError> {
        self.params().map(drop)
    }
    /// Returns what the algorithm needs from receivers and switches, with resolved settings. The default is nothing.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// Returns the bytes of headers that the algorithm adds to each data packet and each acknowledgement.
    fn extra_header(&self) -> Bytes {
        Bytes::ZERO
    }
    /// Returns whether the algorithm slows down at congestion notifications (CNPs), for any value of "auto".
    fn hears_cnps(&self) -> bool {
        false
    }
    /// Returns whether acknowledgements must carry marks or time stamps, which those of standard queue pairs do not.
    fn reads_acks(&self) -> bool {
        false
    }
    /// Returns the longest pause between two packets of `frame` bytes that the algorithm may ask for, where a round
    /// trip takes `round`; with resolved settings.
    fn slowest_pace(&self, frame: Bytes, round: Duration) -> Duration {
        let _ = (frame, round);
        Duration::ZERO
    }
}

/// Returns the time between two packets of `frame` bytes at `rate`, which is above zero; zero without such a rate.
pub(crate) fn pause(rate: Setting<Rate>, frame: Bytes) -> Duration {
    let rate = rate.resolve(|| None).filter(|rate| *rate > Rate::ZERO);
    rate.map_or(Duration::ZERO, |rate| rate.time_for(frame))
}

registry! {
    /// Congestion control, with its settings.
    config CongestionConfig: Tuning {
        fn resolve(&mut self, fabric: &Fabric);
        fn needs(&self) -> Needs;
        fn extra_header(&self) -> Bytes;
        fn hears_cnps(&self) -> bool;
        fn reads_acks(&self) -> bool;
        fn slowest_pace(&self, frame: Bytes, round: Duration) -> Duration;
    }
    /// Parameters of a congestion control, for its state.
    params CongestionParams
    /// Any congestion control.
    #[derive(Clone, Debug)]
    run AnyCongestion: Congestion = Control {
        fn listens(&self) -> bool;
        fn on_path(&mut self, links: u32);
        fn handle_telemetry(&mut self, path: &PathRecord);
        fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal);
        fn window(&self) -> Bytes;
        fn rate(&self) -> Rate;
        fn deadline(&self) -> Instant;
        fn handle_timeout(&mut self, cx: &mut Cx<'_>);
    }
    algorithms {
        /// None: the loss recovery's own limits and the link.
        "none" => None(none),
        /// A window and a rate that never change.
        "fixed" => Fixed(fixed),
        /// DCQCN: marked packets make CNPs, CNPs lower rates (SIGCOMM'15).
        "dcqcn" => Dcqcn(dcqcn),
        /// TIMELY: the gradient of the round-trip time (SIGCOMM'15).
        "timely" => Timely(timely),
        /// A window that grows by a frame per round trip and halves at a loss, like TCP's.
        "aimd" => Aimd(aimd),
        /// DCTCP: the window shrinks by the share of marked packets (SIGCOMM'10).
        "dctcp" => Dctcp(dctcp),
        /// Swift: a window that keeps the round-trip time near a target (SIGCOMM'20).
        "swift" => Swift(swift),
        /// HPCC: the window follows the utilisation that switches report (SIGCOMM'19).
        "hpcc" => Hpcc(hpcc),
    }
    own [Own own]
}
