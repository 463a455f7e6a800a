//! Detection of losses without trimming: by later packets of the same path, by reports of gaps, and by timeouts
//! measured from round trips.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Domain, Duration, Instant, Rng};
use selvedge_wire::eqds::Flags;

use super::*;
use crate::eqds::{Loss, MISSING};

const US: Duration = Duration::from_us(1);
const RACK: Loss = Loss { path_margin: Some(Duration::from_us(2)), ..Loss::BY_TIMEOUT };
const GAPS: Loss = Loss { gap_wait: Some(Duration::from_us(5)), ..Loss::BY_TIMEOUT };
const MEASURED: Loss = Loss { measured: Some((Duration::from_us(5), Duration::from_us(10_000))), ..Loss::BY_TIMEOUT };

/// Sends `packets` packets, one per microsecond, by `paths` paths in turn.
fn send_spread(tunnel: &mut Tunnel, packets: usize, paths: u16) {
    tunnel.supply(vec![MTU; packets]);
    for path in 0.. {
        let Some(sent) = tunnel.send() else { break };
        tunnel.sender.note_path(&tunnel.params, sent.seq, path % paths);
        tunnel.now += US;
    }
}

#[test]
fn a_packet_is_lost_if_a_later_one_of_its_path_has_arrived() {
    let mut tunnel = Tunnel::new(EqdsParams { loss: RACK, ..params() });
    send_spread(&mut tunnel, 8, 4);
    tunnel.now += US * 10;
    // The third packet is lost. Packets of other paths that overtake it prove nothing.
    tunnel.data.remove(2);
    for _ in 0..5 {
        assert_eq!(tunnel.arrive(0, false), Disposition::Taken);
        tunnel.answer(0);
    }
    assert!(!tunnel.sender.has_lost(), "five packets of other paths arrived");
    // The seventh takes the same path; the third was sent 4 us before it, which is more than the margin.
    tunnel.arrive(0, false);
    tunnel.answer(0);
    assert!(tunnel.sender.has_lost());
    assert_eq!(tunnel.sender.paths()[2].lost, 1);
    assert!(tunnel.now < tunnel.sender.poll_timeout(), "before any timeout");
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..8));
}

#[test]
fn reordering_within_the_margin_is_no_loss() {
    let margin = Loss { path_margin: Some(US * 5), ..Loss::BY_TIMEOUT };
    let mut tunnel = Tunnel::new(EqdsParams { loss: margin, ..params() });
    send_spread(&mut tunnel, 4, 1);
    tunnel.now += US * 10;
    // The second arrives after the third and the fourth.
    tunnel.arrive(0, false);
    tunnel.arrive(1, false);
    (0..2).for_each(|_| _ = tunnel.answer(0));
    assert!(!tunnel.sender.has_lost());
    tunnel.now += US * 2;
    tunnel.arrive(0, false);
    tunnel.answer(0);
    tunnel.now += US * 50;
    tunnel.sender.handle_timeout(&tunnel.params, tunnel.now);
    assert!(!tunnel.sender.has_lost(), "it has arrived");
}

#[test]
fn an_overtaken_packet_is_lost_when_the_margin_has_passed() {
    let margin = Loss { path_margin: Some(US * 5), ..Loss::BY_TIMEOUT };
    let mut tunnel = Tunnel::new(EqdsParams { loss: margin, ..params() });
    send_spread(&mut tunnel, 4, 1);
    tunnel.now += US * 10;
    tunnel.data.remove(1);
    tunnel.arrive(0, false);
    tunnel.arrive(0, false);
    (0..2).for_each(|_| _ = tunnel.answer(0));
    let due = tunnel.sender.poll_timeout();
    assert_eq!(due, tunnel.now + US * 4, "it was sent 1 us before the third");
    tunnel.now = due;
    tunnel.sender.handle_timeout(&tunnel.params, due);
    assert!(tunnel.sender.has_lost());
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..4));
}

