//! RDMA ports of identifiers, by the rules of Linux's connection manager.
//!
//! Between processes the UDP port of the same number is the lock. Within one, identifiers may share a port if their
//! addresses differ, or their port spaces, or if all of them set `RDMA_OPTION_ID_REUSEADDR` and none listens.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use selvedge_dataplane::rnic::Adapter;

/// Ports for identifiers that ask for any: Linux's `ip_local_port_range`.
const ANY: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// An identifier's claim to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// The claimed address; its port is 0 if any port will do.
    pub(super) address: SocketAddr,
    /// Port space, of `enum rdma_port_space`.
    pub(super) space: c_int,
    /// Whether the identifier shares the port with others that share.
    pub(super) shares: bool,
}

#[derive(Debug)]
struct Held {
    /// The address of the identifier in memory.
    id: usize,
    claim: Claim,
    listens: bool,
    /// Whether the port is locked against other processes.
    is_locked: bool,
}

impl Held {
    fn excludes(&self, other: &Claim, listens: bool) -> bool {
        let shares = self.claim.shares && other.shares && !self.listens && !listens;
        let (mine, theirs) = (self.claim.address.ip(), other.address.ip());
        let meet = mine.is_unspecified() || theirs.is_unspecified() || mine == theirs;
        self.claim.space == other.space && !shares && meet
    }
}

/// The ports of one process.
#[derive(Debug, Default)]
struct Ports {
    process: u32,
    held: BTreeMap<u16, Vec<Held>>,
}

static PORTS: Mutex<Ports> = Mutex::new(Ports { process: 0, held: BTreeMap::new() });

/// Returns the ports of this process: a forked child has none of its parent's.
fn ports() -> MutexGuard<'static, Ports> {
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if ports.process != process {
        *ports = Ports { process, held: BTreeMap::new() };
    }
    ports
}

fn in_use() -> io::Error {
    io::Error::from_raw_os_error(libc::EADDRINUSE)
}

/// Reserves a port for an identifier, any if its port is 0, and locks it against other processes; returns the port.
///
/// # Errors
/// Returns `EADDRINUSE` if somebody on this host has the port.
pub(super) fn claim(adapter: &Adapter, id: usize, mut claim: Claim) -> io::Result<u16> {
    let mut ports = ports();
    let wanted = claim.address.port();
    let here = ports.held.get(&wanted).filter(|_| wanted != 0);
    if here.is_some_and(|here| here.iter().any(|held| held.excludes(&claim, false))) {
        return Err(in_use());
    }
    let is_locked = here.is_some_and(|here| here.iter().any(|held| held.is_locked));
    let port = if is_locked { wanted } else { adapter.reserve_port(wanted)? };
    claim.address.set_port(port);
    ports.held.entry(port).or_default().push(Held { id, claim, listens: false, is_locked: true });
    Ok(port)
}

/// Reserves a port of its own within this process for an identifier that nobody connects to; returns the port. The
/// search begins at `random`.
///
/// # Errors
/// Returns `EADDRNOTAVAIL` once all are taken.
pub(super) fn any(id: usize, mut claim: Claim, random: u32) -> io::Result<u16> {
    let mut ports = ports();
    let (first, count) = (u32::from(*ANY.start()), u32::from(ANY.end() - ANY.start()) + 1);
    let mut all = (0..count).map(|at| (first + (random % count + at) % count) as u16);
    let port = all.find(|port| !ports.held.contains_key(port));
    let port = port.ok_or_else(|| io::Error::from_raw_os_error(libc::EADDRNOTAVAIL))?;
    claim.address.set_port(port);
    ports.held.entry(port).or_default().push(Held { id, claim, listens: false, is_locked: false });
    Ok(port)
}

/// Marks an identifier as listening on its port.
///
/// # Errors
/// Returns `EADDRINUSE` if others share the port.
pub(super) fn listen(id: usize, port: u16) -> io::Result<()> {
    let mut ports = ports();
    let Some(here) = ports.held.get_mut(&port) else { return Ok(()) };
    let Some(at) = here.iter().position(|held| held.id == id) else { return Ok(()) };
    let claim = here[at].claim;
    if here.iter().any(|held| held.id != id && held.excludes(&claim, true)) {
        return Err(in_use());
    }
    here[at].listens = true;
    Ok(())
}

/// Releases an identifier's port.
pub(super) fn release(adapter: &Adapter, id: usize, port: u16) {
    let mut ports = ports();
    let Some(here) = ports.held.get_mut(&port) else { return };
    let was_locked = here.iter().any(|held| held.is_locked);
    here.retain(|held| held.id != id);
    let is_locked = here.iter().any(|held| held.is_locked);
    if here.is_empty() {
        ports.held.remove(&port);
    }
    if was_locked && !is_locked {
        let _ = adapter.release_port(port);
    }
}

#[cfg(test)]
mod tests {
    use super::super::id::{TCP, UDP};
    use super::*;

    fn claimed(address: &str, space: c_int, shares: bool) -> Claim {
        Claim { address: address.parse().expect("an address"), space, shares }
    }

    #[test]
    fn ports_are_shared_as_linux_shares_them() {
        let held = |claim, listens| Held { id: 1, claim, listens, is_locked: true };
        let of = |address| claimed(address, TCP, false);
        let cases = [
            (of("10.0.0.1:7"), of("10.0.0.1:7"), true),
            (of("10.0.0.1:7"), of("10.0.0.2:7"), false),
            (of("10.0.0.1:7"), of("0.0.0.0:7"), true),
            (of("[::]:7"), of("10.0.0.2:7"), true),
            (of("10.0.0.1:7"), claimed("10.0.0.1:7", UDP, false), false),
            (claimed("10.0.0.1:7", TCP, true), of("10.0.0.1:7"), true),
            (claimed("10.0.0.1:7", TCP, true), claimed("10.0.0.1:7", TCP, true), false),
        ];
        for (first, second, excludes) in cases {
            assert_eq!(held(first, false).excludes(&second, false), excludes, "{first:?} {second:?}");
        }
        let sharing = claimed("10.0.0.1:7", TCP, true);
        assert!(held(sharing, true).excludes(&sharing, false) && held(sharing, false).excludes(&sharing, true));
    }

    #[test]
    fn who_asks_for_any_port_gets_one_that_nobody_has() {
        let claim = claimed("10.0.0.1:0", TCP, false);
        let [first, second] = [1, 2].map(|id| any(id, claim, u32::MAX).expect("free ports exist"));
        assert!(first != second && ANY.contains(&first) && ANY.contains(&second));
    }
}
