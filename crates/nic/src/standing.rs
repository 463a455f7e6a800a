//! Progress of flows at either end, for diagnosis of where their time goes.

use selvedge_transport::endpoint::{Arriving, Endpoint, Standing};
use selvedge_units::{HostId, Instant, Psn, QpNumber, TcpSeq};
use selvedge_wire::tcp::Stream;
use selvedge_wire::{Packet, Repr};

use crate::nic::Nic;

/// Progress of a flow at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The caller's name of the flow.
    pub context: u32,
    /// Packets or octets that have arrived in order, in the unit of [`Standing::sent`].
    pub count: Option<u64>,
    /// Packets or octets that have not arrived.
    pub missing: u64,
    next: Next,
}

/// Next packet or octet expected in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Packet(Psn),
    Octet(TcpSeq, Stream),
    Unknown,
}

impl Received {
    /// Returns whether `packet`, of this flow, carries the next expected packet or octet.
    pub fn is_brought_by(&self, packet: &Packet) -> bool {
        match (self.next, &packet.repr) {
            (Next::Packet(psn), Repr::Data(data)) => data.psn == psn && !data.trimmed,
            (Next::Octet(octet, stream), Repr::Tcp(tcp)) => {
                let segment = tcp.unpack(octet, 0, stream);
                !tcp.is_trimmed() && octet.get().wrapping_sub(segment.seq.get()) < u32::from(segment.payload)
            }
            _ => false,
        }
    }

    /// Returns how many packets or octets of this flow `packet` carries.
    pub fn carried_by(&self, packet: &Packet) -> u64 {
        match &packet.repr {
            Repr::Tcp(tcp) if !tcp.is_trimmed() => u64::from(tcp.payload()),
            Repr::Data(data) if !data.trimmed => 1,
            Repr::EqdsData(data) if !data.trimmed && data.payload > 0 => 1,
            _ => 0,
        }
    }
}

impl Nic {
    /// Returns the progress of a flow at its sender, named by its slot and queue pair; `None` if it does not exist or
    /// has ended.
    pub fn standing(&self, slot: u32, qp: QpNumber, now: Instant) -> Option<Standing> {
        if let Some(sender) = self.sender_of(slot, qp) {
            let stats = sender.stats();
            return Some(Standing {
                hold: sender.hold(now),
                sent: Some(sender.sent().index()),
                unsent: sender.supplied() - sender.sent(),
                has_lost: false,
                timeouts: u64::from(stats.timeouts),
                resent: stats.retransmissions,
            });
        }
        if let Some((endpoint, entry)) = self.message_at(slot) {
            return endpoint.standing(entry, qp, now);
        }
        self.standing_of_tcp(slot, qp).or_else(|| {
            let (hold, (has_lost, unsent)) = self.hold_message(slot, qp).zip(self.standing_of_message(slot, qp))?;
            Some(Standing { hold, sent: None, unsent, has_lost, timeouts: 0, resent: 0 })
        })
    }

    /// Returns the progress of the flow that the queue pair `qp` of `src` sends; `None` if no flow is expected from
    /// there.
    pub fn received(&self, src: HostId, qp: QpNumber) -> Option<Received> {
        let slot = self.by_peer.get((src, qp))?;
        if let Some((context, missing, receiver)) = self.receiver_at(slot) {
            let next = receiver.expected();
            let (count, next) = (Some(next.index()), Next::Packet(next.to_psn(Psn::new(0))));
            return Some(Received { context, count, missing, next });
        }
        if let Some((context, missing, received)) = self.received_by_tcp(slot, qp) {
            let count = received.as_ref().map(|in_order| in_order.octets);
            let next = received.map_or(Next::Unknown, |in_order| Next::Octet(in_order.next, in_order.stream));
            return Some(Received { context, count, missing, next });
        }
        let of_message = || self.message_at(slot).and_then(|(endpoint, entry)| endpoint.arriving(entry));
        let (context, missing) = match of_message() {
            Some(Arriving { context, missing }) => (context, missing),
            None => self.received_by_tunnel(slot)?,
        };
        Some(Received { context, count: None, missing, next: Next::Unknown })
    }

    /// Returns the acknowledgements and congestion notifications that wait for the link.
    pub fn waiting_answers(&self) -> &[Packet] {
        &self.answers
    }
}
