//! Requests with a response beyond an acknowledgement: Reads, Atomics, atomic writes, flushes. Each is executed once,
//! after everything before it.

use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::verbs::{AtomicEth, Headers};

use super::Refusal;
use super::inbound::{self, MALFORMED};
use crate::verbs::arrival::Arrival;
use crate::verbs::attributes::Terms;
use crate::verbs::flush::Flush;
use crate::verbs::memory::Memory;
use crate::verbs::message;
use crate::verbs::region::Intent;
use crate::verbs::shared::Shared;

/// A request that has a response.
#[derive(Clone, Copy)]
pub(super) enum Query {
    Read { key: u32, address: u64, length: u64 },
    Atomic { opcode: u8, header: AtomicEth },
    AtomicWrite { key: u32, address: u64, value: u64 },
    Flush(Flush),
}

/// Result of a request that has a response.
#[derive(Clone, Copy)]
pub(super) enum Found {
    /// Memory whose content is read when the response is sent.
    Read { key: u32, address: u64, length: u64 },
    /// Value before an Atomic.
    Word(u64),
    /// No data: the request is done.
    Nothing,
}

impl Found {
    /// Returns the number of packets of the response.
    pub(super) fn packets(&self, terms: &Terms) -> u64 {
        match self {
            Self::Read { length, .. } => message::packets(*length, terms.mtu),
            Self::Word(_) | Self::Nothing => 1,
        }
    }
    /// Returns the opcode of a response without payload, and the word that the response carries.
    pub(super) fn answer(&self) -> (u8, Option<u64>) {
        match self {
            Self::Word(original) => (op::ATOMIC_ACKNOWLEDGE, Some(*original)),
            Self::Nothing | Self::Read { .. } => (op::READ_RESPONSE_ONLY, None),
        }
    }
}

impl Query {
    /// Returns the request in a packet whose opcode is one of these requests.
    pub(super) fn of(arrival: &Arrival<'_>, memory: &impl Memory) -> Result<Self, Refusal> {
        let &Arrival { headers, payload, .. } = arrival;
        Self::read(headers, payload, || memory.word()).ok_or(MALFORMED)
    }

    fn read(headers: &Headers, payload: u32, word: impl FnOnce() -> Option<u64>) -> Option<Self> {
        /// Length of a word in bytes.
        const WORD: u32 = 8;
        let empty = (payload == 0).then_some(());
        match headers.bth.opcode {
            op::READ_REQUEST => {
                empty?;
                let reth = headers.reth?;
                Some(Self::Read { key: reth.key, address: reth.address, length: u64::from(reth.length) })
            }
            opcode @ (op::COMPARE_SWAP | op::FETCH_ADD) => {
                empty?;
                Some(Self::Atomic { opcode, header: headers.atomic? })
            }
            op::ATOMIC_WRITE => {
                let reth = headers.reth.filter(|reth| reth.length == WORD && payload == WORD)?;
                Some(Self::AtomicWrite { key: reth.key, address: reth.address, value: word()? })
            }
            op::FLUSH => {
                empty?;
                Flush::of(headers).map(Self::Flush)
            }
            _ => None,
        }
    }

    /// Checks whether the request is permitted, as far as that can be known before its turn.
    pub(super) fn check(&self, terms: &Terms, shared: &Shared) -> Result<(), Refusal> {
        let reach = |intent, key, address, length| inbound::reach(terms, shared, intent, key, address, length);
        let word = |intent, key, address: u64| match reach(intent, key, address, 8)? {
            at if at.is_multiple_of(8) && address.is_multiple_of(8) => Ok(()),
            _ => Err(MALFORMED),
        };
        match *self {
            Self::Read { key, address, length } => reach(Intent::RemoteRead, key, address, length).map(drop),
            Self::Atomic { header, .. } => word(Intent::RemoteAtomic, header.key, header.address),
            Self::AtomicWrite { key, address, .. } => word(Intent::RemoteWrite, key, address),
            Self::Flush(flush) => inbound::flushed(terms, shared, &flush).map(drop),
        }
    }

    /// Executes the request.
    pub(super) fn execute(self, terms: &Terms, shared: &Shared, memory: &mut impl Memory) -> Result<Found, Refusal> {
        match self {
            Self::Read { key, address, length } => Ok(Found::Read { key, address, length }),
            Self::Atomic { opcode, header } => inbound::atomic(terms, shared, memory, opcode, &header).map(Found::Word),
            Self::AtomicWrite { key, address, value } => {
                inbound::atomic_write(terms, shared, memory, key, address, value)?;
                Ok(Found::Nothing)
            }
            Self::Flush(flush) => {
                let (start, length) = inbound::flushed(terms, shared, &flush)?;
                memory.flush(start, length, flush.persistent).map_err(|_| inbound::FORBIDDEN)?;
                Ok(Found::Nothing)
            }
        }
    }
}
