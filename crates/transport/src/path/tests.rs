//! Paths through one queue, by a simple packet-level model.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Domain, Rng};

use super::*;

/// A bottleneck link with one queue, shared by all paths.
#[derive(Clone, Copy)]
struct Link {
    /// Rate in packets of 1,086 bytes per millisecond; 11.5 are 100 Mb/s.
    per_ms: f64,
    /// Capacity of the queue in packets.
    queue: usize,
    /// One-way delay.
    delay_us: u64,
    /// Random losses per thousand packets.
    loss: u64,
}

const FAST_ETHERNET: Link = Link { per_ms: 11.5, queue: 290, delay_us: 50, loss: 0 };

struct Source {
    path: Path,
    /// Packets sent whose arrival or loss is not known yet: time stamp, and whether they arrive.
    under_way: VecDeque<(Instant, bool)>,
    /// Packets to retransmit.
    lost: u64,
    delivered: u64,
    sent: u64,
    resent: u64,
    dropped: u64,
}

struct World {
    now: Instant,
    link: Link,
    sources: Vec<Source>,
    /// Departure times of the packets in the queue.
    queue: VecDeque<Instant>,
    longest: usize,
    echoes: BTreeMap<(Instant, u64), (usize, Instant, Duration)>,
    events: u64,
    /// Whether a packet was lost, by path: the next one is acknowledged without a request.
    gaps: Vec<bool>,
    rng: Rng,
    /// Delay that the other host adds to each acknowledgement, and reports.
    host: Duration,
    /// Whether packets sent together are acknowledged by one packet, which may be lost like any other.
    is_merging: bool,
    is_dead: bool,
}

impl World {
    fn new(link: Link, paths: usize) -> Self {
        let source = || Source {
            path: Path::new(PathConfig::default()),
            under_way: VecDeque::new(),
            lost: 0,
            delivered: 0,
            sent: 0,
            resent: 0,
            dropped: 0,
        };
        Self {
            now: Instant::ZERO + Duration::from_ms(1),
            link,
            sources: (0..paths).map(|_| source()).collect(),
            queue: VecDeque::new(),
            longest: 0,
            echoes: BTreeMap::new(),
            events: 0,
            gaps: vec![false; paths],
            rng: Rng::stream(1, Domain::LinkLoss, 0),
            host: Duration::ZERO,
            is_merging: false,
            is_dead: false,
        }
    }

    fn send(&mut self, at: usize) {
        let mut merged = None;
        while self.sources[at].path.is_open() {
            let source = &mut self.sources[at];
            let again = source.lost > 0;
            source.lost -= u64::from(again);
            source.sent += 1;
            source.resent += u64::from(again);
            let (stamp, asks) = source.path.on_sent(self.now, 1, again);
            while self.queue.front().is_some_and(|&leaves| leaves <= self.now) {
                self.queue.pop_front();
            }
            let is_full = self.queue.len() >= self.link.queue;
            let is_lost = self.rng.below(1_000) < self.link.loss;
            source.dropped += u64::from(is_full);
            let arrives = !(is_full || is_lost || self.is_dead);
            source.under_way.push_back((stamp, arrives));
            if !is_full {
                let service = Duration::from_ps((1e9 / self.link.per_ms) as u64);
                let leaves = self.queue.back().copied().unwrap_or(self.now).max(self.now) + service;
                self.queue.push_back(leaves);
                self.longest = self.longest.max(self.queue.len());
                if arrives && (asks || core::mem::take(&mut self.gaps[at])) {
                    let echo = leaves + Duration::from_us(2 * self.link.delay_us) + self.host;
                    self.events += 1;
                    if self.is_merging {
                        merged = Some((echo, stamp));
                    } else {
                        self.echoes.insert((echo, self.events), (at, stamp, self.host));
                    }
                }
            }
            self.gaps[at] |= !arrives;
        }
        if let Some((echo, stamp)) = merged.filter(|_| self.rng.below(1_000) >= self.link.loss) {
            self.echoes.insert((echo, self.events), (at, stamp, self.host));
        }
        self.sources[at].path.on_held();
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_ms(ms);
        loop {
            for at in 0..self.sources.len() {
                self.send(at);
            }
            let echo = self.echoes.first_key_value().map(|(&(at, _), _)| at).unwrap_or(Instant::NEVER);
            let silence = self.sources.iter().map(|source| source.path.deadline()).min().unwrap_or(Instant::NEVER);
            let next = echo.min(silence);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            while let Some(first) = self.echoes.first_entry()
                && first.key().0 <= self.now
            {
                let (at, stamp, waited) = first.remove();
                let source = &mut self.sources[at];
                source.path.on_echo(self.now, stamp, Some(waited));
                while let Some(&(left, arrived)) = source.under_way.front()
                    && left <= stamp
                {
                    source.under_way.pop_front();
                    source.delivered += u64::from(arrived);
                    source.lost += u64::from(!arrived);
                }
            }
            for source in &mut self.sources {
                if source.path.deadline() <= self.now {
                    source.path.on_silence(self.now);
                    let gone = source.under_way.drain(..).count() as u64;
                    source.lost += gone;
                }
            }
        }
    }

