//! The part of a header that depends on its type. Reserved bits are zero on sending and ignored on receipt.
//!
//! Data (type 1) and request to send (type 2), 12 bytes:
//!
//! | bytes | bits | field                                                                  |
//! |-------|------|------------------------------------------------------------------------|
//! | 0-3   |      | sequence number; with SYN, its upper 18 bits are the tunnel's epoch     |
//! | 4-7   |      | pull target                                                            |
//! | 8     |      | next protocol, see [`Next`]                                            |
//! | 9     | 7..5 | priority                                                               |
//! |       | 4..3 | service, see [`Service`]                                               |
//! |       | 2..0 | reserved                                                               |
//! | 10-11 |      | reserved                                                               |
//!
//! Report (type 3), 20 bytes, from the receiver of a tunnel to its sender:
//!
//! | bytes | field                                                                         |
//! |-------|-------------------------------------------------------------------------------|
//! | 0-3   | number that the flags are about                                               |
//! | 4-7   | pull number: credit granted so far, in MTUs                                   |
//! | 8-11  | busy time in microseconds                                                     |
//! | 12-15 | echo: packet number of the packet that caused the report                      |
//! | 16-17 | echo epoch: low 16 bits of that packet's key epoch                            |
//! | 18-19 | delay between that packet and the report, in microseconds; 65535 is no echo   |
//!
//! Reset (type 4), 8 bytes:
//!
//! | bytes | field                                            |
//! |-------|--------------------------------------------------|
//! | 0-3   | sequence number of the refused packet            |
//! | 4     | reason, see [`ResetReason`]                      |
//! | 5-7   | reserved                                         |
//!
//! Close (type 5), 8 bytes:
//!
//! | bytes | bits | field                                                           |
//! |-------|------|-----------------------------------------------------------------|
//! | 0-3   |      | first sequence number that was not used, or has not arrived     |
//! | 4     | 7    | from the sender of the tunnel (1) or from its receiver (0)      |
//! |       | 6..0 | reserved                                                        |
//! | 5-7   |      | reserved                                                        |
//!
//! Probe (type 6), 8 bytes; ACK marks the answer:
//!
//! | bytes | field                                                                            |
//! |-------|----------------------------------------------------------------------------------|
//! | 0-3   | token, returned by the answer                                                    |
//! | 4-5   | size of the probe: bytes of UDP payload that arrived, in the answer; else zero   |
//! | 6-7   | reserved                                                                         |

use super::Flags;
use crate::eqds;
use crate::error::{ParseError, take};

/// Type of a header: the low four bits of its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum PacketType {
    /// Data of a tunnel.
    Data = 1,
    /// Request to send: data's header without payload. The sequence number remains available for the next packet.
    Request = 2,
    /// Report of a tunnel's receiver: acknowledgements and credit.
    Report = 3,
    /// Refusal: the receiver has no such tunnel, or does not trust the key epoch yet.
    Reset = 4,
    /// Notice that an end drops the tunnel's state.
    Close = 5,
    /// Probe of a path and its MTU, or the answer to one.
    Probe = 6,
}

impl PacketType {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 6] = [Self::Data, Self::Request, Self::Report, Self::Reset, Self::Close, Self::Probe];

    pub(super) const fn from_code(code: u8) -> Result<Self, ParseError> {
        match code {
            1 => Ok(Self::Data),
            2 => Ok(Self::Request),
            3 => Ok(Self::Report),
            4 => Ok(Self::Reset),
            5 => Ok(Self::Close),
            6 => Ok(Self::Probe),
            other => Err(ParseError::Type(other)),
        }
    }
    /// Returns the bytes of the part of the header that depends on the type.
    pub const fn length(self) -> usize {
        match self {
            Self::Data | Self::Request => 12,
            Self::Report => 20,
            Self::Reset | Self::Close | Self::Probe => 8,
        }
    }
}

/// Protocol of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Next {
    /// A part of a native message: [`super::Words`], then bytes of the message.
    #[default]
    Native,
    /// An IP packet; its first four bits are its version.
    Ip,
    /// A VXLAN header and what follows it.
    Vxlan,
    /// A part of a super-packet: [`super::Words`], then bytes of a `virtio_net_hdr` and the IP packet behind it, which
    /// is a segmentation unit of the sending host and is put together by the receiver.
    Super,
    /// A protocol that this version does not know.
    Other(u8),
}

