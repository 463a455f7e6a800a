//! A laboratory: a network of many hosts, each a network namespace, on one machine.
//!
//! ```text
//!   one path                              several paths
//!     h1   h2  ...  hN                      h1 h2      h3 h4
//!      \    |      /                          \ |      | /
//!       \   |     /                          leaf1    leaf2      equal-cost routes by addresses and ports
//!         switch                               |  \  /  |
//!                                            spine1  spine2
//! ```
//!
//! 1. Switches are namespaces that route. Each host has one link, `eth0`, and one neighbour, its switch. No address is
//!    resolved by a question (ARP): hardware addresses are known to both ends, so that the first packet meets what the
//!    later ones meet, and many hosts do not overflow the kernel's table of neighbours.
//! 2. With a rate, each end of each link has a token bucket (`tc tbf`) with that rate. At a switch, a queue of
//!    [`Plan::buffer`] full packets stands behind it. A host's own queue is long, as that of a NIC and its driver is.
//!    The bucket holds fewer bytes than a long packet (GSO) has, and therefore cuts it into those of the wire. Without
//!    that, a switch would see 64 KB arrive at once and drop what exceeds its queue, or all of it.
//! 3. [`Rack`] makes hosts alone: each has one interface, whose other end is a port of a switch in this process
//!    ([`switch`](crate::switch)).
//! 4. Names, folder and lock belong to one laboratory at a time. Dropping [`Network`] or [`Rack`] removes everything;
//!    the next
//!    [`Claim`] removes what a laboratory that was killed has left.

mod claim;
mod layout;
mod network;
mod plan;
mod processes;
mod rack;

pub use claim::{Claim, Remains};
pub use network::Network;
pub use plan::Plan;
pub use processes::end_with_parent;
pub use rack::{Rack, RackHost, RackPlan, Racked};
