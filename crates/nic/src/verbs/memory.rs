//! The application's memory, as the NIC sees it: the engine says what goes where, its owner moves the bytes.

/// Memory that was checked to be registered and cannot be reached all the same, because the application has unmapped
/// it since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault;

/// What an engine needs of memory while it handles a packet. Addresses are those of the process; they lie in regions
/// that allow it.
pub trait Memory {
    /// Copies `length` bytes of the packet's payload, from its byte `from` on, to `address`.
    ///
    /// # Errors
    /// If the memory is gone.
    fn place(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault>;
    /// Copies the packet's network header, as the first 40 bytes of a datagram's receive request have it, to
    /// `address`: `length` bytes from its byte `from` on.
    ///
    /// # Errors
    /// If the memory is gone.
    fn place_network_header(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault>;
    /// Adds to the 8 bytes at `address`, a multiple of 8, at one stroke; returns what they were. Both in the host's
    /// byte order.
    ///
    /// # Errors
    /// If the memory is gone.
    fn fetch_add(&mut self, address: u64, add: u64) -> Result<u64, Fault>;
    /// Replaces the 8 bytes at `address`, a multiple of 8, if they equal `compare`, at one stroke; returns what they
    /// were.
    ///
    /// # Errors
    /// If the memory is gone.
    fn compare_swap(&mut self, address: u64, compare: u64, swap: u64) -> Result<u64, Fault>;
    /// The packet's payload as a word in the host's byte order, if it is 8 bytes.
    fn word(&self) -> Option<u64>;
    /// Replaces the 8 bytes at `address`, a multiple of 8, at one stroke.
    ///
    /// # Errors
    /// If the memory is gone.
    fn replace(&mut self, address: u64, value: u64) -> Result<(), Fault>;
    /// Makes sure that whoever reads the `length` bytes at `address` finds what was placed there, and, if `persistent`,
    /// that it survives the loss of power.
    ///
    /// # Errors
    /// If the memory is gone, or cannot be made to.
    fn flush(&mut self, address: u64, length: u64, persistent: bool) -> Result<(), Fault>;
    /// Writes 8 bytes to `address`: an atomic operation's answer.
    ///
    /// # Errors
    /// If the memory is gone.
    fn store(&mut self, address: u64, value: u64) -> Result<(), Fault>;
}