#[test]
fn a_retransmission_that_is_lost_is_found_by_later_packets_too() {
    let mut tunnel = Tunnel::new(EqdsParams { loss: RACK, ..params() });
    send_spread(&mut tunnel, 40, 1);
    tunnel.now += US * 10;
    let mut copies = 0;
    for _ in 0..400 {
        // Each copy of the third packet is lost but the fourth.
        let place = tunnel.data.iter().position(|(data, cargo)| *cargo == 2 && !data.flags.any(Flags::RTS));
        if let Some(place) = place.filter(|_| copies < 3) {
            tunnel.data.remove(place);
            copies += 1;
        }
        if !tunnel.data.is_empty() {
            tunnel.arrive(0, false);
        }
        tunnel.grant();
        while !tunnel.control.is_empty() {
            tunnel.answer(0);
        }
        tunnel.send();
        tunnel.now += US;
    }
    assert_eq!((copies, tunnel.delivered.len()), (3, 40), "{:?}", tunnel.delivered);
    assert_eq!(tunnel.delivered, Vec::from_iter(0..40));
}

#[test]
fn a_gap_is_reported_once_after_a_wait() {
    let mut tunnel = Tunnel::new(EqdsParams { loss: GAPS, ..params() });
    send_spread(&mut tunnel, 8, 4);
    tunnel.data.remove(5);
    tunnel.data.remove(2);
    while !tunnel.data.is_empty() {
        tunnel.arrive(0, false);
    }
    while !tunnel.control.is_empty() {
        tunnel.answer(0);
    }
    let due = tunnel.receiver.poll_timeout(&tunnel.params);
    assert_eq!(due, tunnel.now + US * 5);
    assert_eq!(tunnel.receiver.poll_missing(&tunnel.params, tunnel.now), None);
    tunnel.now = due;
    // The second gap was seen after the first, and waits as long.
    let mut reports = Vec::new();
    for number in [2, 5] {
        tunnel.now = tunnel.receiver.missing_due();
        let report = tunnel.receiver.poll_missing(&tunnel.params, tunnel.now).expect("a gap");
        assert_eq!((report.flags.with(MISSING), report.number % 1024), (report.flags, number));
        assert_eq!(tunnel.receiver.poll_missing(&tunnel.params, tunnel.now), None);
        reports.push(report);
    }
    assert_eq!(tunnel.now, due + US * 5);
    assert_eq!(tunnel.receiver.owed(&tunnel.params), 0, "nothing is promised for packets of unknown size");
    assert!(tunnel.receiver.poll_timeout(&tunnel.params) > tunnel.now + US * 300, "each once only");
    tunnel.control.extend(reports);
    (0..2).for_each(|_| _ = tunnel.answer(0));
    assert!(tunnel.sender.has_lost());
    tunnel.settle();
    assert_eq!(tunnel.delivered, Vec::from_iter(0..8));
}

#[test]
fn a_report_that_comes_after_the_retransmission_is_old() {
    let mut tunnel = Tunnel::new(EqdsParams { loss: GAPS, ..params() });
    send_spread(&mut tunnel, 3, 1);
    tunnel.data.remove(1);
    (0..2).for_each(|_| _ = tunnel.arrive(0, false));
    (0..2).for_each(|_| _ = tunnel.answer(0));
    tunnel.now += US * 5;
    let report = tunnel.receiver.poll_missing(&tunnel.params, tunnel.now).expect("a gap");
    // The timeout comes first.
    tunnel.now += US * 200;
    tunnel.sender.handle_timeout(&tunnel.params, tunnel.now);
    while tunnel.sender.has_lost() {
        if tunnel.send().is_none() {
            (0..tunnel.data.len()).for_each(|_| _ = tunnel.arrive(0, false));
            tunnel.grant();
            (0..tunnel.control.len()).for_each(|_| _ = tunnel.answer(0));
        }
    }
    tunnel.control.push_front(report);
    tunnel.answer(0);
    assert!(!tunnel.sender.has_lost());
}

#[test]
fn a_gap_that_closes_in_time_is_not_reported() {
    let mut tunnel = Tunnel::new(EqdsParams { loss: GAPS, ..params() });
    send_spread(&mut tunnel, 3, 1);
    tunnel.arrive(1, false);
    tunnel.now += US * 4;
    tunnel.arrive(0, false);
    assert_eq!(tunnel.receiver.missing_due(), Instant::NEVER);
    tunnel.now += US * 4;
    assert_eq!(tunnel.receiver.poll_missing(&tunnel.params, tunnel.now), None);
}

