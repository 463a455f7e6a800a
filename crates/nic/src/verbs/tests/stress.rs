//! Randomised tests: operations, sizes, windows, MTUs, impairments of the wire, and resets of queue pairs in the
//! middle.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::Cx;
use selvedge_transport::RecoveryConfig;
use selvedge_transport::recovery::irn::{DynamicRto, IrnConfig, Rto};
use selvedge_units::{Domain, Duration, Psn, Rng, Setting};

use super::world::{BASE, MTU, QKEY, Wire, World, go_back_n, irn, melo, request};
use crate::verbs::*;

const SEEDS: u64 = 150;
/// Size of each quarter of memory: source of Sends and Reads, receive buffers, destination of Writes, destination of
/// Reads.
const QUARTER: u64 = 1 << 18;
/// Size of a message buffer in bytes.
const SLOT: u64 = 10_000;
/// Maximum number of messages of a round, in each direction.
const MOST: u64 = 24;
/// Offset of a word that the other side adds to, behind the last message buffer of the third quarter.
const COUNTER: u64 = 2 * QUARTER + 26 * SLOT;
/// Offset of a word that the other side replaces or compares and swaps.
const LATCH: u64 = COUNTER + 8;

/// Returns IRN with the settings of the software RNIC, except for shorter timeouts.
fn ours() -> RecoveryConfig {
    let RecoveryConfig::Irn(irn) = irn() else { unreachable!("it is") };
    let high = Setting::Value(Duration::from_us(1_000));
    let rto = Rto::Dynamic(DynamicRto { initial: high, min: Duration::from_us(300), max: Duration::from_us(1_000) });
    let bdp_cap = Setting::Value(256);
    RecoveryConfig::Irn(IrnConfig { rto, rto_high: high, time_stamps: true, holes: true, probes: 16, bdp_cap, ..irn })
}

fn any<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.below(all.len() as u64) as usize]
}

struct Case {
    world: World,
    rng: Rng,
    mtu: u16,
    timeout: u8,
    psns: [Psn; 2],
    counters: [u64; 2],
    /// Value of each side's latch once all requests are done.
    latches: [u64; 2],
}