impl Next {
    /// Returns the protocol's code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Native => 0,
            Self::Ip => 4,
            Self::Vxlan => 5,
            Self::Super => 6,
            Self::Other(code) => code,
        }
    }
    /// Returns the protocol with this code.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Native,
            4 => Self::Ip,
            5 => Self::Vxlan,
            6 => Self::Super,
            other => Self::Other(other),
        }
    }
}

/// The body of data and of requests to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Data {
    /// Sequence number; with SYN, its upper 18 bits are the tunnel's epoch.
    pub seq: u32,
    /// Pull number that would satisfy the sender's demand.
    pub pull_target: u32,
    /// Protocol of the payload.
    pub next: Next,
    /// Priority that the sender asks for, 0 to 7. The receiver's policy may overrule it.
    pub priority: u8,
    /// Service of the tunnel. The receiver takes it from the packet that begins the tunnel.
    pub service: Service,
}

/// Service of a tunnel to its packets (EQDS, section 5, requirement 5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Service {
    /// Lost packets are sent again; the receiver puts packets in order.
    #[default]
    Ordered,
    /// Lost packets are sent again; the receiver hands packets on as they arrive.
    Unordered,
    /// Packets are sent once, and handed on as they arrive.
    Unreliable,
}

impl Service {
    /// Returns the two bits of the service.
    pub const fn code(self) -> u8 {
        self as u8
    }
    /// Returns the service of two bits; the code 3, which has no meaning, gives [`Service::Ordered`].
    pub const fn from_code(code: u8) -> Self {
        match code & 3 {
            1 => Self::Unordered,
            2 => Self::Unreliable,
            _ => Self::Ordered,
        }
    }
}

/// The body of a report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Report {
    /// Sequence number that the flags are about.
    pub number: u32,
    /// Credit granted so far, in MTUs.
    pub pull: u32,
    /// Time in microseconds for which the receiver's link will be busy at least.
    pub busy: u32,
    /// Packet number of the packet that caused the report.
    pub echo: u32,
    /// Low 16 bits of that packet's key epoch.
    pub echo_epoch: u16,
    /// Time in microseconds between the arrival of that packet and the report; [`Report::NO_ECHO`] without one.
    pub delay: u16,
}

impl Report {
    /// Delay of a report that no packet caused, or that a packet caused longer ago than the field can say.
    pub const NO_ECHO: u16 = u16::MAX;

    /// Returns the report of an engine's control packet, without echo.
    pub const fn of(control: &eqds::Control) -> Self {
        let eqds::Control { number, pull, busy, .. } = *control;
        Self { number, pull, busy, echo: 0, echo_epoch: 0, delay: Self::NO_ECHO }
    }
    /// Returns the control packet for an engine.
    pub const fn control(&self, flags: Flags) -> eqds::Control {
        eqds::Control { flags: flags.for_engine(), number: self.number, pull: self.pull, busy: self.busy, eqif: 0 }
    }
}

/// Reason of a reset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ResetReason {
    /// The receiver has no such tunnel.
    #[default]
    NoTunnel,
    /// The key epoch is not greater than the one that option "floor" names.
    OldEpoch,
    /// The receiver does not know whether the key epoch is old: repeat option "challenge" as "answer" with the next
    /// SYN.
    Challenge,
    /// The receiver's policy refuses the traffic: an unknown EQIF, or a payload that should be sealed.
    Refused,
    /// A reason that this version does not know.
    Other(u8),
}

impl ResetReason {
    /// Returns the reason's code.
    pub const fn code(self) -> u8 {
        match self {
            Self::NoTunnel => 0,
            Self::OldEpoch => 1,
            Self::Challenge => 2,
            Self::Refused => 3,
            Self::Other(code) => code,
        }
    }
    /// Returns the reason with this code.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::NoTunnel,
            1 => Self::OldEpoch,
            2 => Self::Challenge,
            3 => Self::Refused,
            other => Self::Other(other),
        }
    }
}

