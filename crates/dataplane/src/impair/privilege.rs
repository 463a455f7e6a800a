//! The right to make network namespaces, from root or from a user namespace of this process.

use std::fs;
use std::io;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use crate::iproute::explained;

/// The message where the kernel refuses: the missing permission, and ways to get it.
const REMEDY: &str = "no permission to make network namespaces: run it as root, in a container with CAP_NET_ADMIN and \
                      CAP_SYS_ADMIN, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, \
                      kernel.apparmor_restrict_unprivileged_userns=0)";
/// Numbers of the needed capabilities: `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
const NEEDED: [u32; 2] = [12, 21];

/// Makes sure that this process may make network namespaces. A process without the right moves itself into a user
/// namespace, where it is root over networks of its own and sees none of the host's. Returns whether it did. Must be
/// called while the process has one thread.
///
/// # Errors
/// Returns an error if the kernel allows neither.
pub fn acquire() -> io::Result<bool> {
    if is_privileged() {
        return Ok(false);
    }
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)
        .map_err(|errno| explained(REMEDY)(errno.into()))?;
    let write = |file: &str, text: String| {
        let path = Path::new("/proc/self").join(file);
        fs::write(&path, text).map_err(explained(&format!("{REMEDY}; cannot write {}", path.display())))
    };
    // A process may map its group only after it gives up choosing other groups.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {user} 1"))?;
    write("gid_map", format!("0 {group} 1"))?;
    // The folder in which `ip netns` keeps names belongs to the real root: a tmpfs, visible to this process alone, is
    // mounted over it.
    let names = ["/run/netns", "/run"].into_iter().find(|path| Path::new(path).is_dir()).unwrap_or("/run");
    mount(Some("tmpfs"), names, Some("tmpfs"), MsFlags::empty(), None::<&str>)
        .map_err(|errno| explained(&format!("cannot mount a folder of our own at {names}"))(errno.into()))?;
    Ok(true)
}

/// Returns whether the effective capabilities include those of [`NEEDED`].
fn is_privileged() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    NEEDED.iter().all(|bit| effective >> bit & 1 == 1)
}
