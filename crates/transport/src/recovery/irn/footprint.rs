//! Cost of IRN's state on a NIC: section 6.1, for given settings.

use alloc::format;

use super::config::{IrnConfig, PartialAcks, Rto, window};
use crate::bitmap::WIDEST_WINDOW;
use crate::footprint::{Footprint, PSN_BITS, Published, Scope, bitmap_bits, bits_of};
use crate::recovery::Scheme;

/// Number of ends with sender state: requester and responder, since the responder of a Read sends data, too.
const BOTH: u64 = 2;

/// Flags of one end: retransmission pending, recovery, short timeout running, search for the next hole (the names of
/// the authors' hardware code: doRetransmit, inRecovery, quickTimeout, findNewHole).
const FLAGS: u64 = 4;

/// Bits for the timer and the progress of Reads at the responder; the paper gives the sum.
const READS: u64 = 56;

const PUBLISHED: Published = Published {
    source: "IRN section 6.1",
    queue_pair: 160 + 640,
    work_request: 24,
    shared: 80,
    note: "40 Gb/s and up to 24 us, bitmaps of 128 bits; 3-10 % of a cache of several MB for a couple of thousands \
           of QPs and tens of thousands of WQEs, even at 100 Gb/s",
};

/// Returns the state that `config`, which is resolved, needs.
pub(super) fn of(config: &IrnConfig) -> Footprint {
    let cap = window(config.bdp_cap());
    let bitmap = bitmap_bits(cap);
    let size = match cap {
        WIDEST_WINDOW => format!("{bitmap} bits: no BDP-FC bounds them but the PSNs"),
        _ => format!("{bitmap} bits for {cap} packets (BDP cap)"),
    };
    let (recovery, recovery_is) = match config.told_by_partial_acks() {
        PartialAcks::First => (2 * PSN_BITS, "latest and first recovery sequence (paper: one), at both"),
        _ => (PSN_BITS, "recovery sequence, at both"),
    };
    let mut footprint = Footprint { published: Some(PUBLISHED), ..Footprint::default() }
        .with("retransmit", Scope::QueuePair, BOTH * PSN_BITS, "packet to send again, at requester and responder")
        .with("recovery", Scope::QueuePair, BOTH * recovery, recovery_is)
        .with("flags", Scope::QueuePair, BOTH * FLAGS, "four flags, at both")
        .with("reads", Scope::QueuePair, READS, "timer and progress of Reads, at the responder")
        .with(
            "arrivals",
            Scope::QueuePair,
            3 * bitmap,
            format!("3 bitmaps of arrivals (2 at the responder, 1 of Read responses): {size}"),
        );
    if config.sack {
        footprint = footprint.with(
            "acknowledged",
            Scope::QueuePair,
            BOTH * bitmap,
            "2 bitmaps of selective acknowledgements, at both",
        );
    }
    if config.nack_threshold > 1 {
        let counter = bits_of(u64::from(config.nack_threshold));
        footprint = footprint.with("nacks", Scope::QueuePair, BOTH * counter, "count of NACKs (section 7), at both");
    }
    if config.holes {
        footprint =
            footprint.with("holes", Scope::QueuePair, BOTH * 3 * 32, "three newest holes (not the paper's), at both");
    }
    if config.time_stamps {
        let times = "two times of retransmissions (not the paper's), at both";
        footprint = footprint.with("times", Scope::QueuePair, BOTH * 2 * 64, times).with(
            "overtaken",
            Scope::QueuePair,
            BOTH * PSN_BITS,
            "up to where packets were overtaken, at both",
        );
    }
    if config.probes > 1 {
        let counters = BOTH * 2 * bits_of(u64::from(config.probes));
        footprint = footprint.with(
            "probes",
            Scope::QueuePair,
            counters,
            "packets of this timeout and the next (not the paper's), at both",
        );
    }
    footprint = footprint.with("wqe-sn", Scope::WorkRequest, PSN_BITS, "sequence number of the WQE");
    with_shared(footprint, config)
}

/// Adds the state that all queue pairs share: 10 bytes in the paper, which does not say how they are divided.
fn with_shared(mut footprint: Footprint, config: &IrnConfig) -> Footprint {
    if window(config.bdp_cap()) < WIDEST_WINDOW {
        footprint = footprint.with("bdp-cap", Scope::Shared, 32, "BDP cap");
    }
    match config.rto {
        Rto::Static => footprint.with("rto-low", Scope::Shared, 32, "RTO_low").with(
            "n",
            Scope::Shared,
            16,
            "N, up to which RTO_low applies",
        ),
        Rto::Dynamic(rto) => {
            let microseconds = bits_of(rto.max.as_ps() / 1_000_000);
            footprint
                .with(
                    "round-trip",
                    Scope::QueuePair,
                    BOTH * 3 * microseconds,
                    "round-trip time, its variation and timeout in us, at both",
                )
                .with("timeouts", Scope::Shared, 3 * 32, "least, first and longest timeout")
        }
    }
}