/// The body of a reset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Reset {
    /// Sequence number of the refused packet.
    pub seq: u32,
    /// Reason of the refusal.
    pub reason: ResetReason,
}

/// The body of a notice that an end drops the tunnel's state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Close {
    /// First sequence number that the sender has not used, or that has not arrived at the receiver.
    pub number: u32,
    /// Whether the sender of the tunnel closes, rather than its receiver.
    pub from_sender: bool,
}

/// The body of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Probe {
    /// Token that the answer returns.
    pub token: u32,
    /// In an answer: bytes of the UDP payload of the probe that arrived. In a probe: zero.
    pub size: u16,
}

/// The part of a header that depends on its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Body {
    /// Data of a tunnel.
    Data(Data),
    /// Request to send.
    Request(Data),
    /// Report of a tunnel's receiver.
    Report(Report),
    /// Refusal.
    Reset(Reset),
    /// Notice that an end drops the tunnel's state.
    Close(Close),
    /// Probe of a path and its MTU, or the answer to one.
    Probe(Probe),
}

impl Body {
    /// Returns the type.
    pub const fn kind(&self) -> PacketType {
        match self {
            Self::Data(_) => PacketType::Data,
            Self::Request(_) => PacketType::Request,
            Self::Report(_) => PacketType::Report,
            Self::Reset(_) => PacketType::Reset,
            Self::Close(_) => PacketType::Close,
            Self::Probe(_) => PacketType::Probe,
        }
    }

    /// Reads the body of a type; also returns the rest of the bytes.
    pub(super) fn parse(kind: PacketType, bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let long = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let short = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
        match kind {
            PacketType::Data | PacketType::Request => {
                let (bytes, rest) = take::<12>(bytes)?;
                let next = Next::from_code(bytes[8]);
                let (priority, service) = (bytes[9] >> 5, Service::from_code(bytes[9] >> 3));
                let data = Data { seq: long(bytes), pull_target: long(&bytes[4..]), next, priority, service };
                Ok((if kind == PacketType::Data { Self::Data(data) } else { Self::Request(data) }, rest))
            }
            PacketType::Report => {
                let (bytes, rest) = take::<20>(bytes)?;
                let report = Report {
                    number: long(bytes),
                    pull: long(&bytes[4..]),
                    busy: long(&bytes[8..]),
                    echo: long(&bytes[12..]),
                    echo_epoch: short(&bytes[16..]),
                    delay: short(&bytes[18..]),
                };
                Ok((Self::Report(report), rest))
            }
            PacketType::Reset => {
                let (bytes, rest) = take::<8>(bytes)?;
                Ok((Self::Reset(Reset { seq: long(bytes), reason: ResetReason::from_code(bytes[4]) }), rest))
            }
            PacketType::Close => {
                let (bytes, rest) = take::<8>(bytes)?;
                Ok((Self::Close(Close { number: long(bytes), from_sender: bytes[4] & 0x80 != 0 }), rest))
            }
            PacketType::Probe => {
                let (bytes, rest) = take::<8>(bytes)?;
                Ok((Self::Probe(Probe { token: long(bytes), size: short(&bytes[4..]) }), rest))
            }
        }
    }

    /// Writes the body into `bytes`, whose length is that of its type.
    pub(super) fn emit(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let mut long = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        match *self {
            Self::Data(data) | Self::Request(data) => {
                long(0, data.seq);
                long(4, data.pull_target);
                bytes[8] = data.next.code();
                bytes[9] = data.priority << 5 | data.service.code() << 3;
            }
            Self::Report(report) => {
                long(0, report.number);
                long(4, report.pull);
                long(8, report.busy);
                long(12, report.echo);
                long(16, u32::from(report.echo_epoch) << 16 | u32::from(report.delay));
            }
            Self::Reset(reset) => {
                long(0, reset.seq);
                bytes[4] = reset.reason.code();
            }
            Self::Close(close) => {
                long(0, close.number);
                bytes[4] = u8::from(close.from_sender) << 7;
            }
            Self::Probe(probe) => {
                long(0, probe.token);
                long(4, u32::from(probe.size) << 16);
            }
        }
    }
}
