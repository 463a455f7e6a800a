//! Explanations of flows: why was this flow slow?
//!
//! A flow's completion time is split into [`EXPLAINED`] parts that add up to it, exact to the picosecond. The split
//! follows the chain of events that the end of the flow waited for:
//!
//! ```text
//!  start                                          sent                        finish
//!    |--- why the packet was not sent earlier ------|--- how it fared on its way ---|
//!         the sender's time, span by span                its hops, one by one
//! ```
//!
//! 1. *The last packet.* The flow ends when one packet arrives. Its path is split into hops, each hop into waiting,
//!    serialisation and propagation; waiting into pause and queueing.
//! 2. *The sender before that.* From the start of the flow until that packet was sent, every moment belongs to what the
//!    sender did (send, retransmit) or waited for: its turn on the NIC's link, the end of a pause, pacing, a window,
//!    detection of a loss, a timeout.
//! 3. *Waiting for a window* is no cause of its own where an empty network would have opened it in time. The data
//!    packet and the acknowledgement that opened it may have waited in queues and behind pauses. As much of the
//!    sender's waiting as that round trip exceeds an undisturbed one is attributed to where they waited; only the rest
//!    is attributed to the window.
//! 4. *The time in an empty network* is serialisation and propagation: a packet that waits behind packets of its own
//!    flow, where their link is slower than the one before, waits for serialisation as far as it would alone. A flow
//!    that meets no other has only these two parts, and they are its ideal completion time.
//!
//! For a flow that had not finished when the run ended, the packet that it waits for replaces the last packet, as if it
//! had arrived at the end of the run; if nothing is in flight to the receiver, the sender's time extends to the end.
//!
//! Pauses are followed to their causes ([`PauseTree`]): a port was paused because an input at its peer had filled up
//! with packets for some output, which was itself paused, or was congested. Where pauses form a cycle that ended the
//! run, [`Cycle`] describes the packets waiting there.
//!
//! Flows of programs in a laboratory, whose hosts are not simulated, have a [`RealRecording`] and parts of their own.
//!
//! [`Recording`] records the necessary events of a run, [`explain`] turns them into [`Explanation`]s. The crate reads
//! no files and runs nothing.
#![forbid(unsafe_code)]

mod account;
mod alone;
mod blame;
mod cycle;
mod direction;
mod explanation;
mod history;
mod json;
mod names;
mod parts;
mod pauses;
mod real;
mod recording;
mod share;
mod standing;
mod text;
mod timeline;
mod transmission;

pub use blame::{Cause, PauseTree, Root, roots};
pub use cycle::{Cycle, Held, Stuck};
pub use explanation::{Awaited, DelayingPort, DropPlace, Explanation, HopDelays, explain};
pub use json::{CycleReport, Report};
pub use names::Names;
pub use parts::{EXPLAINED, Parts};
pub use pauses::Stop;
pub use real::{
    Gap, LostAt, PacketTimes, QueueTime, RealFlow, RealParts, RealRecording, RealReport, render_real, render_real_flow,
};
pub use recording::Recording;
pub use text::{render_cycle, render_flow, render_flows};
