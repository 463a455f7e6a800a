//! Tests of the order in which a NIC serves its queue pairs, of trains, and of unanswered data.

use alloc::vec::Vec;

use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::endpoint::Handled;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::{Cx, FeedbackConfig, RecoveryConfig, Scheme, SenderParams};
use selvedge_units::{Bytes, Duration, HostId, Instant, Psn, Setting};
use selvedge_wire::{Ack, AckKind, Packet, Repr};

use crate::{Carrier, FlowParams, Frames, Message, Nic, NicParams, RdmaParams};

pub(crate) fn params(qp_burst: u32) -> NicParams {
    let irn = IrnConfig { timeouts: Timeouts::Off, bdp_cap: Setting::Off, ..IrnConfig::default() };
    let recovery = RecoveryConfig::from(irn);
    NicParams {
        frames: Frames {
            mtu: 1_024,
            header: 62,
            ack_frame: 66,
            hole_nack_frame: 78,
            cnp_frame: 78,
            gap: 20,
            ack_class: 0,
            cnp_class: 0,
            classes: [0; 8],
            ecn_capable: false,
        },
        qp_burst,
        mac_poll: Duration::ZERO,
        polls_at_random: false,
        data_classes: 1,
        flows: queue_pairs(recovery),
        beside: None,
        eqds: None,
        eqif: None,
        verbs: None,
    }
}

/// Queue pairs with this recovery, without congestion control.
pub(crate) fn queue_pairs(recovery: RecoveryConfig) -> FlowParams {
    let recovery = recovery.params().expect("valid settings");
    FlowParams::Rdma(RdmaParams {
        sender: SenderParams { recovery, congestion: NoneConfig {}.into(), frame: Bytes::new(1_106) },
        receiver: recovery,
        feedback: FeedbackConfig::default(),
    })
}

/// Returns the queue pair of each packet, in order, when queue pair `n` has `packets[n]` packets to send.
fn served(qp_burst: u32, packets: &[u64]) -> Vec<u32> {
    let params = params(qp_burst);
    let mut cx = Cx::at(Instant::ZERO);
    let mut nic = Nic::new(HostId(0), &params);
    for (&packets, n) in packets.iter().zip(0..) {
        let size = Bytes::new(1_024) * packets;
        nic.open_sender(
            &cx,
            &params,
            Carrier::Transport,
            &Message { dst: HostId(1), size, entropy: 0, links: 2, class: 0, context: n },
        );
    }
    let mut packet = Packet::BLANK;
    core::iter::from_fn(|| nic.poll_transmit(&mut cx, &params, 0, &mut packet).then_some(packet.qp.0)).collect()
}

