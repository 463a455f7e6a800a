//! ECN marking.

use selvedge_units::Rng;

use crate::config::EcnConfig;

/// Whether a packet that finds `waiting` bytes before it is marked: RED on the instantaneous queue
/// (DCQCN section 3.1, figure 5).
#[inline]
pub(crate) fn marks(config: &EcnConfig, waiting: u64, rng: &mut Rng) -> bool {
    let (low, high) = (config.k_min.get(), config.k_max.get());
    if waiting <= low {
        return false;
    }
    if waiting > high {
        return true;
    }
    // p_max * (waiting - low) / (high - low), in units of 2^-64 of the draw.
    let p = (config.p_max.as_f64() * (waiting - low) as f64) / (high - low) as f64;
    rng.unit_f64() < p
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_units::{Bytes, Chance, Domain};

    #[test]
    fn the_curve_rises_linearly_between_its_ends() {
        let config = EcnConfig {
            enabled: true,
            k_min: Bytes::from_kb(10),
            k_max: Bytes::from_kb(110),
            p_max: Chance::ratio(1, 2),
        };
        let mut rng = Rng::stream(1, Domain::EcnMark, 0);
        let mut share = |waiting| (0..20_000).filter(|_| marks(&config, waiting, &mut rng)).count() as f64 / 20_000.0;
        assert_eq!(share(10_000), 0.0);
        assert_eq!(share(110_001), 1.0);
        for (waiting, expected) in [(30_000, 0.1), (60_000, 0.25), (110_000, 0.5)] {
            assert!((share(waiting) - expected).abs() < 0.015, "{waiting}");
        }
    }
}
