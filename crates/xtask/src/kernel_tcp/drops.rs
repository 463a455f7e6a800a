//! Choice of the packets that are lost or late.

/// Returns numbers below `packets`, each drawn with probability `p`; equal for equal `seed`.
pub(super) fn drawn(p: f64, seed: u64, packets: u64) -> Vec<u64> {
    let mut state = seed;
    let threshold = (p * 18_446_744_073_709_551_616.0) as u64;
    (0..packets).filter(|_| mixed(&mut state) < threshold).collect()
}

/// Returns the next number of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_are_lost_as_shall_be() {
        for (p, expected) in [(0.0, 0), (0.001, 1_000), (0.01, 10_000)] {
            let drops = drawn(p, 7, 1_000_000);
            assert!(drops.len().abs_diff(expected) < 300, "{p}: {}", drops.len());
        }
        assert_ne!(drawn(0.01, 1, 10_000), drawn(0.01, 2, 10_000));
    }
}
