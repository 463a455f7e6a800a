//! Worker pool: threads that work in phases, with a barrier after each phase.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::PoisonError;

use super::barrier::Barrier;
use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// State shared by the threads of a worker pool. A thread that panics in a phase still arrives at its barrier, because
/// the other threads would wait there forever otherwise.
pub(crate) struct WorkerPool {
    threads: usize,
    barrier: Barrier,
    done: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl WorkerPool {
    /// Creates the shared state of a pool of `threads` threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, barrier: Barrier::new(threads), done: AtomicBool::new(false), panic: Mutex::new(None) }
    }

    /// Returns the number of threads of the pool.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Runs this thread's part of a phase, then waits for the other threads.
    pub(crate) fn phase(&self, part: impl FnOnce()) {
        self.attempt(part);
        self.barrier.wait();
    }

    /// Runs a phase in which only one thread has a `part`; the part returns whether to go on. Returns its answer in
    /// every thread, or `false` if any thread has panicked.
    pub(crate) fn leader_decides(&self, part: Option<impl FnOnce() -> bool>) -> bool {
        if let Some(part) = part {
            let leader_decides = self.lock().is_none() && self.attempt(part) == Some(true);
            self.done.store(!leader_decides, Ordering::Relaxed);
        }
        self.barrier.wait();
        !self.done.load(Ordering::Relaxed)
    }

    fn attempt<T>(&self, part: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(part)) {
            Ok(result) => Some(result),
            Err(reason) => {
                self.lock().get_or_insert(reason);
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the pool after all threads have returned.
    ///
    /// # Panics
    /// If one of the threads has panicked.
    pub(crate) fn finish(self) {
        if let Some(reason) = self.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(reason);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Runs three threads, of which number `whose` panics in one of the two phases of the fourth round.
    fn work(whose: u32, phase: u32) -> Result<u32, Box<dyn Any + Send>> {
        let (worker_pool, rounds) = (WorkerPool::new(3), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (worker_pool, rounds) = (&worker_pool, &rounds);
                scope.spawn(move || {
                    for round in 0.. {
                        if !worker_pool.leader_decides((thread == 0).then_some(|| round < 9)) {
                            return;
                        }
                        for n in 0..2 {
                            worker_pool.phase(|| {
                                rounds.fetch_max(round, Ordering::Relaxed);
                                assert!((round, thread, n) != (4, whose, phase), "thread {thread}");
                            });
                        }
                    }
                });
            }
        });
        let rounds = rounds.into_inner();
        catch_unwind(AssertUnwindSafe(|| worker_pool.finish())).map(|()| rounds)
    }

    #[test]
    fn one_that_panics_takes_the_others_home() {
        for whose in 0..3 {
            for phase in 0..2 {
                let reason = work(whose, phase).expect_err("should panic");
                assert_eq!(reason.downcast_ref::<String>(), Some(&format!("thread {whose}")));
            }
        }
        assert_eq!(work(3, 0).expect("no thread panics"), 8);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::cell::UnsafeCell;
    use loom::model::Builder;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Explores two threads that alternate between a decision of the first thread, and a phase in which the second one
    /// writes a cell that the first one reads for its next decision; at most three preemptions.
    #[test]
    fn loom_a_decision_sees_the_phase_before_it() {
        let mut model = Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((WorkerPool::new(2), UnsafeCell::new(0)));
            let work = |thread: usize, (pool, cell): &(WorkerPool, UnsafeCell<u32>)| {
                let mut phases = 0;
                // SAFETY: the other thread writes during phases alone, and this one reads between two phases.
                let decide = || cell.with(|cell| unsafe { *cell }) < 1;
                while pool.leader_decides((thread == 0).then_some(decide)) {
                    // SAFETY: the cell is read between phases, and by no thread during one.
                    pool.phase(|| {
                        if thread == 1 {
                            cell.with_mut(|cell| unsafe { *cell += 1 })
                        }
                    });
                    phases += 1;
                }
                phases
            };
            let other = Arc::clone(&shared);
            let other = thread::spawn(move || work(1, &other));
            assert_eq!((work(0, &shared), other.join().expect("no thread panics")), (1, 1));
        });
    }
}
