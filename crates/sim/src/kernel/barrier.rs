//! Where threads wait for each other.
//!
//! Small fabrics have windows of some tens of microseconds, and to sleep and be woken takes as long. So who comes first
//! watches for a while whether the last one has come, and sleeps only then.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::available_parallelism;

/// How often a thread looks before it sleeps: for some tens of microseconds.
const LOOKS: u32 = 2_000;

/// A meeting point of a number of threads, again and again.
pub(crate) struct Barrier {
    threads: usize,
    looks: u32,
    /// How many have come.
    arrived: AtomicUsize,
    /// How often all have; changes while [`sleepers`](Self::sleepers) is locked.
    meetings: AtomicUsize,
    sleepers: Mutex<usize>,
    wake: Condvar,
}

impl Barrier {
    /// Of so many threads.
    pub(crate) fn new(threads: usize) -> Self {
        // Who watches must not keep the processor from those who are waited for.
        let has_room = available_parallelism().is_ok_and(|processors| processors.get() >= threads);
        Self {
            threads,
            looks: if has_room { LOOKS } else { 0 },
            arrived: AtomicUsize::new(0),
            meetings: AtomicUsize::new(0),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
        }
    }

    /// Comes to a meeting; returns when all have. What each did before it came, all others see then.
    pub(crate) fn wait(&self) {
        let meeting = self.meetings.load(Ordering::Acquire);
        let is_over = || self.meetings.load(Ordering::Acquire) != meeting;
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Nobody comes to the next one before this is over.
            self.arrived.store(0, Ordering::Relaxed);
            let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
            self.meetings.store(meeting.wrapping_add(1), Ordering::Release);
            if *sleepers > 0 {
                self.wake.notify_all();
            }
            return;
        }
        for _ in 0..self.looks {
            if is_over() {
                return;
            }
            spin_loop();
        }
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        *sleepers += 1;
        while !is_over() {
            sleepers = self.wake.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        *sleepers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{scope, yield_now};

    use super::*;

    /// Whether they watch or sleep, nobody goes on before all have come.
    #[test]
    fn nobody_is_ahead_of_others() {
        for (threads, looks) in [(2, LOOKS), (2, 0), (5, 0), (5, 50), (1, 0)] {
            let barrier = Barrier { looks, ..Barrier::new(threads) };
            let rounds: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            scope(|scope| {
                for own in 0..threads {
                    let (barrier, rounds) = (&barrier, &rounds);
                    scope.spawn(move || {
                        for round in 1..=2_000 {
                            rounds[own].store(round, Ordering::Relaxed);
                            if (round + own) % 7 == 0 {
                                yield_now();
                            }
                            barrier.wait();
                            assert!(rounds.iter().all(|other| other.load(Ordering::Relaxed) == round));
                            barrier.wait();
                        }
                    });
                }
            });
        }
    }
}
