//! What the NIC's lock guards, and its work: packets in, what is due, packets out, and who is told of it.

use std::io;

use selvedge_nic::verbs::{Completion, CqId, Payload, QpChange, QpState, Rnic, Transmit, scheme};
use selvedge_transport::Cx;
use selvedge_units::{Duration, Instant, QpNumber};

use super::arrival::Arrival;
use super::connections::{Connections, MANAGEMENT};
use super::events::Owners;
use super::network::{Network, Sent};
use super::settings;
use super::timekeeping::{LATE, Timekeeping};

/// Packets that are taken before what they lead to is sent: acknowledgements speak for as many, and the other side need
/// not wait for more.
const TAKEN: u64 = 64;

/// Who polled so lately will do so again soon.
const LATELY: Duration = Duration::from_us(100);

/// How often a queue pair that is destroyed says what it has acknowledged, so that the other side need not ask nobody.
const LAST_WORDS: usize = 4;

/// What the lock guards.
pub(super) struct State {
    pub(super) rnic: Rnic,
    pub(super) network: Network,
    pub(super) owners: Owners,
    pub(super) connections: Connections,
    /// The packet that was taken from the engine last, and its payload.
    pub(super) outgoing: Transmit,
    pub(super) payload: Payload,
    /// Events that applications were told of.
    pub(super) told: u64,
    /// Calls that posted since anything was sent.
    pub(super) gathered: u32,
    /// The latest time that was seen.
    seen: Instant,
    /// When an application polled last and found nothing at first.
    pub(super) polled: Instant,
    /// When the thread will look again by itself.
    pub(super) asleep_until: Instant,
    /// The thread stays away as long as applications poll.
    pub(super) is_parked: bool,
}

