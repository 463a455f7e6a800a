//! The algorithm as printed in the paper, and the effect of each misprint or omission.
//!
//! [`Printed`] executes algorithms 1 and 2 line by line; [`Fixes`] repairs them one by one (C1 to C10 of the folder's
//! README). With all fixes, its behaviour equals that of [`DstTor`](super::DstTor).

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Domain, Rng};

use super::tests::Tor;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ordered,
    ReTx,
    Waiting,
}

/// The repairs to apply.
#[derive(Clone, Copy, Debug)]
struct Fixes {
    /// Bits are set, not masked out.
    c1_or: bool,
    /// Lines 10 to 13 belong to the packet that was expected.
    c2_nested: bool,
    /// Early packets in Waiting are forwarded.
    c3_waiting_forwards: bool,
    /// Old packets are forwarded.
    c4_old_forwarded: bool,
    /// The bit of the packet that becomes expected is dropped.
    c5_base: bool,
    /// The buffer returns the lowest number first.
    c6_lowest_first: bool,
    /// A packet that is held already is not held again.
    c7_once: bool,
    /// A late "unfulfilled" is ignored.
    c10_stale: bool,
}

const ALL: Fixes = Fixes {
    c1_or: true,
    c2_nested: true,
    c3_waiting_forwards: true,
    c4_old_forwarded: true,
    c5_base: true,
    c6_lowest_first: true,
    c7_once: true,
    c10_stale: true,
};

struct Printed {
    fixes: Fixes,
    expected: u32,
    bitmap: u128,
    state: State,
    buffer: Vec<u32>,
    forwarded: Vec<u32>,
}

impl Printed {
    fn new(fixes: Fixes) -> Self {
        Self { fixes, expected: 0, bitmap: 0, state: State::Ordered, buffer: vec![], forwarded: vec![] }
    }

    /// Algorithm 2, `HandleDataPacket`.
    fn data(&mut self, psn: u32) -> &mut Self {
        let fixes = self.fixes;
        let mut was_expected = false;
        if psn > self.expected && self.state != State::Waiting {
            let bit = 1 << (psn - self.expected - 1);
            if fixes.c7_once && self.bitmap & bit != 0 {
                return self;
            }
            self.state = State::ReTx;
            self.bitmap = if fixes.c1_or { self.bitmap | bit } else { self.bitmap & bit };
            self.buffer.push(psn);
        } else if psn == self.expected {
            was_expected = true;
            self.expected += 1;
            self.forwarded.push(psn);
        } else if psn > self.expected && fixes.c3_waiting_forwards || psn < self.expected && fixes.c4_old_forwarded {
            self.forwarded.push(psn);
        }
        if was_expected || !fixes.c2_nested {
            match self.state {
                State::ReTx => self.release(),
                State::Waiting => self.state = State::Ordered,
                State::Ordered => {}
            }
        }
        self
    }

    /// Algorithm 1.
    fn release(&mut self) {
        while self.bitmap & 1 == 1 {
            let packet = self.pop();
            self.forwarded.extend(packet);
            self.expected += 1;
            self.bitmap >>= 1;
        }
        if self.bitmap == 0 {
            self.state = State::Ordered;
        } else if self.fixes.c5_base {
            self.bitmap >>= 1;
        }
    }

    /// Algorithm 2, `HandleNetRTMessage`.
    fn unfulfilled(&mut self, psn: u32) -> &mut Self {
        if psn == self.expected && (self.state == State::ReTx || !self.fixes.c10_stale) {
            self.state = State::Waiting;
            let packet = self.pop();
            self.forwarded.extend(packet);
            self.buffer.clear();
            self.bitmap = 0;
        }
        self
    }

    fn pop(&mut self) -> Option<u32> {
        let lowest =
            (0..self.buffer.len()).min_by_key(|&n| if self.fixes.c6_lowest_first { self.buffer[n] } else { 0 });
        lowest.map(|n| self.buffer.remove(n))
    }
}

