//! Nested sharing of a receiver's link: the operator's classes contain those of users, whose classes contain tunnels
//! (section 5: "policies for sharing, configured by the network operator and by the users").
//!
//! ```text
//!   root ──┬── tenant A, weight 3 ──┬── host 1 ── its tunnels, in turn
//!          │                        └── host 2 ── its tunnels, in turn
//!          └── tenant B, weight 1 ───── ...
//! ```
//!
//! The receiver, not the sender, says in which class a tunnel is: by address prefix, host, or what its owner likes. In
//! each class, members of greater priority come first; those of equal priority share by weight (start-time fair
//! queueing, Goyal, Vin and Cheng, SIGCOMM'96). A class that wants nothing leaves its share to the others of its
//! parent, so no user's policy takes from another user.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

/// A class of a [`Shares`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u32);

/// Part of a class in its parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Strict priority over members of lower priority, 0 to 7.
    pub priority: u8,
    /// Weight among members of equal priority, 1 or more.
    pub weight: u16,
}

impl Default for Part {
    fn default() -> Self {
        Self { priority: 0, weight: 1 }
    }
}

/// Classes, and the senders in them that want credit.
#[derive(Clone, Debug)]
pub struct Shares {
    nodes: Vec<Node>,
    /// Class that was served last.
    last: Class,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Class,
    part: Part,
    /// Virtual time of the parent at which the class's granted credit is used up.
    finish: u64,
    /// Virtual time among the members of each priority.
    time: [u64; 8],
    /// Members that want credit: rank, order of arrival, class.
    members: BinaryHeap<Reverse<(u8, u64, u64, Class)>>,
    /// Members that have entered `members`.
    entered: u64,
    /// Senders of this class itself.
    senders: VecDeque<u32>,
    /// Senders in this class and in the classes within it.
    waiting: u32,
}

/// Virtual time per quantum at a weight of 1.
const TURN: u64 = 1 << 20;

impl Shares {
    /// The class that contains all others.
    pub const ROOT: Class = Class(0);

    /// Creates the root class.
    pub fn new() -> Self {
        Self { nodes: alloc::vec![Node::new(Self::ROOT, Part::default())], last: Self::ROOT }
    }

    /// Adds a class within `parent`.
    ///
    /// # Panics
    /// If `parent` is a class of another [`Shares`].
    pub fn add(&mut self, parent: Class, part: Part) -> Class {
        assert!((parent.0 as usize) < self.nodes.len(), "classes belong to the shares that created them");
        let class = Class(self.nodes.len() as u32);
        self.nodes.push(Node::new(parent, part));
        class
    }

    /// Returns whether no sender wants credit.
    pub fn is_empty(&self) -> bool {
        self.nodes[0].waiting == 0
    }

    /// Adds a sender of `class` that wants credit and was not added before. Senders of a class that contains others
    /// come before those.
    pub fn push(&mut self, class: Class, sender: u32) {
        self.node(class).senders.push_back(sender);
        let mut class = class;
        loop {
            let node = self.node(class);
            node.waiting += 1;
            let (is_first, parent) = (node.waiting == 1, node.parent);
            if class == Self::ROOT {
                break;
            }
            if is_first {
                self.enter(class);
            }
            class = parent;
        }
    }

    /// Removes and returns the sender whose turn it is, which is charged for one quantum.
    pub fn pop(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let mut class = Self::ROOT;
        loop {
            self.node(class).waiting -= 1;
            if let Some(sender) = self.node(class).senders.pop_front() {
                self.last = class;
                return Some(sender);
            }
            class = self.pop_member(class)?;
        }
    }

    /// Charges the classes of the sender that was returned last for `quanta` quanta more.
    pub fn charge(&mut self, quanta: u32) {
        let mut class = self.last;
        while class != Self::ROOT {
            let node = self.node(class);
            node.finish += node.turn() * u64::from(quanta);
            class = node.parent;
        }
    }

    /// Removes and returns the member of `class` whose turn it is; the member enters again if it wants more.
    fn pop_member(&mut self, class: Class) -> Option<Class> {
        loop {
            let Reverse((urgency, rank, _, member)) = self.node(class).members.pop()?;
            if rank < self.node(member).finish {
                // The member was charged for more since it entered.
                self.enter(member);
                continue;
            }
            self.node(class).time[usize::from(urgency)] = rank;
            let node = self.node(member);
            node.finish = rank + node.turn();
            if node.waiting > 1 {
                self.enter(member);
            }
            return Some(member);
        }
    }

    /// Adds `class` to the members of its parent that want credit.
    fn enter(&mut self, class: Class) {
        let Node { parent, part, finish, .. } = *self.node(class);
        let parent = self.node(parent);
        let urgency = 7 - part.priority.min(7);
        let rank = parent.time[usize::from(urgency)].max(finish);
        parent.members.push(Reverse((urgency, rank, parent.entered, class)));
        parent.entered += 1;
    }

