//! What was done to packets.

/// What was done to the packets of one class in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that were sent into the device.
    pub sent: u64,
    /// Lost, as drawn.
    pub lost: u64,
    /// Dropped because too many were on their way.
    pub full: u64,
    /// Repeated.
    pub duplicated: u64,
    /// Damaged somewhere.
    pub corrupted: u64,
    /// Damaged where only the ICRC can tell.
    pub corrupted_payload: u64,
    /// Delivered behind one that was sent later (RFC 4737, section 3).
    pub reordered: u64,
    /// Delivered, copies included.
    pub delivered: u64,
    /// Of the delivered ones, not accepted by the kernel: damaged beyond recognition.
    pub refused: u64,
}

impl Counts {
    /// Names and values, in the order of a packet's way.
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