/// A request of one side.
#[derive(Clone, Copy)]
struct Asked {
    operation: u64,
    size: u64,
    /// Value that a compare-and-swap is expected to find.
    finds: u64,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, Domain::Impairment, 7);
        let schemes = [irn(), ours(), ours(), melo(), go_back_n()];
        let first = any(&mut rng, &schemes);
        let recovery = [first, if rng.below(4) == 0 { any(&mut rng, &schemes) } else { first }];
        let wire = Wire {
            loss: any(&mut rng, &[0, 5, 30]),
            duplicates: any(&mut rng, &[0, 30]),
            late: any(&mut rng, &[0, 30]),
            jitter_us: any(&mut rng, &[0, 0, 5, 100]),
            batch_us: any(&mut rng, &[0, 20, 100]),
        };
        let (window, reads) = (any(&mut rng, &[1, 4, 32, 256]), any(&mut rng, &[1, 3, 16]));
        let mut world = World::limited(recovery, wire, seed, window, reads);
        // Bursts of losses require a longer timeout.
        let mut timeout = 10;
        if recovery.iter().all(|&recovery| recovery == ours()) && rng.below(3) == 0 {
            world.lose_bursts(8.0, 30, seed);
            timeout = 14;
        }
        let mtu = any(&mut rng, &[256, 512, 1_024]);
        let credits = [seed & 1, seed >> 1 & 1].map(|bit| bit == 1);
        world.choose(credits.map(|credits| QpOptions { credits, ..QpOptions::default() }), |_| {});
        let mut case = Self { world, rng, mtu, timeout, psns: [Psn::new(0); 2], counters: [0; 2], latches: [0; 2] };
        case.begin_again();
        case
    }
    /// Resets and reconnects both queue pairs, with PSNs far from the previous ones.
    fn begin_again(&mut self) {
        // Packets of the old connection that are still in flight could otherwise be taken for packets of the new one.
        let is_far = |psn: Psn, from: Psn| psn.ahead_of(from).unsigned_abs() > 1 << 14;
        self.psns = self.psns.map(|before| {
            loop {
                let psn = Psn::new(self.rng.below(1 << 24) as u32);
                if is_far(psn, before) {
                    break psn;
                }
            }
        });
        let (mtu, timeout, psns, now) = (self.mtu, self.timeout, self.psns, self.world.now);
        for at in 0..2 {
            let host = &mut self.world.hosts[at];
            let reset = QpChange { state: Some(QpState::Reset), ..QpChange::default() };
            host.rnic.modify_qp(&mut Cx::at(now), host.qp, &reset).expect("a transition from any state");
            host.poll();
        }
        for at in 0..2 {
            self.world.connect(at, |step| {
                step.mtu = step.mtu.map(|_| mtu);
                step.timeout = step.timeout.map(|_| timeout);
                step.send_psn = step.send_psn.map(|_| psns[at]);
                step.receive_psn = step.receive_psn.map(|_| psns[1 - at]);
            });
        }
        self.counters = [0, 1].map(|at| self.word(at, COUNTER));
        self.latches = [0, 1].map(|at| self.word(at, LATCH));
    }
    fn word(&self, at: usize, place: u64) -> u64 {
        u64::from_ne_bytes(self.world.hosts[at].memory[place as usize..][..8].try_into().expect("8 bytes"))
    }

    fn ask(&mut self, at: usize, number: u64) -> Asked {
        let size = match self.rng.below(4) {
            0 => self.rng.below(9),
            1 => u64::from(self.mtu) * (1 + self.rng.below(2)),
            _ => self.rng.below(9_000),
        };
        let (operation, fence, split) = (self.rng.below(9), self.rng.below(8) == 0, self.rng.below(size + 1));
        let finds = self.latches[1 - at];
        let (compare, swap) = (if self.rng.below(2) == 0 { finds } else { finds ^ 1 }, self.rng.below(u64::MAX));
        let (here, key) = (&self.world.hosts[at], self.world.hosts[1 - at].key);
        let place = number * SLOT;
        let pieces = |from: u64| vec![here.sge(from, split as u32), here.sge(from + split, (size - split) as u32)];
        let remote = |place| Remote { address: BASE + place, key };
        let immediate = [number as u8; 4];
        let (operation, size, what, data) = match operation {
            0 => (0, size, Operation::Send(Attached::Nothing), pieces(place)),
            1 => (0, size, Operation::Send(Attached::Immediate(immediate)), pieces(place)),
            2 => (2, size, Operation::Write { remote: remote(2 * QUARTER + place), immediate: None }, pieces(place)),
            3 => {
                let remote = remote(2 * QUARTER + place);
                (3, size, Operation::Write { remote, immediate: Some(immediate) }, pieces(place))
            }
            4 => (4, size, Operation::Read(remote(place)), pieces(3 * QUARTER + place)),
            5 => {
                let answer = vec![here.sge(3 * QUARTER + place, 8)];
                (5, 8, Operation::FetchAdd { remote: remote(COUNTER), add: 1 }, answer)
            }
            6 => {
                let answer = vec![here.sge(3 * QUARTER + place, 8)];
                (6, 8, Operation::CompareSwap { remote: remote(LATCH), compare, swap }, answer)
            }
            7 => (7, 8, Operation::AtomicWrite(remote(LATCH)), vec![here.sge(place, 8)]),
            _ => {
                let flush = Flush { remote: remote(0), length: 8, global: true, ..Flush::default() };
                (8, 0, Operation::Flush(flush), Vec::new())
            }
        };
        match operation {
            6 if compare == finds => self.latches[1 - at] = swap,
            7 => self.latches[1 - at] = self.word(at, place),
            _ => {}
        }
        let mut asked = request(number, what, data);
        asked.fence = fence;
        if matches!(operation, 0 | 2 | 3 | 7) && size <= 64 && self.rng.below(2) == 0 {
            let from = place as usize;
            asked.data = Data::Inline(self.world.hosts[at].memory[from..][..size as usize].to_vec());
        }
        self.world.post(at, asked);
        Asked { operation, size, finds }
    }

    /// Lets both sides post random requests, with random pauses.
    fn round(&mut self) -> [Vec<Asked>; 2] {
        let mut asked: [Vec<Asked>; 2] = Default::default();
        let counts = [0, 1].map(|_| self.rng.below(MOST + 1));
        let mut received = [0; 2];
        while (0..2).any(|at| (asked[at].len() as u64) < counts[at]) {
            for at in 0..2 {
                let left = counts[at] - asked[at].len() as u64;
                for _ in 0..self.rng.below(left + 1) {
                    let number = asked[at].len() as u64;
                    let next = self.ask(at, number);
                    asked[at].push(next);
                    if matches!(next.operation, 0 | 3) {
                        received[1 - at] += 1;
                        let place = QUARTER + number * SLOT;
                        let length = if next.operation == 0 { SLOT as u32 } else { 0 };
                        if self.rng.below(5) == 0 {
                            let wait = self.rng.below(60);
                            self.world.run(wait);
                        }
                        self.world.receive(1 - at, number, place, length);
                    }
                }
            }
            let wait = self.rng.below(100);
            self.world.run(wait);
        }
        asked
    }

    fn check(&mut self, asked: &[Vec<Asked>; 2], what: &str) {
        let is_receive = |kind| matches!(kind, CompletionKind::Receive | CompletionKind::ReceiveWrite);
        let all = [0, 1].map(|at| self.world.hosts[at].poll());
        for at in 0..2 {
            assert_eq!(self.world.hosts[at].rnic.stats().contradictions, 0, "{what}: MSNs say what PSNs do");
            let failed: Vec<_> = all[at].iter().filter(|done| done.status != Status::Success).collect();
            assert!(failed.is_empty(), "{what}, host {at}: {failed:?}");
            let ids = |receives: bool, of: usize| -> Vec<u64> {
                all[of].iter().filter(|done| is_receive(done.kind) == receives).map(|done| done.id).collect()
            };
            assert_eq!(ids(false, at), (0..asked[at].len() as u64).collect::<Vec<_>>(), "{what}, host {at}");
            let numbered = || asked[at].iter().enumerate().map(|(number, asked)| (number as u64, asked));
            let taking: Vec<_> =
                numbered().filter(|(_, asked)| matches!(asked.operation, 0 | 3)).map(|(number, _)| number).collect();
            assert_eq!(ids(true, 1 - at), taking, "{what}: received in order");
            let (mut found, mut additions) = (Vec::new(), 0);
            for (number, &Asked { operation, size, finds }) in numbered() {
                let (here, there) = (&self.world.hosts[at].memory, &self.world.hosts[1 - at].memory);
                let bytes = |memory: &[u8], from: u64| memory[from as usize..][..size as usize].to_vec();
                let place = number * SLOT;
                match operation {
                    0 => assert_eq!(bytes(here, place), bytes(there, QUARTER + place), "{what}: Send {number}"),
                    2 | 3 => {
                        assert_eq!(bytes(here, place), bytes(there, 2 * QUARTER + place), "{what}: Write {number}")
                    }
                    4 => assert_eq!(bytes(there, place), bytes(here, 3 * QUARTER + place), "{what}: Read {number}"),
                    5 => {
                        found.push(self.word(at, 3 * QUARTER + place));
                        additions += 1;
                    }
                    6 => {
                        let word = self.word(at, 3 * QUARTER + place);
                        assert_eq!(word, finds, "{what}: compare-and-swap {number}, once and in order");
                    }
                    // The value of an atomic write is checked by the next compare-and-swap, or at the end.
                    _ => {}
                }
            }
            let first = self.counters[1 - at];
            let expected: Vec<_> = (0..additions).map(|n| first.wrapping_add(n)).collect();
            assert_eq!(found, expected, "{what}: each addition once, in order");
            self.counters[1 - at] = self.word(1 - at, COUNTER);
            assert_eq!(self.counters[1 - at], first.wrapping_add(additions), "{what}");
            assert_eq!(self.word(1 - at, LATCH), self.latches[1 - at], "{what}");
        }
    }
}

