//! Calendar of one partition: which node has something to do in which window, and the inboxes that wait for it.
//!
//! Design notes.
//! 1. *Windows* ([`WindowSchedule`]). A descriptor that a node sends in a window arrives in a later one, so all
//!    arrivals of a window are known when the window begins, and nodes can be visited one after the other: each handles
//!    its whole window while its state is in the cache. The order of visits does not change results.
//! 2. *Inboxes.* Descriptors on their way to a node wait in the node's inbox for the window of their arrival, in no
//!    order. The memory of inboxes is borrowed from a stack of spare blocks, so that memory that was just read is
//!    written next.
//! 3. *Agendas.* A node that has descriptors or a timer in a window is booked for it once: in a ring of bit sets for
//!    the near future, in a tree for what lies beyond. Nodes are visited in [`VisitOrder`] order, so that neighbours,
//!    which send to the same nodes, come one after the other. An early visit does no harm, so a node that is booked far
//!    ahead needs no second far booking that is later.
//! 4. *Remote inboxes.* Neighbours that other partitions own have inboxes here, too, but are never visited: after each
//!    window, the descriptors in these inboxes are taken to the calendar of the partition that owns the node.

use std::collections::BTreeMap;
use std::ops::Range;

use selvedge_memory::Table;

use super::inbox::{Copied, Inbox, InboxArena, InboxCursor, SMALLEST, WriteMessage};
use super::nodes::Message;
use super::schedule::WindowSchedule;
use super::visit_order::{Section, VisitOrder};

/// Number of windows that the ring of agendas covers.
const NEAR: u64 = 64;
/// Number of windows that are booked in the ring, counting the one before the present window. After turning back by a
/// window, the ring covers one more.
const REACH: u64 = NEAR - 1;

/// Binary logarithm of the largest usual inbox whose early descriptors are not moved: for so few, moving does not pay.
const SMALL: u8 = 5;

/// Indices of [`Calendar::at_hand`]: the present window, and the two in which its descriptors mostly arrive.
const NOW: usize = 0;
const SOON: usize = 1;
const LATER: usize = 2;

/// Time that never comes, in picoseconds.
const NEVER: u64 = u64::MAX;

/// Future of one partition, by window and node.
pub(crate) struct Calendar<M> {
    schedule: WindowSchedule,
    /// Side of each node: this partition's own nodes first, then those of other partitions that have a remote inbox.
    sides: Table<u8>,
    /// Number of the present window: the one that runs, or ran last.
    window: u64,
    /// Beginning and end of the present window, and beginning of the next window of the same nodes, in picoseconds.
    begin: u64,
    end: u64,
    next: u64,
    /// Length of a window in picoseconds.
    length: u64,
    visit_order: VisitOrder,
    /// Nodes to visit: a bit per node, at its place in the visit order, for each window modulo [`NEAR`].
    agendas: Table<u64>,
    /// Bit per agenda: set where some node is booked.
    filled: u64,
    /// Nodes of the present window. Kept from window to window to reuse its memory.
    agenda: Vec<u32>,
    /// Far window for which each node is booked, by node.
    booked_far: Vec<u64>,
    far: BTreeMap<u64, Vec<u32>>,
    /// Inboxes of the present window and of the two in which its descriptors mostly arrive: [`NOW`], [`SOON`],
    /// [`LATER`]. Indexed by node; an empty inbox has no memory.
    at_hand: [Table<Inbox<M>>; 3],
    /// Inboxes of all other windows that have inboxes, indexed by the window's number modulo the length of the table, a
    /// power of two. The first of these windows is the one before the present window.
    inboxes: Vec<Table<Inbox<M>>>,
    /// Indices in `inboxes` to which the three tables of `at_hand` belong.
    places: [usize; 3],
    rooms: InboxArena<M>,
    /// Binary logarithm of the largest inbox that each node has needed for a window, by node.
    usual: Table<u8>,
    /// Binary logarithm of the largest inbox that each node has needed for early descriptors, which come before their
    /// window is the node's next. Indexed by node.
    usual_early: Table<u8>,
    /// Descriptors for windows that have no inboxes yet, with their nodes.
    remote_inbox: BTreeMap<u64, Vec<(u32, M)>>,
    remote: RemoteInboxes<M>,
}

