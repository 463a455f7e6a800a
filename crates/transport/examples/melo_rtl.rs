//! Packets with the answers of MELO's receivers, to check `rtl/src/melo_rx.sv` by. `cargo xtask rtl` calls it.
//!
//! `melo_rtl CONNECTIONS BLOCKS EVENTS SEED ON-CHIP` writes a line per packet that arrives at one NIC, whose chip has
//! room for ON-CHIP connections (0: for all):
//!
//! ```text
//! connection psn   verdict nack cum-ack   start length (newest hole)   start length   start length   free blocks
//! ```
//!
//! Verdicts: 0 in order, 1 at the front and a run behind it, 2 buffered, 3 duplicate, 4 refused.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use selvedge_transport::recovery::Scheme;
use selvedge_transport::recovery::melo::{MeloConfig, Pools, Recv};
use selvedge_transport::{Cx, DataVerdict, Receiver};
use selvedge_units::{Domain, Instant, Psn, Rng, Setting};
use selvedge_wire::{AckKind, Data};

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).map_while(|word| word.parse().ok()).collect();
    let [connections, blocks @ 1..=256, events, seed, on_chip] = numbers[..] else {
        eprintln!("error: usage: melo_rtl CONNECTIONS BLOCKS EVENTS SEED ON-CHIP, numbers all, at most 256 blocks");
        return ExitCode::from(2);
    };
    match write(connections, blocks as u32, events, seed, on_chip as u32) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough: it found a difference and says so.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// A connection, and how its network treats it.
struct Connection {
    receiver: Receiver<Recv>,
    /// The next new packet.
    sent: u32,
    /// Of a thousand packets, so many begin a gap.
    losses: u64,
    /// Longest gap.
    burst: u64,
    /// Of 16 packets, so many are sent again.
    repairs: u64,
}

fn write(connections: u64, blocks: u32, events: u64, seed: u64, on_chip: u32) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut rng = Rng::stream(seed, Domain::Impairment, blocks.into());
    let slots = 8 * blocks;
    let config = MeloConfig {
        pool_bits: slots,
        reorder_buffer: Setting::Value(slots),
        rto: Setting::Off,
        on_chip: if on_chip == 0 { Setting::Off } else { Setting::Value(on_chip) },
        ..MeloConfig::default()
    };
    let params = config.params().map_err(io::Error::other)?;
    let mut pools = params.pools();
    let mut all: Vec<Connection> = (0..connections)
        .map(|_| Connection {
            receiver: Receiver::with(Recv::new(&params), Psn::new(0)),
            sent: 0,
            losses: [2, 20, 100, 300][rng.below(4) as usize],
            burst: [1, 3, 40, 400][rng.below(4) as usize],
            repairs: 1 + rng.below(8),
        })
        .collect();
    for _ in 0..events {
        let qp = rng.below(connections) as usize;
        let connection = &mut all[qp];
        let expected = connection.receiver.expected().to_psn(Psn::new(0)).get();
        let ahead = connection.sent.saturating_sub(expected);
        let psn = match rng.below(16) {
            kind if kind < connection.repairs && ahead > 0 => match rng.below(8) {
                // The newest hole's start, or any packet in between.
                0 | 1 => connection
                    .receiver
                    .holes()
                    .map_or(expected, |holes| (expected & !0xffff) | u32::from(holes[0].start)),
                2 => expected + rng.below(ahead.into()) as u32,
                3 => expected.saturating_sub(1 + rng.below(9) as u32),
                _ => expected,
            },
            _ if ahead > slots + 20 => expected,
            _ => {
                if rng.below(1_000) < connection.losses {
                    connection.sent += 1 + rng.below(connection.burst) as u32;
                }
                connection.sent += 1;
                connection.sent - 1
            }
        };
        answer(&mut out, qp, psn, &mut connection.receiver, &mut pools)?;
    }
    out.flush()
}

fn answer(
    out: &mut impl Write,
    qp: usize,
    psn: u32,
    receiver: &mut Receiver<Recv>,
    pools: &mut Pools,
) -> io::Result<()> {
    let data = Data { psn: Psn::new(psn), payload: 0, last: false, retransmission: false, trimmed: false };
    let reply = receiver.handle_data(&mut Cx::at(Instant::ZERO), pools, &data, false);
    let verdict = match reply.verdict {
        DataVerdict::Accepted(_) => 0,
        DataVerdict::Released { .. } => 1,
        DataVerdict::Buffered(_) => 2,
        DataVerdict::Duplicate => 3,
        _ => 4,
    };
    let nack = u8::from(reply.ack.is_some_and(|ack| ack.kind == AckKind::Nack));
    write!(out, "{qp} {psn} {verdict} {nack} {}", receiver.expected().to_psn(Psn::new(0)).get())?;
    for hole in receiver.holes().unwrap_or_default() {
        write!(out, " {} {}", hole.start, hole.length)?;
    }
    let free = pools.receiving.blocks() - pools.receiving.in_use();
    writeln!(out, " {free}")
}
