//! Ends of tunnels: idle ones, those whose peer tells, and those whose peer does not answer.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Duration, Instant};
use selvedge_wire::eqds::Flags;

use super::*;
use crate::eqds::{Event, Life, Loss, Memory, Source, State};

const US: Duration = Duration::from_us(1);

fn idle_after(us: u64) -> EqdsParams {
    EqdsParams { life: Life { idle: Some(US * us), ..Life::FOR_EVER }, ..params() }
}

fn times_out(tunnel: &mut Tunnel) -> Option<Event> {
    tunnel.now = tunnel.now.max(tunnel.sender.poll_timeout());
    tunnel.sender.handle_timeout(&tunnel.params, tunnel.now);
    tunnel.sender.poll_event()
}

/// Delivers the message that the sender's tunnel has ended.
fn tell(tunnel: &mut Tunnel) -> Disposition {
    let end = tunnel.sender.close(&tunnel.params).expect("an open tunnel");
    assert!(end.cargo.is_none() && end.flags.any(Flags::RST));
    let (seq, pull_target, flags) = (end.seq, end.pull_target, end.flags);
    let data = Data { seq, pull_target, flags, payload: 0, ..blank() };
    tunnel.data.push_back((data, 0));
    tunnel.arrive(tunnel.data.len() - 1, false)
}

fn blank() -> Data {
    let flags = Flags::NONE;
    Data {
        seq: 0,
        pull_target: 0,
        index: 0,
        payload: 0,
        flags,
        eqif: 0,
        class: 0,
        retransmission: false,
        trimmed: false,
    }
}

#[test]
fn an_idle_tunnel_is_closed_at_both_ends_and_opened_again() {
    let mut tunnel = Tunnel::new(idle_after(1_000));
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    let (began, old) = (tunnel.now, tunnel.receiver.epoch());
    assert_eq!(times_out(&mut tunnel), None, "the timeout of the packets comes first");
    assert_eq!(times_out(&mut tunnel), Some(Event::Idle));
    assert_eq!(tunnel.now, began + US * 1_000);
    assert_eq!(tell(&mut tunnel), Disposition::Closed);
    assert_eq!((tunnel.receiver.epoch(), tunnel.control.len()), (None, 0), "the end of a tunnel is not answered");
    assert_eq!(tunnel.sender.poll_timeout(), Instant::NEVER);
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..8));
    assert!(tunnel.receiver.epoch() > old, "a greater epoch");
}

#[test]
fn a_packet_restarts_the_pause_and_has_its_own_timeout() {
    let mut tunnel = Tunnel::new(idle_after(1_000));
    tunnel.supply([MTU]);
    tunnel.settle();
    assert_eq!(times_out(&mut tunnel), None);
    tunnel.now += US * 300;
    tunnel.supply([MTU]);
    assert!(tunnel.send().is_some());
    assert_eq!(tunnel.sender.poll_timeout(), tunnel.now + tunnel.params.rto, "not that of the pause");
    tunnel.settle();
    let last = tunnel.now;
    while times_out(&mut tunnel).is_none() {}
    assert_eq!(tunnel.now, last + US * 1_000);
}

#[test]
fn a_receiver_closes_an_idle_tunnel_but_not_one_that_it_owes() {
    let mut tunnel = Tunnel::new(idle_after(1_000));
    tunnel.supply(vec![MTU; 12]);
    tunnel.send_all();
    (0..10).for_each(|_| assert_eq!(tunnel.arrive(0, false), Disposition::Taken));
    let due = tunnel.receiver.idle_due(&tunnel.params);
    assert_eq!(due, tunnel.now + US * 1_000);
    assert!(!tunnel.receiver.is_idle(&tunnel.params, due), "the sender waits for credit");
    assert!(tunnel.receiver.idle_due(&tunnel.params) > due, "which is looked at later again");
    tunnel.settle();
    let due = tunnel.receiver.idle_due(&tunnel.params);
    assert!(tunnel.receiver.is_idle(&tunnel.params, due));
    tunnel.control.extend(tunnel.receiver.close(&tunnel.params, |_| {}));
    tunnel.answer(0);
    assert!(matches!(tunnel.sender.state(), State::Closed(Some(_))), "the sender had nothing to send");
}

#[test]
fn the_end_of_another_epoch_closes_nothing() {
    let mut tunnel = Tunnel::new(params());
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    let old = tunnel.sender.close(&tunnel.params).expect("an open tunnel");
    tunnel.supply(vec![MTU; 4]);
    tunnel.settle();
    let epoch = tunnel.receiver.epoch();
    let data = Data { seq: old.seq, flags: old.flags, ..blank() };
    let late = tunnel.receiver.handle_data(&tunnel.params, tunnel.now, &data, false, 0, |_| {});
    assert_eq!((late, tunnel.receiver.epoch()), ((Disposition::Stray, None), epoch));
}

#[test]
fn a_sender_without_memory_finds_the_epoch_of_a_receiver_that_was_not_told() {
    for random in 0..40 {
        let life = Life { memory: Memory::Nothing, ..Life::FOR_EVER };
        let mut tunnel = Tunnel::new(EqdsParams { life, ..params() });
        for round in 1..6 {
            tunnel.queue.extend([MTU; 3]);
            let epoch = random * 7_919 + round;
            tunnel.sender.supply(&tunnel.params, tunnel.now, 3 * u64::from(MTU), epoch);
            tunnel.settle();
            assert!(tunnel.sender.is_done());
            tunnel.sender.close(&tunnel.params);
        }
        assert_eq!(tunnel.delivered, Vec::from_iter(0..15));
    }
}

