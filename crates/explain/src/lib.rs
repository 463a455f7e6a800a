//! Why was this flow slow?
//!
//! A flow's completion time is split into [`EXPLAINED`] parts that add up to it, to the picosecond. The split
//! follows what the end of the flow was waiting for:
//!
//! ```text
//!  start                                          sent                        finish
//!    |--- why the packet was not sent earlier ------|--- how it fared on its way ---|
//!         the sender's time, span by span                its hops, one by one
//! ```
//!
//! 1. *The last packet.* The flow ends when one packet arrives. Its way is cut into hops, each hop
//!    into waiting, serialisation and propagation; waiting into pause and queueing.
//! 2. *The sender before that.* From the start of the flow until that packet was sent, every moment
//!    belongs to what the sender did (send, send again) or waited for: its turn on the NIC's link, the
//!    end of a pause, pacing, a window, news of a loss, a timeout.
//! 3. *Waiting for a window* is no cause of its own where an empty network would have opened it in
//!    time. The acknowledgement that opened it has come a long way: the data packet that it answers
//!    and the acknowledgement itself waited in queues and behind pauses. As much of the sender's
//!    waiting as that round trip exceeds an undisturbed one is put down to where it waited; only the
//!    rest is the window's.
//! 4. *What an empty network would cost too* is serialisation and propagation: a packet that waits
//!    behind packets of its own flow, where their link is slower than the one before, waits for
//!    serialisation as far as it would alone. So a flow that meets nobody has nothing but these two, and
//!    they are its ideal completion time.
//!
//! Of a flow that had not finished when the run ended, the packet that it waits for takes the place of the last one, as
//! if it had arrived then; if nothing is under way to the receiver, the sender's time goes on until then.
//!
//! Pauses are followed to their causes ([`PauseTree`]): a port was paused because an input at its peer
//! had filled up with packets for some output, which was itself paused, or was congested. Where they come round
//! to themselves and a run ended, [`Cycle`] says what stands there.
//!
//! [`Recording`] records what is needed of a run, [`explain`] makes [`Explanation`]s of it. Knows no files
//! and runs nothing.
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
mod recording;
mod share;
mod standing;
mod text;
mod timeline;
mod transmission;

pub use blame::{Cause, PauseTree, Root, roots};
pub use cycle::{Cycle, Held, Stuck};
pub use explanation::{Awaited, DropPlace, Explanation, HopDelays, Place, explain};
pub use json::{CycleReport, Report};
pub use names::Names;
pub use parts::{EXPLAINED, Parts};
pub use pauses::Stop;
pub use recording::Recording;
pub use text::{render_cycle, render_flow, render_flows};