#[test]
fn the_timeout_follows_the_round_trips() {
    let mut tunnel = Tunnel::new(EqdsParams { loss: MEASURED, ..params() });
    let rto = |tunnel: &Tunnel| tunnel.sender.rto(&tunnel.params);
    tunnel.supply([MTU]);
    assert_eq!(rto(&tunnel), US * 100, "the setting before the first sample");
    for _ in 0..60 {
        tunnel.send_all();
        tunnel.now += US * 20;
        tunnel.arrive(0, false);
        tunnel.answer(0);
        tunnel.supply([MTU]);
    }
    assert_eq!(tunnel.sender.round_trips().map(|trips| trips.latest), Some(US * 20));
    assert!(rto(&tunnel) < US * 22, "{}", rto(&tunnel));
    // A silent network doubles it.
    tunnel.send_all();
    tunnel.data.clear();
    let before = rto(&tunnel);
    tunnel.now += before;
    assert!(tunnel.sender.handle_timeout(&tunnel.params, tunnel.now));
    assert_eq!(rto(&tunnel), before * 2);
    for _ in 0..60 {
        tunnel.wait();
        tunnel.send_all();
        tunnel.data.clear();
    }
    assert!(rto(&tunnel) <= US * 10_000, "the ceiling");
}

/// A network without trimming that loses one packet in twenty and keeps the order on each of its eight paths, whose
/// delays differ. Returns the time that it takes to deliver all, in the setting's timeouts.
fn time_to_deliver(loss: Loss, seed: u64) -> u64 {
    let mut rng = Rng::stream(seed, Domain::Impairment, 7);
    let mut tunnel = Tunnel::new(EqdsParams { loss, bursts: seed.is_multiple_of(2), window: 40 * MTU, ..params() });
    let (packets, paths) = (1_000, 8);
    tunnel.supply(vec![MTU; packets]);
    let mut flying: Vec<(Instant, Data, u32)> = Vec::new();
    let mut back: Vec<(Instant, Control)> = Vec::new();
    let mut turn = 0;
    while !tunnel.sender.is_done() {
        tunnel.now += US;
        assert!(tunnel.now < Instant::ZERO + Duration::from_ms(1_000), "seed {seed}: stuck");
        if let Some(sent) = tunnel.send() {
            turn += 1;
            let path = turn % paths;
            tunnel.sender.note_path(&tunnel.params, sent.seq, path);
            let (data, cargo) = tunnel.data.pop_front().expect("sent");
            if rng.below(20) != 0 {
                flying.push((tunnel.now + US * (8 + u64::from(path)), data, cargo));
            }
        }
        let due: Vec<_> = flying.extract_if(.., |(at, ..)| *at <= tunnel.now).collect();
        for (_, data, cargo) in due {
            tunnel.data.push_back((data, cargo));
            tunnel.arrive(0, false);
        }
        tunnel.grant();
        tunnel.control.extend(core::iter::from_fn(|| tunnel.receiver.poll_missing(&tunnel.params, tunnel.now)));
        for control in tunnel.control.drain(..) {
            if rng.below(20) != 0 {
                back.push((tunnel.now + US * 8, control));
            }
        }
        for (_, control) in back.extract_if(.., |(at, _)| *at <= tunnel.now).collect::<Vec<_>>() {
            tunnel.control.push_back(control);
            tunnel.answer(0);
        }
        tunnel.sender.handle_timeout(&tunnel.params, tunnel.now);
        let in_use = tunnel.sender.credit() + tunnel.sender.awaited(&tunnel.params) * MTU;
        assert!(in_use < tunnel.params.window + MTU, "credit from nowhere: {in_use}, seed {seed}");
    }
    assert_eq!(tunnel.delivered, Vec::from_iter(0..packets as u32), "seed {seed}");
    tunnel.now.since(Instant::ZERO).as_ps() / US.as_ps()
}

#[test]
fn each_way_delivers_all_and_sooner_than_timeouts() {
    let sum = |loss| (0..40).map(|seed| time_to_deliver(loss, seed)).sum::<u64>();
    let timeouts = sum(Loss::BY_TIMEOUT);
    for loss in [RACK, GAPS, Loss { measured: MEASURED.measured, ..RACK }, Loss { gap_wait: GAPS.gap_wait, ..RACK }] {
        let time = sum(loss);
        assert!(time * 10 < timeouts * 8, "{time} us instead of {timeouts} us with {loss:?}");
    }
}
