//! Connection management messages (InfiniBand architecture, volume 1, chapter 12; for IP addresses annex A11).
//!
//! Each message is a management datagram (MAD) of 256 bytes, sent to queue pair 1 as an unreliable datagram:
//!
//! | bytes  | field                                                                     |
//! |--------|---------------------------------------------------------------------------|
//! | 0      | base version, 1                                                           |
//! | 1      | management class, 7: communication management                             |
//! | 2      | class version, 2                                                          |
//! | 3      | method, 3: send                                                           |
//! | 4-7    | status and class specific, 0                                              |
//! | 8-15   | transaction                                                               |
//! | 16-17  | attribute: kind of the message                                            |
//! | 18-23  | 0                                                                         |
//! | 24-255 | the message                                                               |

mod address;
mod request;
mod resolution;

use selvedge_units::{Psn, QpNumber};

use crate::error::ParseError;

pub use address::IpAddresses;
pub use request::{PathOf, Request};
pub use resolution::{SidrReply, SidrRequest};

/// The Q_Key of queue pair 1.
pub const QKEY: u32 = 0x8001_0000;
/// Bytes of a MAD.
pub const LENGTH: usize = 256;

/// Private data of an application. Each message has room for `N` bytes.
pub type PrivateData<const N: usize> = [u8; N];

/// A MAD of communication management.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mad {
    /// Transaction id, which an answer shares with its request.
    pub transaction: u64,
    /// The message.
    pub message: Message,
}

/// The message of a MAD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Request for a connection (REQ).
    Request(Request),
    /// Announcement of a delayed answer (MRA).
    Wait(Wait),
    /// Refusal of a connection (REJ).
    Reject(Reject),
    /// Acceptance of a connection (REP).
    Reply(Reply),
    /// Confirmation of a connection (RTU).
    Ready(Ids, PrivateData<224>),
    /// Request to end a connection (DREQ).
    Disconnect(Ids, QpNumber, PrivateData<220>),
    /// Confirmation that a connection has ended (DREP).
    Disconnected(Ids, PrivateData<224>),
    /// Request for the queue pair of a service (SIDR_REQ).
    Resolve(SidrRequest),
    /// Queue pair of a service (SIDR_REP).
    Resolved(SidrReply),
    /// Query or report of whether the other side's process lives; a Selvedge extension with an attribute of its own.
    Life(Ids, Life),
}

/// Query or report of the state of a connection whose process may have been killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Query whether the connection still exists.
    Asked,
    /// Report that the connection exists.
    Lives,
    /// Report that the connection is unknown.
    Gone,
}

/// The two sides' ids of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ids {
    /// Id at the sender of the message.
    pub local: u32,
    /// Id at the receiver of the message.
    pub remote: u32,
}

/// Acceptance of a connection (REP).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Ids of the connection.
    pub ids: Ids,
    /// The responder's Q_Key.
    pub qkey: u32,
    /// The responder's queue pair.
    pub qp: QpNumber,
    /// First PSN that the receiver is to send.
    pub psn: Psn,
    /// Reads and Atomics that the responder serves concurrently.
    pub responder_resources: u8,
    /// Reads and Atomics that the responder issues concurrently.
    pub initiator_depth: u8,
    /// Retries when a receiver is not ready, 0 to 7.
    pub not_ready_retries: u8,
    /// Whether the responder has a shared receive queue.
    pub srq: bool,
    /// Loss recovery scheme preferred by the responder if the receiver knows it, 1 to 15, in reserved bits; 0, as other
    /// implementations send, is no preference.
    pub scheme: u8,
    /// GUID of the responder's NIC.
    pub guid: u64,
    /// Private data of the application.
    pub private: PrivateData<196>,
}

/// Refusal of a connection (REJ).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reject {
    /// Ids of the connection.
    pub ids: Ids,
    /// Kind of the refused message: 0 is a REQ, 1 a REP.
    pub refused: u8,
    /// Reason code.
    pub reason: u16,
    /// Private data of the application.
    pub private: PrivateData<148>,
}

impl Reject {
    /// Reason: no such service.
    pub const INVALID_SERVICE: u16 = 8;
    /// Reason: the application refuses.
    pub const CONSUMER: u16 = 28;
    /// Reason: no further message arrived in time.
    pub const TIMEOUT: u16 = 4;
    /// Reason: no such connection.
    pub const STALE: u16 = 10;
}

/// Announcement of a delayed answer (MRA).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// Ids of the connection.
    pub ids: Ids,
    /// Kind of the message that will be answered: 0 is a REQ, 1 a REP.
    pub received: u8,
    /// Delay: 4.096 us times 2 to this power.
    pub timeout: u8,
}

const REQUEST: u16 = 0x10;
const WAIT: u16 = 0x11;
const REJECT: u16 = 0x12;
const REPLY: u16 = 0x13;
const READY: u16 = 0x14;
const DISCONNECT: u16 = 0x15;
const DISCONNECTED: u16 = 0x16;
const RESOLVE: u16 = 0x17;
const RESOLVED: u16 = 0x18;
/// Attribute of [`Message::Life`], Selvedge's own: the specification's attributes of this class end at 0x1b.
const LIFE: u16 = 0xff10;

/// Position of the message in a MAD.
const BODY: usize = 24;

