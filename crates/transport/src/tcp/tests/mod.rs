//! Scripted dialogues with a connection: its inputs and its expected outputs, each with a time.
//!
//! Segments carry 1,000 octets and are named by their number, from 0; sequence numbers wrap early.

mod congestion;
mod handshake;
mod rack;
mod receiver;
mod sender;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_units::{Bytes, Duration, Instant, Octet, Setting, TcpSeq};
use selvedge_wire::tcp::{Flags, Segment};

use super::{Connection, Ecn, LossDetection, Params, TcpConfig, Transmit};
use crate::{Cx, Fabric};

const MSS: u64 = 1_000;
const OURS: TcpSeq = TcpSeq::new(u32::MAX - 2_500);
const THEIRS: TcpSeq = TcpSeq::new(u32::MAX - 700);

/// Returns plain settings: RFC 5681 and 6675 alone, no time stamps, every segment acknowledged, RTO 1 ms.
fn plain() -> TcpConfig {
    TcpConfig {
        loss_detection: LossDetection::Dupacks,
        prr: false,
        hystart: Setting::Off,
        mss: Setting::Value(Bytes::new(MSS)),
        initial_window: Setting::Value(4),
        min_rto: Setting::Value(Duration::from_us(1_000)),
        timestamps: false,
        delayed_ack: Setting::Off,
        receive_buffer: Setting::Value(Bytes::new(65_535)),
        ..TcpConfig::default()
    }
}

fn resolved(mut config: TcpConfig) -> TcpConfig {
    let fabric = Fabric { frame: Bytes::new(1_058), ..Fabric::IRN_PAPER };
    config.resolve(&fabric, Bytes::new(MSS));
    config
}

fn params(config: TcpConfig) -> Params {
    resolved(config).params().expect("a valid configuration")
}

#[test]
fn nothing_says_auto_once_it_is_resolved() {
    let config = resolved(TcpConfig { initial_ssthresh: Setting::Auto, ..TcpConfig::default() });
    assert_eq!((config.initial_ssthresh, config.slow_start_limit), (Setting::Off, Setting::Value(8)));
    let config = resolved(TcpConfig { hystart: Setting::Off, ..TcpConfig::default() });
    assert_eq!(config.slow_start_limit, Setting::Value(1));
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

/// One line of a sender's dialogue.
#[derive(Clone, Copy, Debug)]
enum Say {
    /// The sender sends these segments and then no more: "3 4r" is segment 3, and segment 4 again; "5s" is a short one,
    /// "F" a FIN.
    Sends(&'static str),
    /// Everything before this segment is acknowledged.
    Ack(u64),
    /// Everything before this segment is acknowledged, and these ranges are SACKed, newest first.
    Sack(u64, &'static [(u64, u64)]),
    /// A window is announced, in octets from this segment on.
    Window(u64, u16),
    /// The sender's timers may fire.
    Wake,
    /// The sender's next timeout is at this time, in microseconds.
    Waits(u64),
    /// The sender has no timeout.
    Rests,
    /// The sender's congestion window, in octets.
    Cwnd(u64),
    /// The application supplies more octets.
    Supply(u64),
}
use Say::*;

fn octet(segment: u64) -> Octet {
    Octet::FIRST + segment * MSS
}

/// Runs a dialogue with a sender of `segments` full segments, each line at its time.
fn sender(config: TcpConfig, segments: u64, lines: &[(u64, Say)]) -> Connection {
    let mut end = Connection::established(&params(config), OURS, THEIRS);
    end.supply(segments * MSS);
    let seq = |segment: u64| octet(segment).to_seq(OURS);
    for (number, &(us, line)) in lines.iter().enumerate() {
        let mut cx = Cx::at(at(us));
        let place = format!("line {number}, t+{us}us: {line:?}");
        let mut hear = |ack, window, sacks: &[(u64, u64)]| {
            let sacks = sacks.iter().map(|&(from, to)| (seq(from), seq(to))).collect();
            let segment = Segment {
                seq: Octet::FIRST.to_seq(THEIRS),
                ack: seq(ack),
                flags: Flags::ACK,
                window,
                sacks,
                ..Segment::default()
            };
            end.handle_segment(&mut cx, &segment, false);
        };
        match line {
            Ack(ack) => hear(ack, u16::MAX, &[]),
            Sack(ack, sacks) => hear(ack, u16::MAX, sacks),
            Window(ack, window) => hear(ack, window, &[]),
            Sends(expected) => assert_eq!(sent(&mut end, &mut cx), expected, "{place}"),
            Wake => end.handle_timeout(&mut cx),
            Waits(until) => assert_eq!(end.poll_timeout(), Some(at(until)), "{place}"),
            Rests => assert_eq!(end.poll_timeout(), None, "{place}"),
            Cwnd(expected) => assert_eq!(end.stats().cwnd, expected, "{place}"),
            Supply(octets) => end.supply(octets),
        }
    }
    end
}

/// Returns all segments that a sender sends now.
fn sent(end: &mut Connection, cx: &mut Cx<'_>) -> String {
    let names: Vec<String> = core::iter::from_fn(|| end.poll_transmit(cx)).map(|sent| name(&sent)).collect();
    names.join(" ")
}

fn name(sent: &Transmit) -> String {
    let start = sent.segment.seq.near(Octet::FIRST, OURS).expect("behind the SYN") - Octet::FIRST;
    let place = if start.is_multiple_of(MSS) { format!("{}", start / MSS) } else { format!("@{start}") };
    let short = if u64::from(sent.segment.payload) < MSS { "s" } else { "" };
    let again = if sent.is_again { "r" } else { "" };
    let fin = if sent.segment.flags.contains(Flags::FIN) { "F" } else { "" };
    format!("{place}{short}{again}{fin}")
}
