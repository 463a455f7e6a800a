//! Sends a megabyte from one UDP socket to another over loopback, with IRN's loss recovery at a fixed rate, and loses
//! one datagram in a hundred on the way.
//!
//! ```text
//! cargo run -p selvedge-dataplane --example over_udp
//! ```

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use selvedge_dataplane::{Clock, Datagrams, Incoming, Outgoing, Udp, receive, send};
use selvedge_transport::congestion::fixed::FixedConfig;
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::{Fabric, Receiver, Sender, SenderParams};
use selvedge_units::{Bytes, Chance, Channel, Domain, Duration, Psn, QpNumber, Rate, Rng, Seq, Setting, TwoStates};

/// Payload of a packet in bytes.
const PIECE: usize = 1_024;
const FIRST: Psn = Psn::new(0);
const QP: QpNumber = QpNumber(0x11);

/// Socket that loses some of what it sends.
struct Lossy(Udp, Channel);

impl Datagrams for Lossy {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        if self.1.loses() { Ok(()) } else { self.0.send(datagram) }
    }
    fn recv(&mut self, buffer: &mut [u8], patience: std::time::Duration) -> io::Result<Option<usize>> {
        self.0.recv(buffer, patience)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let (mut here, mut there) = (Udp::bind("127.0.0.1:0")?, Udp::bind("127.0.0.1:0")?);
    here.connect(there.address()?)?;
    there.connect(here.address()?)?;
    let rate = TwoStates::bursts(1.0, Chance::ratio(1, 100)).ok_or("such losses are possible")?;
    let mut here = Lossy(here, Channel::new(rate, Rng::stream(1, Domain::Impairment, 0)));

    // A busy machine's loopback takes up to milliseconds.
    let fabric = Fabric::of_path(Rate::from_gbps(1), Duration::from_ms(20), 1, Bytes::new(PIECE as u64 + 62));
    let irn = IrnConfig { bdp_cap: Setting::Value(64), ..IrnConfig::default() };
    let slow = FixedConfig { window: Setting::Off, rate: Setting::Value(Rate::from_gbps(1)) };
    let params = SenderParams::resolve(irn, slow, &fabric)?;
    let payload: Vec<u8> = (0..1_000_000).map(|n: u32| ((n * 31) >> 8) as u8).collect();

    let mut sender = Sender::new(&params, FIRST);
    sender.supply(payload.len().div_ceil(PIECE) as u64);
    let mut receiver = Receiver::new(&params.recovery, FIRST);
    let outgoing = Outgoing { payload: &payload, piece: PIECE, qp: QP, first_psn: FIRST, recovery: params.recovery };
    let mut arrived = vec![0; payload.len()];
    let mut place = |seq: Seq, piece: &[u8]| {
        arrived[seq.index() as usize * PIECE..][..piece.len()].copy_from_slice(piece);
    };
    let mut incoming = Incoming { qp: QP, recovery: params.recovery, place: &mut place };

    let (clock, is_over) = (Clock::start(), AtomicBool::new(false));
    let patience = clock.now() + Duration::from_ms(30_000);
    let sent = thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let sent = send(&mut here, &clock, &mut sender, &outgoing, &mut || clock.now() > patience);
            is_over.store(true, Ordering::Release);
            sent
        });
        let received =
            receive(&mut there, &clock, &mut receiver, &mut incoming, &mut || is_over.load(Ordering::Acquire));
        received.and(sending.join().unwrap_or_else(|_| Err(io::Error::other("the sending thread panicked"))))
    });
    sent?;
    let stats = sender.stats();
    println!("{} bytes in {}", arrived.len(), clock.now());
    println!("{} packets sent, {} of them again, {} timeouts", stats.sent, stats.retransmissions, stats.timeouts);
    if arrived == payload { Ok(()) } else { Err("the bytes differ".into()) }
}
