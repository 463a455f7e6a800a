//! Which node has something to do in which window, and the mail that waits for it.
//!
//! Design notes.
//! 1. *Windows.* Time is cut into windows as long as the smallest delay of any link. What a node sends in
//!    a window arrives in a later one, so a node's arrivals of a window are all known when the window
//!    begins, and nodes can be visited one after the other: each handles its whole window while its
//!    state is in the cache. Which node comes first makes no difference.
//! 2. *Mail.* What is on its way to a node waits in the node's inbox for the window of its arrival, in no
//!    order. Inboxes are borrowed from a stack of spare ones, so that memory that was just read is
//!    written next.
//! 3. *Agendas.* A node that has mail or a timer in a window is booked for it once: a ring of bit sets for
//!    the near future, a tree for what lies beyond. Nodes are visited in the order of their numbers, so
//!    that neighbours, whose mail goes to the same places, come one after the other. An early visit does
//!    no harm, so a node that is booked far away needs no second far booking that is later.

use std::collections::BTreeMap;

use super::table::Table;
use crate::net::descriptor::Descriptor;

/// Windows that the ring of agendas covers.
const NEAR: u64 = 64;

/// Never.
const NEVER: u64 = u64::MAX;

/// The future of one partition, by window and node.
pub(crate) struct Calendar {
    /// Length of a window in picoseconds.
    length: u64,
    /// The window that runs, or ran last.
    window: u64,
    /// When it begins and ends, in picoseconds.
    begin: u64,
    end: u64,
    /// Nodes to visit: a bit per node, in `words` words for each window modulo [`NEAR`].
    agendas: Table<u64>,
    words: u32,
    /// Bit per agenda: somebody is booked.
    filled: u64,
    /// The nodes of the window that runs. Kept from window to window for its memory.
    agenda: Vec<u32>,
    /// Per node: the far window for which it is booked.
    booked_far: Vec<u64>,
    far: BTreeMap<u64, Vec<u32>>,
    /// `inboxes[window % depth * nodes + node]`. One that is empty has no memory.
    inboxes: Table<Vec<Descriptor>>,
    nodes: u32,
    /// For how many windows there are inboxes, a power of two.
    depth: u32,
    /// Where those of the window that runs begin, and of the two that follow.
    rows: [u32; 3],
    /// Spare memory for inboxes, of hosts and of switches, which need more.
    spare: [Vec<Vec<Descriptor>>; 2],
    /// How many of the nodes are hosts; they come first.
    hosts: u32,
    /// Mail for windows beyond the inboxes' depth.
    far_mail: BTreeMap<u64, Vec<(u32, Descriptor)>>,
}

impl Calendar {
    /// A calendar for `hosts` hosts and `switches` switches, and windows of `length` ps, in which mail usually
    /// takes no longer than `reach` ps.
    pub(crate) fn new(hosts: usize, switches: usize, length: u64, reach: u64) -> Self {
        let (nodes, hosts) = (hosts + switches, hosts as u32);
        // Descriptors hold times within a window in 32 bits.
        let length = length.clamp(1, u64::from(u32::MAX));
        let depth = (reach / length + 2).next_power_of_two().clamp(4, 16) as u32;
        Self {
            length,
            window: 0,
            begin: 0,
            end: length,
            agendas: Table::of(nodes.div_ceil(64) * NEAR as usize, || 0),
            words: nodes.div_ceil(64) as u32,
            filled: 0,
            agenda: Vec::new(),
            booked_far: vec![NEVER; nodes],
            far: BTreeMap::new(),
            inboxes: Table::of(nodes * depth as usize, Vec::new),
            nodes: nodes as u32,
            depth,
            rows: [0, 1, 2].map(|ahead| ahead * nodes as u32),
            spare: [Vec::new(), Vec::new()],
            hosts,
            far_mail: BTreeMap::new(),
        }
    }

