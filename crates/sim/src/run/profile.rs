//! Profiler of completion times: chooses the moments at which flows under way are looked at, and sums up the results.
//!
//! Little's law: the time that all flows spend waiting for something is the number of flows that wait for it,
//! integrated over time. The simulated time is cut into intervals. In each interval, the flows are looked at once, at a
//! moment chosen at random, and the result counts for the whole interval. The length of an interval depends only on
//! what happened before it, so every part of a flow's time is equally likely to be seen.

use std::ops::Deref;

use selvedge_telemetry::{PartTimes, TimePart, TimeProfile, WorkloadTime};
use selvedge_units::{Domain, Instant, Rng};

use super::look::{Answer, Look, Scan, UndecidedLoss};
use crate::config::Looks;
use crate::net::partition::Partition;

/// Inverse of the longest interval, as a fraction of the time so far in which flows were under way. Intervals become
/// longer where looks cost too much.
const PART: u64 = 64;
/// Longest interval where looks cost too much, as a multiple of the time so far in which flows were under way.
const GROWTH: u64 = 3;
/// Instructions that looks may take, in addition to one for every [`PER_EVENTS`] events. A packet takes some hundred
/// instructions at a hop, in two events or fewer, so looks take two thirds of one instruction of these.
const FREE: u64 = 1_000_000;
const PER_EVENTS: u64 = 3;
/// Approximate number of flows that are looked at at a time, where there are more.
const FLOWS: u64 = 256;

/// Sampler of the flows under way, with the profile summed up so far.
pub(super) struct Profiler {
    looks: Looks,
    rng: Rng,
    /// Beginning of the present interval, its length, and the moment to look in it, in picoseconds.
    begin: u64,
    length: u64,
    next: u64,
    /// Shortest length of an interval.
    least: u64,
    /// Time so far in which flows were under way.
    active: u64,
    /// Approximate number of instructions that all looks have taken, and the last look.
    spent: u64,
    last: u64,
    scan: Scan,
    /// Flows that waited for news of a loss, whose cause is not known yet.
    pending: Vec<Pending>,
    profile: TimeProfile,
}

/// Flow that waited for news of a loss or for a timeout, and the time for which that counts.
struct Pending {
    workload: u16,
    time: u128,
    loss: UndecidedLoss,
}

impl Profiler {
    /// Creates a profiler of a run with windows of `step` picoseconds; `None` if the configuration asks for no looks.
    pub(super) fn new(looks: Looks, seed: u64, step: u64) -> Option<Self> {
        let least = match looks {
            Looks::Never => return None,
            Looks::Cheaply => step,
            Looks::Every(time) => time.as_ps(),
        };
        let mut profiler = Self {
            looks,
            rng: Rng::stream(seed, Domain::Looks, 0),
            begin: 0,
            length: 0,
            next: 0,
            least: least.max(1),
            active: 0,
            spent: 0,
            last: 0,
            scan: Scan::default(),
            pending: Vec::new(),
            profile: TimeProfile::default(),
        };
        profiler.begin_at(0, 0);
        Some(profiler)
    }

    /// Begins the next interval.
    fn begin_at(&mut self, begin: u64, events: u64) {
        let affordable = FREE.saturating_add(events / PER_EVENTS);
        let short = (self.spent + self.last).saturating_sub(affordable);
        self.length = match self.looks {
            Looks::Never | Looks::Every(_) => self.least,
            Looks::Cheaply if short == 0 => (self.active / PART).max(self.least),
            Looks::Cheaply => {
                // Length until enough further events have happened, if events go on at their present rate.
                let until = u128::from(short * PER_EVENTS) * u128::from(self.active) / u128::from(events.max(1));
                let until = u64::try_from(until).unwrap_or(u64::MAX);
                until.clamp(self.active / PART, self.active.saturating_mul(GROWTH)).max(self.least)
            }
        };
        self.begin = begin;
        self.next = begin.saturating_add(self.rng.below(self.length));
    }

    /// Begins an interval at `time` at the earliest: no flow is under way before.
    pub(super) fn skip_to(&mut self, time: Instant, events: impl FnOnce() -> u64) {
        if time.as_ps() > self.begin {
            self.begin_at(time.as_ps(), events());
        }
    }

    /// Returns the time of the next look.
    pub(super) fn next(&self) -> Instant {
        Instant::from_ps(self.next)
    }

