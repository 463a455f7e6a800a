//! Virtual machine that runs Linux's soft RoCE, and the network namespace that is its only neighbour.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::image::Image;
use crate::command::quiet;
use crate::workspace::root;

/// Address of the guest.
pub(super) const ADDRESS: &str = "10.77.0.2";
/// Address of the host's side.
pub(super) const OURS: &str = "10.77.0.1";
/// Device that leads to the guest.
pub(super) const DEVICE: &str = "svtap";
/// Timeout of booting in seconds, longer than needed even on a busy machine.
const PATIENCE_S: u64 = 180;
/// Number of attempts to connect to the guest: it listens again a moment after it has listened.
const ATTEMPTS: u32 = 50;

/// Virtual machine, ended when the value is dropped.
pub(super) struct Guest {
    namespace: String,
    log: PathBuf,
    machine: Option<Child>,
    capture: Option<Child>,
}

impl Guest {
    pub(super) fn boot(image: &Image, capture: Option<&Path>) -> Result<Self> {
        let namespace = format!("selvedge-rxe-{}", std::process::id());
        let log = root().join("target/soft-roce/guest.log");
        let mut guest = Self { namespace, log, machine: None, capture: None };
        quiet(Command::new("ip").args(["netns", "add", &guest.namespace]))?;
        for step in [
            "link set lo up",
            &format!("tuntap add dev {DEVICE} mode tap"),
            &format!("address add {OURS}/24 dev {DEVICE}"),
            &format!("link set {DEVICE} up"),
        ] {
            quiet(Command::new("ip").args(["-n", &guest.namespace]).args(step.split(' ')))?;
        }
        if let Some(file) = capture {
            let mut tshark = guest.within("tshark");
            tshark.args(["-q", "-i", DEVICE, "-f", "udp", "-w"]).arg(file);
            guest.capture = Some(tshark.stderr(Stdio::null()).spawn().context("cannot run tshark")?);
        }
        let mut qemu = guest.within("qemu-system-x86_64");
        qemu.args(["-accel", "tcg", "-m", "512", "-nographic", "-no-reboot"]);
        qemu.arg("-kernel").arg(&image.kernel).arg("-initrd").arg(&image.initial);
        qemu.args(["-append", "console=ttyS0 quiet panic=-1"]);
        qemu.args(["-netdev", &format!("tap,id=net,ifname={DEVICE},script=no,downscript=no")]);
        qemu.args(["-device", "virtio-net-pci,netdev=net,mac=52:54:00:00:77:02"]);
        qemu.stdin(Stdio::null()).stdout(File::create(&guest.log)?).stderr(Stdio::inherit());
        guest.machine = Some(qemu.spawn().context("cannot run qemu-system-x86_64")?);
        guest.wait()?;
        Ok(guest)
    }

    fn wait(&self) -> Result<()> {
        for _ in 0..PATIENCE_S {
            pause(Duration::from_secs(1));
            if std::fs::read(&self.log)?.windows(11).any(|words| words == b"GUEST-READY") {
                return Ok(());
            }
        }
        bail!("the guest does not come up: see {}", self.log.display())
    }

    /// Returns a command that runs `program` beside the guest.
    pub(super) fn within(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command
    }

    /// Lets the guest's shell run `script`; returns what it prints.
    pub(super) fn shell(&self, script: &str) -> Result<String> {
        for _ in 0..ATTEMPTS {
            let mut netcat = self.within("timeout");
            netcat.args(["60", "busybox", "nc", ADDRESS, "9999"]);
            netcat.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut netcat = netcat.spawn().context("cannot talk to the guest")?;
            // The guest may not be listening yet.
            let _ = writeln!(netcat.stdin.take().context("it is a pipe")?, "{script}\nexit");
            let said = netcat.wait_with_output()?;
            if said.status.success() {
                return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
            }
            pause(Duration::from_millis(100));
        }
        bail!("the guest does not answer")
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        for child in [&mut self.capture, &mut self.machine].into_iter().flatten() {
            // `ip netns exec` replaces itself by the program, so that this is the program's process.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = Command::new("ip").args(["netns", "delete", &self.namespace]).stderr(Stdio::null()).status();
    }
}

/// Sleeps for `time`.
#[expect(clippy::disallowed_methods, reason = "another machine tells nobody when it is ready")]
pub(super) fn pause(time: Duration) {
    std::thread::sleep(time);
}
