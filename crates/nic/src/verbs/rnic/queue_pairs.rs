//! Queue pairs, and the requests posted on them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::slice;

use selvedge_transport::{Cx, SchemeParams, SharedPart};
use selvedge_units::QpNumber;

use super::{Limits, Rnic};
use crate::verbs::attributes::{Capacities, QpChange, QpInit, QpState};
use crate::verbs::error::VerbsError;
use crate::verbs::multicast::MULTICAST;
use crate::verbs::qp::QueuePair;
use crate::verbs::work::{ReceiveRequest, SendRequest};

impl Rnic {
    /// Creates a queue pair, in state Reset.
    ///
    /// # Errors
    /// If a capacity is above its limit, or a resource that `init` names does not exist.
    pub fn create_qp(&mut self, init: QpInit) -> Result<QpNumber, VerbsError> {
        self.pd(init.pd)?;
        check_capacities(&init.capacities)?;
        if self.qps.len() >= Limits::HERE.queue_pairs as usize {
            return Err(VerbsError::Exhausted("queue pairs"));
        }
        self.cq(init.send_cq)?;
        self.cq(init.receive_cq)?;
        if let Some(srq) = init.srq {
            self.shared.srqs.get_mut(&srq).ok_or(VerbsError::NoSuch("shared receive queue"))?.users += 1;
        }
        for cq in [init.send_cq, init.receive_cq] {
            self.cq(cq)?.users += 1;
        }
        if self.shared.pools.is_none() {
            self.shared.pools = init.recovery.shared();
        }
        let number = loop {
            self.next_qp = (self.next_qp + 1) % (1 << Self::QP_BITS);
            let number = self.prefix | self.next_qp;
            // Numbers 0 and 1 are for management, the last is for multicast.
            if number > 1 && number != MULTICAST.0 && !self.qps.contains_key(&number) {
                break number;
            }
        };
        self.qps.insert(number, Box::new(QueuePair::new(QpNumber(number), init)));
        Ok(QpNumber(number))
    }
    /// Changes attributes and the state of a queue pair.
    ///
    /// # Errors
    /// If the queue pair does not exist, the state transition is not permitted, or an attribute that it requires is
    /// missing.
    pub fn modify_qp(&mut self, _: &mut Cx<'_>, qp: QpNumber, change: &QpChange) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.modify(&mut self.shared, change)?;
        if change.state == Some(QpState::Reset) {
            // After a reset the queue pair is as new: completions of its earlier requests are dropped.
            for cq in [pair.init.send_cq, pair.init.receive_cq] {
                if let Some(queue) = self.shared.cqs.get_mut(&cq) {
                    queue.forget(qp);
                }
            }
        }
        self.settle(qp.0);
        Ok(())
    }
    /// Notes that the other side is a Selvedge NIC with the same recovery, as a connection manager may know (IRN,
    /// section 7), so that in-band negotiation is not needed. No effect if the queue pair's recovery is a standard one.
    ///
    /// # Errors
    /// If the queue pair does not exist.
    pub fn agree(&mut self, qp: QpNumber) -> Result<(), VerbsError> {
        self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?.agree();
        Ok(())
    }
    /// Returns the attributes of a queue pair: every field that was ever set, except `from`.
    pub fn query_qp(&self, qp: QpNumber) -> Option<(QpChange, QpInit)> {
        self.qps.get(&qp.0).map(|pair| (pair.attributes(), pair.init))
    }
    /// Returns the state of a queue pair.
    pub fn qp_state(&self, qp: QpNumber) -> Option<QpState> {
        self.qps.get(&qp.0).map(|pair| pair.state())
    }
    /// Returns whether a queue pair has unfinished requests that have begun: they will complete.
    pub fn has_begun(&self, qp: QpNumber) -> bool {
        self.qps.get(&qp.0).is_some_and(|pair| pair.has_begun())
    }
    /// Returns whether a queue pair is draining and has unfinished requests that have begun.
    pub fn is_draining(&self, qp: QpNumber) -> bool {
        self.qps.get(&qp.0).is_some_and(|pair| pair.is_draining())
    }
    /// Destroys a queue pair and its completions that were not polled yet.
    ///
    /// # Errors
    /// If the queue pair does not exist.
    pub fn destroy_qp(&mut self, qp: QpNumber) -> Result<(), VerbsError> {
        let mut pair = self.qps.remove(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.release(&mut self.shared);
        self.shared.regions.windows().forget(qp);
        self.groups.forget(qp);
        self.deadlines.remove(&(pair.deadline, qp.0));
        for cq in [pair.init.send_cq, pair.init.receive_cq] {
            if let Some(queue) = self.shared.cqs.get_mut(&cq) {
                queue.users -= 1;
                queue.forget(qp);
            }
        }
        if let Some(srq) = pair.init.srq.and_then(|srq| self.shared.srqs.get_mut(&srq)) {
            srq.users -= 1;
        }
        Ok(())
    }
    /// Posts a send request.
    ///
    /// # Errors
    /// If the queue pair does not exist, its queue is full, its state does not permit sending, or the request
    /// contradicts itself.
    pub fn post_send(&mut self, _: &mut Cx<'_>, qp: QpNumber, request: SendRequest) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.check_sends(slice::from_ref(&request))?;
        pair.post_send(&mut self.shared, request);
        self.settle(qp.0);
        Ok(())
    }
    /// Posts send requests: all of them, or none.
    ///
    /// # Errors
    /// Like [`Self::post_send`], for any of the requests.
    pub fn post_sends(&mut self, _: &mut Cx<'_>, qp: QpNumber, requests: Vec<SendRequest>) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        pair.check_sends(&requests)?;
        for request in requests {
            pair.post_send(&mut self.shared, request);
        }
        self.settle(qp.0);
        Ok(())
    }
    /// Posts a receive request.
    ///
    /// # Errors
    /// Like [`Self::post_send`].
    pub fn post_recv(&mut self, qp: QpNumber, request: ReceiveRequest) -> Result<(), VerbsError> {
        let pair = self.qps.get_mut(&qp.0).ok_or(VerbsError::NoSuch("queue pair"))?;
        if pair.post_recv(&mut self.shared, request)? {
            self.has_news = true;
            self.settle(qp.0);
        }
        Ok(())
    }
    /// Returns whether receive requests that peers have to be informed of ([`QpOptions::credits`]) were added since the
    /// last call: then there is a packet to send.
    ///
    /// [`QpOptions::credits`]: crate::verbs::QpOptions::credits
    pub fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.has_news)
    }
}

fn check_capacities(wanted: &Capacities) -> Result<(), VerbsError> {
    let limits = Limits::HERE;
    if wanted.send_requests > limits.requests || wanted.receive_requests > limits.requests {
        return Err(VerbsError::Invalid("more requests than a queue can hold"));
    }
    if wanted.send_pieces > limits.pieces || wanted.receive_pieces > limits.pieces {
        return Err(VerbsError::Invalid("more pieces than a request can have"));
    }
    if wanted.inline > limits.inline {
        return Err(VerbsError::Invalid("more inline data than a request can hold"));
    }
    Ok(())
}
