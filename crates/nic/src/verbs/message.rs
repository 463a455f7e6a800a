//! Segmentation of messages into packets.

use selvedge_wire::verbs::opcode::operation as op;

use super::work::{Attached, Operation};

/// Position of a packet in its message or response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Position {
    First,
    Middle,
    Last,
    Only,
}

impl Position {
    /// Returns the position of packet `index` of `count`.
    pub(super) const fn of(index: u64, count: u64) -> Self {
        match (index == 0, index + 1 == count) {
            (true, true) => Self::Only,
            (true, false) => Self::First,
            (false, true) => Self::Last,
            (false, false) => Self::Middle,
        }
    }
    /// Returns whether the packet begins a message.
    pub(super) const fn begins(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }
    /// Returns whether the packet ends a message.
    pub(super) const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// Returns the number of packets of a message of `bytes`; an empty message has one.
pub(super) fn packets(bytes: u64, mtu: u32) -> u64 {
    bytes.div_ceil(u64::from(mtu)).max(1)
}

/// Returns the payload bytes in packet `index` of a message of `bytes`.
pub(super) fn bytes_in(index: u64, bytes: u64, mtu: u32) -> u32 {
    bytes.saturating_sub(index * u64::from(mtu)).min(u64::from(mtu)) as u32
}

/// Returns the opcode of a packet at `position` of a request.
pub(super) fn request_opcode(operation: &Operation, position: Position) -> u8 {
    use Position::{First, Last, Middle, Only};
    match (operation, position) {
        (Operation::Send(_), First) => op::SEND_FIRST,
        (Operation::Send(_), Middle) => op::SEND_MIDDLE,
        (Operation::Send(Attached::Nothing), Last) => op::SEND_LAST,
        (Operation::Send(Attached::Nothing), Only) => op::SEND_ONLY,
        (Operation::Send(Attached::Immediate(_)), Last) => op::SEND_LAST_IMMEDIATE,
        (Operation::Send(Attached::Immediate(_)), Only) => op::SEND_ONLY_IMMEDIATE,
        (Operation::Send(Attached::Invalidate(_)), Last) => op::SEND_LAST_INVALIDATE,
        (Operation::Send(Attached::Invalidate(_)), Only) => op::SEND_ONLY_INVALIDATE,
        (Operation::Write { .. }, First) => op::WRITE_FIRST,
        (Operation::Write { .. }, Middle) => op::WRITE_MIDDLE,
        (Operation::Write { immediate: None, .. }, Last) => op::WRITE_LAST,
        (Operation::Write { immediate: None, .. }, Only) => op::WRITE_ONLY,
        (Operation::Write { immediate: Some(_), .. }, Last) => op::WRITE_LAST_IMMEDIATE,
        (Operation::Write { immediate: Some(_), .. }, Only) => op::WRITE_ONLY_IMMEDIATE,
        (Operation::Read(_), _) => op::READ_REQUEST,
        (Operation::CompareSwap { .. }, _) => op::COMPARE_SWAP,
        (Operation::FetchAdd { .. }, _) => op::FETCH_ADD,
        (Operation::AtomicWrite(_), _) => op::ATOMIC_WRITE,
        (Operation::Flush(_), _) => op::FLUSH,
        (Operation::LocalInvalidate(_) | Operation::Bind(_), _) => unreachable!("it is not sent"),
    }
}

/// Returns the opcode of a packet at `position` of a Read response.
pub(super) fn response_opcode(position: Position) -> u8 {
    match position {
        Position::First => op::READ_RESPONSE_FIRST,
        Position::Middle => op::READ_RESPONSE_MIDDLE,
        Position::Last => op::READ_RESPONSE_LAST,
        Position::Only => op::READ_RESPONSE_ONLY,
    }
}

/// Kind of request that an opcode stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// A packet of a Send.
    Send(Position),
    /// A packet of a Write.
    Write(Position),
    /// A Read.
    Read,
    /// A request other than a Read that has a response and is executed once: an Atomic, an atomic write or a flush.
    Once,
}

impl Asked {
    /// Returns the kind of request that a reliable connection's opcode stands for; `None` if it is no request.
    pub(super) const fn of(opcode: u8) -> Option<Self> {
        Some(match opcode {
            op::SEND_FIRST => Self::Send(Position::First),
            op::SEND_MIDDLE => Self::Send(Position::Middle),
            op::SEND_LAST | op::SEND_LAST_IMMEDIATE | op::SEND_LAST_INVALIDATE => Self::Send(Position::Last),
            op::SEND_ONLY | op::SEND_ONLY_IMMEDIATE | op::SEND_ONLY_INVALIDATE => Self::Send(Position::Only),
            op::WRITE_FIRST => Self::Write(Position::First),
            op::WRITE_MIDDLE => Self::Write(Position::Middle),
            op::WRITE_LAST | op::WRITE_LAST_IMMEDIATE => Self::Write(Position::Last),
            op::WRITE_ONLY | op::WRITE_ONLY_IMMEDIATE => Self::Write(Position::Only),
            op::READ_REQUEST => Self::Read,
            op::COMPARE_SWAP | op::FETCH_ADD | op::ATOMIC_WRITE | op::FLUSH => Self::Once,
            _ => return None,
        })
    }
}

/// NAK codes (InfiniBand architecture, volume 1, table 44).
pub(super) mod nak {
    pub(crate) const SEQUENCE: u8 = 0;
    pub(crate) const INVALID_REQUEST: u8 = 1;
    pub(crate) const REMOTE_ACCESS: u8 = 2;
    pub(crate) const REMOTE_OPERATION: u8 = 3;
}