#[test]
fn queue_pairs_take_turns_packet_by_packet() {
    assert_eq!(served(1, &[3, 3, 3]), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_eq!(served(1, &[1, 4, 2]), [0, 1, 2, 1, 2, 1, 1]);
}

/// Returns the queue pair and the time of each packet when four queue pairs, which poll every 50 ns, send 100 packets
/// each.
fn polled(polls_at_random: bool) -> Vec<(u32, Instant)> {
    let params = NicParams { mac_poll: POLL, polls_at_random, ..params(1) };
    let mut nic = Nic::new(HostId(0), &params);
    let mut now = Instant::ZERO;
    for context in 0..4 {
        let size = Bytes::new(1_024) * 100;
        let flow = Message { dst: HostId(1), size, entropy: 0, links: 2, class: 0, context };
        nic.open_sender(&Cx::at(now), &params, Carrier::Transport, &flow);
    }
    let (mut packet, mut sent) = (Packet::BLANK, Vec::new());
    while sent.len() < 400 {
        if nic.poll_transmit(&mut Cx::at(now), &params, 0, &mut packet) {
            sent.push((packet.qp.0, now));
            now += SERIALISATION;
        } else {
            let next = nic.poll_timeout().expect("packets wait");
            assert!(next > now && next.since(now) <= POLL);
            now = next;
            nic.handle_timeout(&mut Cx::at(now), &params);
        }
    }
    sent
}

const POLL: Duration = Duration::from_ns(50);
const SERIALISATION: Duration = Duration::from_ps(221_200);

#[test]
fn queue_pairs_that_poll_send_when_they_ask_and_the_link_waits_for_them() {
    let sent = polled(false);
    for qp in 0..4 {
        let asked: Vec<_> = sent.iter().filter(|(from, _)| *from == qp).map(|(_, at)| at.as_ps()).collect();
        assert_eq!(asked.len(), 100);
        assert!(asked.windows(2).all(|two| (two[1] - two[0]).is_multiple_of(POLL.as_ps())), "each at its own times");
    }
    let pauses = sent.windows(2).map(|two| two[1].1.since(two[0].1).saturating_sub(SERIALISATION));
    assert!(pauses.max().is_some_and(|longest| !longest.is_zero()), "a free link waits");
}

#[test]
fn fixed_phases_starve_queue_pairs_and_random_ones_do_not() {
    // Counts the packets sent until each queue pair has sent 20.
    let longest = |random| {
        let sent = polled(random);
        let twentieth = |qp| sent.iter().enumerate().filter(|(_, (from, _))| *from == qp).nth(19).map(|(at, _)| at);
        (0..4).filter_map(twentieth).max()
    };
    assert!(longest(false) > Some(200), "{:?}", longest(false));
    assert!(longest(true) < Some(120), "{:?}", longest(true));
}

#[test]
fn a_turn_may_be_a_burst() {
    assert_eq!(served(3, &[4, 6]), [0, 0, 0, 1, 1, 1, 0, 1, 1, 1]);
    // A queue pair without further packets ends its turn; the rest of the burst is not transferred.
    assert_eq!(served(3, &[1, 5, 2]), [0, 1, 1, 1, 2, 2, 1, 1]);
}

/// Parameters of RoCE with PFC, without timeouts, and without acknowledgements unless `bdp_cap` limits the packets in
/// flight.
fn roce(bdp_cap: Setting<u32>) -> NicParams {
    let acks = if bdp_cap == Setting::Off { Acks::None } else { Acks::PerPacket };
    let recovery: RecoveryConfig =
        GoBackNConfig { acks, rto: Setting::Off, rto_low: Setting::Off, bdp_cap, ..Default::default() }.into();
    NicParams { flows: queue_pairs(recovery), ..params(1) }
}

fn message(packets: u64) -> Message {
    let size = Bytes::new(1_024) * packets;
    Message { dst: HostId(1), size, entropy: 7, links: 2, class: 0, context: 0 }
}

#[test]
fn a_train_is_what_would_be_sent_packet_by_packet() {
    let at = |n: u64| Instant::from_ps(1_000 * n);
    for (cap, packets, expected) in [(Setting::Off, 9, 7), (Setting::Value(5), 9, 4), (Setting::Off, 1, 0)] {
        let params = roce(cap);
        let mut cx = Cx::at(Instant::ZERO);
        let [mut one, mut other] = [(); 2].map(|()| {
            let mut nic = Nic::new(HostId(0), &params);
            nic.open_sender(&cx, &params, Carrier::Transport, &message(packets));
            assert!(nic.poll_transmit(&mut cx, &params, 0, &mut Packet::BLANK.clone()));
            nic
        });
        let train = one.train(&params, 0).map_or(Vec::new(), |train| {
            let packet = |n| {
                let mut packet = Packet::BLANK;
                train.write(n, at(n + 1), &mut packet);
                packet
            };
            (0..train.count).map(packet).collect()
        });
        assert_eq!(train.len(), expected, "all but the first, which has left, and the last of its message");
        let mut packet = Packet::BLANK;
        for (sent, n) in train.iter().zip(1..) {
            cx.now = at(n);
            assert!(other.poll_transmit(&mut cx, &params, 0, &mut packet));
            assert_eq!(*sent, packet);
        }
        one.end_train(&params, at(train.len() as u64), train.len() as u64);
        assert_eq!(one.stats(), other.stats());
        // Both NICs go on alike.
        loop {
            let mut mine = Packet::BLANK;
            let sends = one.poll_transmit(&mut cx, &params, 0, &mut mine);
            assert_eq!(
                (sends, one.is_ready()),
                (other.poll_transmit(&mut cx, &params, 0, &mut packet), other.is_ready())
            );
            if !sends {
                break;
            }
            assert_eq!(mine, packet);
        }
    }
}

#[test]
fn what_is_sent_again_is_no_train() {
    let params = roce(Setting::Off);
    let mut cx = Cx::at(Instant::ZERO);
    let mut nic = Nic::new(HostId(0), &params);
    nic.open_sender(&cx, &params, Carrier::Transport, &message(9));
    let mut packet = Packet::BLANK;
    (0..5).for_each(|_| assert!(nic.poll_transmit(&mut cx, &params, 0, &mut packet)));
    // The receiver lacks packet 2.
    let repr =
        Repr::Ack(Ack { kind: AckKind::Nack, ecn_echo: false, expected: Psn::new(2), sack: Psn::new(3), msn: 0 });
    let nack = Packet { src: HostId(1), dst: HostId(0), repr, ..packet };
    assert_eq!(nic.handle_packet(&mut cx, &params, &nack), Handled::Taken);
    for sent_again in 1..=3 {
        assert_eq!(nic.train(&params, 0).map(|train| train.count), Some(0));
        nic.end_train(&params, cx.now, 0);
        assert!(nic.poll_transmit(&mut cx, &params, 0, &mut packet));
        assert_eq!(nic.stats().retransmissions, sent_again);
    }
    assert_eq!(nic.train(&params, 0).map(|train| train.count), Some(3));
}

#[test]
fn whoever_shares_the_link_sends_no_train() {
    let params = roce(Setting::Off);
    let mut cx = Cx::at(Instant::ZERO);
    let mut nic = Nic::new(HostId(0), &params);
    assert!(nic.train(&params, 0).is_none());
    nic.open_sender(&cx, &params, Carrier::Transport, &message(5));
    assert!(nic.poll_transmit(&mut cx, &params, 0, &mut Packet::BLANK.clone()));
    assert_eq!(nic.train(&params, 0).map(|train| train.count), Some(3));
    assert!(nic.train(&params, 1).is_none(), "its class is paused");
    nic.open_sender(&cx, &params, Carrier::Transport, &message(5));
    assert!(nic.train(&params, 0).is_none());
}

#[test]
fn only_what_is_expected_and_finishes_nothing_is_taken_unanswered() {
    let params = roce(Setting::Off);
    assert!(params.takes_unanswered() && !self::params(1).takes_unanswered());
    let mut cx = Cx::at(Instant::ZERO);
    let mut sender = Nic::new(HostId(0), &params);
    let (qp, _) = sender.open_sender(&cx, &params, Carrier::Transport, &message(3));
    let mut receiver = Nic::new(HostId(1), &params);
    receiver.open_receiver(&params, Carrier::Transport, HostId(0), qp, Bytes::new(1_024) * 3, 0);
    let packets = [(); 3].map(|()| {
        let mut packet = Packet::BLANK;
        assert!(sender.poll_transmit(&mut cx, &params, 0, &mut packet));
        packet
    });
    let [first, second, last] = &packets;
    let mut incoming = receiver.incoming(first).expect("a receiver");
    assert!(!incoming.take(Instant::ZERO, second, 0), "out of order");
    assert!(incoming.take(Instant::ZERO, first, 0) && !incoming.take(Instant::ZERO, first, 0));
    assert!(!incoming.take(Instant::ZERO, &Packet { src: HostId(2), ..*second }, 0), "of another queue pair");
    assert!(incoming.take(Instant::ZERO, first, 1), "told by what lies before it");
    assert!(!incoming.take(Instant::ZERO, last, 0), "it completes the message");
    assert_eq!(incoming.end(), 2);
    assert!(matches!(receiver.handle_packet(&mut cx, &params, last), Handled::Completed(_)));
    assert_eq!((receiver.stats().data_received, receiver.stats().goodput), (3, 3 * 1_024));
}
