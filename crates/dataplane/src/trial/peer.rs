//! One of the two processes of a trial.

use std::io;
use std::sync::Arc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use selvedge_nic::verbs::{
    Access, Capacities, Completion, CompletionKind, CqId, Data, Handshake, Operation, QpInit, QpOptions,
    ReceiveRequest, Region, Remote, Route, SendRequest, Service, Sge, Stats, Status,
};
use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::{FeedbackConfig, Scheme};
use selvedge_units::{Bytes, Instant, Psn, QpNumber};

use super::{Address, Done, Message, MessageKind, Terms};
use crate::clock::Clock;
use crate::rnic::{Adapter, Channel, Device, Owner, Refusal};

/// One end of a connection: this process's RNIC, memory and queue pair.
pub struct Peer {
    adapter: &'static Adapter,
    terms: Terms,
    memory: u64,
    key: u32,
    cq: CqId,
    completions: Arc<Channel<u64>>,
    qp: QpNumber,
    gid: std::net::Ipv6Addr,
    other: Option<Address>,
    clock: Clock,
    /// Last known value of the word that Atomics work on.
    seen: u64,
}

const COMPLETIONS: u32 = 1 << 16;
const FIRST: Psn = Psn::new(0);
/// Code of 10 us: the time that a requester waits for a receive request after an RNR NAK.
const NOT_READY: u8 = 1;
/// Completions taken per poll.
const AT_ONCE: usize = 64;
/// Time in milliseconds that a responder waits for a completion before it asks whether the trial is over. It must not
/// poll: the RNIC's thread leaves the work to threads that poll.
const PATIENCE: u8 = 20;

impl Peer {
    /// Opens an end, on the first device that is up with an IPv4 address that is not loopback.
    ///
    /// # Errors
    /// Returns an error without such a device, or when the system has no sockets, threads or memory left.
    pub fn open(terms: &Terms) -> io::Result<Self> {
        let gid = Device::all()?.into_iter().filter(|device| device.is_up).find_map(|device| {
            device.gids.into_iter().find(|gid| gid.to_ipv4_mapped().is_some_and(|v4| !v4.is_loopback()))
        });
        let gid = gid.ok_or_else(|| io::Error::other("no device with an IPv4 address"))?;
        let adapter = Adapter::get()?;
        // Congestion control of paths is off: a trial compares exactly the terms.
        adapter.command(|rnic, _| rnic.control_paths(None)).map_err(refused)?;
        let pd = adapter.command(|rnic, _| rnic.alloc_pd()).map_err(refused)?;
        // A word for Atomics comes first. The memory is never freed: the RNIC may access it as long as the process
        // lives.
        let length = u64::from(terms.longest).next_multiple_of(8).max(64);
        let memory: &'static mut [u64] = vec![0; (length / 8) as usize].leak();
        let start = memory.as_mut_ptr() as u64;
        let region = Region { pd, address: start, start, length, access: Access::ALL };
        #[expect(unsafe_code, reason = "registers memory")]
        // SAFETY: leaked above; no reference to it is used any more.
        let key = unsafe { adapter.reg_mr(region) }.map_err(refused)?;
        let completions = Arc::new(Channel::new()?);
        let owner =
            Owner { cookie: 0, completions: Some(Arc::clone(&completions)), notices: Arc::new(Channel::new()?) };
        let cq = adapter.create_cq(COMPLETIONS, owner.clone()).map_err(refused)?;
        let init = QpInit {
            service: Service::Reliable,
            pd,
            send_cq: cq,
            receive_cq: cq,
            srq: None,
            capacities: Capacities {
                send_requests: terms.depth,
                receive_requests: terms.receives,
                send_pieces: 1,
                receive_pieces: 1,
                inline: 0,
            },
            all_signaled: true,
            recovery: terms.recovery.params().map_err(io::Error::other)?,
            congestion: NoneConfig {}.into(),
            feedback: FeedbackConfig::default(),
            overhead: Bytes::ZERO,
            window: terms.window,
            ack_every: 1,
            options: QpOptions { credits: terms.credits, ..QpOptions::default() },
        };
        let qp = adapter.create_qp(init, owner).map_err(refused)?;
        let (terms, clock) = (*terms, Clock::start());
        Ok(Self { adapter, terms, memory: start, key, cq, completions, qp, gid, other: None, clock, seen: 0 })
    }

    /// Returns the address by which the other end reaches this one.
    pub fn address(&self) -> Address {
        Address { gid: self.gid, qp: self.qp.0, key: self.key, memory: self.memory }
    }

    /// Connects this end with the other one. Both know which recovery the other uses, as a connection manager would
    /// tell them (IRN, section 7).
    ///
    /// # Errors
    /// Returns an error when the RNIC refuses the [`Terms`].
    pub fn connect(&mut self, other: &Address) -> io::Result<()> {
        self.other = Some(*other);
        let (qp, terms) = (self.qp, self.terms);
        let traffic_class = terms.traffic_class;
        let route = Route { local: self.gid, remote: other.gid, traffic_class, hop_limit: 64, flow_label: 0 };
        let handshake = Handshake {
            access: Access::ALL,
            route,
            destination: QpNumber(other.qp),
            mtu: terms.mtu,
            send_psn: FIRST,
            receive_psn: FIRST,
            reads: terms.reads,
            timeout: terms.timeout,
            retries: terms.retries,
            not_ready_timer: NOT_READY,
        };
        for step in handshake.steps() {
            self.adapter
                .command(|rnic, cx| rnic.modify_qp(cx, qp, &step))
                .and_then(|done| Ok(done?))
                .map_err(refused)?;
        }
        self.adapter.command(|rnic, _| rnic.agree(qp)).and_then(|done| Ok(done?)).map_err(refused)?;
        (0..terms.receives).try_for_each(|_| self.post_receive())
    }

