//! Impairments of packets in flight.

use std::collections::BTreeMap;

use selvedge_units::{Chance, Domain, Duration, Psn, Rng};
use selvedge_wire::Body;

/// The fate of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet arrives.
    Deliver,
    /// The packet is lost.
    Drop,
    /// The packet arrives twice.
    Duplicate,
    /// The packet arrives later by this delay, possibly after its successors.
    Late(Duration),
}

/// A script of fates for one direction; without rules, every packet arrives.
#[derive(Clone, Debug, Default)]
pub struct Impairment {
    by_index: BTreeMap<u64, Fate>,
    lost_at_first: Vec<Psn>,
    random: Option<(Rng, Odds)>,
    passed: u64,
}

/// Probabilities of the fates, independent for each packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Odds {
    /// Probability of a loss.
    pub drop: Chance,
    /// Probability of a duplicate, if not lost.
    pub duplicate: Chance,
    /// Probability of a delay, if neither lost nor duplicated.
    pub late: Chance,
    /// Longest delay.
    pub late_by: Duration,
}

impl Impairment {
    /// Creates an impairment that delivers everything.
    pub fn none() -> Self {
        Self::default()
    }
    /// Creates an impairment with `odds` for each packet, from the random stream `(seed, entity)`.
    pub fn random(seed: u64, entity: u64, odds: Odds) -> Self {
        Self { random: Some((Rng::stream(seed, Domain::Impairment, entity), odds)), ..Self::default() }
    }
    /// Adds a fate for the packet sent as number `index` (from 0) in this direction.
    #[must_use]
    pub fn with(mut self, index: u64, fate: Fate) -> Self {
        self.by_index.insert(index, fate);
        self
    }
    /// Adds the loss of the first transmission of each of these data packets.
    #[must_use]
    pub fn losing_first(mut self, psns: impl IntoIterator<Item = Psn>) -> Self {
        self.lost_at_first.extend(psns);
        self
    }

    /// Decides the fate of the next packet of this direction, regardless of its content.
    pub fn next_fate(&mut self) -> Fate {
        let index = self.passed;
        self.passed += 1;
        let random = self.random.as_mut().map(|(rng, odds)| odds.draw(rng));
        self.by_index.get(&index).copied().or(random).unwrap_or(Fate::Deliver)
    }

    /// Decides the fate of the next packet of this direction.
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
