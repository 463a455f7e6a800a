//! Command `selvedge replay`: event traces through the engines, line by line. Memory depends on the number of queue
//! pairs in a trace, not on its length. A program that writes a trace into a pipe sees the answers to all lines so far.

use std::cell::RefCell;
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, StdoutLock, Write};
use std::path::Path;

use selvedge_formats::irn_trace::{Events, SenderEventKind, receiver_events, sender_events};
use selvedge_transport::replay::{Hardware, IrnReceiverReplay, IrnSenderReplay, Map, SenderEvent};

use crate::args::{Engine, HardwareArgs, ReplayArgs};
use crate::output::{Failure, say, written};

pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let out = RefCell::new(BufWriter::with_capacity(CHUNK, io::stdout().lock()));
    match &args.engine {
        Engine::IrnReceiver { file, hardware } => {
            let (input, name) = open(file, &out)?;
            let (bitmap, state) = (hardware.bitmap, hardware.state);
            let mut receivers = IrnReceiverReplay::new(built(hardware));
            answer(receiver_events(input, &name), &name, &out, |event| {
                let line = receivers.on_arrival(event.qp, event.opcode, event.psn);
                let context = state.then(|| receivers.context(event.qp));
                Stated { line, maps: context.map_or_else(Vec::new, |context| vec![context.map1, context.map2]), bitmap }
            })
        }
        Engine::IrnSender { file, flow_packets, cap, low_packets, hardware } => {
            let (bitmap, state) = (hardware.bitmap, hardware.state);
            if *cap > bitmap {
                return Err(Failure::input(format!(
                    "--cap {cap}: a bitmap holds {bitmap} packets; give a cap of at most {bitmap}, or --bitmap {cap}"
                )));
            }
            let (input, name) = open(file, &out)?;
            let hardware = Hardware { cap: *cap, low_packets: *low_packets, ..built(hardware) };
            let mut senders = IrnSenderReplay::new(hardware, *flow_packets);
            answer(sender_events(input, &name), &name, &out, |event| {
                let kind = match event.kind {
                    SenderEventKind::TxFree => SenderEvent::TxFree,
                    SenderEventKind::Ack { cum, sack, nack } => SenderEvent::ReceiveAck { expected: cum, sack, nack },
                    SenderEventKind::Timeout { quick } => SenderEvent::Timeout { quick },
                };
                let line = senders.on_event(event.qp, kind);
                let sacks = state.then(|| senders.sacks(event.qp));
                Stated { line, maps: sacks.into_iter().collect(), bitmap }
            })
        }
    }
}

/// Returns the hardware that the arguments describe.
fn built(args: &HardwareArgs) -> Hardware {
    Hardware { bitmap: args.bitmap, is_guarded: args.wrap, ..Hardware::default() }
}

/// Output line, with bitmaps appended.
struct Stated<L> {
    line: L,
    maps: Vec<Box<[u64]>>,
    bitmap: u32,
}

impl<L: Display> Display for Stated<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.line)?;
        self.maps.iter().try_for_each(|words| write!(f, " {}", Map { words, bitmap: self.bitmap }))
    }
}

/// Prints the engine's answer to each event.
fn answer<R: BufRead, E, A: Display>(
    mut events: Events<R, E>,
    name: &str,
    out: &Output,
    mut engine: impl FnMut(E) -> A,
) -> Result<(), Failure>
where
    Events<R, E>: Iterator<Item = Result<E, selvedge_formats::FormatError>>,
{
    for event in events.by_ref() {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                // The output before the error is valid; show it.
                written(out.borrow_mut().flush())?;
                return Err(Failure::input(error.to_string()));
            }
        };
        match writeln!(out.borrow_mut(), "{}", engine(event)) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            result => written(result)?,
        }
    }
    if let Some(warning) = events.warning() {
        say(&format!("warning: {name}:{}: {}", warning.line, warning.message));
    }
    written(out.borrow_mut().flush())
}

/// Standard output, shared with the reader of the input.
type Output = RefCell<BufWriter<StdoutLock<'static>>>;

/// Reader that flushes standard output before each read, which may block.
struct Answered<'a, R> {
    input: R,
    out: &'a Output,
}

impl<R: Read> Read for Answered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Output that cannot be written stays in the buffer; the next write reports the error.
        let _ = self.out.borrow_mut().flush();
        self.input.read(buffer)
    }
}

/// Opens the file, or standard input for "-"; returns it with its name for messages.
fn open<'a>(path: &Path, out: &'a Output) -> Result<(Box<dyn BufRead + 'a>, String), Failure> {
    let (input, name): (Box<dyn Read>, _) = if path == Path::new("-") {
        (Box::new(io::stdin()), "standard input".to_owned())
    } else {
        let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
        (Box::new(file), path.display().to_string())
    };
    Ok((Box::new(BufReader::with_capacity(CHUNK, Answered { input, out })), name))
}

/// Bytes per read or write.
const CHUNK: usize = 1 << 16;
