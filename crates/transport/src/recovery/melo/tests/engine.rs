//! Scripted exchanges with MELO's sender and receiver.

use selvedge_units::{Duration, Setting};

use crate::dialogue::Answer::{Ack, Nack, Silence};
use crate::dialogue::Say::{self, Done, Holes, Rests, Sends, Waits, Wake};
use crate::dialogue::{receiver, sender, with};
use crate::footprint::Scope;
use crate::recovery::Scheme;
use crate::recovery::melo::{MeloConfig, Resend};
use crate::{Fabric, SettingError};

fn melo() -> MeloConfig {
    MeloConfig {
        pool_bits: 64,
        block_bits: 8,
        reorder_buffer: Setting::Value(64),
        resend: Resend::Once,
        rto: Setting::Value(Duration::from_us(500)),
        bdp_cap: Setting::Off,
        on_chip: Setting::Off,
    }
}

/// Returns lines of a script with all packets at time 0.
fn packets(lines: &[(u64, crate::dialogue::Answer)]) -> alloc::vec::Vec<(u64, u64, crate::dialogue::Answer)> {
    lines.iter().map(|&(seq, answer)| (0, seq, answer)).collect()
}

#[test]
fn what_comes_in_order_goes_to_the_application() {
    let lines = [(0, Ack("accepted", 1)), (1, Ack("accepted", 2)), (1, Ack("duplicate", 2)), (2, Ack("accepted", 3))];
    receiver(melo(), &packets(&lines));
}

#[test]
fn a_hole_is_told_of_once() {
    let lines = [
        (0, Ack("accepted", 1)),
        (2, Nack("buffered", 1)),
        (3, Ack("buffered", 1)),
        (3, Ack("duplicate", 1)),
        (6, Nack("buffered", 1)),
        (1, Ack("released", 4)),
        (5, Ack("buffered", 4)),
        (4, Ack("released", 7)),
        (7, Ack("accepted", 8)),
    ];
    receiver(melo(), &packets(&lines));
}

#[test]
fn the_middle_of_the_list_is_out_of_reach() {
    let lines = [
        (1, Nack("buffered", 0)),
        (12, Nack("buffered", 0)),
        (30, Nack("buffered", 0)),
        // 7 lies in the first block, 29 in the last, 13 between them.
        (7, Ack("buffered", 0)),
        (29, Ack("buffered", 0)),
        (13, Silence("refused")),
        (12, Silence("refused")),
        (0, Ack("released", 2)),
    ];
    receiver(melo(), &packets(&lines));
}

#[test]
fn what_finds_no_bits_is_dropped() {
    let lines = [
        (0, Ack("accepted", 1)),
        // Eight blocks: packets 0 to 63.
        (63, Nack("buffered", 1)),
        (64, Silence("refused")),
        (1, Ack("released", 2)),
    ];
    receiver(melo(), &packets(&lines));
    // One of two blocks is free when packet 17 needs two more: none is taken, and packet 15 still fits.
    let two = MeloConfig { pool_bits: 16, ..melo() };
    let lines = [(1, Nack("buffered", 0)), (17, Silence("refused")), (15, Nack("buffered", 0))];
    receiver(two, &packets(&lines));
}

#[test]
fn what_has_no_slot_in_the_reorder_buffer_is_dropped() {
    let config = MeloConfig { reorder_buffer: Setting::Value(10), ..melo() };
    let lines = [(9, Nack("buffered", 0)), (10, Silence("refused")), (0, Ack("released", 1)), (10, Ack("buffered", 1))];
    receiver(config, &packets(&lines));
}

fn lead(packets: u64, lines: &[(u64, Say)]) {
    sender(with(melo()), packets, lines);
}

#[test]
fn only_holes_are_sent_again() {
    lead(
        8,
        &[
            (0, Sends("0 1 2 3 4 5 6 7")),
            (0, Waits(500)),
            (24, Holes(1, &[(1, 1)])),
            (24, Sends("1r")),
            (25, Holes(1, &[(4, 2), (1, 1)])),
            (25, Sends("4r 5r")),
            (48, Say::Ack(4)),
            (49, Say::Ack(8)),
            (49, Rests),
            (49, Done),
        ],
    );
}

#[test]
fn a_hole_that_is_named_again_is_sent_again() {
    let script = |resend, lines: &[(u64, Say)]| sender(with(MeloConfig { resend, ..melo() }), 12, lines);
    let before = [
        (0, Sends("0 1 2 3 4 5 6 7 8 9 10 11")),
        (24, Holes(1, &[(1, 2)])),
        (24, Sends("1r 2r")),
        // 2 was lost again: a later hole is reported, and that of 2 beside it.
        (40, Holes(2, &[(6, 1), (2, 1)])),
    ];
    script(Resend::Once, &[&before[..], &[(40, Sends("6r"))]].concat());
    let lines = [
        (40, Sends("2r 6r")),
        // The oldest hole is the fourth, and not named.
        (50, Holes(2, &[(10, 1), (8, 1), (6, 1)])),
        (50, Sends("6r 8r 10r")),
        (60, Say::Ack(7)),
        (61, Say::Ack(12)),
        (61, Done),
    ];
    script(Resend::AsNamed, &[&before[..], &lines].concat());
}

#[test]
fn what_arrives_before_it_is_sent_again_is_not_sent() {
    let lines = [
        (0, Sends("0 1 2 3 4 5 6 7 8 9")),
        (24, Holes(1, &[(1, 4)])),
        (24, Sends("1r 2r 3r 4r")),
        (25, Holes(1, &[(7, 1), (1, 4)])),
        (26, Say::Ack(3)),
        (26, Sends("3r 4r 7r")),
    ];
    sender(with(MeloConfig { resend: Resend::AsNamed, ..melo() }), 10, &lines);
}

