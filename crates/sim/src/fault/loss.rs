//! Configured loss on links.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use selvedge_switch::loss::{LaneLoss, LossClass, LossProcess};
use selvedge_units::{Bytes, Chance, Domain, Rng, TwoStates};
use serde::{Deserialize, Serialize};

use super::{BitErrors, Direction, Lane, LinkSelector};
use crate::topology::Graph;
use crate::{ConfigError, Library};

/// Rule by which some links lose packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LossConfig {
    /// Links that lose packets.
    pub link: LinkSelector,
    /// Directions of the links.
    #[serde(default)]
    pub direction: Direction,
    /// Kinds of packets that are lost.
    #[serde(default)]
    pub packets: Affected,
    /// Model that decides which packets are lost. Each direction of each link decides on its own, and for each kind of
    /// packet separately, so that the n-th data packet of a direction has the same fate in every series, however many
    /// acknowledgements pass.
    pub model: LossModel,
}

/// Kinds of packets that a [`LossConfig`] concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Affected {
    /// Packets with payload.
    Data,
    /// Acknowledgements, negative acknowledgements and congestion notifications.
    Ack,
    /// PFC frames.
    Pause,
    /// All packets.
    #[default]
    All,
}

/// Model that decides which packets are lost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossModel {
    /// Independent loss of each packet.
    Random(RandomLoss),
    /// Loss in bursts of a mean length.
    Bursty(Bursty),
    /// Loss in two states with a rate each.
    GilbertElliott(GilbertElliott),
    /// Bit errors, which damage long packets more often than short ones. Damaged packets are discarded
    /// when they arrive, with the reason "corrupt".
    Corrupt(BitErrors),
    /// Loss of the packets with given numbers.
    Trace(DropList),
}

impl LossModel {
    /// Returns the long-run probability that a frame of `frame` bytes is lost by chance; zero for listed drops.
    pub(crate) fn usual(&self, frame: Bytes) -> f64 {
        match self {
            Self::Random(random) => random.rate.as_f64(),
            Self::Bursty(bursty) => bursty.rate.as_f64(),
            Self::GilbertElliott(channel) => {
                let (bad, good) = (channel.good_to_bad.as_f64(), channel.bad_to_good.as_f64());
                let share = if bad > 0.0 { bad / (bad + good) } else { 0.0 };
                share * channel.loss_in_bad.as_f64() + (1.0 - share) * channel.loss_in_good.as_f64()
            }
            Self::Corrupt(errors) => errors.bit_error_rate.of_any(frame.get() * 8).as_f64(),
            Self::Trace(_) => 0.0,
        }
    }

    /// Returns the probability that a frame is lost by chance if the one before it was; zero for listed drops.
    pub(crate) fn again(&self, frame: Bytes) -> f64 {
        match self {
            Self::Bursty(bursty) => (1.0 - 1.0 / bursty.mean_burst).max(bursty.rate.as_f64()),
            Self::GilbertElliott(channel) => {
                let good = channel.bad_to_good.as_f64();
                let bad = (1.0 - good) * channel.loss_in_bad.as_f64() + good * channel.loss_in_good.as_f64();
                bad.max(channel.loss_in_good.as_f64())
            }
            Self::Random(_) | Self::Corrupt(_) | Self::Trace(_) => self.usual(frame),
        }
    }

    /// Returns how many frames may be lost in a row because they are listed.
    pub(crate) fn listed(&self) -> u64 {
        match self {
            Self::Trace(DropList::Drops(drops)) => drops.len() as u64,
            Self::Trace(DropList::Path(_)) => u64::from(u32::MAX),
            Self::Random(_) | Self::Bursty(_) | Self::GilbertElliott(_) | Self::Corrupt(_) => 0,
        }
    }
}

/// Parameters of [`LossModel::Random`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RandomLoss {
    /// Probability that a packet is lost.
    pub rate: Chance,
}

/// Parameters of [`LossModel::Bursty`]: a Gilbert-Elliott channel that loses every packet in its bad
/// state and none in its good one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bursty {
    /// Mean number of packets that are lost in a row, at least 1.
    pub mean_burst: f64,
    /// Long-run probability that a packet is lost; at most `mean-burst / (mean-burst + 1)`.
    pub rate: Chance,
}

/// Parameters of [`LossModel::GilbertElliott`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GilbertElliott {
    /// Probability that the channel turns bad after a packet in the good state.
    pub good_to_bad: Chance,
    /// Probability that the channel turns good after a packet in the bad state.
    pub bad_to_good: Chance,
    /// Probability that a packet is lost in the good state.
    #[serde(default)]
    pub loss_in_good: Chance,
    /// Probability that a packet is lost in the bad state.
    #[serde(default = "always")]
    pub loss_in_bad: Chance,
}

/// Parameters of [`LossModel::Trace`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DropList {
    /// Numbers of the lost packets, in any order: 0 is the first of its kind on a direction of a link.
    Drops(Vec<u64>),
    /// File with the numbers of the lost packets.
    Path(String),
}

