//! A connection: its state, and the message sent last.

use alloc::collections::VecDeque;

use selvedge_units::{Duration, Instant, QpNumber};
use selvedge_wire::cm::{Ids, Life, Mad, Message, Reject, SidrReply};

use crate::verbs::Route;

/// Time between two attempts. Linux's manager waits for 4.3 s, which is long for a lost packet.
const INTERVAL: Duration = Duration::from_ms(400);
/// Number of attempts at an unanswered message before the connection is given up: Linux's number.
const ATTEMPTS: u32 = 15;
/// Maximum number of copies of a message in one attempt, which doubles with each unanswered attempt: the length of a
/// burst of losses may be counted in packets, not in time.
const REPEATS: u32 = 16;
/// Time for which an ended connection is kept, to answer peers that missed its end.
const LINGERING: Duration = Duration::from_ms(8_000);
/// Interval at which the other side of an established connection is asked whether it is alive.
const HEARTBEAT: Duration = Duration::from_ms(1_000);
/// Heartbeats without an answer after which a connection is lost.
const SILENT: u32 = 8;

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Requested by this side.
    Asked,
    /// Requested by the other side; the application has not answered.
    Requested,
    /// Question of the other side for a queue pair; the application has not answered.
    Questioned,
    /// Accepted by this side.
    Granted,
    /// Accepted by the other side; the application has not called `ready`.
    Replied,
    /// Established.
    Established,
    /// Disconnected by this side, which waits for the DREP.
    Ending,
    /// Ended or rejected.
    Ended,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) route: Route,
    /// The other side's identifier of the connection; 0 if unknown.
    pub(super) theirs: u32,
    pub(super) their_qp: QpNumber,
    pub(super) service: u64,
    pub(super) state: State,
    /// Queue pair of this side; 0 if unknown.
    pub(super) our_qp: QpNumber,
    /// Loss recovery that the other side prefers; 0 if it named none.
    pub(super) scheme: u8,
    /// Whether the other side is a Selvedge NIC, and answers when it is asked whether it is alive.
    pub(super) is_ours: bool,
    transaction: u64,
    said: Option<Message>,
    /// Time at which to repeat the message, or to remove the connection.
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

    /// Sends a message, and repeats it until it is answered if `wants` is set.
    pub(super) fn say(&mut self, now: Instant, message: Message, wants: bool, outgoing: &mut VecDeque<(Route, Mad)>) {
        outgoing.push_back((self.route, Mad { transaction: self.transaction, message }));
        self.said = Some(message);
        self.attempts = 1;
        self.due = wants.then(|| now + INTERVAL);
    }
    /// Repeats the last message.
    pub(super) fn say_again(&self, outgoing: &mut VecDeque<(Route, Mad)>) {
        if let Some(message) = self.said {
            outgoing.push_back((self.route, Mad { transaction: self.transaction, message }));
        }
    }
    /// Stops repeating the last message: it was answered.
    pub(super) fn hush(&mut self) {
        self.due = None;
    }
    /// Notes that the connection is established and the other side is alive.
    pub(super) fn lives(&mut self, now: Instant) {
        self.attempts = 0;
        self.due = self.is_ours.then(|| now + HEARTBEAT);
    }
    /// Asks whether the other side is alive, after a heartbeat without a message from it. Returns false if so many
    /// questions are unanswered that the connection is lost.
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
    /// Waits longer for an answer: 4.096 us times 2 to the power `code`.
    pub(super) fn be_patient(&mut self, now: Instant, code: u8) {
        if let Some(due) = &mut self.due {
            *due = (*due).max(now + Duration::from_ns(4_096) * (1 << code.min(24)));
        }
    }
    /// Lets the connection be removed after [`LINGERING`].
    pub(super) fn linger(&mut self, now: Instant) {
        self.due = Some(now + LINGERING);
        self.attempts = ATTEMPTS;
    }
    /// Repeats the last message, if attempts are left; returns whether they were.
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
    /// Returns the rejection of a request for a service that does not exist.
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
