//! Path resolution: the kernel's walk along a path, with the tree in place of files that do not exist.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::{CString, c_int};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::store;
use super::tree::{NODES, Tree, hardware, may_lead_here};
use crate::borrowed::Text;
use crate::device::{DeviceEntry, devices};
use crate::error;

/// The target of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ResolvedPath {
    /// The path to use instead.
    pub(super) physical: CString,
    /// The path in the tree, without links.
    pub(super) shown: String,
    /// Whether the target is in the tree itself, and not a file of the kernel behind it.
    pub(super) is_ours: bool,
}

/// A tree that exists in files.
#[derive(Clone)]
struct Standing {
    /// The devices that the tree shows.
    devices: Vec<&'static DeviceEntry>,
    user: libc::uid_t,
    tree: std::sync::Arc<Tree>,
    root: String,
}

static STANDING: Mutex<Option<Standing>> = Mutex::new(None);

/// Whether this process has opened a folder of the tree, or works in one: relative paths may lead there.
static IS_INSIDE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this library's own code, or the C library on its behalf, opens files: their paths are not replaced.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Remembers that relative paths may lead to the tree from now on.
pub(super) fn enter() {
    IS_INSIDE.store(true, Ordering::Relaxed);
}

/// Returns the target of a path that leads into the tree, or to something behind it; `None` for all other paths, which
/// are nearly all. `follows` says whether a link at the path's end is followed.
pub(super) fn resolve(at: c_int, path: Text<'_>, follows: bool) -> Option<ResolvedPath> {
    let bytes = path.get()?.to_bytes();
    let is_relative = bytes.first().is_some_and(|&first| first != b'/');
    let may_be = may_lead_here(bytes) || (is_relative && is_inside());
    if bytes.is_empty() || !may_be || IS_BUSY.replace(true) {
        return None;
    }
    let errno = std::io::Error::last_os_error();
    let found = std::str::from_utf8(bytes).ok().and_then(|path| from(at, path, follows));
    IS_BUSY.set(false);
    error::set(errno.raw_os_error().unwrap_or(0));
    found
}

/// Returns whether relative paths may lead to the tree: a shell may have entered it before it became, or started, this
/// process.
fn is_inside() -> bool {
    static BEGAN: OnceLock<bool> = OnceLock::new();
    let began = || store::link("/proc/self/cwd").is_some_and(|folder| store::shown(&folder).is_some());
    IS_INSIDE.load(Ordering::Relaxed) || *BEGAN.get_or_init(began)
}

fn from(at: c_int, path: &str, follows: bool) -> Option<ResolvedPath> {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        let folder = match at {
            libc::AT_FDCWD => store::link("/proc/self/cwd")?,
            other => store::link(&format!("/proc/self/fd/{other}"))?,
        };
        format!("{}/{path}", store::shown(&folder).unwrap_or(&folder))
    };
    if !["/sys/", "/dev/"].iter().any(|folder| lexical(&whole).starts_with(folder)) {
        return None;
    }
    let standing = standing()?;
    // A link at the end is followed if a slash comes behind it.
    let follows = follows || path.ends_with('/') || path.ends_with("/.");
    let is_ours = |path: &str| standing.tree.covers(path);
    let physical = |path: &str| if is_ours(path) { format!("{}{path}", standing.root) } else { path.to_owned() };
    let shown = walk(&whole, follows, is_ours, |path| store::link(&physical(path)))?;
    let is_ours = is_ours(&shown);
    let physical = CString::new(physical(&shown)).ok()?;
    Some(ResolvedPath { physical, shown, is_ours })
}

