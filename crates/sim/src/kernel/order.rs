//! In which order a node's mail is read.

use super::table::Table;
use crate::net::descriptor::Descriptor;

/// Up to so many packets, insertion is the fastest way to sort.
const FEW: usize = 32;
/// Up to so many, insertion is if they lie nearly in order.
const SOME: usize = 1_000;
/// Into so many parts a window is divided to put them nearly in order.
const PARTS: usize = 64;

/// The packets of one node and window by time of arrival, all together or those for each output apart; of simultaneous
/// ones that with the lowest port comes first. Kept from visit to visit for its memory.
pub(crate) struct Order {
    /// One for each packet. Behind the last one of all that are sorted together stands a key beyond all windows.
    keys: Vec<Key>,
    /// By place in the mail: through which port a packet will leave.
    outputs: Vec<u16>,
    /// Where the keys of each output begin, and those of the last one end. Of some node, there are more outputs.
    begins: Table<u32>,
}

impl Default for Order {
    fn default() -> Self {
        Self { keys: Vec::new(), outputs: Vec::new(), begins: Table::new() }
    }
}

/// When a packet arrives, through which port, and its place in the mail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key(u64);

impl Key {
    /// Behind all others.
    const LAST: Self = Self(u64::MAX);

    #[inline(always)]
    fn of(packet: &Descriptor, place: usize) -> Self {
        Self(u64::from(packet.at) << 32 | u64::from(packet.port) << 16 | place as u64)
    }

    /// When it arrives, in picoseconds after the window's beginning; `u32::MAX` behind the last.
    #[inline(always)]
    pub(crate) fn time(self) -> u64 {
        self.0 >> 32
    }

    #[inline(always)]
    fn place(self) -> usize {
        usize::from(self.0 as u16)
    }

    /// The packet, of the mail that was sorted.
    #[inline(always)]
    pub(crate) fn packet(self, mail: &[Descriptor]) -> &Descriptor {
        debug_assert!(self.place() < mail.len(), "the key was made for this mail");
        // SAFETY: the place of a packet of this mail.
        unsafe { mail.get_unchecked(self.place()) }
    }
}

impl Order {
    /// Notes through which port each packet of `mail` will leave, as `output_of` says.
    #[inline(always)]
    pub(crate) fn look_up(&mut self, mail: &[Descriptor], output_of: impl FnMut(&Descriptor) -> u16) {
        self.outputs.clear();
        self.outputs.extend(mail.iter().map(output_of));
    }

    /// Sorts `mail`, of at most 65,535 packets, most of which arrive within `window` picoseconds; and notes on the way
    /// through which port each will leave, as `output_of` says.
    #[inline(always)]
    pub(crate) fn sort(&mut self, mail: &[Descriptor], window: u64, mut output_of: impl FnMut(&Descriptor) -> u16) {
        let count = mail.len();
        self.keys.clear();
        self.keys.reserve(count + 1);
        self.outputs.clear();
        self.outputs.reserve(count);
        let (keys, outputs) = (self.keys.as_mut_ptr(), self.outputs.as_mut_ptr());
        let mut key_of = |place, packet: &Descriptor| {
            // SAFETY: there is room for all, and each is written once.
            unsafe { *outputs.add(place) = output_of(packet) };
            Key::of(packet, place)
        };
        // SAFETY: there is room for that many keys, and those up to the new length are written, each before it is read.
        unsafe {
            if count > FEW {
                spread(keys, mail, window, key_of);
                sort_nearly(keys, count, SOME);
            } else {
                // Each neighbour's packets lie in order, so most have to move by a few places at most.
                for (place, packet) in mail.iter().enumerate() {
                    insert(keys, place, key_of(place, packet));
                }
            }
            keys.add(count).write(Key::LAST);
            self.keys.set_len(count + 1);
            self.outputs.set_len(count);
        }
    }

    /// Sorts `mail`, of at most 65,535 packets which have been [looked up](Self::look_up), for each of `outputs` apart.
    #[inline(always)]
    pub(crate) fn sort_by_output(&mut self, mail: &[Descriptor], outputs: u32) {
        let count = mail.len();
        debug_assert_eq!(self.outputs.len(), count, "all have been looked up");
        while self.begins.len() <= outputs as usize {
            self.begins.push(0);
        }
        (0..=outputs).for_each(|output| self.begins[output] = 0);
        self.outputs.iter().for_each(|&output| self.begins[u32::from(output)] += 1);
        let mut sum = 0;
        for output in 0..=outputs {
            sum += self.begins[output];
            self.begins[output] = sum;
        }
        self.keys.clear();
        self.keys.reserve(count);
        let keys = self.keys.as_mut_ptr();
        for (place, (packet, &output)) in mail.iter().zip(&self.outputs).enumerate().rev() {
            let begin = &mut self.begins[u32::from(output)];
            *begin -= 1;
            // SAFETY: each output's keys end where as many have place as it and those before it have packets; there is
            // room for all.
            unsafe { *keys.add(*begin as usize) = Key::of(packet, place) };
        }
        // SAFETY: all have been written.
        unsafe { self.keys.set_len(count) };
        for output in 0..outputs {
            let (begin, end) = (self.begins[output] as usize, self.begins[output + 1] as usize);
            // SAFETY: these have been written.
            unsafe { sort_nearly(keys.add(begin), end - begin, FEW) };
        }
    }

