//! Configuration of NICs, and of packets on the wire.

use schemars::JsonSchema;
use selvedge_nic::WireFormat;
use selvedge_transport::Tuning;
use selvedge_transport::tcp::TcpConfig;
use selvedge_units::{Bytes, Duration, Setting, Skew};
use selvedge_wire::Header;
use serde::{Deserialize, Serialize};

use super::TransportConfig;
use crate::beside::Beside;
use crate::error::ConfigError;
use crate::topology::Framing;

/// NICs of all hosts, and how packets look on the wire.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NicConfig {
    /// Preset of a commercial NIC, such as "connectx-7": its published properties replace defaults here and in
    /// transport, where a scheme has them. None of them is calibrated. `selvedge presets` lists all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Payload of a full packet, 64 B to 9000 B.
    pub mtu: Bytes,
    /// Headers and trailers of a data frame: Ethernet, IPv4, UDP, BTH, ICRC, FCS.
    pub header: Bytes,
    /// Bytes of the whole frame of an acknowledgement.
    pub ack_frame: Bytes,
    /// Bytes of the whole frame of a congestion notification.
    pub cnp_frame: Bytes,
    /// Headers of packets of `[workload.verbs]` beyond those of RoCE, where both sides use "irn" or "melo". "selvedge":
    /// those of the software RNIC. "irn": the costs of the IRN paper's section 6.3, which are 6 bytes in each packet of
    /// a Send, a RETH of 16 bytes in each of a Write (in RoCE the first alone has it), none in answers to Reads; and 3
    /// bytes where section 5.3.2 adds a sequence number (requests with an answer, the last packet of a Write with an
    /// immediate). "roce": none, as if IRN needed none. Default: selvedge.
    pub verbs_headers: VerbsHeaders,
    /// Bytes that every frame takes on the wire beyond itself: preamble and inter-packet gap.
    pub gap: Bytes,
    /// Largest deviation of each NIC's clock from its nominal rate. Each is drawn from the seed, uniformly between this
    /// much too slow and this much too fast, and scales the times of its frames on the link. 0ppb to 10000ppm; IEEE
    /// 802.3 allows 100ppm. Default: 0ppb, which keeps equal NICs in step for ever. Switches keep the nominal time.
    pub clock_skew: Skew,
    /// Largest delay of a NIC whose link was idle, drawn uniformly from the seed for each packet with which it begins
    /// to send: the time to fetch a packet varies. Packets that follow each other without a pause are not delayed. 0ps
    /// to 1ms. Default: 0ps.
    pub jitter: Duration,
    /// Packets that a queue pair sends before the next one's turn, at least 1. The IRN paper has queue pairs poll the
    /// MAC layer "periodically": round-robin, packet by packet, by default. With EQDS's tunnels, these are turns at the
    /// RDMA engine.
    pub qp_burst: u32,
    /// Interval at which a queue pair that wants to send asks whether the link is free: the IRN paper's queue pairs
    /// poll the MAC layer "periodically" (section 4.1). A free link serves the first to ask and is idle until then. 0ps
    /// to 1ms; 0ps: queue pairs take turns instead. For queue pairs with a flow each: not beside TCP, NDP, EQDS or
    /// `[workload.verbs]`, and not with qp-burst. Default: 0ps.
    pub mac_poll: Duration,
    /// Phase at which a queue pair asks in each `mac-poll`. "fixed": always the same, so that one which asks just after
    /// another can find the link busy again and again. "random": drawn anew for each packet that the NIC sends.
    /// Default: random.
    pub mac_poll_phases: PollPhases,
    /// Traffic class of data: its 802.1Q priority, 0 to 7. Flow lists may give flows other ones.
    pub data_class: u8,
    /// Traffic class of acknowledgements; higher classes go first. The IRN paper does not say whether they are
    /// prioritised. Default: the class of data.
    pub ack_class: u8,
    /// Traffic class of congestion notifications; RoCE deployments use a higher one. Default: the class of data.
    pub cnp_class: u8,
}

/// Headers of packets of applications beyond those of RoCE, where both sides use IRN or MELO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerbsHeaders {
    /// Headers of the software RNIC.
    #[default]
    Selvedge,
    /// Headers of the IRN paper (sections 5.3 and 6.3).
    Irn,
    /// Headers of RoCE alone.
    Roce,
}

impl From<VerbsHeaders> for WireFormat {
    fn from(headers: VerbsHeaders) -> Self {
        match headers {
            VerbsHeaders::Selvedge => Self::Selvedge,
            VerbsHeaders::Irn => Self::Irn,
            VerbsHeaders::Roce => Self::Roce,
        }
    }
}

/// Phase at which a queue pair asks for the link in each polling period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PollPhases {
    /// A fixed phase per queue pair.
    Fixed,
    /// A phase drawn anew for each packet.
    #[default]
    Random,
}

impl Default for NicConfig {
    fn default() -> Self {
        Self {
            preset: None,
            mtu: Bytes::new(1024),
            header: Bytes::new(62),
            ack_frame: Bytes::new(66),
            cnp_frame: Header::CNP,
            verbs_headers: VerbsHeaders::Selvedge,
            gap: Bytes::new(20),
            clock_skew: Skew::ZERO,
            jitter: Duration::ZERO,
            qp_burst: 1,
            mac_poll: Duration::ZERO,
            mac_poll_phases: PollPhases::Random,
            data_class: 3,
            ack_class: 3,
            cnp_class: 3,
        }
    }
}

