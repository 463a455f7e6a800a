//! Benchmark of the copies out of a reorder buffer: MELO's figure 6(a) gives the share of a core that they take at 40
//! Gb/s.
//!
//! Run with `cargo bench -p selvedge-dataplane`. The metric `reordered` of `figures/melo/fig6a` gives the share of the
//! payload that is copied at each loss rate. The share of a core is `reordered`, times 4.6 GB/s (40 Gb/s without
//! headers), over the bytes per second that `release` prints here. The rate of `copy`, a plain copy, is the reference
//! for the machine.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use selvedge_nic::{ReorderBuffer, Spare};
use selvedge_units::Seq;

fn main() {
    divan::main();
}

/// Payload of a packet.
const PIECE: usize = 1024;
/// Packets of a reorder buffer: 512 KB, the figure's bandwidth-delay product.
const SLOTS: u32 = 512;
/// Packets of application memory: more than a cache holds.
const MEMORY: usize = 1 << 16;

/// Measures copies of runs of `run` packets from the reorder buffer to their destinations in memory.
#[divan::bench(args = [1, 10, 100, 450])]
fn release(bencher: Bencher<'_, '_>, run: u64) {
    let payload = vec![7; PIECE];
    let filled = || {
        let (mut buffer, mut spare) = (ReorderBuffer::new(run as u32), Spare::default());
        for seq in (0..run).map(Seq::new) {
            buffer.keep(seq, seq, PIECE as u32, &mut spare, |into| into.extend_from_slice(&payload));
        }
        (buffer, spare)
    };
    let mut memory = vec![0u8; MEMORY * PIECE];
    let mut first = 0;
    let bytes = BytesCount::new(run as usize * PIECE);
    bencher.counter(bytes).with_inputs(filled).bench_local_values(|(mut buffer, mut spare)| {
        for kept in (0..run).filter_map(|seq| buffer.take(Seq::new(seq))) {
            let nth = (first + kept.destination.index()) as usize % MEMORY;
            memory[nth * PIECE..][..PIECE].copy_from_slice(&kept.payload);
            spare.give(kept.payload);
        }
        first += run;
        (buffer, spare)
    });
    black_box(&memory);
}

/// Measures a plain copy of `run` packets in one piece.
#[divan::bench(args = [1, 10, 100, 450])]
fn copy(bencher: Bencher<'_, '_>, run: usize) {
    let from = vec![7; SLOTS as usize * PIECE];
    let mut memory = vec![0u8; MEMORY * PIECE];
    let mut at = 0;
    bencher.counter(BytesCount::new(run * PIECE)).bench_local(|| {
        if at + run > MEMORY {
            at = 0;
        }
        memory[at * PIECE..][..run * PIECE].copy_from_slice(&from[..run * PIECE]);
        at += run;
    });
    black_box(&memory);
}
