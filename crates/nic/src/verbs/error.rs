//! Errors of verbs commands.

use core::fmt;

/// Reason for which a command was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerbsError {
    /// The named resource does not exist (`EINVAL`).
    NoSuch(&'static str),
    /// Another resource still uses the named one (`EBUSY`).
    InUse(&'static str),
    /// The resource is exhausted, or a queue is full (`ENOMEM`).
    Exhausted(&'static str),
    /// The command contradicts itself or the present state (`EINVAL`).
    Invalid(&'static str),
    /// The operation is not supported (`EOPNOTSUPP`).
    Unsupported(&'static str),
}

impl fmt::Display for VerbsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuch(what) => write!(f, "no such {what}"),
            Self::InUse(what) => write!(f, "still used by a {what}"),
            Self::Exhausted(what) => write!(f, "no more {what}"),
            Self::Invalid(why) => f.write_str(why),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
        }
    }
}
impl core::error::Error for VerbsError {}
