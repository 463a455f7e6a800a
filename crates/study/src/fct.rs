//! `fct.txt`, for the plot scripts of the ns-3 RDMA family.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};

use selvedge_formats::fct::{Record, Style, write};
use selvedge_results::read_flows;
use selvedge_scenario::{Plan, PlannedSeries, Point};
use selvedge_telemetry::FlowRow;
use selvedge_units::HostId;

use crate::{ResultsFolder, StudyError};

/// Writes `fct-<series>.txt` of the first seed for each series with flows from a file, and `fct.txt` as a copy of the
/// first of these. The format is HPCC's: one line per completed flow, in the order of completion.
pub(crate) fn write_all(plan: &Plan, folder: &ResultsFolder) -> Result<(), StudyError> {
    let listed = plan.series.iter().enumerate().filter(|(_, series)| !series.scenario.workload.flows.is_empty());
    for (nth, (index, series)) in listed.enumerate() {
        let point = Point { series: index, seed: plan.seeds[0] };
        let name = format!("fct-{}.txt", series.name);
        write_one(series, point, folder, &name)?;
        if nth == 0 {
            let (from, to) = (folder.partial().join(&name), folder.partial().join("fct.txt"));
            std::fs::copy(&from, &to).map_err(|error| StudyError::io(&to, "write it", &error))?;
        }
    }
    Ok(())
}

fn write_one(series: &PlannedSeries, point: Point, folder: &ResultsFolder, name: &str) -> Result<(), StudyError> {
    let path = folder.partial().join(name);
    let failed = |error: std::io::Error| StudyError::io(&path, "write it", &error);
    let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
    let (node, ports) = (Nodes::new(series), ports(series)?);
    for row in read_flows(&folder.point(point).flows)? {
        let flow = row?.flow;
        let port = ports.get(&(flow.workload, flow.id)).copied();
        if let Some(record) = node.record(&flow, port.unwrap_or(DESTINATION_PORT)) {
            write(&mut out, node.style, &record).map_err(failed)?;
        }
    }
    out.flush().map_err(failed)
}

/// Returns the destination ports that files give to flows, by workload and id, without flows of the default port.
/// HPCC's plot scripts distinguish flows by port: 100 is background, 200 an incast.
fn ports(series: &PlannedSeries) -> Result<BTreeMap<(u16, u64), u16>, StudyError> {
    let mut found = BTreeMap::new();
    let numbered = (0..).zip(&series.workloads).filter(|(_, workload)| workload.kind == FLOWS);
    for ((number, _), file) in numbered.zip(series.scenario.workload.flows.iter()) {
        let ports = series.library().ports(file).map_err(|error| StudyError::input(error.to_string()))?;
        found.extend(
            ports.into_iter().filter(|&(_, port)| port != DESTINATION_PORT).map(|(id, port)| ((number, id), port)),
        );
    }
    Ok(found)
}

/// Identifiers of hosts in the file.
struct Nodes {
    ids: Vec<u32>,
    style: Style,
}

impl Nodes {
    /// Uses the ids of the topology file where hosts have such, else their positions.
    fn new(series: &PlannedSeries) -> Self {
        let graph = series.network.graph();
        let hosts = &graph.hosts[..graph.host_count() as usize];
        let named: Option<Vec<u32>> = hosts.iter().map(|host| host.name.parse().ok()).collect();
        let ids: Vec<u32> = named.unwrap_or_else(|| (0..hosts.len() as u32).collect());
        // HPCC's addresses cover only ids up to a limit; ConWeave's format has plain ids.
        let fits = ids.iter().all(|&id| selvedge_formats::fct::address(id).is_some());
        Self { ids, style: if fits { Style::Hpcc } else { Style::ConWeave } }
    }
    fn id(&self, host: HostId) -> u32 {
        self.ids[host.index()]
    }
    fn record(&self, flow: &FlowRow, dst_port: u16) -> Option<Record> {
        Some(Record {
            src: self.id(flow.src),
            dst: self.id(flow.dst),
            // Ports distinguish flows of one pair, like the queue pairs of HPCC.
            src_port: (10_000 + flow.id % 50_000) as u16,
            dst_port,
            size: flow.size,
            start: flow.start,
            fct: flow.fct()?,
            standalone: flow.ideal,
        })
    }
}

/// Kind of workloads that are read from files.
const FLOWS: &str = "flows";
/// Destination port that HPCC's generators write, and that files without ports imply.
const DESTINATION_PORT: u16 = 100;