    /// Runs for `ms` milliseconds; returns the delivered share of the link's capacity.
    fn share_of(&mut self, ms: u64) -> f64 {
        let before: u64 = self.sources.iter().map(|source| source.delivered).sum();
        self.run(ms);
        let after: u64 = self.sources.iter().map(|source| source.delivered).sum();
        (after - before) as f64 / (self.link.per_ms * ms as f64)
    }
}

#[test]
fn a_slow_link_is_used_and_its_queue_never_overflows() {
    let mut world = World::new(FAST_ETHERNET, 1);
    world.run(500);
    assert!(world.share_of(5_000) > 0.97);
    let Source { dropped, resent, .. } = world.sources[0];
    assert_eq!((dropped, resent), (0, 0));
    // The target is 4 ms, 46 packets, and the start ends at a queue of 2 ms.
    assert!(world.longest < 120, "{}", world.longest);
}

#[test]
fn links_of_any_speed_are_used() {
    for (per_ms, queue, delay_us) in [(1.15, 100, 50), (115.0, 300, 20), (1_150.0, 2_000, 10), (115.0, 1_000, 5_000)] {
        let mut world = World::new(Link { per_ms, queue, delay_us, loss: 0 }, 1);
        world.run(3_000);
        let share = world.share_of(3_000);
        assert!(share > 0.9, "{per_ms} per ms, {queue} packets, {delay_us} us: {share}");
    }
}

#[test]
fn a_queue_that_is_shorter_than_the_target_overflows_a_little_and_is_used() {
    for queue in [20, 60] {
        let mut world = World::new(Link { per_ms: 115.0, queue, delay_us: 50, loss: 0 }, 1);
        world.run(500);
        let share = world.share_of(3_000);
        let Source { sent, dropped, .. } = world.sources[0];
        assert!(share > 0.8, "{queue} packets: {share}");
        assert!(dropped * 8 < sent, "{queue} packets: {dropped} of {sent}");
    }
}

#[test]
fn lost_acknowledgements_of_whole_windows_make_no_window_small() {
    // Each silence takes 4 ms, several round trips.
    for (loss, least) in [(10, 0.8), (50, 0.4)] {
        let mut world = World::new(Link { per_ms: 1_150.0, queue: 2_000, delay_us: 50, loss }, 1);
        world.is_merging = true;
        world.run(500);
        let share = world.share_of(3_000);
        assert!(share > least, "{loss} in 1,000: {share}");
    }
}

#[test]
fn random_losses_make_no_window_small() {
    for loss in [10, 50] {
        for link in [FAST_ETHERNET, Link { per_ms: 1_150.0, queue: 2_000, delay_us: 50, loss: 0 }] {
            let mut world = World::new(Link { loss, ..link }, 1);
            world.run(500);
            let share = world.share_of(3_000);
            assert!(share > 0.9 * (1.0 - loss as f64 / 1_000.0), "{loss} in 1,000, {} per ms: {share}", link.per_ms);
        }
    }
}

#[test]
fn the_window_grows_when_losses_end_and_when_the_link_becomes_faster() {
    // The widest window, 2,048 packets, exceeds the faster link's capacity.
    let mut world = World::new(Link { per_ms: 115.0, queue: 300, delay_us: 500, loss: 300 }, 1);
    world.run(2_000);
    let window = world.sources[0].path.window();
    assert!(window <= 64, "a third is lost: {window}");
    world.link.loss = 0;
    world.run(500);
    let share = world.share_of(1_000);
    assert!(share > 0.9, "{share}");
    (world.link.per_ms, world.link.queue) = (1_150.0, 3_000);
    world.run(1_000);
    assert!(world.share_of(1_000) > 0.9);
}

