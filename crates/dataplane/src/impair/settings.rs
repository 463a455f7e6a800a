//! What shall happen to packets.

use selvedge_units::{Chance, Duration, Rate, TwoStates};

use super::Class;

/// How packets are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Each by itself.
    Random(Chance),
    /// By a channel with two states.
    TwoStates(TwoStates),
}

/// What shall happen to the packets of one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Impairment {
    /// To be lost.
    pub loss: Loss,
    /// Else to arrive twice.
    pub duplicate: Chance,
    /// To arrive with one bit flipped, anywhere: the kernel's checksums find most of these.
    pub corrupt: Chance,
    /// To arrive with one bit of UDP's payload flipped and UDP's checksum made to fit, as a broken router might: the
    /// ICRC alone can tell. Concerns UDP.
    pub corrupt_payload: Chance,
    /// How long each is on its way.
    pub delay: Duration,
    /// By how much more or less, uniformly; packets may overtake others then.
    pub jitter: Duration,
    /// To arrive without delay, before those that wait.
    pub reorder: Chance,
    /// How fast packets are sent one after the other.
    pub rate: Option<Rate>,
    /// Packets that may be on their way at a time; more are dropped.
    pub limit: usize,
    /// Which packets all this concerns, in the order of [`Class::ALL`]; others are only delayed and queued.
    pub concerns: [bool; Class::ALL.len()],
}

impl Default for Impairment {
    /// Nothing happens.
    fn default() -> Self {
        Self {
            loss: Loss::Random(Chance::NEVER),
            duplicate: Chance::NEVER,
            corrupt: Chance::NEVER,
            corrupt_payload: Chance::NEVER,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            reorder: Chance::NEVER,
            rate: None,
            limit: 10_000,
            concerns: [true; Class::ALL.len()],
        }
    }
}

impl Impairment {
    /// Whether it can be.
    ///
    /// # Errors
    /// Says what would be right.
    pub fn check(&self) -> Result<(), String> {
        let refuse = |is_wrong: bool, why: &str| if is_wrong { Err(why.to_owned()) } else { Ok(()) };
        refuse(
            !self.reorder.is_never() && self.delay == Duration::ZERO,
            "reordering lets packets overtake those that wait: it needs a delay",
        )?;
        refuse(self.jitter > self.delay, "jitter above the delay would deliver packets before they were sent")?;
        refuse(self.rate.is_some_and(|rate| rate.as_bps() == 0), "at a rate of zero nothing ever arrives")?;
        refuse(self.limit == 0, "a limit of zero packets lets nothing pass: give at least 1")
    }
}