impl NicConfig {
    /// Returns the bytes of headers and trailers on each data frame, those that the transport adds included. A TCP
    /// segment has its own: Ethernet, IPv4, TCP with its time stamps, FCS.
    pub fn data_header(&self, transport: &TransportConfig) -> Bytes {
        if let Some(eqds) = transport.native() {
            return eqds.data_header();
        }
        match transport.tcp() {
            None => self.header + transport.extra_header(),
            Some(tcp) => Header::ETHERNET_IPV4 + Bytes::new(tcp.header()),
        }
    }
    /// Returns the configuration with the longest header that data has, which
    /// [`PfcConfig::headroom_on`](super::PfcConfig::headroom_on) counts.
    #[must_use]
    pub fn with_longest_header(&self, transport: &TransportConfig, beside: Option<&Beside>) -> Self {
        let guest = beside.map_or(Bytes::ZERO, |beside| beside.framing(self).overhead - self.gap);
        Self { header: self.data_header(transport).max(guest), ..self.clone() }
    }
    /// Checks that frames have possible sizes, and that other values are in their ranges. The check comes before "auto"
    /// is resolved, which adds the sizes up.
    ///
    /// # Errors
    /// The first value that is out of range, by its key within `nic`.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(SMALLEST_MTU..=LARGEST_MTU).contains(&self.mtu) {
            let message = format!("{} is out of range: a packet carries {SMALLEST_MTU} to {LARGEST_MTU}", self.mtu);
            return Err(ConfigError::new("mtu", message));
        }
        for (key, value, most) in [
            ("header", self.header, Bytes::new(1_000)),
            ("ack-frame", self.ack_frame, Bytes::new(1_000)),
            ("cnp-frame", self.cnp_frame, Bytes::new(1_000)),
            ("gap", self.gap, Bytes::new(1_000)),
        ] {
            if value > most {
                return Err(ConfigError::new(key, format!("{value} is out of range: at most {most}")));
            }
        }
        if self.clock_skew > LARGEST_SKEW {
            let message = format!(
                "{} is out of range: at most {LARGEST_SKEW}; IEEE 802.3 allows clocks to be off by {USUAL_SKEW}",
                self.clock_skew
            );
            return Err(ConfigError::new("clock-skew", message));
        }
        if self.jitter > LARGEST_JITTER {
            let message = format!(
                "{} is out of range: at most {LARGEST_JITTER}; NICs take some tens of nanoseconds more or less to begin",
                self.jitter
            );
            return Err(ConfigError::new("jitter", message));
        }
        if self.qp_burst == 0 {
            return Err(ConfigError::new("qp-burst", "a queue pair's turn is at least one packet; give 1 or more"));
        }
        if self.ack_frame.is_zero() {
            return Err(ConfigError::new("ack-frame", "an acknowledgement takes some bytes; 66B with RoCE's headers"));
        }
        if self.cnp_frame.is_zero() {
            return Err(ConfigError::new(
                "cnp-frame",
                "a congestion notification takes some bytes; 78B with RoCE's headers",
            ));
        }
        let classes = [("data-class", self.data_class), ("ack-class", self.ack_class), ("cnp-class", self.cnp_class)];
        for (key, class) in classes {
            if class > 7 {
                return Err(ConfigError::new(key, format!("{class} is not a traffic class: they are 0 to 7")));
            }
        }
        Ok(())
    }
    /// Returns what [`PfcConfig::xon_gap`](super::PfcConfig::xon_gap) at "auto" means: two frames.
    pub fn xon_gap(&self, transport: &TransportConfig) -> Bytes {
        (self.payload(transport) + self.data_header(transport) + self.gap) * 2
    }
    /// Returns the payload of a full packet.
    pub fn payload(&self, transport: &TransportConfig) -> Bytes {
        match transport.tcp() {
            Some(TcpConfig { mss: Setting::Value(mss), .. }) => *mss,
            _ => self.mtu,
        }
    }
    /// Returns the bytes of an acknowledgement's frame; TCP's are longer by their SACK blocks.
    pub fn ack_frame(&self, transport: &TransportConfig) -> Bytes {
        if let Some(eqds) = transport.native() {
            return eqds.answer_frame();
        }
        match transport.tcp() {
            None => self.ack_frame + transport.congestion().map(Tuning::extra_header).unwrap_or_default(),
            Some(_) => self.data_header(transport).max(Header::MINIMUM_FRAME),
        }
    }
    /// Returns how payload becomes what a link carries.
    pub fn framing(&self, transport: &TransportConfig) -> Framing {
        // Only TCP segments are padded.
        let least = if transport.tcp().is_some() { Header::MINIMUM_FRAME + self.gap } else { Bytes::ZERO };
        Framing { mtu: self.payload(transport), overhead: self.data_header(transport) + self.gap, least }
    }
}

const SMALLEST_MTU: Bytes = Bytes::new(64);

const LARGEST_MTU: Bytes = Bytes::new(9_000);

const LARGEST_SKEW: Skew = Skew::from_ppm(10_000);

/// Largest usual clock skew, of IEEE 802.3 for 10 Gb/s and more.
const USUAL_SKEW: Skew = Skew::from_ppm(100);

const LARGEST_JITTER: Duration = Duration::from_ms(1);
