//! Network namespaces with one device, whose other end is here.

use std::fs::File;
use std::io;

use crate::netns::Netns;
use crate::tun;

/// Name of the network device in each namespace.
pub(super) const DEVICE: &str = "eth0";
/// Longest queue of packets before a device.
pub(super) const QUEUE: usize = 10_000;

/// A network namespace with one device. Dropping the value removes the namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    _netns: Netns,
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
        let netns = Netns::new(name)?;
        let (device, counters) =
            netns.visit(|| Ok((tun::open(DEVICE, tun::PLAIN)?, File::open("/proc/thread-self/net/dev")?)))?;
        set_up(&netns, addresses, mtu)?;
        Ok(Self { _netns: netns, device, counters })
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

fn set_up(netns: &Netns, addresses: [&str; 2], mtu: u16) -> io::Result<()> {
    // The queue before the device must not lose packets: such losses would not be counted.
    let (mtu, queue) = (mtu.to_string(), QUEUE.to_string());
    netns.ip(&["link", "set", DEVICE, "mtu", &mtu, "txqueuelen", &queue, "up"])?;
    for address in addresses {
        let outcome = netns.ip(&["address", "add", address, "dev", DEVICE]);
        // Some hosts have no IPv6.
        if !address.contains(':') {
            outcome?;
        }
    }
    netns.ip(&["link", "set", "lo", "up"])
}
