//! Memory available to this process, read from files of Linux.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// Memory available to the process, and its limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Available {
    /// Number of bytes.
    pub bytes: u64,
    /// Name of the limit: "free memory", "ulimit -v", "the control group's memory.max".
    pub by: String,
}

impl Available {
    /// Returns the memory that this process may still allocate: the least of the machine's free memory, the rest of its
    /// control groups (version 1 and 2), and the rest of `ulimit` for address space and data. `None` where the system
    /// does not tell.
    pub fn of_this_process() -> Option<Self> {
        Self::read(Path::new("/"))
    }

    /// Returns the available memory according to the files of a system whose root is `root`.
    pub fn read(root: &Path) -> Option<Self> {
        let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        let (status, limits) = (text("proc/self/status"), text("proc/self/limits"));
        let used = |key: &str| kib_of(&status, key).unwrap_or(0);
        let left = |limit: &str, used: u64| limit_of(&limits, limit).map(|most| most.saturating_sub(used));
        let all = [
            (kib_of(&text("proc/meminfo"), "MemAvailable:"), "free memory"),
            (left("Max address space", used("VmSize:")), "ulimit -v"),
            (left("Max data size", used("VmData:")), "ulimit -d"),
            (of_groups(root, &text("proc/self/cgroup")), "the control group's limit"),
        ];
        let known = all.into_iter().filter_map(|(bytes, by)| Some(Self { bytes: bytes?, by: by.to_owned() }));
        known.min_by_key(|available| available.bytes)
    }
}

/// Returns the bytes after `key` in a file with lines such as "MemAvailable:   1024 kB".
fn kib_of(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib.saturating_mul(1_024))
}

/// Returns the soft limit of this name in `/proc/self/limits`; `None` if unlimited.
fn limit_of(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Returns the least memory that the control groups of this process leave.
fn of_groups(root: &Path, groups: &str) -> Option<u64> {
    let ways = groups.lines().filter_map(|line| {
        // Lines are "0::/path" in version 2, "9:memory:/path" in version 1.
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = path.trim_start_matches('/');
        match (number, controllers) {
            ("0", "") => Some((root.join("sys/fs/cgroup"), path, VERSION_2)),
            (_, controllers) if controllers.split(',').any(|one| one == "memory") => {
                Some((root.join("sys/fs/cgroup/memory"), path, VERSION_1))
            }
            _ => None,
        }
    });
    ways.filter_map(|(mount, path, files)| of_group(&mount, path, files)).min()
}

/// Names of a group's files with the memory limit and the memory in use, and key of the statistic that counts the
/// reclaimable file cache within it.
type Files = [&'static str; 3];
/// Files of control groups of version 2.
const VERSION_2: Files = ["memory.max", "memory.current", "inactive_file "];
/// Files of control groups of version 1.
const VERSION_1: Files = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "];

/// Returns the least memory that a group and its ancestors leave.
fn of_group(mount: &Path, path: &str, [most, used, cached]: Files) -> Option<u64> {
    // In a container the path may be the one outside of it: then the mount itself is the group.
    let group = Some(mount.join(path)).filter(|group| group.exists()).unwrap_or_else(|| mount.to_owned());
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let around = group.ancestors().take_while(|group| group.starts_with(mount));
    let left = around.filter_map(|group| {
        // "max", and in version 1 a number larger than any machine's memory, mean that there is no limit.
        let most = number(group.join(most)).filter(|&most| most < 1 << 60)?;
        let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cached = statistics.lines().find_map(|line| line.strip_prefix(cached)?.trim().parse::<u64>().ok());
        let used = number(group.join(used)).unwrap_or(0).saturating_sub(cached.unwrap_or(0));
        Some(most.saturating_sub(used))
    });
    left.min()
}
