//! The thread that carries frames between ports and engine.
//!
//! Each turn takes a batch from every port, lets the engine work, gives hosts what is due, and then makes one call for
//! each port that has something to send. Without work the thread looks around for a while before it sleeps until the
//! engine's deadline or a frame.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use selvedge_telemetry::PortRow;
use selvedge_units::{Duration, Instant};

use super::bridge::Bridge;
use super::counters::PortCounts;
use super::engine::Engine;
use super::ports::{Port, PortKind};
use crate::busy_poll::{BusyPoll, Seen};
use crate::clock::Clock;

/// Frames that a port may hand over before the others have a turn.
const BATCH: u32 = 64;
/// Time after which a port that took nothing is tried again.
const RETRY: Duration = Duration::from_us(50);
/// Turns in which frames that hosts have sent before the end are still taken.
const LAST_TURNS: usize = 64;

/// Request for samples of ports.
#[derive(Debug)]
pub struct Sampling {
    /// Time between two samples. A thread that is late takes one sample for several.
    pub every: Duration,
    /// Receiver of the rows of each sample, by port. One that has gone ends sampling.
    pub to: Sender<Vec<PortRow>>,
}

/// A running switch. Dropping the value ends it.
#[derive(Debug)]
pub struct Running<E> {
    thread: Option<JoinHandle<Ended<E>>>,
    stop: Arc<Stop>,
}

/// State of a thread that has ended.
type Ended<E> = io::Result<(Bridge<E>, Vec<Port>)>;

/// Counters of a switch that has ended.
#[derive(Debug)]
pub struct Outcome<E> {
    /// The engine, with its own counters.
    pub engine: E,
    /// Counters of each port.
    pub ports: Vec<PortCounts>,
}

/// The signal that ends the thread.
#[derive(Debug)]
struct Stop {
    wake: EventFd,
    is_wanted: AtomicBool,
}

