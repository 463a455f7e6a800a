//! Whole runs: building of partitions from a configuration, what happens between windows, and what is found out about
//! flows on the way.

mod build;
mod conduct;
mod deadlock;
mod look;
mod profile;
mod session;
mod stall;

pub(crate) use build::{Built, build_with};
pub use build::{port_infos, ports_of_links};
pub use conduct::{run, run_recorded};
pub use session::{Injection, Session};

/// Returns the bytes that a host takes in a run, without its port and its flows.
pub(crate) const fn bytes_per_host() -> usize {
    size_of::<crate::net::host::Host>() + INBOX
}

/// Returns the bytes that a switch takes in a run, without its ports.
pub(crate) const fn bytes_per_switch() -> usize {
    size_of::<selvedge_switch::switch::Switch>() + INBOX
}

/// Returns the bytes that a port takes in a run: its two directions, its queues, its entries in samples and results.
pub(crate) const fn bytes_per_port() -> usize {
    use selvedge_switch::port::{Egress, Ingress, PortExtra};
    size_of::<Egress>() + size_of::<Ingress>() + size_of::<PortExtra>() + PORT
}

/// Bytes of a node's inboxes.
const INBOX: usize = 2_048;
/// Bytes of a port in addition to its own state: queues, a row of a sample, a column of the report.
const PORT: usize = 1_024;
