//! The network: partitions of hosts and switches, and their visits.

pub(crate) mod clock;
pub(crate) mod edge;
pub(crate) mod fabric;
pub(crate) mod flows;
pub(crate) mod host;
mod independent;
pub(crate) mod int;
mod interleaved;
pub(crate) mod log;
pub(crate) mod notice;
pub(crate) mod order;
mod outage;
mod output;
pub(crate) mod parcel;
pub(crate) mod partition;
pub(crate) mod places;
pub(crate) mod pool;
pub(crate) mod records;
pub(crate) mod tally;
mod trains;
pub(crate) mod transient;
pub(crate) mod verbs;
mod visit;