/// Descriptors for nodes of other partitions. Their remote inboxes stand behind those of this partition's own nodes.
struct RemoteInboxes<M> {
    /// Number of the first remote node here.
    first: u32,
    /// Partition of each remote node, and its number there.
    whose: Vec<(u16, u32)>,
    /// Remote nodes with descriptors, and the windows in whose inboxes these are.
    inbox: Vec<(u32, u64)>,
    /// Descriptors for windows that have no inboxes, with node and window.
    far: Vec<(u32, u64, M)>,
}

impl<M: Message> Calendar<M> {
    /// Creates the calendar of nodes with these sides, visited in the order of `visit_order`. Descriptors usually
    /// arrive within `reach` picoseconds.
    pub(crate) fn new(sides: Vec<u8>, visit_order: VisitOrder, schedule: WindowSchedule, reach: u64) -> Self {
        let nodes = sides.len();
        let depth = (reach / schedule.length() + 2).next_power_of_two().clamp(4, 16) * schedule.each();
        let mut calendar = Self {
            schedule,
            sides: sides.into(),
            window: 0,
            begin: 0,
            end: 0,
            next: 0,
            length: schedule.length(),
            agendas: Table::of(visit_order.words() as usize * NEAR as usize, || 0),
            visit_order,
            filled: 0,
            agenda: Vec::new(),
            booked_far: vec![NEVER; nodes],
            far: BTreeMap::new(),
            at_hand: [const { Table::new() }; 3],
            inboxes: (0..depth).map(|_| Table::of(nodes, || Inbox::NONE)).collect(),
            places: [NOW, SOON, LATER],
            rooms: InboxArena::new(),
            usual: Table::of(nodes, || SMALLEST as u8),
            usual_early: Table::of(nodes, || SMALLEST as u8),
            remote_inbox: BTreeMap::new(),
            remote: RemoteInboxes { first: nodes as u32, whose: Vec::new(), inbox: Vec::new(), far: Vec::new() },
        };
        calendar.exchange_inboxes();
        calendar.turn_to(0);
        calendar
    }

    /// Adds a remote inbox for `node` of another partition, which is of the given side; returns the node's number here.
    /// The inbox is emptied after each window.
    pub(crate) fn add_remote(&mut self, partition: u16, node: u32, side: u8) -> u32 {
        let number = self.sides.len() as u32;
        self.remote.whose.push((partition, node));
        self.sides.push(side);
        self.exchange_inboxes();
        self.inboxes.iter_mut().for_each(|inboxes| inboxes.push(Inbox::NONE));
        self.exchange_inboxes();
        self.usual.push(SMALLEST as u8);
        self.usual_early.push(SMALLEST as u8);
        number
    }

    /// Returns the side of a node.
    pub(crate) fn side_of(&self, node: u32) -> u8 {
        self.sides[node]
    }

    /// Returns the beginning of the present window, in picoseconds.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// Returns the next window with something to do, at `from` or later; `None` if there is none at all. Windows that
    /// are earlier than `from` by two or more must be done.
    pub(crate) fn next_window(&self, from: u64) -> Option<u64> {
        let first = |window: Option<&u64>| window.copied().unwrap_or(NEVER);
        // The window before may have been cut short and be left for later.
        let base = self.window.saturating_sub(1);
        let earlier = from.saturating_sub(base);
        let near =
            if earlier < NEAR { self.filled.rotate_right((base % NEAR) as u32) & (u64::MAX << earlier) } else { 0 };
        let near = if near == 0 { NEVER } else { base + u64::from(near.trailing_zeros()) };
        let window = near.min(first(self.far.keys().next())).min(first(self.remote_inbox.keys().next()));
        (window != NEVER).then_some(window)
    }

    /// Returns the end of the present window, in picoseconds.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Turns to `window`, which may also be the one before the window that ran last.
    pub(crate) fn turn_to(&mut self, window: u64) {
        self.window = window;
        (self.begin, self.end) = (self.schedule.begin(window), self.schedule.end(window));
        self.next = self.schedule.begin(window + 1);
        self.exchange_inboxes();
        self.places = [0, 1, 1 + self.schedule.each()].map(|ahead| self.place(window + ahead));
        self.exchange_inboxes();
        self.fetch_far();
    }

