//! Recordings of real frames in a laboratory's switches: their file, and captures and timelines made of it.
//!
//! ```text
//! switches ──events──> RecordWriter ──> lab.events ──> RecordReader ──┬─> lab.pcapng            one interface per port
//!                                                                     ├─> lab.perfetto-trace    nodes, ports, queues
//!                                                                     └─> `selvedge explain`
//! ```
//!
//! The switches' thread shares a machine with the programs that it carries frames for: while they run, events are only
//! written down. Captures and timelines are made afterwards.

mod capture;
mod packet;
mod record;
mod timeline;

use std::path::{Path, PathBuf};

use selvedge_sim::topology::Graph;

use crate::files::{TraceError, TracePaths};

pub use packet::{FrameProtocol, FrameSummary};
pub use record::{RecordError, RecordReader, RecordWriter, Recorded};

/// Paths of the files of a laboratory's recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabPaths {
    /// Path of the events, of which the others are made.
    pub events: PathBuf,
    /// Paths of the capture and the timeline.
    pub traces: TracePaths,
}

impl LabPaths {
    /// Returns the paths of the files in `folder`.
    pub fn within(folder: &Path) -> Self {
        let path = |name| folder.join(name);
        let traces = TracePaths { capture: path("lab.pcapng"), timeline: path("lab.perfetto-trace") };
        Self { events: path("lab.events"), traces }
    }

    /// Makes the capture and the timeline of the events, which `program` has recorded in switches of `graph`.
    ///
    /// # Errors
    /// Returns an error if the events cannot be read, or the files not written.
    pub fn convert(&self, graph: &Graph, program: &str) -> Result<(), RecordError> {
        let written = |path: &Path, error| RecordError::Write(TraceError::new(path, error));
        let TracePaths { capture, timeline } = &self.traces;
        capture::write(capture, RecordReader::open(&self.events)?, program, &|error| written(capture, error))?;
        timeline::write(timeline, RecordReader::open(&self.events)?, graph, &|error| written(timeline, error))
    }
}