/// Returns the packets forwarded upon these arrivals, by the printed algorithm with `fixes`.
fn forwarded(fixes: Fixes, packets: &[u32]) -> Vec<u32> {
    let mut printed = Printed::new(fixes);
    for &psn in packets {
        printed.data(psn);
    }
    printed.forwarded
}

#[test]
fn with_all_fixes_it_is_the_engine() {
    for seed in 0..300 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 0);
        let (mut printed, mut tor) = (Printed::new(ALL), Tor::new());
        for _ in 0..400 {
            if rng.below(12) == 0 {
                let psn = printed.expected + u32::from(rng.below(4) == 0);
                printed.unfulfilled(psn);
                tor.unfulfilled(psn);
            } else {
                let psn = (printed.expected + rng.below(9) as u32).saturating_sub(rng.below(3) as u32);
                printed.data(psn);
                tor.data(psn);
            }
            assert_eq!(tor.forwarded, printed.forwarded, "seed {seed}");
        }
        assert!(tor.forwarded.len() > 50);
    }
}

#[test]
fn c1_a_mask_forgets_what_has_arrived() {
    assert_eq!(forwarded(ALL, &[1, 2, 0]), [0, 1, 2]);
    assert_eq!(forwarded(Fixes { c1_or: false, ..ALL }, &[1, 2, 0]), [0], "the others are never released");
}

#[test]
fn c2_an_early_packet_releases_itself() {
    let flat = Fixes { c2_nested: false, ..ALL };
    assert_eq!(forwarded(flat, &[1]), [1], "packet 0 is skipped");
    assert!(forwarded(ALL, &[1]).is_empty());
    // In Waiting, any packet ends the state, and the next one is held again.
    let mut printed = Printed::new(flat);
    printed.data(2).unfulfilled(0).data(3).data(4);
    assert_eq!((printed.forwarded, printed.state), (vec![2, 3], State::ReTx));
}

#[test]
fn c3_packets_get_lost_in_waiting() {
    let run = |fixes| Printed::new(fixes).data(1).unfulfilled(0).data(2).forwarded.clone();
    assert_eq!(run(ALL), [1, 2]);
    assert_eq!(run(Fixes { c3_waiting_forwards: false, ..ALL }), [1], "neither forwarded nor held");
}

#[test]
fn c4_what_a_nic_sends_again_gets_lost() {
    assert_eq!(forwarded(ALL, &[0, 0]), [0, 0]);
    assert_eq!(forwarded(Fixes { c4_old_forwarded: false, ..ALL }, &[0, 0]), [0], "its acknowledgement may be lost");
}

#[test]
fn c5_behind_a_second_hole_the_bitmap_is_off_by_one() {
    let packets = [1, 3, 0, 2];
    assert_eq!(forwarded(ALL, &packets), [0, 1, 2, 3]);
    assert_eq!(forwarded(Fixes { c5_base: false, ..ALL }, &packets), [0, 1, 2], "packet 3 sits at the bit of 4");
}

#[test]
fn c6_first_in_first_out_is_out_of_order() {
    assert_eq!(forwarded(ALL, &[2, 1, 0]), [0, 1, 2]);
    assert_eq!(forwarded(Fixes { c6_lowest_first: false, ..ALL }, &[2, 1, 0]), [0, 2, 1]);
}

#[test]
fn c7_a_duplicate_takes_the_place_of_a_packet() {
    assert_eq!(forwarded(ALL, &[1, 1, 2, 0]), [0, 1, 2]);
    assert_eq!(forwarded(Fixes { c7_once: false, ..ALL }, &[1, 1, 2, 0]), [0, 1, 1], "packet 2 stays behind");
}

#[test]
fn c10_a_late_answer_ends_what_is_in_order() {
    let run = |fixes| {
        let mut printed = Printed::new(fixes);
        printed.data(1).data(0).unfulfilled(2);
        printed.state
    };
    assert_eq!(run(ALL), State::Ordered);
    assert_eq!(run(Fixes { c10_stale: false, ..ALL }), State::Waiting, "the next gap is left to the NICs");
}
