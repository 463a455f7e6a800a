//! A port whose interface is a TAP device: each frame is one call.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use crate::iproute::explained;
use crate::tun;

/// Most frames that wait for a device that takes none at present.
const MOST_WAITING: usize = 1_024;
/// Longest frame.
const LONGEST: usize = 1 << 16;

/// A port.
#[derive(Debug)]
pub(super) struct Tap {
    file: File,
    buffer: Box<[u8]>,
    waiting: VecDeque<Vec<u8>>,
    /// Frames that the kernel refused.
    pub(super) refused: u64,
    has_arrived: bool,
}

impl Tap {
    /// Makes the device, or takes the persistent one of this name, in this thread's network namespace.
    ///
    /// # Errors
    /// Returns the system's error, for example without permission.
    pub(super) fn open(name: &str) -> io::Result<Self> {
        let file = tun::open(name, libc::IFF_TAP | libc::IFF_NO_PI)?;
        let buffer = vec![0; LONGEST].into_boxed_slice();
        Ok(Self { file, buffer, waiting: VecDeque::new(), refused: 0, has_arrived: true })
    }

    /// Calls `take` for frames that have arrived, for `most` at most. Returns their number.
    ///
    /// # Errors
    /// Returns the system's error, for example if the device is gone.
    pub(super) fn receive(&mut self, most: u32, mut take: impl FnMut(&[u8])) -> io::Result<u32> {
        for count in 0..most {
            match self.file.read(&mut self.buffer) {
                Ok(length) => take(&self.buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.has_arrived = false;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The device exists and is down.
                Err(error) if error.raw_os_error() == Some(libc::EIO) => return Ok(count),
                Err(error) => return Err(explained("cannot read from a device")(error)),
            }
        }
        Ok(most)
    }

    /// Gives the host a frame; returns whether it or the queue before it has taken the frame.
    pub(super) fn send(&mut self, frame: &[u8]) -> bool {
        if self.waiting.is_empty() {
            match self.file.write(frame) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
        }
        let has_room = self.waiting.len() < MOST_WAITING;
        if has_room {
            self.waiting.push_back(frame.to_vec());
        }
        has_room
    }

    /// Gives the host what waits. Returns whether anything is left.
    pub(super) fn flush(&mut self) -> bool {
        while let Some(frame) = self.waiting.front() {
            match self.file.write(frame) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                outcome => {
                    self.refused += u64::from(outcome.is_err());
                    self.waiting.pop_front();
                }
            }
        }
        false
    }

    /// Returns whether frames may have arrived.
    pub(super) fn has_arrived(&self) -> bool {
        self.has_arrived
    }

    /// Records that the device can be read.
    pub(super) fn note_arrival(&mut self) {
        self.has_arrived = true;
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
