//! `libibverbs.so.1` and `librdmacm.so.1`: RDMA for programs that were built for RDMA hardware, by the software RNIC of
//! [`selvedge_dataplane::rnic`].
//!
//! This crate only translates: C's structures ([`abi`]) to the engine's values and back, errors to `errno`. The meaning
//! of a call is decided in `selvedge_nic::verbs`.
//!
//! 1. Objects are allocated here, larger than C's structures, which are at their beginning.
//! 2. A function that returns a pointer returns null and sets `errno`; one that returns an `int` returns the error
//!    itself, except where `verbs.h` says -1.
//! 3. An operation that this NIC does not support is a missing function in `verbs_context`; `verbs.h` turns it into
//!    `EOPNOTSUPP`.
//! 4. A panic aborts: it cannot unwind into C.
//! 5. The parameter's type says what a function requires of a pointer (`borrowed`): most functions are safe.
//! 6. Reasons of failure that `errno` does not tell are printed on standard error, once.
#![cfg(target_os = "linux")]
#![allow(unreachable_pub, reason = "programs reach what is exported by its name in C")]

pub mod abi;
mod address;
mod borrowed;
mod channel;
mod completion;
mod context;
mod device;
mod error;
mod extended_cq;
mod extended_qp;
mod import;
mod legacy;
mod limits;
mod memory;
mod multicast;
mod names;
mod pair;
mod paths;
mod post;
mod query;
mod rate;
pub mod rdmacm;
mod recent;
mod srq;
mod window;
