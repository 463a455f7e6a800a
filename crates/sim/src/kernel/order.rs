//! In which order a node's mail is read.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use selvedge_units::mix64;

use super::table::Table;
use crate::net::descriptor::Descriptor;

/// Up to so many packets, insertion is the fastest way to sort: each neighbour's lie in order.
const FEW: usize = 32;
/// Up to so many it is while they are dealt out, too.
const MANY: usize = 256;
/// Up to so many, it is counted what comes in each part of a window.
const SOME: usize = 1_000;
/// Into so many parts a window is divided.
const PARTS: usize = 128;
/// For more keys than that there is no room to deal them out.
const MOST: usize = 1 << 16;

/// The packets of one node and window by time of arrival, all together or those for each output apart; of simultaneous
/// ones that with the lowest port comes first, unless [`Ties`] say otherwise. Kept from visit to visit for its memory.
pub(crate) struct Order {
    /// One for each packet. Before them stands a key before all, and behind the last one of all that are sorted
    /// together one beyond all windows.
    keys: Vec<Key>,
    /// Through which port each packet will leave, by place in the mail.
    outputs: Vec<u16>,
    /// The keys of packets that have been [dealt out](Order::deal), row by row.
    dealt: Vec<MaybeUninit<Key>>,
    /// How many keys a row has room for.
    width: u32,
    /// Where the keys of each output end, among those. Of some node, there are more.
    ends: Table<*mut Key>,
}

