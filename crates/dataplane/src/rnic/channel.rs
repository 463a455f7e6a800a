//! Queues that a file descriptor announces: completion channels, asynchronous events, events of the connection manager.
//!
//! The descriptor that applications get is an epoll instance over an internal eventfd: readable while something is
//! queued, and never writable, like the kernel's own. A bare eventfd is always writable, and programs that wait for
//! both directions would spin. A pipe would block the engine when it is full.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rustix::fs::{OFlags, fcntl_getfl};

/// A queue of `T`, announced by a file descriptor.
#[derive(Debug)]
pub struct Channel<T> {
    /// The descriptor that applications poll, and set `O_NONBLOCK` on.
    outside: Epoll,
    /// A counter that is not zero while something is queued; changed under the lock alone.
    signal: EventFd,
    queue: Mutex<VecDeque<T>>,
    /// The process that made the queue. A forked child has a queue of its own, but shares the descriptors: it does not
    /// touch them.
    process: u32,
}

impl<T> Channel<T> {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// Returns an error when the process may not have more descriptors.
    pub fn new() -> io::Result<Self> {
        let signal = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let outside = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        outside.add(&signal, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        Ok(Self { outside, signal, queue: Mutex::default(), process: std::process::id() })
    }
    /// Returns the descriptor to poll: readable while something is queued.
    pub fn descriptor(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
    /// Returns the descriptor of [`Self::descriptor`], borrowed.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.outside.0.as_fd()
    }
    /// Appends an item to the queue.
    pub fn push(&self, item: T) {
        let mut queue = self.queue();
        queue.push_back(item);
        // Written for each item, not only for the first: edge-triggered waiters are woken by each write. The eventfd
        // counts to 2^64 - 2: writing does not fail.
        let _ = self.signal.write(1);
    }
    /// Removes and returns the next item, and waits for it if necessary. `taken` is called under the lock: a thread
    /// that withdraws the item's object either removes the item before, or finds it counted by `taken`.
    ///
    /// # Errors
    /// Returns `EAGAIN` if the queue is empty and the application has set `O_NONBLOCK`, `EINTR` after a signal.
    pub fn take(&self, mut taken: impl FnMut(&T)) -> io::Result<T> {
        loop {
            let mut queue = self.queue();
            if let Some(item) = queue.pop_front() {
                taken(&item);
                self.settle(&queue);
                return Ok(item);
            }
            drop(queue);
            if fcntl_getfl(self.as_fd())?.contains(OFlags::NONBLOCK) {
                return Err(nix::errno::Errno::EAGAIN.into());
            }
            poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)?;
        }
    }
    /// Removes and returns the items for which `useless` returns true.
    pub fn withdraw(&self, useless: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut queue = self.queue();
        let (gone, kept): (VecDeque<T>, VecDeque<T>) = mem::take(&mut *queue).into_iter().partition(useless);
        *queue = kept;
        self.settle(&queue);
        Vec::from(gone)
    }
    /// Makes the descriptor unreadable once the queue is empty.
    fn settle(&self, queue: &VecDeque<T>) {
        if queue.is_empty() && std::process::id() == self.process {
            // The counter is zero already if the queue was empty before.
            let _ = self.signal.read();
        }
    }
    fn queue(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ready<T>(channel: &Channel<T>) -> bool {
        let mut ready = [PollFd::new(channel.as_fd(), PollFlags::POLLIN)];
        poll(&mut ready, PollTimeout::ZERO) == Ok(1)
    }

    #[test]
    fn the_descriptor_is_never_writable() {
        let channel = Channel::new().expect("a free descriptor");
        let all = PollFlags::POLLIN | PollFlags::POLLOUT | PollFlags::POLLPRI;
        let polled = || {
            let mut ready = [PollFd::new(channel.as_fd(), all)];
            poll(&mut ready, PollTimeout::ZERO).expect("the descriptor can be polled");
            ready[0].revents()
        };
        assert_eq!(polled(), Some(PollFlags::empty()));
        channel.push(1);
        assert_eq!(polled(), Some(PollFlags::POLLIN));
    }

    #[test]
    fn who_waits_for_edges_is_woken_by_each_item() {
        let channel = Channel::new().expect("a free descriptor");
        let edges = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).expect("a free descriptor");
        edges
            .add(channel.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 7))
            .expect("the descriptor can be watched");
        let woken = || {
            let mut events = [EpollEvent::empty(); 2];
            edges.wait(&mut events, nix::sys::epoll::EpollTimeout::ZERO).expect("the wait succeeds")
        };
        assert_eq!(woken(), 0);
        for item in 0..2 {
            channel.push(item);
            assert_eq!((woken(), woken()), (1, 0), "{item}");
        }
        assert_eq!((channel.take(|_| ()).ok(), channel.take(|_| ()).ok()), (Some(0), Some(1)));
        channel.push(2);
        assert_eq!((woken(), woken()), (1, 0));
    }

    #[test]
    fn who_may_not_wait_is_told_that_nothing_is_there() {
        let channel = Channel::<u32>::new().expect("a free descriptor");
        rustix::fs::fcntl_setfl(channel.as_fd(), OFlags::NONBLOCK).expect("O_NONBLOCK can be set");
        assert_eq!(channel.take(|_| ()).map_err(|error| error.raw_os_error()), Err(Some(nix::libc::EAGAIN)));
        channel.push(1);
        assert_eq!(channel.take(|_| ()).ok(), Some(1));
    }

    #[test]
    fn the_descriptor_counts_what_waits() {
        let channel = Channel::new().expect("a free descriptor");
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
        let channel = Channel::new().expect("a free descriptor");
        std::thread::scope(|scope| {
            scope.spawn(|| while channel.take(|_| ()).expect("the wait succeeds") != LAST {});
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
        let channel = Channel::new().expect("a free descriptor");
        channel.push(1);
        let taken = channel.take(|_| assert!(channel.queue.try_lock().is_err()));
        assert_eq!(taken.ok(), Some(1));
    }
}
