//! Text forms of quantities in scenario files: a number and a unit, "40Gbps", "2us", "240KB", "0.1%".

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use crate::{Bytes, Chance, Duration, Rate, Skew};

/// Error of a text that is not a quantity; suggests a valid one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl core::error::Error for UnitError {}

type Scale = &'static [(u64, &'static str)];

/// Alternative spellings of a scale's units, in lower case: "g", "gbit/s" and "gb/s" for "Gbps".
type OtherNames = &'static [(&'static str, &'static str)];

const OTHER_TIMES: OtherNames = &[
    ("p psec picosecond picoseconds", "ps"),
    ("n nsec nanosecond nanoseconds nanos", "ns"),
    ("u usec \u{b5}s \u{3bc}s microsecond microseconds micros", "us"),
    ("m msec millisecond milliseconds millis", "ms"),
    ("sec secs second seconds", "s"),
];
const OTHER_SIZES: OtherNames = &[
    ("byte bytes", "B"),
    ("k kbyte kbytes", "KB"),
    ("m mbyte mbytes", "MB"),
    ("g gbyte gbytes", "GB"),
    ("t tbyte tbytes", "TB"),
    ("ki", "KiB"),
    ("mi", "MiB"),
    ("gi", "GiB"),
];
const OTHER_RATES: OtherNames = &[
    ("b/s bit/s bits/s b", "bps"),
    ("k kb kb/s kbit kbits kbit/s kbits/s", "Kbps"),
    ("m mb mb/s mbit mbits mbit/s mbits/s", "Mbps"),
    ("g gb gb/s gbit gbits gbit/s gbits/s gbe", "Gbps"),
    ("t tb tb/s tbit tbits tbit/s tbits/s tbe", "Tbps"),
];

const OTHER_SKEWS: OtherNames = &[("parts-per-million", "ppm"), ("parts-per-billion", "ppb")];

const TIME: Scale = &[(1, "ps"), (1_000, "ns"), (1_000_000, "us"), (1_000_000_000, "ms"), (1_000_000_000_000, "s")];
const SIZE: Scale = &[
    (1, "B"),
    (1_000, "KB"),
    (1_000_000, "MB"),
    (1_000_000_000, "GB"),
    (1_000_000_000_000, "TB"),
    (1 << 10, "KiB"),
    (1 << 20, "MiB"),
    (1 << 30, "GiB"),
];
const RATE: Scale =
    &[(1, "bps"), (1_000, "Kbps"), (1_000_000, "Mbps"), (1_000_000_000, "Gbps"), (1_000_000_000_000, "Tbps")];

const SKEW: Scale = &[(1, "ppb"), (1_000, "ppm")];

/// Splits "40 Gbps" into "40" and "Gbps".
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.char_indices().find(|&(at, c)| !belongs_to_number(text, at, c)).map_or(text.len(), |(at, _)| at);
    (&text[..end], text[end..].trim_start())
}

/// Returns whether the character `c` at `at` continues the number at the start of `text`.
fn belongs_to_number(text: &str, at: usize, c: char) -> bool {
    match c {
        '0'..='9' | '.' | '_' => true,
        // "1e3us": an exponent, when a digit or sign follows it.
        'e' | 'E' => text[at + 1..].starts_with(|next: char| next.is_ascii_digit() || next == '-' || next == '+'),
        '-' | '+' => at == 0 || text[..at].ends_with(['e', 'E']),
        _ => false,
    }
}

/// Returns a decimal number times `factor`, rounded down, and whether the product was an integer; `None` if the number
/// is malformed, negative or too large.
fn scaled(number: &str, factor: u64) -> Option<(u64, bool)> {
    let number: String = number.chars().filter(|&c| c != '_').collect();
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok().filter(|e| (-29..=29).contains(e))?),
        None => (&*number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.strip_prefix('+').unwrap_or(whole);
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let digits = String::from(whole) + fraction;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut value = digits.parse::<u128>().ok()?.checked_mul(u128::from(factor))?;
    let power = exponent - fraction.len() as i32;
    let scale = 10u128.checked_pow(power.unsigned_abs())?;
    let mut is_whole = true;
    if power >= 0 {
        value = value.checked_mul(scale)?;
    } else {
        is_whole = value.is_multiple_of(scale);
        value /= scale;
    }
    Some((value.try_into().ok()?, is_whole))
}

