//! Counters of what the device did to packets.

/// Counters of one class of packets in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that were sent into the device.
    pub sent: u64,
    /// Packets lost by random draw.
    pub lost: u64,
    /// Packets dropped because too many were in flight.
    pub full: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets with a flipped bit anywhere.
    pub corrupted: u64,
    /// Packets with a flipped bit that only the ICRC can detect.
    pub corrupted_payload: u64,
    /// Packets delivered behind one that was sent later (RFC 4737, section 3).
    pub reordered: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// Delivered packets that the kernel did not accept: damaged beyond recognition.
    pub refused: u64,
}

impl Counts {
    /// Returns the names and values, in the order in which a packet passes them.
    pub const fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("sent", self.sent),
            ("lost", self.lost),
            ("full", self.full),
            ("duplicated", self.duplicated),
            ("corrupted", self.corrupted),
            ("corrupted_payload", self.corrupted_payload),
            ("reordered", self.reordered),
            ("delivered", self.delivered),
            ("refused", self.refused),
        ]
    }
}
