//! `selvedge replay`: event traces through the engines, line by line in constant memory.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::Path;

use selvedge_formats::irn_trace::{Events, SenderEventKind, receiver_events, sender_events};
use selvedge_transport::replay::{IrnReceiverReplay, IrnSenderReplay, SenderEvent};

use crate::args::{Engine, ReplayArgs};
use crate::output::{Failure, say, written};

pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    match &args.engine {
        Engine::IrnReceiver { file } => {
            let (input, name) = open(file)?;
            let mut receivers = IrnReceiverReplay::new();
            answer(receiver_events(input, &name), &name, |event| {
                receivers.on_arrival(event.qp, event.opcode, event.psn)
            })
        }
        Engine::IrnSender { file, flow_packets } => {
            let (input, name) = open(file)?;
            let mut senders = IrnSenderReplay::new(*flow_packets);
            answer(sender_events(input, &name), &name, |event| {
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
    mut engine: impl FnMut(E) -> A,
) -> Result<(), Failure>
where
    Events<R, E>: Iterator<Item = Result<E, selvedge_formats::FormatError>>,
{
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    for event in events.by_ref() {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                // What came before the error is right; show it.
                written(out.flush())?;
                return Err(Failure::input(error.to_string()));
            }
        };
        match writeln!(out, "{}", engine(event)) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            result => written(result)?,
        }
    }
    if let Some(warning) = events.warning() {
        say(&format!("warning: {name}:{}: {}", warning.line, warning.message));
    }
    written(out.flush())
}

/// The file, or standard input for "-", and its name for messages.
fn open(path: &Path) -> Result<(Box<dyn BufRead>, String), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::new(io::stdin())), "standard input".to_owned()));
    }
    let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
    Ok((Box::new(BufReader::with_capacity(1 << 16, file)), path.display().to_string()))
}
