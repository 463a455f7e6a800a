//! The contexts' layout in `rtl/` matches the one that the engines pack.

use std::fs;
use std::path::Path;

use selvedge_transport::recovery::irn::context::{Bits, Layout, RECEIVER, SENDER, TIMER};
use selvedge_transport::recovery::irn::hls::Hls;
use selvedge_transport::replay::{Hardware, IrnReceiverReplay};
use selvedge_units::{Psn, Seq};

fn hex(bits: &Bits) -> String {
    let mut text = String::new();
    bits.write_hex(&mut text);
    text
}

#[test]
fn the_hardware_has_the_layout_that_the_engines_pack() {
    for layout in [RECEIVER, SENDER, TIMER] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../rtl/src/irn_{}.svh", layout.name));
        let committed = fs::read_to_string(&path).expect("the committed layout is readable");
        assert!(
            committed == layout.system_verilog(),
            "{} differs from the layout in context.rs: run `cargo xtask rtl context`",
            path.display()
        );
    }
}

#[test]
fn contexts_take_the_bits_that_the_paper_counts() {
    let bits = |layout: Layout| [128, 320].map(|bitmap| layout.bits(bitmap));
    assert_eq!(bits(RECEIVER), [48 + 2 * 128, 48 + 2 * 320]);
    assert_eq!(bits(SENDER), [99 + 128, 99 + 320]);
    assert_eq!(bits(TIMER), [99, 99]);
}

#[test]
fn contexts_are_packed_in_the_order_of_the_layout() {
    let hardware = Hardware { bitmap: 16, is_guarded: true, first: Psn::new(0xff_fffe), ..Hardware::default() };
    let mut receivers = IrnReceiverReplay::new(hardware);
    // SEND only, out of order: arrived, ends a message, completes a receive request.
    receivers.on_arrival(0, 4, 0);
    // WRITE only in order: a message.
    receivers.on_arrival(0, 10, 0xff_fffe);
    let mut bits = Bits::default();
    receivers.context(0).pack(16, &mut bits);
    assert_eq!(hex(&bits), ["ffffff", "000001", "0002", "0002"].concat());

    let mut hls = Hls::guarded(Psn::new(0xff_fffe), 16, 8, 3);
    for _ in 0..5 {
        hls.tx_free(Seq::new(u64::MAX));
    }
    hls.receive_ack_of(Psn::new(0xff_ffff), Psn::new(0xff_fffe), false);
    hls.receive_ack_of(Psn::new(0xff_ffff), Psn::new(1), true);
    let mut bits = Bits::default();
    hls.context(16).pack(16, &mut bits);
    // Fields: next, acked, retransmit, recover, sacks, flags. Of the 115 bits, the first digit holds three.
    let fields =
        (0x00_0003u128 << 91) | (0xff_ffff << 67) | (0xff_ffff << 43) | (0xff_fffe << 19) | (0b100 << 3) | 0b100;
    assert_eq!(hex(&bits), format!("{fields:029x}"));
    let mut timer = Bits::default();
    hls.context(16).pack_timer(true, 5, &mut timer);
    let fields = (0x00_0003u128 << 75) | (0xff_ffff << 51) | (0xff_ffff << 27) | (0b101 << 24) | 5;
    assert_eq!(hex(&timer), format!("{fields:025x}"));
}

#[test]
fn acknowledgements_from_far_away_are_ignored_and_old_pointers_come_along() {
    let mut hls = Hls::guarded(Psn::new(10), 128, 111, 3);
    hls.tx_free(Seq::new(u64::MAX));
    let before = hls.columns();
    for far in [10 + (1 << 22), 10u32.wrapping_sub((1 << 22) + 1), 10 + (1 << 23)] {
        hls.receive_ack_of(Psn::new(far), Psn::new(far), true);
        assert_eq!(hls.columns(), before, "{far}");
    }
    // The longest possible steps, twice: the pointers never lie more than 2^22 behind.
    for _ in 0..2 {
        let head = hls.columns().acked.to_psn(Psn::new(0));
        hls.receive_ack_of(head.plus((1 << 22) - 1), head, false);
    }
    let after = hls.columns();
    assert_eq!(after.acked - before.acked, 2 * ((1 << 22) - 1));
    assert_eq!(
        (after.retransmit, after.recover),
        (Seq::new(after.acked.index() - 1), Seq::new(after.acked.index() - 1))
    );
}

#[test]
fn a_sack_outside_the_bitmap_sets_nothing_and_seeks_nothing() {
    let mut hls = Hls::guarded(Psn::new(0), 128, 111, 3);
    for _ in 0..20 {
        hls.tx_free(Seq::new(u64::MAX));
    }
    // In recovery, the head is retransmitted.
    hls.receive_ack_of(Psn::new(5), Psn::new(9), false);
    hls.receive_ack_of(Psn::new(5), Psn::new(9), true);
    hls.tx_free(Seq::new(u64::MAX));
    hls.tx_free(Seq::new(u64::MAX));
    let (columns, sacks) = (hls.columns(), hls.sacks(128));
    assert!(columns.in_recovery && !columns.find_new_hole);
    for sack in [4, 0, 5 + 128, 0xff_ffff] {
        hls.receive_ack_of(Psn::new(5), Psn::new(sack), true);
        assert_eq!((hls.columns(), hls.sacks(128)), (columns, sacks.clone()), "{sack}");
    }
}
