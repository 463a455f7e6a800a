//! Events with the answers of MELO's senders, to check `rtl/src/melo_tx.sv` by. `cargo xtask rtl` calls it.
//!
//! `melo_sender_rtl CONNECTIONS BLOCKS CAP EVENTS SEED` writes a line per event at one NIC. Its connections send to
//! another NIC over a network that loses, delays and repeats packets and acknowledgements:
//!
//! ```text
//! connection kind cum-ack sack   start length (newest hole)   start length   start length   answer
//! ```
//!
//! Kinds: 0 ACK, 1 NACK, 2 the link is free (the cumulative acknowledgement is where the packets to send end), 3 the
//! timer has fired. The answer is "sends psn again loss acked sent waits free":
//!
//! - whether a packet is sent, which one, and whether it was sent before;
//! - whether the NACK began the repair of a loss;
//! - the first unacknowledged packet, and the first one never sent;
//! - whether something waits to be sent again;
//! - free blocks.

use std::collections::VecDeque;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use selvedge_transport::recovery::melo::{MeloConfig, Pools, Recv, Resend, Send};
use selvedge_transport::recovery::{ParsedAck, Recovery, Scheme};
use selvedge_transport::{Cx, Next, Receiver};
use selvedge_units::{Domain, Duration, Instant, Psn, Rng, Seq, Setting};
use selvedge_wire::{Ack, AckKind, Data, Hole, Holes};

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).map_while(|word| word.parse().ok()).collect();
    let [connections @ 1..=65_536, blocks @ 1..=256, cap, events, seed] = numbers[..] else {
        eprintln!("error: usage: melo_sender_rtl CONNECTIONS BLOCKS CAP EVENTS SEED, numbers all, 1 to 256 blocks");
        return ExitCode::from(2);
    };
    match Bench::new(connections, blocks as u32, cap as u32, seed).write(events) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough: it found a difference and says so.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// An acknowledgement on its way.
#[derive(Clone, Copy)]
struct Report {
    ack: Ack,
    holes: Holes,
}

/// A connection, and how its network treats it.
struct Connection {
    sender: Send,
    receiver: Receiver<Recv>,
    /// Where the packets to send end.
    supplied: u64,
    data: VecDeque<u64>,
    reports: VecDeque<Report>,
    /// Of a thousand packets, so many are lost.
    losses: u64,
    /// Of 16 turns, so many are the sender's.
    haste: u64,
}

struct Bench {
    rng: Rng,
    all: Vec<Connection>,
    /// Memory of the senders' NIC, and of the receivers'.
    sending: Pools,
    receiving: Pools,
}

/// An event at a sender.
enum Event {
    Report(Report),
    Free,
    Timeout,
}

impl Bench {
    fn new(connections: u64, blocks: u32, cap: u32, seed: u64) -> Self {
        let mut rng = Rng::stream(seed, Domain::Impairment, blocks.into());
        let slots = 8 * blocks;
        let config = MeloConfig {
            pool_bits: slots,
            block_bits: 8,
            reorder_buffer: Setting::Value(slots),
            resend: Resend::Once,
            rto: Setting::Off,
            bdp_cap: Setting::Value(cap),
            on_chip: Setting::Off,
        };
        let params = config.params().expect("valid settings");
        let all = (0..connections)
            .map(|_| Connection {
                sender: Send::new(&params),
                receiver: Receiver::with(Recv::new(&params), Psn::new(0)),
                supplied: 0,
                data: VecDeque::new(),
                reports: VecDeque::new(),
                losses: [5, 20, 100, 300][rng.below(4) as usize],
                haste: 3 + rng.below(5),
            })
            .collect();
        Self { rng, all, sending: params.pools(), receiving: params.pools() }
    }

