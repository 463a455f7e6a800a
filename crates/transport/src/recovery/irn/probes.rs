//! How many packets a timeout sends again: twice as many as the one before, if nothing was heard between.
//!
//! It is not the paper's. Bursts of losses can be longer than the patience of whoever waits (the retries of an
//! InfiniBand connection), counted in packets: an idle connection that asks with one packet for each timeout stays in
//! the burst.

/// See above.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probes {
    /// The most that a timeout sends.
    most: u16,
    /// What the next timeout sends.
    next: u16,
    /// What this timeout has still to send.
    left: u16,
}

impl Probes {
    pub(super) fn new(most: u16) -> Self {
        Self { most, next: 1, left: 0 }
    }
    /// One packet is sent again anyway.
    pub(super) fn on_timeout(&mut self) {
        self.left = self.next - 1;
        self.next = self.next.saturating_mul(2).min(self.most);
    }
    /// Whether one more is to be sent.
    pub(super) fn take(&mut self) -> bool {
        let more = self.left > 0;
        self.left -= u16::from(more);
        more
    }
    /// Something was heard. Returns whether more was to be sent.
    pub(super) fn stop(&mut self) -> bool {
        let was_sending = self.left > 0;
        (self.next, self.left) = (1, 0);
        was_sending
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Duration, Setting};

    use crate::dialogue::Say::{Ack, Done, Echo, Nack, Rests, Sends, Waits, Wake};
    use crate::dialogue::{sender, with};
    use crate::recovery::irn::{IrnConfig, Timeouts};

    /// A timeout of 100 us, whatever is in flight.
    fn probing(stamps: bool) -> IrnConfig {
        IrnConfig {
            timeouts: Timeouts::On,
            rto_high: Setting::Value(Duration::from_us(100)),
            bdp_cap: Setting::Value(10),
            time_stamps: stamps,
            probes: 4,
            ..IrnConfig::default()
        }
    }

    #[test]
    fn silence_doubles_what_a_timeout_sends_up_to_a_limit() {
        sender(
            with(probing(false)),
            2,
            &[
                (0, Sends("0 1")),
                (100, Wake),
                (100, Sends("0r")),
                (200, Wake),
                (200, Sends("0r 0r")),
                (300, Wake),
                (300, Sends("0r 0r 0r 0r")),
                (400, Wake),
                (400, Sends("0r 0r 0r 0r")),
                (424, Ack(2)),
                (424, Done),
                // The others have arrived, too.
                (424, Ack(2)),
                (424, Rests),
            ],
        );
    }

    #[test]
    fn whoever_answers_is_asked_once_again() {
        for stamps in [false, true] {
            sender(
                with(probing(stamps)),
                3,
                &[
                    (0, Sends("0 1 2")),
                    (100, Wake),
                    (100, Sends("0r")),
                    (200, Wake),
                    (200, Sends("0r 0r")),
                    // 2 had arrived, and its NACK comes late; no more than what it says is lost follows.
                    (210, Echo(0)),
                    (210, Nack(0, 2)),
                    (210, Sends("1r")),
                    (224, Ack(3)),
                    (224, Done),
                ],
            );
            sender(
                with(probing(stamps)),
                1,
                &[(0, Sends("0")), (100, Wake), (100, Sends("0r")), (200, Wake), (210, Ack(1)), (210, Sends(""))],
            );
        }
        sender(
            with(probing(false)),
            2,
            &[
                (0, Sends("0 1")),
                (100, Wake),
                (100, Sends("0r")),
                (200, Wake),
                (200, Sends("0r 0r")),
                (224, Ack(1)),
                (224, Sends("1r")),
                (224, Waits(324)),
                (324, Wake),
                // Something was heard since.
                (324, Sends("1r")),
            ],
        );
    }
}
