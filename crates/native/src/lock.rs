//! A lock in shared memory, between threads and between processes that share a socket since a fork. It is held for the
//! time of a copy; if its owner was killed meanwhile, the next process takes it over.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, getpid, test_kill_process};

/// Attempts before the lock's owner is looked for.
const PATIENCE: u32 = 10_000;

/// A lock that is held until the value is dropped.
pub(crate) struct Locked<'a>(&'a AtomicU64);

impl<'a> Locked<'a> {
    /// Takes a lock; the word is 0 or the process that has it.
    pub(crate) fn lock(word: &'a AtomicU64) -> Self {
        let own = getpid().as_raw_nonzero().get() as u64;
        let mut attempts = 0_u32;
        loop {
            let Err(owner) = word.compare_exchange_weak(0, own, Ordering::Acquire, Ordering::Relaxed) else {
                return Self(word);
            };
            attempts += 1;
            if attempts.is_multiple_of(PATIENCE) && owner != own && owner != 0 {
                let owner_pid = i32::try_from(owner).ok().and_then(Pid::from_raw);
                let is_dead = owner_pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
                let takes = |_| word.compare_exchange(owner, own, Ordering::Acquire, Ordering::Relaxed).is_ok();
                if is_dead && takes(()) {
                    return Self(word);
                }
            }
            if attempts > 64 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_a_process_that_has_died_is_taken_over() {
        let mut child = std::process::Command::new("true").spawn().expect("`true` is there");
        let pid = u64::from(child.id());
        child.wait().expect("a child");
        let word = AtomicU64::new(pid);
        drop(Locked::lock(&word));
        assert_eq!(word.into_inner(), 0);
    }

    #[test]
    fn one_thread_at_a_time_has_the_lock() {
        let (word, count) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let _locked = Locked::lock(&word);
                        let before = count.load(Ordering::Relaxed);
                        count.store(before + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 4_000);
    }
}
