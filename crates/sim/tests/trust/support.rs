//! Concise construction of a fabric with its traffic, and the outcome of its run.

use std::sync::Arc;

use selvedge_sim::config::{BufferConfig, InputQueued, NicConfig, PathTransports, RdmaConfig, Stop, SwitchConfig};
use selvedge_sim::fault::{Affected, Direction, LinkSelector, LossConfig, LossModel, RandomLoss};
use selvedge_sim::record::{Event, Focus};
use selvedge_sim::topology::{Graph, LinkConfig, Node, Paths};
use selvedge_sim::workload::{
    FlowFile, FlowList, ListedFlow, Many, Measure, Start, StartUnit, TriggerKind, WorkloadConfig,
};
use selvedge_sim::{ConfigError, Library, Parallel, Recorder, SimConfig, fabric_parts, port_infos, run, run_recorded};
use selvedge_switch::Parts;
use selvedge_telemetry::{DropReason, Drops, FlowRow, Observer, PacketKind, PortRow, RankRow, RunRecord};
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::{Fabric, RecoveryConfig};
use selvedge_units::{Bytes, Chance, Duration, HostId, Instant, Rate};
use selvedge_wire::Header;

/// The four series of the IRN paper's basic comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Series {
    Irn,
    IrnPfc,
    Roce,
    RocePfc,
}

impl Series {
    pub(crate) const ALL: [Self; 4] = [Self::Irn, Self::IrnPfc, Self::Roce, Self::RocePfc];

    pub(crate) fn pfc(self) -> bool {
        matches!(self, Self::IrnPfc | Self::RocePfc)
    }
    fn recovery(self) -> RecoveryConfig {
        match self {
            Self::Irn | Self::IrnPfc => IrnConfig::default().into(),
            Self::Roce | Self::RocePfc => GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() }.into(),
        }
    }
}

/// Description of one run: a [`SimConfig`] whose settings at "auto" are resolved when it runs, and a list of flows.
/// Deviations from the defaults are made in `config`.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) config: SimConfig,
    pub(crate) list: FlowList,
    parallel: Parallel,
}