/// Returns a path without `.`, `..` and empty parts, as if nothing were a link.
fn lexical(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns the path without links that a path leads to; `None` if it never leads through the tree, or leads in a
/// circle.
fn walk(
    path: &str,
    follows: bool,
    is_ours: impl Fn(&str) -> bool,
    link: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    /// Most links that are followed, which is Linux's number.
    const LINKS: u32 = 40;
    let parts =
        |path: &str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<VecDeque<_>>();
    let mut rest = parts(path);
    let (mut here, mut touches, mut links) = (String::new(), false, 0);
    while let Some(part) = rest.pop_front() {
        match part.as_str() {
            "." => continue,
            ".." => {
                here.truncate(here.rfind('/').unwrap_or(0));
                continue;
            }
            _ => {}
        }
        let next = format!("{here}/{part}");
        touches |= is_ours(&next);
        // Device nodes are no links, whatever their representation in the copy.
        let is_followed = follows || !rest.is_empty() || here == NODES;
        match link(&next).filter(|_| is_followed) {
            Some(to) => {
                links += 1;
                if links > LINKS {
                    return None;
                }
                if to.starts_with('/') {
                    here.clear();
                }
                let mut all = parts(&to);
                all.append(&mut rest);
                rest = all;
            }
            None => here = next,
        }
    }
    touches.then(|| if here.is_empty() { "/".to_owned() } else { here })
}

/// Returns the tree of the current devices, in files; `None` if it cannot be made.
fn standing() -> Option<Standing> {
    let devices = devices().ok()?;
    // SAFETY: the call cannot fail.
    let user = unsafe { libc::geteuid() };
    let mut standing = STANDING.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |standing: &&Standing| {
        let pairs = standing.devices.iter().zip(&devices);
        let are_same = standing.devices.len() == devices.len() && pairs.into_iter().all(|(a, b)| std::ptr::eq(*a, *b));
        // A cleaner of /tmp may have removed the copy.
        are_same && standing.user == user && Path::new(&standing.root).is_dir()
    };
    if let Some(standing) = standing.as_ref().filter(is_same) {
        return Some(standing.clone());
    }
    let tree = Tree::of(&devices.iter().map(|listed| &listed.device).collect::<Vec<_>>(), hardware);
    match store::open(&tree) {
        Ok(root) => {
            let new = Standing { devices, user, tree: std::sync::Arc::new(tree), root };
            *standing = Some(new.clone());
            Some(new)
        }
        Err(problem) => {
            error::say(&format!("no /sys/class/infiniband: its files cannot be written: {problem}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn walked(path: &str, follows: bool) -> Option<String> {
        let links = BTreeMap::from([
            ("/sys/class/infiniband/sv_eth0", "../../devices/pci/03.0/infiniband/sv_eth0"),
            ("/sys/devices/pci/03.0/infiniband/sv_eth0/device", "../../../03.0"),
            ("/sys/class/net/eth0", "../../devices/pci/03.0/net/eth0"),
            ("/sys/devices/pci/03.0/net/eth0/device", "../../../03.0"),
            ("/dev/infiniband/rdma_cm", "/dev/null"),
            ("/sys/class/infiniband/loop", "loop"),
        ]);
        let roots = ["/sys/class/infiniband", "/sys/devices/pci/03.0/infiniband", "/dev/infiniband"];
        let is_ours = |path: &str| roots.iter().any(|root| Path::new(path).starts_with(root));
        walk(path, follows, is_ours, |path| links.get(path).map(|to| (*to).to_owned()))
    }

    #[test]
    fn paths_are_walked_as_the_kernel_walks_them() {
        let device = "/sys/devices/pci/03.0/infiniband/sv_eth0";
        let cases = [
            ("/sys/class/infiniband/sv_eth0/../..", true, Some("/sys/devices/pci/03.0")),
            ("/sys/class/infiniband/sv_eth0", true, Some(device)),
            ("/sys/class/infiniband/sv_eth0", false, Some("/sys/class/infiniband/sv_eth0")),
            ("/sys//class/./infiniband/sv_eth0/device/numa_node", true, Some("/sys/devices/pci/03.0/numa_node")),
            ("/sys/class/net/eth0/device/infiniband/sv_eth0", true, Some(device)),
            ("/dev/infiniband/rdma_cm", false, Some("/dev/null")),
            ("/sys/class/infiniband/..", true, Some("/sys/class")),
            ("/sys/class/net/eth0/device", true, None),
            ("/sys/class/infiniband/loop", true, None),
        ];
        for (path, follows, expected) in cases {
            assert_eq!(walked(path, follows).as_deref(), expected, "{path}");
        }
    }
}