/// Loss on all links.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LossPlan {
    lanes: BTreeMap<Lane, LaneLoss>,
}

impl LossPlan {
    /// Creates the loss that `rules` and the links of `graph` themselves ([`Link::loss`]) ask for.
    ///
    /// # Errors
    /// A selector that selects nothing, or an impossible model; keys are like "\[1\].model.bursty.rate".
    ///
    /// [`Link::loss`]: crate::topology::Link::loss
    pub fn new(graph: &Graph, rules: &[LossConfig], seed: u64, library: &dyn Library) -> Result<Self, ConfigError> {
        let mut plan = Self::default();
        for (n, link) in (0..).zip(&graph.links).filter(|(_, link)| !link.loss.is_never()) {
            let lanes = [true, false].map(|from_a| Lane { link: n, from_a });
            let rate = link.loss;
            plan.add(&lanes, Affected::All, &move |rng| LossProcess::random(rate, rng), seed, 0);
        }
        // Rule 0 is the topology's.
        for (n, rule) in rules.iter().enumerate() {
            let within = |error: ConfigError| error.within(&format!("[{n}]"));
            let lanes = rule.link.lanes(graph, rule.direction).map_err(within)?;
            let process = rule.model.process(library).map_err(|error| within(error.within("model")))?;
            plan.add(&lanes, rule.packets, &*process, seed, n as u64 + 1);
        }
        Ok(plan)
    }
    /// Returns whether no link loses packets.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }
    /// Returns the loss of `lane`; `None`: no loss.
    pub fn lane(&self, lane: Lane) -> Option<&LaneLoss> {
        self.lanes.get(&lane)
    }
    /// Returns all lanes with loss.
    pub fn lanes(&self) -> impl Iterator<Item = (Lane, &LaneLoss)> {
        self.lanes.iter().map(|(lane, loss)| (*lane, loss))
    }

    fn add(&mut self, lanes: &[Lane], affected: Affected, process: &Process, seed: u64, rule: u64) {
        for &lane in lanes {
            for class in affected.classes() {
                // Lanes take 24 bits (at most 2^22 links), classes 2.
                let entity = rule << 32 | (*class as u64) << 28 | lane.index() as u64;
                let rng = Rng::stream(seed, Domain::LinkLoss, entity);
                self.lanes.entry(lane).or_default().add(*class, process(rng));
            }
        }
    }
}

impl Affected {
    const fn classes(self) -> &'static [LossClass] {
        match self {
            Self::Data => &[LossClass::Data],
            Self::Ack => &[LossClass::Ack],
            Self::Pause => &[LossClass::Pause],
            Self::All => &[LossClass::Data, LossClass::Ack, LossClass::Pause],
        }
    }
}

/// Function that makes a process from its random stream.
type Process = dyn Fn(Rng) -> LossProcess;

impl LossModel {
    fn process(&self, library: &dyn Library) -> Result<Box<Process>, ConfigError> {
        match self {
            &Self::Random(RandomLoss { rate }) => Ok(Box::new(move |rng| LossProcess::random(rate, rng))),
            Self::Bursty(bursty) => bursty.channel().map(two_states).map_err(|error| error.within("bursty")),
            &Self::GilbertElliott(channel) => Ok(two_states(channel.into())),
            &Self::Corrupt(errors) => Ok(Box::new(move |rng| LossProcess::bit_errors(errors.bit_error_rate, rng))),
            Self::Trace(list) => {
                let drops = list.drops(library).map_err(|error| error.within("trace"))?;
                Ok(Box::new(move |_| LossProcess::listed(drops.clone())))
            }
        }
    }
}

impl Bursty {
    fn channel(self) -> Result<TwoStates, ConfigError> {
        let (burst, rate) = (self.mean_burst, self.rate.as_f64());
        if !(burst >= 1.0 && burst.is_finite()) {
            return Err(ConfigError::new("mean-burst", format!("found {burst}, but a burst has at least one packet")));
        }
        TwoStates::bursts(burst, self.rate).ok_or_else(|| {
            let most = burst / (burst + 1.0);
            let lose = format!("bursts of {burst} packets with one packet between them lose {most:.4} at most");
            ConfigError::new("rate", format!("{lose}, found {rate}"))
        })
    }
}

impl From<GilbertElliott> for TwoStates {
    fn from(channel: GilbertElliott) -> Self {
        let GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } = channel;
        Self { to_bad: good_to_bad, to_good: bad_to_good, in_good: loss_in_good, in_bad: loss_in_bad }
    }
}

fn two_states(states: TwoStates) -> Box<Process> {
    Box::new(move |rng| LossProcess::two_states(states, rng))
}

impl DropList {
    fn drops(&self, library: &dyn Library) -> Result<Arc<[u64]>, ConfigError> {
        let mut drops = match self {
            Self::Drops(drops) => drops.clone(),
            Self::Path(path) => library.drops(path).map_err(|error| error.within("path"))?,
        };
        drops.sort();
        drops.dedup();
        Ok(drops.into())
    }
}

fn always() -> Chance {
    Chance::ALWAYS
}

#[cfg(test)]
mod tests;
