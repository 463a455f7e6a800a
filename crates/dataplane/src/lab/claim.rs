//! The claim to a laboratory's names: a folder with a lock, which also holds its files.

use std::env;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use super::processes;
use crate::iproute::explained;
use crate::netns;

/// Name of the lock's file. Its content is the number of the process.
const LOCK: &str = "lock";
/// Name of the file that lists the laboratory's namespaces, one a line.
const NAMESPACES: &str = "namespaces";

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

    /// Takes the name of a laboratory and those of its namespaces. What a laboratory of this name has left is removed
    /// first.
    ///
    /// # Errors
    /// Returns an error if a laboratory of this name runs, or the folder cannot be made.
    pub fn take(base: &Path, name: &str, namespaces: &[String]) -> io::Result<(Self, Option<Remains>)> {
        let folder = base.join(format!("lab-{name}"));
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
                    "a laboratory named {name} runs already, in process {}; wait until it ends, or take another name \
                     with --name",
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
        let remains = if is_new { None } else { clear(&folder)? };
        // The list comes before the namespaces: whatever is made later is found.
        fs::write(folder.join(NAMESPACES), namespaces.join("\n"))?;
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
fn clear(folder: &Path) -> io::Result<Option<Remains>> {
    let list = match fs::read_to_string(folder.join(NAMESPACES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        other => other?,
    };
    let names: Vec<&str> = list.lines().filter(|name| netns::exists(name)).collect();
    let processes = processes::within(&names);
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
