//! Packets that carry a workload's payload, and the answers to these packets.

use selvedge_transport::Scheme;
use selvedge_transport::endpoint::EndpointSettings;
use selvedge_transport::tcp::TcpConfig;
use selvedge_units::{Bytes, Setting};

use crate::config::SimConfig;
use crate::error::ConfigError;
use crate::topology::Framing;
use crate::workload::Workload;

/// Packets of a workload's flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    pub(super) framing: Framing,
    /// Packets that come back for each data packet.
    pub(super) answers: f64,
    /// Further packets of a flow, there and back together.
    pub(super) per_flow: f64,
    /// Bytes of memory of an open flow, at both ends together.
    pub(super) memory: u64,
    /// Packets that a flow may have in flight, where that is limited.
    pub(super) window: Option<f64>,
}

/// Returns the stack of each workload, indexed by its number.
///
/// # Errors
/// A name of the workloads beside the transport belongs to no workload.
pub(super) fn of_workloads(config: &SimConfig, workload: &Workload) -> Result<Vec<Stack>, ConfigError> {
    let own = Stack::own(config);
    let Some(beside) = &config.beside else { return Ok(vec![own; workload.summaries.len()]) };
    let guest = Stack::tcp(&beside.tcp, beside.framing(&config.nic));
    let which = beside.which(&workload.summaries).map_err(|error| error.within("beside"))?;
    Ok(which.into_iter().map(|speaks_tcp| if speaks_tcp { guest } else { own }).collect())
}

impl Stack {
    /// Returns the stack of the transport.
    fn own(config: &SimConfig) -> Self {
        let transport = &config.transport;
        let framing = config.nic.framing(transport);
        if transport.native().is_some() {
            return Self { framing, answers: EQDS_ANSWERS, per_flow: 1.0, memory: EQDS_FLOW, window: None };
        }
        if let Some(messages) = transport.messages() {
            return Self { framing, answers: messages.answers(), per_flow: 0.0, memory: RDMA_FLOW, window: None };
        }
        let stack = match (transport.tcp(), transport.recovery()) {
            (Some(tcp), _) => Self::tcp(tcp, framing),
            (None, None) => Self { framing, answers: 0.0, per_flow: 0.0, memory: RDMA_FLOW, window: None },
            (None, Some(recovery)) => {
                let window = recovery.bdp_cap().map(f64::from);
                // Coalesced acknowledgements are one for each message, and few others.
                let (answers, per_flow) = match recovery {
                    recovery if recovery.acknowledges_each() => (1.0, 0.0),
                    recovery if recovery.acknowledges() => (0.0, 1.0),
                    _ => (0.0, 0.0),
                };
                Self { framing, answers, per_flow, memory: RDMA_FLOW, window }
            }
        };
        // A tunnel carries answers as data, and acknowledges these as well.
        if transport.is_carried() { Self { answers: stack.answers + TUNNEL_ANSWERS, ..stack } } else { stack }
    }

    fn tcp(tcp: &TcpConfig, framing: Framing) -> Self {
        let every = if tcp.delayed_ack == Setting::Off { 1 } else { tcp.ack_every.max(1) };
        let window =
            tcp.receive_buffer.resolve(|| None).map(|bytes: Bytes| bytes.get() as f64 / framing.mtu.get() as f64);
        Self { framing, answers: 1.0 / f64::from(every), per_flow: 0.5, memory: TCP_FLOW, window }
    }
}

/// Answers of EQDS for each data packet of native messages: an acknowledgement, and credit.
const EQDS_ANSWERS: f64 = 2.0;
/// Packets that a tunnel adds for each data packet of a stack.
const TUNNEL_ANSWERS: f64 = 1.0;

/// Bytes of an open queue pair at both ends: sender, receiver, tables of numbers, bitmaps, its flow.
const RDMA_FLOW: u64 = 1_000;
/// Bytes of an open TCP connection at both ends: 1,408 each, what was sent and not acknowledged, its flow.
const TCP_FLOW: u64 = 3_200;
/// Bytes of an open native message of EQDS, with its tunnel.
const EQDS_FLOW: u64 = 2_000;
