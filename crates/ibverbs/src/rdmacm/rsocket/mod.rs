//! Sockets over RDMA, with the wire protocol of rdma-core.
//!
//! The data's way: `rsend` copies into the send ring and posts a Write with immediate into the peer's receive buffer;
//! the immediate consumes one of the receives that the peer posted and says how many bytes came; `rrecv` copies them
//! out, and once half of its buffer is read, it writes the next entry of the peer's list of buffers and grants credits.
//!
//! Plan: `wire` (bytes, done); `stream` (pure: credits, both rings, what to post next, half close; done); `socket` (one
//! descriptor, its `rdma_cm_id` and queue pair); `exports` (C functions); `poll` (mixed descriptors). Datagrams last.

#[allow(dead_code, reason = "until the exported functions use all of it")]
mod stream;
mod wire;
