//! Barrier at which threads wait for each other.
//!
//! Small fabrics have windows of some tens of microseconds, about as long as sleeping and waking takes. So threads that
//! arrive early first poll for a while, and sleep only then.

use std::sync::PoisonError;
use std::thread::available_parallelism;

use super::sync::{AtomicUsize, Condvar, Mutex, Ordering, spin_loop};

/// Number of times that a thread polls before it sleeps: some tens of microseconds.
const LOOKS: u32 = 2_000;

/// Reusable barrier for a fixed number of threads.
pub(crate) struct Barrier {
    threads: usize,
    looks: u32,
    /// Number of threads that have arrived.
    arrived: AtomicUsize,
    /// Number of times that all threads have met; changes while [`sleepers`](Self::sleepers) is locked.
    meetings: AtomicUsize,
    sleepers: Mutex<usize>,
    wake: Condvar,
}

impl Barrier {
    /// Creates a barrier for `threads` threads.
    pub(crate) fn new(threads: usize) -> Self {
        // Polling must not keep a processor from the threads that have not arrived.
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

    /// Waits until all threads have arrived. Everything that each thread did before is visible to all threads after.
    pub(crate) fn wait(&self) {
        let meeting = self.meetings.load(Ordering::Acquire);
        let is_over = || self.meetings.load(Ordering::Acquire) != meeting;
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // No thread arrives at the next meeting before this one is over.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread::{scope, yield_now};

    use super::*;

    /// Checks that no thread goes on before all have arrived, whether threads poll or sleep.
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

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::cell::UnsafeCell;
    use loom::model::Builder;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Runs `rounds` rounds with `threads` threads in every interleaving with at most three preemptions. In each round,
    /// one of the threads writes a cell that all threads read after the barrier, so that an ordering that is too weak
    /// is a data race.
    fn explore(threads: usize, looks: u32, rounds: usize) {
        let mut model = Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let shared = Arc::new((Barrier { looks, ..Barrier::new(threads) }, UnsafeCell::new(0)));
            let work = move |own: usize, (barrier, cell): &(Barrier, UnsafeCell<usize>)| {
                for round in 1..=rounds {
                    if round % threads == own {
                        // SAFETY: the other threads read before the barrier of the last round, and after this one.
                        cell.with_mut(|cell| unsafe { *cell = round });
                    }
                    barrier.wait();
                    // SAFETY: the cell is written before this barrier, and again after the next one.
                    assert_eq!(cell.with(|cell| unsafe { *cell }), round);
                    barrier.wait();
                }
            };
            let spawn = |own| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || work(own, &shared))
            };
            let others: Vec<_> = (1..threads).map(spawn).collect();
            work(0, &shared);
            others.into_iter().for_each(|other| other.join().expect("no thread panics"));
        });
    }

    #[test]
    fn loom_threads_that_sleep_see_what_was_written_before_the_barrier() {
        explore(2, 0, 2);
    }

    #[test]
    fn loom_threads_that_poll_see_what_was_written_before_the_barrier() {
        explore(2, 1, 2);
    }

    #[test]
    fn loom_three_threads_meet_twice() {
        explore(3, 0, 1);
    }
}
