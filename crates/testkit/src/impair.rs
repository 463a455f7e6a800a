//! What may happen to packets on their way.

use std::collections::BTreeMap;

use selvedge_units::{Chance, Domain, Duration, Psn, Rng};
use selvedge_wire::Body;

/// What happens to one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrives.
    Deliver,
    /// It does not.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives this much later than it should, perhaps behind its successors.
    Late(Duration),
}

/// A script of fates for one direction; without rules, everything arrives.
#[derive(Clone, Debug, Default)]
pub struct Impairment {
    by_index: BTreeMap<u64, Fate>,
    lost_at_first: Vec<Psn>,
    random: Option<(Rng, Odds)>,
    passed: u64,
}

/// How likely each fate is, for each packet by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Odds {
    /// Not to arrive.
    pub drop: Chance,
    /// Else, to arrive twice.
    pub duplicate: Chance,
    /// Else, to arrive late.
    pub late: Chance,
    /// By how much at most.
    pub late_by: Duration,
}

impl Impairment {
    /// Everything arrives.
    pub fn none() -> Self {
        Self::default()
    }
    /// Each packet has `odds`, from the random stream `(seed, entity)`.
    pub fn random(seed: u64, entity: u64, odds: Odds) -> Self {
        Self { random: Some((Rng::stream(seed, Domain::Impairment, entity), odds)), ..Self::default() }
    }
    /// And the packet that is sent as number `index` (from 0) in this direction has this fate.
    #[must_use]
    pub fn with(mut self, index: u64, fate: Fate) -> Self {
        self.by_index.insert(index, fate);
        self
    }
    /// And the first transmission of each of these data packets is lost.
    #[must_use]
    pub fn losing_first(mut self, psns: impl IntoIterator<Item = Psn>) -> Self {
        self.lost_at_first.extend(psns);
        self
    }

    /// Decides about the next packet of this direction, whatever it is.
    pub fn next_fate(&mut self) -> Fate {
        let index = self.passed;
        self.passed += 1;
        let random = self.random.as_mut().map(|(rng, odds)| odds.draw(rng));
        self.by_index.get(&index).copied().or(random).unwrap_or(Fate::Deliver)
    }

    /// Decides about the next packet of this direction.
    pub fn fate(&mut self, body: &Body) -> Fate {
        let is_scripted = self.by_index.contains_key(&self.passed);
        let fate = self.next_fate();
        match body {
            Body::Data(data) if !is_scripted && !data.retransmission && self.lost_at_first.contains(&data.psn) => {
                Fate::Drop
            }
            Body::Data(_) | Body::Ack(_) | Body::HoleNack(_) | Body::Cnp => fate,
        }
    }
}

impl Odds {
    fn draw(&self, rng: &mut Rng) -> Fate {
        if self.drop.hits(rng.next_u64()) {
            Fate::Drop
        } else if self.duplicate.hits(rng.next_u64()) {
            Fate::Duplicate
        } else if self.late.hits(rng.next_u64()) {
            Fate::Late(Duration::from_ps(rng.below(self.late_by.as_ps() + 1)))
        } else {
            Fate::Deliver
        }
    }
}
