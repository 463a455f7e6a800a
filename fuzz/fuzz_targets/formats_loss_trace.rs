//! The reader of loss traces: no panics, no more numbers than words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::loss_trace;

fuzz_target!(|bytes: &[u8]| {
    let Ok(numbers) = loss_trace::read(bytes, "fuzz") else { return };
    assert!(numbers.len() <= bytes.len().div_ceil(2));
});
