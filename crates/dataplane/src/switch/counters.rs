//! Counters of ports.

/// Counters of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounts {
    /// Frames that the host has sent to the switch.
    pub received: u64,
    /// Bytes of these frames, without FCS.
    pub received_bytes: u64,
    /// Frames that the host was given.
    pub sent: u64,
    /// Bytes of these frames, without FCS.
    pub sent_bytes: u64,
    /// Questions for addresses that the port has answered in place of their owners.
    pub answered: u64,
    /// Frames that were copied to all other ports.
    pub flooded: u64,
    /// Pauses, and ends of pauses, that the host has asked for.
    pub pauses: u64,
    /// Frames of the host that were dropped because they are none: too short, too long.
    pub malformed: u64,
    /// Frames of the host that were dropped because their source address is another's.
    pub forged: u64,
    /// Frames of the host that were dropped because they are for the host itself, or MAC control other than a pause.
    pub local: u64,
    /// Frames of the host that were lost before the switch read them: the port's ring was full, or they were too long
    /// for it. The kernel of a host behind a TAP device counts such frames itself.
    pub overflowed: u64,
    /// Frames for the host that were lost because its interface took no more, or refused them.
    pub refused: u64,
}

impl PortCounts {
    /// Returns the names and values of all counters.
    pub const fn named(&self) -> [(&'static str, u64); 12] {
        [
            ("received", self.received),
            ("received_bytes", self.received_bytes),
            ("sent", self.sent),
            ("sent_bytes", self.sent_bytes),
            ("answered", self.answered),
            ("flooded", self.flooded),
            ("pauses", self.pauses),
            ("malformed", self.malformed),
            ("forged", self.forged),
            ("local", self.local),
            ("overflowed", self.overflowed),
            ("refused", self.refused),
        ]
    }
}