    /// Looks at the flows under way, for all intervals whose moment comes before `limit`. Nothing happens between the
    /// `times` of the sides and that moment.
    pub(super) fn look<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        times: [Instant; 2],
        limit: Instant,
        flows: u64,
        partitions: &[P],
    ) {
        let events = partitions.iter().map(|partition| partition.net.events).sum();
        let at = self.next();
        let mut length = 0;
        while self.next < limit.as_ps() {
            length += self.length;
            self.active += self.length;
            self.begin_at(self.begin.saturating_add(self.length), events);
        }
        if length == 0 {
            return;
        }
        self.resolve(partitions);
        let one_in = match self.looks {
            Looks::Never | Looks::Every(_) => 1,
            Looks::Cheaply => flows.div_ceil(FLOWS).max(1).next_power_of_two(),
        };
        let time = u128::from(length) * u128::from(one_in);
        let look = Look { times: times.map(|time| time.max(at)), one_in };
        let (profile, pending) = (&mut self.profile, &mut self.pending);
        self.scan.look(look, partitions, |workload, answer| {
            let of = of_workload(profile, workload);
            of.samples += 1;
            match answer {
                Answer::One(part) => of.parts[part] += time,
                Answer::Several(parts) => share(&mut of.parts, &parts, time),
                Answer::Undecided(loss) => pending.push(Pending { workload, time, loss }),
            }
        });
        self.profile.looks += 1;
        self.last = self.scan.cost;
        self.spent += self.scan.cost;
    }

    /// Finds out how the waits for news of losses ended.
    fn resolve<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(&mut self, partitions: &[P]) {
        let profile = &mut self.profile;
        self.pending.retain(|pending| {
            let Some(part) = pending.loss.decide(partitions) else { return true };
            of_workload(profile, pending.workload).parts[part] += pending.time;
            false
        });
    }

    /// Returns the profile of the whole run.
    pub(super) fn finish(mut self) -> TimeProfile {
        for pending in &self.pending {
            of_workload(&mut self.profile, pending.workload).parts[pending.loss.guess] += pending.time;
        }
        self.profile
    }
}

fn of_workload(profile: &mut TimeProfile, workload: u16) -> &mut WorkloadTime {
    let at = usize::from(workload);
    if at >= profile.workloads.len() {
        profile.workloads.resize(at + 1, WorkloadTime::default());
    }
    &mut profile.workloads[at]
}

/// Divides all of `time` among parts in proportion to their weights.
fn share(parts: &mut PartTimes, weights: &[(TimePart, u64)], time: u128) {
    let sum: u128 = weights.iter().map(|&(_, weight)| u128::from(weight)).sum();
    let (mut before, mut given) = (0, 0);
    for &(part, weight) in weights {
        before += u128::from(weight);
        let until = (time * before).checked_div(sum).unwrap_or(0);
        parts[part] += until - given;
        given = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        let mut parts = PartTimes::default();
        share(
            &mut parts,
            &[(TimePart::Queueing, 1), (TimePart::Pause, 1), (TimePart::Cap, 1), (TimePart::Acks, 0)],
            100,
        );
        assert_eq!((parts.total(), parts[TimePart::Queueing], parts[TimePart::Acks]), (100, 33, 0));
    }

    /// Checks that intervals follow each other without a gap, and that the moments of looks lie in them.
    #[test]
    fn intervals_cover_the_time() {
        let mut profiler = Profiler::new(Looks::Cheaply, 1, 1_000).expect("a profiler, as looks are on");
        let mut end = 0;
        for _ in 0..1_000 {
            assert_eq!(profiler.begin, end);
            assert!((profiler.begin..profiler.begin + profiler.length).contains(&profiler.next));
            end = profiler.begin + profiler.length;
            profiler.active += profiler.length;
            profiler.begin_at(end, 0);
        }
        // After 64 intervals of 1,000 ps, each further one is a 64th of the time before it.
        let expected = 64_000.0 * (1.0_f64 + 1.0 / 64.0).powi(1_000 - 64);
        assert!((0.9..1.1).contains(&(end as f64 / expected)), "{end} {expected}");
    }

    #[test]
    fn dear_looks_are_rare() {
        let mut profiler = Profiler::new(Looks::Cheaply, 1, 1_000).expect("a profiler, as looks are on");
        let (mut looks, mut events) = (0, 0);
        while profiler.begin < 1_000_000_000 {
            // Five million events, and looks of two million instructions each.
            events = profiler.begin / 200;
            (profiler.last, profiler.spent) = (2_000_000, profiler.spent + 2_000_000);
            profiler.active += profiler.length;
            profiler.begin_at(profiler.begin + profiler.length, events);
            looks += 1;
        }
        assert!((5..40).contains(&looks), "{looks} looks with {events} events");
    }
}
