//! The connection below a socket: an identifier of the connection manager, and once its device is known, a queue pair
//! with its buffers. This module is the unsafe half of a socket: everything here is used under the socket's lock, and
//! functions on identifiers under [`MANAGER`], too.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_dataplane::rnic::{Adapter, Channel};
use selvedge_nic::verbs::{
    Attached, Completion, CqId, Data, Limits, Operation, ReceiveRequest, Remote, SendRequest, Sge, Status,
};
use selvedge_units::QpNumber;

use super::super::abi::rdma_conn_param;
use super::super::address::{self, CAddress};
use super::super::connect::{accept, bind_addr, connect, disconnect, listen, reject, resolve};
use super::super::event::EventChannel;
use super::super::id::{Id, RELIABLE, TCP, created, destroy_id, set_option};
use super::super::pair;
use super::memory::Memory;
use super::stream::{CONTROL_SLOTS, Control, ENTRIES, ENTRY, Entry, Sizes, Transfer};
use super::wire::{HELLO, Message, Region};
use crate::abi::ibv_qp_init_attr;
use crate::borrowed::{Borrowed, Exclusive, Given, Link, store, zeroed};
use crate::channel::{CompletionChannel, ibv_create_comp_channel, ibv_destroy_comp_channel};
use crate::completion::{Cq, ibv_create_cq, ibv_destroy_cq};
use crate::error;
use crate::limits::least;
use crate::memory::{Pd, ibv_alloc_pd, ibv_dealloc_pd};

/// Receives posted beyond those that the peer has credits for, because its control messages need no credits.
const SPARE: u16 = 2 * CONTROL_SLOTS;
/// Work request number of receives. The number of a send is the message that it carries.
const RECEIVE: u64 = 1 << 63;

/// Lock held while identifiers are used: the thread of [`super::service`] takes their events.
static MANAGER: Mutex<()> = Mutex::new(());

pub(super) fn manager() -> MutexGuard<'static, ()> {
    MANAGER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn last_error() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Converts C's 0 or -1 with `errno` to a result.
fn checked(code: c_int) -> Result<(), c_int> {
    if code == 0 { Ok(()) } else { Err(last_error()) }
}

/// The descriptor that programs call a socket by: readable when a requested completion event has arrived.
#[derive(Debug)]
pub(super) struct Descriptor {
    /// The completion channel; `None` once it is destroyed.
    abi: Option<Given<CompletionChannel>>,
    /// The queue behind the descriptor.
    pub(super) channel: Arc<Channel<u64>>,
}

// SAFETY: nothing of it belongs to a thread, and what it points to does not change.
unsafe impl Send for Descriptor {}
// SAFETY: nothing of it belongs to a thread, and what it points to does not change.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    /// Creates a descriptor.
    ///
    /// # Errors
    /// Returns `errno` if the process may not have more descriptors.
    pub(super) fn new() -> Result<Self, c_int> {
        // The context, which is not needed, is only given back to whoever asks.
        let abi = ibv_create_comp_channel(ptr::null_mut()).ok_or_else(last_error)?;
        let channel = abi.join();
        abi.leave();
        Ok(Self { abi: Some(abi), channel })
    }
    pub(super) fn number(&self) -> c_int {
        self.channel.descriptor()
    }
    /// Duplicates the descriptor; the kernel chooses the lowest free number.
    ///
    /// # Errors
    /// Returns `EMFILE` if the process may not have more descriptors.
    pub(super) fn duplicate(&self) -> Result<OwnedFd, c_int> {
        self.channel.as_fd().try_clone_to_owned().map_err(|problem| error::of_io(&problem))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // Completion queues that announce there are gone: a socket drops its descriptor last.
        if let Some(channel) = self.abi.take() {
            ibv_destroy_comp_channel(channel);
        }
    }
}

/// An identifier owned by this module; `None` once it is destroyed.
#[derive(Debug)]
pub(super) struct Identifier(Option<Given<Id>>);

// SAFETY: identifiers belong to no thread; the module's documentation says who uses one when.
unsafe impl Send for Identifier {}

