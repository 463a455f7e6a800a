//! Static rates: conversions between codes, multiples of 2.5 Gb/s, and megabits per second.

use std::ffi::c_int;

/// Known rates: code in `enum ibv_rate`, multiple of 2.5 Gb/s, megabits per second.
const RATES: [(c_int, c_int, c_int); 22] = [
    (2, 1, 2_500),
    (5, 2, 5_000),
    (3, 4, 10_000),
    (6, 8, 20_000),
    (4, 12, 30_000),
    (7, 16, 40_000),
    (8, 24, 60_000),
    (9, 32, 80_000),
    (10, 48, 120_000),
    (11, 5, 14_062),
    (12, 22, 56_250),
    (13, 45, 112_500),
    (14, 67, 168_750),
    (15, 10, 25_781),
    (16, 40, 103_125),
    (17, 80, 206_250),
    (18, 120, 309_375),
    (19, 11, 28_125),
    (20, 20, 53_125),
    (21, 160, 425_000),
    (22, 240, 637_500),
    (23, 320, 850_000),
];
/// `IBV_RATE_MAX`: no limit.
const MAX: c_int = 0;

#[unsafe(no_mangle)]
pub extern "C" fn ibv_rate_to_mult(rate: c_int) -> c_int {
    RATES.iter().find(|(code, _, _)| *code == rate).map_or(-1, |(_, multiple, _)| *multiple)
}
#[unsafe(no_mangle)]
pub extern "C" fn mult_to_ibv_rate(multiple: c_int) -> c_int {
    RATES.iter().find(|(_, known, _)| *known == multiple).map_or(MAX, |(code, _, _)| *code)
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_rate_to_mbps(rate: c_int) -> c_int {
    RATES.iter().find(|(code, _, _)| *code == rate).map_or(-1, |(_, _, mbps)| *mbps)
}
#[unsafe(no_mangle)]
pub extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> c_int {
    RATES.iter().find(|(_, _, known)| *known == mbps).map_or(MAX, |(code, _, _)| *code)
}