impl Scene {
    /// Creates a scene without traffic: 1024-byte packets, buffers of twice the bandwidth-delay product.
    pub(crate) fn new(graph: Graph, series: Series) -> Self {
        let mut switch = SwitchConfig::default();
        switch.pfc.enabled = series.pfc();
        let config = SimConfig {
            paths: Arc::new(Paths::of(graph).expect("a valid network")),
            switch,
            nic: NicConfig::default(),
            transport: RdmaConfig { recovery: series.recovery(), ..RdmaConfig::default() }.into(),
            transports: Vec::new(),
            path_transports: PathTransports::default(),
            beside: None,
            workload: WorkloadConfig::default(),
            measure: Measure::All,
            loss: Vec::new(),
            failures: Vec::new(),
            seed: 1,
            stop: Stop::default(),
            sample: None,
            looks: selvedge_sim::config::Looks::default(),
        };
        Self { config, list: FlowList::default(), parallel: Parallel::default() }
    }
    /// Changes the configuration.
    #[must_use]
    pub(crate) fn with(mut self, change: impl FnOnce(&mut SimConfig)) -> Self {
        change(&mut self.config);
        self
    }
    /// Sets the buffer of every input to this size; `None`: without limit.
    #[must_use]
    pub(crate) fn buffer(self, per_port: Option<u64>) -> Self {
        let per_port = per_port.map(Bytes::new).into();
        self.with(|config| {
            config.switch.buffer = BufferConfig::InputQueued(InputQueued { per_port, ..InputQueued::default() })
        })
    }
    /// Changes IRN's settings; does nothing for go-back-N.
    #[must_use]
    pub(crate) fn irn(self, change: impl FnOnce(&mut IrnConfig)) -> Self {
        self.with(|config| {
            if let RecoveryConfig::Irn(irn) = &mut config.transport.rdma_mut().expect("queue pairs").recovery {
                change(irn);
            }
        })
    }
    /// Changes go-back-N's settings; does nothing for IRN.
    #[must_use]
    pub(crate) fn roce(self, change: impl FnOnce(&mut GoBackNConfig)) -> Self {
        self.with(|config| {
            if let RecoveryConfig::GoBackN(roce) = &mut config.transport.rdma_mut().expect("queue pairs").recovery {
                change(roce);
            }
        })
    }
    /// Adds a flow.
    #[must_use]
    pub(crate) fn flow(mut self, src: u32, dst: u32, size: u64, at: Duration) -> Self {
        self.add(src, dst, size, Start::At(Instant::ZERO + at));
        self
    }
    /// Adds a flow and returns it for changes.
    pub(crate) fn add(&mut self, src: u32, dst: u32, size: u64, start: Start) -> &mut ListedFlow {
        self.list.flows.push(ListedFlow {
            id: self.list.flows.len() as u64,
            line: None,
            src: HostId(src),
            dst: HostId(dst),
            size: Bytes::new(size),
            priority: None,
            start,
            on_sent: None,
            on_received: None,
        });
        self.list.flows.last_mut().expect("the flow was just added")
    }
    /// Adds a trigger and returns its number.
    pub(crate) fn trigger(&mut self, kind: TriggerKind) -> u32 {
        self.list.triggers.push(kind);
        self.list.triggers.len() as u32 - 1
    }
    /// Runs on several threads and partitions, with low thresholds, so that windows that threads share and windows of
    /// one thread follow each other.
    #[must_use]
    pub(crate) fn parallel(mut self, threads: usize, partitions: usize) -> Self {
        self.parallel = Parallel { threads, partitions, shared_from: 8, ..self.parallel };
        self
    }
    /// Lets all nodes advance together, by one link's delay per window.
    #[must_use]
    pub(crate) fn all_together(mut self) -> Self {
        self.parallel.in_turns = false;
        self
    }
    /// Returns the configuration with every "auto" resolved.
    pub(crate) fn resolved(&self) -> SimConfig {
        let mut config = self.config.clone();
        if !self.list.flows.is_empty() {
            config.workload.flows = Many::from(FlowFile::new("list"));
        }
        let paths = Arc::clone(&config.paths);
        let (rate, propagation) =
            (paths.fastest_host(), paths.longest().expect("the network has two hosts").propagation);
        let frame = config.nic.mtu + config.nic.data_header(&config.transport);
        let buffer = match &mut config.switch.buffer {
            BufferConfig::InputQueued(own) => {
                own.per_port = own.per_port.resolve(|| Some(Bytes::new(paths.bdp().bytes.get() * 2))).into();
                own.per_port.resolve(|| None).unwrap_or(Bytes::from_kb(240))
            }
            BufferConfig::SharedBuffer(shared) => shared.total,
            BufferConfig::FairQueued(fair) => {
                fair.per_port = fair.per_port.resolve(|| Some(Bytes::new(paths.bdp().bytes.get() * 2))).into();
                fair.per_port.resolve(|| None).unwrap_or(Bytes::from_kb(240))
            }
            BufferConfig::Trimming(trimming) => trimming.data_room(frame),
        };
        let pfc = &mut config.switch.pfc;
        pfc.xon_gap = pfc.xon_gap.resolve(|| Some(frame * 2)).into();
        let fabric = Fabric {
            pfc: pfc.enabled,
            line_rate: rate,
            bdp: paths.bdp().bytes,
            sender_is_slowest: paths.bdp().sender_is_slowest,
            frame,
            gap: config.nic.gap,
            base_rtt: propagation * 2,
            fill_time: propagation * 2,
            links: paths.longest().expect("the network has two hosts").links,
            inputs: 1,
            congested_rtt: propagation * 2 + rate.time_for(buffer),
            acks: false,
        };
        config.switch.netrt.resolve(&fabric);
        config.switch.netrt.check().expect("valid settings");
        let trims = matches!(config.switch.buffer, BufferConfig::Trimming(_));
        if !config.workload.verbs.is_empty() {
            config.transport.carry_verbs();
        }
        let needs = config.transport.resolve(&fabric, &config.nic, trims);
        if let Some(beside) = &mut config.beside {
            beside.tcp.resolve(&fabric, config.nic.mtu);
        }
        config.transport.check_engines().expect("valid settings");
        if let Some(curve) = needs.marking {
            let ecn = &mut config.switch.ecn;
            ecn.enabled = ecn.enabled.resolve(|| true).into();
            ecn.k_min = ecn.k_min.resolve(|| Some(curve.k_min)).into();
            ecn.k_max = ecn.k_max.resolve(|| Some(curve.k_max)).into();
            ecn.p_max = ecn.p_max.resolve(|| Some(curve.p_max)).into();
            ecn.at_rate = ecn.at_rate.resolve(|| Some(curve.rate)).into();
        }
        config
    }
    /// Runs the scene, and checks the invariants of every run.
    pub(crate) fn run(&self) -> Outcome {
        let outcome = self.run_unchecked();
        outcome.check(&self.resolved());
        outcome
    }
    /// Runs the scene; all flows must finish.
    pub(crate) fn finish(&self) -> Outcome {
        let outcome = self.run();
        assert_eq!(outcome.record.deadlock, None);
        assert_eq!(outcome.record.flows_finished, outcome.record.flows_started, "all flows finish");
        outcome
    }
    /// Runs the scene without the checks, some of which hold only where all classes are treated alike.
    pub(crate) fn run_unchecked(&self) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.record = self.run_with(&mut outcome);
        outcome
    }
    /// Runs the scene for another observer.
    pub(crate) fn run_with(&self, observer: &mut dyn Observer) -> RunRecord {
        let library = Lists(self.list.clone());
        run(&self.resolved(), &library, self.parallel, observer).expect("a configuration that can be built")
    }
    /// Runs the scene recorded, and checks that recording changes nothing in the outcome of [`Scene::run`].
    pub(crate) fn record(&self, focus: &Focus) -> (Outcome, Vec<Event>) {
        let (outcome, events) = self.record_unchecked(focus);
        assert_eq!(outcome, self.run(), "being watched changes nothing");
        (outcome, events)
    }
    /// Runs the scene recorded, without checks.
    pub(crate) fn record_unchecked(&self, focus: &Focus) -> (Outcome, Vec<Event>) {
        let library = Lists(self.list.clone());
        let (mut outcome, mut events) = (Outcome::default(), EventLog::default());
        let record = run_recorded(&self.resolved(), &library, self.parallel, &mut outcome, focus, &mut events);
        outcome.record = record.expect("a configuration that can be built");
        (outcome, events.0)
    }
    /// Returns the switches of the scene.
    pub(crate) fn fabric_parts(&self) -> Parts {
        fabric_parts(&self.resolved(), &Lists(self.list.clone()), &[]).expect("a configuration that can be built")
    }
    /// Returns how long a data frame with this payload occupies a link of this rate.
    pub(crate) fn data_time(&self, payload: u64, rate: Rate) -> Duration {
        rate.time_for(Bytes::new(payload) + self.config.nic.framing(&self.config.transport).overhead)
    }
}

