//! The packet as transport engines see it.

use core::fmt;

use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber};

use crate::eqds;
use crate::holes::Holes;

use crate::netrt::NetRt;
use crate::tcp::Tcp;

/// A packet in flight: a plain value that is copied from queue to queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Time at which the source began to send the packet. An acknowledgement echoes the data packet's time (a RoCE time
    /// stamp option), which gives the sender an RTT sample.
    pub sent_at: Instant,
    /// Sender of the packet.
    pub src: HostId,
    /// Receiver of the packet.
    pub dst: HostId,
    /// Queue pair number, assigned by the host that sends the *data*, in both directions.
    pub qp: QpNumber,
    /// Index of the queue pair at the data's sender; echoed by answers to avoid a table search. A hint: checked against
    /// `qp` on arrival.
    pub slot: u32,
    /// Value that ECMP hashes together with the switch's salt (the UDP source port of RoCEv2).
    pub entropy: u32,
    /// Bytes of the frame, from Ethernet header to FCS.
    pub frame: u16,
    /// Traffic class (802.1p priority), 0 to 7.
    pub class: u8,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Kind of the packet, with the fields of that kind.
    pub repr: Repr,
}

impl Packet {
    /// Placeholder for a place without a packet: shorter than any frame.
    pub const BLANK: Self = Self {
        sent_at: Instant::ZERO,
        src: HostId(0),
        dst: HostId(0),
        qp: QpNumber(0),
        slot: 0,
        entropy: 0,
        frame: 0,
        class: 0,
        ecn: Ecn::NotCapable,
        repr: Repr::Cnp,
    };

    /// Trims the packet to its headers, as trimming switches do (Handley et al., NDP, SIGCOMM 2017, section 3.1):
    /// [`Header::MINIMUM_FRAME`] remains of the frame, and the headers record that the payload is missing. Returns
    /// whether anything was trimmed: only data has a payload, and no packet is trimmed twice.
    pub fn trim(&mut self) -> bool {
        if self.is_trimmed() || u64::from(self.frame) <= Header::MINIMUM_FRAME.get() {
            return false;
        }
        match &mut self.repr {
            Repr::Data(data) => data.trimmed = true,
            Repr::Tcp(tcp) if tcp.payload() > 0 => tcp.mark_trimmed(),
            Repr::EqdsData(data) if data.payload > 0 => data.trimmed = true,
            Repr::Tcp(_)
            | Repr::Ack(_)
            | Repr::HoleNack(_)
            | Repr::Cnp
            | Repr::Control(_)
            | Repr::Pause(_)
            | Repr::EqdsData(_)
            | Repr::EqdsControl(_)
            | Repr::NetRt(_) => return false,
        }
        self.frame = Header::MINIMUM_FRAME.get() as u16;
        true
    }

    /// Returns whether a switch has trimmed the packet to its headers.
    pub fn is_trimmed(&self) -> bool {
        match &self.repr {
            Repr::Data(data) => data.trimmed,
            Repr::Tcp(tcp) => tcp.is_trimmed(),
            Repr::EqdsData(data) => data.trimmed,
            Repr::Ack(_)
            | Repr::HoleNack(_)
            | Repr::Cnp
            | Repr::Control(_)
            | Repr::Pause(_)
            | Repr::EqdsControl(_)
            | Repr::NetRt(_) => false,
        }
    }
}

/// The kinds of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repr {
    /// A packet of a message.
    Data(Data),
    /// An acknowledgement.
    Ack(Ack),
    /// A negative acknowledgement that lists missing packets (MELO).
    HoleNack(HoleNack),
    /// Congestion notification (RoCEv2 annex A17.9.4): informs the sender that marked packets arrive.
    Cnp,
    /// A control packet of a transport of messages.
    Control(Control),
    /// Priority flow control (802.1Qbb); travels one link only.
    Pause(Pause),
    /// A TCP segment in either direction.
    Tcp(Tcp),
    /// A message between top-of-rack switches (NetRT); never reaches a host.
    NetRt(NetRt),
    /// A data packet, or a request to send, of an EQDS tunnel.
    EqdsData(eqds::Data),
    /// A control packet of an EQDS tunnel's receiver.
    EqdsControl(eqds::Control),
}