impl Identifier {
    /// Creates an identifier, whose events come through `channel` with the name `socket`.
    ///
    /// # Errors
    /// Returns `errno` if the system or the NIC has nothing left.
    pub(super) fn new(channel: EventQueue, socket: usize) -> Result<Self, c_int> {
        created(Some(channel.0), ptr::without_provenance_mut(socket), TCP).map(|id| Self(Some(id)))
    }
    /// Takes over the identifier of a connection request; from now on its events have the name `socket`.
    pub(super) fn of_request(id: Given<Id>, socket: usize) -> Self {
        store!(id.abi, context = ptr::without_provenance_mut(socket));
        Self(Some(id))
    }
    fn id(&self) -> Borrowed<'_, Id> {
        self.0.as_ref().expect("the identifier lives until it is dropped").borrow()
    }

    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.id().state().source
    }
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.id().state().destination
    }
    /// Returns the largest payload of a packet on the identifier's path in bytes.
    pub(super) fn payload(&self) -> c_int {
        128 << self.id().state().mtu.clamp(1, 5)
    }
    /// Returns whether a device was chosen by the identifier's address.
    fn has_device(&self) -> bool {
        self.id().verbs().is_some()
    }

    /// Sets an option: sharing of the port, or the type of service.
    ///
    /// # Errors
    /// Returns `errno` if the option is refused.
    pub(super) fn set(&self, option: c_int, value: &[u8]) -> Result<(), c_int> {
        const OF_IDENTIFIER: c_int = 0;
        let value = (value.as_ptr().cast_mut().cast(), value.len());
        // SAFETY: so many bytes are there, which are only read.
        checked(unsafe { set_option(self.id(), OF_IDENTIFIER, option, value.0, value.1) })
    }
    /// Binds the identifier to an address.
    ///
    /// # Errors
    /// Returns `errno`, for example if the port is taken.
    pub(super) fn bind(&self, to: SocketAddr) -> Result<(), c_int> {
        checked(bind_addr(self.id(), CAddress::of(&address::written(to))))
    }
    /// Listens for connection requests.
    ///
    /// # Errors
    /// Returns `errno`, for example if the port is shared.
    pub(super) fn listen(&self) -> Result<(), c_int> {
        checked(listen(self.id(), 0))
    }
    /// Finds the route to an address.
    ///
    /// # Errors
    /// Returns `errno`, for example if there is none.
    pub(super) fn resolve(&self, to: SocketAddr) -> Result<(), c_int> {
        resolve(&self.id(), None, to).map_err(|problem| error::of_io(&problem))?;
        if self.has_device() { Ok(()) } else { Err(libc::ENETUNREACH) }
    }
    /// Requests a connection with the private data `hello`, or accepts the requested one if `is_answer`.
    ///
    /// # Errors
    /// Returns `errno` if the connection manager refuses.
    pub(super) fn greet(&self, hello: &[u8; HELLO], is_answer: bool) -> Result<(), c_int> {
        const RETRIES: u8 = 7;
        let parameters = rdma_conn_param {
            private_data: hello.as_ptr().cast(),
            private_data_len: HELLO as u8,
            responder_resources: 0,
            initiator_depth: 0,
            flow_control: 1,
            retry_count: RETRIES,
            rnr_retry_count: RETRIES,
            srq: 0,
            qp_num: 0,
        };
        let (id, parameters) = (self.id(), Some(Borrowed::of(&parameters)));
        checked(if is_answer { accept(id, parameters) } else { connect(id, parameters) })
    }
    pub(super) fn refuse(&self) {
        // SAFETY: there are no private data. A connection that is gone needs no refusal.
        unsafe { reject(self.id(), ptr::null(), 0) };
    }
    /// Ends the connection, and takes its queue pair to the error state.
    pub(super) fn end(&self) {
        disconnect(self.id());
    }
    /// Takes the queue pair to the error state, which flushes all posted requests; the connection manager's state is
    /// unchanged.
    pub(super) fn stop(&self) {
        pair::fail_all(&self.id());
    }
}

impl Drop for Identifier {
    fn drop(&mut self) {
        // Events of the identifier were taken and acknowledged under the lock that is held here.
        if let Some(id) = self.0.take() {
            destroy_id(id);
        }
    }
}

