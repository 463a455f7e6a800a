//! The trace files of one run.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use selvedge_sim::SimConfig;
use selvedge_sim::record::{Chosen, Event, FlowKey, Focus, Recorder, What};
use selvedge_units::Instant;

use crate::headers::Headers;
use crate::names::PortNames;
use crate::pcapng::Capture;
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

/// What captures have of each packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kept {
    /// Its headers and checksums: all but the payload.
    #[default]
    Headers,
    /// All of it. Payload is zeros.
    All,
    /// So many bytes from its beginning.
    Bytes(usize),
}

/// Writes what it is told into files; hand it to a recorded run, then call [`finish`](Self::finish).
///
/// A recorder cannot fail, so the first error (a full disk) is kept until then.
pub struct TraceFiles {
    paths: TracePaths,
    capture: Capture<BufWriter<Counted>>,
    timeline: Timeline<BufWriter<Counted>>,
    /// Flows that were asked for and have not begun.
    awaited: BTreeSet<FlowKey>,
    failed: Option<TraceError>,
    status: TraceStatus,
}

/// How the files of a run stand, while that is under way. Copies tell the same.
#[derive(Clone, Debug, Default)]
pub struct TraceStatus {
    written: Arc<AtomicU64>,
    failed: Arc<AtomicBool>,
}

impl TraceStatus {
    /// Bytes in both files so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
    /// Whether something could not be written: the run need not go on.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }
    pub(crate) fn count(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A file whose bytes are counted.
struct Counted {
    file: File,
    written: Arc<AtomicU64>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Why a trace could not be written.
#[derive(Debug)]
pub struct TraceError {
    path: PathBuf,
    error: io::Error,
}

impl TraceFiles {
    /// Creates the files for a run of `config` of which `focus` is recorded; classes of packets stand for these
    /// `priorities`, in their order. Of each packet, `kept` goes into the
    /// capture. `program` is who writes the capture.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn create(
        paths: TracePaths,
        config: &SimConfig,
        priorities: Vec<u8>,
        focus: &Focus,
        kept: Kept,
        program: &str,
    ) -> Result<Self, TraceError> {
        let names = Arc::new(PortNames::new(config.paths.graph()));
        let status = TraceStatus::default();
        let capture = open(&paths.capture, &status, |file| {
            Capture::begin(
                file,
                program,
                Headers::new(config, priorities),
                config.paths.graph(),
                Arc::clone(&names),
                kept,
            )
        })?;
        let timeline =
            open(&paths.timeline, &status, |file| Timeline::begin(file, config.paths.graph(), names, focus))?;
        let awaited = match &focus.flows {
            Chosen::All => BTreeSet::new(),
            Chosen::These(these) => these.clone(),
        };
        Ok(Self { paths, capture, timeline, awaited, failed: None, status })
    }

    /// How the files stand, for whoever watches the run.
    pub fn status(&self) -> TraceStatus {
        self.status.clone()
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
            self.status.failed.store(self.failed.is_some(), Ordering::Relaxed);
        }
    }
}

fn open<T>(
    path: &Path,
    status: &TraceStatus,
    begin: impl FnOnce(BufWriter<Counted>) -> io::Result<T>,
) -> Result<T, TraceError> {
    let counted = |file| Counted { file, written: Arc::clone(&status.written) };
    File::create(path)
        .and_then(|file| begin(BufWriter::new(counted(file))))
        .map_err(|error| TraceError::new(path, error))
}

impl TraceError {
    pub(crate) fn new(path: &Path, error: io::Error) -> Self {
        Self { path: path.into(), error }
    }
    /// What the operating system said.
    pub fn cause(&self) -> &io::Error {
        &self.error
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = "check that the folder exists, may be written to and has space left";
        write!(f, "{}: cannot write: {}; {remedy}", self.path.display(), self.error)
    }
}

impl std::error::Error for TraceError {}
