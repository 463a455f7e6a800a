//! Slots: numbers that name owners in the ready ring, in the heap of deadlines and in packets.
//!
//! Queue pairs, flows, tunnels and the NIC's own parts are all named by one number, so that the ring and the heap need
//! no distinction of kinds. Each kind has a range; of equal deadlines, the lower slot comes first.
//!
//! ```text
//!     0             2^28       2^29 - 2^27   2^29      2^29 + 2^28         2^30 - 2^27     2^30   2^30 + 2^29
//!     | queue pairs | messages | headers     | tunnels | tunnels of stacks | that end here | TCP  | TCP beside
//!                                                                            parts of NIC
//! ```

/// Range of the slots of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotRange {
    first: u32,
    end: u32,
}

/// Queue pairs of the NIC's own, at either end.
pub(crate) const QUEUE_PAIRS: SlotRange = SlotRange { first: 0, end: MESSAGES.first };
/// Flows of a transport of messages, at either end, and the transport itself.
pub(crate) const MESSAGES: SlotRange = SlotRange { first: 1 << 28, end: HEADERS.first };
/// Headers of packets of applications' queue pairs that are in tunnels. Such packets have this as their
/// [`slot`](selvedge_wire::Packet::slot) while this NIC keeps them; the ring and the heap have none of these.
pub(crate) const HEADERS: SlotRange = SlotRange { first: (1 << 29) - (1 << 27), end: TUNNELS.first };
/// EQDS tunnels for native messages, at either end, and messages.
pub(crate) const TUNNELS: SlotRange = SlotRange { first: 1 << 29, end: EGRESS_TUNNELS.first };
/// Tunnels for packets of stacks that begin here.
pub(crate) const EGRESS_TUNNELS: SlotRange = SlotRange { first: (1 << 29) + (1 << 28), end: INGRESS_TUNNELS.first };
/// Tunnels for packets of stacks that end here.
pub(crate) const INGRESS_TUNNELS: SlotRange = SlotRange { first: (1 << 30) - (1 << 27), end: POLL };
/// TCP flows, at either end.
pub(crate) const TCP: SlotRange = SlotRange { first: 1 << 30, end: BESIDE.first };
/// TCP flows beside the transport, at either end.
pub(crate) const BESIDE: SlotRange = SlotRange { first: (1 << 30) + (1 << 29), end: 1 << 31 };

/// The next poll of the link by a queue pair, in deadlines.
pub(crate) const POLL: u32 = TCP.first - 6;
/// Acknowledgements of applications' queue pairs, in the ready ring.
pub(crate) const ACKS: u32 = TCP.first - 5;
/// Requests and responses of applications' queue pairs, in the ready ring, and their deadlines. Packets of those queue
/// pairs, and no others, have this as their [`slot`](selvedge_wire::Packet::slot).
pub const REQUESTS: u32 = TCP.first - 4;
/// The RDMA engine that sends through tunnels, in deadlines.
pub(crate) const ENGINE: u32 = TCP.first - 3;
/// All tunnels that begin here, in the ready ring, where stacks send through tunnels.
pub(crate) const EDGE: u32 = TCP.first - 2;
/// The pacer of all tunnels that end here.
pub(crate) const PACER: u32 = TCP.first - 1;

impl SlotRange {
    /// Returns the slot of the owner at index `place` of this kind.
    #[inline]
    pub(crate) const fn slot(self, place: u32) -> u32 {
        debug_assert!(place < self.end - self.first, "as many as have a slot");
        self.first + place
    }

    /// Returns the index of `slot` within this kind; beyond the range if the slot is of another kind.
    #[inline]
    pub(crate) const fn place(self, slot: u32) -> u32 {
        slot.wrapping_sub(self.first)
    }

    /// Returns whether `slot` is of this kind.
    #[inline]
    pub(crate) const fn has(self, slot: u32) -> bool {
        self.place(slot) < self.end - self.first
    }
}

/// Owner of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A queue pair of the NIC's own.
    QueuePair,
    /// A flow of a transport of messages, or the transport itself.
    Message,
    /// A tunnel for native messages, or a message.
    Tunnel,
    /// A tunnel for packets of stacks that begins here, at this index.
    EgressTunnel(u32),
    /// A tunnel for packets of stacks that ends here, at this index.
    IngressTunnel(u32),
    /// The next poll of the link by a queue pair, see [`POLL`].
    Poll,
    /// Acknowledgements of applications' queue pairs, see [`ACKS`].
    Acks,
    /// Requests and responses of applications' queue pairs, see [`REQUESTS`].
    Requests,
    /// The RDMA engine that sends through tunnels, see [`ENGINE`].
    Engine,
    /// All tunnels that begin here, see [`EDGE`].
    Edge,
    /// The pacer of all tunnels that end here, see [`PACER`].
    Pacer,
    /// Headers of a packet in a tunnel, see [`HEADERS`].
    Headers,
    /// A flow of TCP.
    Tcp,
    /// A flow of TCP beside the transport.
    Beside,
}

impl Owner {
    /// Returns the owner of `slot`.
    pub(crate) const fn of(slot: u32) -> Self {
        match slot {
            POLL => Self::Poll,
            ACKS => Self::Acks,
            REQUESTS => Self::Requests,
            ENGINE => Self::Engine,
            EDGE => Self::Edge,
            PACER => Self::Pacer,
            _ if slot < MESSAGES.first => Self::QueuePair,
            _ if slot < HEADERS.first => Self::Message,
            _ if slot < TUNNELS.first => Self::Headers,
            _ if slot < EGRESS_TUNNELS.first => Self::Tunnel,
            _ if slot < INGRESS_TUNNELS.first => Self::EgressTunnel(EGRESS_TUNNELS.place(slot)),
            _ if slot < TCP.first => Self::IngressTunnel(INGRESS_TUNNELS.place(slot)),
            _ if slot < BESIDE.first => Self::Tcp,
            _ => Self::Beside,
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_transport::endpoint::HOST;

    use super::*;

    #[test]
    fn everybody_has_slots_of_their_own() {
        let kinds = [QUEUE_PAIRS, MESSAGES, HEADERS, TUNNELS, EGRESS_TUNNELS, INGRESS_TUNNELS, TCP, BESIDE];
        const { assert!(MESSAGES.end - MESSAGES.first > HOST) };
        let parts = [POLL, ACKS, REQUESTS, ENGINE, EDGE, PACER];
        for kind in kinds {
            assert!(kind.end - kind.first > 1 << 20, "there is room for as many as a NIC can have");
            for slot in [kind.slot(0), kind.slot(kind.end - kind.first - 1)] {
                let owners = kinds.iter().filter(|kind| kind.has(slot)).count() + usize::from(parts.contains(&slot));
                assert_eq!(owners, 1, "{slot:#x}");
                assert_eq!(kind.slot(kind.place(slot)), slot);
            }
        }
        assert!(parts.iter().all(|&slot| kinds.iter().all(|kind| !kind.has(slot))));
        let owners = kinds.map(|kind| kind.slot(3)).into_iter().chain([PACER]).map(Owner::of);
        let expected = [
            Owner::QueuePair,
            Owner::Message,
            Owner::Headers,
            Owner::Tunnel,
            Owner::EgressTunnel(3),
            Owner::IngressTunnel(3),
            Owner::Tcp,
            Owner::Beside,
            Owner::Pacer,
        ];
        assert!(owners.eq(expected));
    }
}
