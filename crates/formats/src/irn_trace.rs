//! Event traces of the IRN authors' hardware modules (`irn-vivado-hls`).
//!
//! Both files begin with the number of events. The receiver's input has one data-packet arrival per
//! line, `qp opcode psn`. The sender's input has one event per line, `qp event fields`:
//!
//! ```text
//! <qp> 0                          the link is free for this queue pair (txFree)
//! <qp> 1 <cum> <sack> <nack>      an acknowledgement arrives (receiveAck)
//! <qp> 2 <quick>                  the timer expires (timeout)
//! ```
//!
//! Sequence numbers are PSNs, of 24 bits; larger ones are refused. The authors' modules count on where PSNs wrap
//! around.
//!
//! Readers hold one line at a time. A wrong count on the first line is a warning when the file has ended:
//! [`Events::warning`].

use std::io::BufRead;

use selvedge_units::words::plural;

use crate::text::{Lines, Word, Words};
use crate::{FormatError, Warning};

/// Arrival of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverEvent {
    /// Queue pair, numbered from 0.
    pub qp: u32,
    /// BTH opcode; 1 is RC SEND middle.
    pub opcode: u8,
    /// PSN of the packet, of 24 bits.
    pub psn: u32,
}

/// Event at a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderEvent {
    /// Queue pair, numbered from 0.
    pub qp: u32,
    /// Kind of the event.
    pub kind: SenderEventKind,
}

/// Kind of an event at a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEventKind {
    /// Link free: the sender may send a packet.
    TxFree,
    /// Arrival of an acknowledgement.
    Ack {
        /// Next sequence number that the receiver expects.
        cum: u32,
        /// Sequence number of the acknowledged packet.
        sack: u32,
        /// Whether the acknowledgement is a NACK: the packet was out of order.
        nack: bool,
    },
    /// Expiry of the timer.
    Timeout {
        /// Whether the timer had been set to `RTO_low`.
        quick: bool,
    },
}

/// Iterator over the events of a trace. Ends after an error.
pub struct Events<R, E> {
    lines: Lines<R>,
    state: State,
    declared: u64,
    count: u64,
    parse: ParseEvent<E>,
}

type ParseEvent<E> = fn(&mut Words<'_>) -> Result<E, FormatError>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    Body,
    End,
    Failed,
}

/// Creates a reader of the receiver's input.
///
/// ```
/// use selvedge_formats::irn_trace::{ReceiverEvent, receiver_events};
///
/// let mut events = receiver_events(&b"1\n24 1 0\n"[..], "recvInput.txt");
/// assert_eq!(events.next(), Some(Ok(ReceiverEvent { qp: 24, opcode: 1, psn: 0 })));
/// assert_eq!((events.next(), events.warning()), (None, None));
/// ```
pub fn receiver_events<R: BufRead>(input: R, file: &str) -> Events<R, ReceiverEvent> {
    Events::new(input, file, ReceiverEvent::parse)
}

/// Creates a reader of the sender's input.
pub fn sender_events<R: BufRead>(input: R, file: &str) -> Events<R, SenderEvent> {
    Events::new(input, file, SenderEvent::parse)
}

impl<R: BufRead, E> Events<R, E> {
    fn new(input: R, file: &str, parse: ParseEvent<E>) -> Self {
        Self { lines: Lines::new(input, file), state: State::Header, declared: 0, count: 0, parse }
    }

    /// Returns, once the file has ended, a warning if its first line gives another number of events than it has.
    pub fn warning(&self) -> Option<Warning> {
        let is_wrong = self.state == State::End && self.declared != self.count;
        is_wrong.then(|| {
            let (says, has) = (plural(self.declared, "event"), self.count);
            Warning::new(1, format!("the first line says {says}, the file has {has}: all are taken"))
        })
    }

    fn try_next(&mut self) -> Result<Option<E>, FormatError> {
        if self.state == State::Header {
            let expected = "the number of events";
            let mut words = self.lines.require_filled(expected)?.words();
            self.declared = words.require(expected)?.integer(expected, 0..=u64::MAX)?;
            if let Some(word) = words.next() {
                return Err(word.unexpected("the number of events alone in the first line"));
            }
            self.state = State::Body;
        }
        let Some(line) = self.lines.next_filled()? else { return Ok(None) };
        let mut words = line.words();
        let event = (self.parse)(&mut words)?;
        words.finish()?;
        self.count += 1;
        Ok(Some(event))
    }
}

impl<R: BufRead, E> Iterator for Events<R, E> {
    type Item = Result<E, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if matches!(self.state, State::End | State::Failed) {
            return None;
        }
        let next = self.try_next();
        match next {
            Ok(None) => self.state = State::End,
            Err(_) => self.state = State::Failed,
            Ok(Some(_)) => {}
        }
        next.transpose()
    }
}

impl ReceiverEvent {
    fn parse(words: &mut Words<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            qp: number(words, "a queue pair")?,
            opcode: words.require("an opcode")?.integer32("an opcode", 0..=255)? as u8,
            psn: psn(words, "a sequence number")?,
        })
    }
}

impl SenderEvent {
    fn parse(words: &mut Words<'_>) -> Result<Self, FormatError> {
        let qp = number(words, "a queue pair")?;
        let event = words.require("an event")?;
        let kind = match event.text() {
            "0" => SenderEventKind::TxFree,
            "1" => SenderEventKind::Ack {
                cum: psn(words, "the next expected sequence number")?,
                sack: psn(words, "the acknowledged sequence number")?,
                nack: flag(words, "the syndrome")?,
            },
            "2" => SenderEventKind::Timeout { quick: flag(words, "the quick flag")? },
            _ => return Err(event.unexpected("an event: 0 (txFree), 1 (receiveAck) or 2 (timeout)")),
        };
        Ok(Self { qp, kind })
    }
}

fn number(words: &mut Words<'_>, what: &str) -> Result<u32, FormatError> {
    words.require(what)?.integer32(what, 0..=u32::MAX)
}

fn psn(words: &mut Words<'_>, what: &str) -> Result<u32, FormatError> {
    words.require(what)?.integer32(what, 0..=(1 << 24) - 1)
}

fn flag(words: &mut Words<'_>, what: &str) -> Result<bool, FormatError> {
    let word: Word<'_> = words.require(what)?;
    word.integer32(what, 0..=1).map(|flag| flag == 1)
}
