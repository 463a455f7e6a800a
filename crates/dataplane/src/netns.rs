//! Named network namespaces, created with `ip netns`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::iproute::{explained, ip};

/// The folder in which `ip netns` keeps names.
const NAMES: &str = "/run/netns";

/// A network namespace with a name. Dropping the value removes it.
#[derive(Debug)]
pub(crate) struct Netns(String);

impl Netns {
    /// Creates a namespace. Its loopback device is down.
    ///
    /// # Errors
    /// Returns an error if the name is not plain or taken, or if `ip` or the kernel refuses.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        check_name(name).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        if exists(name) {
            let why = format!("there is a network namespace {name} already: `ip netns delete {name}` removes it");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        ip(&["netns", "add", name])?;
        Ok(Self(name.to_owned()))
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Runs `ip` with these arguments in the namespace.
    ///
    /// # Errors
    /// Returns an error if the program is missing, or what it said if it failed.
    pub(crate) fn ip(&self, words: &[&str]) -> io::Result<()> {
        ip(&[&["-n", &self.0], words].concat())
    }

    /// Calls a function in a new thread that has entered the namespace; the process stays where it is.
    ///
    /// # Errors
    /// Returns the function's error, or that of entering.
    pub(crate) fn visit<T: Send>(&self, visit: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        self::visit(&self.0, visit)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = remove(&self.0);
    }
}

/// Calls a function in a new thread that has entered the namespace `name`; the process stays where it is.
///
/// # Errors
/// Returns the function's error, or that of entering.
pub(crate) fn visit<T: Send>(name: &str, visit: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let path = path(name);
    let enter = || {
        let unable = || format!("cannot enter {}", path.display());
        let namespace = File::open(&path).map_err(explained(&unable()))?;
        setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(|errno| explained(&unable())(errno.into()))?;
        visit()
    };
    thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns why a text is no name for a namespace.
///
/// # Errors
/// Returns the reason.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(is_plain) {
        return Err(format!("\"{name}\" is no name for a namespace: letters, digits, -, _ and . are"));
    }
    Ok(())
}

/// Returns the file that stands for the namespace `name`.
pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

/// Returns whether there is a namespace `name`.
pub(crate) fn exists(name: &str) -> bool {
    path(name).exists()
}

/// Removes the name of a namespace. The namespace ends with its last process.
///
/// # Errors
/// Returns what `ip` said.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    ip(&["netns", "delete", name])
}
