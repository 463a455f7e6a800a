//! A top-of-rack switch with NetRT (NetRT, 2024): retransmission between switches, invisible to NICs.
//!
//! ```text
//! host ──> [ parse, ICRC ] ──> copy into SrcTor ─────────────────────> [ queue ] ──> fabric
//! host <── [ queue ] <── in order? DstTor <── [ parse, ICRC ] <────────────────────── fabric
//!              held packets wait here; requests and copies pass the fabric in high priority
//! ```
//!
//! [`Tor`] takes IP packets and the time, and gives packets back, each for a port: no socket is opened, no clock read.
//! Decisions are those of `selvedge-transport`'s `netrt`, which the simulator runs, too.
//!
//! 1. NetRT repairs requests of reliable connections: Sends, Writes, Atomics, and Read requests. Read responses and
//!    acknowledgements of Atomics travel in the PSN space of the other direction, with gaps where other requests were:
//!    they pass untouched, like acknowledgements, datagrams, unreliable connections and the connection manager, and the
//!    NIC recovers them.
//! 2. No state moves before the ICRC is verified: a damaged packet is a lost one. It is forwarded, since the NIC drops
//!    it anyway.
//! 3. A packet's order is checked once it has a place in the queue towards its host. One without a place is lost, and
//!    requested like any other.
//! 4. Copies and messages have a DSCP of their own ([`Settings::dscp`]) and go before all other packets. The ICRC
//!    covers no DSCP; the destination ToR restores that of the flow: the host receives the packet that was sent.
//! 5. Whatever is not understood is forwarded: other protocols, flows beyond the table, IP options, fragments. Messages
//!    of NetRT are the exception: none passes to a host, and none is taken from one.
#![forbid(unsafe_code)]

mod egress;
mod names;
pub mod packet;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod tor;

pub use settings::Settings;
pub use tor::{Outgoing, Port, Stats, Tor};
