//! Sockets over RDMA, with the wire protocol of rdma-core: `rsocket`, `rconnect`, `rsend` and so on.
//!
//! Data path: `rsend` copies into the send ring and posts a Write with immediate into the peer's receive buffer; the
//! immediate consumes one of the receives that the peer posted and tells the number of bytes; `rrecv` copies them out,
//! and once half of its buffer is read, it writes the next entry of the peer's list of buffers and grants credits.
//!
//! ```text
//!   exports   C's functions            poll     waiting for sockets and other descriptors; repoll: like epoll
//!   socket    one socket: phases       service  the thread of connection events
//!   options   what can be set          table    descriptors to sockets
//!   stream    what to post next, what a message means: pure
//!   wire      bytes that the ends exchange
//!   link      identifier, queue pair   memory   buffers that peers write
//!   wait      bells and deadlines      kernel   the kernel's own epoll
//! ```
//!
//! There are no datagrams (`SOCK_DGRAM`: `EOPNOTSUPP`), and no buffers that peers write directly (`riomap`).

mod exports;
mod kernel;
mod link;
mod memory;
mod options;
mod poll;
mod repoll;
mod service;
mod socket;
mod stream;
mod table;
mod wait;
mod wire;