/// Outcome of a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Outcome {
    /// Rows of flows, in the order in which they were reported.
    pub(crate) flows: Vec<FlowRow>,
    pub(crate) ports: Vec<PortRow>,
    pub(crate) ranks: Vec<RankRow>,
    pub(crate) record: RunRecord,
}

impl Observer for Outcome {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        self.flows.extend_from_slice(rows);
    }
    fn on_ranks(&mut self, rows: &[RankRow]) {
        self.ranks.extend_from_slice(rows);
    }
    fn on_ports(&mut self, rows: &[PortRow]) {
        self.ports.extend_from_slice(rows);
    }
}

impl Outcome {
    /// Returns the flow with this number in workload 0.
    pub(crate) fn flow(&self, id: u64) -> &FlowRow {
        self.flows.iter().find(|row| row.id == id).expect("every flow is reported")
    }
    /// Returns when the flow with this number was received.
    pub(crate) fn finish(&self, id: u64) -> Instant {
        self.flow(id).finish.expect("the flow finished")
    }
    /// Returns how long the flow with this number took beyond its ideal time.
    pub(crate) fn delay(&self, id: u64) -> Duration {
        let row = self.flow(id);
        row.fct().expect("the flow finished") - row.ideal
    }

    /// Checks the invariants of every run.
    fn check(&self, config: &SimConfig) {
        let record = &self.record;
        // Every packet that was sent was delivered, dropped with a reason, or is under way.
        let netrt = &record.netrt;
        let data_sent = record.data_sent + netrt.retransmissions;
        for (kind, sent, delivered, drops) in [
            (PacketKind::Data, data_sent, record.data_delivered, &record.data_drops),
            (PacketKind::Ack, record.acks_sent, record.acks_delivered, &record.ack_drops),
            (PacketKind::Pause, record.pause_frames, record.pauses_delivered, &record.pause_drops),
            (PacketKind::Cnp, record.cnps_sent, record.cnps_delivered, &record.cnp_drops),
            (PacketKind::NetRt, netrt.messages, netrt.messages_delivered, &netrt.message_drops),
        ] {
            assert_eq!(sent, delivered + drops.total() + record.in_flight[kind], "packets are conserved: {kind:?}");
        }
        assert!(record.retransmissions <= record.data_sent && record.nacks_sent <= record.acks_sent);
        self.check_flows(config);
        self.check_ports(config);
        if config.switch.pfc.enabled {
            assert_eq!(drops(&record.data_drops, DropReason::BufferFull), 0, "all classes are lossless");
        } else {
            assert!(record.netrt.pauses > 0 || (record.pause_frames, record.paused) == (0, Duration::ZERO));
            assert_eq!(drops(&record.data_drops, DropReason::HeadroomFull), 0);
        }
    }

