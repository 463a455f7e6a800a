//! Addresses inside, as the daemon tells them.

use std::net::IpAddr;
use std::sync::Mutex;

use selvedge_native::{Prefix, Socket, default_path};

/// Seconds after which the daemon is asked again: what it serves, or whether it is there now.
const AGAIN: i64 = 2;

struct Network {
    prefixes: Vec<Prefix>,
    asked_at: Option<i64>,
}

static NETWORK: Mutex<Network> = Mutex::new(Network { prefixes: Vec::new(), asked_at: None });

/// Returns whether a peer serves an address.
pub(crate) fn is_peers(address: IpAddr) -> bool {
    with(|prefix| !prefix.is_own && prefix.contains(address))
}

/// Returns whether datagrams to an address of this host may be native messages.
pub(crate) fn is_own(address: IpAddr) -> bool {
    address.is_unspecified() || with(|prefix| prefix.is_own && prefix.contains(address))
}

fn with(has: impl Fn(&Prefix) -> bool) -> bool {
    let mut network = NETWORK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let now = seconds();
    if network.asked_at.is_none_or(|asked_at| now - asked_at >= AGAIN) {
        network.asked_at = Some(now);
        let asked = Socket::bind_at(&default_path(), 0, None).and_then(|socket| socket.prefixes());
        // Those of a daemon that is away stay: their addresses are still its peers'.
        if let Ok(prefixes) = asked {
            network.prefixes = prefixes;
        }
    }
    network.prefixes.iter().any(has)
}

/// Returns the seconds of the monotonic clock.
pub(crate) fn seconds() -> i64 {
    milliseconds() / 1_000
}

/// Returns the milliseconds of the monotonic clock.
pub(crate) fn milliseconds() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}
