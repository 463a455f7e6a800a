//! Conformance of the engines, in virtual time and over loopback UDP, by one test body.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time;

use selvedge_dataplane::{Clock, Datagrams, Incoming, Outgoing, Udp, receive, send};
use selvedge_testkit::{Fate, Impairment, Link, Odds, Outcome, Placed, Transfer, World};
use selvedge_transport::congestion::fixed::FixedConfig;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig, Nacks};
use selvedge_transport::recovery::irn::{IrnConfig, Mode, Timeouts};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::{Receiver, RecoveryConfig, RecoveryParams, Scheme, Sender, SenderParams, Tuning};
use selvedge_units::{Chance, Domain, Duration, Psn, QpNumber, Rate, Rng, Setting};
use selvedge_wire::Datagram;

#[test]
fn in_virtual_time() {
    every_engine_delivers_every_byte_once(&Link::default());
}

#[test]
fn over_loopback_udp() {
    every_engine_delivers_every_byte_once(&Loopback);
}

/// Asserts that each recovery delivers every byte exactly once under each impairment.
fn every_engine_delivers_every_byte_once(world: &dyn World) {
    // Slow enough for loopback sockets not to lose anything by themselves.
    let slow = FixedConfig { window: Setting::Off, rate: Setting::Value(Rate::from_gbps(1)) };
    for recovery in recoveries() {
        for (name, forward, backward) in impairments() {
            let mut rng = Rng::stream(7, Domain::Impairment, 9);
            let transfer = Transfer {
                params: SenderParams {
                    recovery,
                    congestion: slow.params().expect("a rate above zero").into(),
                    frame: Transfer::FRAME,
                },
                first_psn: Psn::new(Psn::MODULUS - 100),
                payload: (0..400_123).map(|_| rng.next_u64() as u8).collect(),
                piece: 1024,
                forward,
                backward,
            };
            let (payload, packets) = (transfer.payload.clone(), transfer.packets());
            let outcome = world.run(transfer);
            outcome.assert_intact(&payload, &(recovery, name));
            assert_eq!(outcome.stats.sent, packets + outcome.stats.retransmissions, "{recovery:?}, {name}");
            if matches!(name, "data" | "random") {
                assert!(outcome.stats.retransmissions > 0, "{recovery:?}, {name}: the script was not followed");
            }
        }
    }
}

/// Returns the loss recoveries under test. Their timeouts suit a busy machine's loopback, whose round trips take up to
/// milliseconds.
fn recoveries() -> Vec<RecoveryParams> {
    let irn = IrnConfig {
        timeouts: Timeouts::On,
        rto_low: Setting::Value(Duration::from_ms(100)),
        rto_high: Setting::Value(Duration::from_ms(200)),
        bdp_cap: Setting::Value(64),
        ..IrnConfig::default()
    };
    let go_back_n = GoBackNConfig {
        rto: Setting::Value(Duration::from_ms(100)),
        acks: Acks::PerPacket,
        nack: Nacks::OncePerGap,
        bdp_cap: Setting::Value(64),
        ..GoBackNConfig::default()
    };
    let melo = MeloConfig {
        rto: Setting::Value(Duration::from_ms(100)),
        reorder_buffer: Setting::Value(64),
        bdp_cap: Setting::Value(64),
        ..MeloConfig::default()
    };
    let all: [RecoveryConfig; 4] =
        [irn.into(), IrnConfig { mode: Mode::Hls, ..irn }.into(), go_back_n.into(), melo.into()];
    all.iter().map(|recovery| recovery.params().expect("valid settings")).collect()
}

