//! A copy of the tree in real files, in memory where there is such a file system, so that everything that reads folders
//! can read it: the C library's own functions, and open folders.
//!
//! All processes of a user that have the same devices share one copy, in `/dev/shm/selvedge-UID/HASH`. Each holds a
//! shared lock on it; a process that makes a new copy removes those without locks.

use std::ffi::CString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::IntoRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::tree::{Node, Tree};

/// Folders in which copies may be made.
const PLACES: [&str; 3] = ["/dev/shm", "/tmp", "/var/tmp"];

/// Returns the folder of a user's copies at a place, as text.
fn folder_at(place: &str) -> String {
    // SAFETY: the call cannot fail.
    let user = unsafe { libc::geteuid() };
    format!("{place}/selvedge-{user}")
}

/// Creates the copy of a tree, or joins an existing one; returns the folder that represents `/`.
///
/// # Errors
/// Returns an error when nothing can be written at any of the places: the one of the last place.
pub(super) fn open(tree: &Tree) -> io::Result<String> {
    let mut problem = io::Error::from(ErrorKind::NotFound);
    for place in PLACES {
        match open_at(&folder_at(place), tree) {
            Ok(root) => return Ok(root),
            Err(error) => problem = io::Error::new(error.kind(), format!("{place}: {error}")),
        }
    }
    Err(problem)
}

/// Returns the path in the tree that a path in a copy represents; `None` if it is in no copy.
pub(super) fn shown(physical: &str) -> Option<&str> {
    PLACES.iter().find_map(|place| {
        let rest = physical.strip_prefix(&folder_at(place))?.strip_prefix('/')?;
        let (_, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Some(if path.is_empty() { "/" } else { path })
    })
}

fn open_at(folder: &str, tree: &Tree) -> io::Result<String> {
    /// Attempts: another process may remove an unused copy at the same moment.
    const TRIES: usize = 16;
    own(folder)?;
    let root = format!("{folder}/{:016x}", hash(tree));
    for _ in 0..TRIES {
        if hold(Path::new(&root))? {
            return Ok(root);
        }
        // SAFETY: the call cannot fail.
        let thread = unsafe { libc::pthread_self() };
        let unfinished = PathBuf::from(format!("{folder}/unfinished-{}-{thread:x}", std::process::id()));
        let _ = fs::remove_dir_all(&unfinished);
        DirBuilder::new().mode(0o700).create(&unfinished)?;
        let held = hold(&unfinished)?;
        let made = fill(&unfinished, tree).and_then(|()| fs::rename(&unfinished, &root));
        match made {
            Ok(()) if held => {
                clear(folder, &root);
                return Ok(root);
            }
            Ok(()) => {}
            Err(error) => {
                let _ = fs::remove_dir_all(&unfinished);
                // Another process has created the copy first.
                if !matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) {
                    return Err(error);
                }
            }
        }
    }
    Err(io::Error::from(ErrorKind::ResourceBusy))
}

/// Creates the folder of a user's copies, which no other user may write.
fn own(folder: &str) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    // SAFETY: the call cannot fail.
    let user = unsafe { libc::geteuid() };
    if !found.is_dir() || found.uid() != user || found.mode() & 0o077 != 0 {
        return Err(io::Error::other(format!("{folder} is not a folder of this user's alone")));
    }
    Ok(())
}

/// Locks a copy against removal, for the life of this process; returns whether the copy exists.
fn hold(root: &Path) -> io::Result<bool> {
    let folder = match OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let is_held = folder.try_lock_shared().is_ok();
    let is_there = fs::metadata(root).is_ok_and(|there| folder.metadata().is_ok_and(|held| held.ino() == there.ino()));
    if is_held && is_there {
        // The descriptor is never closed: closing it would release the lock.
        let _ = folder.into_raw_fd();
    }
    Ok(is_held && is_there)
}

fn fill(root: &Path, tree: &Tree) -> io::Result<()> {
    for (path, node) in &tree.nodes {
        let at = root.join(path.trim_start_matches('/'));
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o755);
        // A node that is alone in a folder of the kernel needs this folder in the copy, too.
        folders.create(at.parent().unwrap_or(root))?;
        match node {
            Node::Folder => folders.create(at)?,
            Node::File(content) => {
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(at)?;
                file.write_all(content.as_bytes())?;
            }
            Node::Link(to) => symlink(to, at)?,
        }
    }
    Ok(())
}

/// Removes the copies in `folder` that no process holds, except `but`.
fn clear(folder: &str, but: &str) {
    let Ok(all) = fs::read_dir(folder) else { return };
    for tree in all.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path != Path::new(but)) {
        if File::open(&tree).is_ok_and(|held| held.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(tree);
        }
    }
}

/// Returns the FNV-1a hash of all nodes of a tree.
fn hash(tree: &Tree) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |text: &str| {
        for byte in text.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    for (path, node) in &tree.nodes {
        take(path);
        match node {
            Node::Folder => take("/"),
            Node::File(content) | Node::Link(content) => take(content),
        }
    }
    hash
}

/// Returns the target of a link; `None` if the path is no link. Uses the system call directly: the C library's function
/// is replaced by this library's.
pub(super) fn link(path: &str) -> Option<String> {
    let path = CString::new(path).ok()?;
    let mut buffer = vec![0_u8; libc::PATH_MAX as usize];
    // SAFETY: the path is a C string, and the buffer has so many bytes.
    let length = unsafe {
        libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path.as_ptr(), buffer.as_mut_ptr(), buffer.len())
    };
    buffer.truncate(usize::try_from(length).ok()?);
    String::from_utf8(buffer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(content: &str) -> Tree {
        let nodes = [
            ("/sys/a".to_owned(), Node::Folder),
            ("/sys/a/b".to_owned(), Node::File(content.to_owned())),
            ("/sys/a/c".to_owned(), Node::Link("b".to_owned())),
        ];
        Tree { nodes: nodes.into(), roots: vec!["/sys/a".to_owned()] }
    }

    #[test]
    fn a_tree_is_shared_by_who_has_the_same_and_goes_when_nobody_holds_it() {
        let folder = std::env::temp_dir().join(format!("selvedge-store-{}", std::process::id())).display().to_string();
        let first = open_at(&folder, &tree("one")).expect("the tree is writable");
        assert_eq!(open_at(&folder, &tree("one")).expect("the tree exists"), first);
        assert_eq!(fs::read_to_string(format!("{first}/sys/a/c")).expect("the tree exists"), "one");
        fs::create_dir_all(format!("{folder}/abandoned/sys")).expect("the folder can be created");
        let second = open_at(&folder, &tree("two")).expect("the tree is writable");
        assert!(second != first && Path::new(&first).is_dir(), "this process holds it");
        assert!(!Path::new(&folder).join("abandoned").exists());
        fs::remove_dir_all(folder).expect("the test's folder exists");
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        let folder = std::env::temp_dir().join(format!("selvedge-open-{}", std::process::id())).display().to_string();
        DirBuilder::new().mode(0o755).create(&folder).expect("the folder can be created");
        assert!(open_at(&folder, &tree("one")).is_err());
        fs::remove_dir(folder).expect("the folder is empty");
    }

    #[test]
    fn paths_in_a_tree_stand_for_others() {
        let root = folder_at("/tmp") + "/0123456789abcdef";
        assert_eq!(shown(&format!("{root}/sys/class")), Some("/sys/class"));
        assert_eq!(shown(&root), Some("/"));
        assert_eq!(shown("/tmp/selvedge-other/sys"), None);
    }
}
