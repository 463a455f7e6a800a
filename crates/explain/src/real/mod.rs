//! Explanations of real flows: where the packets of programs in a laboratory were, and what the programs waited for.
//!
//! The switches' recording ([`FabricEvent`](selvedge_telemetry::FabricEvent)) has each packet's path, but not what
//! hosts think: windows, timers and applications are not seen. The time of a flow is split along the chain of events
//! that led to its last packet:
//!
//! ```text
//! sender    |--- sends ---|                      ┌── idle ──|-- sends --|
//! fabric                  └─ queues, links ─┐    │                      └─ queues, links ─┐
//! receiver                                  └ idle, answer ┘                              └ end
//! ```
//!
//! 1. *The last packet* is followed back through its links: waiting, pauses, serialisation, propagation.
//! 2. *The host that has sent it* was busy sending packets of the flow without a pause, which is serialisation, since a
//!    packet that left after it had been idle. That packet is taken to be an answer to the packet of the flow that had
//!    reached the host last; the host's time between the two is the sender's or the receiver's own.
//! 3. *That packet* is followed back in turn, until the first packet of the flow.
//!
//! Each moment belongs to one part, so that the parts add up to the flow's time. A sender that waits for its window
//! waits for an acknowledgement: its time is that of the round trip, in the queues where the round trip was.

mod account;
mod path;
mod recording;
mod report;
mod streams;
#[cfg(test)]
mod tests;

pub use recording::RealRecording;
pub use report::{Gap, LostAt, PacketTimes, QueueTime, RealFlow, RealParts, RealReport, render_real, render_real_flow};
