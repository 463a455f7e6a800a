//! Network namespaces with names, as `ip netns` makes them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns};

use super::tun;

/// Where `ip netns` keeps names.
const NAMES: &str = "/run/netns";
/// The device in each.
pub(super) const DEVICE: &str = "eth0";
/// Packets that wait before a device at most.
pub(super) const QUEUE: usize = 10_000;

/// A network namespace with one device; gone when this is.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
    /// The other end of its device.
    pub(super) device: File,
    /// What its kernel counts, as text.
    pub(super) counters: File,
}

impl Namespace {
    /// Makes it, with these addresses and MTU.
    pub(super) fn new(name: &str, addresses: [&str; 2], mtu: u16) -> io::Result<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(is_plain) {
            let why = format!("\"{name}\" is no name for a namespace: letters, digits, -, _ and . are");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let path = Path::new(NAMES).join(name);
        if path.exists() {
            let why = format!("there is a network namespace {name} already: `ip netns delete {name}` removes it");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        ip(&["netns", "add", name])?;
        let made = within(&path).and_then(|(device, counters)| {
            let this = Self { name: name.to_owned(), device, counters };
            this.set_up(addresses, mtu).map(|()| this)
        });
        if made.is_err() {
            remove(name);
        }
        made
    }

    fn set_up(&self, addresses: [&str; 2], mtu: u16) -> io::Result<()> {
        let within = |words: &[&str]| ip(&[&["-n", &self.name], words].concat());
        // Queues before the device must not lose what nobody counts.
        let (mtu, queue) = (mtu.to_string(), QUEUE.to_string());
        within(&["link", "set", DEVICE, "mtu", &mtu, "txqueuelen", &queue, "up"])?;
        for address in addresses {
            let outcome = within(&["address", "add", address, "dev", DEVICE]);
            // Some hosts have no IPv6.
            if !address.contains(':') {
                outcome?;
            }
        }
        within(&["link", "set", "lo", "up"])
    }

    /// Packets that the kernel dropped before the device, because we were too slow.
    pub(super) fn overflowed(&mut self) -> io::Result<u64> {
        /// Where the drops stand, behind the device's name: eight numbers of receiving go before.
        const TRANSMIT_DROPS: usize = 8 + 3;
        io::Seek::rewind(&mut self.counters)?;
        let text = io::read_to_string(&mut self.counters)?;
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'));
        let drops = line.and_then(|line| line.split_whitespace().nth(TRANSMIT_DROPS)?.parse().ok());
        Ok(drops.unwrap_or(0))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

fn remove(name: &str) {
    let _ = ip(&["netns", "delete", name]);
}

/// In a namespace: the device, and the file with its counters. A thread moves there; the process stays.
fn within(path: &Path) -> io::Result<(File, File)> {
    let visit = || {
        let namespace = File::open(path)?;
        setns(&namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| explained(&format!("cannot enter {}", path.display()))(errno.into()))?;
        Ok((tun::open(DEVICE)?, File::open("/proc/thread-self/net/dev")?))
    };
    thread::scope(|scope| scope.spawn(visit).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `ip` with these words.
fn ip(words: &[&str]) -> io::Result<()> {
    let mut command = Command::new("ip");
    let text = format!("ip {}", words.join(" "));
    let output = command.args(words).stdin(Stdio::null()).output();
    let output = output.map_err(explained(&format!("cannot run `{text}` (package iproute2)")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("`{text}` failed: {}", said.trim())))
}

/// Says what was tried before what the system says.
pub(super) fn explained(what: &str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}
