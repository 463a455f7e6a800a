//! Queue of control packets (acknowledgements and congestion notifications) waiting for the link.

use alloc::vec::Vec;
use core::ops::Deref;

use selvedge_wire::Packet;

/// A queue of packets in a vector. Whenever all packets have left, the next one is written to the beginning: usually
/// few packets wait, so that they stay in the cache.
#[derive(Debug, Default)]
pub struct Answers {
    /// Packets, including those at the front that have left; empty when all have left.
    packets: Vec<Packet>,
    /// Number of packets at the front that have left.
    left: usize,
}

impl Answers {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self { packets: Vec::new(), left: 0 }
    }

    /// Returns whether no packet waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet behind those that wait.
    #[inline]
    pub fn push_back(&mut self, packet: Packet) {
        if self.packets.len() == self.packets.capacity() {
            self.make_room();
        }
        self.packets.push(packet);
    }

    /// Moves the first packet to `place`; returns whether there was one.
    #[inline]
    pub fn pop_front(&mut self, place: &mut Packet) -> bool {
        let Some(first) = self.packets.get(self.left) else { return false };
        *place = *first;
        self.left += 1;
        if self.left == self.packets.len() {
            self.forget();
        }
        true
    }

    /// Removes the waiting packet at index `at`.
    pub fn remove(&mut self, at: usize) -> Option<Packet> {
        let at = self.left + at;
        let packet = (at < self.packets.len()).then(|| self.packets.remove(at));
        if self.left == self.packets.len() {
            self.forget();
        }
        packet
    }

    /// Returns the packet that was pushed last.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut Packet> {
        self.packets.last_mut()
    }

    #[inline]
    fn forget(&mut self) {
        self.packets.clear();
        self.left = 0;
    }

    /// Reuses the space of packets that have left, if those are at least half of all; otherwise the vector grows.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.left * 2 >= self.packets.len() {
            self.packets.drain(..core::mem::take(&mut self.left));
        }
        self.packets.reserve(1);
    }
}

/// Dereferences to the packets that wait, in order.
impl Deref for Answers {
    type Target = [Packet];

    #[inline]
    fn deref(&self) -> &[Packet] {
        &self.packets[self.left..]
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use selvedge_units::{Domain, Rng};

    use super::*;

    #[test]
    fn behaves_like_a_queue() {
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        let (mut answers, mut model) = (Answers::new(), VecDeque::new());
        for entropy in 0..20_000 {
            // Arrivals and departures outnumber each other in turn.
            match rng.below(if entropy / 1_000 % 2 == 0 { 3 } else { 7 }) {
                0 | 1 => {
                    let packet = Packet { entropy, ..Packet::BLANK };
                    answers.push_back(packet);
                    model.push_back(packet);
                    assert_eq!(answers.last_mut(), model.back_mut());
                }
                2 => {
                    let at = rng.below(4) as usize;
                    assert_eq!(answers.remove(at), model.remove(at));
                }
                _ => {
                    let mut first = Packet::BLANK;
                    assert_eq!(answers.pop_front(&mut first).then_some(first), model.pop_front());
                }
            }
            assert_eq!(answers.is_empty(), model.is_empty());
            assert!(answers.iter().eq(&model));
        }
    }
}
