//! Engines whose origin of time moves while they run.

use alloc::vec;

use selvedge_units::{Domain, Duration, Instant, Rng};

use super::*;
use crate::eqds::{Life, Loss, Pacer, Pulls, Source};

/// Runs two equal tunnels by the same script, one of which is rebased at random moments: both do the same.
#[test]
fn an_engine_does_the_same_across_a_rebase() {
    let loss = Loss {
        measured: Some((Duration::from_us(10), Duration::from_ms(10))),
        path_margin: Some(Duration::from_us(2)),
        gap_wait: Some(Duration::from_us(9)),
    };
    let life = Life { idle: Some(Duration::from_ms(4)), unreachable: Some(Duration::from_ms(90)), ..Life::FOR_EVER };
    for seed in 0..60 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 9);
        let settings = EqdsParams { loss, life, bounds: Source::Measured, bursts: seed % 3 != 0, ..params() };
        let (mut still, mut moved) = (Tunnel::new(settings), Tunnel::new(settings));
        let start = Instant::ZERO + Duration::from_ms(1);
        (still.now, moved.now) = (start, start);
        let mut shift = Duration::ZERO;
        for _ in 0..3_000 {
            let span = Duration::from_ns(rng.below(2_000));
            let draw = (rng.below(9), rng.below(64), rng.below(8) == 0);
            for tunnel in [&mut still, &mut moved] {
                tunnel.now += span;
                step(tunnel, draw);
            }
            assert_eq!(still.data, moved.data, "seed {seed}");
            assert_eq!(still.control, moved.control, "seed {seed}");
            assert_eq!(still.delivered, moved.delivered);
            for (at, of_moved) in [
                (still.sender.poll_timeout(), moved.sender.poll_timeout()),
                (still.receiver.poll_timeout(&settings), moved.receiver.poll_timeout(&settings)),
            ] {
                let expected = if at == Instant::NEVER { at } else { Instant::from_ps(at.as_ps() - shift.as_ps()) };
                assert_eq!(of_moved, expected, "seed {seed}");
            }
            if rng.below(200) == 0 {
                // Times before the new origin must be those that only tell of the past.
                let by = moved.now.since(start);
                moved.sender.rebase(by);
                moved.receiver.rebase(by);
                (moved.now, shift) = (start, shift + by);
            }
        }
        assert!(!shift.is_zero() && !still.delivered.is_empty());
    }
}

fn step(tunnel: &mut Tunnel, (what, which, odd): (u64, u64, bool)) {
    let (data, control) = (tunnel.data.len(), tunnel.control.len());
    match what {
        0 if tunnel.queue.len() < 40 => tunnel.supply(vec![MTU; 3]),
        1 | 2 => {
            if let Some(sent) = tunnel.send() {
                tunnel.sender.note_path(&tunnel.params, sent.seq, which as u16 % 4);
            }
        }
        3 | 4 if data > 0 && odd => _ = tunnel.data.remove(which as usize % data),
        3 | 4 if data > 0 => _ = tunnel.arrive(which as usize % data.min(3), false),
        5 | 6 if control > 0 => _ = tunnel.answer(which as usize % control),
        7 => _ = tunnel.grant(),
        _ => {
            tunnel.sender.handle_timeout(&tunnel.params, tunnel.now);
            if tunnel.sender.poll_event().is_some() {
                tunnel.sender.retry(&tunnel.params, tunnel.now);
            }
            let deliver = |cargo| tunnel.delivered.push(cargo);
            tunnel.receiver.handle_timeout(&tunnel.params, tunnel.now, deliver);
            tunnel.control.extend(tunnel.receiver.poll_missing(&tunnel.params, tunnel.now));
        }
    }
}

#[test]
fn a_pacer_keeps_its_distance_across_a_rebase() {
    let us = Duration::from_us(1);
    let pulls = Pulls { interval: us, control: Duration::ZERO, catch_up: us * 5, quanta: 1, measures: true };
    let mut pacer = Pacer::new(pulls, Policy::Fair);
    let day = Instant::ZERO + Duration::from_ms(86_400_000);
    pacer.push(day, 1, 0);
    pacer.push(day, 2, 0);
    assert_eq!(pacer.poll(day), Some(1));
    pacer.rebase(day.since(Instant::ZERO));
    assert_eq!(pacer.poll_timeout(), Instant::ZERO + us);
    assert_eq!((pacer.poll(Instant::ZERO), pacer.poll(Instant::ZERO + us)), (None, Some(2)));
}
