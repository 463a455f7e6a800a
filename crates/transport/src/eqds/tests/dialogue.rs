//! Scripted dialogues between both ends of a tunnel.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::Flags;

use super::*;
use crate::eqds::{Memory, State};

#[test]
fn a_new_tunnel_sends_one_window_unasked_and_then_what_is_pulled() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 30]);
    assert_eq!(tunnel.send_all(), 10);
    assert!(tunnel.data.iter().all(|(data, _)| data.flags.any(Flags::SYN)), "until the receiver is known to know");
    let first = tunnel.data[0].0;
    assert_eq!(first.seq % 1024, 0, "the lowest ten bits begin at zero");
    assert_eq!(tunnel.data[9].0.pull_target, 10, "all of the window is asked for again");
    for _ in 0..10 {
        assert_eq!(tunnel.arrive(0, false), Disposition::Taken);
        tunnel.answer(0);
    }
    assert_eq!(tunnel.sender.state(), State::Established);
    assert_eq!(tunnel.wants(), Interest::Nothing, "acknowledgements carry no credit");
    assert!(tunnel.grant());
    let pull = tunnel.answer(0);
    assert!(pull.flags.any(Flags::PULL) && pull.pull == 1);
    let sent = tunnel.send().expect("credit for one");
    assert!(!sent.flags.any(Flags::SYN));
    assert_eq!(sent.pull_target, 11);
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..30));
    assert!(tunnel.sender.is_done());
}

#[test]
fn without_trimming_credit_is_requested_first() {
    let mut tunnel = Tunnel::new(EqdsParams { bursts: false, ..params() });
    tunnel.supply(vec![MTU; 3]);
    let request = tunnel.send().expect("a request");
    assert!(request.flags.any(Flags::RTS) && request.cargo.is_none());
    assert_eq!(request.pull_target, 3, "as much as there is");
    assert_eq!(tunnel.wants(), Interest::Nothing);
    assert_eq!(tunnel.arrive(0, false), Disposition::Empty);
    tunnel.settle();
    assert_eq!(tunnel.delivered, [0, 1, 2]);
}

#[test]
fn credit_is_bytes() {
    let mut tunnel = Tunnel::new(EqdsParams { bursts: false, ..params() });
    tunnel.supply(vec![100; 20]);
    assert_eq!(tunnel.send().expect("a request").pull_target, 2);
    tunnel.arrive(0, false);
    tunnel.answer(0);
    assert!(tunnel.grant());
    tunnel.answer(0);
    assert_eq!(tunnel.send_all(), 10, "one MTU of credit sends ten short packets");
}

#[test]
fn a_trimmed_packet_is_pulled_again_without_a_request() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 3]);
    tunnel.send_all();
    tunnel.arrive(0, false);
    assert_eq!(tunnel.arrive(0, true), Disposition::Empty);
    tunnel.arrive(0, false);
    let answers: Vec<_> = tunnel.control.iter().map(|control| (control.flags, control.number % 1024)).collect();
    let syn = Flags::SYN;
    assert_eq!(answers, [(Flags::ACK.with(syn), 1), (Flags::NACK.with(syn), 1), (Flags::SACK.with(syn), 2)]);
    assert_eq!(tunnel.receiver.owed(&tunnel.params), 1, "the receiver knows what the sender will want");
    for _ in 0..3 {
        tunnel.answer(0);
    }
    assert_eq!(tunnel.wants(), Interest::Nothing, "not for what is left of the first window");
    assert!(tunnel.grant());
    tunnel.answer(0);
    let again = tunnel.send().expect("a retransmission, as credit was pulled");
    assert!(again.retransmission && again.seq % 1024 == 1);
    assert_eq!(again.pull_target, 1, "which was promised");
    tunnel.settle();
    assert_eq!(tunnel.delivered, [0, 1, 2]);
}

#[test]
fn who_hears_of_a_trim_when_its_credit_is_spent_requests_more() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 11]);
    tunnel.send_all();
    tunnel.arrive(0, false);
    tunnel.arrive(0, true);
    let nack = tunnel.control.remove(1).expect("a NACK");
    // The pull that would pay for the retransmission is spent on the last new packet.
    assert!(tunnel.grant());
    while !tunnel.control.is_empty() {
        tunnel.answer(0);
    }
    assert_eq!(tunnel.send_all(), 1);
    tunnel.control.push_back(nack);
    tunnel.answer(0);
    assert!(tunnel.send().expect("a request without waiting").flags.any(Flags::RTS));
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..11));
}