impl State {
    /// With nothing yet. `entropy` gives numbers that nobody can guess.
    ///
    /// # Errors
    /// When it has none.
    pub(super) fn new(mut network: Network, entropy: impl Fn() -> io::Result<u32>) -> io::Result<Self> {
        let first = entropy()? % (1 << Rnic::QP_BITS);
        let mut rnic = Rnic::new(u32::from(network.slot()), first);
        let paths = settings::paths().map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        network.hears_marks = paths.is_some();
        rnic.control_paths(paths);
        let mut connections = Connections::new(u64::from(entropy()?), network.slot(), entropy()?);
        // Who may not choose it is told when a queue pair is made.
        let recovery = settings::recovery().ok().filter(|_| !network.is_standard());
        connections.manager.prefer(recovery.as_ref().and_then(scheme));
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
    /// The time for whoever gives the engine something to do. It never goes back.
    pub(super) fn look(&mut self, clock: &Timekeeping) -> Cx<'static> {
        self.seen = self.seen.max(clock.now());
        Cx::at(self.seen)
    }
    /// Takes what has arrived, handles what is due, sends what there is to send, and so on: until nothing arrives any
    /// more, packets were asked for so often, or, for somebody who `polls`, a request has completed.
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
                // Whoever waits for a completion has it first: what is to be sent leaves with the answer, or the next
                // poll, or the thread sends it.
                self.gathered += 1;
                self.tell(cx.now);
                return;
            }
            // What is due may have its answer among the packets that wait, but they may not wait for ever.
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
                // Nobody listened after all.
                self.transmit(&mut cx);
            }
            if !goes_on {
                return;
            }
        }
    }
    /// Whether what was posted on `qp` may wait for the next poll. If none comes after all, the thread sends it: soon,
    /// where it stays away; else when what is under way on the same connection is acknowledged, as Nagle has it (RFC
    /// 896).
    pub(super) fn may_gather(&self, now: Instant, qp: QpNumber) -> bool {
        self.is_parked || (now < self.polled + LATELY && self.rnic.has_begun(qp))
    }
    /// Takes packets that have arrived; returns whether to go on with more, and whether there are none for sure. What
    /// is said to all that were taken is said once: acknowledgements speak for those before them.
    fn take(&mut self, cx: &mut Cx<'_>, calls: &mut usize, polls: bool) -> (bool, bool) {
        let Self { rnic, network, connections, .. } = self;
        let (enough, completed) = (network.counters.received + TAKEN, rnic.completed());
        while *calls > 0 {
            *calls -= 1;
            // Whoever polls is in a hurry: sockets that have been of no use so far are for the thread.
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

    /// Sends what there is to send, as far as the socket goes.
    pub(super) fn transmit(&mut self, cx: &mut Cx<'_>) {
        self.gathered = 0;
        let Self { rnic, network, connections, outgoing, payload, .. } = self;
        if !network.has_room() {
            return;
        }
        while rnic.poll_transmit(cx, payload, outgoing) || connections.poll_transmit(payload, outgoing) {
            // What is lost the other side never hears of, and retries run out.
            if network.send(outgoing, payload) == Sent::Blocked {
                return;
            }
        }
        network.flush();
    }
    /// A queue pair is about to be forgotten: says once more what it has acknowledged, each time in a packet of its
    /// own.
    pub(super) fn say_last_words(&mut self, qp: QpNumber) {
        for _ in 0..LAST_WORDS {
            let Some(word) = self.rnic.last_word(qp) else { return };
            self.network.send(&word, &Payload::default());
            self.network.flush();
        }
    }
    /// Tells applications what has happened.
    pub(super) fn tell(&mut self, now: Instant) {
        while let Some(qp) = self.connections.manager.poll_lost() {
            // Whoever waits for a completion of it would wait for ever.
            let change = QpChange { state: Some(QpState::Error), ..QpChange::default() };
            // The application may have destroyed it.
            let _ = self.rnic.modify_qp(&mut Cx::at(now), qp, &change);
        }
        while let Some(qp) = self.connections.manager.poll_agreed() {
            // Likewise.
            let _ = self.rnic.agree(qp);
        }
        self.tell_of_requests();
        self.connections.tell(&self.rnic, now);
    }
    /// Tells what has happened to requests and queue pairs.
    pub(super) fn tell_of_requests(&mut self) {
        while let Some(event) = self.rnic.poll_event() {
            self.told += 1;
            self.owners.tell(event);
        }
    }
    pub(super) fn completions(&mut self, cq: CqId, most: usize, take: &mut impl FnMut(&Completion)) -> usize {
        (0..most).map_while(|_| self.rnic.poll_cq(cq)).inspect(|completion| take(completion)).count()
    }
    /// Whether a socket had no room for what was to be sent.
    pub(super) fn is_blocked(&self) -> bool {
        self.network.is_blocked()
    }
    /// When to look again at the latest.
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
    use selvedge_transport::CongestionConfig;
    use selvedge_units::{Bytes, Psn};

    use super::super::settings;
    use super::*;

    const HERE: Ipv6Addr = Ipv4Addr::LOCALHOST.to_ipv6_mapped();

    pub(in crate::rnic) fn state() -> State {
        let network = Network::open(&[]).expect("there are sockets");
        State::new(network, || Ok(1)).expect("a number")
    }

    /// Settings of a queue pair with room for four send requests.
    pub(in crate::rnic) fn small_qp_init(service: Service, pd: PdId, cq: CqId) -> QpInit {
        QpInit {
            service,
            pd,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            capacities: Capacities { send_requests: 4, inline: 16, ..Capacities::default() },
            all_signaled: true,
            recovery: settings::recovery().expect("it is right"),
            congestion: CongestionConfig::None(Default::default()),
            overhead: Bytes::ZERO,
            window: settings::WINDOW,
            ack_every: settings::ACK_EVERY,
            options: QpOptions::default(),
        }
    }

    /// A queue pair that is connected with nobody, and its completion queue.
    pub(in crate::rnic) fn queue_pair(rnic: &mut Rnic, service: Service) -> (QpNumber, CqId) {
        let (pd, cq) = (rnic.alloc_pd(), rnic.create_cq(16).expect("it is right"));
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
            rnic.modify_qp(&mut Cx::at(Instant::ZERO), qp, &step).expect("the step is right");
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
        state.rnic.post_send(&mut Cx::at(Instant::ZERO), qp, request).expect("there is room");
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
