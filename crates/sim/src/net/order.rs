//! Sorting of the descriptors in an inbox by time of arrival.

use std::mem::MaybeUninit;
use std::slice;

use selvedge_switch::descriptor::Descriptor;
use selvedge_switch::switch::tie;

/// Largest number of packets that are sorted by insertion alone: fastest for so few, as those of each neighbour lie in
/// order.
const FEW: usize = 32;
/// Largest number of packets that are sorted by insertion alone while they are dealt out to outputs.
const MANY: usize = 256;
/// Largest number of packets that are presorted by counting the arrivals in each part of a window.
const SOME: usize = 1_000;
/// Number of parts into which a window is divided for presorting.
const PARTS: usize = 128;
/// Largest number of keys, over the rows of all outputs, for which packets are dealt out.
const MOST: usize = 1 << 16;

/// Packets of one node and window by time of arrival, either all together or for each output apart. Of simultaneous
/// packets, the one with the lowest input port comes first, unless [`Ties`] say otherwise. Kept from visit to visit to
/// reuse its memory.
#[derive(Default)]
pub(crate) struct Order {
    /// Keys, one per packet. A key before all others stands in front; where all packets are sorted together, a key
    /// beyond all windows stands at the end.
    keys: Vec<Key>,
    /// Output port of each packet, indexed by its place in the inbox.
    outputs: Vec<u16>,
    /// Keys of packets that have been [dealt out](Order::deal), row by row.
    dealt: Vec<MaybeUninit<Key>>,
    /// Capacity of a row, in keys.
    width: usize,
    /// End of each output's keys in `dealt`, indexed by output port. All keys of a row, from its second one to its end,
    /// have been written.
    ends: Vec<*mut Key>,
}

// SAFETY: the order owns the keys to whose ends it points.
unsafe impl Send for Order {}

/// Key of a packet: its time of arrival, its input port and its place in the inbox.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key(u64);

impl Key {
    /// Keys before all others, and behind all others.
    const FIRST: Self = Self(0);
    const LAST: Self = Self(u64::MAX);

    #[inline(always)]
    fn of(packet: &Descriptor, place: usize) -> Self {
        // The packet's time and port already have their places in the word: a single load.
        Self(packet.way() & !0xffff | place as u64)
    }

    /// Returns the time of arrival, in picoseconds after the window's beginning; `u32::MAX` for the key behind the
    /// last.
    #[inline(always)]
    pub(crate) fn time(self) -> u64 {
        self.0 >> 32
    }

    /// Returns the input port.
    fn port(self) -> u64 {
        self.0 >> 16 & 0xffff
    }

    /// Returns the packet's place in the inbox.
    #[inline(always)]
    pub(crate) fn place(self) -> usize {
        usize::from(self.0 as u16)
    }

    /// Returns the packet; `inbox` is the inbox that was sorted.
    ///
    /// # Panics
    /// If `inbox` has no such place.
    #[inline(always)]
    pub(crate) fn packet(self, inbox: &[Descriptor]) -> &Descriptor {
        &inbox[self.place()]
    }
}

impl Order {
    /// Sorts `inbox`, at most 65,535 packets, most of which arrive within `window` picoseconds, and notes the output
    /// port of each packet, given by `output_of`.
    #[inline(always)]
    pub(crate) fn sort(&mut self, inbox: &[Descriptor], window: u64, mut output_of: impl FnMut(&Descriptor) -> u16) {
        let count = inbox.len();
        self.keys.clear();
        self.keys.reserve(count + 2);
        self.outputs.clear();
        self.outputs.reserve(count);
        let (keys, outputs) = (self.keys.as_mut_ptr(), self.outputs.as_mut_ptr());
        // SAFETY: both have the capacity for that many, and all are written, each before it is read.
        unsafe {
            keys.write(Key::FIRST);
            if count > FEW && count <= SOME {
                // Branch prediction is mostly right about comparisons where keys are nearly in order.
                write_by_parts(keys.add(1), inbox, window, |place, packet| outputs.add(place).write(output_of(packet)));
                put_right(keys.add(1), count);
            } else {
                for (place, packet) in inbox.iter().enumerate() {
                    outputs.add(place).write(output_of(packet));
                }
                sort_whole(keys.add(1), inbox);
            }
            keys.add(count + 1).write(Key::LAST);
            self.keys.set_len(count + 2);
            self.outputs.set_len(count);
        }
    }

