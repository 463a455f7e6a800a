//! An RNIC and its connection manager whose other side says anything at any time.
#![no_main]

#[path = "../../crates/nic/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::torment_rnic(bytes));
