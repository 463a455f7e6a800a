//! Threads that work in phases, with a barrier after each.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::barrier::Barrier;

/// What such threads share. Who panics in a phase comes to its barrier all the same, where the others would wait for
/// ever.
pub(crate) struct Crew {
    threads: usize,
    barrier: Barrier,
    done: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Crew {
    /// Of so many threads.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, barrier: Barrier::new(threads), done: AtomicBool::new(false), panic: Mutex::new(None) }
    }

    /// How many threads it has.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Does this thread's part of a phase, and waits for the others.
    pub(crate) fn phase(&self, part: impl FnOnce()) {
        self.attempt(part);
        self.barrier.wait();
    }

    /// A phase of one thread, which says whether to go on; the others have no part in it. All hear what it says: not,
    /// if somebody has panicked.
    pub(crate) fn goes_on(&self, part: Option<impl FnOnce() -> bool>) -> bool {
        if let Some(part) = part {
            let goes_on = self.lock().is_none() && self.attempt(part) == Some(true);
            self.done.store(!goes_on, Ordering::Relaxed);
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

    /// All threads have come back: panics if one of them has.
    pub(crate) fn finish(self) {
        if let Some(reason) = self.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// Three threads, of which `whose` panics in one of the two phases of the fourth round.
    fn work(whose: u32, phase: u32) -> Result<u32, Box<dyn Any + Send>> {
        let (crew, rounds) = (Crew::new(3), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (crew, rounds) = (&crew, &rounds);
                scope.spawn(move || {
                    for round in 0.. {
                        if !crew.goes_on((thread == 0).then_some(|| round < 9)) {
                            return;
                        }
                        for n in 0..2 {
                            crew.phase(|| {
                                rounds.fetch_max(round, Ordering::Relaxed);
                                assert!((round, thread, n) != (4, whose, phase), "thread {thread}");
                            });
                        }
                    }
                });
            }
        });
        let rounds = rounds.into_inner();
        catch_unwind(AssertUnwindSafe(|| crew.finish())).map(|()| rounds)
    }

    #[test]
    fn one_that_panics_takes_the_others_home() {
        for whose in 0..3 {
            for phase in 0..2 {
                let reason = work(whose, phase).expect_err("it panics here, too");
                assert_eq!(reason.downcast_ref::<String>(), Some(&format!("thread {whose}")));
            }
        }
        assert_eq!(work(3, 0).expect("nobody panics"), 8);
    }
}
