//! Visit order: the order in which the nodes of a partition are visited.
//!
//! Within a window, the order does not change results, but it matters to the cache: descriptors are read sooner after
//! they were written if their receiver is visited soon. Where two sides alternate
//! ([`WindowSchedule`](super::schedule::WindowSchedule)), most windows run in pairs: a window of the leading side,
//! then one of the following side. A node of the following side may be visited as soon as all of its neighbours have
//! been, so both windows are run together in sections ([`Section`]): a few leading nodes, then the following nodes
//! that waited only for these.
//!
//! ```text
//!   fat-tree:  |cores, edges| hosts |edges| hosts, aggs |edges| hosts |edges| hosts, aggs | ...      sections
//!               \_ pod 0 ___________________________/ \_ pod 1 _______________________/
//! ```
//!
//! With this order, the descriptors of a pod are read while they are in the cache, and their memory is then written
//! again.

use std::cmp::Reverse;
use std::ops::Range;

use selvedge_memory::Table;

/// Marker of an empty place in the order.
const NOBODY: u32 = u32::MAX;
/// Number of nodes in a word of the calendar's bit sets.
const WORD: usize = 64;
/// Number of following nodes that no longer wait, at which a section of leading nodes ends. The descriptors of that
/// many nodes take some hundred kilobytes, and the first visits of a section, which nothing has prefetched, are few in
/// comparison.
const ENOUGH: usize = 128;

/// Visit order of nodes. Places in the order are counted in words of 64, like the bit sets of calendars; some places
/// are empty.
pub(crate) struct VisitOrder {
    /// Place of each node, indexed by node.
    places: Table<u32>,
    /// Node at each place, indexed by place.
    nodes: Table<u32>,
    sections: Vec<Section>,
}

/// Section of the visit order: nodes of one side, none of which is a neighbour of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    /// Words in which the nodes of the section stand.
    pub(crate) words: Range<u32>,
    /// Whether the nodes belong to the leading side.
    pub(crate) leads: bool,
}

impl VisitOrder {
    /// Returns the order of `count` nodes by number, without sections.
    pub(crate) fn by_number(count: usize) -> Self {
        let mut visit_order = Self { places: Table::of(count, || 0), nodes: Table::new(), sections: Vec::new() };
        visit_order.add(&(0..count as u32).collect::<Vec<_>>());
        visit_order
    }

    /// Returns an order of all nodes in sections. `leads` tells which nodes belong to the leading side, where only
    /// nodes of different sides are neighbours; `distance` is each node's distance from the hosts. Leading nodes that
    /// are far from hosts come first, because their followers would have to wait for them otherwise.
    pub(crate) fn in_sections(neighbours: &[Vec<u32>], distance: &[u32], leads: impl Fn(u32) -> bool) -> Self {
        let all = 0..neighbours.len() as u32;
        let (mut leaders, others): (Vec<u32>, Vec<u32>) = all.partition(|&node| leads(node));
        leaders.sort_by_key(|&node| Reverse(distance[node as usize]));
        let mut turn = vec![0; neighbours.len()];
        for (n, &leader) in leaders.iter().enumerate() {
            turn[leader as usize] = n;
        }
        // Following nodes, indexed by the turn of the last leading node that they wait for.
        let mut waiting = vec![Vec::new(); leaders.len().max(1)];
        for node in others {
            let last = neighbours[node as usize].iter().map(|&leader| turn[leader as usize]).max();
            waiting[last.unwrap_or(0)].push(node);
        }
        let mut visit_order =
            Self { places: Table::of(neighbours.len(), || NOBODY), nodes: Table::new(), sections: Vec::new() };
        let (mut first, mut ready) = (0, Vec::new());
        for (n, followers) in waiting.iter_mut().enumerate() {
            ready.append(followers);
            if ready.len() >= ENOUGH || n + 1 >= leaders.len() {
                visit_order.add_section(&leaders[first..(n + 1).min(leaders.len())], true);
                visit_order.add_section(&ready, false);
                ready.clear();
                first = n + 1;
            }
        }
        visit_order
    }

    fn add_section(&mut self, nodes: &[u32], leads: bool) {
        let words = self.add(nodes);
        if !words.is_empty() {
            self.sections.push(Section { words, leads });
        }
    }

    /// Adds nodes behind all others; returns the words in which they stand.
    fn add(&mut self, nodes: &[u32]) -> Range<u32> {
        let begin = self.words();
        for &node in nodes {
            self.places[node] = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        let empty = self.nodes.len().next_multiple_of(WORD) - self.nodes.len();
        self.nodes.extend(std::iter::repeat_n(NOBODY, empty));
        begin..self.words()
    }

    /// Returns the number of words.
    pub(crate) fn words(&self) -> u32 {
        (self.nodes.len() / WORD) as u32
    }

    /// Returns the word of a node and its bit there.
    #[inline(always)]
    pub(crate) fn place(&self, node: u32) -> (u32, u64) {
        let place = self.places[node];
        (place / WORD as u32, 1 << (place % WORD as u32))
    }

    /// Returns the nodes of a word whose bits are set, in order.
    #[inline(always)]
    pub(crate) fn nodes(&self, word: u32, mut bits: u64) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let bit = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            (bit < u64::BITS).then(|| self.nodes[word * WORD as u32 + bit])
        })
    }

    /// Returns the sections in order; empty where windows do not run in pairs.
    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }
}
