//! The testbed: two namespaces, and the thread that carries packets between them.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;

use super::class::Class;
use super::counts::Counts;
use super::lane::Lane;
use super::namespace::{Namespace, QUEUE};
use super::pipe::Pipe;
use super::settings::Impairment;
use crate::clock::Clock;
use crate::iproute::explained;

/// Addresses of the two ends, with the lengths of their prefixes.
pub const ADDRESSES: [[&str; 2]; 2] = [["10.78.0.1/24", "fd78::1/64"], ["10.78.0.2/24", "fd78::2/64"]];

/// Packets that one direction takes before the other gets a turn.
const TURN: usize = 64;

/// Configuration of a testbed.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Names of the two namespaces.
    pub names: [String; 2],
    /// MTU of their devices, in bytes.
    pub mtu: u16,
    /// Impairments from the first namespace to the second, and back.
    pub impairments: [Impairment; 2],
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Two namespaces with a device between them. Dropping the value removes them.
#[derive(Debug)]
pub struct Testbed {
    namespaces: [Namespace; 2],
    relay: Option<JoinHandle<io::Result<[Pipe; 2]>>>,
    stop: Arc<Stop>,
}

/// The signal that ends the thread.
#[derive(Debug)]
struct Stop {
    wake: EventFd,
    is_wanted: AtomicBool,
}

/// Counters of a testbed's whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// Counters from the first namespace to the second, and back, indexed by the order of [`Class::ALL`].
    pub counts: [[Counts; Class::ALL.len()]; 2],
    /// Packets that the kernel dropped before each end because the device was too slow. These drops are not part of the
    /// configured impairments.
    pub overflowed: [u64; 2],
}

impl Testbed {
    /// Creates both namespaces and starts to carry packets.
    ///
    /// # Errors
    /// Returns an error without permission ([`acquire`](super::acquire)), without `ip` or /dev/net/tun, or when a name
    /// is taken.
    pub fn open(plan: &Plan) -> io::Result<Self> {
        for impairment in &plan.impairments {
            impairment.check().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        }
        let namespace = |end: usize| Namespace::new(&plan.names[end], ADDRESSES[end], plan.mtu);
        let namespaces = [namespace(0)?, namespace(1)?];
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let stop = Arc::new(Stop { wake, is_wanted: AtomicBool::new(false) });
        let pipe = |end: usize| Pipe::new(Lane::new(&plan.impairments[end], plan.seed, end as u64));
        let relay = Relay {
            devices: [namespaces[0].device.try_clone()?, namespaces[1].device.try_clone()?],
            pipes: [pipe(0), pipe(1)],
            clock: Clock::start(),
            stop: Arc::clone(&stop),
        };
        let relay = thread::Builder::new().name("selvedge-impair".to_owned()).spawn(|| relay.run())?;
        Ok(Self { namespaces, relay: Some(relay), stop })
    }

    /// Ends the testbed and returns its counters.
    ///
    /// # Errors
    /// Returns an error when a device has failed.
    pub fn close(mut self) -> io::Result<Report> {
        let pipes = self.end().unwrap_or_else(|| Err(io::Error::other("it was closed before")))?;
        let [first, second] = &mut self.namespaces;
        let overflowed = [first.overflowed()?, second.overflowed()?];
        Ok(Report { counts: pipes.map(|pipe| *pipe.counts()), overflowed })
    }

    fn end(&mut self) -> Option<io::Result<[Pipe; 2]>> {
        self.stop.is_wanted.store(true, Ordering::Relaxed);
        let _ = self.stop.wake.write(1);
        let relay = self.relay.take()?;
        Some(relay.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// State of the thread that carries packets.
struct Relay {
    devices: [std::fs::File; 2],
    /// Pipes from each end to the other.
    pipes: [Pipe; 2],
    clock: Clock,
    stop: Arc<Stop>,
}

impl Relay {
    fn run(mut self) -> io::Result<[Pipe; 2]> {
        // With the default slack, the kernel adds 50 us to short waits.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut buffer = vec![0; 1 << 16];
        while !self.stop.is_wanted.load(Ordering::Relaxed) {
            let mut took = false;
            for end in 0..2 {
                took |= self.take(end, &mut buffer)?;
                self.give();
            }
            if !took {
                self.wait()?;
            }
        }
        // Packets sent before the end count too, and arrive unless their delay lasts longer.
        for end in 0..2 {
            let mut turns = QUEUE.div_ceil(TURN);
            while turns > 0 && self.take(end, &mut buffer)? {
                turns -= 1;
                self.give();
            }
        }
        Ok(self.pipes)
    }

    /// Takes packets that an end has sent; returns whether there were any.
    fn take(&mut self, end: usize, buffer: &mut [u8]) -> io::Result<bool> {
        for taken in 0..TURN {
            match self.devices[end].read(buffer) {
                Ok(length) => self.pipes[end].handle_packet(self.clock.now(), &buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken > 0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(explained("cannot read from a device")(error)),
            }
        }
        Ok(true)
    }

    /// Delivers what has arrived.
    fn give(&mut self) {
        let Self { devices, pipes, clock, .. } = self;
        let now = clock.now();
        for (end, pipe) in pipes.iter_mut().enumerate() {
            pipe.deliver(now, |packet| devices[1 - end].write(packet).is_ok());
        }
    }

    fn wait(&self) -> io::Result<()> {
        let most =
            self.pipes.iter().filter_map(Pipe::poll_timeout).min().map(|at| TimeSpec::from(self.clock.until(at)));
        let [first, second] = &self.devices;
        let mut waits =
            [self.stop.wake.as_fd(), first.as_fd(), second.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut waits, most, None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
