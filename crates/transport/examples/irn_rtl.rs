//! Input of the SystemVerilog modules in `rtl/`, from the engines: the contexts' layout, and events with the engine's
//! answers to check the modules by. `cargo xtask rtl` calls it.
//!
//! ```text
//! irn_rtl context FOLDER                              writes FOLDER/irn_receiver.svh, ...
//! irn_rtl vectors MODULE BITMAP EVENTS SEED           writes a line per event: the module's input, and its output
//! irn_rtl replay MODULE BITMAP FILE                   writes them for a trace of selvedge run --trace-events
//! ```
//!
//! A module's input is the event and the context before it, its output the answer and the context after it, each as
//! one hexadecimal number, in the order of the ports of `rtl/sim/flat_<module>.sv`.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use selvedge_transport::recovery::irn::context::{Bits, RECEIVER, ReceiverContext, SENDER, TIMER};
use selvedge_transport::recovery::irn::hls::Hls;
use selvedge_transport::replay::{Hardware, IrnReceiverReplay};
use selvedge_units::{Domain, Psn, Rng, Seq};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["context", folder] => write_contexts(folder),
        ["vectors", module, bitmap, events, seed] => match (bitmap.parse(), events.parse(), seed.parse()) {
            (Ok(bitmap), Ok(events), Ok(seed)) => write_vectors(module, bitmap, events, seed),
            _ => Err(io::Error::other("BITMAP, EVENTS and SEED are numbers")),
        },
        ["replay", module, bitmap, file] => match bitmap.parse() {
            Ok(bitmap) => replay_vectors(module, bitmap, file),
            Err(_) => Err(io::Error::other("BITMAP is a number")),
        },
        _ => Err(io::Error::other(
            "usage: irn_rtl context FOLDER | vectors MODULE BITMAP EVENTS SEED | replay MODULE BITMAP FILE",
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough: it found a difference and says so.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn write_contexts(folder: &str) -> io::Result<()> {
    for layout in [RECEIVER, SENDER, TIMER] {
        std::fs::write(format!("{folder}/irn_{}.svh", layout.name), layout.system_verilog())?;
    }
    Ok(())
}

/// Queue pairs whose events are mixed.
const QUEUE_PAIRS: usize = 32;
/// Events until one of them begins anew, on average.
const LIFE: u64 = 4_000;

fn write_vectors(module: &str, bitmap: u32, events: u64, seed: u64) -> io::Result<()> {
    let mut out =
        Lines { out: BufWriter::with_capacity(1 << 20, io::stdout().lock()), left: events, text: String::new() };
    let rng = Rng::stream(seed, Domain::Impairment, u64::from(bitmap));
    match module {
        "receive_data" => receivers(&mut out, bitmap, rng)?,
        "tx_free" | "receive_ack" | "timeout" => senders(&mut out, module, bitmap, rng)?,
        _ => {
            return Err(io::Error::other(format!("no module {module:?}: receive_data, tx_free, receive_ack, timeout")));
        }
    }
    out.out.flush()
}

/// The lines that are still to be written.
struct Lines<W> {
    out: W,
    left: u64,
    text: String,
}

impl<W: Write> Lines<W> {
    fn write(&mut self, input: &Bits, output: &Bits) -> io::Result<()> {
        self.text.clear();
        input.write_hex(&mut self.text);
        self.text.push(' ');
        output.write_hex(&mut self.text);
        self.text.push('\n');
        self.left -= 1;
        self.out.write_all(self.text.as_bytes())
    }
}

fn push_psn(bits: &mut Bits, psn: Psn) {
    bits.push(psn.get().into(), 24);
}

/// A PSN to begin at: every third one is about to wrap.
fn first_psn(rng: &mut Rng) -> Psn {
    let any = rng.next_u64() as u32;
    if rng.below(3) == 0 { Psn::new(Psn::MODULUS - 1 - any % 500) } else { Psn::new(any) }
}

/// `psn` moved by so many packets, in either direction.
fn moved(psn: Psn, by: i64) -> Psn {
    Psn::new((i64::from(psn.get()) + by) as u32)
}

fn receivers(out: &mut Lines<impl Write>, bitmap: u32, mut rng: Rng) -> io::Result<()> {
    let hardware = Hardware { bitmap, is_guarded: true, ..Hardware::default() };
    let mut replay = IrnReceiverReplay::new(hardware);
    let mut contexts = vec![ReceiverContext::default(); QUEUE_PAIRS];
    // How often the head arrives, in 64ths, and up to where packets were sent in order.
    let mut habits = vec![(0, Psn::new(0)); QUEUE_PAIRS];
    let (mut input, mut output) = (Bits::default(), Bits::default());
    for step in 0.. {
        if out.left == 0 {
            break;
        }
        let qp = rng.below(QUEUE_PAIRS as u64) as usize;
        if step < QUEUE_PAIRS || rng.below(LIFE) == 0 {
            let qp = if step < QUEUE_PAIRS { step } else { qp };
            let first = first_psn(&mut rng);
            replay.reset(qp as u32, first);
            contexts[qp] = replay.context(qp as u32);
            habits[qp] = ([1, 4, 16, 40][rng.below(4) as usize], first);
            continue;
        }
        let expected = contexts[qp].expected;
        let (heads, sent) = &mut habits[qp];
        if sent.ahead_of(expected) <= 0 {
            *sent = expected.plus(1);
        }
        let reach = i64::from(bitmap);
        let psn = match rng.below(64) {
            kind if kind < *heads => expected,
            0..48 => {
                // In order but for the head.
                let psn = *sent;
                *sent = sent.plus(1 + u32::from(rng.below(40) == 0));
                if i64::from(sent.ahead_of(expected)) > reach { expected } else { psn }
            }
            48..56 => moved(expected, rng.below(bitmap.into()) as i64),
            56..59 => moved(expected, -(rng.below(300) as i64)),
            59..61 => moved(expected, reach - 2 + rng.below(5) as i64),
            61 => moved(expected, (1 << 23) - 2 + rng.below(5) as i64),
            _ => Psn::new(rng.next_u64() as u32),
        };
        let opcode = match rng.below(3) {
            0 => 1,
            1 => rng.below(32) as u8,
            _ => [2, 4, 8, 9, 10, 11, 12, 19, 22, 23, 29][rng.below(11) as usize],
        };
        arrive(&mut replay, bitmap, qp as u32, opcode, psn, &mut contexts[qp], [&mut input, &mut output]);
        out.write(&input, &output)?;
    }
    Ok(())
}

/// A packet arrives at a queue pair with this context: the module's input and output.
fn arrive(
    replay: &mut IrnReceiverReplay,
    bitmap: u32,
    qp: u32,
    opcode: u8,
    psn: Psn,
    context: &mut ReceiverContext,
    [input, output]: [&mut Bits; 2],
) {
    input.clear();
    input.push(opcode.into(), 5);
    push_psn(input, psn);
    context.pack(bitmap, input);
    let line = replay.on_arrival(qp, opcode, psn.get());
    *context = replay.context(qp);
    output.clear();
    output.push(line.nack.into(), 1);
    push_psn(output, line.expected);
    output.push(line.msn.into(), 24);
    push_psn(output, line.sack);
    output.push(line.cqes, bitmap.ilog2() + 1);
    context.pack(bitmap, output);
}

/// A sender, the cap that it was built with, and how often it may send, in 16ths.
struct Endpoint {
    hls: Hls,
    cap: u32,
    low_packets: u32,
    eagerness: u64,
    losses: u64,
}

fn senders(out: &mut Lines<impl Write>, module: &str, bitmap: u32, mut rng: Rng) -> io::Result<()> {
    let begin = |rng: &mut Rng| {
        let cap = if rng.below(4) == 0 { 1 + rng.below(bitmap.into()) as u32 } else { bitmap - bitmap / 8 };
        let low_packets = rng.below(6) as u32;
        let hls = Hls::guarded(first_psn(rng), bitmap.into(), cap.into(), low_packets);
        Endpoint { hls, cap, low_packets, eagerness: 2 + rng.below(12), losses: rng.below(8) }
    };
    let mut endpoints: Vec<Endpoint> = (0..QUEUE_PAIRS).map(|_| begin(&mut rng)).collect();
    let (mut input, mut output) = (Bits::default(), Bits::default());
    while out.left > 0 {
        let qp = rng.below(QUEUE_PAIRS as u64) as usize;
        if rng.below(LIFE) == 0 {
            endpoints[qp] = begin(&mut rng);
        }
        let Endpoint { hls, cap, low_packets, eagerness, losses } = &mut endpoints[qp];
        input.clear();
        output.clear();
        let kind = match rng.below(32) {
            0 => "timeout",
            kind if kind / 2 < *eagerness => "tx_free",
            _ => "receive_ack",
        };
        let is_written = kind == module;
        let bits = is_written.then_some(&mut input);
        let answer = match kind {
            "tx_free" => tx_free(hls, bitmap, *cap, &mut rng, bits),
            "receive_ack" => receive_ack(hls, bitmap, *losses, &mut rng, bits),
            _ => timeout(hls, bitmap, *low_packets, &mut rng, bits),
        };
        if is_written {
            answer.pack(hls, bitmap, &mut output);
            out.write(&input, &output)?;
        }
    }
    Ok(())
}

/// Where to write the module's input, if it is this module's turn.
type Input<'a> = Option<&'a mut Bits>;

/// Outputs of a module beside its context.
enum Answer {
    Sent(Option<Seq>),
    Nothing,
    Extend { extend: bool, quick: bool, rate_factor: u32 },
}

impl Answer {
    fn pack(&self, hls: &Hls, bitmap: u32, output: &mut Bits) {
        let context = hls.context(bitmap);
        match *self {
            Self::Sent(sent) => {
                output.push(sent.is_some().into(), 1);
                output.push(sent.map_or(0, Seq::index), 24);
                context.pack(bitmap, output);
            }
            Self::Nothing => context.pack(bitmap, output),
            Self::Extend { extend, quick, rate_factor } => {
                output.push(extend.into(), 1);
                context.pack_timer(quick, rate_factor, output);
            }
        }
    }
}

fn tx_free(hls: &mut Hls, bitmap: u32, cap: u32, rng: &mut Rng, input: Input<'_>) -> Answer {
    let next = hls.columns().next;
    let limit = match rng.below(8) {
        0 => Some(Seq::new(next.index() + rng.below(3))),
        1 => Some(Seq::new(next.index() + rng.below(1 << 23))),
        2 => Some(Seq::new(next.index() - rng.below(1 << 22))),
        _ => None,
    };
    if let Some(bits) = input {
        bits.push(cap.into(), 24);
        bits.push(limit.is_some().into(), 1);
        bits.push(limit.map_or_else(|| rng.next_u64(), Seq::index), 24);
        hls.context(bitmap).pack(bitmap, bits);
    }
    Answer::Sent(hls.tx_free(limit.unwrap_or(Seq::new(u64::MAX))))
}

fn receive_ack(hls: &mut Hls, bitmap: u32, losses: u64, rng: &mut Rng, input: Input<'_>) -> Answer {
    let columns = hls.columns();
    let psn = |seq: Seq| seq.to_psn(Psn::new(0));
    let (acked, next) = (psn(columns.acked), psn(columns.next));
    let in_flight = columns.next - columns.acked;
    let cum = match rng.below(64) {
        kind if kind < 24 + 4 * losses => acked,
        0..56 => moved(acked, rng.below(in_flight + 1) as i64),
        56..60 => moved(acked, -(rng.below(200) as i64)),
        60 => psn(columns.recover).plus(rng.below(3) as u32),
        61 => moved(acked, rng.below(3 * u64::from(bitmap)) as i64),
        62 if rng.below(8) == 0 => {
            let edge = [1 << 22, -(1 << 22), 1 << 23, 1 << 21][rng.below(4) as usize];
            moved(acked, edge - 2 + rng.below(5) as i64)
        }
        63 if rng.below(8) == 0 => Psn::new(rng.next_u64() as u32),
        _ => acked,
    };
    let reach = i64::from(bitmap);
    let sack = match rng.below(32) {
        0..14 => moved(cum, rng.below(in_flight + 1) as i64),
        14..20 => moved(next, -1 - (rng.below(4) as i64)),
        20..24 => psn(columns.retransmit),
        24 | 25 => moved(cum, -(rng.below(2 * u64::from(bitmap)) as i64)),
        26 => moved(cum, reach - 2 + rng.below(5) as i64),
        27 => cum,
        28 => Psn::new(rng.next_u64() as u32),
        _ => moved(cum, rng.below(bitmap.into()) as i64),
    };
    let nack = rng.below(8) > 2;
    if let Some(bits) = input {
        bits.push(nack.into(), 1);
        push_psn(bits, cum);
        push_psn(bits, sack);
        hls.context(bitmap).pack(bitmap, bits);
    }
    hls.receive_ack_of(cum, sack, nack);
    Answer::Nothing
}

fn timeout(hls: &mut Hls, bitmap: u32, low_packets: u32, rng: &mut Rng, input: Input<'_>) -> Answer {
    let quick = rng.below(2) == 0;
    let rate_factor = if rng.below(8) == 0 { Psn::new(rng.next_u64() as u32).get() } else { rng.below(7) as u32 };
    if let Some(bits) = input {
        bits.push(low_packets.into(), 24);
        hls.context(bitmap).pack_timer(quick, rate_factor, bits);
    }
    Answer::Extend { extend: hls.timeout(quick, rate_factor), quick, rate_factor }
}

/// A trace's events, its first line the number of events, all queue pairs beginning at PSN 0.
fn replay_vectors(module: &str, bitmap: u32, file: &str) -> io::Result<()> {
    let text = std::fs::read_to_string(file).map_err(|error| io::Error::other(format!("{file}: {error}")))?;
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut lines = Lines { out: &mut out, left: u64::MAX, text: String::new() };
    let hardware = Hardware { bitmap, is_guarded: true, ..Hardware::default() };
    let mut receivers = IrnReceiverReplay::new(hardware);
    let mut contexts: BTreeMap<u32, ReceiverContext> = BTreeMap::new();
    let mut senders: BTreeMap<u32, Hls> = BTreeMap::new();
    let cap = bitmap - bitmap / 8;
    let (mut input, mut output) = (Bits::default(), Bits::default());
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        let wrong = || io::Error::other(format!("{file}:{number}: not an event of {module}: {line:?}"));
        let words: Option<Vec<u32>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        let words = words.ok_or_else(wrong)?;
        input.clear();
        output.clear();
        if module == "receive_data" {
            let &[qp, opcode @ 0..32, psn] = &words[..] else { return Err(wrong()) };
            let context = contexts.entry(qp).or_insert_with(|| receivers.context(qp));
            arrive(&mut receivers, bitmap, qp, opcode as u8, Psn::new(psn), context, [&mut input, &mut output]);
            lines.write(&input, &output)?;
            continue;
        }
        let [qp, event @ ..] = &words[..] else { return Err(wrong()) };
        let hls =
            senders.entry(*qp).or_insert_with(|| Hls::guarded(Psn::new(0), bitmap.into(), cap.into(), LOW_PACKETS));
        let (kind, answer) = match *event {
            [0] => {
                input.push(cap.into(), 24);
                input.push(0, 25);
                hls.context(bitmap).pack(bitmap, &mut input);
                ("tx_free", Answer::Sent(hls.tx_free(Seq::new(u64::MAX))))
            }
            [1, cum, sack, nack @ 0..2] => {
                input.push(nack.into(), 1);
                push_psn(&mut input, Psn::new(cum));
                push_psn(&mut input, Psn::new(sack));
                hls.context(bitmap).pack(bitmap, &mut input);
                hls.receive_ack_of(Psn::new(cum), Psn::new(sack), nack == 1);
                ("receive_ack", Answer::Nothing)
            }
            [2, quick @ 0..2] => {
                let (quick, rate_factor) = (quick == 1, 1);
                input.push(LOW_PACKETS.into(), 24);
                hls.context(bitmap).pack_timer(quick, rate_factor, &mut input);
                ("timeout", Answer::Extend { extend: hls.timeout(quick, rate_factor), quick, rate_factor })
            }
            _ => return Err(wrong()),
        };
        if kind == module {
            answer.pack(hls, bitmap, &mut output);
            lines.write(&input, &output)?;
        }
    }
    out.flush()
}

/// N of section 3.1, in the paper's experiments.
const LOW_PACKETS: u32 = 3;