    /// Deals out `inbox`, most of which arrives within `window` picoseconds, in order of time to the output ports given
    /// by `output_of`, on a switch with `ports` ports. Returns whether all packets were dealt out: `false` if there are
    /// too many packets and ports, or a packet has no such port.
    #[inline(always)]
    pub(crate) fn deal(
        &mut self,
        inbox: &[Descriptor],
        window: u64,
        ports: u32,
        output_of: impl Fn(&Descriptor) -> u32,
    ) -> bool {
        self.ends.clear();
        self.width = inbox.len() + 1;
        let room = self.width * ports as usize;
        if room > MOST {
            return false;
        }
        self.dealt.reserve(room);
        let mut row = self.dealt.as_mut_ptr().cast::<Key>();
        self.ends.resize(ports as usize, row);
        for end in &mut self.ends {
            // SAFETY: `dealt` has capacity for all rows.
            unsafe {
                row.write(Key::FIRST);
                *end = row.add(1);
                row = row.add(self.width);
            }
        }
        if inbox.len() <= MANY {
            let (ends, mut packets) = (&mut self.ends[..], inbox.iter().enumerate());
            return packets.all(|(place, packet)| deal_one(ends, packet, place, output_of(packet)));
        }
        self.sort_by_parts(inbox, window);
        let mut packets = self.keys[1..=inbox.len()].iter().map(|key| (key.place(), key.packet(inbox)));
        let ends = &mut self.ends[..];
        packets.all(|(place, packet)| deal_one(ends, packet, place, output_of(packet)))
    }

    /// Sorts the keys of `inbox` at least by the parts of the window.
    #[inline(never)]
    fn sort_by_parts(&mut self, inbox: &[Descriptor], window: u64) {
        if inbox.len() > SOME {
            return self.sort(inbox, window, |_| 0);
        }
        self.keys.clear();
        self.keys.reserve(inbox.len() + 1);
        // SAFETY: `keys` has capacity for one in front of them, and for all of them, which are written.
        unsafe {
            let keys = self.keys.as_mut_ptr();
            keys.write(Key::FIRST);
            write_by_parts(keys.add(1), inbox, window, |_, _| {});
            self.keys.set_len(inbox.len() + 1);
        }
    }

    /// Puts packets that have been [sorted](Order::sort) and arrive at the same time in the order given by `ties`.
    pub(crate) fn break_ties(&mut self, ties: Ties) {
        let count = self.outputs.len();
        ties.settle(&mut self.keys[1..=count]);
    }

    /// Puts packets that have been [dealt out](Order::deal) and arrive at the same time in the order given by `ties`.
    pub(crate) fn break_dealt_ties(&mut self, ties: Ties) {
        let mut row = self.dealt.as_mut_ptr().cast::<Key>();
        for end in &self.ends {
            let begin = row.wrapping_add(1);
            // SAFETY: these keys have been written, and nothing else borrows them.
            ties.settle(unsafe { slice::from_raw_parts_mut(begin, end.offset_from_unsigned(begin)) });
            row = row.wrapping_add(self.width);
        }
    }

    /// Returns the keys that were dealt out to each port, in order.
    #[inline(always)]
    pub(crate) fn dealt(&self) -> impl Iterator<Item = &[Key]> {
        let mut row = self.dealt.as_ptr().cast::<Key>();
        self.ends.iter().map(move |&end| {
            let begin = row.wrapping_add(1);
            row = row.wrapping_add(self.width);
            // SAFETY: these keys have been written.
            unsafe { slice::from_raw_parts(begin, end.cast_const().offset_from_unsigned(begin)) }
        })
    }

    /// Returns key number `n`; behind the last one stands one more key, which belongs to no window.
    ///
    /// # Panics
    /// If there are fewer keys.
    #[inline(always)]
    pub(crate) fn key(&self, n: usize) -> Key {
        self.keys[n + 1]
    }

    /// Returns the keys from number `n` on.
    ///
    /// # Panics
    /// If there are fewer keys.
    #[inline(always)]
    pub(crate) fn keys_from(&self, n: usize) -> Keys<'_> {
        Keys { left: self.keys[n + 1..].iter() }
    }

    /// Returns the output port of the packet with this key.
    ///
    /// # Panics
    /// If the key was made for another inbox.
    #[inline(always)]
    pub(crate) fn output(&self, key: Key) -> u16 {
        self.outputs[key.place()]
    }
}

/// Order of the packets that arrive at one switch at the same time through several ports. The order is drawn anew for
/// each instant, from the switch and the time alone. So no port is ahead of another in the long run, and the order
/// depends neither on how runs are cut into partitions and windows nor on whether packets are dealt out.
#[derive(Clone, Copy)]
pub(crate) struct Ties {
    /// Number from which the switch's draws derive.
    pub(crate) salt: u64,
    /// Beginning of the window.
    pub(crate) begin: u64,
}

impl Ties {
    /// Reorders keys of equal times; `keys` are sorted by time and port.
    fn settle(self, keys: &mut [Key]) {
        let mut first = 0;
        while let Some(place) = keys[first..].windows(2).position(|two| two[0].time() == two[1].time()) {
            first += place;
            let time = keys[first].time();
            let count = keys[first..].iter().take_while(|key| key.time() == time).count();
            let rank = |key: &Key| tie(self.salt, self.begin + time, key.port());
            keys[first..][..count].sort_unstable_by_key(|key| (rank(key), *key));
            first += count;
        }
    }
}

/// Keys that have not been read. The last key of all belongs to no window.
pub(crate) struct Keys<'a> {
    left: slice::Iter<'a, Key>,
}

