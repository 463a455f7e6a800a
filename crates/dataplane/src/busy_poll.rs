//! Busy polling: a thread looks for work for a while before it sleeps.
//!
//! To be woken takes as long as dozens of packets, and costs the sender time, too. So after packets the thread goes on
//! looking for about as long as waking takes, and the time it wastes is never more than what it might have saved
//! (Karlin et al., "Empirical studies of competitive spinning for a shared-memory multiprocessor", SOSP 1991). After
//! unsuccessful polling, because packets are rare or an application needs this processor to answer, the thread polls
//! less and less often; after another thread wanted the processor, it does not poll at all for a while.

use selvedge_units::{Duration, Instant};

/// Longest time of one busy poll. Waking takes 5 us, or 50 us where processors sleep under a hypervisor.
const LOOK: Duration = Duration::from_us(50);
/// Duration of a busy poll from which on it must have lost the processor to another thread that computes.
const INTERRUPTED: Duration = Duration::from_us(500);
/// Time for which another computing thread is remembered.
pub(crate) const REMEMBERED: Duration = Duration::from_us(20_000);
/// Most busy polls that are left out after unsuccessful ones: first one, then two, four, and so on.
const MOST_OMITTED: u32 = 64;

/// Result of one look for work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// There is something to do.
    Work,
    /// There is nothing to do yet.
    Nothing,
    /// Another thread does the work: polling ends.
    Other,
}

/// State that decides when a thread polls before it sleeps.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// Busy polls that were left out after the last unsuccessful one.
    penalty: u32,
    /// Busy polls still to be left out.
    omitted: u32,
    /// Earliest time of the next busy poll, because other threads wanted the processor.
    not_before: Instant,
}

impl BusyPoll {
    /// Calls `look` until it sees work, or until `deadline` at most, unless recent busy polls were unsuccessful;
    /// returns whether there is something to do. `clock` returns the time.
    pub(crate) fn finds_work(
        &mut self,
        deadline: Instant,
        clock: impl Fn() -> Instant,
        mut look: impl FnMut() -> Seen,
    ) -> bool {
        let start = clock();
        if self.omitted > 0 || start < self.not_before {
            self.omitted = self.omitted.saturating_sub(1);
            return false;
        }
        let mut now = start;
        while now < deadline.min(start + LOOK) {
            match look() {
                Seen::Work => {
                    self.penalty = 0;
                    return true;
                }
                Seen::Nothing => {}
                Seen::Other => return false,
            }
            now = clock();
        }
        self.penalty = (2 * self.penalty).clamp(1, MOST_OMITTED);
        self.omitted = self.penalty;
        if now.since(start) >= INTERRUPTED {
            self.not_before = now + REMEMBERED;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// Polls once with a clock that advances by `step` at each look; work comes at `work`. Returns the outcome and the
    /// number of looks.
    fn poll(poll: &mut BusyPoll, now: &Cell<Instant>, step: Duration, work: Instant) -> (bool, u32) {
        let mut looks = 0;
        let found = poll.finds_work(
            Instant::NEVER,
            || now.get(),
            || {
                looks += 1;
                now.set(now.get() + step);
                if now.get() >= work { Seen::Work } else { Seen::Nothing }
            },
        );
        (found, looks)
    }

    #[test]
    fn polls_that_find_nothing_are_left_out_more_and_more_often() {
        let (mut busy, now) = (BusyPoll::default(), Cell::new(Instant::ZERO));
        let step = Duration::from_us(1);
        let mut attempts = Vec::new();
        for attempt in 0..20 {
            if poll(&mut busy, &now, step, Instant::NEVER).1 > 0 {
                attempts.push(attempt);
            }
        }
        assert_eq!(attempts, [0, 2, 5, 10, 19]);
        busy.omitted = 0;
        assert_eq!(poll(&mut busy, &now, step, now.get() + step), (true, 1));
        assert_eq!(busy.penalty, 0);
    }

    #[test]
    fn a_poll_that_lost_its_processor_is_not_repeated_for_a_while() {
        let (mut busy, now) = (BusyPoll::default(), Cell::new(Instant::ZERO));
        assert_eq!(poll(&mut busy, &now, Duration::from_ms(1), Instant::NEVER), (false, 1));
        busy.omitted = 0;
        assert_eq!(poll(&mut busy, &now, Duration::from_us(1), Instant::ZERO).1, 0);
        now.set(now.get() + REMEMBERED);
        assert_eq!(poll(&mut busy, &now, Duration::from_us(1), Instant::ZERO), (true, 1));
    }
}
