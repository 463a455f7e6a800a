//! Pair of network namespaces with a veth pair between them, which can lose packets.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Result, bail};

use crate::command::{output, quiet, text_of};

/// Address of the first end.
pub(crate) const SERVER: &str = "10.81.0.1";
/// Address of the second end.
pub(crate) const CLIENT: &str = "10.81.0.2";

/// Maximum number of checks for an expected event: each check runs a program or two, which takes milliseconds.
const LOOKS: usize = 2_000;

/// Pair of namespaces, removed when the value is dropped.
pub(crate) struct Link {
    names: [String; 2],
}

impl Link {
    pub(crate) fn new() -> Result<Self> {
        let this = Self { names: ["a", "b"].map(|end| format!("sv-bench-{}-{end}", std::process::id())) };
        let [a, b] = &this.names;
        for name in [a, b] {
            quiet(Command::new("ip").args(["netns", "add", name]))?;
        }
        let pair = ["-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b];
        quiet(Command::new("ip").args(pair))?;
        for (name, address) in [(a, "10.81.0.1/24"), (b, "10.81.0.2/24")] {
            quiet(Command::new("ip").args(["-n", name, "address", "add", address, "dev", "eth0"]))?;
            quiet(Command::new("ip").args(["-n", name, "link", "set", "eth0", "up"]))?;
            quiet(Command::new("ip").args(["-n", name, "link", "set", "lo", "up"]))?;
        }
        for end in 0..2 {
            this.wait(|| output(this.within(end, "cat").arg("/sys/class/net/eth0/operstate")), "up\n")?;
        }
        Ok(this)
    }

    /// Returns the names of the namespaces.
    pub(crate) fn names(&self) -> &[String; 2] {
        &self.names
    }

    /// Returns a command that runs `program` at one end.
    pub(crate) fn within(&self, end: usize, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end]]).arg(program.as_ref());
        command
    }

    /// Starts a server at the first end, and waits until its TCP port listens.
    pub(crate) fn serve(&self, command: &mut Command, port: u16) -> Result<Server> {
        let mut server = Server(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let sockets = || output(self.within(0, "cat").args(["/proc/net/tcp", "/proc/net/tcp6"]));
        let mut listens = || {
            if let Some(status) = server.0.try_wait()? {
                bail!("`{}` ended at once ({status}): is it installed?", text_of(command));
            }
            let is_it = |line: &str| line.contains(&format!(":{port:04X} ")) && line.contains(" 0A ");
            Ok(sockets()?.lines().any(is_it).to_string())
        };
        self.wait(&mut listens, "true")?;
        Ok(server)
    }

    /// Drops `percent` % of the packets of RoCE, at both ends.
    pub(crate) fn lose(&self, percent: u64) -> Result<()> {
        for end in 0..2 {
            quiet(self.within(end, "nft").args(["flush", "ruleset"]))?;
            if percent > 0 {
                let rules = format!(
                    "add table inet sv; add chain inet sv in {{ type filter hook prerouting priority -300; }}; \
                     add rule inet sv in udp dport 4791-4854 numgen random mod 100 < {percent} drop"
                );
                quiet(self.within(end, "nft").arg(rules))?;
            }
        }
        Ok(())
    }

    /// Turns the offloads that cut and join packets (TSO, GSO, GRO, UDP segmentation) on or off, at both ends.
    pub(crate) fn segments(&self, on: bool) -> Result<()> {
        let state = if on { "on" } else { "off" };
        for end in 0..2 {
            let features = ["tso", "gso", "gro", "tx-udp-segmentation"].iter().flat_map(|feature| [feature, state]);
            quiet(self.within(end, "ethtool").args(["-K", "eth0"]).args(features))?;
        }
        Ok(())
    }

    fn wait(&self, mut look: impl FnMut() -> Result<String>, wanted: &str) -> Result<()> {
        for _ in 0..LOOKS {
            if look()? == wanted {
                return Ok(());
            }
        }
        bail!("nothing happens")
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).stderr(Stdio::null()).status();
        }
    }
}

/// Program that is ended when the value is dropped, if it is still running.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
