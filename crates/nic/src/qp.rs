//! Queue pairs: an engine and what the NIC needs to know about its flow.

use selvedge_transport::{Feedback, Receiver, Sender};
use selvedge_units::{Bytes, HostId, Instant, QpNumber, Seq};
use selvedge_wire::eqds::Flags;
use selvedge_wire::{AckKind, Repr};

/// A message to send: what [`crate::Nic::open_sender`] asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Who shall get it.
    pub dst: HostId,
    /// Payload; above zero.
    pub size: Bytes,
    /// What ECMP hashes.
    pub entropy: u32,
    /// Traffic class of its data; one of [`crate::NicParams::data_classes`].
    pub class: u8,
    /// Links that its packets cross; zero where that is not known.
    pub links: u32,
    /// The caller's own name for it, returned on completion.
    pub context: u32,
    /// Whether it goes by TCP; [`crate::NicParams::tcp`] says how.
    pub is_tcp: bool,
}

/// What a packet finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Everything sent on this queue pair is acknowledged.
    Sent {
        /// The queue pair.
        qp: QpNumber,
        /// What the caller named it.
        context: u32,
    },
    /// Everything expected on this queue pair has arrived.
    Received {
        /// Who sent it.
        src: HostId,
        /// The queue pair.
        qp: QpNumber,
        /// What the caller named it.
        context: u32,
        /// Arrivals of data that had arrived before.
        duplicates: u32,
    },
}

/// News for the sending end of a queue pair that travels outside the fabric: an RTT sample where data is
/// not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Who shall get it.
    pub to: HostId,
    /// The queue pair, and where it is kept there.
    pub qp: QpNumber,
    /// See `qp`.
    pub slot: u32,
    /// When the packet left that has just arrived.
    pub sent_at: Instant,
    /// Bytes on the wire that have arrived since the report before.
    pub bytes: Bytes,
}

/// What a NIC has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct NicStats {
    /// Data packets put on the wire, retransmissions included.
    pub data_sent: u64,
    /// Of these, how many had been sent before. Through EQDS's tunnels, what stacks hand over again and what tunnels
    /// send again: more than `data_sent`, perhaps.
    pub retransmissions: u64,
    /// Acknowledgements put on the wire.
    pub acks_sent: u64,
    /// Of these, negative ones.
    pub nacks_sent: u64,
    /// Congestion notifications put on the wire.
    pub cnps_sent: u64,
    /// Data packets that arrived for a queue pair known here.
    pub data_received: u64,
    /// Of these, how many carried data that had arrived before.
    pub duplicates: u64,
    /// Acknowledgements that arrived for a queue pair known here.
    pub acks_received: u64,
    /// Payload bytes accepted for the first time.
    pub goodput: u64,
    /// Of these, how many went through a reorder buffer, and were copied from there.
    pub reordered: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl NicStats {
    /// Counts what a NIC answers.
    #[inline(always)]
    pub(crate) fn count_answer(&mut self, answer: &Repr) {
        let is_negative = match answer {
            Repr::Ack(ack) => ack.kind == AckKind::Nack,
            Repr::EqdsControl(control) => control.flags.any(Flags::NACK),
            _ => return self.count_another(answer),
        };
        self.acks_sent += 1;
        self.nacks_sent += u64::from(is_negative);
    }

    /// The same of kinds of which there are few.
    #[inline(never)]
    fn count_another(&mut self, answer: &Repr) {
        match answer {
            Repr::HoleNack(_) => {
                self.acks_sent += 1;
                self.nacks_sent += 1;
            }
            Repr::Tcp(_) | Repr::Pull(_) => self.acks_sent += 1,
            Repr::Cnp => self.cnps_sent += 1,
            Repr::Ack(_) | Repr::EqdsControl(_) => self.count_answer(answer),
            Repr::Data(_) | Repr::Pause(_) | Repr::EqdsData(_) | Repr::NetRt(_) => {}
        }
    }
}

/// The sending end of a queue pair. What every packet touches comes first, as in its engine.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendQp {
    pub(crate) qp: QpNumber,
    pub(crate) dst: HostId,
    pub(crate) entropy: u32,
    pub(crate) context: u32,
    /// Index of the last packet, whose payload may be short.
    pub(crate) last: Seq,
    pub(crate) last_payload: u16,
    /// Traffic class of its data.
    pub(crate) class: u8,
    /// Whether it stands in the ready ring.
    pub(crate) queued: bool,
    /// The earliest entries in the heap of deadlines that speak of this queue pair: of its timers, and of
    /// its next packet.
    pub(crate) timer_armed: Instant,
    pub(crate) pacing_armed: Instant,
    pub(crate) sender: Sender,
}

/// The receiving end of a queue pair.
#[derive(Debug)]
pub(crate) struct RecvQp {
    pub(crate) receiver: Receiver,
    pub(crate) feedback: Feedback,
    pub(crate) context: u32,
    pub(crate) duplicates: u32,
    /// Packets that have not arrived yet.
    pub(crate) missing: u64,
}