// SAFETY: it owns the keys at whose ends it points.
unsafe impl Send for Order {}

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

    /// Through which port it arrives.
    fn port(self) -> u64 {
        self.0 >> 16 & 0xffff
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
        self.keys.reserve(count + 2);
        self.outputs.clear();
        self.outputs.reserve(count);
        let (keys, outputs) = (self.keys.as_mut_ptr(), self.outputs.as_mut_ptr());
        // SAFETY: there is room for that many of both, and all are written, each before it is read.
        unsafe {
            keys.write(Key::FIRST);
            if count > FEW && count <= SOME {
                // Processors guess how comparisons will end; where keys are nearly in order, they are mostly right.
                write_by_parts(keys.add(1), mail, window, |place, packet| outputs.add(place).write(output_of(packet)));
                put_right(keys.add(1), count);
            } else {
                for (place, packet) in mail.iter().enumerate() {
                    outputs.add(place).write(output_of(packet));
                }
                sort_whole(keys.add(1), mail);
            }
            keys.add(count + 1).write(Key::LAST);
            self.keys.set_len(count + 2);
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
        output_of: impl Fn(&Descriptor) -> u32,
    ) -> bool {
        self.width = mail.len() as u32 + 1;
        let room = self.width as usize * ports as usize;
        if room > MOST {
            return false;
        }
        self.dealt.reserve(room);
        while self.ends.len() < ports as usize {
            self.ends.push(ptr::null_mut());
        }
        let mut row = self.dealt.as_mut_ptr().cast::<Key>();
        for port in 0..ports {
            // SAFETY: there is room for all rows.
            unsafe {
                row.write(Key::FIRST);
                self.ends[port] = row.add(1);
                row = row.add(self.width as usize);
            }
        }
        if mail.len() <= MANY {
            let mut places = 0..mail.len();
            return places.all(|place| deal_one(&mut self.ends, mail, place, ports, &output_of));
        }
        self.sort_by_parts(mail, window);
        let mut places = self.keys[1..=mail.len()].iter().map(|key| key.place());
        places.all(|place| deal_one(&mut self.ends, mail, place, ports, &output_of))
    }

    /// Puts the keys of `mail` in the order of the parts of the window, at least.
    #[inline(never)]
    fn sort_by_parts(&mut self, mail: &[Descriptor], window: u64) {
        if mail.len() > SOME {
            return self.sort(mail, window, |_| 0);
        }
        self.keys.clear();
        self.keys.reserve(mail.len() + 1);
        // SAFETY: there is room for one before them, and for all of them, which are written.
        unsafe {
            let keys = self.keys.as_mut_ptr();
            keys.write(Key::FIRST);
            write_by_parts(keys.add(1), mail, window, |_, _| {});
            self.keys.set_len(mail.len() + 1);
        }
    }

    /// Puts packets that have been [sorted](Order::sort) and arrive at the same time in the order that `ties` say.
    pub(crate) fn break_ties(&mut self, ties: Ties) {
        let count = self.outputs.len();
        ties.settle(&mut self.keys[1..=count]);
    }

    /// As [`Order::break_ties`], for packets that have been [dealt out](Order::deal) to so many ports.
    pub(crate) fn break_dealt_ties(&mut self, ties: Ties, ports: u32) {
        for port in 0..ports {
            let begin = self.dealt.as_mut_ptr().wrapping_add((port * self.width + 1) as usize).cast::<Key>();
            // SAFETY: these have been written, and nobody else looks at them.
            ties.settle(unsafe { std::slice::from_raw_parts_mut(begin, self.ends[port].offset_from(begin) as usize) });
        }
    }

    /// The keys that were dealt out to `port`, in order.
    #[inline(always)]
    pub(crate) fn dealt_to(&self, port: u32) -> &[Key] {
        let begin = self.dealt.as_ptr().wrapping_add((port * self.width + 1) as usize).cast::<Key>();
        // SAFETY: these have been written.
        unsafe { std::slice::from_raw_parts(begin, self.ends[port].offset_from(begin) as usize) }
    }

    /// The key of number `n`; nobody reads on behind the last one, which belongs to no window.
    #[inline(always)]
    pub(crate) fn key(&self, n: usize) -> Key {
        debug_assert!(n + 1 < self.keys.len(), "nobody reads on behind the last key");
        // SAFETY: as the assertion says.
        unsafe { *self.keys.get_unchecked(n + 1) }
    }

    /// The keys from number `n` on.
    #[inline(always)]
    pub(crate) fn keys_from(&self, n: usize) -> Keys<'_> {
        debug_assert!(n + 1 < self.keys.len(), "nobody reads on behind the last key");
        // SAFETY: as the assertion says.
        let first = unsafe { self.keys.as_ptr().add(n + 1) };
        Keys { first, end: self.keys.as_ptr_range().end, keys: PhantomData }
    }

    /// Through which port the packet will leave whose key that is.
    #[inline(always)]
    pub(crate) fn output(&self, key: Key) -> u16 {
        debug_assert!(key.place() < self.outputs.len(), "it has been looked up");
        // SAFETY: the key was made for mail that has been looked up.
        unsafe { *self.outputs.get_unchecked(key.place()) }
    }
}

/// In which order the packets come that arrive at one switch at the same time through several ports: an order that is
/// drawn anew for each instant, from the switch and the time alone. So no port is ahead of another one in the long run,
/// and the order does not depend on how runs are cut into partitions and windows, or packets dealt out.
#[derive(Clone, Copy)]
pub(crate) struct Ties {
    /// What the switch draws from.
    pub(crate) salt: u64,
    /// When the window begins.
    pub(crate) begin: u64,
}

impl Ties {
    /// Puts keys that are sorted by time and port in order where times are equal.
    fn settle(self, keys: &mut [Key]) {
        let mut first = 0;
        while let Some(place) = keys[first..].windows(2).position(|two| two[0].time() == two[1].time()) {
            first += place;
            let time = keys[first].time();
            let count = keys[first..].iter().take_while(|key| key.time() == time).count();
            let draw = mix64(self.salt ^ (self.begin + time));
            keys[first..][..count].sort_unstable_by_key(|key| (mix64(draw ^ key.port()), *key));
            first += count;
        }
    }
}

/// The keys that have not been read; the last one of all belongs to no window, and nobody reads on behind it.
pub(crate) struct Keys<'a> {
    first: *const Key,
    end: *const Key,
    keys: PhantomData<&'a [Key]>,
}