#[test]
fn a_host_that_does_not_answer_is_given_up_after_the_set_time() {
    let limit = US * 50_000;
    let life = Life { unreachable: Some(limit), ..Life::FOR_EVER };
    let mut tunnel = Tunnel::new(EqdsParams { life, max_timeouts: 3, ..params() });
    tunnel.supply(vec![MTU; 20]);
    let (mut event, mut requests, mut epochs) = (None, Vec::new(), Vec::new());
    while event.is_none() {
        while let Some(sent) = tunnel.send() {
            if sent.cargo.is_none() {
                requests.push(tunnel.now);
            }
        }
        epochs.push(tunnel.sender.epoch());
        tunnel.data.clear();
        event = times_out(&mut tunnel);
    }
    epochs.dedup();
    assert_eq!(event, Some(Event::PeerUnreachable));
    assert!(
        (limit..limit + US * 6_600).contains(&tunnel.now.since(Instant::ZERO)),
        "{}",
        tunnel.now.since(Instant::ZERO)
    );
    assert!(epochs.len() > 2, "new epochs are tried, too");
    let gaps: Vec<_> = requests.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.is_sorted() && gaps.last() >= Some(&(US * 6_400)), "the back-off goes on over epochs: {gaps:?}");
    assert_eq!(tunnel.sender.poll_timeout(), Instant::NEVER, "and then nothing more is tried");
    assert_eq!(tunnel.wants(), Interest::Nothing);
    // The owner may try again, and the other host may be back.
    tunnel.sender.retry(&tunnel.params, tunnel.now);
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..20));
}

#[test]
fn a_tunnel_that_is_set_up_again_after_timeouts_requests_first() {
    let mut tunnel = Tunnel::new(EqdsParams { max_timeouts: 2, ..params() });
    tunnel.supply(vec![MTU; 20]);
    let old = tunnel.sender.epoch();
    while tunnel.sender.epoch() == old {
        tunnel.send_all();
        tunnel.data.clear();
        tunnel.wait();
    }
    assert_eq!((tunnel.sender.credit(), tunnel.wants()), (0, Interest::Request), "no window into a dead network");
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..20));
}

#[test]
fn a_reset_while_the_receiver_is_busy_is_followed_by_a_request() {
    for (busy, expected) in [(0, Interest::Send), (500, Interest::Request)] {
        let mut tunnel = Tunnel::new(params());
        tunnel.supply(vec![MTU; 2]);
        tunnel.settle();
        tunnel.supply(vec![MTU; 3]);
        tunnel.send_all();
        assert_eq!(tunnel.arrive(0, false), Disposition::Taken);
        tunnel.control[0].busy = busy;
        tunnel.answer(0);
        tunnel.receiver.close(&tunnel.params, |_| {});
        assert_eq!(tunnel.arrive(0, false), Disposition::Stray);
        tunnel.answer(0);
        assert_eq!(tunnel.wants(), expected);
        tunnel.settle();
        assert!(tunnel.sender.is_done());
    }
}

#[test]
fn a_busy_time_is_believed_up_to_its_ceiling() {
    let mut tunnel = Tunnel::new(EqdsParams { busy_ceiling: US * 70, ..params() });
    tunnel.supply([MTU]);
    tunnel.send_all();
    tunnel.arrive(0, false);
    tunnel.control[0].busy = u32::MAX;
    tunnel.answer(0);
    assert_eq!(tunnel.sender.busy_until(), tunnel.now + US * 70);
}

#[test]
fn a_measured_window_is_what_the_round_trip_needs() {
    let window = 400 * MTU;
    let measured = EqdsParams { bounds: Source::Measured, window, reorder: 512, ..params() };
    let mut tunnel = Tunnel::new(measured);
    // One quantum per microsecond, 30 us there and back: about 31 packets.
    for _ in 0..100 {
        tunnel.supply([MTU]);
        tunnel.send_all();
        tunnel.now += US * 30;
        while !tunnel.data.is_empty() {
            tunnel.arrive(0, false);
        }
        while !tunnel.control.is_empty() {
            tunnel.answer(0);
        }
    }
    tunnel.supply(vec![MTU; 1_000]);
    let sent = tunnel.send_all();
    let total = tunnel.sender.credit() + tunnel.sender.awaited(&tunnel.params) * MTU;
    assert!((30..=34).contains(&(total / MTU)), "{total} bytes are asked for, {sent} packets sent");
    tunnel.settle();
    assert_eq!(tunnel.delivered.len(), 1_100);
    let loss = Loss { measured: Some((US, US * 1_000)), ..Loss::BY_TIMEOUT };
    assert!(EqdsParams { loss, ..params() }.measures() && !params().measures());
}

#[test]
fn a_measured_reorder_queue_waits_as_long_as_holes_take_to_fill() {
    let settings =
        EqdsParams { bounds: Source::Measured, rto: US * 20, reorder_timeout: Some(US * 10_000), ..params() };
    let mut tunnel = Tunnel::new(settings);
    for _ in 0..60 {
        tunnel.supply(vec![MTU; 2]);
        tunnel.send_all();
        // The second packet arrives 10 us before the first.
        tunnel.arrive(1, false);
        tunnel.now += US * 10;
        tunnel.settle();
    }
    tunnel.supply(vec![MTU; 2]);
    tunnel.send_all();
    tunnel.arrive(1, false);
    let patience = tunnel.receiver.poll_timeout(&tunnel.params).since(tunnel.now);
    assert!((US * 20..US * 40).contains(&patience), "{patience}");
}
