//! The credit pacer of a host: decides which sender gets credit next, and when (section 5).
//!
//! ```text
//!   push ──> active sender list ──poll──> the sender whose turn has come ──grant──> PULL
//!                                │ spend                                    (one, or several quanta)
//!                                └─> time of the next pull: a token bucket of depth `catch_up`
//! ```
//!
//! Senders that want credit are in the active sender list, each once. The first gets its credit and re-enters the list
//! if it wants more: a FIFO, hence fair. Other policies are in `policy.rs`.
//!
//! Time is credit, too: each quantum takes one MTU-time of the link. A driver whose wake-up comes late calls
//! [`Pacer::poll`] until it returns `None`: the turns that were missed, at most `catch_up` of them in time, follow at
//! once, and their PULLs, to several peers perhaps, leave together. Time during which nobody wanted credit is not saved
//! up.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use selvedge_units::{Duration, Instant};

use super::clock::rebase;
use super::policy::{Pifo, Policy};
use super::shares::{Class, Part, Shares};

/// Timing of a pacer's pulls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pulls {
    /// Time that a quantum takes on the link.
    pub interval: Duration,
    /// Time that a control frame takes on the link.
    pub control: Duration,
    /// Most time lost by late wake-ups that is made up: the depth of the token bucket. Zero: none.
    pub catch_up: Duration,
    /// Most quanta granted by one PULL, at least 1.
    pub quanta: u32,
    /// Whether busy times follow the rate of the pulls that left instead of `interval`.
    pub measures: bool,
}

/// The active sender list of one host, and its pacing state.
#[derive(Clone, Debug)]
pub struct Pacer {
    pulls: Pulls,
    /// Time at which the next pull may be sent.
    free_at: Instant,
    list: List,
    /// Quanta wanted by all active senders together.
    owed: u64,
    /// Time of the last pull; [`Instant::NEVER`] if nobody wanted credit since.
    last: Instant,
    /// Quanta of that pull.
    last_quanta: u32,
    /// Mean time per quantum while senders want credit, no less than `interval`.
    mean: Duration,
}

#[derive(Clone, Debug)]
enum List {
    Fifo(VecDeque<u32>),
    Pifo(Pifo),
    Nested(Box<Nested>),
}

/// Nested classes, and the class of each sender, which the receiver has assigned.
#[derive(Clone, Debug)]
struct Nested {
    shares: Shares,
    /// Class of each sender; beyond the end: the root.
    classes: Vec<Class>,
    /// Class of each host, if hosts get equal shares.
    hosts: Option<BTreeMap<u32, Class>>,
}

impl Nested {
    fn new(shares: Shares, hosts: bool) -> Self {
        Self { shares, classes: Vec::new(), hosts: hosts.then(BTreeMap::new) }
    }

    fn assign(&mut self, sender: u32, class: Class) {
        let place = sender as usize;
        if self.classes.len() <= place {
            self.classes.resize(place + 1, Shares::ROOT);
        }
        self.classes[place] = class;
    }

    #[inline(never)]
    fn push(&mut self, sender: u32) {
        let class = self.classes.get(sender as usize).copied().unwrap_or(Shares::ROOT);
        self.shares.push(class, sender);
    }
}

impl Pacer {
    /// Creates a pacer without senders.
    pub fn new(pulls: Pulls, policy: Policy) -> Self {
        let list = match policy {
            Policy::Fair => List::Fifo(VecDeque::new()),
            Policy::Hosts => List::Nested(Box::new(Nested::new(Shares::new(), true))),
            Policy::Priority | Policy::Weighted(_) => List::Pifo(Pifo::new(policy)),
        };
        let (last, mean) = (Instant::NEVER, pulls.interval);
        Self { pulls, free_at: Instant::ZERO, list, owed: 0, last, last_quanta: 1, mean }
    }

    /// Creates a pacer that gives credit by the receiver's own classes, see [`Pacer::assign`]; the priorities that
    /// senders claim count for nothing.
    pub fn nested(pulls: Pulls, shares: Shares) -> Self {
        Self { list: List::Nested(Box::new(Nested::new(shares, false))), ..Self::new(pulls, Policy::Fair) }
    }

    /// Assigns `sender`, which must not be in the list, to a class of [`Pacer::nested`]. Without a class, a sender
    /// belongs to the root, which comes before all classes.
    pub fn assign(&mut self, sender: u32, class: Class) {
        if let List::Nested(list) = &mut self.list {
            list.assign(sender, class);
        }
    }

