//! The request for a connection (REQ).
//!
//! | bytes   | field                                                                            |
//! |---------|----------------------------------------------------------------------------------|
//! | 0-3     | local communication id                                                           |
//! | 7       | reserved, 0 from others; of ours, the scheme that a queue pair would rather use (4 bits) |
//! | 8-15    | service                                                                          |
//! | 16-23   | local GUID                                                                       |
//! | 28-31   | local Q_Key                                                                      |
//! | 32-35   | local queue pair; responder resources                                            |
//! | 36-39   | 0; initiator depth                                                               |
//! | 43      | how long the other side may take (5 bits), service type (2), flow control (1)    |
//! | 44-47   | the receiver's first PSN; how long this side may take (5), retries (3)                          |
//! | 48-51   | partition; MTU (4), 0 (1), RNR retries (3); CM retries (4), SRQ (1), 0 (3)       |
//! | 52-95   | the path: see [`PathOf`]                                                         |
//! | 96-139  | another path, 0                                                                  |
//! | 140-231 | private data, the first 36 of them [`IpAddresses`]                               |

use core::net::Ipv6Addr;

use selvedge_units::{Psn, QpNumber};

use super::{Body, Fill, IpAddresses, PrivateData};

/// A request for a connection (REQ).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The sender's id of the connection.
    pub local: u32,
    /// Service to connect with.
    pub service: u64,
    /// GUID of the sender's NIC.
    pub guid: u64,
    /// The sender's Q_Key.
    pub qkey: u32,
    /// The sender's queue pair.
    pub qp: QpNumber,
    /// Reads and Atomics that the sender serves concurrently.
    pub responder_resources: u8,
    /// Reads and Atomics that the sender issues concurrently.
    pub initiator_depth: u8,
    /// Longest response time of the receiver: 4.096 us times 2 to this power.
    pub remote_timeout: u8,
    /// Longest response time of the sender: 4.096 us times 2 to this power.
    pub local_timeout: u8,
    /// Transport service: 0 is a reliable connection.
    pub transport: u8,
    /// First PSN that the receiver is to send.
    pub psn: Psn,
    /// Retries after a timeout, 0 to 7.
    pub retries: u8,
    /// Retries when a receiver is not ready, 0 to 7.
    pub not_ready_retries: u8,
    /// Code of the path's MTU: 1 is 256 bytes, 5 is 4,096.
    pub mtu: u8,
    /// Whether the sender has a shared receive queue.
    pub srq: bool,
    /// Loss recovery scheme preferred by the sender if the receiver knows it, 1 to 15 ([`Ours`](crate::verbs::Ours)); 0
    /// is no preference.
    pub scheme: u8,
    /// Path between the two sides.
    pub path: PathOf,
    /// IP addresses and ports.
    pub ip: IpAddresses,
    /// Private data of the application.
    pub private: PrivateData<56>,
}

/// The path between the two sides of a connection.
///
/// | bytes | field                                                      |
/// |-------|------------------------------------------------------------|
/// | 0-3   | local and remote LID, 0xffff                               |
/// | 4-19  | local GID                                                  |
/// | 20-35 | remote GID                                                 |
/// | 36-39 | flow label (20 bits), 0 (6), rate (6)                      |
/// | 40-43 | traffic class; hop limit; service level (4 bits), 0 (4); acknowledgement timeout (5 bits), 0 (3) |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathOf {
    /// GID of the sender.
    pub local: Ipv6Addr,
    /// GID of the receiver.
    pub remote: Ipv6Addr,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Acknowledgement timeout: 4.096 us times 2 to this power.
    pub ack_timeout: u8,
}

const PATH: usize = 52;
const IP: usize = 140;

impl Request {
    pub(super) fn parse(body: &Body<'_>) -> Self {
        Self {
            local: body.u32(0),
            service: body.u64(8),
            guid: body.u64(16),
            qkey: body.u32(28),
            qp: QpNumber(body.u24(32)),
            responder_resources: body.0[35],
            initiator_depth: body.0[39],
            remote_timeout: body.0[43] >> 3,
            transport: body.0[43] >> 1 & 0b11,
            psn: Psn::new(body.u24(44)),
            local_timeout: body.0[47] >> 3,
            retries: body.0[47] & 0b111,
            mtu: body.0[50] >> 4,
            not_ready_retries: body.0[50] & 0b111,
            srq: body.0[51] & 0b1000 != 0,
            scheme: body.0[7] & 0b1111,
            path: PathOf {
                local: body.bytes::<16>(PATH + 4).into(),
                remote: body.bytes::<16>(PATH + 20).into(),
                flow_label: body.u32(PATH + 36) >> 12,
                traffic_class: body.0[PATH + 40],
                hop_limit: body.0[PATH + 41],
                ack_timeout: body.0[PATH + 43] >> 3,
            },
            ip: IpAddresses::parse(&body.bytes(IP)),
            private: body.bytes(IP + IpAddresses::LENGTH),
        }
    }

    pub(super) fn emit(&self, body: &mut Fill<'_>) {
        /// Retries of connection management: the maximum of the field.
        const CM_RETRIES: u8 = 15;
        /// Rate code of 10 Gb/s; receivers ignore it.
        const RATE: u32 = 3;
        body.put(0, &self.local.to_be_bytes());
        body.put(7, &[self.scheme & 0b1111]);
        body.put(8, &self.service.to_be_bytes());
        body.put(16, &self.guid.to_be_bytes());
        body.put(28, &self.qkey.to_be_bytes());
        body.put24(32, self.qp.0);
        body.put(35, &[self.responder_resources]);
        body.put(39, &[self.initiator_depth]);
        body.put(43, &[self.remote_timeout << 3 | (self.transport & 0b11) << 1]);
        body.put24(44, self.psn.get());
        body.put(47, &[self.local_timeout << 3 | self.retries & 0b111]);
        body.put(48, &[0xff, 0xff, self.mtu << 4 | self.not_ready_retries & 0b111]);
        body.put(51, &[CM_RETRIES << 4 | u8::from(self.srq) << 3]);
        body.put(PATH, &[0xff; 4]);
        body.put(PATH + 4, &self.path.local.octets());
        body.put(PATH + 20, &self.path.remote.octets());
        body.put(PATH + 36, &(self.path.flow_label << 12 | RATE).to_be_bytes());
        body.put(PATH + 40, &[self.path.traffic_class, self.path.hop_limit, 0, self.path.ack_timeout << 3]);
        body.put(IP, &self.ip.emit());
        body.put(IP + IpAddresses::LENGTH, &self.private);
    }
}