    /// Swaps the inboxes that are used most into `at_hand`, or back to where they belong.
    fn exchange_inboxes(&mut self) {
        for (inboxes, &place) in self.at_hand.iter_mut().zip(&self.places) {
            std::mem::swap(inboxes, &mut self.inboxes[place]);
        }
    }

    #[inline]
    fn place(&self, window: u64) -> usize {
        window as usize & (self.inboxes.len() - 1)
    }

    /// Returns the inboxes of `window`, which must have inboxes.
    #[inline]
    fn inboxes_of(&mut self, window: u64) -> &mut Table<Inbox<M>> {
        let place = self.place(window);
        match self.places.iter().position(|&other| other == place) {
            Some(which) => &mut self.at_hand[which],
            None => &mut self.inboxes[place],
        }
    }

    /// Returns whether there are inboxes for `window`.
    #[inline]
    fn has_inboxes_for(&self, window: u64) -> bool {
        is_near(self.window, window, self.inboxes.len() as u64)
    }

    /// Turns to the window in which `node` handles events at `time`.
    pub(crate) fn turn_to_window_of(&mut self, node: u32, time: u64) {
        self.turn_to(self.schedule.window_of(self.sides[node], time));
    }

    /// Takes the nodes to visit in this window, in visit order; `None` if there are none. The list goes back through
    /// [`Calendar::return_agenda`].
    pub(crate) fn take_agenda(&mut self) -> Option<Vec<u32>> {
        let slot = (self.window % NEAR) as u32;
        if self.filled & 1 << slot == 0 {
            return None;
        }
        self.filled &= !(1 << slot);
        Some(self.take_words(0..self.visit_order.words()))
    }

    /// Takes the nodes of one section of the visit order that are to be visited in this window; `None` if there are
    /// none. The list goes back through [`Calendar::return_agenda`].
    pub(crate) fn take_section(&mut self, section: &Section) -> Option<Vec<u32>> {
        let nodes = self.take_words(section.words.clone());
        if nodes.is_empty() {
            self.return_agenda(nodes);
            return None;
        }
        Some(nodes)
    }

    fn take_words(&mut self, words: Range<u32>) -> Vec<u32> {
        let first = (self.window % NEAR) as u32 * self.visit_order.words();
        let mut nodes = std::mem::take(&mut self.agenda);
        for word in words {
            let booked = std::mem::take(&mut self.agendas[first + word]);
            nodes.extend(self.visit_order.nodes(word, booked));
        }
        nodes
    }

    /// Returns section number `n` of the visit order; `None` behind the last.
    pub(crate) fn section(&self, n: usize) -> Option<Section> {
        self.visit_order.sections().get(n).cloned()
    }

    /// Takes back a list from [`Calendar::take_agenda`] or [`Calendar::take_section`].
    pub(crate) fn return_agenda(&mut self, mut nodes: Vec<u32>) {
        nodes.clear();
        self.agenda = nodes;
    }

    /// Moves bookings and descriptors that have come within reach from the trees to the ring and the inboxes.
    fn fetch_far(&mut self) {
        let now = self.window;
        while let Some(entry) = self.far.first_entry()
            && is_near(now, *entry.key(), REACH)
        {
            let (window, nodes) = entry.remove_entry();
            for node in nodes {
                self.booked_far[node as usize] = NEVER;
                self.book_window(node, window);
            }
        }
        while let Some(&window) = self.remote_inbox.keys().next()
            && self.has_inboxes_for(window)
            && let Some(inbox) = self.remote_inbox.remove(&window)
        {
            for (node, descriptor) in inbox {
                self.put(node, window, true, [descriptor]);
            }
        }
    }

    /// Books `node` for a visit at `time`, which has not passed, or earlier.
    #[inline]
    pub(crate) fn book(&mut self, node: u32, time: u64) {
        self.book_window(node, self.schedule.window_of(self.sides[node], time));
    }

