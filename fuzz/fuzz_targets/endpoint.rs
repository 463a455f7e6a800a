//! A host's EQDS tunnels, one of whose peers says anything at any time.
#![no_main]

#[path = "../../crates/tunnel/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::torment_endpoint(bytes));
