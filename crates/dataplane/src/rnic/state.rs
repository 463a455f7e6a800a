//! State under the NIC's lock, and its work: receive packets, handle timers, send packets, and report events.

use std::io;

use selvedge_nic::verbs::{Completion, CqId, Payload, QpChange, QpState, Rnic, Transmit};
use selvedge_transport::{Cx, SchemeParams};
use selvedge_units::{Duration, Instant, QpNumber};

use super::arrival::Arrival;
use super::connections::{Connections, MANAGEMENT};
use super::events::Owners;
use super::network::{Network, Sent};
use super::settings;
use super::timekeeping::{LATE, Timekeeping};

/// Packets that are received before the answers are sent: one acknowledgement covers all of them, and the other side
/// need not wait for more.
const TAKEN: u64 = 64;

/// Time since an application's last poll within which another poll is expected soon.
const LATELY: Duration = Duration::from_us(100);

/// Number of repetitions of a destroyed queue pair's last acknowledgement, so that the other side does not retry with a
/// queue pair that no longer exists.
const LAST_WORDS: usize = 4;

/// The state that the lock guards.
pub(super) struct State {
    pub(super) rnic: Rnic,
    pub(super) network: Network,
    pub(super) owners: Owners,
    pub(super) connections: Connections,
    /// The packet last taken from the engine, with its payload in [`Self::payload`].
    pub(super) outgoing: Transmit,
    pub(super) payload: Payload,
    /// Number of events that applications were told of.
    pub(super) told: u64,
    /// Calls that posted since anything was sent.
    pub(super) gathered: u32,
    /// The latest time seen.
    seen: Instant,
    /// Time of the application's last poll that found nothing at first.
    pub(super) polled: Instant,
    /// Time when the progress thread will look again by itself.
    pub(super) asleep_until: Instant,
    /// Whether the progress thread sleeps as long as applications poll.
    pub(super) is_parked: bool,
}