#[test]
fn packets_that_come_one_by_one_are_sent_as_their_window_is_acknowledged() {
    let mut tunnel = Tunnel::new(params());
    for _ in 0..10 {
        tunnel.supply([MTU]);
        assert!(tunnel.send().expect("the first window").cargo.is_some());
    }
    for packet in 10..30 {
        tunnel.supply([MTU]);
        assert_eq!(tunnel.wants(), Interest::Nothing, "the window is full, and acknowledgements are under way");
        tunnel.arrive(0, false);
        tunnel.answer(0);
        assert_eq!(tunnel.send().expect("a place in the window").cargo, Some(packet));
        assert_eq!(tunnel.sender.in_flight(), 10_000);
        assert!(!tunnel.grant(), "nothing was asked for");
    }
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..30));
}

#[test]
fn while_the_receiver_is_busy_packets_that_come_one_by_one_are_asked_for() {
    let mut tunnel = Tunnel::new(params());
    for _ in 0..10 {
        tunnel.supply([MTU]);
        assert!(tunnel.send().is_some());
    }
    tunnel.supply([MTU]);
    tunnel.arrive(0, false);
    tunnel.control[0].busy = 5;
    tunnel.answer(0);
    let request = tunnel.send().expect("a request");
    assert!(request.flags.any(Flags::RTS));
    assert_eq!(request.pull_target, 1);
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..11));
}

#[test]
fn a_request_is_followed_by_another_when_twice_as_much_waits() {
    let mut tunnel = Tunnel::new(EqdsParams { bursts: false, ..params() });
    let mut targets = Vec::new();
    for _ in 0..40 {
        tunnel.supply([MTU]);
        targets.extend(tunnel.send().map(|transmit| transmit.pull_target));
    }
    assert_eq!(targets, [1, 2, 4, 8], "the window is ten");
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..40));
}

#[test]
fn what_was_asked_for_is_not_sent_unasked() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 15]);
    assert_eq!(tunnel.send_all(), 10);
    for _ in 0..10 {
        tunnel.arrive(0, false);
        tunnel.answer(0);
    }
    assert_eq!((tunnel.sender.in_flight(), tunnel.wants()), (0, Interest::Nothing), "five pulls will come");
}

#[test]
fn retransmissions_go_first() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 30]);
    tunnel.send_all();
    tunnel.arrive(3, true);
    tunnel.answer(0);
    assert!(tunnel.grant());
    tunnel.answer(0);
    let again = tunnel.send().expect("a packet");
    assert!(again.retransmission && again.cargo == Some(3));
}

#[test]
fn a_lost_packet_is_sent_again_after_the_timeout() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 12]);
    tunnel.send_all();
    tunnel.data.remove(4);
    tunnel.settle();
    assert_eq!(tunnel.delivered, [0, 1, 2, 3]);
    tunnel.wait();
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..12));
}

#[test]
fn a_lost_request_is_repeated() {
    let mut tunnel = Tunnel::new(EqdsParams { bursts: false, ..params() });
    tunnel.supply(vec![MTU; 3]);
    for _ in 0..4 {
        assert!(tunnel.send().expect("a request").flags.any(Flags::RTS));
        tunnel.data.clear();
        assert_eq!(tunnel.wants(), Interest::Nothing);
        while tunnel.wants() == Interest::Nothing {
            tunnel.wait();
        }
    }
    tunnel.settle();
    assert_eq!(tunnel.delivered, [0, 1, 2]);
}