    /// Books the node that is being visited for another visit at `time` or earlier.
    #[inline]
    pub(crate) fn book_again(&mut self, node: u32, time: u64) {
        // Mostly `time` is in this window or the node's next one, and divisions are slow.
        if time < self.end {
            self.book_window(node, self.window);
        } else if time - self.end < self.length {
            self.book_window(node, self.window + self.schedule.each());
        } else {
            self.book(node, time);
        }
    }

    #[inline]
    fn book_window(&mut self, node: u32, window: u64) {
        if is_near(self.window, window, REACH) {
            let slot = (window % NEAR) as u32;
            self.filled |= 1 << slot;
            let (word, bit) = self.visit_order.place(node);
            self.agendas[slot * self.visit_order.words() + word] |= bit;
        } else {
            self.book_far(node, window);
        }
    }

    #[cold]
    fn book_far(&mut self, node: u32, window: u64) {
        let booked = &mut self.booked_far[node as usize];
        if window < *booked {
            *booked = window;
            self.far.entry(window).or_default().push(node);
        }
    }

    /// Sends `packet` from the node that is being visited to its neighbour `node`, where it arrives at `time` through
    /// `port`.
    #[inline(always)]
    pub(crate) fn send(&mut self, node: u32, time: u64, port: u16, packet: impl WriteMessage<M>) {
        debug_assert!(time >= self.next, "a link delays by a step at least");
        debug_assert!(self.schedule.is_turn(self.sides[node], self.window + 1), "neighbours take turns");
        // Mostly the packet arrives in the neighbour's next window, or in the one after that.
        let after = time - self.next;
        if after < self.length {
            self.put_at_hand::<SOON>(node, after, port, packet);
        } else if after - self.length < self.length {
            self.put_at_hand::<LATER>(node, after - self.length, port, packet);
        } else {
            packet.show(|packet| self.send_far(node, time, port, packet));
        }
    }

    #[inline(always)]
    fn put_at_hand<const WHICH: usize>(&mut self, node: u32, after: u64, port: u16, packet: impl WriteMessage<M>) {
        if self.at_hand[WHICH][node].is_full() {
            self.make_room_at_hand(node, WHICH == LATER);
        }
        self.at_hand[WHICH][node].push(packet, after as u32, port);
    }