    /// Tells from which host `sender` comes, for [`Policy::Hosts`]. The sender must not be in the list.
    pub fn introduce(&mut self, sender: u32, host: u32) {
        if let List::Nested(list) = &mut self.list {
            let Nested { shares, hosts: Some(hosts), .. } = &mut **list else { return };
            let class = *hosts.entry(host).or_insert_with(|| shares.add(Shares::ROOT, Part::default()));
            list.assign(sender, class);
        }
    }

    /// Adds `sender`, which wants credit and is not in the list, with the priority of its traffic.
    #[inline]
    pub fn push(&mut self, now: Instant, sender: u32, priority: u8) {
        if !self.pulls.catch_up.is_zero() && self.is_empty() {
            // The link was idle for lack of demand, which is no time lost.
            self.free_at = self.free_at.max(now);
        }
        match &mut self.list {
            List::Fifo(list) => list.push_back(sender),
            List::Pifo(list) => list.push(sender, priority),
            List::Nested(list) => list.push(sender),
        }
    }

    /// Removes and returns the sender that gets credit at `now`, if a pull is due: one quantum, or up to
    /// [`Pacer::quanta`] of them, see [`Pacer::spend`].
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<u32> {
        if now < self.free_at {
            return None;
        }
        let sender = match &mut self.list {
            List::Fifo(list) => list.pop_front(),
            List::Pifo(list) => list.pop(),
            List::Nested(list) => list.shares.pop(),
        }?;
        let earliest = Instant::from_ps(now.as_ps().saturating_sub(self.pulls.catch_up.as_ps()));
        self.free_at = self.free_at.max(earliest) + self.pulls.interval;
        if self.pulls.measures {
            self.measure(now);
        }
        Some(sender)
    }

    /// Takes the time since the last pull into the mean time per quantum.
    #[cold]
    fn measure(&mut self, now: Instant) {
        if self.last != Instant::NEVER {
            let took = now.since(self.last) / u64::from(self.last_quanta);
            self.mean = (self.mean - self.mean / 8 + took / 8).max(self.pulls.interval);
        }
        self.last = if self.is_empty() { Instant::NEVER } else { now };
        self.last_quanta = 1;
    }

    /// Returns the most quanta that one PULL grants.
    #[inline]
    pub fn quanta(&self) -> u32 {
        self.pulls.quanta
    }

    /// Records that `sender`, which [`Pacer::poll`] has just returned, was granted `quanta` quanta: those beyond the
    /// first take their time on the link, too. To be called before the sender is added again.
    #[inline]
    pub fn spend(&mut self, sender: u32, quanta: u32) {
        if quanta > 1 {
            self.spend_more(sender, quanta - 1);
        }
    }

    #[cold]
    fn spend_more(&mut self, sender: u32, quanta: u32) {
        self.free_at += self.pulls.interval * u64::from(quanta);
        self.last_quanta = quanta + 1;
        match &mut self.list {
            List::Fifo(_) => {}
            List::Pifo(list) => list.charge(sender, quanta),
            List::Nested(list) => list.shares.charge(quanta),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        match &self.list {
            List::Fifo(list) => list.is_empty(),
            List::Pifo(list) => list.is_empty(),
            List::Nested(list) => list.shares.is_empty(),
        }
    }

    /// Returns the time at which [`Pacer::poll`] will return a sender if none is added before.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        if self.is_empty() { Instant::NEVER } else { self.free_at }
    }

    /// Moves the origin of time by `by`, see `clock.rs` of this module.
    pub fn rebase(&mut self, by: Duration) {
        rebase(&mut self.free_at, by);
        rebase(&mut self.last, by);
    }

    /// Records the arrival of a control frame, which uses no credit: grants leave time for it, so that "the aggregate
    /// arrival rate matches the incoming link speed" (section 5).
    #[inline]
    pub fn note_control(&mut self, now: Instant) {
        if self.free_at > now {
            self.free_at += self.pulls.control;
        }
    }

    /// Records that the quanta wanted by one sender changed from `before` to `after`.
    #[inline]
    pub fn note_owed(&mut self, before: u32, after: u32) {
        self.owed = self.owed + u64::from(after) - u64::from(before);
    }

