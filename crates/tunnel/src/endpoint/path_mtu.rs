//! The size of datagrams that the way to a peer takes: packetization layer path MTU discovery (RFC 8899).
//!
//! ```text
//!            confirmed                        three probes lost
//!   Base ──────────────> Complete ─────────────────────────────┐ although the peer answers
//!     │                     ^  └── a probe each CONFIRM         v
//!     └── lost ──> Search ──┘ bounds have met  <──────────── Search: halves the interval
//! ```
//!
//! Datagrams begin with the size that the settings name. A path that loses large datagrams alone is found out by probes
//! of that size, and its size by bisection between [`BASE`] and what was lost. Data of the old size that is under way
//! is given up then: its sender inside sends it again.

use selvedge_units::{Duration, Instant};

/// Bytes of a UDP payload that every path is taken to carry: what IPv6 guarantees.
const BASE: u16 = 1_232;
/// Time after which a probe without an answer is lost.
const PATIENCE: Duration = Duration::from_ms(300);
/// Losses in a row after which a size is too large (`MAX_PROBES` of RFC 8899).
const TRIES: u8 = 3;
/// Interval of probes that confirm the present size, while there is traffic.
const CONFIRM: Duration = Duration::from_ms(15_000);
/// Interval of attempts at a greater size (`PMTU_RAISE_TIMER` of RFC 8899).
const RAISE: Duration = Duration::from_ms(600_000);
/// Difference of sizes that is not worth another probe.
const PRECISION: u16 = 16;

/// Discovery of one peer's path MTU, as bytes of UDP payload.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    /// Size that data use.
    size: u16,
    /// Size that the settings name.
    most: u16,
    /// Smallest size known to be lost, while searching.
    lost: Option<u16>,
    probe: Option<Probe>,
    /// Time of the next probe.
    due: Instant,
    /// Time of the next attempt at a greater size.
    raise: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    token: u32,
    size: u16,
    tries: u8,
}

/// Result of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// The size of data stays.
    None,
    /// Data must be no longer than before: datagrams of the old size do not arrive.
    Smaller,
    /// Data may be longer.
    Larger,
}

impl PathMtu {
    pub(super) fn new(most: u16) -> Self {
        Self { size: most, most, lost: None, probe: None, due: Instant::ZERO, raise: Instant::NEVER }
    }

    /// Returns the bytes of the longest UDP payload for data.
    pub(super) fn size(&self) -> u16 {
        self.size
    }
    /// Returns the time at which [`PathMtu::poll`] is due, provided that there is traffic.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Returns token and size of the next probe, if one is due, and what its predecessor's loss means. `answers` tells
    /// whether the peer has answered anything since the last call: a dead peer says nothing about sizes.
    pub(super) fn poll(&mut self, now: Instant, token: u32, answers: bool) -> (Change, Option<(u32, u16)>) {
        if now < self.due {
            return (Change::None, None);
        }
        let mut change = Change::None;
        let size = match &mut self.probe {
            Some(_) if !answers => {
                self.probe = None;
                self.due = now + CONFIRM;
                return (Change::None, None);
            }
            Some(probe) if probe.tries < TRIES => {
                probe.tries += 1;
                probe.token = token;
                probe.size
            }
            Some(probe) => {
                let lost = probe.size;
                self.probe = None;
                if lost > BASE.min(self.most) {
                    self.lost = Some(lost);
                    if lost <= self.size {
                        self.size = BASE.min(self.most);
                        change = Change::Smaller;
                    }
                }
                let Some(size) = self.next_size(now) else { return (change, None) };
                size
            }
            None => {
                if now >= self.raise {
                    self.lost = None;
                    self.raise = Instant::NEVER;
                }
                let Some(size) = self.next_size(now) else { return (change, None) };
                size
            }
        };
        let tries = self.probe.map_or(1, |probe| probe.tries);
        self.probe = Some(Probe { token, size, tries });
        self.due = now + PATIENCE;
        (change, Some((token, size)))
    }

    /// Returns the size of the next probe; `None` if the search has ended.
    fn next_size(&mut self, now: Instant) -> Option<u16> {
        match self.lost {
            None => Some(self.most),
            Some(lost) if lost - self.size > PRECISION => Some(self.size + (lost - self.size) / 2),
            Some(_) if self.raise == Instant::NEVER => {
                (self.raise, self.due) = (now + RAISE, now + CONFIRM);
                None
            }
            Some(_) => Some(self.size),
        }
    }

    /// Handles the answer to a probe: `size` bytes of UDP payload have arrived.
    pub(super) fn on_answer(&mut self, now: Instant, token: u32, size: u16) -> Change {
        let Some(probe) = self.probe.filter(|probe| probe.token == token && probe.size == size) else {
            return Change::None;
        };
        self.probe = None;
        self.due = if self.lost.is_some_and(|lost| lost - probe.size.max(self.size) > PRECISION) {
            now
        } else {
            now + CONFIRM
        };
        if self.lost.is_some() && self.raise == Instant::NEVER && self.due > now {
            self.raise = now + RAISE;
        }
        if probe.size > self.size {
            self.size = probe.size;
            return Change::Larger;
        }
        Change::None
    }

    /// Moves the origin of time by `by`.
    pub(super) fn rebase(&mut self, by: Duration) {
        for at in [&mut self.due, &mut self.raise] {
            super::rebase(at, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes over a path that takes `limit` bytes for `seconds`; returns the size in the end, and the probes sent.
    fn discover(mtu: &mut PathMtu, start: Instant, limit: u16, seconds: u64, answers: bool) -> (u16, u32) {
        let (mut now, end, mut probes) = (start, start + Duration::from_ms(1_000 * seconds), 0);
        while now < end {
            let (_, probe) = mtu.poll(now, probes, answers);
            if let Some((token, size)) = probe {
                probes += 1;
                if size <= limit {
                    mtu.on_answer(now, token, size);
                }
            }
            now = mtu.due().max(now + Duration::from_ms(1));
        }
        (mtu.size(), probes)
    }

    #[test]
    fn a_path_that_carries_all_is_confirmed_now_and_then() {
        let mut mtu = PathMtu::new(1_472);
        assert_eq!(discover(&mut mtu, Instant::ZERO, 9_000, 60, true), (1_472, 4));
    }

    #[test]
    fn a_black_hole_is_found_and_measured() {
        let mut mtu = PathMtu::new(8_972);
        let (size, _) = discover(&mut mtu, Instant::ZERO, 4_000, 60, true);
        assert!((4_000 - PRECISION..=4_000).contains(&size), "{size}");
        // The path loses more from now on, and later nothing.
        let later = Instant::ZERO + Duration::from_ms(60_000);
        let (size, _) = discover(&mut mtu, later, 1_400, 120, true);
        assert!((1_400 - PRECISION..=1_400).contains(&size), "{size}");
        assert_eq!(discover(&mut mtu, later + Duration::from_ms(120_000), 9_000, 1_300, true).0, 8_972);
    }

    #[test]
    fn a_dead_peer_tells_nothing() {
        let mut mtu = PathMtu::new(1_472);
        assert_eq!(discover(&mut mtu, Instant::ZERO, 0, 60, false).0, 1_472);
    }

    #[test]
    fn small_paths_are_not_searched_below_what_every_path_carries() {
        let mut mtu = PathMtu::new(1_472);
        assert_eq!(discover(&mut mtu, Instant::ZERO, 500, 60, true).0, BASE);
        let mut small = PathMtu::new(600);
        assert_eq!(discover(&mut small, Instant::ZERO, 500, 60, true).0, 600);
    }
}
