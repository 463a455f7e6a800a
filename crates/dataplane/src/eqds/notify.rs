//! Messages to systemd (`sd_notify`, `Type=notify-reload`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::time::{ClockId, clock_gettime};
use selvedge_units::Duration;

/// The way to the service manager, if one started this process.
pub(super) struct Notify {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// Finds the service manager in the environment.
    pub(super) fn from_environment() -> Self {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_for_others = number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|us| *us > 0 && !is_for_others);
        // Twice per time-out, as sd_watchdog_enabled(3) recommends.
        Self { socket: connect(), watchdog: watchdog.map(|us| Duration::from_ns(us.saturating_mul(500))) }
    }
    /// Returns the time between two signs of life, if the manager wants any.
    pub(super) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Says that the daemon carries traffic; `status` is for people.
    pub(super) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={}", status.replace('\n', " ")));
    }
    /// Says that the settings are being read anew; [`Notify::ready`] ends that.
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from).unwrap_or_default();
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }
    /// Says that the daemon ends.
    pub(super) fn stopping(&self) {
        self.send("STOPPING=1");
    }
    /// Gives a sign of life.
    pub(super) fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, text: &str) {
        // A manager that does not listen is no reason to stop.
        let _ = self.socket.as_ref().map(|socket| socket.send(text.as_bytes()));
    }
}

fn connect() -> Option<UnixDatagram> {
    let path = std::env::var("NOTIFY_SOCKET").ok()?;
    let address = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name).ok()?,
        None => SocketAddr::from_pathname(&path).ok()?,
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect_addr(&address).ok()?;
    socket.set_nonblocking(true).ok()?;
    Some(socket)
}
