//! Arbitrary bytes as a tunnel's packet of version 1, and as a datagram around one: no panic, and the fields of a
//! packet that parses survive a round trip.
#![no_main]

#[allow(dead_code, reason = "other headers have their own target")]
#[path = "../../crates/wire/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| support::check_tunnel_packets(bytes));
