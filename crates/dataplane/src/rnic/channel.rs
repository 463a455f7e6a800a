//! Queues that a file descriptor announces: completion channels and asynchronous events.
//!
//! The descriptor is an eventfd that counts what is in the queue, so programs can poll it and set `O_NONBLOCK`. A
//! pipe would do, too, until it is full and the engine had to wait for the application.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::eventfd::{EfdFlags, EventFd};
use rustix::io::{ReadWriteFlags, preadv2};

/// A queue of `T`, announced by a file descriptor.
#[derive(Debug)]
pub struct Channel<T> {
    count: EventFd,
    queue: Mutex<Queue<T>>,
}

/// What waits. Who takes has been told so by the count before it asks here, so the count and those who have been told
/// are as many as all that is here.
#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<T>,
    /// Items that were withdrawn when somebody had been told of them.
    withdrawn: usize,
}

impl<T> Channel<T> {
    /// An empty queue.
    ///
    /// # Errors
    /// When the process may not have more descriptors.
    pub fn new() -> io::Result<Self> {
        let count = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_SEMAPHORE)?;
        Ok(Self { count, queue: Mutex::new(Queue { items: VecDeque::new(), withdrawn: 0 }) })
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
        let mut queue = self.queue();
        queue.items.push_back(item);
        // It counts to 2^64 - 2: it will not refuse.
        let _ = self.count.write(1);
    }
    /// The next, waiting for it if need be. Who withdraws what it is about does so before, or finds it `taken`.
    ///
    /// # Errors
    /// `EAGAIN` if nothing waits and the application has set `O_NONBLOCK`, `EINTR` after a signal.
    pub fn take(&self, mut taken: impl FnMut(&T)) -> io::Result<T> {
        loop {
            self.count.read()?;
            let mut queue = self.queue();
            if queue.withdrawn > 0 {
                queue.withdrawn -= 1;
            } else if let Some(item) = queue.items.pop_front() {
                taken(&item);
                return Ok(item);
            }
        }
    }
    /// Withdraws what is of no use here any more; returns it.
    pub fn withdraw(&self, useless: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut queue = self.queue();
        let (gone, kept) = mem::take(&mut queue.items).into_iter().partition(useless);
        queue.items = kept;
        for _ in &gone {
            queue.withdrawn += usize::from(!self.counts_down());
        }
        Vec::from(gone)
    }
    /// Takes one from the count; returns whether it could. Who waited for it here would do so with the lock, perhaps
    /// for ever.
    fn counts_down(&self) -> bool {
        /// Where the file is: an eventfd is nowhere.
        const HERE: u64 = u64::MAX;
        let mut count = [0; size_of::<u64>()];
        preadv2(&self.count, &mut [IoSliceMut::new(&mut count)], HERE, ReadWriteFlags::NOWAIT).is_ok()
    }
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    fn is_ready<T>(channel: &Channel<T>) -> bool {
        let mut ready = [PollFd::new(channel.count.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::ZERO) == Ok(1)
    }

    #[test]
    fn the_descriptor_counts_what_waits() {
        let channel = Channel::new().expect("a descriptor");
        assert!(!is_ready(&channel));
        for item in 1..=3 {
            channel.push(item);
        }
        channel.withdraw(|item| *item == 2);
        assert_eq!(channel.take(|_| ()).ok(), Some(1));
        assert!(is_ready(&channel));
        assert_eq!(channel.take(|_| ()).ok(), Some(3));
        assert!(!is_ready(&channel));
    }

    #[test]
    fn who_withdraws_does_not_wait_for_what_another_has_taken() {
        const LAST: u32 = 20_000;
        let channel = Channel::new().expect("a descriptor");
        std::thread::scope(|scope| {
            scope.spawn(|| while channel.take(|_| ()).expect("it waits") != LAST {});
            for item in 0..LAST {
                channel.push(item);
                channel.withdraw(|_| true);
            }
            channel.push(LAST);
        });
        assert!(!is_ready(&channel));
    }

    #[test]
    fn nobody_withdraws_while_something_is_being_taken() {
        let channel = Channel::new().expect("a descriptor");
        channel.push(1);
        let taken = channel.take(|_| assert!(channel.queue.try_lock().is_err()));
        assert_eq!(taken.ok(), Some(1));
    }
}
