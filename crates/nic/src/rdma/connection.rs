//! Queue pairs of applications: creation, connection and receive requests.

use alloc::vec::Vec;

use selvedge_transport::{CongestionParams, Cx, FeedbackConfig, RecoveryParams};
use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber};

use selvedge_wire::verbs::Headers;

use super::{Ledger, Rdma, frame};
use crate::nic::{Nic, NicParams};
use crate::verbs::{
    Access, Capacities, Handshake, Payload, QpInit, QpOptions, ReceiveRequest, Region, Rnic, Service, Sge, Transmit,
    VerbsError,
};

/// Parameters common to all queue pairs of applications.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VerbsParams {
    /// Loss recovery. Go-back-N is that of the standard.
    pub recovery: RecoveryParams,
    /// Congestion control. HPCC's telemetry is not available here.
    pub congestion: CongestionParams,
    /// Notifications for congestion control.
    pub feedback: FeedbackConfig,
    /// Bytes around the payload of a packet on the wire, inter-packet gap included.
    pub overhead: Bytes,
    /// Maximum number of packets in flight with go-back-N, 1 to 2^22.
    pub window: u32,
    /// Traffic class of requests and responses.
    pub class: u8,
    /// Lengths of packet headers.
    pub format: WireFormat,
}

/// Lengths of the headers of packets between two Selvedge NICs. The content of headers does not depend on the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WireFormat {
    /// Lengths of the software RNIC's headers.
    #[default]
    Selvedge,
    /// Header lengths of the IRN paper ([`Headers::irn_length`]).
    Irn,
    /// Header lengths of standard RoCE.
    Roce,
}

impl WireFormat {
    pub(super) fn length(self, headers: &Headers) -> usize {
        match self {
            Self::Selvedge => headers.length(),
            Self::Irn => headers.irn_length(),
            Self::Roce => headers.standard_length(),
        }
    }
}

/// Parameters of one end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionParams {
    /// Capacity of the send queue in requests.
    pub send_requests: u32,
    /// Capacity of the receive queue in requests; as many wait when the connection begins.
    pub receive_requests: u32,
    /// Outstanding Reads and Atomics, 1 to 128.
    pub reads: u8,
    /// Timeout code, 0 to 31: 4.096 us times 2 to this power; 0 means no timeout.
    pub timeout: u8,
    /// Number of retries after a timeout, 0 to 7.
    pub retries: u8,
    /// Optional mechanisms of reliable connections.
    pub options: QpOptions,
}

/// Capacity of completion queues. Completions are polled at once.
const COMPLETIONS: u32 = 1 << 22;
/// Length of memory, which begins at zero under any key.
const MEMORY: u64 = 1 << 47;
const KEY: u32 = 1;
const FIRST: Psn = Psn::new(0);
/// RNR timer code for 10 us: how long a sender waits for a receive request.
const NOT_READY: u8 = 1;

impl Nic {
    /// Creates a queue pair for an application, not connected yet.
    ///
    /// # Errors
    /// Like [`Rnic::create_qp`].
    pub fn create_qp(&mut self, params: &VerbsParams, connection: &ConnectionParams) -> Result<QpNumber, VerbsError> {
        if self.rdma.is_none() {
            self.rdma = Some(alloc::boxed::Box::new(Rdma::new()?));
        }
        let Some(rdma) = &mut self.rdma else { unreachable!("it was just made") };
        rdma.rnic.create_qp(QpInit {
            service: Service::Reliable,
            pd: rdma.pd,
            send_cq: rdma.cq,
            receive_cq: rdma.cq,
            srq: None,
            capacities: Capacities {
                send_requests: connection.send_requests,
                receive_requests: connection.receive_requests,
                send_pieces: 1,
                receive_pieces: 1,
                inline: 0,
            },
            all_signaled: true,
            recovery: params.recovery,
            congestion: params.congestion,
            feedback: params.feedback,
            overhead: params.overhead,
            window: params.window,
            ack_every: 1,
            options: connection.options,
        })
    }

    /// Connects a queue pair with queue pair `peer` of `to`, and posts its receive requests. Both ends know the other's
    /// recovery.
    ///
    /// # Errors
    /// Like [`Rnic::modify_qp`].
    pub fn connect_qp(
        &mut self,
        params: &NicParams,
        connection: &ConnectionParams,
        qp: QpNumber,
        (to, peer): (HostId, QpNumber),
        entropy: u32,
    ) -> Result<(), VerbsError> {
        let (Some(rdma), Some(verbs)) = (&mut self.rdma, &params.verbs) else {
            return Err(VerbsError::NoSuch("queue pair"));
        };
        let route = frame::route(self.port.host, to, verbs.class, entropy);
        let handshake = Handshake {
            access: Access::ALL,
            route,
            destination: peer,
            mtu: params.frames.mtu,
            send_psn: FIRST,
            receive_psn: FIRST,
            reads: connection.reads,
            timeout: connection.timeout,
            retries: connection.retries,
            not_ready_timer: NOT_READY,
        };
        for step in handshake.steps() {
            rdma.rnic.modify_qp(&mut Cx::at(Instant::ZERO), qp, &step)?;
        }
        rdma.rnic.agree(qp)?;
        let cx = &mut Cx::at(Instant::ZERO);
        (0..connection.receive_requests).try_for_each(|_| self.post_receive(cx, params, qp))
    }

    /// Posts a receive request on `qp`, for a message of any length.
    ///
    /// # Errors
    /// Like [`Rnic::post_recv`].
    pub fn post_receive(&mut self, cx: &mut Cx<'_>, params: &NicParams, qp: QpNumber) -> Result<(), VerbsError> {
        let Some(rdma) = &mut self.rdma else { return Err(VerbsError::NoSuch("queue pair")) };
        rdma.rnic.post_recv(qp, ReceiveRequest { id: 0, scatter: Vec::from([Self::memory(0, u32::MAX)]) })?;
        if rdma.rnic.take_news() {
            self.stand();
            self.hand_over(cx, params);
        }
        Ok(())
    }

    /// Returns a piece of memory, at this NIC or another.
    pub fn memory(address: u64, length: u32) -> Sge {
        Sge { address, length, key: KEY }
    }
}

impl Rdma {
    fn new() -> Result<Self, VerbsError> {
        let mut rnic = Rnic::new(0, 1);
        let pd = rnic.alloc_pd();
        let cq = rnic.create_cq(COMPLETIONS)?;
        rnic.reg_mr(Region { pd, address: 0, start: 0, length: MEMORY, access: Access::ALL }, KEY)?;
        Ok(Self {
            rnic,
            memory: Ledger::default(),
            pd,
            cq,
            acks: Default::default(),
            leaving: None,
            queued: false,
            turn: 0,
            armed: Instant::NEVER,
            payload: Payload::default(),
            transmit: Transmit::default(),
        })
    }
}