    fn node(&mut self, class: Class) -> &mut Node {
        &mut self.nodes[class.0 as usize]
    }
}

impl Default for Shares {
    fn default() -> Self {
        Self::new()
    }
}

impl Node {
    fn new(parent: Class, part: Part) -> Self {
        Self {
            parent,
            part,
            finish: 0,
            time: [0; 8],
            members: BinaryHeap::new(),
            entered: 0,
            senders: VecDeque::new(),
            waiting: 0,
        }
    }

    /// Returns the virtual time that a quantum takes.
    fn turn(&self) -> u64 {
        TURN / u64::from(self.part.weight.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(weight: u16) -> Part {
        Part { priority: 0, weight }
    }

    /// Serves senders that always want more, each in its class; returns the turns of each.
    fn serve(shares: &mut Shares, classes: &[Class], turns: u32, quanta: impl Fn(u32) -> u32) -> Vec<u32> {
        (0..).zip(classes).for_each(|(sender, class)| shares.push(*class, sender));
        let mut served = alloc::vec![0; classes.len()];
        for _ in 0..turns {
            let sender = shares.pop().expect("all want more");
            let quanta = quanta(sender);
            shares.charge(quanta - 1);
            served[sender as usize] += quanta;
            shares.push(classes[sender as usize], sender);
        }
        served
    }

    #[test]
    fn a_user_divides_its_own_share_only() {
        let mut shares = Shares::new();
        let (a, b) = (shares.add(Shares::ROOT, weight(1)), shares.add(Shares::ROOT, weight(1)));
        let mine = [shares.add(a, weight(1)), shares.add(a, weight(3))];
        // The second user has ten tunnels, and says that all are urgent.
        let urgent = shares.add(b, Part { priority: 7, weight: 1_000 });
        let classes = [&mine[..], &[urgent; 10]].concat();
        let served = serve(&mut shares, &classes, 8_000, |_| 1);
        assert!(served[0].abs_diff(1_000) <= 2 && served[1].abs_diff(3_000) <= 2, "{served:?}");
        assert!(served[2..].iter().all(|turns| turns.abs_diff(400) <= 2), "{served:?}");
    }

    #[test]
    fn a_member_of_greater_priority_comes_first() {
        let mut shares = Shares::new();
        let tenant = shares.add(Shares::ROOT, weight(1));
        let (low, high) = (shares.add(tenant, weight(9)), shares.add(tenant, Part { priority: 3, weight: 1 }));
        assert_eq!(serve(&mut shares, &[low, high], 100, |_| 1), [0, 100]);
    }

    #[test]
    fn what_one_class_leaves_goes_to_the_others_of_its_parent() {
        let mut shares = Shares::new();
        let (a, b) = (shares.add(Shares::ROOT, weight(1)), shares.add(Shares::ROOT, weight(1)));
        let (a1, _idle) = (shares.add(a, weight(1)), shares.add(a, weight(7)));
        let served = serve(&mut shares, &[a1, b], 1_000, |_| 1);
        assert!(served.iter().all(|turns| turns.abs_diff(500) <= 1), "{served:?}");
    }

    #[test]
    fn quanta_count_and_not_turns() {
        let mut shares = Shares::new();
        let (a, b) = (shares.add(Shares::ROOT, weight(1)), shares.add(Shares::ROOT, weight(2)));
        let served = serve(&mut shares, &[a, b], 3_000, |sender| 1 + 7 * sender);
        let all = served.iter().sum::<u32>();
        assert!(served[0].abs_diff(all / 3) <= 16, "{served:?}");
    }

    #[test]
    fn a_class_that_returns_has_saved_nothing() {
        let mut shares = Shares::new();
        let (a, b) = (shares.add(Shares::ROOT, weight(1)), shares.add(Shares::ROOT, weight(1)));
        serve(&mut shares, &[a], 1_000, |_| 1);
        shares.push(b, 1);
        let mut turns = [0; 2];
        for _ in 0..100 {
            let sender = shares.pop().expect("both want more");
            turns[sender as usize] += 1;
            shares.push(if sender == 0 { a } else { b }, sender);
        }
        assert!(turns[1] <= 51, "{turns:?}");
    }

    #[test]
    fn senders_of_a_class_take_turns_and_all_leave() {
        let mut shares = Shares::new();
        let a = shares.add(Shares::ROOT, weight(1));
        [5, 3, 8].into_iter().for_each(|sender| shares.push(a, sender));
        shares.push(Shares::ROOT, 1);
        let order: Vec<u32> = core::iter::from_fn(|| shares.pop()).collect();
        assert_eq!(order, [1, 5, 3, 8]);
        assert!(shares.is_empty() && shares.pop().is_none());
    }
}
