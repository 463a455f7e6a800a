//! Errors of verbs commands.

use core::fmt;

/// Reason for which a command was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerbsError {
    /// Resource that does not exist (`EINVAL`).
    NoSuch(&'static str),
    /// Resource that is still in use, by one of the named kind (`EBUSY`).
    InUse(&'static str),
    /// Exhausted resource, or full queue (`ENOMEM`).
    Exhausted(&'static str),
    /// Contradiction within the command, or with the present state (`EINVAL`).
    Invalid(&'static str),
    /// Operation that is not supported (`EOPNOTSUPP`).
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