    /// Posts `messages` in order, with at most `depth` outstanding, and calls `done` for each completed one.
    ///
    /// # Errors
    /// Returns an error that names the message and its status when one fails.
    pub fn ask(&mut self, messages: &[Message], mut done: impl FnMut(Done)) -> io::Result<()> {
        let began = self.clock.now();
        let since = |at: Instant| at.since(began);
        let mut begun = Vec::with_capacity(messages.len());
        let mut finished = 0;
        while finished < messages.len() {
            while begun.len() < messages.len() && begun.len() - finished < self.terms.depth as usize {
                begun.push(since(self.clock.now()));
                self.post(begun.len() as u64 - 1, &messages[begun.len() - 1])?;
            }
            for completion in self.poll()? {
                if completion.status != Status::Success {
                    let why = format!("message {} failed: {:?}", completion.id, completion.status);
                    return Err(io::Error::other(why));
                }
                let number = completion.id;
                done(Done { number, begin: begun[number as usize], end: since(self.clock.now()) });
                finished += 1;
            }
        }
        Ok(())
    }

    /// Responds to requests until `is_over` returns true.
    ///
    /// # Errors
    /// Returns an error when a receive request fails.
    pub fn answer(&mut self, mut is_over: impl FnMut() -> bool) -> io::Result<()> {
        self.adapter.arm_cq(self.cq, false).map_err(refused)?;
        while !is_over() {
            if !self.awaits_completion()? {
                continue;
            }
            for completion in self.poll()? {
                let is_receive = matches!(completion.kind, CompletionKind::Receive | CompletionKind::ReceiveWrite);
                if completion.status != Status::Success {
                    return Err(io::Error::other(format!("a receive request failed: {:?}", completion.status)));
                }
                if is_receive {
                    self.post_receive()?;
                }
            }
        }
        Ok(())
    }

    /// Waits at most [`PATIENCE`] for a completion; returns whether there may be one, and asks for the next
    /// notification.
    fn awaits_completion(&self) -> io::Result<bool> {
        let mut wanted = [PollFd::new(self.completions.as_fd(), PollFlags::POLLIN)];
        if poll(&mut wanted, PollTimeout::from(PATIENCE))? == 0 {
            return Ok(false);
        }
        self.completions.take(|_| ())?;
        self.adapter.arm_cq(self.cq, false).map_err(refused)?;
        Ok(true)
    }

    /// Returns the statistics of this end's RNIC.
    ///
    /// # Errors
    /// Returns an error in a forked child of the process that opened it.
    pub fn stats(&self) -> io::Result<Stats> {
        self.adapter.command(|rnic, _| rnic.stats()).map_err(refused)
    }

    fn poll(&mut self) -> io::Result<Vec<Completion>> {
        let mut found = Vec::new();
        self.adapter.poll_cq(self.cq, AT_ONCE, |completion| found.push(*completion)).map_err(refused)?;
        Ok(found)
    }

    fn post_receive(&self) -> io::Result<()> {
        let request = ReceiveRequest { id: 0, scatter: vec![self.sge(self.terms.longest)] };
        let qp = self.qp;
        self.adapter.post_recv(|rnic| rnic.post_recv(qp, request)).and_then(|done| Ok(done?)).map_err(refused)
    }

    fn post(&mut self, id: u64, message: &Message) -> io::Result<()> {
        let Some(other) = self.other else { return Err(io::Error::other("it is not connected")) };
        let remote = Remote { address: other.memory, key: other.key };
        let immediate = |wanted: bool| wanted.then(|| (id as u32).to_be_bytes());
        let operation = match message.kind {
            MessageKind::Write { immediate: wanted } => Operation::Write { remote, immediate: immediate(wanted) },
            MessageKind::Read => Operation::Read(remote),
            MessageKind::Send(attached) => Operation::Send(attached),
            MessageKind::FetchAdd => Operation::FetchAdd { remote, add: 1 },
            MessageKind::CompareSwap => {
                self.seen += 1;
                Operation::CompareSwap { remote, compare: self.seen - 1, swap: self.seen }
            }
        };
        let request = SendRequest {
            id,
            operation,
            data: Data::Gather(vec![self.sge(message.size.get() as u32)]),
            signaled: true,
            solicited: false,
            fence: false,
            destination: None,
        };
        let qp = self.qp;
        self.adapter
            .post_send(qp, |rnic, cx| rnic.post_send(cx, qp, request))
            .and_then(|done| Ok(done?))
            .map_err(refused)
    }

    fn sge(&self, length: u32) -> Sge {
        Sge { address: self.memory, length, key: self.key }
    }
}

fn refused(refusal: Refusal) -> io::Error {
    io::Error::other(format!("the RNIC refuses: {refusal:?}"))
}
