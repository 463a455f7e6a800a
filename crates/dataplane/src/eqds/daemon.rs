//! The daemon's loop: it waits, carries packets and datagrams between device, engine and sockets, and obeys.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;

use selvedge_tunnel::config::Config;
use selvedge_tunnel::endpoint::{Endpoint, Transmit};
use selvedge_tunnel::{EpochFile, StoredEpochs};
use selvedge_units::{Duration, Instant};

use super::control::{Answer, Command, Control};
use super::device::{self, Device, Given};
use super::error::EqdsError;
use super::notify::Notify;
use super::programs::Programs;
use super::sockets::Sockets;
use super::status::DaemonStatus;
use crate::busy_poll::{BusyPoll, Seen};
use crate::clock::Clock;

/// Most receiving system calls per socket between two other works.
const RECEIVE_CALLS: usize = 2;
/// Most packets from inside between two other works, and bytes of them: reports that wait for long make round trips
/// long, and a tunnel has one window per round trip.
const INSIDE_PACKETS: usize = 32;
const INSIDE_BYTES: usize = 128 << 10;
/// Time until a failed write of the epochs is repeated.
const STORE_AGAIN: Duration = Duration::from_ms(1_000);
/// Longest time in which the last messages to peers leave.
const FAREWELL: time::Duration = time::Duration::from_millis(100);
/// Most addresses outside: one of each version of IP.
const RECEIVERS: usize = 2;
/// Place of the first of them among what the loop waits for.
const FIRST_RECEIVER: usize = 5;
/// Room for one call of [`Endpoint::poll_transmit`] in bytes; the buffer grows where that is too little.
const TRANSMIT: usize = 1 << 16;

/// Places of the daemon's files.
#[derive(Clone, Debug)]
pub struct Options {
    /// Settings, `eqds.toml`.
    pub config: PathBuf,
    /// Control socket.
    pub socket: PathBuf,
}

/// Runs the daemon until it is told to end, by a signal or `down`. `say` gets lines for people. Signals are blocked
/// from here on, in the calling thread; it must be the only one. Capabilities are kept: a reload needs CAP_NET_ADMIN.
///
/// # Errors
/// Returns an error if the daemon cannot start, and then nothing that it made is left; or if its device is gone.
pub fn run(options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), EqdsError> {
    let config = Config::read(&options.config).map_err(|error| EqdsError::input(error.to_string()))?;
    let mut daemon = Daemon::start(options, config, say)?;
    let outcome = daemon.turn_until_told();
    daemon.end();
    outcome
}

/// A running daemon.
struct Daemon<'a> {
    options: &'a Options,
    config: Config,
    say: &'a mut dyn FnMut(&str),
    clock: Clock,
    /// Seconds that had passed when the origin of time was moved.
    before_s: u64,
    endpoint: Endpoint,
    epochs: EpochFile,
    /// Epochs that are to be written again, because that failed; and when.
    unsaved: Option<(StoredEpochs, Instant)>,
    sockets: Sockets,
    device: Device,
    control: Control,
    programs: Programs,
    signals: SignalFd,
    notify: Notify,
    /// Time of the next sign of life.
    alive_at: Instant,
    busy_poll: BusyPoll,
    /// Datagrams in `outgoing` that a full socket left behind, and the number of bytes that have left.
    blocked: Option<(Transmit, usize)>,
    /// Whether the full socket has room again.
    has_room: bool,
    outgoing: Vec<u8>,
    incoming: Box<[u8]>,
    inside: Inside,
}

/// Packets at the device since the start.
#[derive(Clone, Copy, Default, Debug)]
struct Inside {
    taken: u64,
    given: u64,
    refused: u64,
}

/// Sources of work that are ready.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Ready {
    receivers: [bool; RECEIVERS],
    inside: bool,
    is_removed: bool,
    room: bool,
    signal: bool,
    control: bool,
    programs: bool,
}

/// Whether the loop goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Going {
    On,
    Down,
}

