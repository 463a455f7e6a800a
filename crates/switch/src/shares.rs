//! Classes that share an output by weight: deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) among classes.
//!
//! Design notes.
//! 1. *Place.* Classes with a weight stand together where the highest of them stands among the others, which are
//!    strict: those above go first, those below last.
//! 2. *Turns.* In its turn a class may send as many full frames as its weight; what is left and does not suffice for
//!    its next packet is saved for its next turn. A class that has nothing to send in its turn, or is paused, saves
//!    nothing.
//! 3. *Cost.* Where all classes are strict nothing is asked: switches whose classes share outputs have an
//!    [arbiter](crate::switch::SwitchFacts::has_arbiter), and their events are handled in order of time.

use crate::environment::Environment;
use crate::queue::{Line, Queue, Store};
use crate::switch::SwitchFacts;
use crate::switches::Switches;
use selvedge_memory::Table;

/// Parameters of shares that hold at all ports.
#[derive(Clone, Copy)]
pub struct Rules {
    /// Bytes that a class may send in its turn, by class; 0: the class is strict.
    quanta: [u64; 8],
    /// Bit per class that has a share.
    classes: u8,
}

/// State of one output: whose turn it is.
#[derive(Clone, Copy, Default)]
pub struct Share {
    /// Bytes that a class may still send, by class.
    deficits: [u64; 8],
    /// Class whose turn it is, if `begun`; else the one before it in the order of turns.
    turn: u8,
    /// Whether that class has received the quantum of its turn.
    begun: bool,
}

impl Rules {
    /// Returns the rules by which classes share an output in proportion to their `weights`, indexed by class, with full
    /// frames of `frame` bytes; 0: strict. `None` if fewer than two have a weight.
    pub fn new(weights: [u16; 8], frame: u64) -> Option<Self> {
        let classes = (0..8).filter(|&class| weights[class] > 0).fold(0u8, |bits, class| bits | 1 << class);
        let quanta = weights.map(|weight| u64::from(weight) * frame);
        (classes.count_ones() > 1).then_some(Self { quanta, classes })
    }

    /// Returns the classes in `ready` that share the next turn; none if a strict class comes first.
    fn sharing(&self, ready: u8) -> u8 {
        let highest = self.classes.ilog2();
        let above = ready >> highest >> 1;
        if above != 0 { 0 } else { ready & self.classes }
    }
}

impl Share {
    /// Returns the class in `sharing`, which is not empty, that sends next; `frame` gives the bytes of its next packet.
    fn next(&mut self, rules: &Rules, sharing: u8, frame: impl Fn(u8) -> u64) -> u8 {
        for (class, deficit) in self.deficits.iter_mut().enumerate() {
            if sharing & (1 << class) == 0 {
                *deficit = 0;
            }
        }
        loop {
            if !self.begun || sharing & (1 << self.turn) == 0 {
                self.turn = below(sharing, self.turn);
                self.begun = true;
                self.deficits[usize::from(self.turn)] += rules.quanta[usize::from(self.turn)];
            }
            let deficit = &mut self.deficits[usize::from(self.turn)];
            let frame = frame(self.turn);
            if frame <= *deficit {
                *deficit -= frame;
                return self.turn;
            }
            self.begun = false;
        }
    }
}

/// Returns the highest class of `classes` below `class`, or the highest of all if there is none.
fn below(classes: u8, class: u8) -> u8 {
    let lower = classes & ((1 << class) - 1);
    (if lower == 0 { classes } else { lower }).ilog2() as u8
}

impl Switches {
    /// Sends the next packet of a free switch port, where some classes have shares.
    pub(crate) fn serve_by_share<E: Environment>(&mut self, env: &mut E, facts: &SwitchFacts, at: u32) {
        let ready = self.egress[at].ready();
        if ready == 0 {
            return;
        }
        let sharing = self.params.queueing.shares.map_or(0, |rules| rules.sharing(ready));
        let class = match self.params.queueing.shares {
            Some(rules) if sharing != 0 => {
                let first = self.line_of(at, 0);
                let (lines, queues, store) = (&self.lines, &self.queues, &self.store);
                let frame = |class: u8| next_frame(&lines[first + u32::from(class)], queues, store);
                self.shares[at].next(&rules, sharing, frame)
            }
            _ => ready.ilog2() as u8,
        };
        self.serve_class(env, facts, at, class);
    }
}

/// Returns the bytes of the next packet of a line, which is not empty.
fn next_frame(line: &Line, queues: &Table<Queue>, store: &Store) -> u64 {
    store.frame(line.next(queues).place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_share_by_weight_in_bytes() {
        let rules = Rules::new([3, 1, 0, 0, 0, 0, 0, 0], 1_500).expect("two classes have weights");
        // The class with the larger weight has the shorter packets.
        let frame = |class: u8| [100, 1_500][usize::from(class)];
        let (mut share, mut sent) = (Share::default(), [0; 2]);
        while sent[1] < 150_000 {
            let class = share.next(&rules, 0b11, frame);
            sent[usize::from(class)] += frame(class);
        }
        assert!(sent[0].abs_diff(3 * sent[1]) <= 3 * 1_500, "{sent:?}");
    }

    #[test]
    fn who_has_nothing_to_send_saves_nothing() {
        let rules = Rules::new([2, 2, 0, 0, 0, 0, 0, 0], 1_000).expect("two classes have weights");
        let mut share = Share::default();
        for _ in 0..101 {
            assert_eq!(share.next(&rules, 0b01, |_| 1_000), 0, "the only one that has something to send");
        }
        let next = (0..8).map(|_| share.next(&rules, 0b11, |_| 1_000)).collect::<Vec<_>>();
        assert_eq!(next, [0, 1, 1, 0, 0, 1, 1, 0], "no debts, no savings");
    }

    #[test]
    fn strict_classes_stand_above_and_below() {
        let rules = Rules::new([0, 1, 0, 4, 0, 0, 0, 0], 1_000).expect("two classes have weights");
        let sharing = [0b1_0000, 0b1_1010, 0b0_1010, 0b0_0110, 0b0_0101].map(|ready| rules.sharing(ready));
        assert_eq!(sharing, [0, 0, 0b1010, 0b0010, 0], "class 4 first; classes 1 and 3 before 2 and 0");
        assert!(Rules::new([0, 0, 7, 0, 0, 0, 0, 0], 1_000).is_none(), "one class has nobody to share with");
    }
}