impl Keys<'_> {
    /// Returns the first key that has not been read; behind the last one, a key that belongs to no window.
    #[inline(always)]
    pub(crate) fn first(&self) -> Key {
        self.left.as_slice().first().copied().unwrap_or(Key::LAST)
    }

    /// Advances to the next key.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.left.next();
    }

    /// Returns the number of keys left, not counting the last one of all.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left.len().saturating_sub(1)
    }
}

/// Deals out `packet`, which is at `place` of its inbox, to the row that ends at its output's entry of `ends`; most
/// packets of a row come in order. Returns whether the packet has such a row.
///
/// Each packet of the inbox is dealt out at most once: each row has capacity for all of them.
#[inline(always)]
fn deal_one(ends: &mut [*mut Key], packet: &Descriptor, place: usize, output: u32) -> bool {
    let Some(end) = ends.get_mut(output as usize) else { return false };
    // SAFETY: each row has capacity for all packets; no key is earlier than the one in front of the row.
    unsafe {
        insert(*end, Key::of(packet, place));
        *end = end.add(1);
    }
    true
}

/// Writes the keys of `inbox`: first those of all packets that arrive in the first part of the window, then those of
/// the next. The packets of each part are counted before; meanwhile, each packet is shown to `see` with its place.
///
/// # Safety
/// `keys` has capacity for all of them.
#[inline(always)]
unsafe fn write_by_parts(keys: *mut Key, inbox: &[Descriptor], window: u64, mut see: impl FnMut(usize, &Descriptor)) {
    let shift = (u64::BITS - window.leading_zeros()).saturating_sub(PARTS.ilog2());
    // Later packets may go to any part.
    let part = |packet: &Descriptor| (u64::from(packet.at) >> shift) as usize & (PARTS - 1);
    let mut places = [0_u16; PARTS];
    for (place, packet) in inbox.iter().enumerate() {
        places[part(packet)] += 1;
        see(place, packet);
    }
    let mut sum = 0;
    for place in &mut places {
        sum += std::mem::replace(place, sum);
    }
    for (place, packet) in inbox.iter().enumerate() {
        let next = &mut places[part(packet)];
        // SAFETY: this many packets have been counted.
        unsafe { keys.add(usize::from(*next)).write(Key::of(packet, place)) };
        *next += 1;
    }
}

/// Sorts the `count` keys from `keys` on, most of which are in order.
///
/// # Safety
/// The keys have been written, and an earlier key stands in front of them.
#[inline(always)]
unsafe fn put_right(keys: *mut Key, count: usize) {
    for n in 1..count {
        // SAFETY: all keys have been written, and those before this one are in order.
        unsafe {
            let key = *keys.add(n);
            if *keys.add(n - 1) > key {
                insert(keys.add(n), key);
            }
        }
    }
}

/// Writes the keys of `inbox` in order.
///
/// # Safety
/// `keys` has capacity for all of them, and an earlier key stands in front of the first.
#[inline(always)]
unsafe fn sort_whole(keys: *mut Key, inbox: &[Descriptor]) {
    for (place, packet) in inbox.iter().enumerate() {
        // SAFETY: there is capacity for all keys.
        unsafe { keys.add(place).write(Key::of(packet, place)) };
    }
    // SAFETY: the keys have been written, and nothing else borrows them.
    unsafe {
        if inbox.len() > SOME {
            slice::from_raw_parts_mut(keys, inbox.len()).sort_unstable();
        } else {
            put_right(keys, inbox.len());
        }
    }
}

/// Inserts `key` in its place among the keys before `end`, which are sorted. Most keys move by a few places at most.
///
/// # Safety
/// There is capacity for the key at `end`, and some key before `end` is earlier.
#[inline(always)]
unsafe fn insert(end: *mut Key, key: Key) {
    let mut at = end;
    // SAFETY: the loop ends at the earlier key.
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
            let inbox: Vec<Descriptor> = (0..count).map(draw).collect();
            let names = |packet: &Descriptor| (packet.at, packet.port, packet.exit);
            let mut model: Vec<_> = inbox.iter().map(names).collect();
            model.sort_by_key(|&(at, port, _)| (at, port));
            order.sort(&inbox, window, |packet| packet.exit);
            let keys: Vec<_> = (0..count).map(|n| order.key(n)).collect();
            let sorted: Vec<_> =
                keys.iter().map(|key| (key.time() as u32, key.packet(&inbox).port, order.output(*key))).collect();
            assert_eq!(sorted, model);
            assert_eq!(order.key(count).time(), u64::from(u32::MAX));

            assert!(order.deal(&inbox, window, OUTPUTS, |packet| packet.exit.into()));
            for (output, keys) in (0..OUTPUTS).zip(order.dealt()) {
                let expected: Vec<_> = model.iter().copied().filter(|&(.., exit)| u32::from(exit) == output).collect();
                let sorted = keys.iter().map(|key| names(key.packet(&inbox)));
                assert!(sorted.eq(expected));
            }
        }
    }
}
