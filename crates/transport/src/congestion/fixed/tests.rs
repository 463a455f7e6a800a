use selvedge_units::{Bytes, Rate, Setting};

use super::FixedConfig;
use crate::SenderParams;
use crate::congestion::Tuning;
use crate::dialogue::Say::{Ack, Nack, Rests, Sends, Waits};
use crate::dialogue::{FRAME, sender, with};
use crate::recovery::irn::{IrnConfig, Timeouts};

fn limited_to(window: Setting<Bytes>, rate: Setting<Rate>) -> SenderParams {
    let irn = IrnConfig { timeouts: Timeouts::Off, bdp_cap: Setting::Off, ..IrnConfig::default() };
    SenderParams { congestion: FixedConfig { window, rate }.params().expect("valid settings").into(), ..with(irn) }
}

#[test]
fn a_window_counts_packets_that_have_not_arrived() {
    sender(
        limited_to(Setting::Value(FRAME * 3), Setting::Off),
        9,
        &[
            (0, Sends("0 1 2")),
            (24, Ack(1)),
            (24, Sends("3")),
            // Packet 2 has arrived, out of order, and makes room; packet 1 is replaced, not added.
            (25, Nack(1, 2)),
            (25, Sends("1r 4")),
            (25, Rests),
        ],
    );
}

#[test]
fn a_window_below_one_frame_lets_one_packet_go() {
    sender(
        limited_to(Setting::Value(Bytes::new(1)), Setting::Off),
        9,
        &[(0, Sends("0")), (24, Ack(1)), (24, Sends("1"))],
    );
}

#[test]
fn a_rate_spaces_packets_and_retransmissions() {
    // One microsecond per frame.
    sender(
        limited_to(Setting::Off, Setting::Value(Rate::from_gbps(8))),
        4,
        &[
            (0, Sends("0")),
            (0, Waits(1)),
            (1, Sends("1")),
            (2, Sends("2")),
            (3, Nack(0, 1)),
            (3, Sends("0r")),
            (3, Waits(4)),
            // The pause is not made up for.
            (9, Sends("3")),
            (9, Rests),
        ],
    );
}

#[test]
fn a_rate_of_zero_is_refused() {
    let stopped = FixedConfig { rate: Setting::Value(Rate::ZERO), ..FixedConfig::default() };
    assert_eq!(stopped.check().expect_err("sends nothing").key, "rate");
    assert_eq!(FixedConfig::default().check(), Ok(()));
}