impl<E: Engine + Send + 'static> Running<E> {
    /// Starts a thread that carries frames between ports and a bridge, and takes samples if asked to.
    ///
    /// # Errors
    /// Returns an error if the system gives no thread.
    ///
    /// # Panics
    /// If there are not as many ports as the bridge has.
    pub fn start(bridge: Bridge<E>, ports: Vec<Port>, sampling: Option<Sampling>) -> io::Result<Self> {
        assert_eq!(bridge.counts().len(), ports.len(), "ports of the bridge, and ports");
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let stop = Arc::new(Stop { wake, is_wanted: AtomicBool::new(false) });
        let is_left = vec![false; ports.len()];
        let clock = Clock::start();
        let samples = sampling.map(|sampling| Samples { next: clock.now() + sampling.every, sampling });
        let driver = Driver { bridge, ports, is_left, clock, samples, stop: Arc::clone(&stop) };
        let thread = thread::Builder::new().name("selvedge-switch".to_owned()).spawn(|| driver.run())?;
        Ok(Self { thread: Some(thread), stop })
    }

    /// Ends the switch and returns its counters. Frames that are under way are lost.
    ///
    /// # Errors
    /// Returns an error if a port has failed.
    pub fn close(mut self) -> io::Result<Outcome<E>> {
        let ended = self.end().unwrap_or_else(|| Err(io::Error::other("it was closed before")));
        let (mut bridge, mut ports) = ended?;
        for (number, port) in ports.iter_mut().enumerate() {
            let counts = bridge.counts_of(number);
            counts.overflowed += port.overflowed();
            counts.refused += port.refused();
        }
        let ports = bridge.counts().to_vec();
        Ok(Outcome { engine: bridge.engine, ports })
    }

    /// Returns whether the switch has ended by itself, because a port has failed.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl<E> Running<E> {
    fn end(&mut self) -> Option<Ended<E>> {
        self.stop.is_wanted.store(true, Ordering::Relaxed);
        let _ = self.stop.wake.write(1);
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl<E> Drop for Running<E> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// State of the thread.
struct Driver<E> {
    bridge: Bridge<E>,
    ports: Vec<Port>,
    /// Whether a port has frames left that its interface did not take.
    is_left: Vec<bool>,
    clock: Clock,
    samples: Option<Samples>,
    stop: Arc<Stop>,
}

/// State of sampling.
struct Samples {
    sampling: Sampling,
    /// Time of the next sample.
    next: Instant,
}

impl<E: Engine> Driver<E> {
    fn run(mut self) -> Ended<E> {
        // With the default slack, the kernel adds 50 us to short waits.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut busy = BusyPoll::default();
        // A TAP device tells by its file alone that it has frames.
        let has_files = self.ports.iter().any(|port| port.kind() == PortKind::Tap);
        while !self.stop.is_wanted.load(Ordering::Relaxed) {
            if self.turn()? {
                if has_files {
                    self.wait(Some(Duration::ZERO))?;
                }
                continue;
            }
            let due = self.due();
            let finds_work =
                !has_files && busy.finds_work(due.unwrap_or(Instant::NEVER), || self.clock.now(), || self.look());
            if !finds_work {
                self.wait(due.map(|at| at.since(self.clock.now())))?;
            }
        }
        for _ in 0..LAST_TURNS {
            if !self.turn()? {
                break;
            }
        }
        Ok((self.bridge, self.ports))
    }

    /// Takes and gives frames once; returns whether there were any.
    fn turn(&mut self) -> io::Result<bool> {
        let Self { bridge, ports, clock, .. } = self;
        let mut took = 0;
        let now = clock.now();
        for (number, port) in ports.iter_mut().enumerate() {
            if port.has_arrived() {
                took += port.receive(BATCH, |frame| bridge.handle_frame(now, number, frame))?;
            }
        }
        let now = if took > 0 { clock.now() } else { now };
        if bridge.poll_timeout().is_some_and(|at| at <= now) {
            bridge.handle_timeout(now);
        }
        self.sample(now);
        let Self { bridge, ports, .. } = self;
        let mut gave = false;
        while let Some(leaving) = bridge.poll_transmit(now) {
            let (port, bytes) = (leaving.port, leaving.frame.len() as u64);
            let is_taken = ports[port].send(leaving.frame);
            self.is_left[port] = true;
            let counts = bridge.counts_of(port);
            if is_taken {
                counts.sent += 1;
                counts.sent_bytes += bytes;
            } else {
                counts.refused += 1;
            }
            gave = true;
        }
        for (port, is_left) in ports.iter_mut().zip(&mut self.is_left).filter(|(_, is_left)| **is_left) {
            *is_left = port.flush()?;
        }
        Ok(took > 0 || gave)
    }

    /// Takes a sample if it is time.
    fn sample(&mut self, now: Instant) {
        let Some(samples) = self.samples.as_mut().filter(|samples| samples.next <= now) else { return };
        let mut rows = Vec::new();
        self.bridge.engine.sample(now, &mut rows);
        samples.next = now + samples.sampling.every;
        if samples.sampling.to.send(rows).is_err() {
            self.samples = None;
        }
    }

    /// Returns the time at which there is something to do even if no frame arrives.
    fn due(&self) -> Option<Instant> {
        let retry = self.is_left.contains(&true).then(|| self.clock.now() + RETRY);
        let sample = self.samples.as_ref().map(|samples| samples.next);
        [self.bridge.poll_timeout(), retry, sample].into_iter().flatten().min()
    }

    fn look(&self) -> Seen {
        let is_ended = self.stop.is_wanted.load(Ordering::Relaxed);
        if is_ended || self.ports.iter().any(Port::has_arrived) { Seen::Work } else { Seen::Nothing }
    }

    /// Waits for a frame, for `most` at most.
    fn wait(&mut self, most: Option<Duration>) -> io::Result<()> {
        let most = most.map(|most| TimeSpec::from(std::time::Duration::from_nanos(most.as_ps().div_ceil(1_000))));
        let mut files = Vec::with_capacity(1 + self.ports.len());
        files.push(PollFd::new(self.stop.wake.as_fd(), PollFlags::POLLIN));
        files.extend(self.ports.iter().map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN)));
        match ppoll(&mut files, most, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let told: Vec<PollFlags> = files[1..].iter().map(|file| file.revents().unwrap_or(PollFlags::POLLERR)).collect();
        for (port, told) in self.ports.iter_mut().zip(told).filter(|(_, told)| !told.is_empty()) {
            port.note_arrival();
            if told.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL) {
                port.check()?;
            }
        }
        Ok(())
    }
}
