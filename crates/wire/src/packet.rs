//! The packet as engines see it.

use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber};

use crate::eqds;
use crate::holes::Holes;

use crate::netrt::NetRt;
use crate::tcp::Tcp;

/// One packet in flight: a plain value that is copied from queue to queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// When its transmission began at the source. An acknowledgement carries the data packet's own
    /// time back (a RoCE time stamp option), which gives the sender an RTT sample.
    pub sent_at: Instant,
    /// Who sends it.
    pub src: HostId,
    /// Who shall get it.
    pub dst: HostId,
    /// The queue pair: numbered by the host that sends the *data*, in both directions.
    pub qp: QpNumber,
    /// Where that host keeps the queue pair; returned by answers so that no table is
    /// searched. A hint: checked against `qp` on arrival.
    pub slot: u32,
    /// What ECMP hashes, beside the switch's own salt (the UDP source port of RoCEv2).
    pub entropy: u32,
    /// Bytes of the frame, from Ethernet header to FCS.
    pub frame: u16,
    /// Traffic class (802.1p priority), 0 to 7.
    pub class: u8,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// What kind of packet it is, with that kind's fields.
    pub repr: Repr,
}

impl Packet {
    /// What lies where no packet is yet: shorter than any frame.
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

    /// Cuts it to its headers, as switches that trim do (Handley et al., NDP, SIGCOMM 2017, section 3.1):
    /// [`Header::MINIMUM_FRAME`] is left of its frame, and its headers say that the payload is missing.
    /// Returns whether there was anything to cut: only data has a payload, and nothing is cut twice.
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
            | Repr::Pull(_)
            | Repr::Pause(_)
            | Repr::EqdsData(_)
            | Repr::EqdsControl(_)
            | Repr::NetRt(_) => return false,
        }
        self.frame = Header::MINIMUM_FRAME.get() as u16;
        true
    }

    /// Whether a switch has cut it to its headers.
    pub fn is_trimmed(&self) -> bool {
        match &self.repr {
            Repr::Data(data) => data.trimmed,
            Repr::Tcp(tcp) => tcp.is_trimmed(),
            Repr::EqdsData(data) => data.trimmed,
            Repr::Ack(_)
            | Repr::HoleNack(_)
            | Repr::Cnp
            | Repr::Pull(_)
            | Repr::Pause(_)
            | Repr::EqdsControl(_)
            | Repr::NetRt(_) => false,
        }
    }
}

/// The kinds of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repr {
    /// A piece of a message.
    Data(Data),
    /// What the receiver makes of it.
    Ack(Ack),
    /// What the receiver makes of it: negative, and which packets it misses (MELO).
    HoleNack(HoleNack),
    /// Congestion notification (RoCEv2 annex A17.9.4): tells the sender that marked packets arrive.
    Cnp,
    /// What an NDP receiver asks for.
    Pull(Pull),
    /// Priority flow control (802.1Qbb); travels one link only.
    Pause(Pause),
    /// A TCP segment, either way.
    Tcp(Tcp),
    /// A message between top-of-rack switches (NetRT); never reaches a host.
    NetRt(NetRt),
    /// What an EQDS tunnel carries.
    EqdsData(eqds::Data),
    /// What its receiver answers.
    EqdsControl(eqds::Control),
}

/// Fields of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Its sequence number.
    pub psn: Psn,
    /// Payload in bytes.
    pub payload: u16,
    /// Last packet of its message (BTH opcode "last" or "only").
    pub last: bool,
    /// Sent before. Never read by engines; for counting only.
    pub retransmission: bool,
    /// A switch has cut the payload off ([`Packet::trim`]). Only engines that ask for headers see such
    /// packets.
    pub trimmed: bool,
}

/// Fields of an acknowledgement (AETH, and IRN's extension of it).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// Positive or negative.
    pub kind: AckKind,
    /// The ECN mark of the data packet comes back here.
    pub ecn_echo: bool,
    /// Cumulative acknowledgement: the receiver's expected PSN, everything before it has arrived.
    pub expected: Psn,
    /// The PSN that triggered this acknowledgement (IRN's one-packet SACK).
    pub sack: Psn,
    /// Messages completed at the responder (AETH.MSN), modulo 2^24.
    pub msn: u32,
}

/// Fields of a pull (NDP section 3.2): the sender may send one more packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pull {
    /// Pulls that this receiver has sent on this queue pair, this one included, modulo 2^32.
    pub number: u32,
    /// Everything before it has arrived.
    pub expected: Psn,
}

/// Fields of a negative acknowledgement that carries holes (MELO, section 3.2.4; IRN, if it is asked to).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoleNack {
    /// The ECN mark of the data packet comes back here.
    pub ecn_echo: bool,
    /// Cumulative acknowledgement, as in [`Ack::expected`].
    pub expected: Psn,
    /// The newest holes, newest first.
    pub holes: Holes,
    /// How many packets lie between the newest hole and the one that has triggered it. MELO's come when a hole
    /// forms, and at no other time: none.
    pub behind: u16,
}

/// Positive or negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckKind {
    /// It arrived in order, or is old.
    Ack,
    /// It arrived out of order. Whether the receiver kept it depends on the recovery scheme.
    Nack,
}

/// Fields of a priority flow control frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Bit `i` set: this frame speaks of class `i`.
    pub classes: u8,
    /// For how long to pause, in quanta of 512 bit times; zero resumes.
    pub quanta: u16,
}

/// The two ECN bits of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: dropped where others would be marked.
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
    /// Ethernet 14, IPv4 20, FCS 4: what is around a TCP segment.
    pub const ETHERNET_IPV4: Bytes = Bytes::new(14 + 20 + 4);
    /// AETH.
    pub const AETH: Bytes = Bytes::new(4);
    /// RETH.
    pub const RETH: Bytes = Bytes::new(16);
    /// A whole congestion notification packet: [`Header::ROCE`] and 16 reserved bytes.
    pub const CNP: Bytes = Bytes::new(14 + 20 + 8 + 12 + 16 + 4 + 4);
    /// Preamble, start delimiter and inter-packet gap, which every frame takes on the wire.
    pub const GAP: Bytes = Bytes::new(20);
    /// The smallest Ethernet frame, also the size of a PFC frame.
    pub const MINIMUM_FRAME: Bytes = Bytes::new(64);
}

const _: () = assert!(size_of::<Packet>() <= 56, "a packet and the link of the simulator's pool share one cache line");
