//! The links of a flow's path: each is compared with its own state one acknowledgement ago (L in algorithm 1).
//!
//! Design note. Processors divide four numbers in the time of one, and mispredict which link is the fullest. So U is
//! computed for all links at once, together with the resulting smoothed value. Both lie in one number of 64 bits; such
//! numbers compare by their upper halves, so the maximum belongs to the fullest link, without a branch.

use selvedge_units::{Instant, Seq};
use selvedge_wire::{Hops, PathRecord};
use wide::{f32x4, f64x2};

/// The state of the links as of the previous acknowledgement.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Links {
    /// lastUpdateSeq, which is stored here because it is read first, so that the state of the links is being loaded
    /// then.
    pub updated_at: Seq,
    pub sent: Seq,
    way: u64,
    written_at: Instant,
    hops: [Hops; PathRecord::MOST / 4],
}

const _: () = assert!(size_of::<Links>() == 128, "two cache lines");

impl Links {
    /// The state before the first acknowledgement.
    pub(super) const UNKNOWN: Self = Self {
        updated_at: Seq::ZERO,
        sent: Seq::ZERO,
        way: 0,
        written_at: Instant::ZERO,
        hops: [Hops::ZERO; PathRecord::MOST / 4],
    };

    /// Returns U, which was `utilisation`, after an update from the fullest link (algorithm 1, `MeasureInflight`;
    /// equation 2); records the state of all links. Returns `None` if there is no comparable state: for the first
    /// acknowledgement, for one from another path, and after a long time.
    #[inline]
    pub(super) fn measure(&mut self, path: &PathRecord, utilisation: f32, per_base_rtt: f32) -> Option<f32> {
        let is_comparable = self.way == path.way() && path.written_at() < self.written_at + PathRecord::MEMORY;
        self.written_at = path.written_at();
        if !is_comparable {
            self.meet(path);
            return None;
        }
        let mut fullest = f64x2::ZERO;
        for (link, hop) in self.hops.iter_mut().zip(path.hops()) {
            // At least one tick: for late telemetry, the difference is negative.
            let passed = f32x4::from_i32x4(hop.at - link.at).fast_max(f32x4::ONE);
            let busy = f32x4::from_i32x4(hop.busy - link.busy);
            let queue = hop.queue.fast_min(link.queue);
            *link = *hop;
            let load = (queue * per_base_rtt + busy / passed).fast_max(f32x4::ZERO);
            let share = (passed * per_base_rtt).fast_min(f32x4::ONE);
            let heard = (1.0 - share) * utilisation + share * load;
            fullest = fullest.fast_max(bytemuck::cast(heard.unpack_lo(load)));
            fullest = fullest.fast_max(bytemuck::cast(heard.unpack_hi(load)));
        }
        let [first, second] = fullest.to_array();
        Some(f32::from_bits(larger(first, second).to_bits() as u32))
    }

    #[cold]
    fn meet(&mut self, path: &PathRecord) {
        self.way = path.way();
        self.hops = *path.hops();
    }
}

// One instruction each, unlike `f64::min` and `f64::max`, which check for NaN.
#[inline]
pub(super) fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}
#[inline]
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Returns the nearest whole number to `of`, which is from 0 to 2^51. Takes two instructions, unlike `as`, which checks
/// the range.
#[inline]
pub(super) fn whole(of: f64) -> u64 {
    const ONES: f64 = (1_u64 << 52) as f64;
    (of + ONES).to_bits() - ONES.to_bits()
}
