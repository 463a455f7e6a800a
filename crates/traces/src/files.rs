//! The trace files of one run.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use selvedge_sim::SimConfig;
use selvedge_sim::record::{Chosen, Event, FlowKey, Focus, Recorder, What};
use selvedge_units::Instant;

use crate::headers::Headers;
use crate::names::PortNames;
use crate::pcapng::{Capture, LONGEST};
use crate::perfetto::Timeline;
use crate::selector::Selector;

/// Where the traces of one run go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracePaths {
    /// For Wireshark.
    pub capture: PathBuf,
    /// For Perfetto.
    pub timeline: PathBuf,
}

/// Writes what it is told into files; hand it to a recorded run, then call [`finish`](Self::finish).
///
/// A recorder cannot fail, so the first error (a full disk) is kept until then.
pub struct TraceFiles {
    paths: TracePaths,
    capture: Capture<BufWriter<File>>,
    timeline: Timeline<BufWriter<File>>,
    /// Flows that were asked for and have not begun.
    awaited: BTreeSet<FlowKey>,
    failed: Option<TraceError>,
}

/// Why a trace could not be written.
#[derive(Debug)]
pub struct TraceError {
    path: PathBuf,
    error: io::Error,
}

impl TraceFiles {
    /// Creates the files for a run of `config` of which `focus` is recorded; classes of packets stand for these
    /// `priorities`, in their order. Of each packet, `snaplen` bytes are
    /// kept; `None`: all. `program` is who writes the capture.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn create(
        paths: TracePaths,
        config: &SimConfig,
        priorities: Vec<u8>,
        focus: &Focus,
        snaplen: Option<usize>,
        program: &str,
    ) -> Result<Self, TraceError> {
        let names = Arc::new(PortNames::new(config.paths.graph()));
        let snaplen = snaplen.unwrap_or(LONGEST);
        let capture = open(&paths.capture, |file| {
            Capture::begin(
                file,
                program,
                Headers::new(config, priorities),
                config.paths.graph(),
                Arc::clone(&names),
                snaplen,
            )
        })?;
        let timeline = open(&paths.timeline, |file| Timeline::begin(file, config.paths.graph(), names, focus))?;
        let awaited = match &focus.flows {
            Chosen::All => BTreeSet::new(),
            Chosen::These(these) => these.clone(),
        };
        Ok(Self { paths, capture, timeline, awaited, failed: None })
    }

    /// Completes the files of a run that ended at `end`. Returns the flows that were asked for and did not begin.
    ///
    /// # Errors
    /// The first thing that went wrong, now or during the run.
    pub fn finish(self, end: Instant) -> Result<Vec<Selector>, TraceError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.capture.finish().map_err(|error| TraceError::new(&self.paths.capture, error))?;
        self.timeline.finish(end).map_err(|error| TraceError::new(&self.paths.timeline, error))?;
        Ok(self.awaited.into_iter().map(Selector::Flow).collect())
    }
}

impl Recorder for TraceFiles {
    fn on_events(&mut self, events: &[Event]) {
        for event in events {
            if let What::FlowStarted { flow, .. } = &event.what {
                self.awaited.remove(&FlowKey::from(flow));
            }
        }
        if self.failed.is_none() {
            let capture = self.capture.on_events(events).map_err(|error| TraceError::new(&self.paths.capture, error));
            let timeline =
                self.timeline.on_events(events).map_err(|error| TraceError::new(&self.paths.timeline, error));
            self.failed = capture.and(timeline).err();
        }
    }
}

fn open<T>(path: &Path, begin: impl FnOnce(BufWriter<File>) -> io::Result<T>) -> Result<T, TraceError> {
    File::create(path).and_then(|file| begin(BufWriter::new(file))).map_err(|error| TraceError::new(path, error))
}

impl TraceError {
    fn new(path: &Path, error: io::Error) -> Self {
        Self { path: path.into(), error }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = "check that the folder exists, may be written to and has space left";
        write!(f, "{}: cannot write: {}; {remedy}", self.path.display(), self.error)
    }
}

impl std::error::Error for TraceError {}