    /// When the window that runs begins.
    #[inline]
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// When the next window with something to do begins; `None` if there is nothing at all.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let first = |window: Option<&u64>| window.copied().unwrap_or(NEVER);
        let visit = if self.filled == 0 {
            first(self.far.keys().next())
        } else {
            self.window + u64::from(self.filled.rotate_right((self.window % NEAR) as u32).trailing_zeros())
        };
        let window = visit.min(first(self.far_mail.keys().next()));
        (window != NEVER).then(|| window * self.length)
    }

    /// When the window that runs ends.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Turns to the window that holds `time`, before which nothing is left to do.
    pub(crate) fn turn_to(&mut self, time: u64) {
        let window = time / self.length;
        if window != self.window {
            self.window = window;
            self.begin = window * self.length;
            self.end = self.begin.saturating_add(self.length);
            self.rows = [0, 1, 2].map(|ahead| self.place(0, window + ahead));
        }
        self.fetch_far();
    }

    /// The nodes to visit in this window, in order. Give the list back when done.
    pub(crate) fn take_agenda(&mut self) -> Vec<u32> {
        let slot = (self.window % NEAR) as u32;
        self.filled &= !(1 << slot);
        let mut nodes = std::mem::take(&mut self.agenda);
        for word in 0..self.words {
            let mut booked = std::mem::take(&mut self.agendas[slot * self.words + word]);
            while booked != 0 {
                nodes.push(word * 64 + booked.trailing_zeros());
                booked &= booked - 1;
            }
        }
        nodes
    }

    /// Returns what [`Calendar::take_agenda`] gave.
    pub(crate) fn return_agenda(&mut self, mut nodes: Vec<u32>) {
        nodes.clear();
        self.agenda = nodes;
    }

    /// Brings near what was far.
    fn fetch_far(&mut self) {
        while let Some(entry) = self.far.first_entry().filter(|entry| *entry.key() < self.window + NEAR) {
            let (window, nodes) = entry.remove_entry();
            for node in nodes {
                self.booked_far[node as usize] = NEVER;
                self.book_window(node, window);
            }
        }
        while let Some(entry) =
            self.far_mail.first_entry().filter(|entry| *entry.key() < self.window + u64::from(self.depth))
        {
            let (window, mail) = entry.remove_entry();
            for (node, descriptor) in mail {
                self.put(node, window, descriptor);
            }
        }
    }

    /// Makes sure that `node` is visited in the window of `time`, which is not over, or earlier.
    #[inline]
    pub(crate) fn book(&mut self, node: u32, time: u64) {
        // Most often it is this window or the next, and divisions are slow.
        let window = if time < self.end {
            self.window
        } else if time - self.end < self.length {
            self.window + 1
        } else {
            time / self.length
        };
        self.book_window(node, window);
    }

    #[inline]
    fn book_window(&mut self, node: u32, window: u64) {
        if window - self.window < NEAR {
            let slot = (window % NEAR) as u32;
            self.filled |= 1 << slot;
            self.agendas[slot * self.words + node / 64] |= 1 << (node % 64);
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

    /// Sends `packet` to `node`, where it arrives at `time`, in a later window, through `port`.
    #[inline(always)]
    pub(crate) fn send(&mut self, node: u32, time: u64, port: u16, packet: &Descriptor) {
        debug_assert!(time >= self.end, "a link delays by a window at least");
        // Most often it is the next window, or the one after that.
        let mut after = time - self.end;
        let (mut window, mut place) = (self.window + 1, self.rows[1] + node);
        if after >= self.length {
            after -= self.length;
            (window, place) = (window + 1, self.rows[2] + node);
            if after >= self.length {
                return self.send_far(node, time, port, packet);
            }
        }
        if self.inboxes[place].len() == self.inboxes[place].capacity() {
            self.make_room(place, node, window);
        }
        let mail = &mut self.inboxes[place];
        // SAFETY: there is room for one more.
        unsafe {
            // Copied as a whole and then changed: two vector stores.
            let end = mail.as_mut_ptr().add(mail.len());
            end.write(*packet);
            ((*end).at, (*end).port) = (after as u32, port);
            mail.set_len(mail.len() + 1);
        }
    }

    #[inline(always)]
    fn place(&self, node: u32, window: u64) -> u32 {
        (window as u32 & (self.depth - 1)) * self.nodes + node
    }

    /// Makes room for one more in the inbox at `place`, which is that of `node` for `window`; whose first mail it
    /// is, is booked.
    #[inline(never)]
    fn make_room(&mut self, place: u32, node: u32, window: u64) {
        let mail = &mut self.inboxes[place];
        if mail.is_empty() {
            *mail = self.spare[usize::from(node >= self.hosts)].pop().unwrap_or_default();
            self.book_window(node, window);
        }
        self.inboxes[place].reserve(1);
    }

    /// Puts something into the inbox of a window.
    fn put(&mut self, node: u32, window: u64, descriptor: Descriptor) {
        let place = self.place(node, window);
        if self.inboxes[place].is_empty() {
            self.make_room(place, node, window);
        }
        self.inboxes[place].push(descriptor);
    }

    #[inline(never)]
    fn send_far(&mut self, node: u32, time: u64, port: u16, packet: &Descriptor) {
        let window = time / self.length;
        let at = (time - window * self.length) as u32;
        let descriptor = Descriptor { at, port, ..*packet };
        if window - self.window < u64::from(self.depth) {
            self.put(node, window, descriptor);
        } else {
            self.far_mail.entry(window).or_default().push((node, descriptor));
        }
    }

    /// Fetches what tells where the mail of `node` lies.
    #[inline]
    pub(crate) fn prefetch_inbox(&self, node: u32) {
        super::prefetch(&self.inboxes, self.rows[0] + node);
    }

    /// The mail of `node` for this window, which stays where it is.
    #[inline]
    pub(crate) fn mail(&self, node: u32) -> &[Descriptor] {
        &self.inboxes[self.rows[0] + node]
    }

    /// The mail of `node` for this window, in no order. Give it back when it is read.
    #[inline]
    pub(crate) fn take_mail(&mut self, node: u32) -> Vec<Descriptor> {
        std::mem::take(&mut self.inboxes[self.rows[0] + node])
    }

    /// Returns what [`Calendar::take_mail`] gave.
    #[inline]
    pub(crate) fn return_mail(&mut self, node: u32, mut mail: Vec<Descriptor>) {
        if mail.capacity() > 0 {
            mail.clear();
            self.spare[usize::from(node >= self.hosts)].push(mail);
        }
    }

    /// Keeps what is left of the mail of `node` for another visit in this window, which somebody books.
    #[cold]
    pub(crate) fn keep_mail(&mut self, node: u32, mail: Vec<Descriptor>) {
        self.inboxes[self.rows[0] + node] = mail;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use selvedge_units::{Domain, Rng};

    use super::*;

    /// Visits and mail come in their windows, however far away those are.
    #[test]
    fn everybody_is_visited_in_time_and_gets_all_mail() {
        for (seed, reach) in [(1, 3_000), (2, 40_000), (3, 900_000)] {
            let (nodes, length) = (7, 1_000);
            let mut rng = Rng::stream(seed, Domain::Impairment, 0);
            let mut calendar = Calendar::new(3, nodes - 3, length, 5_000);
            // (node, time) of visits and of mail to come.
            let mut visits = BTreeSet::from([(0, 0)]);
            let mut mail = BTreeSet::new();
            calendar.book(0, 0);
            let mut sent = 0u32;
            while let Some(time) = calendar.next_time() {
                let earliest = visits.iter().chain(&mail).map(|&(_, at)| at).min();
                assert!(earliest.is_none_or(|at| time <= at), "nothing is forgotten");
                let end = time + length;
                calendar.turn_to(time);
                let list = calendar.take_agenda();
                assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), list.len(), "one visit each");
                for &node in &list {
                    visits.retain(|&(other, at)| other != node || at >= end);
                    let letters = calendar.take_mail(node);
                    for letter in &letters {
                        let at = calendar.begin() + u64::from(letter.at);
                        assert!(mail.remove(&(node, at)), "sent once, and for this window");
                    }
                    calendar.return_mail(node, letters);
                    if sent < 30_000 {
                        sent += 2;
                        let (to, at) = (rng.below(nodes as u64) as u32, end + rng.below(reach));
                        if mail.insert((to, at)) {
                            calendar.send(to, at, 0, &Descriptor { slot: sent, ..Descriptor::EMPTY });
                        }
                        let (who, at) = (rng.below(nodes as u64) as u32, end + rng.below(reach));
                        calendar.book(who, at);
                        visits.insert((who, at));
                    }
                    // A visitor books the next visit.
                    if let Some(&(_, at)) = visits.iter().find(|&&(other, _)| other == node) {
                        calendar.book(node, at);
                    }
                }
                calendar.return_agenda(list);
            }
            assert!(visits.is_empty() && mail.is_empty());
        }
    }
}
