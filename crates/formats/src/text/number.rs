//! Decimal numbers without rounding.

/// Decimal number as written: `digits * 10^exponent`, never negative.
///
/// Digits after the 22nd significant one are cut off; 2^64 has 20.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Decimal {
    digits: u128,
    exponent: i32,
}

const DIGITS_MAX: u128 = 10u128.pow(22);

impl Decimal {
    /// Reads "2.000028356", "1e-6"; `None` for anything else, such as signs, "NaN", "inf" and "0x10".
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok().filter(|e| (-60..=60).contains(e))?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut number = Self { digits: 0, exponent };
        for (part, places) in [(whole, 0), (fraction, 1)] {
            for byte in part.bytes() {
                let digit = byte.is_ascii_digit().then(|| u128::from(byte - b'0'))?;
                let longer = number.digits * 10 + digit;
                if longer < DIGITS_MAX {
                    number.digits = longer;
                    number.exponent = number.exponent.checked_sub(places)?;
                } else {
                    number.exponent = number.exponent.checked_add(1 - places)?;
                }
            }
        }
        Some(number)
    }

    pub(crate) fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Returns the number times `factor`, cut to a whole number; `None` if that needs more than 64 bits.
    pub(crate) fn times(self, factor: u64) -> Option<u64> {
        if self.is_zero() {
            return Some(0);
        }
        // A factor of up to 2^54 leaves room in 128 bits: units of data and time stay below.
        let scaled = self.digits.checked_mul(u128::from(factor))?;
        let power = 10u128.checked_pow(self.exponent.unsigned_abs());
        let scaled = match (self.exponent >= 0, power) {
            (true, power) => scaled.checked_mul(power?)?,
            (false, Some(power)) => scaled / power,
            (false, None) => 0,
        };
        scaled.try_into().ok()
    }

    /// Returns the number as numerator and denominator, cut to 19 decimals; `None` above 1.
    pub(crate) fn fraction(self) -> Option<(u64, u64)> {
        let Self { mut digits, mut exponent } = self;
        while exponent < -19 && digits > 0 {
            (digits, exponent) = (digits / 10, exponent + 1);
        }
        if digits == 0 {
            return Some((0, 1));
        }
        let denominator = 10u64.pow(exponent.min(0).unsigned_abs());
        let numerator = u64::try_from(digits).ok()?.checked_mul(10u64.checked_pow(exponent.max(0) as u32)?)?;
        (numerator <= denominator).then_some((numerator, denominator))
    }

    /// Returns the number as a part of `whole` in units of 2^-64, cut to 18 digits; `u64::MAX` if it equals `whole` and
    /// `None` above.
    pub(crate) fn part_of(self, whole: u64) -> Option<u64> {
        if self.is_zero() {
            return Some(0);
        }
        let power = 10u128.checked_pow(self.exponent.unsigned_abs().min(38)).unwrap_or(u128::MAX);
        let (mut part, mut whole) = if self.exponent >= 0 {
            (self.digits.checked_mul(power)?, u128::from(whole))
        } else {
            (self.digits, u128::from(whole).saturating_mul(power))
        };
        match part.cmp(&whole) {
            std::cmp::Ordering::Greater => return None,
            std::cmp::Ordering::Equal => return Some(u64::MAX),
            std::cmp::Ordering::Less => {}
        }
        // 18 digits remain, and room for the shift.
        while part >= 1 << 63 {
            (part, whole) = (part / 10, whole / 10);
        }
        Some(((part << 64) / whole).min(u128::from(u64::MAX - 1)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Decimal;

    fn times(text: &str, factor: u64) -> Option<u64> {
        Decimal::parse(text)?.times(factor)
    }

    #[test]
    fn decimals_are_scaled_without_rounding() {
        assert_eq!(times("2.000028356", 1_000_000_000_000), Some(2_000_028_356_000));
        assert_eq!(times("0.1", 10), Some(1));
        assert_eq!(times(".5", 2), Some(1));
        assert_eq!(times("5.", 2), Some(10));
        assert_eq!(times("1e-6", 1_000_000_000_000), Some(1_000_000));
        assert_eq!(times("18446744073709551615", 1), Some(u64::MAX));
        assert_eq!(times("18446744073709551616", 1), None);
        assert_eq!(times("1e60", 1), None);
        assert_eq!(times("0e60", 1), Some(0));
        assert_eq!(times("1e-60", 1), Some(0));
        assert_eq!(times("0.0000000000000000000000000000000000000000000001", 1), Some(0));
    }

    #[test]
    fn what_is_no_decimal_is_refused() {
        for text in [
            "",
            ".",
            "-1",
            "+1",
            "NaN",
            "inf",
            "0x10",
            "1.2.3",
            "1e",
            "e5",
            "1e99",
            "1e-2147483648",
            "1_000",
            "1 ",
            "١",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn fractions_are_exact_to_19_decimals() {
        let fraction = |text: &str| Decimal::parse(text).unwrap().fraction();
        assert_eq!(fraction("0.001"), Some((1, 1000)));
        assert_eq!(fraction("1e-3"), Some((1, 1000)));
        assert_eq!(fraction("1.0"), Some((10, 10)));
        assert_eq!(fraction("0"), Some((0, 1)));
        assert_eq!(fraction("1e-50"), Some((0, 1)));
        assert_eq!(fraction("1.001"), None);
        assert_eq!(fraction("1e30"), None);
    }

    #[test]
    fn parts_are_exact_to_18_digits() {
        let part = |text: &str, whole| Decimal::parse(text).unwrap().part_of(whole);
        assert_eq!(part("50", 100), Some(1 << 63));
        assert_eq!(part("0.5", 1), Some(1 << 63));
        assert_eq!(part("12.5", 100), Some(1 << 61));
        assert_eq!(part("0.30000000000000004", 1), Some(5_534_023_222_112_866_222));
        assert_eq!(part("100", 100), Some(u64::MAX));
        assert_eq!(part("1.000000", 1), Some(u64::MAX));
        assert_eq!(part("1.0000001", 1), None);
        assert_eq!(part("1e60", 1), None);
        let almost = part("0.9999999999999999999999", 1).unwrap();
        assert!((u64::MAX - 100..u64::MAX).contains(&almost), "{almost}");
    }
}
