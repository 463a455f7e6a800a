//! The application's memory, as the NIC sees it: the engine decides which bytes go where, its owner copies them.

/// An access to registered memory that is no longer reachable, because the application has unmapped it since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault;

/// Memory operations that an engine needs while it handles a packet. Addresses are those of the process; they lie in
/// regions that permit the access.
pub trait Memory {
    /// Copies `length` bytes of the packet's payload, from its byte `from` on, to `address`.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped.
    fn place(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault>;
    /// Copies `length` bytes of the packet's network header, from its byte `from` on, to `address`. The header has the
    /// layout of the first 40 bytes of a datagram's receive request.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped.
    fn place_network_header(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault>;
    /// Adds atomically to the 8 bytes at `address`, a multiple of 8, and returns the old value. Both are in the host's
    /// byte order.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped.
    fn fetch_add(&mut self, address: u64, add: u64) -> Result<u64, Fault>;
    /// Replaces atomically the 8 bytes at `address`, a multiple of 8, if they equal `compare`, and returns the old
    /// value.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped.
    fn compare_swap(&mut self, address: u64, compare: u64, swap: u64) -> Result<u64, Fault>;
    /// Returns the packet's payload as a word in the host's byte order, if it is 8 bytes long.
    fn word(&self) -> Option<u64>;
    /// Replaces atomically the 8 bytes at `address`, a multiple of 8.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped.
    fn replace(&mut self, address: u64, value: u64) -> Result<(), Fault>;
    /// Makes the `length` bytes placed at `address` visible to all readers, and, if `persistent`, safe against the loss
    /// of power.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped, or cannot be flushed as requested.
    fn flush(&mut self, address: u64, length: u64, persistent: bool) -> Result<(), Fault>;
    /// Writes the response to an atomic operation, 8 bytes, to `address`.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped.
    fn store(&mut self, address: u64, value: u64) -> Result<(), Fault>;
}
