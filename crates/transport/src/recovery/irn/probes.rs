//! Number of packets that a timeout retransmits: twice as many as the one before, if there was no answer in between.
//!
//! The paper has no such rule. A burst of losses, counted in packets, can outlast the retries of an InfiniBand
//! connection: an idle connection that sends one packet per timeout stays in the burst.

/// Counter of the packets that timeouts retransmit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probes {
    /// The most packets that a timeout sends.
    most: u16,
    /// Packets that the next timeout sends.
    next: u16,
    /// Packets that the present timeout has still to send.
    left: u16,
}

impl Probes {
    pub(super) fn new(most: u16) -> Self {
        Self { most, next: 1, left: 0 }
    }
    /// Handles a timeout; the first packet is retransmitted without [`Probes::take`].
    pub(super) fn handle_timeout(&mut self) {
        self.left = self.next - 1;
        self.next = self.next.saturating_mul(2).min(self.most);
    }
    /// Returns whether one more packet is to be sent, and counts it.
    pub(super) fn take(&mut self) -> bool {
        let more = self.left > 0;
        self.left -= u16::from(more);
        more
    }
    /// Handles an answer. Returns whether more packets were to be sent.
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

    /// Returns settings with a timeout of 100 us for any number of packets in flight.
    fn probing(stamps: bool) -> IrnConfig {
        IrnConfig {
            timeouts: Timeouts::On,
            rto_low: Setting::Off,
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
                    // Packet 2 had arrived, and its NACK comes late; only the packets that it shows to be lost follow.
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
                // An answer has arrived since.
                (324, Sends("1r")),
            ],
        );
    }
}