impl<'a> Daemon<'a> {
    fn start(options: &'a Options, config: Config, say: &'a mut dyn FnMut(&str)) -> Result<Self, EqdsError> {
        // The control socket is the lock: a second daemon ends here.
        let mut control = Control::bind(&options.socket)?;
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        let unable = |errno: nix::Error| EqdsError::failed(format!("cannot receive signals: {errno}"));
        signals.thread_block().map_err(unable)?;
        let signals = SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(unable)?;
        let sockets = Sockets::open(&config)?;
        let (epochs, stored) = epochs(&config.state)?;
        let mut seed = [0; 8];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| EqdsError::failed(format!("cannot get random numbers: {errno}")))?;
        let endpoint =
            Endpoint::new(config.clone(), stored.as_ref(), Clock::seconds_since_1970(), u64::from_ne_bytes(seed));
        let endpoint = endpoint.map_err(|error| EqdsError::failed(error.to_string()))?;
        let device = Device::open(&config)?;
        device.set_up(&config)?;
        let programs = Programs::listen(&options.socket)?;
        control.start()?;
        // With the default slack, the kernel adds 50 us to short waits.
        let _ = nix::sys::prctl::set_timerslack(1);
        let clock = Clock::start();
        let notify = Notify::from_environment();
        let alive_at = notify.watchdog().map_or(Instant::NEVER, |interval| clock.now() + interval);
        let mut daemon = Self {
            options,
            config,
            say,
            clock,
            before_s: 0,
            endpoint,
            epochs,
            unsaved: None,
            sockets,
            device,
            control,
            programs,
            signals,
            notify,
            alive_at,
            busy_poll: BusyPoll::default(),
            blocked: None,
            has_room: false,
            outgoing: Vec::with_capacity(TRANSMIT),
            incoming: vec![0; Endpoint::LONGEST_INSIDE].into(),
            inside: Inside::default(),
        };
        daemon.save_first()?;
        let text = daemon.summary();
        (daemon.say)(&format!("ready: {text}"));
        daemon.notify.ready(&text);
        Ok(daemon)
    }

    /// Writes the first epochs; later a disk that fails is no reason to stop.
    fn save_first(&mut self) -> Result<(), EqdsError> {
        let Some(epochs) = self.endpoint.poll_store() else { return Ok(()) };
        self.epochs.write(&epochs).map_err(|error| {
            let path = self.config.state.display();
            EqdsError::input(format!("cannot write {path}: {error}; `state` in the settings names another file"))
        })?;
        self.endpoint.stored();
        Ok(())
    }

    fn summary(&self) -> String {
        let peers = match self.config.peers.len() {
            1 => "1 peer".to_owned(),
            count => format!("{count} peers"),
        };
        let (device, mtu) = (self.device.name(), device::mtu(&self.config));
        format!("{} on {device}, MTU {mtu}, {peers}, UDP port {}", self.config.name, self.config.port)
    }

    fn turn_until_told(&mut self) -> Result<(), EqdsError> {
        let (mut more, mut worked) = (true, false);
        loop {
            let ready = self.wait(more, worked);
            if ready.is_removed {
                return Err(self.device.is_gone());
            }
            (more, worked) = (false, false);
            self.has_room |= ready.room;
            for index in (0..RECEIVERS).filter(|index| ready.receivers[*index]) {
                worked = true;
                more |= self.receive(index);
            }
            if ready.inside {
                worked = true;
                more |= self.take_from_inside()?;
            }
            let now = self.clock.now();
            if ready.programs {
                worked = true;
                more |= self.programs.serve(now, &mut self.endpoint, &self.config);
            }
            if self.endpoint.poll_timeout() <= now {
                self.endpoint.handle_timeout(now);
                worked = true;
            }
            self.flush();
            if self.programs.carry(now, &mut self.endpoint) {
                (more, worked) = (true, true);
                self.flush();
            }
            if now >= Instant::ZERO + Endpoint::REBASE_AFTER {
                self.rebase(now);
            }
            if self.alive_at <= now {
                self.notify.alive();
                self.alive_at = self.notify.watchdog().map_or(Instant::NEVER, |interval| now + interval);
            }
            if ready.signal || ready.control {
                if self.obey_signals() == Going::Down || self.obey_requests() == Going::Down {
                    return Ok(());
                }
                // A reload may have given the engine something to send.
                more = true;
            }
        }
    }

    /// Moves the origin of time to a second ago: instants end after 213 days.
    fn rebase(&mut self, now: Instant) {
        let by = now.since(Instant::ZERO) - Duration::from_ms(1_000);
        let moved = |at: Instant| {
            if at == Instant::NEVER { at } else { Instant::from_ps(at.as_ps().saturating_sub(by.as_ps())) }
        };
        self.clock.rebase(by);
        self.before_s += by.as_ps() / Duration::from_ms(1_000).as_ps();
        self.endpoint.rebase(by);
        self.alive_at = moved(self.alive_at);
        self.unsaved = self.unsaved.take().map(|(epochs, at)| (epochs, moved(at)));
        self.busy_poll = BusyPoll::default();
    }

    /// Waits until there is work: not at all if there is `more` already; after work, awake for a while.
    fn wait(&mut self, more: bool, worked: bool) -> Ready {
        if more {
            return self.look(Some(time::Duration::ZERO));
        }
        let retry = self.unsaved.as_ref().map_or(Instant::NEVER, |(_, at)| *at);
        let deadline = self.endpoint.poll_timeout().min(self.alive_at).min(retry);
        if worked {
            let (mut busy_poll, clock) = (std::mem::take(&mut self.busy_poll), self.clock);
            let mut ready = Ready::default();
            let look = || {
                ready = self.look(Some(time::Duration::ZERO));
                if ready != Ready::default() || deadline <= clock.now() { Seen::Work } else { Seen::Nothing }
            };
            let found = busy_poll.finds_work(Instant::NEVER, || clock.now(), look);
            self.busy_poll = busy_poll;
            if found {
                return ready;
            }
        }
        self.look((deadline < Instant::NEVER).then(|| self.clock.until(deadline)))
    }

    /// Returns what is ready, after `timeout` at most.
    fn look(&self, timeout: Option<time::Duration>) -> Ready {
        let nothing = PollFlags::empty();
        let take = if self.endpoint.is_full() { nothing } else { PollFlags::POLLIN };
        let mut fds: [PollFd<'_>; FIRST_RECEIVER + RECEIVERS] =
            std::array::from_fn(|_| PollFd::new(self.signals.as_fd(), PollFlags::POLLIN));
        fds[0] = PollFd::new(self.device.as_fd(), take);
        fds[2] = PollFd::new(self.control.as_fd(), PollFlags::POLLIN);
        let blocked = self.blocked.as_ref().and_then(|(transmit, _)| self.sockets.sender(transmit));
        if let Some(socket) = blocked {
            fds[3] = PollFd::new(socket, PollFlags::POLLOUT);
        }
        fds[4] = PollFd::new(self.programs.as_fd(), PollFlags::POLLIN);
        let mut receivers = 0;
        for (place, socket) in fds[FIRST_RECEIVER..].iter_mut().zip(self.sockets.receivers()) {
            *place = PollFd::new(socket, PollFlags::POLLIN);
            receivers += 1;
        }
        // A signal that is not for this loop interrupts the wait: the next turn waits again.
        if ppoll(&mut fds[..FIRST_RECEIVER + receivers], timeout.map(TimeSpec::from), None).is_err() {
            return Ready::default();
        }
        let has = |at: usize, flags: PollFlags| fds[at].revents().is_some_and(|seen| seen.intersects(flags));
        let any = PollFlags::all();
        Ready {
            receivers: std::array::from_fn(|index| index < receivers && has(FIRST_RECEIVER + index, any)),
            inside: has(0, PollFlags::POLLIN),
            is_removed: has(0, PollFlags::POLLERR | PollFlags::POLLNVAL),
            room: blocked.is_some() && has(3, any),
            signal: has(1, any),
            control: has(2, any),
            programs: has(4, any),
        }
    }

    /// Takes datagrams from a receiver; returns whether there may be more.
    fn receive(&mut self, index: usize) -> bool {
        for _ in 0..RECEIVE_CALLS {
            let now = self.clock.now();
            let (endpoint, sockets) = (&mut self.endpoint, &mut self.sockets);
            let more =
                sockets.receive(index, |source, ecn, datagram| endpoint.handle_datagram(now, source, ecn, datagram));
            self.flush();
            if !more {
                return false;
            }
        }
        true
    }

    /// Takes packets of this host; returns whether there may be more.
    fn take_from_inside(&mut self) -> Result<bool, EqdsError> {
        let mut bytes = 0;
        for _ in 0..INSIDE_PACKETS {
            if bytes >= INSIDE_BYTES {
                return Ok(true);
            }
            if self.endpoint.is_full() {
                return Ok(false);
            }
            let Some(length) = self.device.take(&mut self.incoming)? else { return Ok(false) };
            self.inside.taken += 1;
            bytes += length;
            self.endpoint.handle_inside(self.clock.now(), &mut self.incoming[..length]);
        }
        Ok(true)
    }

    /// Carries out what the engine has decided.
    fn flush(&mut self) {
        self.save();
        while let Some(packet) = self.endpoint.poll_inside() {
            match self.device.give(packet) {
                Given::Yes => self.inside.given += 1,
                Given::Refused => self.inside.refused += 1,
            }
        }
        if self.blocked.is_some() && !std::mem::take(&mut self.has_room) {
            return;
        }
        loop {
            let (transmit, from) = match self.blocked.take() {
                Some(rest) => rest,
                None => match self.endpoint.poll_transmit(self.clock.now(), &mut self.outgoing) {
                    Some(transmit) => (transmit, 0),
                    None => return,
                },
            };
            let at = self.sockets.send(&transmit, &self.outgoing, from);
            if at < self.outgoing.len() {
                self.blocked = Some((transmit, at));
                return;
            }
        }
    }

    /// Writes epochs that the engine wants on disk.
    fn save(&mut self) {
        let now = match &self.unsaved {
            Some((_, at)) => {
                let now = self.clock.now();
                if *at > now {
                    return;
                }
                now
            }
            None => Instant::ZERO,
        };
        let again = self.unsaved.take();
        let is_again = again.is_some();
        let Some(epochs) = self.endpoint.poll_store().or(again.map(|(epochs, _)| epochs)) else { return };
        match self.epochs.write(&epochs) {
            Ok(()) => self.endpoint.stored(),
            Err(error) => {
                if !is_again {
                    let path = self.config.state.display();
                    (self.say)(&format!("warning: cannot write {path}, trying again: {error}"));
                }
                let now = if is_again { now } else { self.clock.now() };
                self.unsaved = Some((epochs, now + STORE_AGAIN));
            }
        }
    }

    fn obey_signals(&mut self) -> Going {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if signal.ssi_signo != Signal::SIGHUP as u32 {
                return Going::Down;
            }
            match self.reload() {
                Ok(text) => (self.say)(&text),
                Err(text) => (self.say)(&format!("error: {text}")),
            }
        }
        Going::On
    }

    fn obey_requests(&mut self) -> Going {
        while let Some(request) = self.control.next() {
            match request.command {
                Command::Status => request.answer(Answer::Status(Box::new(self.status()))),
                Command::Reload => request.answer(match self.reload() {
                    Ok(text) => {
                        (self.say)(&text);
                        Answer::Done(text)
                    }
                    Err(text) => {
                        (self.say)(&format!("error: {text}"));
                        Answer::Error(text)
                    }
                }),
                Command::Down => {
                    request.answer(Answer::Done("down".to_owned()));
                    return Going::Down;
                }
            }
        }
        Going::On
    }

    /// Reads the settings anew; returns what is in force then. On an error the old ones stay.
    fn reload(&mut self) -> Result<String, String> {
        self.notify.reloading();
        let outcome = self.change();
        let text = self.summary();
        self.notify.ready(&text);
        outcome.map(|()| format!("reloaded: {text}"))
    }

    fn change(&mut self) -> Result<(), String> {
        let stays = "; the old settings stay";
        let new = Config::read(&self.options.config).map_err(|error| format!("{error}{stays}"))?;
        if let Some(key) = fixed(&self.config, &new) {
            return Err(format!(
                "{}: `{key}` has changed, which takes a new start (`selvedge eqds down`, then `up`){stays}",
                self.options.config.display()
            ));
        }
        self.device.change(&self.config, &new).map_err(|error| format!("{error}{stays}"))?;
        self.endpoint.reload(self.clock.now(), new.clone()).map_err(|error| error.to_string())?;
        self.config = new;
        Ok(())
    }

    fn status(&self) -> DaemonStatus {
        let now = self.clock.now();
        let counters = self.sockets.counters();
        let io = [
            ("inside-taken", self.inside.taken),
            ("inside-given", self.inside.given),
            ("inside-refused", self.inside.refused),
            ("datagrams-received", counters.received),
            ("datagrams-sent", counters.sent),
            ("datagrams-refused", counters.refused),
            ("receive-calls", counters.receive_calls),
            ("send-calls", counters.send_calls),
            ("send-blocked", counters.blocked),
            ("programs", self.programs.count() as u64),
            ("programs-refused", self.programs.refused()),
        ];
        let config = &self.config;
        DaemonStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: self.before_s + now.as_ps() / Duration::from_ms(1_000).as_ps(),
            device: self.device.name().to_owned(),
            mtu: device::mtu(config),
            inner_addresses: config.inner_addresses.iter().map(ToString::to_string).collect(),
            listens: config
                .addresses
                .iter()
                .map(|address| std::net::SocketAddr::new(*address, config.port).to_string())
                .collect(),
            paths: config.path_ports.clone().count() as u32,
            segments: self.sockets.segments() as u32,
            cuts_udp: self.device.cuts_udp(),
            io: io.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<BTreeMap<_, _>>(),
            last_refusal: counters.last_refusal.map(|errno| errno.desc().to_owned()),
            endpoint: self.endpoint.status(now),
        }
    }

    /// Tells the peers that the tunnels end.
    fn end(&mut self) {
        self.notify.stopping();
        self.endpoint.close(self.clock.now());
        let until = self.clock.now() + Duration::from_ns(FAREWELL.as_nanos() as u64);
        self.flush();
        while self.blocked.is_some() && self.clock.now() < until {
            self.has_room = self.look(Some(self.clock.until(until))).room;
            self.flush();
        }
    }
}

/// Opens the file of epochs; returns its content, too.
fn epochs(path: &Path) -> Result<(EpochFile, Option<StoredEpochs>), EqdsError> {
    let unable = |what: &str, error: std::io::Error| {
        let path = path.display();
        EqdsError::input(format!("cannot {what} {path}: {error}; `state` in the settings names another file"))
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(|error| unable("make the folder of", error))?;
    }
    let file = EpochFile::new(path);
    let stored = file.read().map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => EqdsError::input(error.to_string()),
        _ => unable("read", error),
    })?;
    Ok((file, stored))
}

/// Returns a key whose value cannot change while the daemon runs, but has.
fn fixed(old: &Config, new: &Config) -> Option<&'static str> {
    let keys = [
        ("name", old.name != new.name),
        ("addresses", old.addresses != new.addresses),
        ("port", old.port != new.port),
        ("first-path-port` or `paths", old.path_ports != new.path_ports),
        ("prefixes", old.prefixes != new.prefixes),
        ("device", old.device != new.device),
        ("state", old.state != new.state),
    ];
    keys.into_iter().find_map(|(key, has_changed)| has_changed.then_some(key))
}
