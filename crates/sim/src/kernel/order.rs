//! In which order a node's mail arrives.

use crate::net::descriptor::Descriptor;

/// Above so many packets, insertion is no longer the fastest way to sort.
const FEW: usize = 64;

/// The packets of one node and window by time of arrival; of simultaneous ones that with the lowest port
/// comes first. Kept from visit to visit for its memory.
///
/// Each packet has a key: time, port, and its place in the mail. Behind the last key stands one that is
/// beyond all windows.
#[derive(Default)]
pub(crate) struct Order(Vec<u64>);

impl Order {
    /// Sorts `mail`, of at most 65,535 packets.
    #[inline(always)]
    pub(crate) fn sort(&mut self, mail: &[Descriptor]) {
        let count = mail.len();
        self.0.clear();
        if count > FEW {
            self.0.extend(mail.iter().enumerate().map(|(place, packet)| packet.key(place)));
            self.0.sort_unstable();
            self.0.push(u64::MAX);
            return;
        }
        self.0.reserve(FEW + 1);
        let keys = self.0.as_mut_ptr();
        // SAFETY: there is room for `FEW + 1` keys, and the first `count + 1` are written, each before it is
        // read: `at` never exceeds `place`.
        unsafe {
            for (place, packet) in mail.iter().enumerate() {
                let key = packet.key(place);
                let mut at = place;
                // Each neighbour's packets lie in order, so most have to move by a few places at most.
                while at > 0 {
                    let before = *keys.add(at - 1);
                    if before <= key {
                        break;
                    }
                    *keys.add(at) = before;
                    at -= 1;
                }
                *keys.add(at) = key;
            }
            *keys.add(count) = u64::MAX;
            self.0.set_len(count + 1);
        }
    }

    /// When the packet arrives that is number `n` in order, in picoseconds after the window's beginning;
    /// `u32::MAX` behind the last.
    #[inline(always)]
    pub(crate) fn time(&self, n: usize) -> u64 {
        self.key(n) >> 32
    }

    /// The packet of `mail` that is number `n` in order. It must be the mail that was sorted.
    #[inline(always)]
    pub(crate) fn packet<'a>(&self, mail: &'a [Descriptor], n: usize) -> &'a Descriptor {
        let place = usize::from(self.key(n) as u16);
        debug_assert!(place < mail.len(), "the key was made for this mail");
        // SAFETY: the place of a packet of this mail.
        unsafe { mail.get_unchecked(place) }
    }

    #[inline(always)]
    fn key(&self, n: usize) -> u64 {
        debug_assert!(n < self.0.len(), "nobody reads on behind the last key");
        // SAFETY: the last key belongs to no window, so that whoever reads in order stops there.
        unsafe { *self.0.get_unchecked(n) }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;

    #[test]
    fn sorts_by_time_and_port() {
        let mut order = Order::default();
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        for count in [0, 1, 2, 3, 10, 63, 64, 65, 66, 300] {
            let draw = |_| Descriptor { at: rng.below(40) as u32, port: rng.below(5) as u16, ..Descriptor::EMPTY };
            let mail: Vec<Descriptor> = (0..count).map(draw).collect();
            let mut model: Vec<_> = mail.iter().map(|packet| (packet.at, packet.port)).collect();
            model.sort_unstable();
            order.sort(&mail);
            let sorted: Vec<_> = (0..count).map(|n| order.packet(&mail, n)).collect();
            assert_eq!(model, sorted.iter().map(|packet| (packet.at, packet.port)).collect::<Vec<_>>());
            assert!((0..count).all(|n| order.time(n) == u64::from(sorted[n].at)));
            assert_eq!(order.time(count), u64::from(u32::MAX));
        }
    }
}
