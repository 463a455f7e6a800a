//! EQDS's daemon: a device inside, UDP outside, and between them [`Endpoint`], which decides everything.
//!
//! ```text
//!   programs ──> Device (TUN, with offloads) ──handle_inside──> Endpoint ──poll_transmit──> path sockets ──>
//!            <──                             <──poll_inside────          <─handle_datagram─ receivers <──
//!   programs <── shared memory ──> Programs (native messages) ──> Endpoint
//!      Control (status, reload, down), signals, systemd ──> Daemon: a loop that waits, carries, flushes
//! ```
//!
//! 1. Long packets pass uncut: the kernel gives and takes packets of up to 64 KB at the device (TSO, USO), and cuts and
//!    joins datagrams at the sockets (GSO, GRO).
//! 2. Nothing that the daemon makes outlives it, however it ends: device, addresses and routes go with the device's
//!    file. The control socket of a daemon that was killed is replaced by the next one.
//! 3. The loop allocates nothing per packet.
//!
//! The crate tun-rs makes such devices, too, on many systems and for asynchronous programs; the two system calls that
//! this daemon needs of it are shared with the impairment device. Sockets are those of quinn-udp, which has the
//! segmentation, coalescing, ECN and fall-backs that are needed.

mod control;
mod daemon;
mod device;
mod error;
mod notify;
mod programs;
mod sockets;
mod status;

pub use control::{Answer, Command, ask, default_socket};
pub use daemon::{Options, run};
pub use error::EqdsError;
pub use selvedge_tunnel::endpoint::Endpoint;
pub use status::DaemonStatus;
