//! Division of whole numbers into shares that add up exactly.

/// Divides `total` among `weights` in proportion, so that the shares add up to `total`. Without any positive weight all
/// shares are zero.
pub(crate) fn share(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let mut before = 0u128;
    let mut given = 0;
    let shares = weights.iter().map(|&weight| {
        before += u128::from(weight);
        // Cumulative share, rounded down; the last one equals the total.
        let until = (u128::from(total) * before).checked_div(sum).unwrap_or(0) as u64;
        let mine = until - given;
        given = until;
        mine
    });
    shares.collect()
}

/// Returns `of` times `part / whole`, rounded down; `part` is at most `whole`, which is above zero.
pub(crate) fn fraction(of: u64, part: u64, whole: u64) -> u64 {
    (u128::from(of) * u128::from(part) / u128::from(whole)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        assert_eq!(share(10, &[1, 1, 1]), [3, 3, 4]);
        assert_eq!(share(7, &[0, 5, 0]), [0, 7, 0]);
        assert_eq!(share(u64::MAX, &[1 << 60, 1 << 60]), [u64::MAX / 2, u64::MAX / 2 + 1]);
        assert_eq!(share(5, &[0]), [0]);
        assert_eq!(share(5, &[]), [0; 0]);
    }
}
