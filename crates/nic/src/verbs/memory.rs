//! The application's memory, as the NIC sees it: the engine decides which bytes go where, its owner copies them.

use alloc::vec::Vec;

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
    /// Appends the packet's payload to `into`, for a later [`Memory::place_kept`]. A memory without contents appends
    /// nothing.
    fn keep(&self, into: &mut Vec<u8>);
    /// Copies `length` bytes of `kept`, the payload of an earlier packet from [`Memory::keep`], from its byte `from`
    /// on, to `address`.
    ///
    /// # Errors
    /// Returns [`Fault`] if the memory is no longer mapped.
    fn place_kept(&mut self, kept: &[u8], address: u64, from: u32, length: u32) -> Result<(), Fault>;
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

/// Where the bytes to place come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin<'a> {
    /// The packet that the NIC handles.
    Packet,
    /// An earlier packet, which waited in a reorder buffer.
    Kept(&'a [u8]),
    /// Nowhere: nothing is copied, because the access is only checked.
    Nowhere,
}

impl Origin<'_> {
    /// Copies `length` bytes, from byte `from` on, to `address`.
    #[inline]
    pub(super) fn place(self, memory: &mut impl Memory, address: u64, from: u32, length: u32) -> Result<(), Fault> {
        match self {
            Self::Packet => memory.place(address, from, length),
            Self::Kept(kept) => memory.place_kept(kept, address, from, length),
            Self::Nowhere => Ok(()),
        }
    }
}

/// Memory of an application that is one slice of bytes, for a process that has no other threads at it: tests, examples,
/// simulations with contents.
#[derive(Debug)]
pub struct MemorySlice<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes of the memory.
    pub bytes: &'a mut [u8],
    /// Payload of the packet that the NIC handles.
    pub payload: &'a [u8],
    /// Network header of the packet, as receive requests of datagrams get it.
    pub network_header: [u8; 40],
}

impl MemorySlice<'_> {
    fn at(&mut self, address: u64, length: u64) -> Result<&mut [u8], Fault> {
        let from = usize::try_from(address.checked_sub(self.base).ok_or(Fault)?).map_err(|_| Fault)?;
        let to = from.checked_add(usize::try_from(length).map_err(|_| Fault)?).ok_or(Fault)?;
        self.bytes.get_mut(from..to).ok_or(Fault)
    }
    fn change(&mut self, address: u64, change: impl FnOnce(u64) -> u64) -> Result<u64, Fault> {
        let place = self.at(address, 8)?;
        let before = u64::from_ne_bytes((&*place).try_into().map_err(|_| Fault)?);
        place.copy_from_slice(&change(before).to_ne_bytes());
        Ok(before)
    }
}

impl Memory for MemorySlice<'_> {
    fn place(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault> {
        let payload = self.payload;
        self.at(address, length.into())?.copy_from_slice(&payload[from as usize..][..length as usize]);
        Ok(())
    }
    fn keep(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.payload);
    }
    fn place_kept(&mut self, kept: &[u8], address: u64, from: u32, length: u32) -> Result<(), Fault> {
        self.at(address, length.into())?.copy_from_slice(&kept[from as usize..][..length as usize]);
        Ok(())
    }
    fn place_network_header(&mut self, address: u64, from: u32, length: u32) -> Result<(), Fault> {
        let header = self.network_header;
        self.at(address, length.into())?.copy_from_slice(&header[from as usize..][..length as usize]);
        Ok(())
    }
    fn fetch_add(&mut self, address: u64, add: u64) -> Result<u64, Fault> {
        self.change(address, |before| before.wrapping_add(add))
    }
    fn compare_swap(&mut self, address: u64, compare: u64, swap: u64) -> Result<u64, Fault> {
        self.change(address, |before| if before == compare { swap } else { before })
    }
    fn word(&self) -> Option<u64> {
        self.payload.try_into().ok().map(u64::from_ne_bytes)
    }
    fn replace(&mut self, address: u64, value: u64) -> Result<(), Fault> {
        self.change(address, |_| value).map(drop)
    }
    fn flush(&mut self, address: u64, length: u64, _: bool) -> Result<(), Fault> {
        self.at(address, length).map(drop)
    }
    fn store(&mut self, address: u64, value: u64) -> Result<(), Fault> {
        self.change(address, |_| value).map(drop)
    }
}