impl Mad {
    /// Reads a MAD.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let mad: &[u8; LENGTH] =
            bytes.try_into().map_err(|_| ParseError::Truncated { found: bytes.len(), needed: LENGTH })?;
        if mad[..4] != [1, 7, 2, 3] {
            return Err(ParseError::Version(mad[0]));
        }
        let body = Body(&mad[BODY..]);
        let ids = Ids { local: body.u32(0), remote: body.u32(4) };
        let message = match u16::from_be_bytes([mad[16], mad[17]]) {
            REQUEST => Message::Request(Request::parse(&body)),
            WAIT => Message::Wait(Wait { ids, received: body.0[8] >> 6, timeout: body.0[9] >> 3 }),
            REJECT => {
                Message::Reject(Reject { ids, refused: body.0[8] >> 6, reason: body.u16(10), private: body.bytes(84) })
            }
            REPLY => Message::Reply(Reply {
                ids,
                qkey: body.u32(8),
                qp: QpNumber(body.u24(12)),
                psn: Psn::new(body.u24(20)),
                responder_resources: body.0[24],
                initiator_depth: body.0[25],
                not_ready_retries: body.0[27] >> 5,
                srq: body.0[27] & 0x10 != 0,
                scheme: body.0[27] & 0xf,
                guid: body.u64(28),
                private: body.bytes(36),
            }),
            READY => Message::Ready(ids, body.bytes(8)),
            DISCONNECT => Message::Disconnect(ids, QpNumber(body.u24(8)), body.bytes(12)),
            DISCONNECTED => Message::Disconnected(ids, body.bytes(8)),
            RESOLVE => Message::Resolve(SidrRequest::parse(&body)),
            RESOLVED => Message::Resolved(SidrReply::parse(&body)),
            LIFE => Message::Life(
                ids,
                match body.0[8] {
                    0 => Life::Asked,
                    1 => Life::Lives,
                    _ => Life::Gone,
                },
            ),
            other => return Err(ParseError::Opcode(other as u8)),
        };
        let transaction = u64::from_be_bytes([mad[8], mad[9], mad[10], mad[11], mad[12], mad[13], mad[14], mad[15]]);
        Ok(Self { transaction, message })
    }

    /// Returns the MAD's bytes.
    pub fn emit(&self) -> [u8; LENGTH] {
        let mut mad = [0; LENGTH];
        mad[..4].copy_from_slice(&[1, 7, 2, 3]);
        mad[8..16].copy_from_slice(&self.transaction.to_be_bytes());
        let mut body = Fill(&mut mad[BODY..]);
        let ids = |body: &mut Fill<'_>, ids: Ids| {
            body.put(0, &ids.local.to_be_bytes());
            body.put(4, &ids.remote.to_be_bytes());
        };
        let attribute = match &self.message {
            Message::Request(request) => {
                request.emit(&mut body);
                REQUEST
            }
            Message::Wait(wait) => {
                ids(&mut body, wait.ids);
                body.put(8, &[wait.received << 6, wait.timeout << 3]);
                WAIT
            }
            Message::Reject(reject) => {
                ids(&mut body, reject.ids);
                body.put(8, &[reject.refused << 6]);
                body.put(10, &reject.reason.to_be_bytes());
                body.put(84, &reject.private);
                REJECT
            }
            Message::Reply(reply) => {
                ids(&mut body, reply.ids);
                body.put(8, &reply.qkey.to_be_bytes());
                body.put24(12, reply.qp.0);
                body.put24(20, reply.psn.get());
                let flags = reply.not_ready_retries << 5 | u8::from(reply.srq) << 4 | reply.scheme & 0xf;
                body.put(24, &[reply.responder_resources, reply.initiator_depth, 0, flags]);
                body.put(28, &reply.guid.to_be_bytes());
                body.put(36, &reply.private);
                REPLY
            }
            Message::Ready(of, private) => {
                ids(&mut body, *of);
                body.put(8, private);
                READY
            }
            Message::Disconnect(of, qp, private) => {
                ids(&mut body, *of);
                body.put24(8, qp.0);
                body.put(12, private);
                DISCONNECT
            }
            Message::Disconnected(of, private) => {
                ids(&mut body, *of);
                body.put(8, private);
                DISCONNECTED
            }
            Message::Resolve(request) => {
                request.emit(&mut body);
                RESOLVE
            }
            Message::Resolved(reply) => {
                reply.emit(&mut body);
                RESOLVED
            }
            Message::Life(of, life) => {
                ids(&mut body, *of);
                body.put(8, &[*life as u8]);
                LIFE
            }
        };
        mad[16..18].copy_from_slice(&attribute.to_be_bytes());
        mad
    }
}

/// Reader of a message: 232 bytes.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0[at..at + N]);
        bytes
    }
    fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.bytes(at))
    }
    fn u24(&self, at: usize) -> u32 {
        self.u32(at) >> 8
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.bytes(at))
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.bytes(at))
    }
}

/// Writer of a message: 232 bytes.
struct Fill<'a>(&'a mut [u8]);

impl Fill<'_> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..][..bytes.len()].copy_from_slice(bytes);
    }
    fn put24(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_be_bytes()[1..]);
    }
}

#[cfg(test)]
mod tests;
