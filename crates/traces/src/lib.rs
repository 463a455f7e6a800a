//! Traces of a run, as files that Wireshark and Perfetto open.
//!
//! ```text
//! run_recorded --events--> TraceFiles ──> Capture   headers ──> pcapng     one interface per port
//!                                     └─> Timeline  tracks  ──> Perfetto   hosts, queue pairs, ports
//! real frames ─events─> RecordWriter ──> LabPaths::convert      ──> pcapng, Perfetto
//! run_recorded --events--> EventFiles ──> lines                 ──> IRN's hardware modules
//! ```
//!
//! A [`Selector`] is the user's choice of what to trace; [`Selection::focus`] turns it into what the simulator records.
//! Memory depends on the number of traced flows, but not on the length of a run.
#![forbid(unsafe_code)]

mod events;
mod fate;
mod files;
mod headers;
mod names;
mod pcapng;
mod perfetto;
mod real;
mod selector;

pub use events::{EventFiles, EventHosts};
pub use files::{Kept, TraceError, TraceFiles, TracePaths, TraceStatus};
pub use names::PortNames;
pub use real::{FrameProtocol, FrameSummary, LabPaths, RecordError, RecordReader, RecordWriter, Recorded};
pub use selector::{Selection, Selector};