#[test]
fn the_first_hole_may_be_long() {
    lead(
        9,
        &[(0, Sends("0 1 2 3 4 5 6 7 8")), (24, Holes(3, &[(3, 4)])), (24, Sends("3r 4r 5r 6r")), (48, Say::Ack(9))],
    );
}

#[test]
fn one_nack_makes_good_for_two_that_were_lost() {
    let holes = Holes(1, &[(6, 1), (4, 1), (1, 2)]);
    lead(9, &[(0, Sends("0 1 2 3 4 5 6 7 8")), (24, holes), (24, Sends("1r 2r 4r 6r")), (48, Say::Ack(9)), (48, Done)]);
}

#[test]
fn a_hole_beside_the_newest_three_is_known_by_what_is_expected() {
    let holes = Holes(1, &[(7, 1), (5, 1), (3, 1)]);
    lead(9, &[(0, Sends("0 1 2 3 4 5 6 7 8")), (24, holes), (24, Sends("1r 3r 5r 7r"))]);
}

#[test]
fn after_a_timeout_everything_is_sent_again() {
    lead(
        6,
        &[
            (0, Sends("0 1 2 3 4 5")),
            (24, Holes(1, &[(1, 1)])),
            (24, Sends("1r")),
            (524, Wake),
            (524, Sends("1r 2r 3r 4r 5r")),
            // The sender cannot know whether this NACK left before the timeout or after.
            (525, Holes(1, &[(3, 1), (1, 1)])),
            (525, Sends("1r 3r")),
            (548, Say::Ack(6)),
            (548, Done),
        ],
    );
}

#[test]
fn a_nack_that_cannot_be_remembered_means_going_back() {
    let config = MeloConfig { pool_bits: 8, ..melo() };
    let all = "0 1 2 3 4 5 6 7 8 9 10 11";
    let again = "2r 3r 4r 5r 6r 7r 8r 9r 10r 11r";
    sender(with(config), 12, &[(0, Sends(all)), (24, Holes(2, &[(9, 1), (2, 1)])), (24, Sends(again))]);
}

#[test]
fn settings_that_contradict_are_refused() {
    let wrong = |change: fn(&mut MeloConfig)| {
        let mut config = MeloConfig::default();
        change(&mut config);
        config.resolve(&Fabric::IRN_PAPER);
        config.check().expect_err("should be refused")
    };
    let key = |error: SettingError| error.key;
    assert_eq!(key(wrong(|config| config.pool_bits = 0)), "pool-bits");
    assert_eq!(key(wrong(|config| config.pool_bits = 1_020)), "pool-bits");
    assert_eq!(key(wrong(|config| config.pool_bits = 8 << 17)), "pool-bits");
    assert_eq!(key(wrong(|config| config.block_bits = 4)), "block-bits");
    assert_eq!(key(wrong(|config| (config.pool_bits, config.block_bits) = (1_032, 64))), "pool-bits");
    assert_eq!(key(wrong(|config| config.reorder_buffer = Setting::Off)), "reorder-buffer");
    assert_eq!(key(wrong(|config| config.reorder_buffer = Setting::Value(1 << 16))), "reorder-buffer");
    assert_eq!(key(wrong(|config| config.rto = Setting::Value(Duration::ZERO))), "rto");
    assert_eq!(key(wrong(|config| config.bdp_cap = Setting::Value(0))), "bdp-cap");
    assert_eq!(key(wrong(|config| config.on_chip = Setting::Value(0))), "on-chip");
}

#[test]
fn auto_is_what_the_paper_has() {
    let mut config = MeloConfig::default();
    config.resolve(&Fabric::IRN_PAPER);
    assert_eq!((config.pool_bits, config.reorder_buffer), (1024, Setting::Value(1024)));
    assert_eq!((config.rto, config.bdp_cap), (Setting::Value(Duration::from_us(320)), Setting::Off));
    let mut config = MeloConfig::default();
    config.resolve(&Fabric { pfc: true, ..Fabric::IRN_PAPER });
    assert_eq!(config.rto, Setting::Value(Duration::from_us(500)));
}

#[test]
fn larger_pools_take_wider_ids() {
    let shared = |pool_bits, block_bits| {
        let mut config = MeloConfig { pool_bits, block_bits, ..MeloConfig::default() };
        config.resolve(&Fabric::IRN_PAPER);
        config.check().expect("valid settings");
        config.footprint().bits(Scope::Shared) - 2 * crate::footprint::bits_of(u64::from(config.blocks()))
    };
    // "MELO requires 3Kb in total for bits pool and its management" (section 3.2.3), at sender and receiver.
    assert_eq!(shared(1_024, 8), 2 * 3 * 1_024);
    // 100 Gb/s and 200 us: 320 blocks, whose ids have nine bits.
    assert_eq!(shared(2_560, 8), 2 * 320 * (8 + 2 * 9));
    assert_eq!(shared(2_560, 64), 2 * 40 * (64 + 2 * 8));
}

#[test]
fn a_block_of_64_bits_has_a_smaller_middle() {
    let lines = [
        (1, Nack("buffered", 0)),
        (70, Nack("buffered", 0)),
        // All of 0 to 63 lie in the first block, 64 to 127 in the last.
        (13, Ack("buffered", 0)),
        (66, Ack("buffered", 0)),
        (0, Ack("released", 2)),
    ];
    let config = MeloConfig { pool_bits: 128, block_bits: 64, reorder_buffer: Setting::Value(128), ..melo() };
    receiver(config, &packets(&lines));
}
