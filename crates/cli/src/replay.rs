//! `selvedge replay`: event traces through the engines, line by line. Memory depends on the queue pairs that a trace is
//! of, not on its length. Whoever writes a trace into a pipe sees the answers to what came so far.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, StdoutLock, Write};
use std::path::Path;

use selvedge_formats::irn_trace::{Events, SenderEventKind, receiver_events, sender_events};
use selvedge_transport::replay::{IrnReceiverReplay, IrnSenderReplay, SenderEvent};

use crate::args::{Engine, ReplayArgs};
use crate::output::{Failure, say, written};

pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let out = RefCell::new(BufWriter::with_capacity(CHUNK, io::stdout().lock()));
    match &args.engine {
        Engine::IrnReceiver { file } => {
            let (input, name) = open(file, &out)?;
            let mut receivers = IrnReceiverReplay::new();
            answer(receiver_events(input, &name), &name, &out, |event| {
                receivers.on_arrival(event.qp, event.opcode, event.psn)
            })
        }
        Engine::IrnSender { file, flow_packets } => {
            let (input, name) = open(file, &out)?;
            let mut senders = IrnSenderReplay::new(*flow_packets);
            answer(sender_events(input, &name), &name, &out, |event| {
                let kind = match event.kind {
                    SenderEventKind::TxFree => SenderEvent::TxFree,
                    SenderEventKind::Ack { cum, sack, nack } => SenderEvent::ReceiveAck { expected: cum, sack, nack },
                    SenderEventKind::Timeout { quick } => SenderEvent::Timeout { quick },
                };
                senders.on_event(event.qp, kind)
            })
        }
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
                // What came before the error is right; show it.
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

/// Standard output, shared with the input that waits.
type Output = RefCell<BufWriter<StdoutLock<'static>>>;

/// A reader before which standard output is brought up to date: reading may take until somebody says more.
struct Answered<'a, R> {
    input: R,
    out: &'a Output,
}

impl<R: Read> Read for Answered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What cannot be written stays, and is told when more is.
        let _ = self.out.borrow_mut().flush();
        self.input.read(buffer)
    }
}

/// The file, or standard input for "-", and its name for messages.
fn open<'a>(path: &Path, out: &'a Output) -> Result<(Box<dyn BufRead + 'a>, String), Failure> {
    let (input, name): (Box<dyn Read>, _) = if path == Path::new("-") {
        (Box::new(io::stdin()), "standard input".to_owned())
    } else {
        let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
        (Box::new(file), path.display().to_string())
    };
    Ok((Box::new(BufReader::with_capacity(CHUNK, Answered { input, out })), name))
}

/// Bytes that are read and written at once.
const CHUNK: usize = 1 << 16;
