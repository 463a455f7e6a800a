//! `rpoll` and `rselect`: waiting for these sockets and for other descriptors at once.

use std::ffi::{c_int, c_short};
use std::sync::Arc;

use super::socket::Socket;
use super::table;
use super::wait::{self, Bell, Deadline, readable};

/// Polls in a row before the call sleeps.
const LOOKS: u32 = 10;

/// Waits until a descriptor has one of its requested events; returns the number of such descriptors. Negative
/// descriptors are ignored.
///
/// # Errors
/// Returns `EINTR` after a signal, `errno` if the process may not have more descriptors.
pub(super) fn poll(all: &mut [libc::pollfd], timeout_ms: c_int) -> Result<c_int, c_int> {
    let deadline = Deadline::after_ms(timeout_ms);
    let sockets: Vec<_> = all.iter().map(|wanted| table::find(wanted.fd).ok()).collect();
    if sockets.iter().all(Option::is_none) {
        return wait::sleep(all, &deadline);
    }
    // The kernel polls the bell, and behind it the descriptors; in place of a socket, the descriptor of its
    // completions.
    let others = all.iter().zip(&sockets).map(|(wanted, socket)| match socket {
        Some(socket) => readable(socket.number()),
        None => *wanted,
    });
    let mut kernel: Vec<_> = [readable(-1)].into_iter().chain(others).collect();
    for _ in 0..if timeout_ms == 0 { 1 } else { LOOKS } {
        let found = count(all, &sockets, &mut kernel, |socket, events| socket.ready(events))?;
        if found > 0 || timeout_ms == 0 {
            return Ok(found);
        }
    }
    let bell = wait::bell()?;
    kernel[0] = readable(bell.descriptor());
    let found = wait_for(all, &sockets, &mut kernel, &bell, &deadline);
    sockets.iter().flatten().for_each(|socket| socket.unhang(&bell));
    found
}

fn wait_for(
    all: &mut [libc::pollfd],
    sockets: &[Option<Arc<Socket>>],
    kernel: &mut [libc::pollfd],
    bell: &Bell,
    deadline: &Deadline,
) -> Result<c_int, c_int> {
    let mut is_first = true;
    loop {
        wait::reset(bell);
        let found = count(all, sockets, kernel, |socket, events| socket.hang(bell, is_first, events))?;
        is_first = false;
        if found > 0 {
            return Ok(found);
        }
        if wait::sleep(kernel, deadline)? == 0 {
            return Ok(0);
        }
    }
}

/// Polls all descriptors once; returns the number of those with events.
fn count(
    all: &mut [libc::pollfd],
    sockets: &[Option<Arc<Socket>>],
    kernel: &mut [libc::pollfd],
    ask: impl Fn(&Socket, c_short) -> c_short,
) -> Result<c_int, c_int> {
    if sockets.iter().any(Option::is_none) {
        wait::sleep(&mut kernel[1..], &Deadline::after_ms(0))?;
    }
    let mut found = 0;
    for ((wanted, socket), theirs) in all.iter_mut().zip(sockets).zip(&kernel[1..]) {
        wanted.revents = match socket {
            Some(socket) => ask(socket, wanted.events),
            None => theirs.revents,
        };
        found += c_int::from(wanted.revents != 0);
    }
    Ok(found)
}

/// A descriptor set of `select`, or `None`.
pub(super) type Set<'a> = Option<&'a mut libc::fd_set>;

/// Implements `select`: keeps in the sets the descriptors that are ready; returns the number of set bits.
///
/// # Errors
/// Returns `EINVAL` for a number beyond the sets' size, `EBADF` for a closed descriptor, or an error of [`poll`].
pub(super) fn select(count: c_int, sets: [Set<'_>; 3], timeout_ms: c_int) -> Result<c_int, c_int> {
    // Linux's translation between `poll` and `select`: for reading, writing, exceptions.
    const ASKED: [c_short; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
    const TOLD: [c_short; 3] =
        [libc::POLLIN | libc::POLLHUP | libc::POLLERR, libc::POLLOUT | libc::POLLERR, libc::POLLPRI];
    if !(0..=libc::FD_SETSIZE as c_int).contains(&count) {
        return Err(libc::EINVAL);
    }
    let asked = |fd: c_int| {
        let events = sets.iter().zip(ASKED).filter(|(set, _)| set.as_ref().is_some_and(|set| has(set, fd)));
        events.fold(0, |all, (_, event)| all | event)
    };
    let mut all: Vec<_> = (0..count)
        .map(|fd| libc::pollfd { fd, events: asked(fd), revents: 0 })
        .filter(|wanted| wanted.events != 0)
        .collect();
    poll(&mut all, timeout_ms)?;
    if all.iter().any(|found| found.revents & libc::POLLNVAL != 0) {
        return Err(libc::EBADF);
    }
    let mut bits = 0;
    for ((set, asked), told) in sets.into_iter().zip(ASKED).zip(TOLD) {
        let Some(set) = set else { continue };
        for fd in 0..count {
            // SAFETY: the number is below `FD_SETSIZE`.
            unsafe { libc::FD_CLR(fd, set) };
        }
        for found in all.iter().filter(|found| found.events & asked != 0 && found.revents & told != 0) {
            // SAFETY: the number is below `FD_SETSIZE`.
            unsafe { libc::FD_SET(found.fd, set) };
            bits += 1;
        }
    }
    Ok(bits)
}

fn has(set: &libc::fd_set, fd: c_int) -> bool {
    // SAFETY: whoever asks has checked that the number is below `FD_SETSIZE`.
    unsafe { libc::FD_ISSET(fd, set) }
}
