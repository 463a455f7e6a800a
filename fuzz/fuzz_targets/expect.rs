//! Files of claims: no panics, errors name a place.
#![no_main]

#[path = "../../crates/results/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::read_claims(bytes));
