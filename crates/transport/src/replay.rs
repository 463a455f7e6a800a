//! Replay of event traces in the form that the IRN authors published with their hardware code
//! (section 6.2: "generating input event traces for each synthesized module").
//!
//! Each event yields one output line. State is kept per queue pair, so memory does not grow with the length of a trace.
//! The caller reads and writes files: `Display` prints the columns of an output line.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::fmt;

use selvedge_units::{Instant, Psn, Seq};
use selvedge_wire::{AckKind, Data};

use crate::receiver::Receiver;
use crate::recovery::irn::context::{ReceiverContext, SenderContext};
use crate::recovery::irn::hls::{Columns, Hls};
use crate::recovery::irn::{Completion, Completions, Recv};
use crate::role::{Cx, DataVerdict};

/// Parameters of the hardware that a trace was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hardware {
    /// Size of a bitmap, in packets.
    pub bitmap: u32,
    /// Limit on packets in flight (BDP-FC), at most `bitmap`.
    pub cap: u32,
    /// Limit on packets in flight up to which RTO_low applies (N of section 3.1).
    pub low_packets: u32,
    /// The first PSN of every queue pair if the hardware is guarded; 0 otherwise.
    pub first: Psn,
    /// Whether numbers wrap and are checked, like in this project's modules (`rtl/`). Otherwise numbers do not wrap and
    /// nothing is checked, like in the authors' code.
    pub is_guarded: bool,
}

impl Default for Hardware {
    /// Returns the parameters of the authors' code and testbench at 40 Gb/s.
    fn default() -> Self {
        Self { bitmap: 128, cap: 111, low_packets: 3, first: Psn::new(0), is_guarded: false }
    }
}

/// Replays data-packet arrivals at IRN receivers (module `receiveData`), through the same engine
/// that simulations use. Every queue pair begins at PSN 0 unless the hardware says otherwise.
#[derive(Clone, Debug, Default)]
pub struct IrnReceiverReplay {
    hardware: Hardware,
    queue_pairs: BTreeMap<u32, Responder>,
}

/// One queue pair's receiver and its completions.
#[derive(Clone, Debug)]
struct Responder {
    hardware: Hardware,
    receiver: Receiver<Recv>,
    completions: Completions,
    messages: u64,
}

/// The output of a receiver for one arrival. `Display` prints `nack expected sack MSN CQEs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverLine {
    /// Whether the answer is a NACK: the packet lies beyond the expected one.
    pub nack: bool,
    /// The PSN expected after this packet (the cumulative acknowledgement).
    pub expected: Psn,
    /// The PSN that arrived, for ACKs as well as NACKs.
    pub sack: Psn,
    /// Messages completed so far, modulo 2^24.
    pub msn: u32,
    /// Receive work requests that this packet completed.
    pub cqes: u64,
}

impl IrnReceiverReplay {
    /// Creates a replay without queue pairs.
    pub fn new(hardware: Hardware) -> Self {
        Self { hardware, queue_pairs: BTreeMap::new() }
    }

    /// Handles the arrival of packet `psn` (24 bits) with BTH opcode `opcode` at queue pair `qp`.
    pub fn on_arrival(&mut self, qp: u32, opcode: u8, psn: u32) -> ReceiverLine {
        let hardware = self.hardware;
        let responder = self.queue_pairs.entry(qp).or_insert_with(|| Responder::new(hardware));
        responder.on_arrival(opcode, Psn::new(psn))
    }
    /// Returns the context of queue pair `qp`.
    pub fn context(&self, qp: u32) -> ReceiverContext {
        let fresh;
        let responder = match self.queue_pairs.get(&qp) {
            Some(responder) => responder,
            None => {
                fresh = Responder::new(self.hardware);
                &fresh
            }
        };
        responder.context()
    }
    /// Resets queue pair `qp`, to PSN `first` if the hardware is guarded.
    pub fn reset(&mut self, qp: u32, first: Psn) {
        self.queue_pairs.insert(qp, Responder::new(Hardware { first, ..self.hardware }));
    }
}

impl Responder {
    fn new(hardware: Hardware) -> Self {
        // The hardware's bitmap, not the sender's cap, limits the receiver.
        let receiver = Recv::with_window(u64::from(hardware.bitmap), false);
        let first = if hardware.is_guarded { hardware.first } else { Psn::new(0) };
        Self {
            hardware: Hardware { first, ..hardware },
            receiver: Receiver::with(receiver, first),
            completions: Completions::default(),
            messages: 0,
        }
    }