    /// Returns an outlet: a way to send many packets, in order of arrival, from the node that is being visited to its
    /// neighbour `node`, where they arrive through `port`. Times are in picoseconds after the beginning of the window.
    #[inline(always)]
    pub(crate) fn outlet(&mut self, node: u32, port: u16) -> InboxWriter<'_, M> {
        let begin = self.next - self.begin;
        let (end, tail) = (begin + self.length, self.at_hand[SOON][node].cursor());
        InboxWriter { calendar: self, node, port, later: false, begin, end, tail }
    }

    /// Grows the inbox of `node` for its next window, or the one after that (`later`), so that one more descriptor
    /// fits.
    #[inline(never)]
    fn make_room_at_hand(&mut self, node: u32, later: bool) {
        let which = if later { LATER } else { SOON };
        let mut inbox = std::mem::replace(&mut self.at_hand[which][node], Inbox::NONE);
        self.make_room(&mut inbox, node, self.window + 1 + if later { self.schedule.each() } else { 0 }, later);
        self.at_hand[which][node] = inbox;
    }

    /// Grows `inbox`, the inbox of `node` for `window`, so that one more descriptor fits. If the inbox was empty, the
    /// node is booked for the window; a node of another partition is noted.
    ///
    /// Descriptors that come `early` are few and wait long. If all later ones were written behind them, that memory
    /// would have left the cache. So, unless these are few as well, early descriptors have a small block of their own,
    /// and move to one that was just read when the others come.
    #[inline]
    fn make_room(&mut self, inbox: &mut Inbox<M>, node: u32, window: u64, early: bool) {
        if inbox.is_empty() {
            let usual = self.usual[node];
            let moves = early && usual > SMALL && self.rooms.exceed_cache();
            *inbox = self.rooms.lend(if moves { self.usual_early[node] } else { usual }.into());
            if node < self.remote.first {
                self.book_window(node, window);
            } else {
                self.remote.inbox.push((node, window));
            }
        } else {
            let usual = if early { &mut self.usual_early[node] } else { &mut self.usual[node] };
            *usual = (*usual).max(inbox.size() as u8 + 1);
            self.rooms.enlarge(inbox, (*usual).into());
        }
    }

    /// Puts packets into the inbox of a node and window.
    fn put(&mut self, node: u32, window: u64, early: bool, packets: impl IntoIterator<Item = M>) {
        let mut inbox = std::mem::replace(&mut self.inboxes_of(window)[node], Inbox::NONE);
        for packet in packets {
            if inbox.is_full() {
                self.make_room(&mut inbox, node, window, early);
            }
            inbox.push(Copied(&packet), packet.at(), packet.port());
        }
        self.inboxes_of(window)[node] = inbox;
    }

    /// Sends `packet` to `node`, like [`Calendar::send`], but with any arrival time and from any sender.
    #[inline(never)]
    pub(crate) fn send_far(&mut self, node: u32, time: u64, port: u16, packet: &M) {
        let window = self.schedule.window_of(self.sides[node], time);
        let at = (time - self.schedule.begin(window)) as u32;
        let mut descriptor = *packet;
        descriptor.set_arrival(at, port);
        if self.has_inboxes_for(window) {
            self.put(node, window, true, [descriptor]);
        } else if node < self.remote.first {
            self.remote_inbox.entry(window).or_default().push((node, descriptor));
        } else {
            self.remote.far.push((node, window, descriptor));
        }
    }

    /// Takes the descriptors of one remote inbox, with the node's partition, its number there, and the window; `None`
    /// if all remote inboxes are empty. The inbox goes back through [`Calendar::return_inbox`] when it is read.
    pub(crate) fn take_remote_inbox(&mut self) -> Option<((u16, u32), u64, Inbox<M>)> {
        let (node, window, inbox) = if let Some((node, window, packet)) = self.remote.far.pop() {
            let mut inbox = self.rooms.lend(SMALLEST);
            inbox.push(Copied(&packet), packet.at(), packet.port());
            (node, window, inbox)
        } else {
            let (node, window) = self.remote.inbox.pop()?;
            (node, window, std::mem::replace(&mut self.inboxes_of(window)[node], Inbox::NONE))
        };
        Some((self.remote.whose[(node - self.remote.first) as usize], window, inbox))
    }

    /// Takes in descriptors for `node` and `window` that nodes of other partitions have sent.
    pub(crate) fn take_in(&mut self, node: u32, window: u64, packets: impl Iterator<Item = M>) {
        if self.has_inboxes_for(window) {
            self.put(node, window, window > self.window + 1, packets);
        } else {
            self.remote_inbox.entry(window).or_default().extend(packets.map(|packet| (node, packet)));
        }
    }

    /// Prefetches the entry that tells where the inbox of `node` lies.
    #[inline]
    pub(crate) fn prefetch_inbox(&self, node: u32) {
        selvedge_prefetch::prefetch(&self.at_hand[NOW], node);
    }

    /// Shows all descriptors that have not been read: the node of this partition that they are for, the beginning of
    /// the window in which they arrive, and the packets. Remote inboxes must be empty.
    pub(crate) fn for_all_inboxes(&self, mut see: impl FnMut(u32, u64, &[M])) {
        let first = self.window.saturating_sub(1);
        for window in first..first + self.inboxes.len() as u64 {
            let slot = (window % NEAR) as u32;
            if self.filled & 1 << slot == 0 {
                continue;
            }
            let place = self.place(window);
            let which = self.places.iter().position(|&other| other == place);
            let inboxes = which.map_or(&self.inboxes[place], |which| &self.at_hand[which]);
            for word in 0..self.visit_order.words() {
                for node in self.visit_order.nodes(word, self.agendas[slot * self.visit_order.words() + word]) {
                    if !inboxes[node].is_empty() {
                        see(node, self.schedule.begin(window), &inboxes[node]);
                    }
                }
            }
        }
        for (&window, inbox) in &self.remote_inbox {
            inbox
                .iter()
                .for_each(|(node, packet)| see(*node, self.schedule.begin(window), std::slice::from_ref(packet)));
        }
    }

    /// Returns the inbox of `node` for this window, which stays in place.
    #[inline]
    pub(crate) fn inbox(&self, node: u32) -> &[M] {
        &self.at_hand[NOW][node]
    }

    /// Takes the inbox of `node` for this window, in no order. It goes back through [`Calendar::return_inbox`] when it
    /// is read.
    #[inline]
    pub(crate) fn take_inbox(&mut self, node: u32) -> Inbox<M> {
        std::mem::replace(&mut self.at_hand[NOW][node], Inbox::NONE)
    }

    /// Takes back an inbox from [`Calendar::take_inbox`].
    #[inline]
    pub(crate) fn return_inbox(&mut self, inbox: Inbox<M>) {
        self.rooms.take_back(inbox);
    }

    /// Keeps the rest of the inbox of `node` for another visit in this window, which the caller books. Afterwards,
    /// `inbox` goes back as if all of it had been read.
    #[cold]
    pub(crate) fn keep_rest<'m>(&mut self, node: u32, inbox: &'m Inbox<M>, rest: impl Iterator<Item = &'m M>) {
        self.at_hand[NOW][node] = self.rooms.keep(inbox, rest);
    }
}

