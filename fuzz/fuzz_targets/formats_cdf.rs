//! The reader of distributions: no panics, nothing unsorted, a mean below the largest size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::cdf;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(parsed) = cdf::read(bytes, "fuzz", cdf::SizeUnit::Auto) {
        let points = &parsed.value.points;
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
        assert_eq!(points[points.len() - 1].1, u64::MAX);
        assert!(parsed.value.mean() <= points[points.len() - 1].0);
    }
});
