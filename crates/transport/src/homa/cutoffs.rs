//! Priorities of unscheduled packets (Homa section 3.4): each used for about as many bytes as the others.

use alloc::boxed::Box;

use selvedge_units::Bytes;

use super::config::HomaParams;

/// Division of the priorities between unscheduled and scheduled packets, and of the unscheduled ones between messages
/// by their size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cutoffs {
    /// Number of all priorities.
    priorities: u8,
    /// Number of priorities of unscheduled packets, the highest ones; at least 1.
    unscheduled: u8,
    /// Size code of the largest message of each unscheduled priority, highest priority first. The lowest has no limit.
    limits: [u8; 6],
}

impl Cutoffs {
    /// Returns the cutoffs before anything is known: sizes are divided in equal ratios up to `rtt_bytes`.
    pub(super) fn initial(params: &HomaParams, rtt_bytes: Bytes) -> Self {
        let unscheduled = params.unscheduled_priorities.unwrap_or(params.priorities.div_ceil(2));
        let largest = u32::from(code(rtt_bytes));
        let limit = |place: usize| (largest * (place as u32 + 1) / u32::from(unscheduled)) as u8;
        Self { priorities: params.priorities, unscheduled, limits: core::array::from_fn(limit) }
    }

    /// Returns the number of priorities of scheduled packets, at least 1.
    pub(super) fn scheduled(&self) -> u8 {
        (self.priorities - self.unscheduled).max(1)
    }

    /// Returns the priority of unscheduled packets of a message of `size`.
    pub(super) fn priority(&self, size: Bytes) -> u8 {
        let size = code(size);
        let limits = &self.limits[..usize::from(self.unscheduled - 1)];
        let place = limits.iter().position(|&limit| size <= limit).unwrap_or(limits.len());
        self.priorities - 1 - place as u8
    }

    /// Returns the cutoffs in two numbers of a control packet.
    pub(super) fn encode(&self) -> [u32; 2] {
        let [a, b, c, d, e, f] = self.limits;
        [u32::from_le_bytes([self.unscheduled, a, b, c]), u32::from_le_bytes([d, e, f, 0])]
    }

    /// Returns the cutoffs that a receiver sent, if they are possible with this number of priorities.
    pub(super) fn decode(priorities: u8, [first, second]: [u32; 2]) -> Option<Self> {
        let [unscheduled, a, b, c] = first.to_le_bytes();
        let [d, e, f, _] = second.to_le_bytes();
        let is_possible = (1..=priorities).contains(&unscheduled);
        is_possible.then_some(Self { priorities, unscheduled, limits: [a, b, c, d, e, f] })
    }
}

/// Returns the code of a size: 8 codes for each doubling, so that a code stands for sizes within an eighth of each
/// other. Larger sizes have larger codes, or equal ones.
fn code(size: Bytes) -> u8 {
    let size = size.get().max(1);
    let exponent = size.ilog2();
    let eighths = if exponent >= 3 { size >> (exponent - 3) & 7 } else { size << (3 - exponent) & 7 };
    (u64::from(exponent) * 8 + eighths).min(u64::from(u8::MAX)) as u8
}

/// Bytes that arrive at a host, by the size of their messages.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    /// Unscheduled bytes, indexed by size code.
    unscheduled: Box<[u64; 256]>,
    /// Scheduled bytes.
    scheduled: u64,
    /// Messages counted since the last [`Arrived::cutoffs`].
    messages: u32,
}

impl Default for Arrived {
    fn default() -> Self {
        Self { unscheduled: Box::new([0; 256]), scheduled: 0, messages: 0 }
    }
}

impl Arrived {
    /// Counts a message of `size`, of which at most `rtt_bytes` are unscheduled; returns the number of messages since
    /// the last call of [`Arrived::cutoffs`].
    pub(super) fn count(&mut self, size: Bytes, rtt_bytes: Bytes) -> u32 {
        let unscheduled = size.min(rtt_bytes);
        self.unscheduled[usize::from(code(size))] += unscheduled.get();
        self.scheduled += (size - unscheduled).get();
        self.messages += 1;
        self.messages
    }

