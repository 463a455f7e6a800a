//! In which order the nodes of a partition are visited.
//!
//! Within a window it makes no difference to results. It does to the cache: what a node sends is read sooner if the
//! receiver's turn comes soon. Where two sides take turns ([`Pace`](super::pace::Pace)), most windows run in pairs,
//! those of the side that leads and those of the other: nodes of the other side may be visited as soon as all their
//! neighbours have been, so both windows are gone through together, a few leaders at a time, and then those who have
//! only waited for these.
//!
//! ```text
//!   fat-tree:  |cores, edges| hosts |edges| hosts, aggs |edges| hosts |edges| hosts, aggs | ...      legs
//!               \_ pod 0 ___________________________/ \_ pod 1 _______________________/
//! ```
//!
//! A pod's mail is read while it is in the cache then, and the memory that it lay in is written again.

use std::cmp::Reverse;
use std::ops::Range;

use super::table::Table;

/// No node.
const NOBODY: u32 = u32::MAX;
/// Nodes of a word.
const WORD: usize = 64;
/// A leg of leaders ends when so many others need not wait any longer: their mail is some hundred kilobytes, and what
/// one leg begins with, which nothing has prepared, is little of it.
const ENOUGH: usize = 128;

/// An order of nodes. Their places in it are counted in words of 64, as calendars are kept; some are empty.
pub(crate) struct Tour {
    /// By node.
    places: Table<u32>,
    /// By place.
    nodes: Table<u32>,
    legs: Vec<Leg>,
}

/// Nodes of one side, none of which is a neighbour of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Leg {
    /// Where they stand.
    pub(crate) words: Range<u32>,
    /// Whether they are of the side that leads.
    pub(crate) leads: bool,
}

impl Tour {
    /// All of so many nodes by their numbers, without legs.
    pub(crate) fn by_number(count: usize) -> Self {
        let mut tour = Self { places: Table::of(count, || 0), nodes: Table::new(), legs: Vec::new() };
        tour.add(&(0..count as u32).collect::<Vec<_>>());
        tour
    }

    /// All nodes in legs. `leads` says who leads, of two sides of which only nodes of different ones are neighbours;
    /// `distance` how far hosts are. Leaders that are far from hosts come first, else their followers would have to
    /// wait for them.
    pub(crate) fn in_legs(neighbours: &[Vec<u32>], distance: &[u32], leads: impl Fn(u32) -> bool) -> Self {
        let all = 0..neighbours.len() as u32;
        let (mut leaders, others): (Vec<u32>, Vec<u32>) = all.partition(|&node| leads(node));
        leaders.sort_by_key(|&node| Reverse(distance[node as usize]));
        let mut turn = vec![0; neighbours.len()];
        for (n, &leader) in leaders.iter().enumerate() {
            turn[leader as usize] = n;
        }
        // By the turn of the last leader that they wait for.
        let mut waiting = vec![Vec::new(); leaders.len().max(1)];
        for node in others {
            let last = neighbours[node as usize].iter().map(|&leader| turn[leader as usize]).max();
            waiting[last.unwrap_or(0)].push(node);
        }
        let mut tour = Self { places: Table::of(neighbours.len(), || NOBODY), nodes: Table::new(), legs: Vec::new() };
        let (mut first, mut ready) = (0, Vec::new());
        for (n, followers) in waiting.iter_mut().enumerate() {
            ready.append(followers);
            if ready.len() >= ENOUGH || n + 1 >= leaders.len() {
                tour.add_leg(&leaders[first..(n + 1).min(leaders.len())], true);
                tour.add_leg(&ready, false);
                ready.clear();
                first = n + 1;
            }
        }
        tour
    }

    fn add_leg(&mut self, nodes: &[u32], leads: bool) {
        let words = self.add(nodes);
        if !words.is_empty() {
            self.legs.push(Leg { words, leads });
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

    /// How many words there are.
    pub(crate) fn words(&self) -> u32 {
        (self.nodes.len() / WORD) as u32
    }

    /// The word and the bit of a node.
    #[inline(always)]
    pub(crate) fn place(&self, node: u32) -> (u32, u64) {
        let place = self.places[node];
        (place / WORD as u32, 1 << (place % WORD as u32))
    }

    /// The nodes of a word whose bits are set, in order.
    #[inline(always)]
    pub(crate) fn nodes(&self, word: u32, mut bits: u64) -> impl Iterator<Item = u32> {
        std::iter::from_fn(move || {
            let bit = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            (bit < u64::BITS).then(|| self.nodes[word * WORD as u32 + bit])
        })
    }

    /// The legs, in order; none where windows do not run in pairs.
    pub(crate) fn legs(&self) -> &[Leg] {
        &self.legs
    }
}