    fn write(&mut self, events: u64) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
        let mut left = events;
        while left > 0 {
            let qp = self.rng.below(self.all.len() as u64) as usize;
            if let Some(event) = self.turn(qp) {
                self.answer(&mut out, qp, &event)?;
                left -= 1;
            }
        }
        out.flush()
    }

    /// Something happens to a connection; returns the event if it happens to the sender.
    fn turn(&mut self, qp: usize) -> Option<Event> {
        let Self { rng, all, receiving, .. } = self;
        let connection = &mut all[qp];
        let kind = rng.below(16);
        if kind < connection.haste {
            if connection.sender.sent().index() >= connection.supplied {
                connection.supplied += rng.below(300);
            }
            return Some(Event::Free);
        }
        let is_idle = connection.data.is_empty() && connection.reports.is_empty();
        if rng.below(600) == 0 || is_idle && rng.below(16) == 0 {
            return Some(Event::Timeout);
        }
        if kind.is_multiple_of(2) {
            let late = rng.below(200) == 0;
            let at = if late { rng.below(1 + connection.data.len() as u64) as usize } else { 0 };
            let psn = connection.data.remove(at)?;
            let psn = Psn::new(psn as u32);
            let data = Data { psn, payload: 0, last: false, retransmission: false, trimmed: false };
            let reply = connection.receiver.handle_data(&mut Cx::at(Instant::ZERO), receiving, &data, false);
            let holes = connection.receiver.holes().unwrap_or_default();
            if let Some(ack) = reply.ack.filter(|_| rng.below(50) > 0) {
                connection.reports.push_back(Report { ack, holes });
            }
            return None;
        }
        let at = if rng.below(100) == 0 { rng.below(1 + connection.reports.len() as u64) as usize } else { 0 };
        let mut report = *connection.reports.get(at)?;
        if rng.below(200) > 0 {
            connection.reports.remove(at);
        }
        // Holes and SACKs are unchecked: anything may come.
        if rng.below(200) == 0 {
            let expected = report.ack.expected.get();
            report.ack.kind = AckKind::Nack;
            report.ack.sack = Psn::new(expected + rng.below(900) as u32);
            report.holes = [0; 3]
                .map(|_| Hole { start: (u64::from(expected) + rng.below(800)) as u16, length: rng.below(60) as u16 });
        }
        Some(Event::Report(report))
    }

    /// Handles an event, and writes it with the answer.
    fn answer(&mut self, out: &mut impl Write, qp: usize, event: &Event) -> io::Result<()> {
        let Self { rng, all, sending, .. } = self;
        let Connection { sender, supplied, data, losses, .. } = &mut all[qp];
        let cx = &mut Cx::at(Instant::ZERO);
        let (mut sent, mut loss) = (None, false);
        match event {
            Event::Report(Report { ack, holes }) => {
                let kind = u8::from(ack.kind == AckKind::Nack);
                write!(out, "{qp} {kind} {} {}", ack.expected.get(), ack.sack.get())?;
                for Hole { start, length } in holes {
                    write!(out, " {start} {length}")?;
                }
                let expected = Seq::new(ack.expected.get().into());
                let sack = Seq::new(ack.sack.get().into());
                let heard = ParsedAck { kind: ack.kind, expected, sack, rtt: Duration::ZERO };
                if ack.kind == AckKind::Nack {
                    let holes = holes.map(|hole| hole.packets(expected, Psn::new(0)));
                    loss = sender.handle_holes(cx, sending, heard, &holes).loss;
                } else {
                    sender.handle_ack(cx, sending, heard);
                }
            }
            Event::Free => {
                write!(out, "{qp} 2 {supplied} 0 0 0 0 0 0 0")?;
                if let Next::Send(segment) = sender.next(Instant::ZERO, Seq::new(*supplied), true) {
                    sender.on_sent(cx, sending, segment.seq);
                    if rng.below(1_000) >= *losses {
                        data.push_back(segment.seq.index());
                    }
                    sent = Some(segment);
                }
            }
            Event::Timeout => {
                write!(out, "{qp} 3 0 0 0 0 0 0 0 0")?;
                sender.handle_timeout(cx, sending);
            }
        }
        let (psn, again) = sent.map_or((0, false), |segment| (segment.seq.index(), segment.retransmission));
        writeln!(
            out,
            " {} {psn} {} {} {} {} {} {}",
            u8::from(sent.is_some()),
            u8::from(again),
            u8::from(loss),
            sender.acked().index(),
            sender.sent().index(),
            u8::from(sender.has_lost()),
            sending.sending.blocks() - sending.sending.in_use(),
        )
    }
}
