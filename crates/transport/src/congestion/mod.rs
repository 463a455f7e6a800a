//! Congestion control: how much, how fast?
//!
//! An algorithm is a folder with its settings (`Config`) and its state (`Control`, a
//! [`Congestion`]), and one line in the registry at the end of this file.

use selvedge_units::{Bytes, Chance, Duration, Instant, Rate, Seq};
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
pub mod swift;
pub mod timely;

pub use growing::WindowConfig;

/// A congestion control: hears signals, keeps a window and a rate.
///
/// What an algorithm does not read costs nothing: signals are plain values that the compiler
/// computes only where a match arm uses them.
pub trait Congestion {
    /// The flow's path has so many links. Said once, before anything is sent, where it is known.
    fn on_path(&mut self, links: u32) {
        _ = links;
    }
    /// An acknowledgement, which was heard as a signal just now, has brought what switches wrote on its
    /// packet.
    #[inline]
    fn on_telemetry(&mut self, path: &PathRecord) {
        _ = path;
    }
    /// Whether anything that it is told changes anything.
    #[inline]
    fn listens(&self) -> bool {
        true
    }
    /// Something happened.
    fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal);
    /// Bytes on the wire that may be in flight; [`Bytes::MAX`] without a limit. One packet may
    /// always be in flight, however small the window.
    fn window(&self) -> Bytes;
    /// Rate on the wire, headers and gaps included; [`Rate::MAX`] without a limit.
    #[inline]
    fn rate(&self) -> Rate {
        Rate::MAX
    }
    /// When to call [`Congestion::on_timeout`]; [`Instant::NEVER`] without a timer.
    #[inline]
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }
    /// The deadline has passed.
    fn on_timeout(&mut self, cx: &mut Cx<'_>) {
        _ = cx;
    }
}

/// What a congestion control may hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// An acknowledgement, positive or negative, or a report in its place (see [`Needs::reports`]).
    Acked {
        /// Bytes on the wire (full-sized packets assumed) that it newly reports as arrived.
        bytes: Bytes,
        /// From the data packet's departure to this acknowledgement's arrival.
        rtt: Duration,
        /// Bytes on the wire (full-sized packets assumed) that are still in flight.
        in_flight: Bytes,
        /// Whether the data packet behind it was ECN-marked.
        marked: bool,
        /// The first packet not yet acknowledged.
        acked: Seq,
        /// The first packet never sent.
        sent: Seq,
    },
    /// A congestion notification packet: marked packets arrive.
    Cnp,
    /// A packet was sent. Heard only while [`Congestion::rate`] is a limit.
    Sent {
        /// Its size on the wire.
        bytes: Bytes,
    },
    /// Loss recovery begins, because of a NACK. Once per episode.
    Lost,
    /// Loss recovery begins, because of a retransmission timeout.
    TimedOut,
}

/// What a congestion control needs from receivers and switches.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Needs {
    /// ECN marks, by this curve unless the scenario has its own.
    pub marking: Option<Marking>,
    /// Congestion notification packets: at most one per queue pair in this time.
    pub cnp_interval: Option<Duration>,
    /// Acknowledgements, on PFC too.
    pub acks: bool,
    /// RTT samples where the loss recovery acknowledges nothing.
    pub reports: Option<Reports>,
    /// Losses: it hears of congestion by nothing else.
    pub losses: bool,
    /// Switches that write on each packet what their outputs are like (INT).
    pub telemetry: bool,
}

/// A RED marking curve for links of one rate; others scale both thresholds in proportion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Marking {
    /// No mark up to this queue length.
    pub k_min: Bytes,
    /// Every packet marked above this queue length.
    pub k_max: Bytes,
    /// Probability of a mark just below `k_max`.
    pub p_max: Chance,
    /// The links' rate.
    pub rate: Rate,
}

impl Marking {
    /// The DCQCN paper's (section 5), for 40 Gb/s.
    pub const DCQCN: Self = Self {
        k_min: Bytes::from_kb(5),
        k_max: Bytes::from_kb(200),
        p_max: Chance::ratio(1, 100),
        rate: Rate::from_gbps(40),
    };

    /// The same for links of another rate.
    pub fn on(self, rate: Rate) -> Self {
        let scale = |k: Bytes| {
            let scaled = u128::from(k.get()) * u128::from(rate.as_bps()) / u128::from(self.rate.as_bps().max(1));
            Bytes::new(u64::try_from(scaled).unwrap_or(u64::MAX))
        };
        Self { k_min: scale(self.k_min), k_max: scale(self.k_max), p_max: self.p_max, rate }
    }
}

/// How receivers report round-trip times where the loss recovery acknowledges nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reports {
    /// One report each time this much has arrived, and for the last packet.
    pub every: Bytes,
    /// How it travels.
    pub by: ReportBy,
}

/// How a report travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum ReportBy {
    /// Outside the fabric: it takes the way's propagation delay and nothing of any link.
    #[default]
    Free,
    /// As an acknowledgement packet per segment.
    SegmentAcks,
}

/// What an algorithm's settings can say about themselves.
pub trait Tuning {
    /// Replaces every "auto".
    fn resolve(&mut self, fabric: &Fabric);
    /// What is wrong with the resolved settings, if anything is.
    fn check(&self) -> Result<(), SettingError>;
    /// What the algorithm needs from receivers and switches, with resolved settings. Most need nothing.
    fn needs(&self) -> Needs {
        Needs::default()
    }
    /// Bytes of headers that it adds to each data packet and each acknowledgement.
    fn extra_header(&self) -> Bytes {
        Bytes::ZERO
    }
    /// Whether it slows down when it is sent congestion notifications (CNPs), whatever "auto" will be.
    fn hears_cnps(&self) -> bool {
        false
    }
}

registry! {
    /// Which congestion control, with its settings.
    config CongestionConfig: Tuning {
        fn resolve(&mut self, fabric: &Fabric);
        fn check(&self) -> Result<(), SettingError>;
        fn needs(&self) -> Needs;
        fn extra_header(&self) -> Bytes;
        fn hears_cnps(&self) -> bool;
    }
    /// Any congestion control.
    run AnyCongestion: Congestion = Control {
        fn listens(&self) -> bool;
        fn on_path(&mut self, links: u32);
        fn on_telemetry(&mut self, path: &PathRecord);
        fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal);
        fn window(&self) -> Bytes;
        fn rate(&self) -> Rate;
        fn deadline(&self) -> Instant;
        fn on_timeout(&mut self, cx: &mut Cx<'_>);
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
        /// A window that grows by a frame per round trip and halves at a loss, as TCP's.
        "aimd" => Aimd(aimd),
        /// DCTCP: the window shrinks by the share of marked packets (SIGCOMM'10).
        "dctcp" => Dctcp(dctcp),
        /// Swift: a window that keeps the round-trip time near a target (SIGCOMM'20).
        "swift" => Swift(swift),
        /// HPCC: the window follows the utilisation that switches report (SIGCOMM'19).
        "hpcc" => Hpcc(hpcc),
    }
}
