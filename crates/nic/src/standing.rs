//! How flows stand at either end, for whoever asks where their time goes.

use selvedge_transport::Hold;
use selvedge_units::{HostId, Instant, Psn, QpNumber, TcpSeq};
use selvedge_wire::tcp::Stream;
use selvedge_wire::{Packet, Repr};

use crate::nic::Nic;

/// How a flow stands where it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// What it waits for.
    pub hold: Hold,
    /// Packets that were sent, or octets where [`Received::count`] is of octets; each once. `None` where windows do not
    /// wait for what comes next in order.
    pub sent: Option<u64>,
    /// What was never sent, in packets or octets as [`Received::missing`].
    pub unsent: u64,
    /// It knows of losses, and waits for leave to send again what they took.
    pub has_lost: bool,
    /// Retransmission timeouts so far; none of tunnels, which many flows share.
    pub timeouts: u64,
    /// Packets sent again so far; none of tunnels.
    pub resent: u64,
}

/// How a flow stands where it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// What the caller named it.
    pub context: u32,
    /// What has arrived in order, in the unit of [`Standing::sent`].
    pub count: Option<u64>,
    /// What has not arrived, in packets or octets.
    pub missing: u64,
    next: Next,
}

/// What would come next in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Packet(Psn),
    Octet(TcpSeq, Stream),
    Unknown,
}

impl Received {
    /// Whether `packet`, of this flow, brings what is expected next.
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

    /// How much of what may be missing `packet` carries, of this flow: in packets or octets.
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
    /// How the flow stands that was opened with these; `None` if there is none such, or it has ended.
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
        self.standing_of_tcp(slot, qp).or_else(|| self.standing_of_ndp(slot, qp)).or_else(|| {
            let (hold, (has_lost, unsent)) = self.hold_message(slot, qp).zip(self.standing_of_message(slot, qp))?;
            Some(Standing { hold, sent: None, unsent, has_lost, timeouts: 0, resent: 0 })
        })
    }

    /// How the flow stands here that the queue pair `qp` of `src` sends; `None` if nothing is expected from there.
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
        let (context, missing) = self.received_by_ndp(slot).or_else(|| self.received_by_tunnel(slot))?;
        Some(Received { context, count: None, missing, next: Next::Unknown })
    }

    /// Acknowledgements and congestion notifications that wait for the link.
    pub fn waiting_answers(&self) -> &[Packet] {
        &self.answers
    }
}
