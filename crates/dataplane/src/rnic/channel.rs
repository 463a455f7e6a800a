//! Queues that a file descriptor announces: completion channels and asynchronous events.
//!
//! The descriptor is an eventfd that counts what is in the queue, so programs can poll it and set `O_NONBLOCK`. A
//! pipe would do, too, until it is full and the engine had to wait for the application.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// A queue of `T`, announced by a file descriptor.
#[derive(Debug)]
pub struct Channel<T> {
    count: EventFd,
    queue: Mutex<VecDeque<T>>,
}

impl<T> Channel<T> {
    /// An empty queue.
    ///
    /// # Errors
    /// When the process may not have more descriptors.
    pub fn new() -> io::Result<Self> {
        let count = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_SEMAPHORE)?;
        Ok(Self { count, queue: Mutex::default() })
    }
    /// What to poll: readable while something waits.
    pub fn descriptor(&self) -> RawFd {
        self.count.as_fd().as_raw_fd()
    }
    /// The same, borrowed.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.count.as_fd()
    }
    /// Appends.
    pub fn push(&self, item: T) {
        self.queue().push_back(item);
        // It counts to 2^64 - 2: it will not refuse.
        let _ = self.count.write(1);
    }
    /// The next, waiting for it if need be.
    ///
    /// # Errors
    /// `EAGAIN` if nothing waits and the application has set `O_NONBLOCK`, `EINTR` after a signal.
    pub fn take(&self) -> io::Result<T> {
        loop {
            self.count.read()?;
            // Another may have been withdrawn meanwhile, with its count still to come.
            if let Some(item) = self.queue().pop_front() {
                return Ok(item);
            }
        }
    }
    /// Withdraws what is of no use any more.
    pub fn withdraw(&self, mut useless: impl FnMut(&T) -> bool) {
        let mut queue = self.queue();
        let before = queue.len();
        queue.retain(|item| !useless(item));
        for _ in queue.len()..before {
            let mut ready = [PollFd::new(self.count.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ready, PollTimeout::ZERO) == Ok(1) {
                let _: Result<u64, Errno> = self.count.read();
            }
        }
    }
    fn queue(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_counts_what_waits() {
        let channel = Channel::new().expect("a descriptor");
        let is_ready = || {
            let mut ready = [PollFd::new(channel.count.as_fd(), PollFlags::POLLIN)];
            poll(&mut ready, PollTimeout::ZERO) == Ok(1)
        };
        assert!(!is_ready());
        for item in 1..=3 {
            channel.push(item);
        }
        channel.withdraw(|item| *item == 2);
        assert_eq!(channel.take().ok(), Some(1));
        assert!(is_ready());
        assert_eq!(channel.take().ok(), Some(3));
        assert!(!is_ready());
    }
}
