//! Homa (Montazeri et al., SIGCOMM 2018): receivers grant, and choose the priority of each packet.
//!
//! ```text
//!     message ──> Sending ──┐                         ┌── Receiving <── data packets
//!     grants ───> Sending ──┼─> poll_transmit:        ├── Receiving <── data packets
//!     RESENDs ──> Sending ──┘   the shortest rest     └── Receiving ──> grants to the shortest few, one priority each
//! ```
//!
//! README.md in this folder maps the sections of the paper to this code, and lists deviations.

mod config;
mod cutoffs;
mod host;
mod receiving;
mod sending;

pub use config::{HomaConfig, HomaConfig as Config, HomaParams};
pub use host::Host;

use selvedge_wire::Label;

/// Grant: the number of packets that may be sent from the message's beginning on, and the priority of the scheduled
/// ones.
const GRANT: Label = Label::new("GRANT");
/// Request to send packets again: the first one, their number, and their priority.
const RESEND: Label = Label::new("RESEND");
/// Answer to a RESEND of packets that the sender has not sent yet: it is alive, and sends others first.
const BUSY: Label = Label::new("BUSY");
/// Acknowledgement of a whole message, with its number of packets.
const ACK: Label = Label::new("ACK");
/// Priorities of unscheduled packets, as [`cutoffs::Cutoffs`] encodes them.
const CUTOFFS: Label = Label::new("CUTOFFS");

#[cfg(test)]
mod tests;
