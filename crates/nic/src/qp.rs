//! Queue pairs: an engine and the NIC's state of its flow.

use selvedge_transport::{Feedback, Receiver, Sender};
use selvedge_units::{Bytes, HostId, Instant, QpNumber, Seq};
use selvedge_wire::eqds::Flags;
use selvedge_wire::{AckKind, Repr};

/// A message to send, for [`crate::Nic::open_sender`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Destination host.
    pub dst: HostId,
    /// Payload length; above zero.
    pub size: Bytes,
    /// Input of the ECMP hash.
    pub entropy: u32,
    /// Traffic class of the data; one of [`crate::NicParams::data_classes`].
    pub class: u8,
    /// Number of links that packets cross; zero if not known.
    pub links: u32,
    /// The caller's name of the message, returned on completion.
    pub context: u32,
    /// Carrier of the message.
    pub carrier: Carrier,
}

/// Carrier of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// The transport that the NIC is configured for: TCP where [`crate::NicParams::tcp`] is present.
    Transport,
    /// TCP beside that transport, configured by [`crate::NicParams::beside`].
    Beside,
}

/// Completion of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// Everything sent on a queue pair is acknowledged.
    Sent {
        /// Queue pair of the message.
        qp: QpNumber,
        /// The caller's name of the message.
        context: u32,
    },
    /// Everything expected on a queue pair has arrived.
    Received {
        /// Sending host.
        src: HostId,
        /// Queue pair of the message.
        qp: QpNumber,
        /// The caller's name of the message.
        context: u32,
        /// Data packets that had arrived before.
        duplicates: u32,
    },
}

/// Feedback for the sending end of a queue pair that travels outside the fabric: an RTT sample where data is not
/// acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Host of the sending end.
    pub to: HostId,
    /// Queue pair at the sending end.
    pub qp: QpNumber,
    /// Slot of the queue pair at the sending end.
    pub slot: u32,
    /// Sending time of the packet that has just arrived.
    pub sent_at: Instant,
    /// Bytes on the wire that have arrived since the previous report.
    pub bytes: Bytes,
}

/// Counters of a NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct NicStats {
    /// Data packets put on the wire, retransmissions included.
    pub data_sent: u64,
    /// Data packets that had been sent before. Through EQDS tunnels, both retransmissions of stacks and of tunnels
    /// count: the number may exceed `data_sent`.
    pub retransmissions: u64,
    /// Acknowledgements put on the wire.
    pub acks_sent: u64,
    /// Negative acknowledgements put on the wire; also counted in `acks_sent`.
    pub nacks_sent: u64,
    /// Congestion notifications put on the wire.
    pub cnps_sent: u64,
    /// Data packets that arrived for a queue pair known here.
    pub data_received: u64,
    /// Data packets that arrived and had arrived before; also counted in `data_received`.
    pub duplicates: u64,
    /// Acknowledgements that arrived for a queue pair known here.
    pub acks_received: u64,
    /// Payload bytes accepted for the first time.
    pub goodput: u64,
    /// Payload bytes that went through a reorder buffer, and were copied from there; also counted in `goodput`.
    pub reordered: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl NicStats {
    /// Counts a control packet that is sent.
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

    /// Counts a control packet of a rare kind.
    #[inline(never)]
    fn count_another(&mut self, answer: &Repr) {
        match answer {
            Repr::HoleNack(_) => {
                self.acks_sent += 1;
                self.nacks_sent += 1;
            }
            // Of EQDS's data packets, the end of a tunnel is sent as a control packet.
            Repr::Tcp(_) | Repr::Pull(_) | Repr::EqdsData(_) => self.acks_sent += 1,
            Repr::Cnp => self.cnps_sent += 1,
            Repr::Ack(_) | Repr::EqdsControl(_) => self.count_answer(answer),
            Repr::Data(_) | Repr::Pause(_) | Repr::NetRt(_) => {}
        }
    }
}

/// Sending end of a queue pair. State that every packet touches comes first, as in its engine.
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
    /// Traffic class of the data.
    pub(crate) class: u8,
    /// Whether the queue pair is in the ready ring.
    pub(crate) queued: bool,
    /// Earliest timer entry of this queue pair in the heap of deadlines. `pacing_armed` holds that of its next packet.
    pub(crate) timer_armed: Instant,
    pub(crate) pacing_armed: Instant,
    pub(crate) sender: Sender,
}

/// Receiving end of a queue pair.
#[derive(Debug)]
pub(crate) struct RecvQp {
    pub(crate) receiver: Receiver,
    pub(crate) feedback: Feedback,
    pub(crate) context: u32,
    pub(crate) duplicates: u32,
    /// Packets that have not arrived yet.
    pub(crate) missing: u64,
}