/// Returns the probable intention of `text`, which has no unit of `scale`, if it can be guessed.
fn meant(text: &str, scale: Scale, others: OtherNames) -> Option<String> {
    let (number, unit) = split(text);
    // "1,000us" and "1,5us".
    if let Some(rest) = unit.strip_prefix(',') {
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        let mark = if digits == 3 { '_' } else { '.' };
        let text = alloc::format!("{number}{mark}{rest}");
        let (number, unit) = split(&text);
        let is_right = scale.iter().any(|(_, name)| *name == unit) && scaled(number, 1).is_some();
        return if is_right { Some(text) } else { meant(&text, scale, others) };
    }
    if unit.is_empty() || scaled(number, 1).is_none() {
        return None;
    }
    // Bytes per second.
    let in_bytes = unit.strip_suffix("Bps").or_else(|| unit.strip_suffix("B/s")).map(str::to_lowercase);
    let is_rate = scale[0].1 == "bps";
    if let Some(prefix) = in_bytes.filter(|_| is_rate) {
        let (factor, _) = scale.iter().find(|(_, name)| name.to_lowercase().strip_suffix("bps") == Some(&*prefix))?;
        let (bps, _) = scaled(number, factor.checked_mul(8)?)?;
        return Some(Rate::from_bps(bps).to_string());
    }
    let lower = unit.to_lowercase();
    let in_other_letters = || scale.iter().map(|&(_, name)| name).find(|name| name.to_lowercase() == lower);
    let name = in_other_letters().or_else(|| {
        others.iter().find(|(words, _)| words.split(' ').any(|word| word == lower)).map(|&(_, name)| name)
    })?;
    Some(alloc::format!("{number}{name}"))
}

/// Returns the value in the smallest unit of `scale`, and whether it is an integer there.
fn parse(text: &str, what: &str, example: &str, scale: Scale, others: OtherNames) -> Result<(u64, bool), UnitError> {
    let (number, unit) = split(text);
    let units = || scale.iter().map(|&(_, name)| name).collect::<alloc::vec::Vec<_>>().join(", ");
    let Some(&(factor, _)) = scale.iter().find(|(_, name)| *name == unit) else {
        let hint =
            meant(text, scale, others).map(|meant| alloc::format!(", did you mean \"{meant}\"?")).unwrap_or_default();
        let found = if unit.is_empty() { "no unit".to_string() } else { alloc::format!("unit \"{unit}\"") };
        return Err(UnitError(alloc::format!(
            "\"{text}\" is not {what}: {found}, expected one of {units} as in \"{example}\"{hint}",
            units = units()
        )));
    };
    scaled(number, factor).ok_or_else(|| {
        let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
        if is_plain {
            let most = u64::MAX / factor;
            return UnitError(alloc::format!("\"{text}\" is too large: expected at most {most}{unit}"));
        }
        UnitError(alloc::format!("\"{text}\" is not {what}: expected a number and a unit as in \"{example}\""))
    })
}

/// Writes `value` in the largest unit in which it is an integer, or as a fraction where that is shorter.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, scale: Scale) -> fmt::Result {
    if value == 0 {
        let (_, name) = scale[scale.len() - 1];
        return f.pad(&alloc::format!("0{name}"));
    }
    // Integers of up to five digits are preferred; otherwise at most three decimals, if exact.
    let fits = |decimals: u128, &&(factor, _): &&(u64, &str)| {
        value >= factor && (u128::from(value) * decimals).is_multiple_of(u128::from(factor))
    };
    let &(factor, name) = scale
        .iter()
        .find(|unit| fits(1, unit) && value / unit.0 < 100_000)
        .or_else(|| scale.iter().find(|unit| fits(1_000, unit)))
        .unwrap_or(&scale[scale.len() - 1]);
    let (whole, rest) = (value / factor, value % factor);
    let thousandths = (u128::from(rest) * 1_000 / u128::from(factor)) as u64;
    let text = if thousandths == 0 {
        alloc::format!("{whole}{name}")
    } else {
        let fraction = alloc::format!("{thousandths:03}");
        alloc::format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
    };
    f.pad(&text)
}

impl FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, "a time", "2us", TIME, OTHER_TIMES).map(|(ps, _)| Duration::from_ps(ps))
    }
}
impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse(text, "a size", "240KB", SIZE, OTHER_SIZES)? {
            (bytes, true) => Ok(Bytes::new(bytes)),
            (_, false) => Err(UnitError(alloc::format!("\"{text}\" has a fraction of a byte: give a whole number"))),
        }
    }
}
impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, "a rate", "40Gbps", RATE, OTHER_RATES).map(|(bps, _)| Rate::from_bps(bps))
    }
}
impl FromStr for Skew {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match parse(text, "a clock's skew", "100ppm", SKEW, OTHER_SKEWS)? {
            (ppb, true) => Ok(Self::from_ppb(ppb)),
            (_, false) => Err(UnitError(alloc::format!("\"{text}\" has a fraction of 1ppb: give a whole number"))),
        }
    }
}
impl FromStr for Chance {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        let (number, percent) = match trimmed.strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (trimmed, 1.0),
        };
        number.parse::<f64>().ok().and_then(|p| Chance::from_f64(p / percent)).ok_or_else(|| {
            UnitError(alloc::format!(
                "\"{text}\" is not a probability: expected a number from 0 to 1, or a percentage as in \"0.1%\"{}",
                perhaps_percent(number)
            ))
        })
    }
}

