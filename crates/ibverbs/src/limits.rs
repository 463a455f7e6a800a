//! The limits of the NIC that this one emulates ([`Profile`]): requests beyond them are refused with that NIC's errors,
//! and a message is printed.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use selvedge_dataplane::rnic::PROFILE;
pub(crate) use selvedge_dataplane::rnic::Profile;

use crate::error;

/// Kinds of objects with a limited number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ObjectKind {
    QueuePair,
    CompletionQueue,
    Region,
    Window,
    Domain,
    SharedQueue,
}

const KINDS: usize = 6;

/// Number of objects that this process holds, indexed by kind.
static HELD: [AtomicU32; KINDS] = [const { AtomicU32::new(0) }; KINDS];

impl ObjectKind {
    fn of(self, profile: &Profile) -> (Option<u32>, &'static str) {
        match self {
            Self::QueuePair => (profile.max_qp, "max_qp"),
            Self::CompletionQueue => (profile.max_cq, "max_cq"),
            Self::Region => (profile.max_mr, "max_mr"),
            Self::Window => (profile.max_mw, "max_mw"),
            Self::Domain => (profile.max_pd, "max_pd"),
            Self::SharedQueue => (profile.max_srq, "max_srq"),
        }
    }
}

/// An object's share of the limited number, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held(ObjectKind);

impl Held {
    /// Counts one more object, if the profile permits.
    ///
    /// # Errors
    /// Returns `EOPNOTSUPP` if the profile has no such objects, `ENOMEM` if all are in use.
    pub(crate) fn take(kind: ObjectKind, profile: &Profile) -> Result<Self, c_int> {
        let (limit, name) = kind.of(profile);
        let count = &HELD[kind as usize];
        let before = count.fetch_add(1, Ordering::Relaxed);
        let held = Self(kind);
        match limit {
            Some(0) => Err(refuse(libc::EOPNOTSUPP, &format!("{name} is 0"))),
            Some(limit) if before >= limit => Err(refuse(libc::ENOMEM, &format!("{name} is {limit}"))),
            _ => Ok(held),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD[self.0 as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// Prints which limit was met; returns `errno`.
pub(crate) fn refuse(errno: c_int, limit: &str) -> c_int {
    error::say(&format!("refused: {limit} in {PROFILE}"));
    errno
}

/// Checks that a requested value is within a limit.
///
/// # Errors
/// Returns `EINVAL` if it is not.
pub(crate) fn check(wanted: u32, limit: Option<u32>, name: &str) -> Result<(), c_int> {
    match limit {
        Some(limit) if wanted > limit => {
            Err(refuse(libc::EINVAL, &format!("{wanted} is asked for, and {name} is {limit}")))
        }
        _ => Ok(()),
    }
}

/// Returns the smaller of this NIC's limit and the profile's.
pub(crate) fn least(ours: u32, limit: Option<u32>) -> u32 {
    limit.map_or(ours, |limit| limit.min(ours))
}
