//! Resolution of a service to the queue pair that serves it, for senders of datagrams (SIDR).
//!
//! | bytes  | request                        | bytes  | reply                               |
//! |--------|--------------------------------|--------|-------------------------------------|
//! | 0-3    | request id                     | 0-3    | request id                          |
//! | 4-5    | partition                      | 4      | status, 0: the service exists       |
//! | 8-15   | service                        | 8-10   | queue pair                          |
//! | 16-51  | addresses                      | 12-19  | service                             |
//! | 52-231 | private data                   | 20-23  | Q_Key                               |
//! |        |                                | 96-231 | private data                        |

use selvedge_units::QpNumber;

use super::{Body, Fill, IpAddresses, PrivateData};

/// A request for the queue pair of a service (SIDR_REQ).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SidrRequest {
    /// The sender's id of the request.
    pub id: u32,
    /// Service to resolve.
    pub service: u64,
    /// Addresses and ports.
    pub ip: IpAddresses,
    /// Private data of the application.
    pub private: PrivateData<180>,
}

/// The queue pair of a service (SIDR_REP).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SidrReply {
    /// Id of the request.
    pub id: u32,
    /// Status: 0 if the service exists, 1 if there is no such service, 2 if it refuses.
    pub status: u8,
    /// The queue pair.
    pub qp: QpNumber,
    /// Service of the request.
    pub service: u64,
    /// The queue pair's Q_Key.
    pub qkey: u32,
    /// Private data of the application.
    pub private: PrivateData<136>,
}

impl SidrRequest {
    pub(super) fn parse(body: &Body<'_>) -> Self {
        Self {
            id: body.u32(0),
            service: body.u64(8),
            ip: IpAddresses::parse(&body.bytes(16)),
            private: body.bytes(16 + IpAddresses::LENGTH),
        }
    }
    pub(super) fn emit(&self, body: &mut Fill<'_>) {
        body.put(0, &self.id.to_be_bytes());
        body.put(4, &[0xff, 0xff]);
        body.put(8, &self.service.to_be_bytes());
        body.put(16, &self.ip.emit());
        body.put(16 + IpAddresses::LENGTH, &self.private);
    }
}

impl SidrReply {
    pub(super) fn parse(body: &Body<'_>) -> Self {
        Self {
            id: body.u32(0),
            status: body.0[4],
            qp: QpNumber(body.u24(8)),
            service: body.u64(12),
            qkey: body.u32(20),
            private: body.bytes(96),
        }
    }
    pub(super) fn emit(&self, body: &mut Fill<'_>) {
        body.put(0, &self.id.to_be_bytes());
        body.put(4, &[self.status]);
        body.put24(8, self.qp.0);
        body.put(12, &self.service.to_be_bytes());
        body.put(20, &self.qkey.to_be_bytes());
        body.put(96, &self.private);
    }
}
