//! Traces of a study: of the first run of each series.

use std::fs;
use std::path::{Path, PathBuf};

use selvedge_scenario::{Plan, Point};
use selvedge_sim::record::{Event, Focus, Recorder};
use selvedge_traces::{
    EventFiles, EventHosts, Kept, PortNames, Selection, Selector, TraceError, TraceFiles, TracePaths, TraceStatus,
};
use selvedge_transport::RecoveryConfig;
use selvedge_units::Instant;
use serde::{Deserialize, Serialize};

use crate::folder::partial_of;
use crate::text::bytes;
use crate::{ResultsFolder, StudyError, StudyEstimate, check_writable};

/// User's choice of what to trace; nothing by default.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tracing {
    /// Texts of the [`Selector`]s.
    pub what: Vec<String>,
    /// Whether captures contain the payload (zeros); otherwise they contain only headers and checksums.
    pub payload: bool,
    /// Number of bytes to keep of each packet, of any kind; `None`: as `payload` says.
    pub snaplen: Option<usize>,
    /// Hosts whose events are written for IRN's hardware modules: [`EventHosts`]. Not together with `what`.
    pub events: Vec<String>,
    /// Folder for the files; `None`: `traces` inside the results.
    pub folder: Option<PathBuf>,
}

/// The trace files of a run.
pub(crate) enum Traces {
    /// Packets, for reading.
    Packets(Box<TraceFiles>),
    /// Events, for hardware modules.
    Events(EventFiles),
}

impl Traces {
    pub(crate) fn status(&self) -> TraceStatus {
        match self {
            Self::Packets(files) => files.status(),
            Self::Events(files) => files.status(),
        }
    }
    /// Completes the files of a run that ended at `end`. Returns the selected flows that did not begin.
    pub(crate) fn finish(self, end: Instant) -> Result<Vec<Selector>, TraceError> {
        match self {
            Self::Packets(files) => files.finish(end),
            Self::Events(files) => files.finish().map(|()| Vec::new()),
        }
    }
}

impl Recorder for Traces {
    fn on_events(&mut self, events: &[Event]) {
        match self {
            Self::Packets(files) => files.on_events(events),
            Self::Events(files) => files.on_events(events),
        }
    }
}

impl Tracing {
    /// Returns whether nothing is to be traced.
    pub fn is_off(&self) -> bool {
        self.what.is_empty() && self.events.is_empty()
    }

    /// Checks that the traced runs have everything selected, and that a separate folder can be written.
    ///
    /// # Errors
    /// Returns an error for a selector that cannot be parsed, for a port or flow that does not exist (with the existing
    /// ones), or for files that cannot be written.
    pub fn check(&self, plan: &Plan) -> Result<(), StudyError> {
        if !self.events.is_empty() && !plan.points().any(|point| self.covers(plan, point)) {
            return Err(StudyError::input(
                "--trace-events: no series has IRN's loss recovery, outside of tunnels; choose one that has, e.g. --series irn",
            ));
        }
        for point in plan.points().filter(|&point| self.covers(plan, point)) {
            let selection = self.selection(plan, point)?;
            for key in selection.flows() {
                plan.series[point.series].find_flow(point.seed, key).map_err(refused)?;
            }
            let hosts = self.event_hosts(plan, point)?;
            let Some(folder) = &self.folder else { continue };
            let name = &plan.series[point.series].name;
            if !self.events.is_empty() {
                for path in hosts.paths(folder, &stem(name, point.seed)) {
                    check_writable(&path)?;
                }
                continue;
            }
            let TracePaths { capture, timeline } = paths(folder, name, point.seed);
            check_writable(&capture)?;
            check_writable(&timeline)?;
        }
        Ok(())
    }

