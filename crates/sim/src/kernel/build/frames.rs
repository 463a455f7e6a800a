//! Lengths of frames.

use selvedge_units::Bytes;
use selvedge_wire::verbs::Headers;

use crate::config::SimConfig;
use crate::topology::Framing;

/// Returns how TCP's payload is framed on a link.
pub(super) fn tcp_framing(config: &SimConfig) -> Framing {
    let own = config.nic.framing(&config.transport);
    let beside = config.beside.as_ref().filter(|_| config.transport.tcp.is_none());
    beside.map_or(own, |beside| beside.framing(&config.nic))
}

/// Returns the largest number of bytes that a frame takes on a link.
pub(super) fn longest_frame(config: &SimConfig) -> Bytes {
    let full = |framing: Framing| framing.mtu + framing.overhead;
    let own = full(config.nic.framing(&config.transport)).max(config.nic.mtu + config.nic.gap);
    let tunnelled = config.largest_frame() + config.nic.gap;
    own.max(full(tcp_framing(config))).max(tunnelled) + Bytes::new(Headers::LONGEST as u64)
}
