//! Parameters that all partitions share, derived from the configuration.

use std::sync::Arc;

use selvedge_nic::{Carrier, Frames, NicParams, TcpParams};
use selvedge_switch::buffer::{Accounting, Buffer, Queueing, Thresholds};
use selvedge_switch::descriptor::Attachment;
use selvedge_switch::{Params, fair, shares, trimming};
use selvedge_transport::eqds::{EqdsParams, Policy};
use selvedge_units::{Bytes, HostId, Rate};
use selvedge_wire::Hole;
use selvedge_wire::verbs::Headers;

use super::classes::Classes;
use super::cut::Cut;
use super::frames::beside_framing;
use super::lookahead::Lookahead;
use crate::config::{Arbitration, BufferConfig, FlowQueues, PollPhases, SimConfig, TransportConfig, Trimming};
use crate::error::ConfigError;
use crate::net::fabric::FabricParams;
use crate::net::host::Host;
use crate::topology::InnerNics;
use crate::workload::WorkloadSummary;

/// Returns the carrier of each workload.
pub(super) fn carriers(config: &SimConfig, summaries: &[WorkloadSummary]) -> Result<Vec<Carrier>, ConfigError> {
    let Some(beside) = &config.beside else { return Ok(vec![Carrier::Transport; summaries.len()]) };
    let which = beside.which(summaries).map_err(|error| error.within("beside"))?;
    Ok(which.into_iter().map(|is_beside| if is_beside { Carrier::Beside } else { Carrier::Transport }).collect())
}

/// Returns the parameters of NICs, by the rate of their hosts' links.
pub(super) fn nics(
    config: &SimConfig,
    classes: &Classes,
    has_verbs: bool,
) -> Result<Vec<(Rate, Arc<NicParams>)>, ConfigError> {
    let with_rate = |rate| Ok((rate, Arc::new(nic(config, classes, config.transport_at(rate), has_verbs)?)));
    config.paths.host_rates().into_iter().map(with_rate).collect()
}

/// Returns the parameters of flows by the class of their path; empty where they do not depend on it.
pub(super) fn flows(
    config: &SimConfig,
    classes: &Classes,
    has_verbs: bool,
) -> Result<Vec<Arc<NicParams>>, ConfigError> {
    let all = &config.path_transports;
    let distinct: Result<Vec<_>, _> =
        all.distinct.iter().map(|transport| nic(config, classes, transport, has_verbs).map(Arc::new)).collect();
    let distinct = distinct?;
    Ok(all.by_class.iter().map(|&number| Arc::clone(&distinct[number as usize])).collect())
}

/// Returns the parameters of NICs with this transport.
fn nic(
    config: &SimConfig,
    classes: &Classes,
    transport: &TransportConfig,
    has_verbs: bool,
) -> Result<NicParams, ConfigError> {
    let SimConfig { nic, beside, .. } = config;
    let (mut eqds, mut eqif) = transport.tunnel_params(nic)?;
    let of_stacks = eqif.iter_mut().flat_map(|eqif| core::iter::once(&mut eqif.tunnel).chain(&mut eqif.tunnels));
    for tunnel in eqds.iter_mut().chain(of_stacks) {
        if let EqdsParams { policy: Policy::Weighted(weights), .. } = tunnel {
            *weights = classes.of_priorities(*weights);
        }
    }
    let verbs = if has_verbs { Some(transport.verbs(nic, classes.of_flow[8])?) } else { None };
    Ok(NicParams {
        frames: Frames {
            mtu: nic.mtu.get() as u16,
            header: nic.data_header(transport).get() as u16,
            ack_frame: nic.ack_frame(transport).get() as u16,
            hole_nack_frame: (nic.ack_frame(transport).get() + Hole::THREE as u64) as u16,
            cnp_frame: nic.cnp_frame.get() as u16,
            gap: nic.gap.get() as u16,
            ack_class: classes.ack,
            cnp_class: classes.cnp,
            classes: std::array::from_fn(|priority| classes.of_flow[priority]),
            ecn_capable: config.switch.ecn.enabled.resolve(|| false),
        },
        qp_burst: nic.qp_burst,
        mac_poll: nic.mac_poll,
        polls_at_random: nic.mac_poll_phases == PollPhases::Random,
        data_classes: classes.all_data | if has_verbs { 1 << classes.ack } else { 0 },
        flows: transport.flows(nic, classes.ack)?,
        beside: match beside {
            Some(beside) => Some(TcpParams { config: beside.params()?, ack_class: classes.beside_ack }),
            None => None,
        },
        eqds,
        eqif,
        verbs,
    })
}

/// Returns whether the order matters in which packets arrive at a switch at the same time through several inputs. Where
/// each input has a buffer of its own, and outputs serve inputs round-robin, the difference is at most one turn.
fn inputs_compete(config: &SimConfig) -> bool {
    let has_turns =
        matches!(config.switch.buffer, BufferConfig::InputQueued(own) if own.arbitration == Arbitration::RoundRobin);
    !has_turns || config.switch.ecn.enabled.resolve(|| false) || config.switch.netrt.enabled
}