impl Keys<'_> {
    #[inline(always)]
    pub(crate) fn first(&self) -> Key {
        debug_assert!(self.first < self.end, "nobody reads on behind the last key");
        // SAFETY: as the assertion says.
        unsafe { *self.first }
    }

    /// Goes on to the next.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.first = self.first.wrapping_add(1);
    }

    /// How many there are, but for the last one of all.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        // SAFETY: both point into the same keys, or behind them.
        unsafe { self.end.offset_from_unsigned(self.first) - 1 }
    }
}

/// Deals out the packet at `place` to the row that ends where `ends` says; of each row, most come in order. Returns
/// whether it has such a row.
#[inline(always)]
fn deal_one(
    ends: &mut Table<*mut Key>,
    mail: &[Descriptor],
    place: usize,
    ports: u32,
    output_of: &impl Fn(&Descriptor) -> u32,
) -> bool {
    debug_assert!(place < mail.len(), "places are those of packets");
    // SAFETY: as the assertion says.
    let packet = unsafe { mail.get_unchecked(place) };
    let output = output_of(packet);
    if output >= ports {
        return false;
    }
    let end = &mut ends[output];
    // SAFETY: each output has room for all; nothing is earlier than what its row begins with.
    unsafe {
        insert(*end, Key::of(packet, place));
        *end = end.add(1);
    }
    true
}

/// Writes the keys of `mail`: first those of all that arrive in the first part of the window, then those of the next.
/// How many these are is counted before, and meanwhile each packet shown to `see`, with its place.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn write_by_parts(keys: *mut Key, mail: &[Descriptor], window: u64, mut see: impl FnMut(usize, &Descriptor)) {
    let shift = (u64::BITS - window.leading_zeros()).saturating_sub(PARTS.ilog2());
    // What comes later is anywhere.
    let part = |packet: &Descriptor| (u64::from(packet.at) >> shift) as usize & (PARTS - 1);
    let mut places = [0_u16; PARTS];
    for (place, packet) in mail.iter().enumerate() {
        places[part(packet)] += 1;
        see(place, packet);
    }
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    for (place, packet) in mail.iter().enumerate() {
        let next = &mut places[part(packet)];
        // SAFETY: as many have been counted.
        unsafe { keys.add(usize::from(*next)).write(Key::of(packet, place)) };
        *next += 1;
    }
}

/// Puts the `count` keys from `keys` on in order, where most are.
///
/// # Safety
/// They have been written, and before them stands one that is earlier.
#[inline(always)]
unsafe fn put_right(keys: *mut Key, count: usize) {
    for n in 1..count {
        // SAFETY: all have been written, and those before this one are in order.
        unsafe {
            let key = *keys.add(n);
            if *keys.add(n - 1) > key {
                insert(keys.add(n), key);
            }
        }
    }
}

/// Writes the keys of `mail` in order.
///
/// # Safety
/// There is room for them, and something earlier before the first.
#[inline(always)]
unsafe fn sort_whole(keys: *mut Key, mail: &[Descriptor]) {
    for (place, packet) in mail.iter().enumerate() {
        // SAFETY: there is room.
        unsafe { keys.add(place).write(Key::of(packet, place)) };
    }
    // SAFETY: they have been written, and nobody else looks at them.
    unsafe {
        if mail.len() > SOME {
            std::slice::from_raw_parts_mut(keys, mail.len()).sort_unstable();
        } else {
            put_right(keys, mail.len());
        }
    }
}

/// Puts `key` in its place among those before `end`, which are sorted. Most have to move by a few places at most.
///
/// # Safety
/// There is room for it at `end`, and some key before that is earlier.
#[inline(always)]
unsafe fn insert(end: *mut Key, key: Key) {
    let mut at = end;
    // SAFETY: it ends at that which is earlier.
    unsafe {
        while *at.sub(1) > key {
            *at = *at.sub(1);
            at = at.sub(1);
        }
        *at = key;
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
