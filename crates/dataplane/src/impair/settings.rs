//! Configuration of the impairments.

use selvedge_units::{Chance, Duration, Rate, TwoStates};

use super::Class;

/// Models of packet loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Independent losses with this probability.
    Random(Chance),
    /// Losses by a channel with two states.
    TwoStates(TwoStates),
}

/// The impairments of one direction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Impairment {
    /// Losses.
    pub loss: Loss,
    /// Probability that a packet that is not lost arrives twice.
    pub duplicate: Chance,
    /// Probability that a packet arrives with one bit flipped, anywhere: the kernel's checksums detect most of these.
    pub corrupt: Chance,
    /// Probability that a UDP packet arrives with one bit of its payload flipped and UDP's checksum made to fit, as by
    /// a broken router: the ICRC alone can detect it.
    pub corrupt_payload: Chance,
    /// Delay of each packet.
    pub delay: Duration,
    /// Largest deviation from `delay`, drawn uniformly; packets may overtake others then.
    pub jitter: Duration,
    /// Probability that a packet arrives without delay, before those that are still delayed.
    pub reorder: Chance,
    /// Rate at which packets are serialized; `None` for no limit.
    pub rate: Option<Rate>,
    /// Packets that may be in flight at a time; more are dropped.
    pub limit: usize,
    /// Whether the random impairments apply to each class, in the order of [`Class::ALL`]; packets of other classes are
    /// only delayed and queued.
    pub concerns: [bool; Class::ALL.len()],
}

impl Default for Impairment {
    /// Returns a configuration without impairments.
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
    /// Checks that the configuration is valid.
    ///
    /// # Errors
    /// Returns a text that says what would be valid.
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