/// The event channel of all sockets, which lives as long as the process.
#[derive(Clone, Copy)]
pub(super) struct EventQueue(pub(super) Borrowed<'static, EventChannel>);

// SAFETY: a channel belongs to no thread, and does not change but for its queue, which has a lock.
unsafe impl Send for EventQueue {}
// SAFETY: a channel belongs to no thread, and does not change but for its queue, which has a lock.
unsafe impl Sync for EventQueue {}

/// A protection domain of one connection: with a guessed key, a peer reaches no memory of another connection.
/// `None` once it is deallocated.
#[derive(Debug)]
struct Domain(Option<Given<Pd>>);

impl Drop for Domain {
    fn drop(&mut self) {
        // The domain's objects are gone.
        if let Some(domain) = self.0.take() {
            ibv_dealloc_pd(domain);
        }
    }
}

/// A completion queue; `None` once it is destroyed.
#[derive(Debug)]
struct Queue(Option<Given<Cq>>);

impl Drop for Queue {
    fn drop(&mut self) {
        // The queue's queue pair is gone.
        if let Some(queue) = self.0.take() {
            ibv_destroy_cq(queue);
        }
    }
}

/// A queue pair of an identifier, which outlives it.
struct Pair(Link<Id>);

impl Drop for Pair {
    fn drop(&mut self) {
        // The completion queue belongs to another object.
        pair::destroy_qp(self.0.get());
    }
}

/// The queue pair and the buffers of a connection. It is dropped before its identifier, under [`MANAGER`].
pub(super) struct Endpoint {
    // Fields are dropped in this order.
    _pair: Pair,
    _queue: Queue,
    ring: Memory,
    buffer: Memory,
    list: Memory,
    _domain: Domain,
    adapter: &'static Adapter,
    cq: CqId,
    number: QpNumber,
}

// SAFETY: what it points to belongs to no thread; the socket's lock is held where it is used.
unsafe impl Send for Endpoint {}

/// Event of a connection, as its completion queues report them in order.
#[derive(Debug)]
pub(super) enum Arrival {
    /// An arrived message, and the length of its Write in bytes.
    Message(Message, u32),
    /// An arrived message that no peer may send.
    Unknown,
    /// A sent message that the peer has acknowledged.
    Sent(Message),
    /// A failed send or receive, with the reason.
    Lost(Status),
}

impl Endpoint {
    /// Returns the wanted queue sizes, limited to those of the identifier's device.
    ///
    /// # Errors
    /// Returns `ENODEV` without a device.
    pub(super) fn fit(id: &Identifier, wanted: Sizes) -> Result<Sizes, c_int> {
        let id = id.id();
        let context = id.verbs().ok_or(libc::ENODEV)?.whole();
        let most = least(Limits::HERE.requests, context.profile.max_qp_wr);
        let most = u16::try_from(most).unwrap_or(u16::MAX - 1).max(Sizes::LEAST_QUEUE + SPARE) - SPARE;
        let fit = |queue: u16| queue.clamp(Sizes::LEAST_QUEUE, most);
        Ok(Sizes { send_queue: fit(wanted.send_queue), receive_queue: fit(wanted.receive_queue), ..wanted })
    }

    /// Creates the queues, the queue pair and the buffers of a connection, and posts receives.
    ///
    /// # Errors
    /// Returns `errno` if the system or the NIC has nothing left.
    pub(super) fn new(id: &Identifier, descriptor: &Descriptor, sizes: Sizes) -> Result<Self, c_int> {
        let id = id.id();
        let context = id.verbs().ok_or(libc::ENODEV)?;
        let domain = ibv_alloc_pd(context).ok_or_else(last_error)?;
        // The domain goes after the memory, by the order of fields and of these variables.
        let domain = Domain(Some(domain));
        let pd = domain.0.as_ref().ok_or(libc::ENOMEM)?.borrow();
        let ring = Memory::new(pd, sizes.send_buffer as usize, false)?;
        let buffer = Memory::new(pd, sizes.receive_buffer as usize, true)?;
        let list = Memory::new(pd, (ENTRIES * ENTRY) as usize, true)?;
        let receives = u32::from(sizes.receive_queue) + u32::from(SPARE);
        let depth = (u32::from(sizes.send_queue) + receives) as c_int;
        let channel = descriptor.abi.as_ref().map(Given::borrow);
        let cq = ibv_create_cq(context, depth, ptr::null_mut(), channel, 0).ok_or_else(last_error)?;
        let (number_of_queue, address) = (cq.id, cq.as_ptr().cast());
        let queue = Queue(Some(cq));
        let mut wanted: ibv_qp_init_attr = zeroed();
        (wanted.send_cq, wanted.recv_cq) = (address, address);
        (wanted.qp_type, wanted.sq_sig_all) = (RELIABLE, 1);
        wanted.cap.max_send_wr = sizes.send_queue.into();
        wanted.cap.max_recv_wr = receives;
        (wanted.cap.max_send_sge, wanted.cap.max_recv_sge) = (2, 1);
        wanted.cap.max_inline_data = ENTRY;
        checked(pair::create_qp(id, Some(pd), Exclusive::of(&mut wanted)))?;
        // SAFETY: a socket drops its identifier after its endpoint.
        let pair = Pair(unsafe { Link::to(id) });
        let number = id.qp().ok_or(libc::EIO)?.number;
        let (adapter, cq) = (id.adapter, number_of_queue);
        let endpoint = Self { _pair: pair, _queue: queue, ring, buffer, list, _domain: domain, adapter, cq, number };
        endpoint.post_receives(receives)?;
        Ok(endpoint)
    }

    fn post_receives(&self, count: u32) -> Result<(), c_int> {
        if count == 0 {
            return Ok(());
        }
        let posted = self.adapter.post_recv(|rnic| {
            (0..count)
                .try_for_each(|_| rnic.post_recv(self.number, ReceiveRequest { id: RECEIVE, scatter: Vec::new() }))
        });
        posted.map_err(error::of)?.map_err(error::of_verbs)
    }

    /// Returns the addresses of the list and of the buffer, with their remote keys.
    pub(super) fn places(&self) -> [(u64, u32); 2] {
        [&self.list, &self.buffer].map(|memory| (memory.address(), memory.key()))
    }

    /// Reads an entry of the list, which the peer's Write has just filled.
    pub(super) fn entry(&self, index: u32) -> Region {
        let mut bytes = [0; ENTRY as usize];
        self.list.read((index * ENTRY) as usize, &mut bytes);
        Entry::decode(&bytes)
    }

    /// Copies received bytes out of the buffer.
    pub(super) fn copy_out(&self, at: u32, to: &mut [u8]) {
        self.buffer.read(at as usize, to);
    }
    /// Copies bytes to be sent into the ring.
    pub(super) fn copy_in(&mut self, at: u32, from: &[u8]) {
        self.ring.write(at as usize, from);
    }

    /// Posts Writes of a transfer's bytes in the ring.
    ///
    /// # Errors
    /// Returns `errno` if the queue pair refuses.
    pub(super) fn send(&self, transfer: &Transfer, ring: u32) -> Result<(), c_int> {
        let first = transfer.length.min(ring - transfer.at);
        let (start, key) = (self.ring.address(), self.ring.key());
        let mut pieces = vec![Sge { address: start + u64::from(transfer.at), length: first, key }];
        if first < transfer.length {
            pieces.push(Sge { address: start, length: transfer.length - first, key });
        }
        let to = Remote { address: transfer.address, key: transfer.key };
        self.post(Message::Data(transfer.length), to, Data::Gather(pieces))
    }

    /// Posts a control message.
    ///
    /// # Errors
    /// Returns `errno` if the queue pair refuses.
    pub(super) fn control(&self, control: &Control) -> Result<(), c_int> {
        let Some(entry) = &control.entry else {
            return self.post(control.message, Remote::default(), Data::Gather(Vec::new()));
        };
        let bytes = entry.encode(self.buffer.address(), self.buffer.key());
        let to = Remote { address: entry.address, key: entry.key };
        self.post(control.message, to, Data::Inline(bytes.to_vec()))
    }

    fn post(&self, message: Message, remote: Remote, data: Data) -> Result<(), c_int> {
        let value = message.encode();
        let request = SendRequest {
            id: value.into(),
            operation: Operation::Write { remote, immediate: Some(value.to_be_bytes()) },
            data,
            signaled: true,
            solicited: false,
            fence: false,
            destination: None,
        };
        let posted = self.adapter.post_send(self.number, |rnic, cx| rnic.post_send(cx, self.number, request));
        posted.map_err(error::of)?.map_err(error::of_verbs)
    }

    /// Requests an event at the next completion.
    pub(super) fn arm(&self) {
        // A failure means that this is a forked child, where no completion will come.
        let _ = self.adapter.arm_cq(self.cq, false);
    }

    /// Takes completions, and posts receives to replace the used ones; returns the number of completions.
    pub(super) fn poll(&self, to: &mut Vec<Arrival>) -> usize {
        const AT_ONCE: usize = 64;
        let (mut used, mut failed) = (0, None);
        let found = self.adapter.poll_cq(self.cq, AT_ONCE, |completion| {
            let arrival = arrival(completion);
            used += u32::from(completion.id == RECEIVE && completion.status == Status::Success);
            if completion.status == Status::RetriesExceeded {
                failed = Some(*completion);
            }
            to.extend(arrival);
        });
        if let Some(completion) = failed {
            crate::completion::explain(self.adapter, &crate::completion::translate(&completion));
        }
        // A queue pair that was stopped meanwhile accepts no receives.
        let _ = self.post_receives(used);
        found.unwrap_or(0)
    }
}

fn arrival(completion: &Completion) -> Option<Arrival> {
    if completion.id == RECEIVE {
        // The queue pair is in the error state: the peer wrote where it may not, or this end stopped the queue pair.
        if completion.status != Status::Success {
            return Some(Arrival::Lost(completion.status));
        }
        let Attached::Immediate(bytes) = completion.attached else { return Some(Arrival::Unknown) };
        // Unknown kinds may come from a later version: rdma-core ignores unknown control messages.
        return Message::decode(u32::from_be_bytes(bytes)).map(|message| Arrival::Message(message, completion.length));
    }
    if completion.status != Status::Success {
        return Some(Arrival::Lost(completion.status));
    }
    Message::decode(completion.id as u32).map(Arrival::Sent)
}
