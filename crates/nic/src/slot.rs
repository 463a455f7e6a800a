//! Whom a number in the ready ring, in the heap of deadlines or in a packet is about.
//!
//! All of them name queue pairs, flows, tunnels and a NIC's own parts by one number, a slot: so they ask nothing that
//! only one kind needs. Each kind has a range; who is woken first of those with the same deadline goes by the number.
//!
//! ```text
//!     0              2^28           2^29           2^29 + 2^28          2^30 - 2^27         2^30
//!     | queue pairs  |  NDP's flows | tunnels      | tunnels of stacks  | that end here     | TCP's flows
//!                                   |              |                    |           parts of the NIC
//! ```

/// Slots of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind {
    first: u32,
    end: u32,
}

/// Of NDP: flows, at either end.
pub(crate) const NDP: Kind = Kind { first: 1 << 28, end: NDP_PACER };
/// Of EQDS: tunnels that begin here, and carry native messages; messages, too.
pub(crate) const TUNNELS: Kind = Kind { first: 1 << 29, end: CARRIERS.first };
/// Tunnels that begin here, and carry packets of stacks.
pub(crate) const CARRIERS: Kind = Kind { first: (1 << 29) + (1 << 28), end: CARRIED.first };
/// Such tunnels that end here.
pub(crate) const CARRIED: Kind = Kind { first: (1 << 30) - (1 << 27), end: POLL };
/// Of TCP: flows, at either end. One bit more is taken by deadlines.
pub(crate) const TCP: Kind = Kind { first: 1 << 30, end: 1 << 31 };

/// NDP's pacer.
pub(crate) const NDP_PACER: u32 = (1 << 29) - 1;
/// The next queue pair that asks for the link, in deadlines.
pub(crate) const POLL: u32 = TCP.first - 6;
/// Acknowledgements of applications' queue pairs, in the ready ring.
pub(crate) const ACKS: u32 = TCP.first - 5;
/// Requests and answers of applications' queue pairs, in the ready ring; deadlines, too. Packets of those have it as
/// their [`slot`](selvedge_wire::Packet::slot), and no others.
pub const REQUESTS: u32 = TCP.first - 4;
/// The RDMA engine that sends through tunnels, in deadlines.
pub(crate) const ENGINE: u32 = TCP.first - 3;
/// All tunnels that begin here, in the ready ring, where stacks send through tunnels.
pub(crate) const EDGE: u32 = TCP.first - 2;
/// The pacer of all tunnels that end here.
pub(crate) const PACER: u32 = TCP.first - 1;

impl Kind {
    /// The slot of the one at `place` among its like.
    #[inline]
    pub(crate) const fn slot(self, place: u32) -> u32 {
        debug_assert!(place < self.end - self.first, "as many as have a slot");
        self.first + place
    }

    /// Where the one in `slot` lies among its like; beyond all of them, if it is none of these.
    #[inline]
    pub(crate) const fn place(self, slot: u32) -> u32 {
        slot.wrapping_sub(self.first)
    }

    /// Whether one of these has `slot`.
    #[inline]
    pub(crate) const fn has(self, slot: u32) -> bool {
        self.place(slot) < self.end - self.first
    }
}

/// Who has a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// A queue pair of the NIC's own.
    QueuePair,
    /// A flow of NDP, or its pacer.
    Ndp,
    /// A tunnel for native messages that begins here, or a message.
    Tunnel,
    /// A tunnel of stacks, at this place.
    Carrier(u32),
    /// A tunnel of stacks that ends here, at this place.
    Carried(u32),
    /// See [`POLL`].
    Poll,
    /// See [`ACKS`].
    Acks,
    /// See [`REQUESTS`].
    Requests,
    /// See [`ENGINE`].
    Engine,
    /// See [`EDGE`].
    Edge,
    /// See [`PACER`].
    Pacer,
    /// A flow of TCP.
    Tcp,
}

impl Owner {
    /// The owner of `slot`.
    pub(crate) const fn of(slot: u32) -> Self {
        match slot {
            POLL => Self::Poll,
            ACKS => Self::Acks,
            REQUESTS => Self::Requests,
            ENGINE => Self::Engine,
            EDGE => Self::Edge,
            PACER => Self::Pacer,
            _ if slot < NDP.first => Self::QueuePair,
            _ if slot < TUNNELS.first => Self::Ndp,
            _ if slot < CARRIERS.first => Self::Tunnel,
            _ if slot < CARRIED.first => Self::Carrier(CARRIERS.place(slot)),
            _ if slot < TCP.first => Self::Carried(CARRIED.place(slot)),
            _ => Self::Tcp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_slots_of_their_own() {
        let kinds = [NDP, TUNNELS, CARRIERS, CARRIED, TCP];
        let parts = [NDP_PACER, POLL, ACKS, REQUESTS, ENGINE, EDGE, PACER];
        for kind in kinds {
            assert!(kind.end - kind.first > 1 << 20, "there is room for as many as a NIC can have");
            for slot in [kind.slot(0), kind.slot(kind.end - kind.first - 1)] {
                let owners = kinds.iter().filter(|kind| kind.has(slot)).count() + usize::from(parts.contains(&slot));
                assert_eq!(owners, 1, "{slot:#x}");
                assert_eq!(kind.slot(kind.place(slot)), slot);
            }
        }
        assert!(parts.iter().all(|&slot| kinds.iter().all(|kind| !kind.has(slot))));
        assert!(kinds.iter().all(|kind| !kind.has(0)), "which is a queue pair's");
        let owners = [TUNNELS.slot(3), CARRIERS.slot(3), CARRIED.slot(3), TCP.slot(3), PACER, 3].map(Owner::of);
        let expected =
            [Owner::Tunnel, Owner::Carrier(3), Owner::Carried(3), Owner::Tcp, Owner::Pacer, Owner::QueuePair];
        assert_eq!(owners, expected);
    }
}