/// Way to send many packets to one neighbour; see [`Calendar::outlet`].
pub(crate) struct InboxWriter<'a, M: Message> {
    calendar: &'a mut Calendar<M>,
    node: u32,
    port: u16,
    /// Whether the last packet went to the inbox of the later window; that window's beginning and end.
    later: bool,
    begin: u64,
    end: u64,
    /// End of the descriptors in that inbox.
    tail: InboxCursor<M>,
}

impl<M: Message> InboxWriter<'_, M> {
    /// Sends `packet`, which arrives at `time`, not earlier than the packet before it.
    #[inline(always)]
    pub(crate) fn send(&mut self, time: u64, packet: impl WriteMessage<M>) {
        if time >= self.end && !self.turn_to_window_of(time) {
            let time = self.calendar.begin + time;
            return packet.show(|packet| self.calendar.send_far(self.node, time, self.port, packet));
        }
        if self.tail.is_full() {
            self.make_room();
        }
        // SAFETY: the inbox has room for one more; it stays in its block, as the calendar is borrowed.
        unsafe { self.tail.push(packet, (time - self.begin) as u32, self.port) };
    }

    /// Returns the inbox at hand.
    #[inline(always)]
    fn inbox(&mut self) -> &mut Inbox<M> {
        let inboxes = &mut self.calendar.at_hand;
        if self.later { &mut inboxes[LATER][self.node] } else { &mut inboxes[SOON][self.node] }
    }

    /// Makes the packets that were sent contents of the inbox at hand.
    #[inline(always)]
    fn store(&mut self) {
        let tail = self.tail;
        // SAFETY: the cursor is a copy of this inbox's end, and the calendar, which the inbox belongs to, is borrowed.
        unsafe { self.inbox().advance_to(tail) };
    }

    /// Turns to the inbox for arrivals at `time`, behind the end of the first window. Returns whether such an inbox is
    /// at hand.
    #[inline(never)]
    fn turn_to_window_of(&mut self, time: u64) -> bool {
        let (begin, length) = (self.calendar.next - self.calendar.begin + self.calendar.length, self.calendar.length);
        if time - begin >= length {
            return false;
        }
        self.store();
        (self.later, self.begin, self.end) = (true, begin, begin + length);
        self.tail = self.inbox().cursor();
        true
    }

    #[inline(never)]
    fn make_room(&mut self) {
        self.store();
        self.calendar.make_room_at_hand(self.node, self.later);
        self.tail = self.inbox().cursor();
    }
}

impl<M: Message> Drop for InboxWriter<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.store();
    }
}

