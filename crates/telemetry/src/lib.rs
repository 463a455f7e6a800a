//! Data types of observation.
//!
//! Both worlds report a run by these types: one [`FlowRow`] per flow, [`PortRow`]s over time, and a [`RunRecord`] at
//! the end; and, where a [`Probe`] listens, every [`Trace`] event. Of real frames in
//! switches, recordings have [`FabricEvent`]s. Plain values without formatting or files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod eqif;
mod fabric;
mod kind;
mod row;
mod time;
mod trace;

pub use eqif::EqifTotals;
pub use fabric::{FabricEvent, FabricStep, MadePacket, RecordingStop};
pub use kind::{ByKind, PacketKind};
pub use row::{
    Deadlock, DropReason, Drops, Fill, FlowRow, GroupParts, NetRtTotals, Observer, PausedHop, PortInfo, PortKind,
    PortRow, PortTotals, RankRow, Reordering, RunRecord, StuckRank,
};
pub use time::{PartTimes, TimePart, TimeProfile, WorkloadTime};
pub use trace::{Probe, Trace};
