//! Scheduling of several EQIFs that share an uplink (section 6): strict priorities, and deficit round robin (Shreedhar
//! and Varghese, SIGCOMM 1995) among those of equal priority.
//!
//! An EQIF is charged after its packet was sent, not before: only the tunnel knows which packet that is, as it may send
//! a retransmission or a request. An EQIF may exceed its share by that one packet and pays for it in its next turn
//! (surplus round robin, Adiseshu, Parulkar and Varghese, SIGCOMM 1996), which gives the shares of deficit round robin.
//! An EQIF's tunnels take turns packet by packet.

use alloc::collections::VecDeque;

use super::config::Share;

/// The `N` EQIFs of one host, each with its tunnels that have something to send.
#[derive(Clone, Debug)]
pub struct Schedule<const N: usize> {
    places: [ScheduledEqif; N],
    /// EQIFs that had something to send at their last turn, in the order of their turns.
    ring: VecDeque<u8>,
}

#[derive(Clone, Debug)]
struct ScheduledEqif {
    share: Share,
    tunnels: VecDeque<u32>,
    /// Bytes left in the turn; negative if the EQIF has overdrawn.
    balance: i64,
    in_ring: bool,
}

impl<const N: usize> Schedule<N> {
    /// Creates a schedule of EQIFs with the given shares.
    pub fn new(shares: [Share; N]) -> Self {
        Self {
            places: shares.map(|share| ScheduledEqif { share, tunnels: VecDeque::new(), balance: 0, in_ring: false }),
            ring: VecDeque::new(),
        }
    }

    /// Changes the shares; balances and turns stay.
    pub fn set_shares(&mut self, shares: [Share; N]) {
        self.places.iter_mut().zip(shares).for_each(|(place, share)| place.share = share);
    }

    /// Returns whether there is nothing to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.iter().all(|place| place.tunnels.is_empty())
    }

    /// Adds a tunnel of `eqif` that has something to send and is not yet in the schedule.
    pub fn join(&mut self, eqif: u8, tunnel: u32) {
        let place = &mut self.places[usize::from(eqif)];
        place.tunnels.push_back(tunnel);
        if !place.in_ring {
            place.in_ring = true;
            self.ring.push_back(eqif);
        }
    }

    /// Removes and returns the next tunnel and its EQIF; the caller must [`Schedule::charge`] the packet. A turn is
    /// worth `quantum` bytes.
    pub fn pop(&mut self, quantum: u32) -> Option<(u8, u32)> {
        let waiting = self.places.iter().filter(|place| !place.tunnels.is_empty());
        let top = waiting.map(|place| place.share.priority).max()?;
        loop {
            let eqif = *self.ring.front()?;
            let place = &mut self.places[usize::from(eqif)];
            if place.tunnels.is_empty() {
                // An EQIF with nothing to send at its turn accumulates no balance.
                (place.in_ring, place.balance) = (false, place.balance.min(0));
                self.ring.pop_front();
                continue;
            }
            let is_first = place.share.priority == top;
            if is_first && place.balance > 0 {
                return place.tunnels.pop_front().map(|tunnel| (eqif, tunnel));
            }
            if is_first {
                place.balance += i64::from(quantum) * i64::from(place.share.weight.max(1));
            }
            self.ring.rotate_left(1);
        }
    }

    /// Charges `eqif` for a packet of `bytes` bytes.
    pub fn charge(&mut self, eqif: u8, bytes: u32) {
        self.places[usize::from(eqif)].balance -= i64::from(bytes);
    }
}
