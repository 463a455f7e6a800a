//! In which order a node's mail is read.

use std::mem::MaybeUninit;

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
    /// The keys of packets that have been [dealt out](Order::deal), row by row.
    dealt: Vec<MaybeUninit<Key>>,
    /// How many keys a row has room for.
    width: u32,
    /// Where the keys of each output end. Of some node, there are more.
    ends: Table<u32>,
}

/// Up to so many packets, insertion alone is the fastest way to sort while they are dealt out: each neighbour's lie in
/// order.
const MANY: usize = 256;
/// For more keys than that there is no room to deal them out.
const MOST: usize = 1 << 16;

impl Default for Order {
    fn default() -> Self {
        Self { keys: Vec::new(), outputs: Vec::new(), dealt: Vec::new(), width: 0, ends: Table::new() }
    }
}

/// When a packet arrives, through which port, and its place in the mail.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key(u64);

impl Key {
    /// Before all others, and behind them.
    const FIRST: Self = Self(0);
    const LAST: Self = Self(u64::MAX);

    #[inline(always)]
    fn of(packet: &Descriptor, place: usize) -> Self {
        // With the packet's time and port in their places: one load.
        Self(packet.way() & !0xffff | place as u64)
    }

    /// When it arrives, in picoseconds after the window's beginning; `u32::MAX` behind the last.
    #[inline(always)]
    pub(crate) fn time(self) -> u64 {
        self.0 >> 32
    }

    /// The packet's place in the mail.
    #[inline(always)]
    pub(crate) fn place(self) -> usize {
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
                sort_nearly(keys, count);
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

    /// Deals out `mail`, of which most arrives within `window` picoseconds, to the ports of a switch with so many, as
    /// `output_of` says, in the order of time. Returns whether it did: not, if there are too many of both, or a packet
    /// has no such port.
    #[inline(always)]
    pub(crate) fn deal(
        &mut self,
        mail: &[Descriptor],
        window: u64,
        ports: u32,
        output_of: impl FnMut(&Descriptor) -> u32,
    ) -> bool {
        self.width = mail.len() as u32 + 1;
        let room = self.width as usize * ports as usize;
        if room > MOST {
            return false;
        }
        self.dealt.reserve(room);
        while self.ends.len() < ports as usize {
            self.ends.push(0);
        }
        for port in 0..ports {
            let begin = port * self.width;
            // SAFETY: there is room for all rows.
            unsafe { (*self.dealt.as_mut_ptr().add(begin as usize)).write(Key::FIRST) };
            self.ends[port] = begin + 1;
        }
        if mail.len() <= MANY {
            let keys = mail.iter().enumerate().map(|(place, packet)| (Key::of(packet, place), packet));
            return deal_out(&mut self.dealt, &mut self.ends, keys, ports, output_of);
        }
        self.put_nearly_in_order(mail, window);
        let keys = self.keys.iter().map(|&key| (key, key.packet(mail)));
        deal_out(&mut self.dealt, &mut self.ends, keys, ports, output_of)
    }

    /// Writes the keys of `mail` down, so that few have to move far to be in order.
    #[inline(never)]
    fn put_nearly_in_order(&mut self, mail: &[Descriptor], window: u64) {
        self.keys.clear();
        self.keys.reserve(mail.len());
        // SAFETY: there is room for all, and all are written.
        unsafe {
            spread(self.keys.as_mut_ptr(), mail, window, |place, packet| Key::of(packet, place));
            self.keys.set_len(mail.len());
        }
        if mail.len() > SOME {
            self.keys.sort_unstable();
        }
    }

    /// The keys that were dealt out to `port`, in order.
    #[inline(always)]
    pub(crate) fn dealt_to(&self, port: u32) -> &[Key] {
        let begin = port * self.width + 1;
        let count = self.ends[port] - begin;
        // SAFETY: these have been written.
        unsafe { std::slice::from_raw_parts(self.dealt.as_ptr().add(begin as usize).cast(), count as usize) }
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

/// Deals out keys that lie nearly in order, each with its packet, to the rows that end where `ends` says. Returns
/// whether all have such a row.
#[inline(always)]
fn deal_out<'a>(
    dealt: &mut Vec<MaybeUninit<Key>>,
    ends: &mut Table<u32>,
    keys: impl Iterator<Item = (Key, &'a Descriptor)>,
    ports: u32,
    mut output_of: impl FnMut(&Descriptor) -> u32,
) -> bool {
    let dealt: *mut Key = dealt.as_mut_ptr().cast();
    for (key, packet) in keys {
        let output = output_of(packet);
        if output >= ports {
            return false;
        }
        let end = &mut ends[output];
        // SAFETY: each output has room for all; nothing is earlier than what its row begins with.
        unsafe {
            let mut at = dealt.add(*end as usize);
            // Most have to move by a few places at most.
            while *at.sub(1) > key {
                *at = *at.sub(1);
                at = at.sub(1);
            }
            *at = key;
        }
        *end += 1;
    }
    true
}

/// Sorts `count` keys that lie nearly in order.
///
/// # Safety
/// They have been written.
#[inline(always)]
unsafe fn sort_nearly(keys: *mut Key, count: usize) {
    if count > SOME {
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

            assert!(order.deal(&mail, window, OUTPUTS, |packet| packet.exit.into()));
            for output in 0..OUTPUTS {
                let expected: Vec<_> = model.iter().copied().filter(|&(.., exit)| u32::from(exit) == output).collect();
                let sorted = order.dealt_to(output).iter().map(|key| names(key.packet(&mail)));
                assert!(sorted.eq(expected));
            }
        }
    }
}
