//! Operations of the adapter on connections, ports and services of the connection manager.

use std::io;

use selvedge_nic::cm::{ConnectionId, ConnectionManager};
use selvedge_transport::Cx;

use super::{Adapter, Refusal};
use crate::rnic::connections::{At, Hears};

impl Adapter {
    /// Lets `act` use the connection manager, then sends what is ready to be sent.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn connect<T>(&self, act: impl FnOnce(&mut ConnectionManager, &mut Cx<'_>) -> T) -> Result<T, Refusal> {
        let mut state = self.lock()?;
        let mut cx = state.look(&self.clock);
        let outcome = act(&mut state.connections.manager, &mut cx);
        state.transmit(&mut cx);
        state.tell(cx.now);
        self.remind(&state);
        Ok(outcome)
    }
    /// Lets `act` create a connection in the connection manager and registers `hears` for its events, then sends what
    /// is ready to be sent.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
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
    /// Registers `hears` for a connection's events from now on.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn own_connection(&self, id: ConnectionId, hears: Hears) -> Result<(), Refusal> {
        self.lock()?.connections.own(id, hears);
        Ok(())
    }
    /// Forgets a connection.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn forget_connection(&self, id: ConnectionId) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.connections.forget(id);
        let mut cx = state.look(&self.clock);
        state.transmit(&mut cx);
        Ok(())
    }
    /// Reserves an RDMA port, any if it is 0; returns the port.
    ///
    /// # Errors
    /// Returns an error if another process on this host has the port, or after a fork.
    pub fn reserve_port(&self, port: u16) -> io::Result<u16> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        let port = state.network.listen(port)?;
        self.note_descriptors(&state);
        Ok(port)
    }
    /// Releases a reserved RDMA port.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn release_port(&self, port: u16) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        // A forked child does not close these descriptors: it may have other files under these numbers.
        let gone = state.network.unlisten(port);
        self.note_descriptors(&state);
        drop(gone);
        Ok(())
    }
    /// Registers `hears` for requests to a service from now on.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn own_service(&self, at: At, hears: Hears) -> Result<(), Refusal> {
        self.lock()?.connections.serve(at, hears);
        Ok(())
    }
    /// Listens for requests to a service, which are reported to `hears`.
    ///
    /// # Errors
    /// Returns an error if the service is taken at that address, or after a fork.
    pub fn listen(&self, at: At, hears: Hears) -> io::Result<()> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        state.connections.listen(at, hears)
    }
    /// Stops listening for requests to a service.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn unlisten(&self, at: At) -> Result<(), Refusal> {
        self.lock()?.connections.unlisten(at);
        Ok(())
    }
}
