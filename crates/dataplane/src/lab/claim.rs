//! The claim to a laboratory's names: a folder with a lock, which also holds its files.

use std::env;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::plan::Plan;
use super::processes;
use crate::iproute::explained;
use crate::netns;

/// The name of the lock's file. Its content is the number of the process.
const LOCK: &str = "lock";

/// The right to a laboratory's names. Dropping the value removes the folder.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    /// The lock lasts as long as the file is open.
    _lock: File,
}

/// Namespaces and processes that a killed laboratory has left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remains {
    /// Number of network namespaces.
    pub namespaces: usize,
    /// Number of processes in them.
    pub processes: usize,
}

impl Claim {
    /// Returns the folder above those of laboratories. It depends on the user, so it must be asked for before
    /// [`acquire`](crate::impair::acquire), after which everybody is root.
    pub fn base() -> PathBuf {
        if geteuid().is_root() {
            return PathBuf::from("/run/selvedge");
        }
        let own = env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("selvedge"));
        own.unwrap_or_else(|| env::temp_dir().join(format!("selvedge-{}", geteuid())))
    }

    /// Takes the names of a plan. What a laboratory of this name has left is removed first.
    ///
    /// # Errors
    /// Returns an error if a laboratory of this name runs, or the folder cannot be made.
    pub fn take(base: &Path, plan: &Plan) -> io::Result<(Self, Option<Remains>)> {
        let folder = base.join(format!("lab-{}", plan.name));
        let own = |folder: &Path, mode| {
            own(folder, mode).map_err(explained(&format!("cannot use the folder {}", folder.display())))
        };
        // In a user namespace a new, empty folder may hide the one above.
        if let Some(above) = base.parent() {
            fs::create_dir_all(above).map_err(explained(&format!("cannot make the folder {}", above.display())))?;
        }
        own(base, 0o755)?;
        let is_new = own(&folder, 0o700)?;
        let path = folder.join(LOCK);
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut lock = file.map_err(explained(&format!("cannot open {}", path.display())))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut process = String::new();
                lock.read_to_string(&mut process)?;
                let why = format!(
                    "a laboratory named {} runs already, in process {}; wait until it ends, or take another name with \
                     --name",
                    plan.name,
                    process.trim()
                );
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            Err(TryLockError::Error(error)) => {
                return Err(explained(&format!("cannot lock {}", path.display()))(error));
            }
        }
        lock.set_len(0)?;
        lock.rewind()?;
        writeln!(lock, "{}", std::process::id())?;
        // A laboratory that ends in order removes its folder. Without one, namespaces of these names are another's.
        let remains = if is_new { None } else { clear(&plan.name, &folder)? };
        Ok((Self { folder, _lock: lock }, remains))
    }

    /// Returns the folder, in which only its owner can read.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // The next claim removes what cannot be removed here.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Makes a folder into which nobody else writes, or checks that it belongs to this user. Returns whether it is new.
fn own(folder: &Path, mode: u32) -> io::Result<bool> {
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(folder)?;
            if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() {
                return Err(io::Error::other("somebody else has made it; remove it"));
            }
            Ok(false)
        }
        other => other.map(|()| true),
    }
}

/// Removes what a laboratory has left: processes, namespaces, files.
fn clear(name: &str, folder: &Path) -> io::Result<Option<Remains>> {
    let names: Vec<String> = netns::names().into_iter().filter(|space| is_of(name, space)).collect();
    let processes = processes::within(&names.iter().map(String::as_str).collect::<Vec<_>>());
    processes::end(&processes);
    for name in &names {
        netns::remove(name)?;
    }
    for entry in fs::read_dir(folder)?.flatten().filter(|entry| entry.file_name() != LOCK) {
        fs::remove_file(entry.path())?;
    }
    let remains = Remains { namespaces: names.len(), processes: processes.len() };
    Ok((remains.namespaces > 0).then_some(remains))
}

/// Returns whether a namespace has the name of one of a laboratory.
fn is_of(laboratory: &str, namespace: &str) -> bool {
    let Some(rest) = namespace.strip_prefix(laboratory).and_then(|rest| rest.strip_prefix('-')) else { return false };
    let is_numbered = |kind: &str| {
        let digits = rest.strip_prefix(kind);
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    rest == "switch" || ["h", "leaf", "spine"].into_iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_namespaces_are_removed() {
        for own in ["lab-switch", "lab-h1", "lab-h200", "lab-leaf3", "lab-spine12"] {
            assert!(is_of("lab", own), "{own}");
        }
        for other in ["lab", "lab-", "lab-h", "lab-h1x", "lab-home", "lab2-h1", "mylab-h1", "lab-switch2"] {
            assert!(!is_of("lab", other), "{other}");
        }
    }
}