    /// Returns the busy time in microseconds, a lower bound, that control packets announce to a sender owed `own`
    /// quanta: the time that the demand of all others takes. A sender knows its own demand and does not become idle
    /// while there is any.
    #[inline]
    pub fn busy_beside(&self, own: u32) -> u32 {
        let others = self.owed - u64::from(own);
        if others == 0 {
            return 0;
        }
        u32::try_from(others * self.mean.as_ps() / Duration::from_us(1).as_ps()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_us(1);
    const PULLS: Pulls =
        Pulls { interval: US, control: Duration::ZERO, catch_up: Duration::ZERO, quanta: 1, measures: false };

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Duration::from_ns(ns)
    }

    /// Serves senders that always want more, `quanta` at a time; returns the grants of each.
    fn shares_of(policy: Policy, priorities: &[u8], quanta: u32, turns: u64) -> Vec<u64> {
        let mut pacer = Pacer::new(Pulls { quanta, ..PULLS }, policy);
        let mut served = alloc::vec![0; priorities.len()];
        for (sender, &priority) in (0..).zip(priorities) {
            pacer.push(Instant::ZERO, sender, priority);
        }
        for turn in 0..turns {
            let now = Instant::ZERO + US * (turn * u64::from(quanta));
            let sender = pacer.poll(now).expect("a sender wants credit");
            // Senders want different amounts.
            let quanta = if sender == 0 { 1 } else { quanta };
            served[sender as usize] += u64::from(quanta);
            pacer.spend(sender, quanta);
            assert_eq!(pacer.poll(now), None, "all quanta take their time");
            pacer.push(now, sender, priorities[sender as usize]);
        }
        served
    }

    fn shares(policy: Policy, priorities: &[u8], turns: u64) -> Vec<u64> {
        shares_of(policy, priorities, 1, turns)
    }

    #[test]
    fn a_fifo_serves_all_alike() {
        assert_eq!(shares(Policy::Fair, &[0, 7, 3], 300), [100, 100, 100]);
    }

    #[test]
    fn a_higher_priority_gets_all() {
        assert_eq!(shares(Policy::Priority, &[1, 5, 5], 300), [0, 150, 150]);
    }

    #[test]
    fn weights_are_proportions() {
        let weights = Policy::Weighted([1, 2, 5, 1, 1, 1, 1, 1]);
        let served = shares(weights, &[0, 1, 2], 800);
        for (served, share) in served.iter().zip([100, 200, 500]) {
            assert!(served.abs_diff(share) <= 2, "{served} of {share}");
        }
    }

    #[test]
    fn weights_are_proportions_whatever_one_pull_grants() {
        let weights = Policy::Weighted([1, 2, 5, 1, 1, 1, 1, 1]);
        // The first sender takes one quantum per pull, the others four.
        let served = shares_of(weights, &[0, 1, 2], 4, 2_200);
        let part = served.iter().sum::<u64>() / 8;
        for (served, share) in served.iter().zip([1, 2, 5]) {
            assert!(served.abs_diff(part * share) <= 12, "{served} instead of {share} times {part}");
        }
    }

    #[test]
    fn pulls_keep_their_distance() {
        let mut pacer = Pacer::new(PULLS, Policy::Fair);
        assert_eq!(pacer.poll_timeout(), Instant::NEVER);
        pacer.push(Instant::ZERO, 4, 0);
        pacer.push(Instant::ZERO, 5, 0);
        assert_eq!(pacer.poll(at(10)), Some(4));
        assert_eq!(pacer.poll(at(1_009)), None);
        assert_eq!(pacer.poll_timeout(), at(1_010));
        assert_eq!(pacer.poll(at(1_010)), Some(5));
    }

    /// Serves two senders that always want more at the given wake-ups, in ns; returns the pulls of each wake-up.
    fn wake(pacer: &mut Pacer, wake_ups: impl IntoIterator<Item = u64>) -> Vec<usize> {
        pacer.push(Instant::ZERO, 0, 0);
        pacer.push(Instant::ZERO, 1, 0);
        let mut pulls = |ns| {
            let served = core::iter::from_fn(|| {
                let sender = pacer.poll(at(ns))?;
                pacer.push(at(ns), sender, 0);
                Some(sender)
            });
            served.count()
        };
        wake_ups.into_iter().map(&mut pulls).collect()
    }

    #[test]
    fn a_late_wake_up_is_made_up_for_to_a_bound() {
        let mut pacer = Pacer::new(Pulls { catch_up: US * 5, ..PULLS }, Policy::Fair);
        // The third wake-up comes 3.5 us late, the last 100 us.
        assert_eq!(wake(&mut pacer, [0, 1_000, 5_500, 6_000, 7_000, 107_000]), [1, 1, 4, 1, 1, 6]);
    }

    #[test]
    fn without_a_bucket_late_time_is_lost() {
        let mut pacer = Pacer::new(PULLS, Policy::Fair);
        assert_eq!(wake(&mut pacer, [0, 1_000, 5_500, 6_000, 6_500, 107_000]), [1, 1, 1, 0, 1, 1]);
    }

    #[test]
    fn the_bucket_changes_nothing_for_wake_ups_on_time() {
        let bucket = Pulls { catch_up: US * 50, ..PULLS };
        let (mut with, mut without) = (Pacer::new(bucket, Policy::Fair), Pacer::new(PULLS, Policy::Fair));
        for step in 0..200_u64 {
            // Demand comes and goes.
            if step % 37 < 5 {
                let now = at(step * 700);
                [&mut with, &mut without].into_iter().for_each(|pacer| pacer.push(now, step as u32, 0));
            }
            assert_eq!(with.poll_timeout().max(at(step * 700)), without.poll_timeout().max(at(step * 700)));
            let due = without.poll_timeout();
            if due <= at((step + 1) * 700) {
                let now = due.max(at(step * 700));
                assert_eq!(with.poll(now), without.poll(now));
            }
        }
    }

    #[test]
    fn pauses_without_demand_are_not_saved_up() {
        let mut pacer = Pacer::new(Pulls { catch_up: US * 50, ..PULLS }, Policy::Fair);
        pacer.push(at(0), 0, 0);
        assert_eq!(pacer.poll(at(0)), Some(0));
        (1..5).for_each(|sender| pacer.push(at(90_000), sender, 0));
        assert_eq!((pacer.poll(at(90_000)), pacer.poll(at(90_000))), (Some(1), None));
    }

    #[test]
    fn hosts_share_alike_whatever_their_tunnels_claim() {
        let mut pacer = Pacer::new(PULLS, Policy::Hosts);
        // One host has four tunnels, the other one.
        (0..5).for_each(|sender| pacer.introduce(sender, sender / 4));
        let mut served = [0; 5];
        (0..5).for_each(|sender| pacer.push(at(0), sender, if sender < 4 { 7 } else { 0 }));
        for turn in 0..800 {
            let sender = pacer.poll(at(turn * 1_000)).expect("all want more");
            served[sender as usize] += 1;
            pacer.push(at(turn * 1_000), sender, 7);
        }
        assert_eq!(served, [100, 100, 100, 100, 400]);
    }

    #[test]
    fn a_busy_time_follows_the_pulls_that_left() {
        let mut pacer = Pacer::new(Pulls { measures: true, ..PULLS }, Policy::Fair);
        pacer.note_owed(0, 100);
        // Every wake-up is a microsecond late, and none is made up for.
        wake(&mut pacer, (0..100).map(|turn| turn * 2_000));
        assert!((195..=200).contains(&pacer.busy_beside(0)), "{}", pacer.busy_beside(0));
    }

    #[test]
    fn the_link_is_busy_as_long_as_all_others_want() {
        let mut pacer = Pacer::new(Pulls { interval: Duration::from_ns(1_500), ..PULLS }, Policy::Fair);
        pacer.note_owed(0, 7);
        pacer.note_owed(0, 2);
        assert_eq!((pacer.busy_beside(0), pacer.busy_beside(7), pacer.busy_beside(2)), (13, 3, 10));
        pacer.note_owed(7, 0);
        assert_eq!((pacer.busy_beside(0), pacer.busy_beside(2)), (3, 0));
    }

    #[test]
    fn control_frames_have_their_room() {
        let control = Duration::from_ns(50);
        let mut pacer = Pacer::new(Pulls { control, ..PULLS }, Policy::Fair);
        // The link is idle: it has carried the control frames already.
        pacer.note_control(Instant::ZERO + US);
        pacer.push(Instant::ZERO, 0, 0);
        assert_eq!(pacer.poll(Instant::ZERO + US), Some(0));
        pacer.push(Instant::ZERO + US, 0, 0);
        (0..3).for_each(|_| pacer.note_control(Instant::ZERO + US));
        assert_eq!(pacer.poll_timeout(), Instant::ZERO + US * 2 + control * 3);
    }
}
