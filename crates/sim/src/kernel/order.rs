//! In which order a node's mail arrives.

use crate::net::descriptor::Descriptor;

/// Up to so many packets, insertion is the fastest way to sort.
const FEW: usize = 32;
/// Up to so many, insertion is if they lie nearly in order.
const SOME: usize = 1_000;
/// Into so many parts a window is divided to put them nearly in order.
const PARTS: usize = 64;

/// The packets of one node and window by time of arrival; of simultaneous ones that with the lowest port
/// comes first. Kept from visit to visit for its memory.
///
/// Each packet has a key: time, port, and its place in the mail. Behind the last one stands a key beyond all windows.
#[derive(Default)]
pub(crate) struct Order(Vec<u64>);

impl Order {
    /// Sorts `mail`, of at most 65,535 packets, most of which arrive within `window` picoseconds. `look` sees each of
    /// them once, in any order; what it changes about them does not matter.
    #[inline(always)]
    pub(crate) fn sort(&mut self, mail: &mut [Descriptor], window: u64, mut look: impl FnMut(&mut Descriptor)) {
        let count = mail.len();
        let mut key_of = |place: usize, packet: &mut Descriptor| {
            let key = packet.key(place);
            look(packet);
            key
        };
        self.0.clear();
        if count > SOME {
            self.0.extend(mail.iter_mut().enumerate().map(|(place, packet)| key_of(place, packet)));
            self.0.sort_unstable();
            self.0.push(u64::MAX);
            return;
        }
        self.0.reserve(SOME + 1);
        let keys = self.0.as_mut_ptr();
        // SAFETY: there is room for that many keys, and those up to the new length are written, each before it is read.
        unsafe {
            if count > FEW {
                spread(keys, mail, window, key_of);
                for place in 1..count {
                    insert(keys, place, *keys.add(place));
                }
            } else {
                // Each neighbour's packets lie in order, so most have to move by a few places at most.
                for (place, packet) in mail.iter_mut().enumerate() {
                    insert(keys, place, key_of(place, packet));
                }
            }
            keys.add(count).write(u64::MAX);
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

/// Puts `key` in its place among the first `count` keys, which are sorted.
///
/// # Safety
/// They have been written, and there is room for one more.
#[inline(always)]
unsafe fn insert(keys: *mut u64, count: usize, key: u64) {
    let mut at = count;
    // SAFETY: `at` never exceeds `count`.
    unsafe {
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
}

/// Writes the keys of `mail` nearly in order: by parts of the window.
///
/// # Safety
/// There is room for them; there are [`SOME`] at most.
#[inline(always)]
unsafe fn spread(
    keys: *mut u64,
    mail: &mut [Descriptor],
    window: u64,
    mut key_of: impl FnMut(usize, &mut Descriptor) -> u64,
) {
    let shift = (u64::BITS - window.leading_zeros()).saturating_sub(PARTS.ilog2());
    let part = |packet: &Descriptor| (u64::from(packet.at) >> shift) as usize & (PARTS - 1);
    let mut ends = [0_u16; PARTS];
    for packet in &*mail {
        ends[part(packet)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    for (place, packet) in mail.iter_mut().enumerate().rev() {
        let end = &mut ends[part(packet)];
        *end -= 1;
        // SAFETY: each part ends where as many have place as it and those before it have packets.
        unsafe { *keys.add(usize::from(*end)) = key_of(place, packet) };
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
        for (count, window) in [0, 1, 2, 3, 10, 31, 32, 33, 40, 64, 254, 300, 999, 1_000, 1_001]
            .into_iter()
            .zip([1, 7, 40].into_iter().cycle())
        {
            let draw = |_| Descriptor { at: rng.below(40) as u32, port: rng.below(5) as u16, ..Descriptor::EMPTY };
            let mut mail: Vec<Descriptor> = (0..count).map(draw).collect();
            let mut model: Vec<_> = mail.iter().map(|packet| (packet.at, packet.port)).collect();
            model.sort_unstable();
            let mut seen = 0;
            order.sort(&mut mail, window, |packet| {
                packet.slot = packet.at;
                packet.at = 7;
                seen += 1;
            });
            let sorted: Vec<_> = (0..count).map(|n| order.packet(&mail, n)).collect();
            assert_eq!(model, sorted.iter().map(|packet| (packet.slot, packet.port)).collect::<Vec<_>>());
            assert!((0..count).all(|n| order.time(n) == u64::from(sorted[n].slot)));
            assert_eq!((seen, order.time(count)), (count, u64::from(u32::MAX)));
        }
    }
}