impl State {
    /// Creates an empty state. `entropy` returns unpredictable random numbers.
    ///
    /// # Errors
    /// Returns the error of `entropy`, or one that says which setting is invalid.
    pub(super) fn new(mut network: Network, entropy: impl Fn() -> io::Result<u32>) -> io::Result<Self> {
        let first = entropy()? % (1 << Rnic::QP_BITS);
        let mut rnic = Rnic::new(u32::from(network.slot()), first);
        let paths = settings::paths().map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        network.hears_marks = paths.is_some();
        rnic.control_paths(paths);
        let mut connections = Connections::new(u64::from(entropy()?), network.slot(), entropy()?);
        // An invalid setting is reported when a queue pair is created.
        let recovery = settings::recovery().ok().filter(|_| !network.is_standard());
        connections.manager.prefer(recovery.as_ref().and_then(SchemeParams::wire_id));
        Ok(Self {
            rnic,
            owners: Owners::default(),
            connections,
            network,
            outgoing: Transmit::default(),
            payload: Payload::default(),
            told: 0,
            gathered: 0,
            seen: Instant::ZERO,
            polled: Instant::ZERO,
            asleep_until: Instant::ZERO,
            is_parked: false,
        })
    }
    /// Returns the context, with the current time, for calls into the engine. Its time never goes back.
    pub(super) fn look(&mut self, clock: &Timekeeping) -> Cx<'static> {
        self.seen = self.seen.max(clock.now());
        Cx::at(self.seen)
    }
    /// Receives packets, handles timers, and sends, in a loop that ends when nothing arrives any more, after `calls`
    /// system calls, or, if an application `polls`, when a request has completed.
    pub(super) fn turn(&mut self, clock: &Timekeeping, mut calls: usize, polls: bool) {
        let completed = self.rnic.completed();
        loop {
            let (now, stood_still) = clock.look(self.deadline(), self.seen);
            let now = now.max(self.seen);
            self.seen = now;
            let mut cx = Cx::at(now);
            if stood_still {
                self.rnic.on_lapse(now);
            }
            if polls {
                self.polled = cx.now;
            }
            let (goes_on, is_drained) = self.take(&mut cx, &mut calls, polls);
            if polls && self.is_parked && self.rnic.completed() > completed {
                // The polling application gets its completion first: packets to be sent leave with its next post or
                // poll, or by the progress thread.
                self.gathered += 1;
                self.tell(cx.now);
                return;
            }
            // The answer to a due timer may be among the packets that wait, but the timer may not wait for ever.
            let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= cx.now && (is_drained || at + LATE <= cx.now));
            let (packets, connections) =
                (is_due(self.rnic.poll_timeout()), is_due(self.connections.manager.poll_timeout()));
            if packets {
                self.rnic.handle_timeout(&mut cx);
            }
            if connections {
                self.connections.manager.handle_timeout(&mut cx);
            }
            self.transmit(&mut cx);
            self.tell(cx.now);
            if self.connections.manager.has_messages() {
                // A request was refused because nobody listened.
                self.transmit(&mut cx);
            }
            if !goes_on {
                return;
            }
        }
    }
    /// Returns whether requests posted on `qp` may wait for the next poll. If no poll comes, the progress thread sends
    /// them: soon, where it sleeps between polls; otherwise when earlier packets of the connection are acknowledged,
    /// like Nagle's algorithm (RFC 896).
    pub(super) fn may_gather(&self, now: Instant, qp: QpNumber) -> bool {
        self.is_parked || (now < self.polled + LATELY && self.rnic.has_begun(qp))
    }
    /// Receives packets; returns whether to go on with more, and whether it is certain that none wait. The received
    /// packets are answered together: one acknowledgement covers those before it.
    fn take(&mut self, cx: &mut Cx<'_>, calls: &mut usize, polls: bool) -> (bool, bool) {
        let Self { rnic, network, connections, .. } = self;
        let (enough, completed) = (network.counters.received + TAKEN, rnic.completed());
        while *calls > 0 {
            *calls -= 1;
            // Polling threads skip sockets that had no packets so far: those are left to the progress thread.
            let took = network.receive(!polls, |route, headers, payload, seen| {
                if headers.bth.destination == MANAGEMENT {
                    connections.handle(cx, route, headers, payload);
                    return;
                }
                let mut arrival = Arrival { payload, route, length: seen.length };
                rnic.set_waited(seen.waited);
                rnic.handle_packet(cx, &mut arrival, route, headers, payload.len() as u32);
            });
            if !took || (polls && rnic.completed() > completed) {
                return (false, !took);
            }
            if network.counters.received >= enough {
                return (true, false);
            }
        }
        (false, false)
    }

    /// Sends packets until none are ready or the socket is full.
    pub(super) fn transmit(&mut self, cx: &mut Cx<'_>) {
        self.gathered = 0;
        let Self { rnic, network, connections, outgoing, payload, .. } = self;
        if !network.has_room() {
            return;
        }
        while rnic.poll_transmit(cx, payload, outgoing) || connections.poll_transmit(payload, outgoing) {
            // A lost packet counts as sent: the other side never hears of it, and retries handle it.
            if network.send(outgoing, payload) == Sent::Blocked {
                return;
            }
        }
        network.flush();
    }
    /// Repeats the last acknowledgement of a queue pair that is about to be destroyed, each time in a packet of its
    /// own.
    pub(super) fn say_last_words(&mut self, qp: QpNumber) {
        for _ in 0..LAST_WORDS {
            let Some(word) = self.rnic.last_word(qp) else { return };
            self.network.send(&word, &Payload::default());
            self.network.flush();
        }
    }
    /// Reports events to applications.
    pub(super) fn tell(&mut self, now: Instant) {
        while let Some(qp) = self.connections.manager.poll_lost() {
            // A thread that waits for a completion of this queue pair would wait for ever.
            let change = QpChange { state: Some(QpState::Error), ..QpChange::default() };
            // The application may have destroyed it.
            let _ = self.rnic.modify_qp(&mut Cx::at(now), qp, &change);
        }
        while let Some(qp) = self.connections.manager.poll_agreed() {
            // The application may have destroyed this queue pair, too.
            let _ = self.rnic.agree(qp);
        }
        self.tell_of_requests();
        self.connections.tell(&self.rnic, now);
    }
    /// Reports events of requests and queue pairs.
    pub(super) fn tell_of_requests(&mut self) {
        while let Some(event) = self.rnic.poll_event() {
            self.told += 1;
            self.owners.tell(event);
        }
    }
    pub(super) fn completions(&mut self, cq: CqId, most: usize, take: &mut impl FnMut(&Completion)) -> usize {
        (0..most).map_while(|_| self.rnic.poll_cq(cq)).inspect(|completion| take(completion)).count()
    }
    /// Returns whether packets wait because a socket is full.
    pub(super) fn is_blocked(&self) -> bool {
        self.network.is_blocked()
    }
    /// Returns the latest time to look again.
    pub(super) fn deadline(&self) -> Instant {
        let deadlines = [self.rnic.poll_timeout(), self.connections.deadline()];
        deadlines.into_iter().flatten().min().unwrap_or(Instant::NEVER)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use selvedge_nic::verbs::{
        Access, Attached, Capacities, Data, Handshake, Operation, PdId, QpInit, QpOptions, Route, SendRequest, Service,
    };
    use selvedge_transport::FeedbackConfig;
    use selvedge_transport::congestion::none::NoneConfig;
    use selvedge_units::{Bytes, Psn};

    use super::super::settings;
    use super::*;

    const HERE: Ipv6Addr = Ipv4Addr::LOCALHOST.to_ipv6_mapped();

    pub(in crate::rnic) fn state() -> State {
        let network = Network::open(&[]).expect("the system has sockets");
        State::new(network, || Ok(1)).expect("valid settings")
    }

    /// Returns settings of a queue pair that holds four send requests.
    pub(in crate::rnic) fn small_qp_init(service: Service, pd: PdId, cq: CqId) -> QpInit {
        QpInit {
            service,
            pd,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            capacities: Capacities { send_requests: 4, inline: 16, ..Capacities::default() },
            all_signaled: true,
            recovery: settings::recovery().expect("a valid setting"),
            congestion: NoneConfig {}.into(),
            feedback: FeedbackConfig::default(),
            overhead: Bytes::ZERO,
            window: settings::WINDOW,
            ack_every: settings::ACK_EVERY,
            options: QpOptions::default(),
        }
    }

    /// Creates a queue pair without a connection, and its completion queue; returns both.
    pub(in crate::rnic) fn queue_pair(rnic: &mut Rnic, service: Service) -> (QpNumber, CqId) {
        let (pd, cq) = (rnic.alloc_pd(), rnic.create_cq(16).expect("a valid depth"));
        let qp = rnic.create_qp(small_qp_init(service, pd, cq)).expect("the settings are valid");
        let handshake = Handshake {
            access: Access::NONE,
            route: Route { local: HERE, remote: HERE, ..Route::NOWHERE },
            destination: QpNumber(0xff_fff0),
            mtu: 1_024,
            send_psn: Psn::new(0),
            receive_psn: Psn::new(0),
            reads: 1,
            timeout: 31,
            retries: 7,
            not_ready_timer: 0,
        };
        for step in handshake.steps() {
            rnic.modify_qp(&mut Cx::at(Instant::ZERO), qp, &step).expect("a valid transition");
        }
        (qp, cq)
    }

    pub(in crate::rnic) fn post(state: &mut State, qp: QpNumber) {
        let request = SendRequest {
            id: 1,
            operation: Operation::Send(Attached::Nothing),
            data: Data::Inline(vec![1]),
            signaled: true,
            solicited: false,
            fence: false,
            destination: None,
        };
        state.rnic.post_send(&mut Cx::at(Instant::ZERO), qp, request).expect("the send queue is not full");
    }

    #[test]
    fn what_is_posted_waits_for_its_own_connection_alone() {
        let mut state = state();
        let [silent, idle] = [(); 2].map(|()| queue_pair(&mut state.rnic, Service::Reliable).0);
        post(&mut state, silent);
        state.transmit(&mut Cx::at(Instant::ZERO));
        assert!(state.may_gather(Instant::ZERO, silent), "something is under way");
        post(&mut state, idle);
        assert!(!state.may_gather(Instant::ZERO, idle), "nothing of it will be heard of");
        assert!(!state.may_gather(Instant::ZERO + LATELY, silent), "nobody polls");
    }
}
