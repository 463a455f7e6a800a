//! Lengths of frames.

use selvedge_units::Bytes;
use selvedge_wire::verbs::Headers;

use crate::config::SimConfig;
use crate::topology::Framing;

/// Returns how the payload of TCP beside the transport is framed on a link; the transport's framing if there is none.
pub(super) fn beside_framing(config: &SimConfig) -> Framing {
    let beside = config.beside.as_ref().map(|beside| beside.framing(&config.nic));
    beside.unwrap_or_else(|| config.nic.framing(&config.transport))
}

/// Returns the largest number of bytes that a frame takes on a link.
pub(super) fn longest_frame(config: &SimConfig) -> Bytes {
    let full = |framing: Framing| framing.mtu + framing.overhead;
    let own = full(config.nic.framing(&config.transport)).max(config.nic.mtu + config.nic.gap);
    let tunnelled = config.largest_frame() + config.nic.gap;
    own.max(full(beside_framing(config))).max(tunnelled) + Bytes::new(Headers::LONGEST as u64)
}
