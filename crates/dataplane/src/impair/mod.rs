//! An impairment device: two network namespaces, and between them a thread of ours that loses, repeats, damages, delays
//! and reorders packets, as it was told and drawn from a seed.
//!
//! ```text
//!   namespace A                                          namespace B
//!     eth0 (TUN) ──> [ Lane: fates ] ──> [ Pipe: queue ] ──> eth0 (TUN)
//!     eth0 (TUN) <── [ Pipe: queue ] <── [ Lane: fates ] <── eth0 (TUN)
//! ```
//!
//! 1. What happens is decided packet by packet by pure state machines ([`Lane`], [`Pipe`]); the thread ([`Testbed`])
//!    only carries packets and tells the time. A test of theirs needs no device.
//! 2. Each direction, class of packet and kind of impairment has a random stream of its own: the n-th data packet of a
//!    direction has the same fate whatever passes beside it, and switching duplication on moves no loss.
//! 3. Devices are without offloads, so what the kernel cuts from long datagrams is lost packet by packet.
//! 4. All that was done is counted, and what the kernel dropped before us, too.

mod class;
mod counts;
mod damage;
mod lane;
mod namespace;
mod pipe;
mod privilege;
mod settings;
mod signal;
mod testbed;
mod tun;

pub use class::{Class, classify};
pub use counts::Counts;
pub use lane::{Fate, Lane};
pub use pipe::Pipe;
pub use privilege::acquire;
pub use settings::{Impairment, Loss};
pub use signal::ask_to_end;
pub use testbed::{ADDRESSES, Plan, Report, Testbed};
