//! The simulation kernel: windows in which partitions run side by side, calendars, inboxes and threads.
//!
//! Conservative parallel discrete-event simulation of any [`Nodes`](nodes::Nodes) that send each other messages with a
//! delay: it knows neither packets nor links.

mod barrier;
pub(crate) mod calendar;
pub(crate) mod inbox;
pub(crate) mod nodes;
pub(crate) mod rounds;
pub(crate) mod schedule;
mod sync;
#[cfg(test)]
mod tests;
pub(crate) mod visit_order;
mod worker_pool;