/// Fields of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Packet sequence number.
    pub psn: Psn,
    /// Payload in bytes.
    pub payload: u16,
    /// Whether the packet is the last of its message (BTH opcode "last" or "only").
    pub last: bool,
    /// Whether the packet was sent before. For counting only; never read by engines.
    pub retransmission: bool,
    /// Whether a switch has trimmed the payload ([`Packet::trim`]). Only engines that ask for headers receive such
    /// packets.
    pub trimmed: bool,
}

/// Fields of an acknowledgement (AETH, and IRN's extension of it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// Positive or negative.
    pub kind: AckKind,
    /// Whether the acknowledged data packet carried an ECN mark.
    pub ecn_echo: bool,
    /// Cumulative acknowledgement: the receiver's expected PSN, before which everything has arrived.
    pub expected: Psn,
    /// The PSN that triggered this acknowledgement (IRN's one-packet SACK).
    pub sack: Psn,
    /// Messages completed at the responder (AETH.MSN), modulo 2^24.
    pub msn: u32,
}

/// Fields of a control packet of a transport of messages: NDP's pull, Homa's grant. What they mean is the transport's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// Kind of the packet.
    pub label: Label,
    /// Whether the packet is for the receiver of the message rather than for its sender.
    pub to_receiver: bool,
    /// Numbers of the packet.
    pub words: [u32; 3],
}

/// Writes the label and the first number, such as "pull 7".
impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.label.name(), self.words[0])
    }
}

/// Name of a kind of control packets, shown in traces: up to 7 ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label([u8; 7]);

impl Label {
    /// Returns the label with this name.
    ///
    /// # Panics
    /// When the name has more than 7 bytes, or is not ASCII.
    pub const fn new(name: &str) -> Self {
        assert!(name.len() <= 7 && name.is_ascii(), "a label has up to 7 ASCII characters");
        let (mut bytes, mut at) = ([0; 7], 0);
        while at < name.len() {
            bytes[at] = name.as_bytes()[at];
            at += 1;
        }
        Self(bytes)
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        str::from_utf8(&self.0[..length]).unwrap_or_default()
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Fields of a negative acknowledgement with holes (MELO, section 3.2.4; IRN if configured).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoleNack {
    /// Whether the data packet carried an ECN mark.
    pub ecn_echo: bool,
    /// Cumulative acknowledgement, like [`Ack::expected`].
    pub expected: Psn,
    /// The newest holes, newest first.
    pub holes: Holes,
    /// Number of packets between the newest hole and the packet that triggered the NACK. Zero in MELO, whose NACKs are
    /// sent only when a hole forms.
    pub behind: u16,
}

/// Positive or negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckKind {
    /// The packet arrived in order, or is old.
    Ack,
    /// The packet arrived out of order. Whether the receiver kept it depends on the recovery scheme.
    Nack,
}

/// Fields of a priority flow control frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Classes that the frame addresses; bit `i` is class `i`.
    pub classes: u8,
    /// Pause time in quanta of 512 bit times; zero resumes.
    pub quanta: u16,
}

/// The two ECN bits of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: dropped instead of marked.
    #[default]
    NotCapable = 0b00,
    /// ECN-capable.
    Capable = 0b10,
    /// Congestion experienced.
    Marked = 0b11,
}

/// Sizes of the headers around a payload, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header;

impl Header {
    /// Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4.
    pub const ROCE: Bytes = Bytes::new(14 + 20 + 8 + 12 + 4 + 4);
    /// Bytes around a TCP segment: Ethernet 14, IPv4 20, FCS 4.
    pub const ETHERNET_IPV4: Bytes = Bytes::new(14 + 20 + 4);
    /// AETH.
    pub const AETH: Bytes = Bytes::new(4);
    /// RETH.
    pub const RETH: Bytes = Bytes::new(16);
    /// Bytes of a whole congestion notification packet: [`Header::ROCE`] and 16 reserved bytes.
    pub const CNP: Bytes = Bytes::new(14 + 20 + 8 + 12 + 16 + 4 + 4);
    /// Preamble, start delimiter and inter-packet gap, which every frame takes on the wire.
    pub const GAP: Bytes = Bytes::new(20);
    /// The smallest Ethernet frame, also the size of a PFC frame.
    pub const MINIMUM_FRAME: Bytes = Bytes::new(64);
}

const _: () = assert!(size_of::<Packet>() <= 56, "a packet and the link of the simulator's pool share one cache line");
