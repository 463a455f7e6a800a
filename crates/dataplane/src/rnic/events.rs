//! Delivery of the engine's events to applications, which know the objects by their own names (cookies).

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_nic::verbs::{CqId, Event, SrqId};
use selvedge_units::QpNumber;

use super::channel::Channel;

/// An event of an object, for its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The event.
    pub event: Event,
    /// The owner's name for the object.
    pub cookie: u64,
}

/// The owner of a completion queue, a queue pair or a shared receive queue.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The owner's name for the object.
    pub cookie: u64,
    /// Channel for completion events, which are cookies.
    pub completions: Option<Arc<Channel<u64>>>,
    /// Channel for all other events.
    pub notices: Arc<Channel<Notice>>,
}

/// The owners of all objects of an adapter.
#[derive(Default)]
pub(super) struct Owners {
    pub(super) cqs: BTreeMap<CqId, Owner>,
    pub(super) qps: BTreeMap<QpNumber, Owner>,
    pub(super) srqs: BTreeMap<SrqId, Owner>,
}

impl Owners {
    pub(super) fn tell(&self, event: Event) {
        let owner = match event {
            Event::Completion(cq) => {
                if let Some(owner) = self.cqs.get(&cq)
                    && let Some(completions) = &owner.completions
                {
                    completions.push(owner.cookie);
                }
                return;
            }
            Event::CqOverrun(cq) => self.cqs.get(&cq),
            Event::SrqLimit(srq) => self.srqs.get(&srq),
            Event::QpFatal(qp)
            | Event::QpRequest(qp)
            | Event::QpAccess(qp)
            | Event::Established(qp)
            | Event::Drained(qp)
            | Event::LastReceive(qp) => self.qps.get(&qp),
        };
        if let Some(owner) = owner {
            owner.notices.push(Notice { event, cookie: owner.cookie });
        }
    }
}

impl Owner {
    /// Removes the object's pending events, because the object is destroyed.
    pub(super) fn withdraw(&self) {
        if let Some(completions) = &self.completions {
            completions.withdraw(|cookie| *cookie == self.cookie);
        }
        self.notices.withdraw(|notice| notice.cookie == self.cookie);
    }
}
