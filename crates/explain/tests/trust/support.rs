//! Helpers that run scenarios and explain their flows.

use std::path::Path;
use std::sync::Arc;

use selvedge_explain::{Cycle, Explanation, Names, Recording, explain};
use selvedge_scenario::{Changes, Plan, Point};
use selvedge_sim::record::Chosen;
use selvedge_sim::topology::{Graph, LinkConfig, Paths};
use selvedge_sim::workload::{Cdf, FlowFile, FlowList, ListedFlow, Many, Start, StartUnit, WorkloadConfig};
use selvedge_sim::{ConfigError, Library, Parallel, SimConfig, port_infos, run, run_recorded};
use selvedge_telemetry::{FlowRow, Observer, PortRow, RunRecord, TimePart};
use selvedge_units::{Bytes, Duration, HostId, Instant, Rate};

pub(crate) const FAT_TREE: &str = "[topology.fat-tree]\nk = 4\nlink = { rate = \"40Gbps\", delay = \"2us\" }\n";

pub(crate) fn dumbbell(bottleneck: &str) -> String {
    format!(
        "[topology.dumbbell]\nleft = 4\nright = 4\n\
         host-link = {{ rate = \"40Gbps\", delay = \"1us\" }}\nbottleneck = {{ rate = \"{bottleneck}\", delay = \"5us\" }}\n"
    )
}

pub(crate) fn series(preset: &str) -> String {
    format!("[[series]]\npreset = \"{preset}\"\n")
}

pub(crate) const START: Duration = Duration::from_us(3);

/// Returns the nonzero parts of a flow, in the order of tables.
pub(crate) fn parts(explanation: &Explanation) -> Vec<TimePart> {
    explanation.parts.iter().filter(|(_, time)| !time.is_zero()).map(|(part, _)| part).collect()
}

/// Returns `part` as a fraction of the flow's time.
pub(crate) fn fraction(explanation: &Explanation, part: TimePart) -> f64 {
    explanation.parts[part].as_us_f64() / explanation.parts.total().as_us_f64()
}

/// Returns a scenario that loses data packets with these numbers on the first link of host 0.
pub(crate) fn losing(preset: &str, drops: &str) -> String {
    let loss = format!(
        "[[loss]]\nlink = \"h0\"\ndirection = \"a-to-b\"\npackets = \"data\"\nmodel = {{ trace = {{ drops = [{drops}] }} }}\n"
    );
    // Unless a test asks for it, the end of a flow is repaired by the timeout, as with the other transports.
    let probe = if preset == "tcp" { "set.'transport.tcp.tail-loss-probe' = false\n" } else { "" };
    FAT_TREE.to_owned() + &loss + &series(preset) + probe
}

/// Returns the plan of a scenario with some values changed.
pub(crate) fn plan(text: &str, sets: &[&str]) -> Plan {
    let changes = Changes { sets: sets.iter().map(|set| (*set).to_owned()).collect(), ..Changes::default() };
    Plan::from_text("scenario.toml", text, Path::new(""), &changes).expect("a scenario that can run")
}

/// Explains every flow of one run of a plan.
pub(crate) fn explain_point(plan: &Plan, point: Point) -> Explained {
    explain_run(&plan.config(point), plan.library(point))
}

/// Explains flows of this size and start between these hosts, in the network of the given scenario.
pub(crate) fn explain_flows(text: &str, sets: &[&str], flows: &[(u32, u32, u64, Duration)]) -> Explained {
    let (config, lists) = listed(text, sets, flows);
    explain_run(&config, &lists)
}

/// Explains flows in two servers of two hosts each, which communicate inside a server through second NICs on a switch
/// of their own.
pub(crate) fn explain_in_servers(preset: &str, flows: &[(u32, u32, u64, Duration)]) -> Explained {
    let (mut config, lists) = listed(&(FAT_TREE.to_owned() + &series(preset)), &[], flows);
    config.paths = Arc::new(Paths::of(servers()).expect("a network"));
    explain_run(&config, &lists)
}

pub(crate) fn listed(text: &str, sets: &[&str], flows: &[(u32, u32, u64, Duration)]) -> (SimConfig, Lists) {
    // A scenario needs a workload, which is replaced below.
    let plan =
        plan(&format!("title = \"Causes\"\nseeds = 1\n[[workload.incast]]\nsize = \"1B\"\nsenders = 1\n{text}"), sets);
    let mut config = plan.config(Point { series: 0, seed: 1 });
    config.workload = WorkloadConfig { flows: Many::from(FlowFile::new("list")), ..WorkloadConfig::default() };
    let flow = |(id, &(src, dst, size, at)): (u64, &(u32, u32, u64, Duration))| ListedFlow {
        id,
        line: None,
        src: HostId(src),
        dst: HostId(dst),
        size: Bytes::new(size),
        priority: None,
        start: Start::At(Instant::ZERO + at),
        on_sent: None,
        on_received: None,
    };
    let list =
        FlowList { flows: (0..).zip(flows).map(flow).collect(), triggers: Vec::new(), trigger_places: Vec::new() };
    (config, Lists(list))
}

