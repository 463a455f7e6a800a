//! Formatting of numbers for people.

/// Returns a count in words: "920", "41 thousand", "1.2 billion".
pub fn amount(count: f64) -> String {
    let (divisor, unit) = match count {
        _ if count < 1e4 => return format!("{count:.0}"),
        _ if count < 1e6 => (1e3, "thousand"),
        _ if count < 1e9 => (1e6, "million"),
        _ if count < 1e12 => (1e9, "billion"),
        _ => (1e12, "trillion"),
    };
    format!("{} {unit}", two_digits(count / divisor))
}

/// Returns a size of memory or files: "920 B", "41 MB", "1.2 GB".
pub fn bytes(count: f64) -> String {
    let (divisor, unit) = match count {
        _ if count < 1e3 => return format!("{count:.0} B"),
        _ if count < 1e6 => (1e3, "KB"),
        _ if count < 1e9 => (1e6, "MB"),
        _ if count < 1e12 => (1e9, "GB"),
        _ => (1e12, "TB"),
    };
    format!("{} {unit}", two_digits(count / divisor))
}

/// Returns a wall time: "less than a second", "12 s", "3 min 20 s", "2 h 5 min", "3 days".
pub fn span(seconds: f64) -> String {
    if seconds < 1.0 {
        return "less than a second".to_owned();
    }
    let whole = seconds.round().min(1e15) as u64;
    match whole / 60 {
        0 => format!("{whole} s"),
        minutes @ 1..60 => format!("{minutes} min {} s", whole % 60),
        minutes @ 60..2_880 => format!("{} h {} min", minutes / 60, minutes % 60),
        minutes => format!("{} days", minutes / 1_440),
    }
}

/// Returns a value up to 999, with one decimal if it has one digit before the point.
fn two_digits(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_digits() {
        assert_eq!([920.0, 41_000.0, 1.23e9, 9.96e6].map(amount), ["920", "41 thousand", "1.2 billion", "10 million"]);
        assert_eq!([920.0, 41e6, 1.23e9].map(bytes), ["920 B", "41 MB", "1.2 GB"]);
        let spans = [0.2, 12.0, 200.0, 7_500.0, 300_000.0].map(span);
        assert_eq!(spans, ["less than a second", "12 s", "3 min 20 s", "2 h 5 min", "3 days"]);
    }
}
