//! Cost of MELO's state on a NIC: section 3.2.4, for given settings.

use alloc::format;

use super::config::MeloConfig;
use crate::footprint::{Footprint, PSN_BITS, Published, Scope, bits_of};

/// Bits of a hole's start and length, like on the wire.
const HOLE: u64 = 16 + 16;
/// Number of holes that are tracked.
const HOLES: u64 = 3;
/// Number of ends: sender and receiver.
const BOTH: u64 = 2;

const PUBLISHED: Published = Published {
    source: "MELO section 3.2.4",
    queue_pair: 8 * (12 + 6 + 2),
    work_request: 0,
    shared: 6 * 1024,
    note: "1 MB of bandwidth-delay product in packets of 1 KB; with 300 connections 23 B for each, 9.1 % of the 248 B \
           that one takes already (mlx4_qp_context); a bitmap for each would take 2.5 Kb at 100 Gb/s and 200 us: 312 B, \
           1.26 times as much again. Not counted there: the reorder buffer's address, and what a sender keeps beside \
           its bitmap",
};

/// Returns the state that `config`, which is resolved, needs.
pub(super) fn of(config: &MeloConfig) -> Footprint {
    let blocks = u64::from(config.blocks());
    // "MELO sets entry size of the available array to 8-bit": enough for 256 blocks.
    let id = bits_of(blocks - 1).max(8);
    let pool = blocks * (u64::from(config.block_bits) + 2 * id);
    Footprint { published: Some(PUBLISHED), ..Footprint::default() }
        .with("holes", Scope::QueuePair, HOLES * HOLE, "three newest holes, start and length of 2 B each")
        .with("sequence", Scope::QueuePair, 2 * PSN_BITS, "RCV.NXT and RCV.HIGH")
        .with("ends", Scope::QueuePair, 2 * id, "start_ptr and end_ptr")
        .with(
            "pool",
            Scope::Shared,
            BOTH * pool,
            format!("bits, next_ptr and available array of {blocks} blocks, at receiver and sender"),
        )
        .with("top", Scope::Shared, BOTH * bits_of(blocks), "avail_ptr, at both")
}
