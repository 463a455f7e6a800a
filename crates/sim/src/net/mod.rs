//! Physics: ports, queues, buffers, pauses, marks, and the hosts at the edge.

pub(crate) mod balancing;
pub(crate) mod buffer;
mod calm;
pub(crate) mod clock;
pub(crate) mod descriptor;
pub(crate) mod fair;
pub(crate) mod flows;
pub(crate) mod forward;
pub(crate) mod host;
pub(crate) mod int;
pub(crate) mod listed;
pub(crate) mod marking;
pub(crate) mod netrt;
pub(crate) mod notice;
mod outage;
mod output;
pub(crate) mod pfc;
pub(crate) mod places;
pub(crate) mod pool;
pub(crate) mod port;
pub(crate) mod queue;
pub(crate) mod records;
pub(crate) mod switch;
mod trains;
pub(crate) mod trimming;
mod turns;
pub(crate) mod verbs;
