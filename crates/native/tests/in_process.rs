//! Sockets against a daemon of a few lines in this process, which carries messages from one program to another.
#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use selvedge_native::daemon::{Client, Given, Over, Question, prefix_words, reach_words};
use selvedge_native::{LONGEST_MESSAGE, Notice, Outcome, Prefix, Reach, Sending, Socket, native_socket};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 80, 1, 1));
const SECOND: Option<Duration> = Some(Duration::from_secs(5));

/// A daemon whose only host is its own.
struct Daemon {
    path: PathBuf,
    ends: Arc<AtomicBool>,
    /// Whether messages are left in the rings.
    sleeps: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Program {
    client: Client,
    port: u16,
}

impl Daemon {
    fn start(path: Option<PathBuf>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let path = path.unwrap_or_else(|| {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            std::env::temp_dir().join(format!("selvedge-native-{}-{number}", std::process::id()))
        });
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket");
        let _ = std::fs::remove_file(native_socket(&path));
        rustix::net::bind(&listener, &SocketAddrUnix::new(native_socket(&path)).expect("short")).expect("a free path");
        rustix::net::listen(&listener, 8).expect("a bound socket");
        let (ends, sleeps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (has_ended, is_asleep) = (Arc::clone(&ends), Arc::clone(&sleeps));
        let thread = std::thread::spawn(move || {
            let mut programs = Vec::new();
            while !has_ended.load(Ordering::Relaxed) {
                turn(&listener, &mut programs, is_asleep.load(Ordering::Relaxed));
            }
        });
        Self { path, ends, sleeps, thread: Some(thread) }
    }

    fn open(&self, port: u16) -> std::io::Result<Socket> {
        Socket::bind_at(&native_socket(&self.path), port, None)
    }

    fn end(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().expect("it runs").join().expect("the daemon survives its programs");
        let _ = std::fs::remove_file(native_socket(&self.path));
    }
}

/// Waits for a millisecond at most, and does what programs want.
fn turn(listener: &OwnedFd, programs: &mut Vec<Program>, is_asleep: bool) {
    let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
    fds.extend(programs.iter().map(|program| PollFd::from_borrowed_fd(program.client.connection(), PollFlags::IN)));
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 }));
    while let Ok(connection) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        programs.push(Program { client: Client::new(connection), port: 0 });
    }
    for at in 0..programs.len() {
        if serve(programs, at, is_asleep) == Err(Over) {
            programs.remove(at);
            return;
        }
    }
}

fn serve(programs: &mut [Program], at: usize, is_asleep: bool) -> Result<(), Over> {
    let taken: Vec<u16> = programs.iter().map(|program| program.port).collect();
    let Program { client, port } = &mut programs[at];
    if let Some(request) = client.request()? {
        match request.question {
            Question::Bind(wanted, _) if wanted > 0 && taken.contains(&wanted) => {
                client.refuse(&request, Errno::ADDRINUSE)?
            }
            Question::Bind(wanted, _) => {
                *port = if wanted == 0 { 40_000 + at as u16 } else { wanted };
                client.answer(&request, &[u64::from(*port)])?;
            }
            Question::Connect(_) => client.answer(&request, &[])?,
            Question::Reach(address) if address == HOST => {
                client.answer(&request, &reach_words(&Reach { waiting: 3, smoothed_ns: 7, ..Reach::default() }))?;
            }
            Question::Reach(_) => client.refuse(&request, Errno::HOSTUNREACH)?,
            Question::Prefixes(from) => {
                // More than one answer takes.
                let all = (from..500).map(|number| Prefix {
                    address: Ipv4Addr::from(0x0a50_0000 + (number as u32) * 256).into(),
                    length: 24,
                    is_own: number == 0,
                });
                client.answer(&request, &prefix_words(all))?;
            }
        }
    }
    if is_asleep {
        return Ok(());
    }
    let mut content = Vec::new();
    while let Some(wanted) = programs[at].client.wanted(&mut content)? {
        let source = SocketAddr::new(HOST, programs[at].port);
        let to = wanted.destination;
        let outcome = match programs.iter_mut().find(|program| program.port == to.port()) {
            None => Outcome::NoListener,
            Some(program) => match program.client.give(source, to, &content)? {
                Given::Yes => Outcome::Arrived,
                Given::Later => break,
            },
        };
        programs[at].client.taken();
        if wanted.wants_notice || !outcome.is_success() {
            programs[at].client.tell(&Notice { tag: wanted.tag, outcome, round_trip_ns: Some(1_000) })?;
        }
    }
    programs[at].client.nudge();
    Ok(())
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::new(HOST, port)
}

fn is_readable(socket: &Socket) -> bool {
    poll(&mut [PollFd::new(&socket.as_fd(), PollFlags::IN)], Some(&Timespec::default())).expect("a socket") > 0
}

