//! Proportional rate reduction: how much fast recovery sends (RFC 9937, which obsoletes RFC 6937).

/// State of one fast recovery (section 6).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prr {
    /// prr_delivered: octets delivered in this recovery.
    delivered: u64,
    /// prr_out: octets sent in this recovery.
    out: u64,
    /// RecoverFS: octets in the network when the recovery began.
    flight: u64,
}

impl Prr {
    /// Begins a recovery with `flight` octets in the network, those included that the present acknowledgement delivers.
    pub(super) fn begin(flight: u64) -> Self {
        Self { delivered: 0, out: 0, flight: flight.max(1) }
    }
    pub(super) fn on_sent(&mut self, octets: u64) {
        self.out += octets;
    }
    /// Returns cwnd after an acknowledgement that delivers `delivered` octets and leaves `pipe` in the network (section
    /// 6.2). `is_safe` tells that it acknowledges octets and shows no further loss.
    pub(super) fn window(&mut self, delivered: u64, pipe: u64, ssthresh: u64, is_safe: bool, mss: u64) -> u64 {
        self.delivered += delivered;
        let mut allowed = if pipe > ssthresh {
            let target = (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.flight));
            u64::try_from(target).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            // The conservative bound, and slow start while the recovery goes well.
            let most = self.delivered.saturating_sub(self.out).max(delivered) + if is_safe { mss } else { 0 };
            most.min(ssthresh - pipe)
        };
        if self.out == 0 {
            allowed = allowed.max(mss); // the fast retransmit
        }
        pipe.saturating_add(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a recovery of a window of `flight` segments whose first `lost` are lost: an acknowledgement for each of the
    /// others. Returns the segments sent in it, and those in the network at its end.
    fn recover(flight: u64, lost: u64, ssthresh: u64) -> (u64, u64) {
        let mut prr = Prr::begin(flight);
        let (mut pipe, mut out) = (flight - lost, 0);
        for n in 0..flight - lost {
            pipe -= 1;
            let window = prr.window(1, pipe, ssthresh, false, 1);
            assert!(window <= ssthresh.max(pipe + 1) || n == 0);
            let sent = window - pipe;
            prr.on_sent(sent);
            out += sent;
            pipe += sent;
        }
        (out, pipe)
    }

    #[test]
    fn a_recovery_ends_with_ssthresh_in_the_network() {
        // One loss: every second acknowledgement sends a segment.
        let (out, pipe) = recover(20, 1, 10);
        assert_eq!((out, pipe), (10, 10));
        let (_, pipe) = recover(100, 10, 70);
        assert_eq!(pipe, 70);
    }

    #[test]
    fn after_heavy_losses_no_more_is_sent_than_delivered() {
        // Six of twenty remain: fewer than ssthresh. Each delivery sends one, without a burst.
        assert_eq!(recover(20, 14, 10), (6, 6));
        // While octets are acknowledged and nothing more is lost, the network fills as in slow start.
        let mut prr = Prr::begin(20);
        assert_eq!(prr.window(1, 5, 10, true, 1), 7);
        prr.on_sent(2);
        assert_eq!(prr.window(1, 6, 10, true, 1), 8);
    }
}
