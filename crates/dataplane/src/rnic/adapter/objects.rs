//! Operations of the adapter on completion queues, queue pairs and shared receive queues, and their owners.

use std::io;
use std::net::Ipv6Addr;

use selvedge_nic::verbs::{CqId, PdId, QpInit, SrqAttributes, SrqId, VerbsError};
use selvedge_units::QpNumber;

use super::{Adapter, Refusal};
use crate::rnic::events::Owner;

impl Adapter {
    /// Creates a completion queue.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn create_cq(&self, depth: u32, owner: Owner) -> Result<CqId, Refusal> {
        let mut state = self.lock()?;
        let cq = state.rnic.create_cq(depth)?;
        state.owners.cqs.insert(cq, owner);
        Ok(cq)
    }
    /// Destroys a completion queue.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn destroy_cq(&self, cq: CqId) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.destroy_cq(cq)?;
        state.owners.cqs.remove(&cq).iter().for_each(Owner::withdraw);
        Ok(())
    }
    /// Creates a queue pair.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn create_qp(&self, init: QpInit, owner: Owner) -> Result<QpNumber, Refusal> {
        let mut state = self.lock()?;
        let qp = state.rnic.create_qp(init)?;
        state.owners.qps.insert(qp, owner);
        Ok(qp)
    }
    /// Destroys a queue pair.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn destroy_qp(&self, qp: QpNumber) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        // Pending packets are sent first: an acknowledgement that is withheld costs the other side its retries.
        let mut cx = state.look(&self.clock);
        state.transmit(&mut cx);
        state.say_last_words(qp);
        state.rnic.destroy_qp(qp)?;
        state.network.leave(None, qp);
        state.owners.qps.remove(&qp).iter().for_each(Owner::withdraw);
        Ok(())
    }
    /// Attaches a queue pair for datagrams to a group, on the interface with this index.
    ///
    /// # Errors
    /// Returns the engine's refusal (`EINVAL`, `ENOMEM`), an error after a fork (`EIO`) or if another user has port
    /// 4791 and does not share it (`EADDRINUSE`), or the system's error: too many groups (`ENOBUFS`), or no IPv6.
    pub fn attach(&self, qp: QpNumber, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        let is_new = state.rnic.attach(qp, group).map_err(|error| {
            let is_full = matches!(error, VerbsError::Exhausted(_));
            io::Error::from_raw_os_error(if is_full { libc::ENOMEM } else { libc::EINVAL })
        })?;
        state.network.join(interface, group, qp).inspect_err(|_| {
            // The queue pair may be a member on another interface.
            if is_new {
                let _ = state.rnic.detach(qp, group);
            }
        })
    }
    /// Detaches a queue pair from a group.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn detach(&self, qp: QpNumber, group: Ipv6Addr) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.detach(qp, group)?;
        state.network.leave(Some(group), qp);
        Ok(())
    }
    /// Creates a shared receive queue.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn create_srq(&self, pd: PdId, attributes: SrqAttributes, owner: Owner) -> Result<SrqId, Refusal> {
        let mut state = self.lock()?;
        let srq = state.rnic.create_srq(pd, attributes)?;
        state.owners.srqs.insert(srq, owner);
        Ok(srq)
    }
    /// Destroys a shared receive queue.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn destroy_srq(&self, srq: SrqId) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.destroy_srq(srq)?;
        state.owners.srqs.remove(&srq).iter().for_each(Owner::withdraw);
        Ok(())
    }
}
