//! NDP (Handley et al., SIGCOMM 2017): receivers pull, switches trim, packets spread over all paths.
//!
//! ```text
//!     handle_ack ────┐                      ┌─> poll_transmit   while is_ready: the window, then one packet per pull
//!     handle_pull ───┼─>  NdpSender  ───────┤
//!     handle_timeout ┘                      └─> poll_timeout    when to call handle_timeout
//!
//!     handle_data ───>  NdpReceiver  ────────> Reply { verdict, ack }, and owes the sender a pull
//!     owe ───────────>  PullPacer  ──────────> poll            whose pull is due; one for all flows of a host
//! ```
//!
//! README.md in this folder maps the sections of the paper to this code, and lists deviations.

mod config;
mod host;
mod pacer;
mod paths;
mod receiver;
mod sender;

pub use config::{NdpConfig, NdpConfig as Config, NdpParams};
pub use host::Host;
pub use pacer::PullPacer;
pub use receiver::NdpReceiver;
pub use sender::{NdpSegment, NdpSender};

#[cfg(test)]
mod tests;
