//! A packet that has arrived, and what it may touch.

use selvedge_wire::Data;
use selvedge_wire::verbs::Headers;

use super::receives::Receives;
use super::shared::Shared;
use super::work::Route;

/// A packet that has arrived.
#[derive(Clone, Copy)]
pub(super) struct Arrival<'a> {
    /// Over which way; local is this side.
    pub(super) route: &'a Route,
    pub(super) headers: &'a Headers,
    /// Bytes of payload, which the memory can place.
    pub(super) payload: u32,
}

impl Arrival<'_> {
    /// Bytes that it brings an application: payload, or what an atomic operation found.
    pub(super) fn brings(&self) -> u32 {
        self.payload + if self.headers.original.is_some() { 8 } else { 0 }
    }
    /// As loss recovery sees it.
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

/// What a request may touch.
pub(super) struct Site<'a, M> {
    pub(super) shared: &'a mut Shared,
    pub(super) memory: &'a mut M,
    pub(super) receives: &'a mut Receives,
}
