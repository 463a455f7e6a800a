//! Queue pairs of applications: made, connected, given receive requests.

use alloc::vec::Vec;

use selvedge_transport::{CongestionConfig, Cx, RecoveryConfig};
use selvedge_units::{Bytes, HostId, Instant, Psn, QpNumber};

use selvedge_wire::verbs::Headers;

use super::{Ledger, Rdma, frame};
use crate::nic::{Nic, NicParams};
use crate::verbs::{
    Access, Capacities, Handshake, Payload, QpInit, QpOptions, ReceiveRequest, Region, Rnic, Service, Sge, Transmit,
    VerbsError,
};

/// What queue pairs of applications have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VerbsParams {
    /// Loss recovery, resolved. Go-back-N is the standard's.
    pub recovery: RecoveryConfig,
    /// Congestion control, resolved. HPCC's telemetry does not get here.
    pub congestion: CongestionConfig,
    /// What surrounds the payload of a packet on the wire, gap included.
    pub overhead: Bytes,
    /// Packets in flight with go-back-N, 1 to 2^22.
    pub window: u32,
    /// Traffic class of requests and answers.
    pub class: u8,
    /// How long their headers are.
    pub format: WireFormat,
}

/// How long the headers of packets between two of our own are. What they say is the same in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WireFormat {
    /// As the software RNIC sends them.
    #[default]
    Selvedge,
    /// As the paper of IRN has them ([`Headers::irn_length`]).
    Irn,
    /// RoCE's alone.
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

/// How one end of a connection is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionParams {
    /// Send requests that it holds.
    pub send_requests: u32,
    /// Receive requests that it holds, and that wait when it begins.
    pub receive_requests: u32,
    /// Reads and Atomics under way at a time, 1 to 128.
    pub reads: u8,
    /// Code of the timeout, 0 to 31: 4.096 us times 2 to this power; 0 is for ever.
    pub timeout: u8,
    /// How often to try again after silence, 0 to 7.
    pub retries: u8,
    /// Optional mechanisms of reliable connections.
    pub options: QpOptions,
}

/// Completions that may wait. They are polled at once.
const COMPLETIONS: u32 = 1 << 22;
/// Where all of memory begins and how long it is, as any key names it.
const MEMORY: u64 = 1 << 47;
const KEY: u32 = 1;
const FIRST: Psn = Psn::new(0);
/// Code of 10 us: how long a sender waits for a receive request.
const NOT_READY: u8 = 1;

impl Nic {
    /// A queue pair for an application, not connected yet.
    ///
    /// # Errors
    /// As [`Rnic::create_qp`].
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
            overhead: params.overhead,
            window: params.window,
            ack_every: 1,
            options: connection.options,
        })
    }

    /// Connects a queue pair with `peer` of `to`, and lets its receive requests wait. Both ends know of each other
    /// which recovery they use.
    ///
    /// # Errors
    /// As [`Rnic::modify_qp`].
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
        let route = frame::route(self.id, to, verbs.class, entropy);
        let handshake = Handshake {
            access: Access::ALL,
            route,
            destination: peer,
            mtu: params.mtu,
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
        (0..connection.receive_requests).try_for_each(|_| self.post_receive(qp))
    }

    /// One more message may be received on `qp`, of any length.
    ///
    /// # Errors
    /// As [`Rnic::post_recv`].
    pub fn post_receive(&mut self, qp: QpNumber) -> Result<(), VerbsError> {
        let Some(rdma) = &mut self.rdma else { return Err(VerbsError::NoSuch("queue pair")) };
        rdma.rnic.post_recv(qp, ReceiveRequest { id: 0, scatter: Vec::from([Self::memory(0, u32::MAX)]) })?;
        if rdma.rnic.take_news() {
            self.stand();
        }
        Ok(())
    }

    /// A piece of memory, at this NIC or another.
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
