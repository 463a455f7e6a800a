//! A queue pair.

use alloc::vec::Vec;

use selvedge_transport::Cx;
use selvedge_units::{Instant, QpNumber};
use selvedge_wire::verbs::Headers;

use super::attributes::{QpChange, QpInit, QpState};
use super::error::VerbsError;
use super::memory::Memory;
use super::rnic::Transmit;
use super::shared::Shared;
use super::work::{ReceiveRequest, Route, SendRequest, Span};

pub(super) struct QueuePair {
    pub(super) init: QpInit,
    pub(super) is_ready: bool,
    pub(super) deadline: Instant,
}
impl QueuePair {
    pub(super) fn new(_number: QpNumber, init: QpInit) -> Self { Self { init, is_ready: false, deadline: Instant::NEVER } }
    pub(super) fn modify(&mut self, _: &mut Cx<'_>, _: &mut Shared, _: &QpChange) -> Result<(), VerbsError> { todo!() }
    pub(super) fn attributes(&self) -> QpChange { todo!() }
    pub(super) fn state(&self) -> QpState { todo!() }
    pub(super) fn post_send(&mut self, _: &mut Cx<'_>, _: &mut Shared, _: SendRequest) -> Result<(), VerbsError> { todo!() }
    pub(super) fn post_recv(&mut self, _: &mut Shared, _: ReceiveRequest) -> Result<(), VerbsError> { todo!() }
    pub(super) fn handle_packet(&mut self, _: &mut Cx<'_>, _: &mut Shared, _: &mut impl Memory, _: &Route, _: &Headers, _: u32) { todo!() }
    pub(super) fn poll_transmit(&mut self, _: &mut Cx<'_>, _: &mut Shared, _: &mut Vec<Span>) -> Option<Transmit> { todo!() }
    pub(super) fn handle_timeout(&mut self, _: &mut Cx<'_>, _: &mut Shared) { todo!() }
    pub(super) fn next_deadline(&self) -> Instant { todo!() }
}
