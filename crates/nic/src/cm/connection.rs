//! One connection: its state, and what was said last.

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant, QpNumber};
use selvedge_wire::cm::{Ids, Life, Mad, Message, Reject, SidrReply};

use crate::verbs::Route;

/// Between two attempts. Linux's manager waits for 4.3 s, which is long for a lost packet.
const INTERVAL: Duration = Duration::from_ms(400);
/// How often something is said that nobody answers, before it is given up: Linux's number.
const ATTEMPTS: u32 = 15;
/// How often something is said at once, after attempts in vain: twice as often each time, up to this, because what ends
/// a burst of losses may be packets and not time.
const REPEATS: u32 = 16;
/// How long what has ended is remembered, for those who did not hear.
const LINGERING: Duration = Duration::from_ms(8_000);
/// How often the other side of a connection that stands is asked whether it lives.
const HEARTBEAT: Duration = Duration::from_ms(1_000);
/// Heartbeats without an answer after which a connection is lost.
const SILENT: u32 = 8;

/// How a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// We have asked.
    Asked,
    /// They have asked, and the application has not answered.
    Requested,
    /// They have asked for a queue pair, and the application has not answered.
    Questioned,
    /// We have granted it.
    Granted,
    /// They have granted it, and the application has not said that it is ready.
    Replied,
    /// It stands.
    Established,
    /// We have ended it.
    Ending,
    /// It has ended, or was refused.
    Ended,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) route: Route,
    /// How they call it; 0 if that is not known.
    pub(super) theirs: u32,
    pub(super) their_qp: QpNumber,
    pub(super) service: u64,
    pub(super) state: State,
    /// Our own queue pair; 0 if that is not known.
    pub(super) our_qp: QpNumber,
    /// The loss recovery that the other side would rather use; 0 if it said nothing of that.
    pub(super) scheme: u8,
    /// The other side is one of our own, and answers when it is asked whether it lives.
    pub(super) is_ours: bool,
    transaction: u64,
    said: Option<Message>,
    /// When to say it again, or to forget.
    due: Option<Instant>,
    attempts: u32,
}

impl Connection {
    pub(super) fn new(route: Route, theirs: u32, transaction: u64, state: State) -> Self {
        Self {
            route,
            theirs,
            their_qp: QpNumber(0),
            service: 0,
            state,
            our_qp: QpNumber(0),
            scheme: 0,
            is_ours: false,
            transaction,
            said: None,
            due: None,
            attempts: 0,
        }
    }
    pub(super) fn ids(&self, local: u32) -> Ids {
        Ids { local, remote: self.theirs }
    }
    pub(super) fn waits_for_application(&self) -> bool {
        matches!(self.state, State::Requested | State::Questioned)
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Says something, and again until it is answered if it `wants` that.
    pub(super) fn say(&mut self, now: Instant, message: Message, wants: bool, outgoing: &mut VecDeque<(Route, Mad)>) {
        outgoing.push_back((self.route, Mad { transaction: self.transaction, message }));
        self.said = Some(message);
        self.attempts = 1;
        self.due = wants.then(|| now + INTERVAL);
    }
    /// It was not heard.
    pub(super) fn say_again(&self, outgoing: &mut VecDeque<(Route, Mad)>) {
        if let Some(message) = self.said {
            outgoing.push_back((self.route, Mad { transaction: self.transaction, message }));
        }
    }
    /// It was answered.
    pub(super) fn hush(&mut self) {
        self.due = None;
    }
    /// It stands, and the other side lives.
    pub(super) fn lives(&mut self, now: Instant) {
        self.attempts = 0;
        self.due = self.is_ours.then(|| now + HEARTBEAT);
    }
    /// The other side was not heard of for a heartbeat: asks whether it lives. Returns false once that was in vain so
    /// often that it is lost.
    pub(super) fn asks(&mut self, now: Instant, id: u32, outgoing: &mut VecDeque<(Route, Mad)>) -> bool {
        if self.attempts >= SILENT {
            return false;
        }
        self.attempts += 1;
        let message = Message::Life(self.ids(id), Life::Asked);
        outgoing.push_back((self.route, Mad { transaction: self.transaction, message }));
        self.due = Some(now + HEARTBEAT);
        true
    }
    /// The answer will take so long: 4.096 us times 2 to this power.
    pub(super) fn be_patient(&mut self, now: Instant, code: u8) {
        if let Some(due) = &mut self.due {
            *due = (*due).max(now + Duration::from_ns(4_096) * (1 << code.min(24)));
        }
    }
    /// Is to be forgotten in a while.
    pub(super) fn linger(&mut self, now: Instant) {
        self.due = Some(now + LINGERING);
        self.attempts = ATTEMPTS;
    }
    /// What is due; returns whether there is more to wait for.
    pub(super) fn retry(&mut self, now: Instant, outgoing: &mut VecDeque<(Route, Mad)>) -> bool {
        if self.attempts >= ATTEMPTS {
            return false;
        }
        for _ in 0..(1 << (self.attempts - 1).min(16)).min(REPEATS) {
            self.say_again(outgoing);
        }
        self.attempts += 1;
        self.due = Some(now + INTERVAL);
        true
    }
    /// Nobody serves what was asked for.
    pub(super) fn no_such_service(&self, local: u32) -> (Route, Mad) {
        let message = match self.state {
            State::Questioned => Message::Resolved(SidrReply {
                id: self.theirs,
                status: 1,
                qp: QpNumber(0),
                service: self.service,
                qkey: 0,
                private: [0; 136],
            }),
            _ => Message::Reject(Reject {
                ids: self.ids(local),
                refused: 0,
                reason: Reject::INVALID_SERVICE,
                private: [0; 148],
            }),
        };
        (self.route, Mad { transaction: self.transaction, message })
    }
}