    fn check_flows(&self, config: &SimConfig) {
        // Where packets of one flow take several paths, the last, if it is short, need not wait behind the one before
        // it.
        let sprays = config.transport.tunnels().is_some() || config.transport.messages().is_some();
        let rate = config.paths.graph().links.iter().map(|link| link.rate).min().expect("the network has links");
        let slack = if sprays { rate.time_for(config.nic.mtu) } else { Duration::ZERO };
        let record = &self.record;
        assert_eq!(self.flows.len() as u64, record.flows_started, "each flow is reported");
        let mut names: Vec<_> = self.flows.iter().map(|row| (row.workload, row.id)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), self.flows.len(), "each flow is reported once");
        let finished: Vec<_> = self.flows.iter().filter(|row| row.finish.is_some()).collect();
        assert_eq!(finished.len() as u64, record.flows_finished);
        let bytes: Bytes = finished.iter().map(|row| row.size).sum();
        if record.flows_finished == record.flows_started {
            assert_eq!(record.goodput, bytes, "every byte is accepted exactly once");
        } else {
            assert!(record.goodput >= bytes);
        }
        for row in finished {
            // A NIC whose clock is fast sends faster than its link nominally does.
            let slack = slack + (config.nic.clock_skew.longest(row.ideal) - row.ideal);
            assert!(row.fct().map(|fct| fct + slack) >= Some(row.ideal), "no flow beats its ideal: {row:?}");
            assert!(row.finish <= Some(record.end));
        }
    }

    fn check_ports(&self, config: &SimConfig) {
        let record = &self.record;
        let infos = port_infos(config.paths.graph());
        assert_eq!(record.ports.len(), infos.len());
        assert_eq!(record.ports.iter().map(|port| port.frames).sum::<u64>(), record.packet_hops);
        assert_eq!(record.ports.iter().map(|port| port.paused).sum::<Duration>(), record.paused);
        let netrt = &record.netrt.message_drops;
        let dropped =
            [&record.data_drops, &record.ack_drops, &record.pause_drops, &record.cnp_drops, netrt].map(Drops::total);
        assert_eq!(record.ports.iter().map(|port| port.drops).sum::<u64>(), dropped.iter().sum::<u64>());
        assert_eq!(record.ports.iter().map(|port| port.trims).sum::<u64>(), record.trims);
        let gap = config.nic.gap.get();
        // Each lossless class has a buffer of its own, the lossy ones one together.
        for (port, info) in record.ports.iter().zip(&infos) {
            assert_eq!(port.id, info.id);
            assert!(port.paused.as_ps() <= record.end.as_ps(), "no port is paused longer than the run lasts");
            // All but one frame has left the wire; rates that are no whole picoseconds per byte round.
            let on_wire = info.rate.time_for(Bytes::new(port.bytes.get() + port.frames * gap));
            let longest = info.rate.time_for(Bytes::new(10_000));
            assert!(on_wire.as_ps() <= (record.end.as_ps() + longest.as_ps()), "no port sends faster than its link");
        }
    }
}

