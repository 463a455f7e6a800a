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

/// The paths of the trace files of one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracePaths {
    /// Path of the capture for Wireshark.
    pub capture: PathBuf,
    /// Path of the timeline for Perfetto.
    pub timeline: PathBuf,
}

/// The part of each packet that captures contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kept {
    /// Headers and checksums: everything but the payload.
    #[default]
    Headers,
    /// The whole packet, with a payload of zeros.
    All,
    /// The given number of bytes from the beginning of the packet.
    Bytes(usize),
}

/// Recorder that writes events into trace files; [`finish`](Self::finish) is called after the run.
///
/// A recorder cannot fail, so the first error (such as a full disk) is kept until `finish`.
pub struct TraceFiles {
    paths: TracePaths,
    capture: Capture<BufWriter<Counted>>,
    timeline: Timeline<BufWriter<Counted>>,
    /// Selected flows that have not begun.
    awaited: BTreeSet<FlowKey>,
    failed: Option<TraceError>,
    status: TraceStatus,
}

/// The status of a run's files during the run. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct TraceStatus {
    written: Arc<AtomicU64>,
    failed: Arc<AtomicBool>,
}

impl TraceStatus {
    /// Returns the bytes written to both files so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
    /// Returns whether a write failed, so that the run need not continue.
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

/// A file that counts the bytes written to it.
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

/// The reason why a trace could not be written.
#[derive(Debug)]
pub struct TraceError {
    path: PathBuf,
    error: io::Error,
}

impl TraceFiles {
    /// Creates the files for a run of `config` of which `focus` is recorded. `priorities` holds the priority of each
    /// traffic class. The capture contains the part `kept` of each packet, and names `program` as its writer.
    ///
    /// # Errors
    /// Returns an error when the files cannot be written.
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

    /// Returns the status of the files, for an observer of the run.
    pub fn status(&self) -> TraceStatus {
        self.status.clone()
    }

    /// Completes the files of a run that ended at `end`. Returns the selected flows that did not begin.
    ///
    /// # Errors
    /// Returns the first error, of this call or of the run.
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
    /// Returns the error of the operating system.
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
