//! Whose packet leaves next, where several EQIFs share an uplink (section 6): strict priorities, and among those of the
//! same priority deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
//!
//! The turn of an EQIF is charged when its packet has been sent, not before: which one it is only the tunnel knows,
//! which may send something again, or a request. It may go beyond its share by that one packet, and pays for it in its
//! next turn (surplus round robin, Adiseshu, Parulkar and Varghese, SIGCOMM 1996), which comes to the same shares. An
//! EQIF's tunnels take turns packet by packet.

use alloc::collections::VecDeque;

use super::config::Share;

/// The EQIFs of one host, with those of their tunnels that have something to send.
#[derive(Clone, Debug)]
pub struct Schedule {
    places: [Place; 3],
    /// EQIFs that had something to send when their turns were last, in the order of these.
    ring: VecDeque<u8>,
}

#[derive(Clone, Debug)]
struct Place {
    share: Share,
    tunnels: VecDeque<u32>,
    /// Bytes that it may send before its turn ends; below zero what it owes.
    balance: i64,
    in_ring: bool,
}

impl Schedule {
    /// Of EQIFs with these shares.
    pub fn new(shares: &[Share; 3]) -> Self {
        Self {
            places: shares.map(|share| Place { share, tunnels: VecDeque::new(), balance: 0, in_ring: false }),
            ring: VecDeque::new(),
        }
    }

    /// Whether nothing is to be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.places.iter().all(|place| place.tunnels.is_empty())
    }

    /// A tunnel of `eqif` that stood here not, has something to send.
    pub fn join(&mut self, eqif: u8, tunnel: u32) {
        let place = &mut self.places[usize::from(eqif)];
        place.tunnels.push_back(tunnel);
        if !place.in_ring {
            place.in_ring = true;
            self.ring.push_back(eqif);
        }
    }

    /// The tunnel whose turn it is, which leaves; [`Schedule::charge`] its packet. A turn is worth `quantum` bytes.
    pub fn pop(&mut self, quantum: u32) -> Option<(u8, u32)> {
        let waiting = self.places.iter().filter(|place| !place.tunnels.is_empty());
        let top = waiting.map(|place| place.share.priority).max()?;
        loop {
            let eqif = *self.ring.front()?;
            let place = &mut self.places[usize::from(eqif)];
            if place.tunnels.is_empty() {
                // Who has nothing to send when its turn comes saves up nothing.
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

    /// A packet of so many bytes was sent for `eqif`.
    pub fn charge(&mut self, eqif: u8, bytes: u32) {
        self.places[usize::from(eqif)].balance -= i64::from(bytes);
    }
}
