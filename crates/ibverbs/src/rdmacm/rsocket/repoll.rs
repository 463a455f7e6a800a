//! `repoll_create`, `repoll_ctl` and `repoll_wait`: `epoll` for these sockets and other descriptors, implemented by
//! [`poll`].
//!
//! Edge-triggered events (`EPOLLET`) are reported as level-triggered ones: a program that reads until nothing is left
//! works with either.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_short};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_dataplane::rnic::Channel;

use super::poll::poll;
use super::wait::{Bell, Deadline, readable, reset};
use crate::error;

const EVENTS: u32 = (libc::POLLIN | libc::POLLPRI | libc::POLLOUT | libc::POLLRDHUP) as u32;
const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;

/// Events of a descriptor that a set waits for.
#[derive(Clone, Copy, Debug)]
struct Interest {
    events: u32,
    data: u64,
    /// Whether the single event that `EPOLLONESHOT` requests was reported.
    is_spent: bool,
}

/// A set of descriptors, known by the descriptor of its bell, which rings when the set changes.
#[derive(Debug)]
struct Set {
    changed: Bell,
    interests: Mutex<BTreeMap<c_int, Interest>>,
}

impl Set {
    fn interests(&self) -> MutexGuard<'_, BTreeMap<c_int, Interest>> {
        self.interests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sets {
    process: u32,
    sets: BTreeMap<c_int, Arc<Set>>,
}

static SETS: Mutex<Sets> = Mutex::new(Sets { process: 0, sets: BTreeMap::new() });

/// Returns the sets of this process: a forked child has none of its parent's.
fn sets() -> MutexGuard<'static, Sets> {
    let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if sets.process != process {
        std::mem::forget(std::mem::take(&mut sets.sets));
        sets.process = process;
    }
    sets
}

fn find(set: c_int) -> Result<Arc<Set>, c_int> {
    sets().sets.get(&set).cloned().ok_or(libc::EBADF)
}

/// Creates a set; returns its descriptor.
///
/// # Errors
/// Returns `EINVAL` for flags that do not exist, `errno` if the process may not have more descriptors.
pub(super) fn create(flags: c_int) -> Result<c_int, c_int> {
    if flags & !libc::EPOLL_CLOEXEC != 0 {
        return Err(libc::EINVAL);
    }
    let changed: Bell = Arc::new(Channel::new().map_err(|problem| error::of_io(&problem))?);
    let number = changed.descriptor();
    sets().sets.insert(number, Arc::new(Set { changed, interests: Mutex::default() }));
    Ok(number)
}

/// Removes a set; returns whether it existed.
pub(super) fn close(set: c_int) -> bool {
    let gone = sets().sets.remove(&set);
    // Threads that wait for the set find it empty, and wait until their deadline.
    gone.is_some_and(|gone| {
        gone.interests().clear();
        true
    })
}

/// Adds, changes or removes a descriptor, like `epoll_ctl`.
///
/// # Errors
/// Returns `EBADF`, `EEXIST`, `ENOENT` or `EINVAL`, like `epoll_ctl`.
pub(super) fn control(set: c_int, operation: c_int, fd: c_int, wanted: Option<libc::epoll_event>) -> Result<(), c_int> {
    if fd == set {
        return Err(libc::EINVAL);
    }
    let set = find(set)?;
    // SAFETY: the call asks for the flags of a descriptor, if there is one, and changes nothing.
    let is_open = super::table::find(fd).is_ok() || unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    let mut interests = set.interests();
    let is_known = interests.contains_key(&fd);
    match (operation, wanted) {
        (libc::EPOLL_CTL_DEL, _) if is_known => _ = interests.remove(&fd),
        (libc::EPOLL_CTL_DEL | libc::EPOLL_CTL_MOD, _) if !is_known => return Err(libc::ENOENT),
        (libc::EPOLL_CTL_ADD, _) if !is_open => return Err(libc::EBADF),
        (libc::EPOLL_CTL_ADD, _) if is_known => return Err(libc::EEXIST),
        (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, Some(libc::epoll_event { events, u64: data })) => {
            interests.insert(fd, Interest { events, data, is_spent: false });
        }
        _ => return Err(libc::EINVAL),
    }
    drop(interests);
    set.changed.push(());
    Ok(())
}

/// Waits for events, like `epoll_wait`; returns at most `most` ready descriptors.
///
/// # Errors
/// Returns `EBADF`, `EINVAL` or `EINTR`, like `epoll_wait`.
pub(super) fn wait(set: c_int, most: usize, timeout_ms: c_int) -> Result<Vec<libc::epoll_event>, c_int> {
    let set = find(set)?;
    if most == 0 {
        return Err(libc::EINVAL);
    }
    let deadline = Deadline::after_ms(timeout_ms);
    loop {
        reset(&set.changed);
        let wanted = |(&fd, interest): (&c_int, &Interest)| libc::pollfd {
            fd,
            events: (interest.events & EVENTS) as c_short,
            revents: 0,
        };
        let asked = [readable(set.changed.descriptor())];
        let mut all: Vec<_> = {
            let interests = set.interests();
            asked.into_iter().chain(interests.iter().filter(|(_, interest)| !interest.is_spent).map(wanted)).collect()
        };
        if poll(&mut all, deadline.left_ms())? == 0 {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut interests = set.interests();
        // Closed descriptors leave the set, like with the kernel's sets.
        for told in all[1..].iter().filter(|told| told.revents & libc::POLLNVAL != 0) {
            interests.remove(&told.fd);
        }
        for told in all[1..].iter().filter(|told| told.revents & !libc::POLLNVAL != 0).take(most) {
            let Some(interest) = interests.get_mut(&told.fd) else { continue };
            interest.is_spent = interest.events & ONE_SHOT != 0;
            found.push(libc::epoll_event { events: told.revents as u32, u64: interest.data });
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
}