fn servers() -> Graph {
    let mut graph = Graph::default();
    let hosts = [0, 1, 2, 3].map(|n| graph.add_host(format!("h{n}"), 0));
    let nics = hosts.map(|host| graph.add_inner_nic(format!("h{}-inner", host.0), host));
    let [fabric, left, right] = ["fabric", "left", "right"].map(|name| graph.add_switch(name.into(), 0, 0));
    let link = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(2) };
    for (n, (host, nic)) in hosts.into_iter().zip(nics).enumerate() {
        graph.connect(host.into(), fabric.into(), link);
        graph.connect(nic.into(), if n < 2 { left } else { right }.into(), link);
    }
    graph.place_switches();
    graph
}

/// The result of an explained run.
pub(crate) struct Explained {
    pub(crate) flows: Vec<Explanation>,
    pub(crate) record: RunRecord,
    pub(crate) names: Names,
    pub(crate) cycle: Option<Cycle>,
}

impl Explained {
    /// Returns the flow with this number.
    pub(crate) fn flow(&self, id: u64) -> &Explanation {
        self.flows.iter().find(|explanation| explanation.flow.id == id).expect("the flow began")
    }
    /// Returns the sum of this part over all flows.
    pub(crate) fn sum(&self, part: TimePart) -> Duration {
        self.flows.iter().map(|explanation| explanation.parts[part]).sum()
    }
}

/// Explains every flow of a run, after checking invariants of each.
pub(crate) fn explain_run(config: &SimConfig, library: &dyn Library) -> Explained {
    let (mut flows, mut again) = (Flows::default(), Flows::default());
    let record = run(config, library, Parallel::default(), &mut flows).expect("a configuration that can be built");
    let stuck = record.deadlock.iter().flat_map(|deadlock| deadlock.cycle.iter().map(|hop| hop.port));
    let mut recording = Recording::of(Chosen::All, stuck);
    let focus = recording.focus();
    run_recorded(config, library, Parallel::default(), &mut again, &focus, &mut recording)
        .expect("the run was not changed");
    assert_eq!(flows.0, again.0, "being watched changes nothing");
    let names = Names::new(port_infos(config.paths.graph()));
    let finished = flows.0.iter().filter(|flow| flow.finish.is_some()).count();
    assert_eq!(explain(&recording, &names).len(), finished, "nobody has said that the run is over");
    recording.end(&record);
    let explained = explain(&recording, &names);
    assert_eq!(explained.len(), flows.0.len());
    for explanation in &explained {
        let flow = explanation.flow;
        // Spurious packets are counted when a flow is over.
        let seen = |row: &FlowRow| FlowRow { spurious: row.finish.map_or(0, |_| row.spurious), ..*row };
        assert!(flows.0.iter().any(|row| seen(row) == flow), "{flow:?}");
        assert_eq!(explanation.parts.total(), flow.finish.unwrap_or(record.end) - flow.start);
        assert_eq!(explanation.awaited.is_some(), flow.finish.is_none());
        let pause: Duration = explanation.pauses.iter().map(|tree| tree.time).sum();
        assert_eq!(pause, explanation.parts[TimePart::Pause]);
    }
    let cycle = record.deadlock.as_ref().map(|deadlock| Cycle::new(deadlock, &recording));
    Explained { flows: explained, record, names, cycle }
}

/// An observer that keeps flows.
#[derive(Default)]
struct Flows(Vec<FlowRow>);

impl Observer for Flows {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        self.0.extend_from_slice(rows);
    }
    fn on_ports(&mut self, _: &[PortRow]) {}
}

/// A library with one list of flows.
pub(crate) struct Lists(FlowList);

impl Library for Lists {
    fn cdf(&self, reference: &str) -> Result<Cdf, ConfigError> {
        Err(ConfigError::new("", format!("no distribution {reference} here")))
    }
    fn flows(&self, _: &str, _: StartUnit) -> Result<FlowList, ConfigError> {
        Ok(self.0.clone())
    }
    fn topology(&self, path: &str) -> Result<Graph, ConfigError> {
        Err(ConfigError::new("", format!("no file {path} here")))
    }
    fn drops(&self, path: &str) -> Result<Vec<u64>, ConfigError> {
        Err(ConfigError::new("", format!("no file {path} here")))
    }
}
