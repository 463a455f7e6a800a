//! Programs of this host that send native messages: a socket on which they come, and for each the rings that it shares
//! with the daemon ([`selvedge_native::daemon`]).

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use selvedge_native::daemon::{Client, Given, Over, Question, Request, Wanted, prefix_words, reach_words};
use selvedge_native::{Notice, Outcome, Prefix, Reach, native_socket};
use selvedge_tunnel::config::Config;
use selvedge_tunnel::endpoint::{self, Endpoint, PortId, SendError, Sending};
use selvedge_units::{Duration, Instant};

use super::error::EqdsError;

/// Most programs, or sockets of one: each takes 4 MB of memory and six files.
const MOST_PROGRAMS: usize = 128;
/// Most messages of one program between two other works, and bytes of them.
const MESSAGES: usize = 32;
const BYTES: usize = 1 << 20;
/// Most events of one look.
const EVENTS: usize = 32;
/// Event of the socket on which programs come; others are twice the program's place, and one more for its doorbell.
const LISTENER: u64 = u64::MAX;

/// All programs.
pub(super) struct Programs {
    path: PathBuf,
    listener: OwnedFd,
    epoll: OwnedFd,
    all: Vec<Option<Program>>,
    by_port: BTreeMap<PortId, usize>,
    /// Programs with a message that found no room, or with more messages than were taken in one turn.
    waiting: Vec<usize>,
    refused: u64,
}

struct Program {
    client: Client,
    port: Option<PortId>,
    /// The oldest message in its ring, copied, and its content.
    next: Option<Wanted>,
    content: Vec<u8>,
    is_waiting: bool,
}