/// Returns the loss scripts forwards and backwards, with the name of what they affect.
fn impairments() -> Vec<(&'static str, Impairment, Impairment)> {
    let first = |seqs: &[u32]| {
        Impairment::none().losing_first(seqs.iter().map(|seq| Psn::new(Psn::MODULUS - 100 + seq)).collect::<Vec<_>>())
    };
    let odds = Odds {
        drop: Chance::ratio(1, 100),
        duplicate: Chance::ratio(1, 100),
        late: Chance::ratio(1, 100),
        late_by: Duration::from_us(50),
    };
    let acks = (10..20).fold(Impairment::none(), |script, index| script.with(index, Fate::Drop));
    vec![
        ("none", Impairment::none(), Impairment::none()),
        ("data", first(&[3, 40, 41, 42, 99, 100, 200, 390]), Impairment::none()),
        ("acks", Impairment::none(), acks),
        ("random", Impairment::random(1, 0, odds), Impairment::random(1, 1, odds)),
    ]
}

/// A world of two UDP sockets of this machine, with a thread each.
struct Loopback;

impl World for Loopback {
    fn run(&self, mut transfer: Transfer) -> Outcome {
        let qp = QpNumber(0x11);
        let (mut here, mut there) =
            (Udp::bind("127.0.0.1:0").expect("a socket"), Udp::bind("127.0.0.1:0").expect("a socket"));
        here.connect(there.address().expect("a bound socket")).expect("the peer is bound");
        there.connect(here.address().expect("a bound socket")).expect("the peer is bound");
        let mut here = Impaired::new(here, std::mem::take(&mut transfer.forward));
        let mut there = Impaired::new(there, std::mem::take(&mut transfer.backward));

        let recovery = transfer.params.recovery;
        let mut sender = Sender::new(&transfer.params, transfer.first_psn);
        sender.supply(transfer.packets());
        let mut receiver = Receiver::new(&recovery, transfer.first_psn);
        let placed = RefCell::new(Placed::for_transfer(&transfer));
        let outgoing =
            Outgoing { payload: &transfer.payload, piece: transfer.piece, qp, first_psn: transfer.first_psn, recovery };
        let (clock, is_over) = (Clock::start(), AtomicBool::new(false));
        let patience = clock.now() + Duration::from_ms(30_000);

        let duplicates = thread::scope(|scope| {
            scope.spawn(|| {
                send(&mut here, &clock, &mut sender, &outgoing, &mut || clock.now() > patience)
                    .expect("loopback works");
                is_over.store(true, Ordering::Release);
            });
            let mut place = |seq, payload: &[u8]| placed.borrow_mut().place(seq, payload);
            let mut incoming = Incoming { qp, recovery, place: &mut place };
            let mut stop = || is_over.load(Ordering::Acquire);
            receive(&mut there, &clock, &mut receiver, &mut incoming, &mut stop).expect("loopback works")
        });
        let placed = placed.into_inner();
        Outcome { finished: sender.is_done() && placed.is_complete(), placed, duplicates, stats: sender.stats() }
    }
}

/// A network that applies a script of fates to the datagrams sent through it. A late datagram waits until three more
/// have passed it.
struct Impaired<D> {
    network: D,
    script: Impairment,
    held: Vec<(u32, Vec<u8>)>,
}

impl<D: Datagrams> Impaired<D> {
    fn new(network: D, script: Impairment) -> Self {
        Self { network, script, held: Vec::new() }
    }
}

impl<D: Datagrams> Datagrams for Impaired<D> {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let (parsed, _) = Datagram::parse(datagram).map_err(io::Error::other)?;
        let copies = match self.script.fate(&parsed.body) {
            Fate::Deliver => 1,
            Fate::Drop => 0,
            Fate::Duplicate => 2,
            Fate::Late(_) => {
                self.held.push((3, datagram.to_vec()));
                0
            }
        };
        for _ in 0..copies {
            self.network.send(datagram)?;
        }
        for (passed, held) in &mut self.held {
            *passed -= 1;
            if *passed == 0 {
                self.network.send(held)?;
            }
        }
        self.held.retain(|(passed, _)| *passed > 0);
        Ok(())
    }
    fn recv(&mut self, buffer: &mut [u8], patience: time::Duration) -> io::Result<Option<usize>> {
        self.network.recv(buffer, patience)
    }
}