/// Returns a suggestion for a number above 1 given as a probability, or for one with a comma.
fn perhaps_percent(number: &str) -> String {
    let point = number.trim().replace(',', ".");
    let is = |most: f64| point.parse::<f64>().is_ok_and(|p| (0.0..=most).contains(&p));
    match (is(1.0), is(100.0)) {
        (true, _) if point != number => alloc::format!(", did you mean \"{point}\"?"),
        (false, true) => alloc::format!(", did you mean \"{point}%\"?"),
        _ => String::new(),
    }
}

#[cfg(feature = "config")]
mod config {
    use super::*;
    use alloc::borrow::Cow;
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::de::{Deserialize, Deserializer, Error, Visitor};
    use serde::ser::{Serialize, Serializer};

    macro_rules! as_text {
        ($type:ident, $what:literal, $example:literal, $pattern:literal) => {
            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    struct Text;
                    impl Visitor<'_> for Text {
                        type Value = $type;
                        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                            f.write_str(concat!($what, " in quotes, as in \"", $example, "\""))
                        }
                        fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                            text.parse().map_err(E::custom)
                        }
                    }
                    from.deserialize_str(Text)
                }
            }
            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                    to.collect_str(self)
                }
            }
            impl JsonSchema for $type {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($type).into()
                }
                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({
                        "type": "string",
                        "description": concat!($what, ", as in \"", $example, "\""),
                        "pattern": $pattern,
                    })
                }
            }
        };
    }
    as_text!(Duration, "a time", "2us", r"^[0-9._eE+-]+ *(ps|ns|us|ms|s)$");
    as_text!(Bytes, "a size", "240KB", r"^[0-9._eE+-]+ *(B|KB|MB|GB|TB|KiB|MiB|GiB)$");
    as_text!(Skew, "a clock's skew", "100ppm", r"^[0-9._eE+-]+ *(ppb|ppm)$");
    as_text!(Rate, "a rate", "40Gbps", r"^[0-9._eE+-]+ *(bps|Kbps|Mbps|Gbps|Tbps)$");

    impl<'de> Deserialize<'de> for Chance {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Either;
            impl Visitor<'_> for Either {
                type Value = Chance;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a probability: a number from 0 to 1, or a percentage as in \"0.1%\"")
                }
                fn visit_str<E: Error>(self, text: &str) -> Result<Chance, E> {
                    text.parse().map_err(E::custom)
                }
                fn visit_f64<E: Error>(self, p: f64) -> Result<Chance, E> {
                    Chance::from_f64(p).ok_or_else(|| {
                        let hint = perhaps_percent(&p.to_string());
                        E::custom(alloc::format!("{p} is not a probability: expected 0 to 1{hint}"))
                    })
                }
                fn visit_i64<E: Error>(self, p: i64) -> Result<Chance, E> {
                    self.visit_f64(p as f64)
                }
                fn visit_u64<E: Error>(self, p: u64) -> Result<Chance, E> {
                    self.visit_f64(p as f64)
                }
            }
            from.deserialize_any(Either)
        }
    }
    impl Serialize for Chance {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_f64(self.as_f64())
        }
    }
    impl JsonSchema for Chance {
        fn schema_name() -> Cow<'static, str> {
            "Chance".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "a probability: a number from 0 to 1, or a percentage as in \"0.1%\"",
                "anyOf": [
                    { "type": "number", "minimum": 0, "maximum": 1 },
                    { "type": "string", "pattern": r"^[0-9.eE+-]+ *%?$" },
                ],
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn quantities_read_as_written() {
        assert_eq!("2us".parse(), Ok(Duration::from_us(2)));
        assert_eq!("0.001ms".parse(), Ok(Duration::from_us(1)));
        assert_eq!("1e3 ns".parse(), Ok(Duration::from_us(1)));
        assert_eq!("240KB".parse(), Ok(Bytes::new(240_000)));
        assert_eq!("1KiB".parse(), Ok(Bytes::new(1024)));
        assert_eq!("40Gbps".parse(), Ok(Rate::from_gbps(40)));
        assert_eq!("1.6Tbps".parse(), Ok(Rate::from_gbps(1600)));
        assert_eq!("100ppm".parse(), Ok(Skew::from_ppm(100)));
        assert_eq!("0.5ppm".parse(), Ok(Skew::from_ppb(500)));
        assert_eq!("0.1%".parse(), Ok(Chance::from_f64(0.001).unwrap()));
    }

    #[test]
    fn quantities_print_as_they_read() {
        for text in ["2us", "320us", "216.2ns", "1.5ms", "7ps", "1234.567us"] {
            assert_eq!(format!("{}", text.parse::<Duration>().unwrap()).parse(), text.parse::<Duration>());
        }
        assert_eq!(format!("{}", Duration::from_ps(216_200)), "216.2ns");
        assert_eq!(format!("{}", Bytes::new(240_000)), "240KB");
        assert_eq!(format!("{}", Bytes::new(1024)), "1024B");
        assert_eq!(format!("{}", Rate::from_gbps(40)), "40Gbps");
        assert_eq!(format!("{}", Duration::ZERO), "0ps");
        assert_eq!(format!("{} {}", Skew::from_ppm(100), Skew::ZERO), "100ppm 0ppb");
    }

    #[test]
    fn a_wrong_unit_is_named_with_what_would_be_right() {
        let error = "40gbps".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"40Gbps\"?"), "{error}");
        fn remedy<T: FromStr<Err = UnitError> + fmt::Debug>(text: &str) -> String {
            let error = text.parse::<T>().unwrap_err().to_string();
            error.split_once("did you mean ").map_or(error.clone(), |(_, remedy)| remedy.into())
        }
        for (found, right) in [
            ("400G", "400Gbps"),
            ("400g", "400Gbps"),
            ("400 gbps", "400Gbps"),
            ("1.6T", "1.6Tbps"),
            ("100Gbit", "100Gbps"),
            ("100Gb/s", "100Gbps"),
            ("100gbit/s", "100Gbps"),
            ("12.5GB/s", "100Gbps"),
            ("1MBps", "8Mbps"),
            ("1,000Gbps", "1_000Gbps"),
            ("1,6tbps", "1.6Tbps"),
        ] {
            assert_eq!(remedy::<Rate>(found), format!("\"{right}\"?"), "{found}");
            assert!(right.parse::<Rate>().is_ok());
        }
        for (found, right) in [("5M", "5MB"), ("5 mb", "5MB"), ("64k", "64KB"), ("4Ki", "4KiB"), ("4kib", "4KiB")] {
            assert_eq!(remedy::<Bytes>(found), format!("\"{right}\"?"), "{found}");
        }
        assert_eq!(remedy::<Bytes>("9 bytes"), "\"9B\"?");
        for (found, right) in
            [("5usec", "5us"), ("5 \u{b5}s", "5us"), ("5US", "5us"), ("1 second", "1s"), ("2m", "2ms")]
        {
            assert_eq!(remedy::<Duration>(found), format!("\"{right}\"?"), "{found}");
        }
        for text in ["400 parsecs", "G", "x400G", "1.2.3G", "400"] {
            assert!(remedy::<Rate>(text).contains("is not a rate"), "{text}");
        }
        for (found, right) in [("5", "5%"), ("0,5", "0.5")] {
            assert_eq!(remedy::<Chance>(found), format!("\"{right}\"?"), "{found}");
        }
        let error = "40".parse::<Rate>().unwrap_err().to_string();
        assert!(error.contains("no unit") && error.contains("Gbps"), "{error}");
        let error = "1.5B".parse::<Bytes>().unwrap_err().to_string();
        assert!(error.contains("a fraction of a byte"), "{error}");
        assert_eq!("1.5KB".parse(), Ok(Bytes::new(1_500)));
        assert!("-2us".parse::<Duration>().is_err());
        assert!("us".parse::<Duration>().is_err());
        assert!("1.2.3us".parse::<Duration>().is_err());
        assert!("1e99us".parse::<Duration>().is_err());
        assert!("1e-2147483648us".parse::<Duration>().is_err());
        assert!("99999999999s".parse::<Duration>().is_err());
        let error = "100".parse::<Skew>().unwrap_err().to_string();
        assert!(error.contains("no unit") && error.contains("100ppm"), "{error}");
        assert!("-5ppm".parse::<Skew>().is_err());
        assert!("0.1ppb".parse::<Skew>().is_err());
        assert!("150%".parse::<Chance>().is_err());
        assert!("NaN".parse::<Chance>().is_err());
    }
}
