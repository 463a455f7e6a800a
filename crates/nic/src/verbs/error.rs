//! Why a command was refused.

use core::fmt;

/// Why a command was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VerbsError {
    /// There is no such thing (`EINVAL`).
    NoSuch(&'static str),
    /// Something else still uses it (`EBUSY`).
    InUse(&'static str),
    /// There are no more of these, or a queue is full (`ENOMEM`).
    Exhausted(&'static str),
    /// It contradicts itself or the state that things are in (`EINVAL`).
    Invalid(&'static str),
    /// Not here (`EOPNOTSUPP`).
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