    /// Checks that the folder of traces lies outside of the results in `target`, which become a folder of their own at
    /// the end.
    ///
    /// # Errors
    /// Returns an error if it lies inside.
    pub fn check_apart(&self, target: &Path) -> Result<(), StudyError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let target = target.components().collect::<PathBuf>();
        let inside = |results: &Path| real(folder).starts_with(real(results));
        if inside(&target) || inside(&partial_of(&target)) {
            let message = "traces there would be in the way of the results; leave it out, and they are among these (traces), \
                           or give another folder";
            return Err(StudyError::input(format!("--trace-dir {}: {message}", folder.display())));
        }
        Ok(())
    }

    /// Returns the estimated size of the traces of `plan` in words, if the study was estimated. The chosen flows and
    /// ports are assumed to be average ones.
    pub fn size(&self, plan: &Plan, estimate: &StudyEstimate) -> Option<String> {
        let mut total = 0.0;
        for point in plan.points().filter(|&point| self.covers(plan, point)) {
            let series = estimate.series.iter().find(|series| series.series == plan.series[point.series].name)?;
            if !self.events.is_empty() {
                let share = self.event_hosts(plan, point).ok()?.share(plan.series[point.series].network.graph());
                total += share * series.data_packets * EVENTS;
                continue;
            }
            let share =
                self.selection(plan, point).ok()?.share(plan.series[point.series].network.graph(), series.flows);
            let payload = if self.payload { series.payload_bytes / series.data_packets.max(1.0) } else { 0.0 };
            let data = series.data_packets * f64::from(plan.series[point.series].network.longest().links);
            let captured = CAPTURED.min(self.snaplen.map_or(f64::MAX, |bytes| bytes as f64));
            // Each packet is captured where it leaves and where it arrives.
            let of_packets = series.packet_hops * (2.0 * (RECORD + captured) + TIMELINE);
            total += share * (of_packets + 2.0 * data.min(series.packet_hops) * payload);
        }
        (total > 0.0).then(|| format!("traces: about {}, in {}", bytes(total), self.place()))
    }

    fn place(&self) -> String {
        self.folder.as_ref().map_or_else(|| "the results".to_owned(), |folder| folder.display().to_string())
    }

    /// Returns the size of the files in `folder`, in words.
    pub fn taken(folder: &Path) -> Option<String> {
        let files = fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.metadata().ok());
        Some(bytes(files.map(|file| file.len()).sum::<u64>() as f64))
    }

    /// Returns the folder of the files, for results in `results`.
    pub fn folder(&self, results: &Path) -> PathBuf {
        self.folder.clone().unwrap_or_else(|| results.join("traces"))
    }

    /// Returns whether this run is traced: the first of its series, and for events only with IRN.
    fn covers(&self, plan: &Plan, point: Point) -> bool {
        let has_events = || {
            let transport = plan.config(point).transport;
            // Packets inside tunnels are not visible on links.
            let is_irn = matches!(transport.recovery(), Some(RecoveryConfig::Irn(_)));
            self.events.is_empty() || is_irn && !transport.is_carried()
        };
        !self.is_off() && plan.seeds.first() == Some(&point.seed) && has_events()
    }

    fn event_hosts(&self, plan: &Plan, point: Point) -> Result<EventHosts, StudyError> {
        EventHosts::new(&self.events, plan.series[point.series].network.graph())
            .map_err(|message| StudyError::input(format!("--trace-events: {message}")))
    }

    fn selection(&self, plan: &Plan, point: Point) -> Result<Selection, StudyError> {
        let selectors: Result<Vec<Selector>, String> = self.what.iter().map(|text| text.parse()).collect();
        let names = PortNames::new(plan.series[point.series].network.graph());
        selectors.and_then(|selectors| Selection::new(&selectors, &names)).map_err(refused)
    }

    /// Creates the files for a run; returns them and what to record, or `None` if the run is not traced.
    pub(crate) fn begin(
        &self,
        plan: &Plan,
        point: Point,
        results: &ResultsFolder,
        program: &str,
    ) -> Result<Option<(Traces, Focus)>, StudyError> {
        if !self.covers(plan, point) {
            return Ok(None);
        }
        let folder = self.folder(results.partial());
        fs::create_dir_all(&folder).map_err(|error| StudyError::io(&folder, "make this folder", &error))?;
        let name = &plan.series[point.series].name;
        if !self.events.is_empty() {
            let hosts = self.event_hosts(plan, point)?;
            let files = EventFiles::create(&folder, &stem(name, point.seed), &hosts)?;
            return Ok(Some((Traces::Events(files), hosts.focus())));
        }
        let focus = self.selection(plan, point)?.focus();
        let paths = paths(&folder, name, point.seed);
        let config = plan.config(point);
        let priorities = config.switch.priorities(
            &config.nic,
            &config.transport,
            config.beside.as_ref(),
            &plan.series[point.series].workloads,
        );
        let kept = match self.snaplen {
            Some(bytes) => Kept::Bytes(bytes),
            None if self.payload => Kept::All,
            None => Kept::Headers,
        };
        let files = TraceFiles::create(paths, &config, priorities, &focus, kept, program)?;
        Ok(Some((Traces::Packets(Box::new(files)), focus)))
    }
}

/// Returns the canonical form of `path`, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = path.ancestors().find_map(|known| Some((known, fs::canonicalize(known).ok()?)));
    match found {
        Some((known, place)) => path.strip_prefix(known).map_or(place.clone(), |rest| place.join(rest)),
        None => path,
    }
}

/// Returns the beginning of the names of a run's files.
fn stem(series: &str, seed: u64) -> String {
    format!("{}-seed{seed}", series.replace('/', "_"))
}

fn paths(folder: &Path, series: &str, seed: u64) -> TracePaths {
    let stem = stem(series, seed);
    TracePaths {
        capture: folder.join(format!("{stem}.pcapng")),
        timeline: folder.join(format!("{stem}.perfetto-trace")),
    }
}

/// Size of a captured packet's block without the packet, in bytes: the block's header with its flags.
const RECORD: f64 = 44.0;
/// Size of the headers of a captured packet, in bytes.
const CAPTURED: f64 = 64.0;
/// Size of a packet's entry in a timeline, in bytes per hop.
const TIMELINE: f64 = 100.0;
/// Size of the lines about a data packet, in bytes: departure, arrival, and arrival of its acknowledgement.
const EVENTS: f64 = 36.0;

fn refused(message: String) -> StudyError {
    StudyError::input(format!("--trace: {message}"))
}
