//! Received packets, and the resources that they may access.

use selvedge_wire::Data;
use selvedge_wire::verbs::Headers;

use super::receives::Receives;
use super::shared::Shared;
use super::work::Route;

/// A received packet.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    /// Route over which the packet arrived; local is this side.
    pub(super) route: &'a Route,
    pub(super) headers: &'a Headers,
    /// Payload length in bytes; the memory interface places the payload.
    pub(super) payload: u32,
}

impl Arrival<'_> {
    /// Returns the bytes delivered to an application: payload, or the result of an atomic operation.
    pub(super) fn brings(&self) -> u32 {
        self.payload + if self.headers.original.is_some() { 8 } else { 0 }
    }
    /// Returns the packet as loss recovery sees it.
    pub(super) fn data(&self) -> Data {
        Data {
            psn: self.headers.bth.psn,
            payload: self.payload as u16,
            last: false,
            retransmission: self.headers.extension.is_some_and(|extension| extension.retransmission),
            trimmed: false,
        }
    }
}

/// Resources of a queue pair that a request may access.
pub(super) struct Site<'a, M> {
    pub(super) shared: &'a mut Shared,
    pub(super) memory: &'a mut M,
    pub(super) receives: &'a mut Receives,
}
