//! Who is told what: events of the engine name its things, applications know them by names of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_nic::verbs::{CqId, Event, SrqId};
use selvedge_units::QpNumber;

use super::channel::Channel;

/// Something has happened to something of yours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// What.
    pub event: Event,
    /// The owner's name for what it happened to.
    pub cookie: u64,
}

/// Who owns a completion queue, a queue pair or a shared receive queue.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The owner's name for it.
    pub cookie: u64,
    /// Where completion events go: the cookie.
    pub completions: Option<Arc<Channel<u64>>>,
    /// Where everything else goes.
    pub notices: Arc<Channel<Notice>>,
}

/// All owners of an adapter's things.
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
    /// It is gone: what was not told yet need not be told any more.
    pub(super) fn withdraw(&self) {
        if let Some(completions) = &self.completions {
            completions.withdraw(|cookie| *cookie == self.cookie);
        }
        self.notices.withdraw(|notice| notice.cookie == self.cookie);
    }
}