    fn on_arrival(&mut self, opcode: u8, psn: Psn) -> ReceiverLine {
        let before = self.receiver.expected();
        let data = Data { psn, payload: 0, last: false, retransmission: false, trimmed: false };
        let reply = self.receiver.handle_data(&mut Cx::at(Instant::ZERO), &mut (), &data, false);
        let after = self.receiver.expected();
        let mut cqes = 0;
        if let DataVerdict::Accepted(seq) = reply.verdict {
            let completed = self.completions.on_accepted(seq, Completion::of_opcode(opcode), before, after);
            self.messages += completed.messages;
            cqes = completed.receives;
        }
        // Hardware whose numbers wrap takes a packet from before the first one for an old one.
        let is_old = self.hardware.is_guarded && psn.near(before, self.hardware.first).is_none();
        ReceiverLine {
            // The hardware NACKs a packet beyond its bitmap, too; only the bitmap does not record it.
            nack: reply.ack.map_or(!is_old, |ack| ack.kind == AckKind::Nack),
            expected: after.to_psn(self.hardware.first),
            sack: psn,
            msn: self.messages as u32 % Psn::MODULUS,
            cqes,
        }
    }

    fn context(&self) -> ReceiverContext {
        let expected = self.receiver.expected();
        let words = self.hardware.bitmap.div_ceil(64) as usize;
        let (mut map1, mut map2) = (alloc::vec![0u64; words], alloc::vec![0u64; words]);
        for offset in 0..self.hardware.bitmap {
            let seq = expected + u64::from(offset);
            if !self.receiver.has(seq) {
                continue;
            }
            let (word, bit) = ((offset / 64) as usize, 1u64 << (offset % 64));
            let waiting = self.completions.waiting(expected, seq);
            if waiting != Completion::Message {
                map1[word] |= bit;
            }
            if waiting != Completion::Nothing {
                map2[word] |= bit;
            }
        }
        ReceiverContext {
            expected: expected.to_psn(self.hardware.first),
            msn: self.messages as u32 % Psn::MODULUS,
            map1: map1.into(),
            map2: map2.into(),
        }
    }
}

/// A bitmap of `bitmap` bits that `Display` prints as a hexadecimal number, packet 0 in the lowest bit.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    /// The bits, lowest word first.
    pub words: &'a [u64],
    /// Number of bits.
    pub bitmap: u32,
}

impl fmt::Display for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for digit in (0..self.bitmap.div_ceil(4)).rev() {
            let word = self.words.get((digit / 16) as usize).copied().unwrap_or_default();
            write!(f, "{:x}", word >> (4 * (digit % 16)) & 0xf)?;
        }
        Ok(())
    }
}

impl fmt::Display for ReceiverLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nack, expected, sack, msn, cqes } = *self;
        write!(f, "{} {} {} {msn} {cqes}", u8::from(nack), expected.get(), sack.get())
    }
}

/// Replays events at IRN senders (modules `txFree`, `receiveAck` and `timeout`) in `hls` mode.
///
/// With [`Hardware::default`], follows the conventions of the authors' testbench:
/// - the cap is 111 packets, and RTO_low applies to at most 3;
/// - all state begins at zero, including `findNewHole`, which the testbench leaves uninitialised;
/// - `rate_factor` is 1, so that it never extends a timeout;
/// - `txFree` does not know the flow's end. When it offers a packet behind the flow's last, the testbench decrements
///   `nextSNtoSend` (also if that packet was a retransmission) and reports `0 0`; all other effects of the call remain.
///
/// Guarded hardware knows the flow's end: behind it, `txFree` offers no packet.
#[derive(Clone, Debug)]
pub struct IrnSenderReplay {
    hardware: Hardware,
    flow_packets: u64,
    queue_pairs: BTreeMap<u32, Requester>,
}

/// One queue pair's sender, and the end of its flow.
#[derive(Clone, Debug)]
struct Requester {
    hls: Hls,
    limit: Seq,
}

/// One line of a sender's input trace, without the queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// `0`: the link is free.
    TxFree,
    /// `1 cumAck sackNo ackSyndrome`: an acknowledgement arrives.
    ReceiveAck {
        /// Cumulative acknowledgement: the next PSN that the receiver expects.
        expected: u32,
        /// The PSN that triggered the acknowledgement.
        sack: u32,
        /// Whether the acknowledgement is a NACK.
        nack: bool,
    },
    /// `2 quick`: the timer has fired.
    Timeout {
        /// Whether the timer was set to RTO_low.
        quick: bool,
    },
}

