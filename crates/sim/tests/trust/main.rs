//! Tests of the fabric's correctness: closed forms, conservation, and invariants.
//!
//! Every run of a [`support::Scene`] is also checked for the invariants of all runs ([`support::Outcome`]):
//! conservation of packets and bytes, and buffers within their limits.

mod balancing;
mod closed_forms;
mod congestion;
mod conservation;
mod deadlock;
mod determinism;
mod eqds;
mod eqif;
mod event_by_event;
mod fair;
mod fairness;
mod homa;
mod loss;
mod memory;
mod ndp;
mod netrt;
#[path = "../support/packet_memory.rs"]
mod packet_memory;
mod pfc;
mod queueing;
mod recording;
mod schedules;
mod shares;
mod shortcuts;
mod support;
mod tcp;
mod trimming;
mod verbs;
mod workloads;
