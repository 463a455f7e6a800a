//! The connection manager: connections, ports and services.

use std::io;

use selvedge_nic::cm::{ConnectionId, ConnectionManager};
use selvedge_transport::Cx;

use super::{Adapter, Refusal};
use crate::rnic::connections::{At, Hears};

impl Adapter {
    /// Lets `act` use the connection manager, then sends what there is to send.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn connect<T>(&self, act: impl FnOnce(&mut ConnectionManager, &mut Cx<'_>) -> T) -> Result<T, Refusal> {
        let mut state = self.lock()?;
        let mut cx = state.look(&self.clock);
        let outcome = act(&mut state.connections.manager, &mut cx);
        state.transmit(&mut cx);
        state.tell(cx.now);
        self.remind(&state);
        Ok(outcome)
    }
    /// As [`Self::connect`], for what makes a connection that `hears` is told about.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn connect_for(
        &self,
        hears: Hears,
        act: impl FnOnce(&mut ConnectionManager, &mut Cx<'_>) -> ConnectionId,
    ) -> Result<ConnectionId, Refusal> {
        let mut state = self.lock()?;
        let mut cx = state.look(&self.clock);
        let id = act(&mut state.connections.manager, &mut cx);
        state.connections.own(id, hears);
        state.transmit(&mut cx);
        self.remind(&state);
        Ok(id)
    }
    /// From now on `hears` is told about a connection.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn own_connection(&self, id: ConnectionId, hears: Hears) -> Result<(), Refusal> {
        self.lock()?.connections.own(id, hears);
        Ok(())
    }
    /// Forgets a connection.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn forget_connection(&self, id: ConnectionId) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.connections.forget(id);
        let mut cx = state.look(&self.clock);
        state.transmit(&mut cx);
        Ok(())
    }
    /// Reserves an RDMA port, any if it is 0; returns which.
    ///
    /// # Errors
    /// If somebody on this host has it, or after a fork.
    pub fn reserve_port(&self, port: u16) -> io::Result<u16> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        let port = state.network.listen(port)?;
        self.note_descriptors(&state);
        Ok(port)
    }
    /// Gives one back.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn release_port(&self, port: u16) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        // A child would close whatever has their numbers next.
        let gone = state.network.unlisten(port);
        self.note_descriptors(&state);
        drop(gone);
        Ok(())
    }
    /// From now on `hears` is told of requests for a service.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn own_service(&self, at: At, hears: Hears) -> Result<(), Refusal> {
        self.lock()?.connections.serve(at, hears);
        Ok(())
    }
    /// Tells `hears` of requests for a service.
    ///
    /// # Errors
    /// If it is served already, or after a fork.
    pub fn listen(&self, at: At, hears: Hears) -> io::Result<()> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        state.connections.listen(at, hears)
    }
    /// No more.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn unlisten(&self, at: At) -> Result<(), Refusal> {
        self.lock()?.connections.unlisten(at);
        Ok(())
    }
}
