//! Files of other simulators, and lists in files of Selvedge's own.
//!
//! | module | file |
//! |---|---|
//! | [`ns3_topology`] | `topology.txt` of the ns-3 RDMA family (HPCC, ConWeave) and of SimAI |
//! | [`ns3_flow`] | `flow.txt` of the same family: 5, 6 or 7 columns |
//! | [`htsim_topo`] | htsim's `.topo`: a fat-tree by tiers, and the links htsim makes of it |
//! | [`htsim_cm`] | htsim's `.cm`: a connection matrix with triggers and failures |
//! | [`goal`] | GOAL schedules of LogGOPSim and ATLAHS, text and binary |
//! | [`cdf`] | flow-size distributions in the dialects in use, and the well-known ones by name |
//! | [`fct`] | `fct.txt` of the ns-3 RDMA family, written and read |
//! | [`irn_trace`] | event traces of the IRN authors' receiver and sender |
//! | [`loss_trace`] | numbers of lost packets, for the loss model of that name |
//! | [`detect()`] | which of these a topology or a flow list is |
//!
//! Readers take bytes or a [`BufRead`](std::io::BufRead) and the file's name for messages; they open nothing. All of
//! them accept CRLF, tabs, blanks at the end of a line, `#` comments, a byte order mark and a missing last newline;
//! none of them panics, whatever the bytes. The [`FormatError`] of an invalid file has the file, line and column, the
//! text that was found and what is valid. A file that can be read but has something questionable (a stale count in its
//! header, a unit that had to be guessed) gives a [`Warning`] beside the value.
//!
//! Counts in headers are compared, never trusted: nothing is allocated from them.
#![forbid(unsafe_code)]

pub mod cdf;
mod detect;
mod error;
pub mod fct;
pub mod goal;
pub mod htsim_cm;
pub mod htsim_topo;
pub mod irn_trace;
pub mod loss_trace;
pub mod ns3_flow;
pub mod ns3_topology;
mod text;

pub use detect::detect;
pub use error::{Dialect, FormatError, Parsed, Warning};