    /// The keys of those packets that leave through `output`, sorted [apart](Self::sort_by_output).
    #[inline(always)]
    pub(crate) fn of_output(&self, output: u32) -> &[Key] {
        let (begin, end) = (self.begins[output] as usize, self.begins[output + 1] as usize);
        debug_assert!(begin <= end && end <= self.keys.len(), "they have been sorted");
        // SAFETY: keys of the mail that was sorted.
        unsafe { self.keys.get_unchecked(begin..end) }
    }

    /// The key of number `n`; nobody reads on behind the last one, which belongs to no window.
    #[inline(always)]
    pub(crate) fn key(&self, n: usize) -> Key {
        debug_assert!(n < self.keys.len(), "nobody reads on behind the last key");
        // SAFETY: as the assertion says.
        unsafe { *self.keys.get_unchecked(n) }
    }

    /// Through which port the packet will leave whose key that is.
    #[inline(always)]
    pub(crate) fn output(&self, key: Key) -> u16 {
        debug_assert!(key.place() < self.outputs.len(), "it has been looked up");
        // SAFETY: the key was made for mail that has been looked up.
        unsafe { *self.outputs.get_unchecked(key.place()) }
    }
}

/// Sorts `count` keys; by insertion, if there are `most` of them or fewer.
///
/// # Safety
/// They have been written.
#[inline(always)]
unsafe fn sort_nearly(keys: *mut Key, count: usize, most: usize) {
    if count > most {
        // SAFETY: they have been written, and nobody else looks at them.
        unsafe { std::slice::from_raw_parts_mut(keys, count) }.sort_unstable();
        return;
    }
    for place in 1..count {
        // SAFETY: it has been written, and those before it, too.
        unsafe { insert(keys, place, *keys.add(place)) };
    }
}

/// Puts `key` in its place among the first `count` keys, which are sorted.
///
/// # Safety
/// They have been written, and there is room for one more.
#[inline(always)]
unsafe fn insert(keys: *mut Key, count: usize, key: Key) {
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
/// There is room for them.
#[inline(always)]
unsafe fn spread(keys: *mut Key, mail: &[Descriptor], window: u64, mut key_of: impl FnMut(usize, &Descriptor) -> Key) {
    let shift = (u64::BITS - window.leading_zeros()).saturating_sub(PARTS.ilog2());
    let part = |packet: &Descriptor| (u64::from(packet.at) >> shift) as usize & (PARTS - 1);
    let mut ends = [0_u16; PARTS];
    for packet in mail {
        ends[part(packet)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    for (place, packet) in mail.iter().enumerate().rev() {
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

    const OUTPUTS: u32 = 7;

    #[test]
    fn sorts_by_time_and_port() {
        let mut order = Order::default();
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        for (count, window) in [0, 1, 2, 3, 10, 31, 32, 33, 40, 64, 254, 300, 999, 1_000, 1_001]
            .into_iter()
            .zip([1, 7, 40].into_iter().cycle())
        {
            let draw = |_| Descriptor {
                at: rng.below(40) as u32,
                port: rng.below(5) as u16,
                exit: rng.below(u64::from(OUTPUTS) - 1) as u16,
                ..Descriptor::EMPTY
            };
            let mail: Vec<Descriptor> = (0..count).map(draw).collect();
            let names = |packet: &Descriptor| (packet.at, packet.port, packet.exit);
            let mut model: Vec<_> = mail.iter().map(names).collect();
            model.sort_by_key(|&(at, port, _)| (at, port));
            order.sort(&mail, window, |packet| packet.exit);
            let keys: Vec<_> = (0..count).map(|n| order.key(n)).collect();
            let sorted: Vec<_> =
                keys.iter().map(|key| (key.time() as u32, key.packet(&mail).port, order.output(*key))).collect();
            assert_eq!(sorted, model);
            assert_eq!(order.key(count).time(), u64::from(u32::MAX));

            order.look_up(&mail, |packet| packet.exit);
            order.sort_by_output(&mail, OUTPUTS);
            for output in 0..OUTPUTS {
                let sorted = order.of_output(output).iter().map(|key| names(key.packet(&mail)));
                assert!(sorted.eq(model.iter().copied().filter(|&(.., exit)| u32::from(exit) == output)));
            }
        }
    }
}