/// The output of a sender for one event. `Display` prints `0 sent psn`, `1` or `2 extend`, and the seven state columns
/// `nextSNtoSend lastAckedPsn retransmitSN recoverSN doRetransmit inRecovery findNewHole`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderLine {
    /// The sender's answer to the event.
    pub outcome: SenderOutcome,
    /// The state after the event.
    pub columns: Columns,
}

/// A sender's answer to an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// The packet to send when the link is free, if any.
    TxFree(Option<Seq>),
    /// An acknowledgement was handled.
    ReceiveAck,
    /// A timeout was handled: the sender retransmits, or extends the timer.
    Timeout {
        /// Whether the sender extends the timer to RTO_high.
        extend: bool,
    },
}

impl IrnSenderReplay {
    /// Creates a replay without queue pairs, whose flows have `flow_packets` packets each (2807 in the published
    /// testbench).
    pub fn new(hardware: Hardware, flow_packets: u64) -> Self {
        Self { hardware, flow_packets, queue_pairs: BTreeMap::new() }
    }

    /// Handles `event` at queue pair `qp`.
    pub fn on_event(&mut self, qp: u32, event: SenderEvent) -> SenderLine {
        let (hardware, flow_packets) = (self.hardware, self.flow_packets);
        let requester = self.queue_pairs.entry(qp).or_insert_with(|| Requester::new(&hardware, flow_packets));
        let hls = &mut requester.hls;
        let outcome = match event {
            SenderEvent::TxFree if hardware.is_guarded => SenderOutcome::TxFree(hls.tx_free(requester.limit)),
            SenderEvent::TxFree => {
                let offered = hls.tx_free(Seq::new(u64::MAX));
                let is_beyond = offered.is_some_and(|seq| seq.index() >= flow_packets);
                if is_beyond {
                    hls.retract();
                }
                SenderOutcome::TxFree(offered.filter(|_| !is_beyond))
            }
            SenderEvent::ReceiveAck { expected, sack, nack } if hardware.is_guarded => {
                hls.receive_ack_of(Psn::new(expected), Psn::new(sack), nack);
                SenderOutcome::ReceiveAck
            }
            SenderEvent::ReceiveAck { expected, sack, nack } => {
                hls.receive_ack(Seq::new(expected.into()), Seq::new(sack.into()), nack);
                SenderOutcome::ReceiveAck
            }
            SenderEvent::Timeout { quick } => SenderOutcome::Timeout { extend: hls.timeout(quick, 1) },
        };
        // The columns hold sequence numbers; guarded hardware has PSNs.
        let shown = |seq: Seq| if hardware.is_guarded { Seq::new(seq.to_psn(Psn::new(0)).get().into()) } else { seq };
        let outcome = match outcome {
            SenderOutcome::TxFree(sent) => SenderOutcome::TxFree(sent.map(shown)),
            outcome => outcome,
        };
        let columns = hls.columns();
        let columns = Columns {
            next: shown(columns.next),
            acked: shown(columns.acked),
            retransmit: shown(columns.retransmit),
            recover: shown(columns.recover),
            ..columns
        };
        SenderLine { outcome, columns }
    }

    /// Returns the bitmap of selective acknowledgements of queue pair `qp`.
    pub fn sacks(&self, qp: u32) -> Box<[u64]> {
        let bitmap = u64::from(self.hardware.bitmap);
        self.queue_pairs.get(&qp).map_or_else(|| Hls::new(1, 0).sacks(bitmap), |requester| requester.hls.sacks(bitmap))
    }
}

impl Requester {
    fn new(hardware: &Hardware, flow_packets: u64) -> Self {
        let Hardware { bitmap, cap, low_packets, first, is_guarded } = *hardware;
        let hls = if is_guarded {
            Hls::guarded(first, bitmap.into(), cap.into(), low_packets)
        } else {
            Hls::with_bitmap(bitmap.into(), cap.into(), low_packets)
        };
        let limit = Seq::new(hls.columns().next.index().saturating_add(flow_packets));
        Self { hls, limit }
    }
}

impl Hls {
    /// Returns the whole context, with a bitmap of `bitmap` packets.
    pub fn context(&self, bitmap: u32) -> SenderContext {
        SenderContext { columns: self.columns(), sacks: self.sacks(bitmap.into()) }
    }
}

impl fmt::Display for SenderLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome {
            SenderOutcome::TxFree(Some(seq)) => write!(f, "0 1 {}", seq.index()),
            SenderOutcome::TxFree(None) => f.write_str("0 0 0"),
            SenderOutcome::ReceiveAck => f.write_str("1"),
            SenderOutcome::Timeout { extend } => write!(f, "2 {}", u8::from(extend)),
        }?;
        write!(f, " {}", self.columns)
    }
}
