//! Arbitrary bytes as every header: no panic, and what parses survives a round trip.
#![no_main]

#[path = "../../crates/wire/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::check_headers(bytes));