#[test]
fn a_first_window_that_is_lost_is_asked_for_as_one() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 30]);
    for _ in 0..10 {
        assert!(tunnel.send().is_some());
        tunnel.now += Duration::from_ns(100);
    }
    tunnel.data.clear();
    // Each packet has a timeout of its own, but the network is full, and the receiver has not answered.
    let (epoch, rto) = (tunnel.sender.epoch(), tunnel.params.rto);
    let mut requests = 0;
    while tunnel.sender.poll_timeout() < Instant::ZERO + rto * 2 {
        tunnel.wait();
        while let Some(sent) = tunnel.send() {
            assert!(sent.flags.any(Flags::RTS), "there is no credit");
            requests += 1;
        }
    }
    assert_eq!((requests, tunnel.sender.epoch()), (1, epoch), "the same tunnel asks once");
    assert_eq!(tunnel.sender.demand(), 30 * u64::from(MTU));
    tunnel.settle();
    assert!(tunnel.sender.is_done());
}

#[test]
fn a_lost_pull_comes_with_the_next() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 30]);
    tunnel.send_all();
    (0..10).for_each(|_| assert_eq!(tunnel.arrive(0, false), Disposition::Taken));
    tunnel.control.clear();
    tunnel.grant();
    tunnel.control.clear();
    tunnel.grant();
    tunnel.answer(0);
    assert_eq!(tunnel.sender.credit(), 2 * MTU);
}

#[test]
fn while_the_receiver_is_busy_a_pause_ends_with_a_request() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 2]);
    tunnel.send_all();
    tunnel.arrive(0, false);
    tunnel.arrive(0, false);
    tunnel.control[1].busy = 50;
    tunnel.settle();
    assert!(tunnel.sender.is_done());
    tunnel.supply([MTU]);
    assert!(tunnel.send().expect("a request").flags.any(Flags::RTS));
    tunnel.settle();
    tunnel.now += Duration::from_us(51);
    tunnel.supply(vec![MTU; 12]);
    assert_eq!(tunnel.send_all(), 10, "later it may burst again");
}

#[test]
fn a_receiver_that_has_forgotten_answers_with_a_reset() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    assert_eq!(tunnel.sender.state(), State::Established);
    let old = tunnel.receiver.epoch();
    tunnel.receiver.close(&tunnel.params, |_| {});
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..8));
    assert!(tunnel.receiver.epoch() > old);
}

#[test]
fn a_sender_that_has_forgotten_is_told_the_epoch() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    let old = tunnel.receiver.epoch().expect("a tunnel");
    tunnel.sender.forget(&tunnel.params, Memory::Nothing);
    tunnel.queue.extend([MTU; 3]);
    tunnel.sender.supply(&tunnel.params, tunnel.now, 3 * u64::from(MTU), 5);
    assert!(tunnel.send().expect("a packet").seq < old, "a lesser epoch, by chance");
    assert_eq!(tunnel.arrive(0, false), Disposition::Stray);
    let told = tunnel.control[0];
    assert!(told.flags.any(Flags::SYN.with(Flags::ACK)) && told.number == old + 4);
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..7));
}

#[test]
fn a_late_packet_of_an_old_epoch_acknowledges_nothing_of_the_new_one() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 4]);
    tunnel.send_all();
    let (late, _) = tunnel.data.pop_front().expect("a packet");
    tunnel.data.clear();
    tunnel.control.clear();
    tunnel.sender.forget(&tunnel.params, Memory::Number);
    tunnel.supply(vec![MTU; 4]);
    tunnel.send_all();
    assert_eq!(tunnel.arrive(3, false), Disposition::Taken);
    tunnel.answer(0);
    tunnel.data.push_back((late, 0));
    tunnel.arrive(3, false);
    let refused = tunnel.answer(0);
    assert!(refused.flags.any(Flags::SYN));
    // The three packets before the arrived one are still in flight.
    assert_eq!(tunnel.sender.in_flight(), 3 * u64::from(MTU));
    tunnel.data.clear();
    tunnel.wait();
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(4..8));
}

#[test]
fn what_waits_for_a_lost_epoch_is_handed_on_when_the_next_begins() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 4]);
    tunnel.send_all();
    tunnel.data.remove(1);
    tunnel.settle();
    assert_eq!(tunnel.delivered, [0]);
    tunnel.sender.forget(&tunnel.params, Memory::Number);
    tunnel.supply([MTU]);
    tunnel.settle();
    assert_eq!(tunnel.delivered, [0, 2, 3, 4]);
}