#[test]
fn anything_asked_at_random_is_done_once_and_in_order() {
    for seed in 0..SEEDS {
        let mut case = Case::new(seed);
        for number in 0..4 {
            let asked = case.round();
            if case.rng.below(4) == 0 {
                let wait = case.rng.below(300);
                case.world.run(wait);
                // Packets of the old connection are still in flight during the next one.
                case.begin_again();
                continue;
            }
            case.world.run(3_000_000);
            case.check(&asked, &alloc::format!("seed {seed}, round {number}"));
        }
    }
}

#[test]
fn datagrams_at_random_arrive_whole_or_not_at_all() {
    for seed in 0..SEEDS {
        let mut rng = Rng::stream(seed, Domain::Impairment, 8);
        let wire = Wire {
            loss: any(&mut rng, &[0, 0, 30, 300]),
            duplicates: any(&mut rng, &[0, 0, 100]),
            late: any(&mut rng, &[0, 30]),
            jitter_us: any(&mut rng, &[0, 5, 100]),
            batch_us: any(&mut rng, &[0, 20]),
        };
        let mut world = World::new([irn(); 2], wire, seed, Service::Datagram);
        for at in 0..2 {
            world.begin_datagrams(at);
        }
        let (mut sizes, mut received) = (Vec::new(), Vec::new());
        let (wanted, received_at_most) = (1 + rng.below(40), rng.below(60));
        for number in 0..received_at_most {
            world.receive(1, number, QUARTER + number * 400, 40 + u32::from(MTU));
        }
        while (sizes.len() as u64) < wanted {
            let (number, size) = (sizes.len() as u64, rng.below(u64::from(MTU) + 1));
            let data = vec![world.hosts[0].sge(number * 300, size as u32)];
            let operation = Operation::Send(Attached::Immediate((number as u32).to_be_bytes()));
            let destination = Some(Destination { route: world.route(0), qp: world.hosts[1].qp, qkey: QKEY });
            world.post(0, SendRequest { destination, ..request(number, operation, data) });
            sizes.push(size);
            world.run(rng.below(30));
            received.extend(world.hosts[1].poll());
        }
        world.run(1_000);
        received.extend(world.hosts[1].poll());
        let sent: Vec<_> = world.hosts[0].poll().iter().map(|done| (done.id, done.status)).collect();
        assert_eq!(sent, (0..wanted).map(|id| (id, Status::Success)).collect::<Vec<_>>(), "seed {seed}");
        let mut times = vec![0; sizes.len()];
        for (at, done) in received.iter().enumerate() {
            assert_eq!((done.id, done.status), (at as u64, Status::Success), "seed {seed}: receives in order");
            let Attached::Immediate(number) = done.attached else { panic!("seed {seed}: {done:?}") };
            let number = u32::from_be_bytes(number) as usize;
            let size = sizes[number] as usize;
            assert_eq!(done.length as usize, 40 + size, "seed {seed}");
            let there = &world.hosts[1].memory[QUARTER as usize + at * 400 + 40..][..size];
            assert!(there == &world.hosts[0].memory[number * 300..][..size], "seed {seed}, datagram {number}");
            times[number] += 1;
        }
        let most = if wire.duplicates > 0 { 2 } else { 1 };
        assert!(times.iter().all(|&times| times <= most), "seed {seed}: {times:?}");
        if wire.loss == 0 && received_at_most >= 2 * wanted {
            assert!(times.iter().all(|&times| times >= 1), "seed {seed}: {times:?}");
        }
    }
}
