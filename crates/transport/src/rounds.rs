//! Snapshot tables of congestion control: the state after each signal of a script, compared with a committed table.
//!
//! `cargo xtask bless` writes the tables anew.

extern crate std;

use alloc::format;
use alloc::string::String;

use expect_test::ExpectFile;
use selvedge_units::{Bytes, Duration, Instant, Seq};

use crate::congestion::{Congestion, Signal, Tuning};
use crate::fabric::Fabric;
use crate::role::Cx;

/// Returns the settings with every "auto" resolved, and checks them.
pub(crate) fn resolved<T: Tuning>(mut config: T) -> T {
    config.resolve(&Fabric::IRN_PAPER);
    config.check().expect("valid settings");
    config
}

pub(crate) fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

/// Returns an acknowledgement of `bytes` after a round trip of `rtt_us` microseconds.
pub(crate) fn acked(bytes: u64, rtt_us: u64) -> Signal {
    Signal::Acked {
        bytes: Bytes::new(bytes),
        rtt: Duration::from_us(rtt_us),
        in_flight: Bytes::from_kb(1_000_000),
        marked: false,
        acked: Seq::ZERO,
        sent: Seq::ZERO,
    }
}

/// A table with one line per signal or timeout: its time, and the state after it.
pub(crate) struct Rounds<'a, C> {
    pub(crate) control: C,
    /// Formats the state for one line.
    show: &'a dyn Fn(&C) -> String,
    text: String,
}

impl<'a, C: Congestion> Rounds<'a, C> {
    pub(crate) fn new(control: C, header: &str, show: &'a dyn Fn(&C) -> String) -> Self {
        let text =
            format!("{:>10}  {:<22}  {header}\n{:>10}  {:<22}  {}\n", "us", "event", "", "start", show(&control));
        Self { control, show, text }
    }
    /// Lets the timers fire that are due up to `us`, and adds a line for each.
    pub(crate) fn until(&mut self, us: u64) {
        while self.control.deadline() <= at(us) {
            let now = self.control.deadline();
            self.control.handle_timeout(&mut Cx::at(now));
            self.line(now, "timer");
            assert!(self.control.deadline() > now, "a timer that is due stays due");
        }
    }
    /// Lets due timers fire, then passes a signal and adds a line.
    pub(crate) fn signal(&mut self, us: u64, event: &str, signal: Signal) {
        self.until(us);
        self.control.on_signal(&mut Cx::at(at(us)), signal);
        self.line(at(us), event);
    }
    /// Adds a line for a state that was changed directly.
    pub(crate) fn note(&mut self, us: u64, event: &str) {
        self.line(at(us), event);
    }
    fn line(&mut self, now: Instant, event: &str) {
        self.text += &format!("{:>10}  {event:<22}  {}\n", now.as_us_f64(), (self.show)(&self.control));
    }
    /// Compares the table with the committed one.
    pub(crate) fn expect(self, committed: &ExpectFile) {
        committed.assert_eq(&self.text);
    }
}

/// Formats bits per second as Gb/s with nine decimals.
pub(crate) fn gbps(bps: f64) -> String {
    format!("{:>13.9}", bps / 1e9)
}
