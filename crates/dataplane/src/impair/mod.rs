//! An impairment device: two network namespaces, and between them a thread that loses, repeats, damages, delays and
//! reorders packets, with probabilities from its configuration and random numbers from a seed.
//!
//! ```text
//!   namespace A                                          namespace B
//!     eth0 (TUN) ──> [ Lane: fates ] ──> [ Pipe: queue ] ──> eth0 (TUN)
//!     eth0 (TUN) <── [ Pipe: queue ] <── [ Lane: fates ] <── eth0 (TUN)
//! ```
//!
//! 1. Fates are decided packet by packet by pure state machines ([`Lane`], [`Pipe`]); the thread ([`Testbed`]) only
//!    carries packets and reads the clock. Tests of the state machines need no device.
//! 2. Each direction, class of packet and kind of impairment has a random stream of its own: the n-th data packet of a
//!    direction has the same fate whatever other packets pass, and switching duplication on does not change which
//!    packets are lost.
//! 3. The TUN devices have no offloads, so the segments that the kernel cuts from long datagrams are lost packet by
//!    packet.
//! 4. All fates are counted, and so are packets that the kernel dropped before the device.

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

pub use class::{Class, classify};
pub use counts::Counts;
pub use lane::{Fate, Lane};
pub use pipe::Pipe;
pub use privilege::acquire;
pub use settings::{Impairment, Loss};
pub use signal::ask_to_end;
pub use testbed::{ADDRESSES, Plan, Report, Testbed};