impl Programs {
    /// Listens beside the control socket at `control`, which this daemon has. Only its owner can connect.
    pub(super) fn listen(control: &Path) -> Result<Self, EqdsError> {
        let path = native_socket(control);
        let name = path.display();
        match fs::symlink_metadata(&path) {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                return Err(EqdsError::input(format!("{name} is a file, not a socket; choose another --socket")));
            }
            // Left by a daemon that was killed: the control socket is ours.
            Ok(_) => fs::remove_file(&path).map_err(EqdsError::system(&format!("cannot remove {name}")))?,
            Err(_) => {}
        }
        let unable = |errno: Errno| {
            EqdsError::input(format!("cannot make the socket {name}: {errno}; --socket PATH chooses another"))
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let listener = listener.map_err(unable)?;
        // Linux gives the file the mode of the socket.
        rustix::fs::fchmod(&listener, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).map_err(unable)?;
        rustix::net::bind(&listener, &SocketAddrUnix::new(&path).map_err(unable)?).map_err(unable)?;
        rustix::net::listen(&listener, 16).map_err(unable)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(unable)?;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN).map_err(unable)?;
        let (all, by_port, waiting) = (Vec::new(), BTreeMap::new(), Vec::new());
        Ok(Self { path, listener, epoll, all, by_port, waiting, refused: 0 })
    }

    /// Returns what is readable when a program wants something.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
    /// Returns the number of programs.
    pub(super) fn count(&self) -> usize {
        self.all.iter().flatten().count()
    }
    /// Returns the number of programs that were sent away: there were too many, or they broke the rules.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Does what programs want; returns whether there may be more.
    pub(super) fn serve(&mut self, now: Instant, endpoint: &mut Endpoint, config: &Config) -> bool {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; EVENTS];
        let timeout = rustix::event::Timespec::default();
        let Ok(count) = epoll::wait(&self.epoll, &mut events[..], Some(&timeout)) else { return false };
        for event in &events[..count] {
            match event.data.u64() {
                LISTENER => self.accept(),
                number => {
                    let at = (number / 2) as usize;
                    let done = if number % 2 == 0 {
                        self.obey(now, endpoint, config, at)
                    } else {
                        self.pump(now, endpoint, at)
                    };
                    if done.is_err() {
                        self.remove(endpoint, at);
                    }
                }
            }
        }
        count == EVENTS
    }

    /// Carries messages and notices to programs, and tries again what has found no room; returns whether the endpoint
    /// has got something.
    pub(super) fn carry(&mut self, now: Instant, endpoint: &mut Endpoint) -> bool {
        while let Some(port) = endpoint.poll_port() {
            let Some(at) = self.by_port.get(&port).copied() else { continue };
            if self.deliver(endpoint, at).is_err() {
                self.remove(endpoint, at);
            }
        }
        let mut has_sent = false;
        for at in std::mem::take(&mut self.waiting) {
            let Some(program) = self.all[at].as_mut() else { continue };
            program.is_waiting = false;
            match self.send(now, endpoint, at) {
                Ok(sent) => has_sent |= sent,
                Err(Over) => self.remove(endpoint, at),
            }
        }
        has_sent
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(connection) = rustix::net::accept_with(&self.listener, flags) {
            if self.count() >= MOST_PROGRAMS {
                self.refused += 1;
                continue;
            }
            let at = self.all.iter().position(Option::is_none).unwrap_or(self.all.len());
            let data = epoll::EventData::new_u64(2 * at as u64);
            if epoll::add(&self.epoll, &connection, data, epoll::EventFlags::IN).is_err() {
                self.refused += 1;
                continue;
            }
            let client = Client::new(connection);
            let program = Program { client, port: None, next: None, content: Vec::new(), is_waiting: false };
            if at == self.all.len() {
                self.all.push(None);
            }
            self.all[at] = Some(program);
        }
    }

    fn remove(&mut self, endpoint: &mut Endpoint, at: usize) {
        let Some(program) = self.all[at].take() else { return };
        let _ = epoll::delete(&self.epoll, program.client.connection());
        if let Some(doorbell) = program.client.doorbell() {
            // The program has this file, too: closing it here ends no watch.
            let _ = epoll::delete(&self.epoll, doorbell);
        }
        if let Some(port) = program.port {
            self.by_port.remove(&port);
            endpoint.close_port(port);
        }
    }

    /// Answers what a program asks.
    fn obey(&mut self, now: Instant, endpoint: &mut Endpoint, config: &Config, at: usize) -> Result<(), Over> {
        let Some(program) = self.all[at].as_mut() else { return Ok(()) };
        let had_doorbell = program.client.doorbell().is_some();
        let request = program.client.request()?;
        if !had_doorbell && let Some(doorbell) = program.client.doorbell() {
            let data = epoll::EventData::new_u64(2 * at as u64 + 1);
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&self.epoll, doorbell, data, flags).map_err(|_| Over)?;
        }
        let Some(request) = request else { return Ok(()) };
        let Request { question, .. } = request;
        match question {
            Question::Bind(..) if program.port.is_some() => program.client.refuse(&request, Errno::INVAL),
            Question::Bind(number, remote) => match endpoint.open_port(number, remote) {
                Ok(port) => {
                    program.port = Some(port);
                    self.by_port.insert(port, at);
                    let number = endpoint.port_number(port).unwrap_or(number);
                    program.client.answer(&request, &[number.into()])
                }
                Err(endpoint::PortTaken) => program.client.refuse(&request, Errno::ADDRINUSE),
            },
            Question::Connect(remote) => match program.port.map(|port| endpoint.connect_port(port, remote)) {
                Some(Ok(())) => program.client.answer(&request, &[]),
                Some(Err(endpoint::PortTaken)) => program.client.refuse(&request, Errno::ADDRINUSE),
                None => program.client.refuse(&request, Errno::INVAL),
            },
            Question::Reach(address) => match endpoint.reach(now, address) {
                Some(found) => program.client.answer(&request, &reach_words(&reach(&found))),
                None => program.client.refuse(&request, Errno::HOSTUNREACH),
            },
            Question::Prefixes(from) => {
                let own = config.prefixes.iter().map(|prefix| (prefix, true));
                let peers = config.peers.iter().flat_map(|peer| &peer.prefixes).map(|prefix| (prefix, false));
                let all = own.chain(peers).skip(usize::try_from(from).unwrap_or(usize::MAX));
                let all = all.map(|(prefix, is_own)| Prefix { address: prefix.address, length: prefix.length, is_own });
                program.client.answer(&request, &prefix_words(all))
            }
        }
    }

    /// Does what a program rings for: messages to be sent, or room for those that it gets.
    fn pump(&mut self, now: Instant, endpoint: &mut Endpoint, at: usize) -> Result<(), Over> {
        self.deliver(endpoint, at)?;
        let Some(program) = self.all[at].as_mut() else { return Ok(()) };
        program.client.nudge();
        self.send(now, endpoint, at).map(drop)
    }

    /// Takes messages of a program; returns whether there were any.
    fn send(&mut self, now: Instant, endpoint: &mut Endpoint, at: usize) -> Result<bool, Over> {
        let Some(program) = self.all[at].as_mut() else { return Ok(false) };
        let Program { client, port: Some(port), next, content, is_waiting } = program else { return Ok(false) };
        let (mut bytes, mut has_sent) = (0, false);
        for _ in 0..MESSAGES {
            if next.is_none() {
                *next = client.wanted(content)?;
            }
            let Some(wanted) = next else { return Ok(has_sent) };
            let Wanted { source, destination, tag, wants_notice } = *wanted;
            let sending = Sending { source, destination, tag, wants_notice };
            let outcome = match endpoint.send_message(now, *port, &sending, [content, &[]]) {
                Ok(()) => None,
                Err(SendError::Full | SendError::Unread) => break,
                Err(SendError::NoRoute) => Some(Outcome::NoRoute),
                Err(SendError::WrongSource) => Some(Outcome::WrongSource),
                Err(SendError::TooLong | SendError::Closed) => return Err(Over),
            };
            if let Some(outcome) = outcome
                && client.tell(&Notice { tag, outcome, round_trip_ns: None })? == Given::Later
            {
                break;
            }
            client.taken();
            *next = None;
            has_sent = true;
            bytes += content.len();
            if bytes >= BYTES {
                break;
            }
        }
        // The message that waits was rung for, and will not be again.
        if !std::mem::replace(is_waiting, true) {
            self.waiting.push(at);
        }
        Ok(has_sent)
    }

    /// Gives a program what has come for it.
    fn deliver(&mut self, endpoint: &mut Endpoint, at: usize) -> Result<(), Over> {
        let Some(Program { client, port: Some(port), .. }) = self.all[at].as_mut() else { return Ok(()) };
        while let Some(message) = endpoint.poll_message(*port) {
            if client.give(message.source, message.destination, message.content())? == Given::Later {
                break;
            }
            endpoint.drop_message(*port);
        }
        while let Some(notice) = endpoint.poll_notice(*port) {
            if client.tell(&notice_of(notice))? == Given::Later {
                break;
            }
            endpoint.drop_notice(*port);
        }
        Ok(())
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn ns(duration: Duration) -> u64 {
    duration.as_ps() / 1_000
}

fn notice_of(notice: &endpoint::Notice) -> Notice {
    let outcome = match notice.outcome {
        endpoint::Outcome::Arrived => Outcome::Arrived,
        endpoint::Outcome::Sent => Outcome::Sent,
        endpoint::Outcome::NoListener => Outcome::NoListener,
        endpoint::Outcome::Full => Outcome::Full,
        endpoint::Outcome::Unreachable => Outcome::Unreachable,
        endpoint::Outcome::Lost => Outcome::Lost,
        endpoint::Outcome::Unsupported => Outcome::Unsupported,
    };
    Notice { tag: notice.tag, outcome, round_trip_ns: notice.round_trip.map(ns) }
}

fn reach(found: &endpoint::Reach) -> Reach {
    let tunnel = &found.tunnel;
    let trips = tunnel.round_trips.unwrap_or_default();
    Reach {
        waiting: tunnel.waiting,
        in_flight: tunnel.in_flight,
        credit: tunnel.credit.into(),
        pull_queue: u64::from(tunnel.awaited) * u64::from(found.quantum),
        busy_ns: ns(tunnel.pull_queue),
        rto_ns: ns(tunnel.rto),
        round_trips: trips.samples,
        latest_ns: ns(trips.latest),
        least_ns: ns(trips.least),
        smoothed_ns: ns(trips.smoothed),
    }
}