/// Returns whether `window` has its place in a ring of `ring` windows, the first of which is the one before `now`.
#[inline]
fn is_near(now: u64, window: u64, ring: u64) -> bool {
    window + 1 - now < ring
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use selvedge_units::{Domain, Duration, Rng};

    use super::*;
    use crate::kernel::tests::Numbered;

    #[test]
    fn turning_back_forgets_nothing() {
        let schedule = WindowSchedule::new(Duration::from_ps(1_000), Some(0));
        for ahead in 1..200 {
            let mut calendar: Calendar<Numbered> = Calendar::new(vec![0, 1], VisitOrder::by_number(2), schedule, 5_000);
            calendar.turn_to(100);
            calendar.turn_to(101);
            let time = schedule.begin(101 + ahead);
            calendar.book((101 + ahead) as u32 % 2, time + 1);
            let window = calendar.next_window(102);
            calendar.turn_to(100);
            assert_eq!((calendar.next_window(100), window), (Some(101 + ahead), Some(101 + ahead)));
        }
    }

    /// Checks that visits and descriptors come in their windows, however far away, also where a window is cut short and
    /// its nodes continue after nodes of the next window have come as far.
    #[test]
    fn everybody_is_visited_in_time_and_gets_all_mail() {
        for (seed, reach) in [(1, 3_000), (2, 40_000), (3, 900_000)] {
            for in_turns in [false, true] {
                let schedule = WindowSchedule::new(Duration::from_ps(1_000), in_turns.then_some(0));
                let mut rng = Rng::stream(seed, Domain::Impairment, 0);
                let sides = vec![0, 0, 0, 1, 1, 0, 1];
                let nodes = sides.len() as u64;
                let side = |node: u32| if in_turns { sides[node as usize] } else { 0 };
                let mut calendar: Calendar<Numbered> =
                    Calendar::new(sides.clone(), VisitOrder::by_number(sides.len()), schedule, 5_000);
                // (node, time) of the visits and arrivals to come.
                let mut visits = BTreeSet::from([(0, 0)]);
                let mut inbox = BTreeSet::new();
                calendar.book(0, 0);
                let (mut sent, mut from) = (0u32, 0);
                let mut cut = NEVER;
                loop {
                    let next = calendar.next_window(from);
                    let Some(window) = next.filter(|&window| schedule.begin(window) < cut) else {
                        if cut == NEVER {
                            break;
                        }
                        (from, cut) = (schedule.first_with(cut), NEVER);
                        continue;
                    };
                    let first = visits.iter().chain(&inbox).map(|&(node, at)| schedule.window_of(side(node), at)).min();
                    assert!(first.is_none_or(|first| window <= first || cut != NEVER), "nothing is forgotten");
                    if cut == NEVER && rng.below(3) == 0 {
                        cut = schedule.end(window) - 1 - rng.below(999);
                    }
                    calendar.turn_to(window);
                    from = window + 1;
                    let end = calendar.end().min(cut);
                    let Some(list) = calendar.take_agenda() else { continue };
                    assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), list.len(), "one visit each");
                    for &node in &list {
                        assert!(schedule.is_turn(side(node), window), "its turn");
                        visits.retain(|&(other, at)| other != node || at >= end);
                        let letters = calendar.take_inbox(node);
                        let (now, later): (Vec<_>, _) = letters
                            .iter()
                            .copied()
                            .partition(|letter: &Numbered| calendar.begin() + u64::from(letter.at) < end);
                        for letter in &now {
                            let at = calendar.begin() + u64::from(letter.at);
                            assert!(inbox.remove(&(node, at)), "sent once, and for this window");
                        }
                        if let Some(first) = later.first() {
                            visits.insert((node, calendar.begin() + u64::from(first.at)));
                            calendar.keep_rest(node, &letters, later.iter());
                        }
                        calendar.return_inbox(letters);
                        if sent < 30_000 {
                            sent += 2;
                            let to = rng.below(nodes) as u32;
                            let at = end + schedule.length() + rng.below(reach);
                            if inbox.insert((to, at)) {
                                let packet = Numbered { number: sent, at: 0, port: 0 };
                                if schedule.is_turn(side(to), window + 1) {
                                    calendar.send(to, at, 0, Copied(&packet));
                                } else {
                                    calendar.send_far(to, at, 0, &packet);
                                }
                            }
                            let (who, at) = (rng.below(nodes) as u32, end + schedule.length() + rng.below(reach));
                            calendar.book(who, at);
                            visits.insert((who, at));
                        }
                    }
                    calendar.return_agenda(list.clone());
                    // Visited nodes book their next visits.
                    for node in list {
                        if let Some(&(_, at)) = visits.iter().find(|&&(other, _)| other == node) {
                            calendar.book_again(node, at);
                        }
                    }
                }
                assert!(visits.is_empty() && inbox.is_empty());
            }
        }
    }
}
