//! Replay of event traces in the form that the IRN authors published with their hardware code
//! (section 6.2: "generating input event traces for each synthesized module").
//!
//! One event in, one line out; state is kept per queue pair seen, so a trace of any length needs no
//! more memory than its queue pairs. Reading and writing files is the caller's business: `Display`
//! prints the columns of an output line.

use alloc::collections::BTreeMap;
use core::fmt;

use selvedge_units::{Instant, Psn, Seq, Setting};
use selvedge_wire::{AckKind, Data};

use crate::on_chip::OnChip;
use crate::receiver::Receiver;
use crate::recovery::irn::hls::{Columns, Hls};
use crate::recovery::irn::{Completion, Completions, IrnConfig, Recv};
use crate::role::{Cx, Verdict};

/// Replays data-packet arrivals at IRN receivers (module `receiveData`), through the same engine
/// that simulations use. Every queue pair begins at PSN 0.
#[derive(Clone, Debug, Default)]
pub struct IrnReceiverReplay {
    queue_pairs: BTreeMap<u32, Responder>,
}

/// One queue pair's receiver and its completions.
#[derive(Clone, Debug)]
struct Responder {
    receiver: Receiver<Recv>,
    completions: Completions,
    messages: u64,
}

/// What a receiver answers to one arrival. `Display` prints `nack expected sack MSN CQEs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverLine {
    /// Whether the answer is a NACK: the packet lies beyond the expected one.
    pub nack: bool,
    /// The PSN expected after this packet (the cumulative acknowledgement).
    pub expected: Psn,
    /// The PSN that arrived, for ACKs too.
    pub sack: Psn,
    /// Messages completed so far, modulo 2^24.
    pub msn: u32,
    /// Receive work requests that this packet completed.
    pub cqes: u64,
}

impl IrnReceiverReplay {
    /// No queue pair seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The packet `psn` (24 bits) with BTH opcode `opcode` arrives at queue pair `qp`.
    pub fn on_arrival(&mut self, qp: u32, opcode: u8, psn: u32) -> ReceiverLine {
        let responder = self.queue_pairs.entry(qp).or_insert_with(Responder::new);
        responder.on_arrival(opcode, Psn::new(psn))
    }
}

impl Responder {
    fn new() -> Self {
        // The hardware's bitmap, not the sender's cap, is what bounds its receiver.
        let config = IrnConfig { bdp_cap: Setting::Value(128), ..IrnConfig::default() };
        Self {
            receiver: Receiver::with(Recv::new(&config), Psn::new(0)),
            completions: Completions::default(),
            messages: 0,
        }
    }

    fn on_arrival(&mut self, opcode: u8, psn: Psn) -> ReceiverLine {
        let before = self.receiver.expected();
        let data = Data { psn, payload: 0, last: false, retransmission: false, trimmed: false };
        let reply = self.receiver.on_data(&mut Cx::at(Instant::ZERO), &mut OnChip::default(), &data, false);
        let after = self.receiver.expected();
        let mut cqes = 0;
        if let Verdict::Accepted(seq) = reply.verdict {
            let completed = self.completions.on_accepted(seq, Completion::of_opcode(opcode), before, after);
            self.messages += completed.messages;
            cqes = completed.receives;
        }
        ReceiverLine {
            // The hardware NACKs a packet beyond its bitmap too; it only fails to record it.
            nack: reply.ack.is_none_or(|ack| ack.kind == AckKind::Nack),
            expected: after.to_psn(Psn::new(0)),
            sack: psn,
            msn: self.messages as u32 % Psn::MODULUS,
            cqes,
        }
    }
}

impl fmt::Display for ReceiverLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nack, expected, sack, msn, cqes } = *self;
        write!(f, "{} {} {} {msn} {cqes}", u8::from(nack), expected.get(), sack.get())
    }
}

/// Replays events at IRN senders (modules `txFree`, `receiveAck` and `timeout`) in `hls` mode, with
/// the conventions of the authors' testbench:
///
/// - the cap is 111 packets, and RTO_low applies to at most 3;
/// - all state begins at zero, also `findNewHole`, which the testbench leaves uninitialised;
/// - `rate_factor` is 1, so that it never extends a timeout;
/// - `txFree` knows of no flow end. When it offers a packet behind the flow's last, the testbench
///   decrements `nextSNtoSend` (also if that packet was a retransmission) and reports `0 0`;
///   everything else it did stands.
#[derive(Clone, Debug)]
pub struct IrnSenderReplay {
    flow_packets: u64,
    queue_pairs: BTreeMap<u32, Hls>,
}

/// One line of a sender's input trace, after the queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderEvent {
    /// `0`: the link is free.
    TxFree,
    /// `1 cumAck sackNo ackSyndrome`: an acknowledgement arrives.
    ReceiveAck {
        /// Cumulative acknowledgement: the next PSN that the receiver expects.
        expected: u32,
        /// The PSN that triggered it.
        sack: u32,
        /// Whether it is a NACK.
        nack: bool,
    },
    /// `2 quick`: the timer has fired.
    Timeout {
        /// Whether it was set to RTO_low.
        quick: bool,
    },
}

/// What a sender does at one event. `Display` prints `0 sent psn`, `1` or `2 extend`, and the seven
/// state columns `nextSNtoSend lastAckedPsn retransmitSN recoverSN doRetransmit inRecovery
/// findNewHole`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderLine {
    /// What it answers.
    pub outcome: SenderOutcome,
    /// The state after it.
    pub columns: Columns,
}

/// What a sender answers to an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderOutcome {
    /// It sends this packet, or none.
    TxFree(Option<Seq>),
    /// It takes note.
    ReceiveAck,
    /// It sends again, or waits on.
    Timeout {
        /// Whether it extends the timer to RTO_high.
        extend: bool,
    },
}

impl IrnSenderReplay {
    /// The cap of the published code.
    const CAP: u64 = 111;
    /// N of section 3.1.
    const LOW_PACKETS: u32 = 3;

    /// No queue pair seen yet; each has one flow of `flow_packets` packets (2807 in the published
    /// testbench).
    pub fn new(flow_packets: u64) -> Self {
        Self { flow_packets, queue_pairs: BTreeMap::new() }
    }

    /// `event` happens at queue pair `qp`.
    pub fn on_event(&mut self, qp: u32, event: SenderEvent) -> SenderLine {
        let hls = self.queue_pairs.entry(qp).or_insert_with(|| Hls::new(Self::CAP, Self::LOW_PACKETS));
        let outcome = match event {
            SenderEvent::TxFree => {
                let offered = hls.tx_free(Seq::new(u64::MAX));
                let is_beyond = offered.is_some_and(|seq| seq.index() >= self.flow_packets);
                if is_beyond {
                    hls.retract();
                }
                SenderOutcome::TxFree(offered.filter(|_| !is_beyond))
            }
            SenderEvent::ReceiveAck { expected, sack, nack } => {
                hls.receive_ack(Seq::new(expected.into()), Seq::new(sack.into()), nack);
                SenderOutcome::ReceiveAck
            }
            SenderEvent::Timeout { quick } => SenderOutcome::Timeout { extend: hls.timeout(quick) },
        };
        SenderLine { outcome, columns: hls.columns() }
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