#[test]
fn paths_of_several_processes_share_a_link() {
    let mut world = World::new(FAST_ETHERNET, 4);
    world.run(5_000);
    let before: Vec<u64> = world.sources.iter().map(|source| source.delivered).collect();
    let share = world.share_of(20_000);
    let each: Vec<f64> =
        world.sources.iter().zip(before).map(|(source, before)| (source.delivered - before) as f64).collect();
    let (sum, least) = each.iter().fold((0.0, f64::MAX), |(sum, least), n| (sum + n, n.min(least)));
    assert!(share > 0.97, "{share}");
    // A path that mistakes the queue of the others for distance gets more.
    assert!(least > sum / 4.0 * 0.4, "{each:?}");
    assert!(world.sources.iter().all(|source| source.dropped * 100 < source.sent));
}

#[test]
fn what_packets_wait_in_hosts_is_no_congestion() {
    let mut world = World::new(Link { per_ms: 1_150.0, queue: 4_000, delay_us: 50, loss: 10 }, 1);
    world.run(500);
    world.host = Duration::from_ms(20);
    world.run(2_000);
    assert_eq!(world.sources[0].path.window(), u64::from(PathConfig::default().max_window));
}

#[test]
fn nobody_floods_a_path_that_is_silent() {
    let mut world = World::new(FAST_ETHERNET, 1);
    world.run(1_000);
    world.is_dead = true;
    let before = world.sources[0].sent;
    world.run(1_000);
    let sent = world.sources[0].sent - before;
    // The window, half of it, ..., 16; the longest silence is below 40 ms.
    assert!((100..1_300).contains(&sent), "{sent}");
    world.is_dead = false;
    world.run(200);
    assert!(world.share_of(500) > 0.95);
}

#[test]
fn marks_reduce_the_window_once_per_round_trip_and_less_where_they_are_rare() {
    let mut path = Path::new(PathConfig { initial_window: 1_000, ..PathConfig::default() });
    let at = |us| Instant::ZERO + Duration::from_us(us);
    let mut stamp = path.on_sent(at(1), 1, false).0;
    path.on_mark(at(10));
    path.on_mark(at(20));
    // DCQCN, equation 1: alpha begins as 1.
    assert_eq!(path.window(), 500);
    for us in (100..10_000).step_by(100) {
        path.on_echo(at(us), stamp, None);
        stamp = path.on_sent(at(us), 1, false).0;
    }
    let before = path.window();
    path.on_mark(at(10_000));
    assert!(path.window() * 100 > before * 98, "{before}: {}", path.window());
}

#[test]
fn each_packet_has_a_time_stamp_of_its_own_and_stands_for_those_before() {
    let mut path = Path::new(PathConfig::default());
    let now = Instant::ZERO + Duration::from_us(5);
    let stamps: Vec<Instant> = (0..4).map(|_| path.on_sent(now, 1, false).0).collect();
    assert!(stamps.is_sorted_by(|one, next| one < next));
    let (answers, _) = path.on_sent(now, 10, false);
    assert_eq!(path.in_flight(), 14);
    // A time stamp that was never assigned.
    path.on_echo(now, answers + Duration::from_ps(1), None);
    assert_eq!(path.in_flight(), 14);
    path.on_echo(now, stamps[2], None);
    path.on_echo(now, stamps[1], None);
    assert_eq!(path.in_flight(), 11);
    path.on_echo(now, answers, None);
    assert_eq!((path.in_flight(), path.deadline()), (0, Instant::NEVER));
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let right = PathConfig::default();
    assert_eq!(right.check(), Ok(()));
    for (key, wrong) in [
        ("initial-window", PathConfig { initial_window: 8, ..right }),
        ("initial-window", PathConfig { min_window: 0, ..right }),
        ("beta", PathConfig { beta: 0.0, ..right }),
        ("gain", PathConfig { gain: f64::NAN, ..right }),
        ("lossy", PathConfig { target: Duration::from_us(10), ..right }),
        ("silence", PathConfig { silence: (Duration::from_ms(2), Duration::from_ms(1)), ..right }),
    ] {
        let error = wrong.check().expect_err(key);
        assert_eq!(error.key, key);
    }
}
