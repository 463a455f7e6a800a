//! Named network namespaces, created with `ip netns`.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns};

use super::tun;

/// The folder in which `ip netns` keeps names.
const NAMES: &str = "/run/netns";
/// Name of the network device in each namespace.
pub(super) const DEVICE: &str = "eth0";
/// Longest queue of packets before a device.
pub(super) const QUEUE: usize = 10_000;

/// A network namespace with one device. Dropping the value removes the namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    name: String,
    /// The file end of the namespace's TUN device.
    pub(super) device: File,
    /// The text file of the namespace's kernel counters.
    pub(super) counters: File,
}

impl Namespace {
    /// Creates a namespace whose device has these addresses and this MTU in bytes.
    ///
    /// # Errors
    /// Returns an error if the name is not plain, or if `ip` or the kernel refuses a step.
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
        // The queue before the device must not lose packets: such losses would not be counted.
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

    /// Returns the number of packets that the kernel dropped before the device, because the thread was too slow.
    pub(super) fn overflowed(&mut self) -> io::Result<u64> {
        /// Column of the transmit drops behind the device's name: eight numbers of receiving go before.
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

/// Opens the TUN device in the namespace `path` and the file with its counters. A new thread enters the namespace; the
/// process stays.
fn within(path: &Path) -> io::Result<(File, File)> {
    let visit = || {
        let namespace = File::open(path)?;
        setns(&namespace, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| explained(&format!("cannot enter {}", path.display()))(errno.into()))?;
        Ok((tun::open(DEVICE)?, File::open("/proc/thread-self/net/dev")?))
    };
    thread::scope(|scope| scope.spawn(visit).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `ip` with these arguments.
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

/// Returns a function that puts `what` (the attempted action) before a system error's text.
pub(super) fn explained(what: &str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}