#[test]
fn messages_notices_and_questions_go_there_and_back() {
    let mut daemon = Daemon::start(None);
    let (client, server) = (daemon.open(0).expect("a daemon"), daemon.open(7_000).expect("a daemon"));
    assert_eq!((client.port(), server.port()), (40_000, 7_000));
    assert_eq!(daemon.open(7_000).map(drop).unwrap_err().kind(), ErrorKind::AddrInUse);
    let mut buffer = vec![0; LONGEST_MESSAGE];
    for length in [0, 1, 7, 8, 9, 1_000, LONGEST_MESSAGE] {
        let message: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let sending = Sending { tag: length as u32, wants_notice: true, ..Sending::to(at(7_000)) };
        client.send(&message, &sending).expect("room");
        let received = server.recv(&mut buffer, SECOND).expect("a message");
        assert_eq!((received.length, received.source, received.destination), (length, at(40_000), at(7_000)));
        assert!(buffer[..length] == message);
        let notice = client.notice(SECOND).expect("a notice");
        assert_eq!((notice.tag, notice.outcome, notice.round_trip_ns), (length as u32, Outcome::Arrived, Some(1_000)));
    }
    client.send_to(b"?", at(9)).expect("room");
    assert_eq!(client.notice(SECOND).expect("failure is told").outcome, Outcome::NoListener);
    assert_eq!(client.send_to(&vec![0; LONGEST_MESSAGE + 1], at(7_000)).unwrap_err().raw_os_error(), Some(90));
    assert_eq!(client.reach(HOST).expect("a peer").smoothed_ns, 7);
    assert_eq!(client.reach(Ipv4Addr::LOCALHOST.into()).unwrap_err().kind(), ErrorKind::HostUnreachable);
    let prefixes = client.prefixes().expect("a daemon");
    assert_eq!((prefixes.len(), prefixes.iter().filter(|prefix| prefix.is_own).count()), (500, 1));
    daemon.end();
}

#[test]
fn a_file_is_readable_while_there_are_messages() {
    let mut daemon = Daemon::start(None);
    let (client, server) = (daemon.open(0).expect("a daemon"), daemon.open(7_000).expect("a daemon"));
    server.set_nonblocking(true);
    let mut buffer = [0; 8];
    for turn in 0..200 {
        // A message that is taken before the daemon has woken its reader leaves that wake-up behind: one for each
        // message at most.
        let mut looks = 0;
        while {
            assert_eq!(server.recv(&mut buffer, None).unwrap_err().kind(), ErrorKind::WouldBlock);
            is_readable(&server)
        } {
            looks += 1;
            assert!(looks <= 4, "turn {turn}");
        }
        for _ in 0..turn % 4 + 1 {
            client.send_to(b"hello", at(7_000)).expect("room");
        }
        for left in (0..turn % 4 + 1).rev() {
            assert_eq!(poll(&mut [PollFd::new(&server.as_fd(), PollFlags::IN)], None), Ok(1), "{left} are left");
            // What is looked at stays.
            while server.try_recv(&mut buffer, false).is_err() {}
            assert_eq!(server.recv_from(&mut buffer).expect("a message").0, 5);
        }
    }
    daemon.end();
}

#[test]
fn a_full_ring_makes_senders_wait_until_there_is_room() {
    let mut daemon = Daemon::start(None);
    let (client, server) = (daemon.open(0).expect("a daemon"), daemon.open(7_000).expect("a daemon"));
    daemon.sleeps.store(true, Ordering::Relaxed);
    // The second answer comes from a turn that has begun since.
    (0..2).for_each(|_| assert!(client.reach(HOST).is_ok()));
    let mut sent = 0_u32;
    while client.try_send([&[7; 50_000], &sent.to_ne_bytes()], &Sending::to(at(7_000))).is_ok() {
        sent += 1;
    }
    assert!((30..42).contains(&sent) && !client.has_room(50_004), "{sent} in 2 MB");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in sent..sent + 200 {
                client
                    .send(&[&[7; 50_000][..], &number.to_ne_bytes()].concat(), &Sending::to(at(7_000)))
                    .expect("room");
            }
        });
        daemon.sleeps.store(false, Ordering::Relaxed);
        let mut buffer = vec![0; 60_000];
        for number in 0..sent + 200 {
            let received = server.recv(&mut buffer, SECOND).expect("a message");
            assert_eq!((received.length, &buffer[50_000..50_004]), (50_004, &number.to_ne_bytes()[..]));
        }
    });
    daemon.end();
}

#[test]
fn the_end_of_a_daemon_is_seen_and_the_next_one_is_found() {
    let mut daemon = Daemon::start(None);
    let socket = daemon.open(7_000).expect("a daemon");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| socket.recv_from(&mut [0; 9]).unwrap_err().kind());
        daemon.end();
        assert_eq!(waiting.join().expect("the waiting thread"), ErrorKind::ConnectionAborted);
    });
    assert!(is_readable(&socket));
    assert_eq!(socket.try_notice().unwrap_err().kind(), ErrorKind::ConnectionAborted);
    assert_eq!(socket.reach(HOST).unwrap_err().kind(), ErrorKind::ConnectionAborted);
    let error = daemon.open(7_000).map(drop).unwrap_err();
    assert!(
        error.kind() == ErrorKind::NotFound && error.to_string().contains("`selvedge eqds up` starts one"),
        "{error}"
    );
    let mut next = Daemon::start(Some(daemon.path.clone()));
    let socket = next.open(7_000).expect("a daemon");
    socket.send_to(b"to myself", at(7_000)).expect("room");
    assert_eq!(socket.recv(&mut [0; 9], SECOND).expect("a message").length, 9);
    next.end();
}

#[test]
fn threads_share_a_socket() {
    const EACH: u32 = 2_000;
    let mut daemon = Daemon::start(None);
    let (client, server) = (daemon.open(0).expect("a daemon"), daemon.open(7_000).expect("a daemon"));
    let seen: Vec<AtomicU32> = (0..4 * EACH).map(|_| AtomicU32::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (client, server, seen) = (&client, &server, &seen);
            scope.spawn(move || {
                for number in thread * EACH..(thread + 1) * EACH {
                    client.send_to(&number.to_ne_bytes(), at(7_000)).expect("room");
                }
            });
            scope.spawn(move || {
                for _ in 0..EACH {
                    let mut number = [0; 4];
                    server.recv(&mut number, SECOND).expect("a message");
                    seen[u32::from_ne_bytes(number) as usize].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    daemon.end();
}
