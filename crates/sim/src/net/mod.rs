//! The network: ports, queues, buffers, pauses, marks, and the hosts at the edge.

pub(crate) mod clock;
pub(crate) mod flows;
pub(crate) mod host;
mod independent;
pub(crate) mod int;
mod interleaved;
pub(crate) mod notice;
mod outage;
mod output;
pub(crate) mod places;
pub(crate) mod pool;
pub(crate) mod records;
mod trains;
pub(crate) mod transient;
pub(crate) mod verbs;
mod visit;