#[test]
fn unordered_packets_do_not_wait() {
    let mut tunnel = Tunnel::new(EqdsParams { ordered: false, ..params() });
    tunnel.supply(vec![MTU; 4]);
    tunnel.send_all();
    tunnel.arrive(2, false);
    assert_eq!(tunnel.delivered, [2]);
    tunnel.settle();
    assert_eq!(tunnel.delivered, [2, 0, 1, 3]);
}

#[test]
fn acknowledgements_may_be_saved() {
    let mut tunnel = Tunnel::new(EqdsParams { ack_after: 3 * MTU, ..params() });
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    tunnel.supply(vec![MTU; 8]);
    tunnel.send_all();
    (0..8).for_each(|_| assert_eq!(tunnel.arrive(0, false), Disposition::Taken));
    assert_eq!(tunnel.control.len(), 2, "one after more than three packets, one that was asked for");
    tunnel.settle();
    assert!(tunnel.sender.is_done());
}

#[test]
fn who_has_no_room_for_more_asks_for_an_acknowledgement() {
    let mut tunnel = Tunnel::new(EqdsParams { ack_after: 100 * MTU, reorder: 4, ..params() });
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    tunnel.supply(vec![MTU; 8]);
    for _ in 0..2 {
        tunnel.send_all();
        assert_eq!(tunnel.data.len(), 4);
        (0..4).for_each(|_| assert_eq!(tunnel.arrive(0, false), Disposition::Taken));
        assert_eq!(tunnel.control.len(), 1, "the fourth has asked");
        tunnel.answer(0);
    }
    assert!(tunnel.sender.is_done());
}

#[test]
fn a_header_of_what_has_arrived_is_no_duplicate() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 3]);
    tunnel.send_all();
    let copies = tunnel.data.clone();
    // One packet in order, one beyond a gap.
    assert_eq!([tunnel.arrive(0, false), tunnel.arrive(1, false)], [Disposition::Taken; 2]);
    tunnel.data = copies.clone();
    assert_eq!([tunnel.arrive(0, true), tunnel.arrive(1, true)], [Disposition::Empty; 2]);
    tunnel.data = copies;
    assert_eq!([tunnel.arrive(0, false), tunnel.arrive(1, false)], [Disposition::Duplicate; 2]);
}

#[test]
fn a_dead_path_leads_to_a_new_epoch() {
    let mut tunnel = Tunnel::new(EqdsParams { max_timeouts: 3, ..params() });
    tunnel.supply(vec![MTU; 2]);
    tunnel.settle();
    let old = tunnel.receiver.epoch();
    tunnel.supply(vec![MTU; 2]);
    while tunnel.sender.state() == State::Established {
        tunnel.send_all();
        tunnel.data.clear();
        tunnel.wait();
    }
    tunnel.settle();
    assert_eq!(tunnel.delivered, [0, 1, 2, 3]);
    assert!(tunnel.receiver.epoch() > old);
}

#[test]
fn numbers_wrap() {
    for bits in [16, 32] {
        let mut tunnel = Tunnel::new(EqdsParams { numbers: Numbers::new(bits, 10), ..params() });
        // The highest epoch.
        tunnel.queue.extend(vec![MTU; 3_000]);
        tunnel.sender.supply(&tunnel.params, tunnel.now, 3_000 * u64::from(MTU), u32::MAX);
        tunnel.settle();
        assert_eq!(tunnel.delivered, Vec::from_iter(0..3_000));
    }
}

#[test]
fn one_pull_grants_several_quanta() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 30]);
    tunnel.send_all();
    (0..10).for_each(|_| assert_eq!(tunnel.arrive(0, false), Disposition::Taken));
    tunnel.control.clear();
    assert_eq!((tunnel.grant_up_to(4), tunnel.grant_up_to(3)), (4, 3));
    // The first of both is lost; pull numbers are cumulative.
    tunnel.control.pop_front();
    let pull = tunnel.answer(0);
    assert!(pull.flags.any(Flags::PULL) && pull.pull == 7);
    assert_eq!((tunnel.sender.credit(), tunnel.receiver.owed(&tunnel.params)), (7 * MTU, 3));
    assert_eq!(tunnel.send_all(), 7);
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..30));
}