/// Returns the number of drops for this reason.
pub(crate) fn drops(drops: &Drops, reason: DropReason) -> u64 {
    drops.by_reason[reason as usize]
}

/// Recorder that keeps all events.
#[derive(Default)]
struct EventLog(Vec<Event>);

impl Recorder for EventLog {
    fn on_events(&mut self, events: &[Event]) {
        self.0.extend_from_slice(events);
    }
}

/// Library with one list of flows.
struct Lists(FlowList);

impl Library for Lists {
    fn flows(&self, _: &str, _: StartUnit) -> Result<FlowList, ConfigError> {
        Ok(self.0.clone())
    }
}

/// Sets random loss of these packets on all links, in both directions.
pub(crate) fn lose(config: &mut SimConfig, packets: Affected, rate: Chance) {
    let (link, direction, model) = (LinkSelector::All, Direction::Both, LossModel::Random(RandomLoss { rate }));
    config.loss.push(LossConfig { link, direction, packets, model });
}

pub(crate) fn link(gbps: u64, delay_ns: u64) -> LinkConfig {
    LinkConfig { rate: Rate::from_gbps(gbps), delay: Duration::from_ns(delay_ns) }
}

/// Returns hosts "h0", "h1", ... with these links on one switch "s0".
pub(crate) fn star(links: &[LinkConfig]) -> Graph {
    let mut graph = Graph::default();
    let switch = graph.add_switch("s0".into(), 0, 0);
    for (n, &link) in links.iter().enumerate() {
        let host = graph.add_host(format!("h{n}"), 0);
        graph.connect(host.into(), switch.into(), link);
    }
    graph
}

/// Returns two servers of two hosts each, "h0" and "h1", "h2" and "h3". Inside each, a switch connects the hosts at 400
/// Gb/s; the first and the second hosts are on one switch each, as in rail-optimised networks.
pub(crate) fn servers() -> Graph {
    let mut graph = Graph::default();
    let hosts = [0, 1, 2, 3].map(|n| graph.add_host(format!("h{n}"), 0));
    let nics = hosts.map(|host| graph.add_inner_nic(format!("h{}-inner", host.0), host));
    let [rails, inner] = ["rail", "inner"].map(|name| [0, 1].map(|n| graph.add_switch(format!("{name}{n}"), 0, 0)));
    let spine = graph.add_switch("spine".into(), 0, 0);
    for n in 0..4 {
        graph.connect(hosts[n].into(), rails[n % 2].into(), link(100, 500));
        graph.connect(nics[n].into(), inner[n / 2].into(), link(400, 25));
    }
    rails.iter().for_each(|&rail| graph.connect(rail.into(), spine.into(), link(100, 500)));
    graph.check().expect("a valid network");
    graph.place_switches();
    graph
}

/// Returns two hosts back to back.
pub(crate) fn pair(link: LinkConfig) -> Graph {
    let mut graph = Graph::default();
    let [a, b]: [Node; 2] = [graph.add_host("h0".into(), 0).into(), graph.add_host("h1".into(), 1).into()];
    graph.connect(a, b, link);
    graph
}

/// Bytes of a pause frame without the gap: those of the smallest frame.
pub(crate) const PAUSE_FRAME: Bytes = Header::MINIMUM_FRAME;
