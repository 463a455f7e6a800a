//! One direction of the device: random fates of its packets.

use selvedge_units::{Chance, Channel, Domain, Duration, Rng};

use super::class::Class;
use super::settings::{Impairment, Loss};

/// The fate of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fate {
    /// Whether the packet is lost; the other fields do not matter then.
    pub lost: bool,
    /// Whether the packet arrives twice.
    pub duplicate: bool,
    /// The bit of the packet that is flipped, if any, to be taken modulo the number of bits.
    pub corrupt: Option<u64>,
    /// The bit of UDP's payload that is flipped, if any, to be taken modulo the number of bits.
    pub corrupt_payload: Option<u64>,
    /// Whether the packet arrives without delay, before those that are still delayed.
    pub at_once: bool,
    /// Delays of the packet and of its copy.
    pub delays: [Duration; 2],
}

/// The source of fates of one direction, drawn packet by packet.
#[derive(Clone, Debug)]
pub struct Lane {
    impairment: Impairment,
    classes: [Streams; Class::ALL.len()],
}

/// Random streams of one class of packets.
#[derive(Clone, Debug)]
struct Streams {
    loss: Losses,
    duplicate: Rng,
    corrupt: Rng,
    corrupt_payload: Rng,
    reorder: Rng,
    jitter: Rng,
}

#[derive(Clone, Debug)]
enum Losses {
    Random(Chance, Rng),
    Channel(Channel),
}

impl Losses {
    fn next(&mut self) -> bool {
        match self {
            Self::Random(rate, rng) => rate.hits(rng.next_u64()),
            Self::Channel(channel) => channel.loses(),
        }
    }
}

impl Streams {
    /// Returns the streams of `class` in the direction with number `direction`.
    fn new(loss: Loss, seed: u64, direction: u64, class: Class) -> Self {
        let stream =
            |purpose: u64| Rng::stream(seed, Domain::Impairment, direction << 16 | (class as u64) << 8 | purpose);
        let loss = match loss {
            Loss::Random(rate) => Losses::Random(rate, stream(0)),
            Loss::TwoStates(states) => Losses::Channel(Channel::new(states, stream(0))),
        };
        Self {
            loss,
            duplicate: stream(1),
            corrupt: stream(2),
            corrupt_payload: stream(3),
            reorder: stream(4),
            jitter: stream(5),
        }
    }
}

impl Lane {
    /// Creates the direction with number `direction`, in the run with seed `seed`.
    pub fn new(impairment: &Impairment, seed: u64, direction: u64) -> Self {
        let classes = Class::ALL.map(|class| Streams::new(impairment.loss, seed, direction, class));
        Self { impairment: impairment.clone(), classes }
    }
    /// Returns the configuration of this direction.
    pub const fn impairment(&self) -> &Impairment {
        &self.impairment
    }

    /// Returns the fate of the next packet of `class`. Call it once per packet: each call draws equally many random
    /// numbers, whatever the outcome.
    pub fn fate(&mut self, class: Class) -> Fate {
        let it = &self.impairment;
        let concerned = it.concerns[class as usize];
        let streams = &mut self.classes[class as usize];
        let where_if = |chance: Chance, rng: &mut Rng| {
            let (hit, at) = (chance.hits(rng.next_u64()), rng.next_u64());
            (concerned && hit).then_some(at)
        };
        let corrupt = where_if(it.corrupt, &mut streams.corrupt);
        let corrupt_payload = where_if(it.corrupt_payload, &mut streams.corrupt_payload);
        let delays = [(); 2].map(|()| {
            let spread = it.jitter.as_ps() * 2 + 1;
            let shift = if concerned { streams.jitter.below(spread) } else { it.jitter.as_ps() };
            it.delay + Duration::from_ps(shift) - it.jitter
        });
        Fate {
            lost: streams.loss.next() && concerned,
            duplicate: it.duplicate.hits(streams.duplicate.next_u64()) && concerned,
            corrupt,
            corrupt_payload,
            at_once: it.reorder.hits(streams.reorder.next_u64()) && concerned,
            delays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(p: f64) -> Chance {
        Chance::from_f64(p / 100.0).unwrap()
    }

    fn fates(impairment: &Impairment, class: Class) -> Vec<Fate> {
        let mut lane = Lane::new(impairment, 7, 0);
        (0..10_000).map(|_| lane.fate(class)).collect()
    }

    #[test]
    fn one_impairment_moves_no_other() {
        let loss = Impairment { loss: Loss::Random(percent(1.0)), ..Impairment::default() };
        let all = Impairment {
            duplicate: percent(5.0),
            corrupt: percent(5.0),
            corrupt_payload: percent(5.0),
            reorder: percent(5.0),
            delay: Duration::from_us(50),
            jitter: Duration::from_us(10),
            ..loss.clone()
        };
        let lost = |fates: &[Fate]| fates.iter().map(|fate| fate.lost).collect::<Vec<_>>();
        let (few, many) = (fates(&loss, Class::Data), fates(&all, Class::Data));
        assert_eq!(lost(&few), lost(&many));
        let share = |is_so: fn(&Fate) -> bool| many.iter().filter(|fate| is_so(fate)).count();
        assert!((60..140).contains(&share(|fate| fate.lost)));
        for is_so in [
            (|fate| fate.duplicate) as fn(&Fate) -> bool,
            |fate| fate.corrupt.is_some(),
            |fate| fate.corrupt_payload.is_some(),
            |fate| fate.at_once,
        ] {
            assert!((400..600).contains(&share(is_so)), "{}", share(is_so));
        }
        let delays = many.iter().flat_map(|fate| fate.delays).map(|delay| delay.as_ps() / 1_000_000);
        assert_eq!((delays.clone().min(), delays.max()), (Some(40), Some(59)));
    }

    #[test]
    fn classes_pass_by_each_other() {
        let loss = Impairment { loss: Loss::Random(percent(10.0)), ..Impairment::default() };
        let mut mixed = Lane::new(&loss, 7, 0);
        let alone = fates(&loss, Class::Data);
        for (at, fate) in alone.iter().enumerate() {
            for _ in 0..at % 3 {
                mixed.fate(Class::Ack);
            }
            assert_eq!(mixed.fate(Class::Data), *fate);
        }
        assert_ne!(alone, fates(&loss, Class::Ack));
    }

    #[test]
    fn only_what_is_concerned_suffers() {
        let concerns = [true, false, false, false];
        let loss = Impairment { loss: Loss::Random(Chance::ALWAYS), concerns, ..Impairment::default() };
        assert!(fates(&loss, Class::Data).iter().all(|fate| fate.lost));
        assert!(!fates(&loss, Class::Other).iter().any(|fate| fate.lost));
    }
}