    /// Returns cutoffs for what has arrived: the number of unscheduled priorities, unless it is given, by the share of
    /// unscheduled bytes, and limits so that each gets equally many of these. What arrived until now counts half from
    /// here on.
    pub(super) fn cutoffs(&mut self, params: &HomaParams) -> Cutoffs {
        let total: u64 = self.unscheduled.iter().sum();
        let all = (total + self.scheduled).max(1);
        let priorities = params.priorities;
        let by_share = || {
            let share = (u128::from(total) * u128::from(priorities) * 2 + u128::from(all)) / (2 * u128::from(all));
            // One priority is left to scheduled packets, if there are several.
            (share as u8).clamp(1, priorities.saturating_sub(1).max(1))
        };
        let unscheduled = params.unscheduled_priorities.unwrap_or_else(by_share);
        let mut limits = [u8::MAX; 6];
        let (mut place, mut largest, mut sum) = (0, 0, 0_u128);
        for (size, &bytes) in (0..=u8::MAX).zip(self.unscheduled.iter()).filter(|&(_, &bytes)| bytes > 0) {
            let with = sum + u128::from(bytes);
            // A limit is at the end of this size, or at that of the one before, whichever divides the bytes better.
            while place < limits.len() {
                let wanted = u128::from(total) * (place as u128 + 1) / u128::from(unscheduled);
                if with < wanted {
                    break;
                }
                limits[place] = if wanted.abs_diff(sum) < wanted.abs_diff(with) { largest } else { size };
                place += 1;
            }
            (largest, sum) = (size, with);
        }
        self.unscheduled.iter_mut().for_each(|bytes| *bytes /= 2);
        self.scheduled /= 2;
        self.messages = 0;
        Cutoffs { priorities, unscheduled, limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fabric;
    use crate::endpoint::EndpointSettings;
    use crate::homa::HomaConfig;

    #[test]
    fn codes_are_in_the_order_of_sizes_and_an_eighth_apart() {
        let codes: alloc::vec::Vec<u8> = (0..100_000).map(|size| code(Bytes::new(size))).collect();
        assert!(codes.is_sorted());
        for (kib, expected) in [(1, 80), (2, 88), (3, 92), (1 << 20, 240), (1 << 40, 255)] {
            assert_eq!(code(Bytes::new(kib << 10)), expected, "{kib} KiB");
        }
    }

    fn params() -> HomaParams {
        let mut config = HomaConfig::default();
        config.resolve(&Fabric::IRN_PAPER);
        config.params().expect("valid settings")
    }

    #[test]
    fn each_unscheduled_priority_gets_equally_many_bytes() {
        let params = HomaParams { unscheduled_priorities: Some(4), ..params() };
        let (mut arrived, rtt_bytes) = (Arrived::default(), Bytes::new(10_000));
        // A thousand bytes of each size, and as much that is scheduled.
        for (size, count) in [(100, 10), (200, 5), (500, 2), (1_000, 1)] {
            (0..count).for_each(|_| _ = arrived.count(Bytes::new(size), rtt_bytes));
        }
        let cutoffs = arrived.cutoffs(&params);
        let priorities = [1, 100, 101, 200, 500, 1_000, 1_000_000].map(|size| cutoffs.priority(Bytes::new(size)));
        assert_eq!(priorities, [6, 6, 6, 5, 4, 3, 3], "101 bytes have the code of 100");
        assert_eq!(Cutoffs::decode(7, cutoffs.encode()), Some(cutoffs));
    }

    #[test]
    fn the_share_of_unscheduled_bytes_divides_the_priorities() {
        let share = |scheduled: u64| {
            let mut arrived = Arrived::default();
            arrived.count(Bytes::new(10_000 + scheduled), Bytes::new(10_000));
            arrived.cutoffs(&params())
        };
        for (scheduled, unscheduled) in [(0, 6), (10_000, 4), (60_000, 1), (10_000_000, 1)] {
            assert_eq!(share(scheduled).unscheduled, unscheduled, "{scheduled}");
            assert_eq!(share(scheduled).scheduled(), 7 - unscheduled);
        }
        let one = HomaParams { priorities: 1, ..params() };
        let cutoffs = Arrived::default().cutoffs(&one);
        assert_eq!((cutoffs.scheduled(), cutoffs.priority(Bytes::new(1))), (1, 0), "both have the only one");
    }

    #[test]
    fn impossible_cutoffs_are_refused() {
        for unscheduled in [0, 8, 255] {
            assert_eq!(Cutoffs::decode(7, [unscheduled, 0]), None);
        }
    }
}