/// Returns the parameters of the switches; `data_classes` are those of hosts' data.
pub(super) fn switches(
    config: &SimConfig,
    classes: &Classes,
    data_classes: u8,
    has_verbs: bool,
) -> Result<Params, ConfigError> {
    let switch = &config.switch;
    let frame_limit = config.largest_frame();
    if frame_limit.get() > u64::from(u16::MAX) {
        return Err(ConfigError::new("nic.mtu", format!("{} with headers is longer than any frame", config.nic.mtu)));
    }
    // RDMA headers vary in length: queues are sized for frames with the longest. Frames of tunnels include these.
    let more =
        if has_verbs { Bytes::new(Headers::LONGEST as u64) - config.transport.verbs_headers() } else { Bytes::ZERO };
    let frame = frame_limit + more;
    let limit = |room: Option<Bytes>| room.map_or(u64::MAX, Bytes::get);
    let fair_rules = |per_port, flows: FlowQueues| fair::Rules {
        per_port: limit(per_port),
        per_flow: limit(flows.per_flow.resolve(|| None)),
        quantum: flows.quantum.resolve(|| Some(frame)).unwrap_or(frame).get(),
        queues: u64::from(flows.queues),
    };
    let shares = shares::Rules::new(classes.weights(&switch.weights), frame.get());
    let plain = Queueing { shares, ..Queueing::default() };
    let (buffer, queueing) = match &switch.buffer {
        BufferConfig::InputQueued(_) => (Buffer::PerInput, plain),
        BufferConfig::SharedBuffer(shared) => {
            let thresholds = Thresholds { egress_alpha: shared.egress_alpha, ingress_alpha: shared.ingress_alpha };
            (Buffer::Shared(thresholds), plain)
        }
        BufferConfig::Trimming(trimming) => {
            let turn = trimming.headers_per_data.resolve(|| Some(Trimming::HEADERS_PER_DATA)).unwrap_or(u32::MAX);
            let rules = trimming::Rules {
                data: trimming.data_room(frame).get(),
                headers: limit(trimming.header_room(frame)),
                class: classes.index(trimming.header_class),
                turn,
                trim_last: trimming.trim_last,
            };
            let fair = trimming.flow_queues.map(|flows| fair_rules(None, flows));
            (Buffer::PerOutput, Queueing { trims: Some(rules), fair, ..plain })
        }
        BufferConfig::FairQueued(fair) => {
            let flows = FlowQueues { per_flow: fair.per_flow, queues: fair.queues, quantum: fair.quantum };
            let rules = fair_rules(fair.per_port.resolve(|| None), flows);
            (Buffer::PerOutput, Queueing { fair: Some(rules), ..plain })
        }
    };
    let lossless = if switch.pfc.enabled { classes.bits(&switch.pfc.classes) } else { 0 };
    Ok(Params {
        gap: config.nic.gap.get(),
        classes: classes.count,
        accounting: Accounting::new(classes.count, lossless, buffer == Buffer::PerInput),
        buffer,
        queueing,
        inputs_compete: inputs_compete(config),
        xon_gap: switch.pfc.xon_gap.resolve(|| None).unwrap_or(Bytes::ZERO).get(),
        xon: switch.pfc.xon.get(),
        quanta: switch.pfc.quanta,
        data_classes,
        netrt_class: classes.index(switch.netrt.priority),
    })
}

/// Returns the parameters that all partitions share.
pub(super) fn fabric(
    config: &SimConfig,
    classes: &Classes,
    nic: &Arc<NicParams>,
    flows: Vec<Arc<NicParams>>,
    cut: &Cut,
    lookahead: &Lookahead,
    carriers: Vec<Carrier>,
) -> FabricParams {
    let (graph, routes) = (config.paths.graph(), config.paths.routes());
    let mut next_local = vec![0; cut.count];
    let home = cut.hosts.iter().map(|&partition| {
        let local = next_local[partition as usize];
        next_local[partition as usize] += 1;
        (partition, local)
    });
    let hosts = (0..graph.hosts.len() as u32).map(HostId);
    let (has_cargo, has_verbs) = (nic.eqif.is_some(), nic.verbs.is_some());
    FabricParams {
        busy_host_bytes: Host::busy_bytes(nic),
        nic: Arc::clone(nic),
        flows,
        all_classes: u8::MAX >> (8 - classes.count),
        class_of: classes.of_flow,
        attachment: hosts
            .map(|host| Attachment {
                leaf: routes.leaf_of(host).map_or(u32::MAX, |leaf| leaf as u32),
                port: routes.down_port(host),
            })
            .collect(),
        home: home.collect(),
        schedule: lookahead.schedule,
        notice: lookahead.notice,
        unacknowledged: !config.transport.acknowledges(),
        has_more_to_tell: config.transport.reports_freely() || config.transport.tunnels().is_some(),
        senders_choose_ways: config.transport.chooses_ways(),
        hears_trims: config.transport.hears_trims(),
        writes_telemetry: config.transport.needs_telemetry(),
        has_cargo,
        has_verbs,
        reads_records: has_cargo || has_verbs || config.transport.needs_telemetry(),
        seed: config.seed,
        paths: Arc::clone(&config.paths),
        inner: InnerNics::new(graph, routes.ports()),
        framing: config.nic.framing(&config.transport),
        carriers,
        beside_framing: beside_framing(config),
        beside_class: classes.beside,
    }
}
