//! Opcodes: the upper three bits name the service, the lower five the operation.

/// Mask of the bits that name the service.
pub const SERVICE: u8 = 0xe0;
/// Reliable connection.
pub const RELIABLE: u8 = 0x00;
/// Unreliable connection.
pub const UNRELIABLE: u8 = 0x20;
/// Unreliable datagram.
pub const DATAGRAM: u8 = 0x60;

/// Operations: the lower five bits of an opcode.
pub mod operation {
    #![expect(missing_docs, reason = "the names are the specification's")]
    pub const SEND_FIRST: u8 = 0x00;
    pub const SEND_MIDDLE: u8 = 0x01;
    pub const SEND_LAST: u8 = 0x02;
    pub const SEND_LAST_IMMEDIATE: u8 = 0x03;
    pub const SEND_ONLY: u8 = 0x04;
    pub const SEND_ONLY_IMMEDIATE: u8 = 0x05;
    pub const WRITE_FIRST: u8 = 0x06;
    pub const WRITE_MIDDLE: u8 = 0x07;
    pub const WRITE_LAST: u8 = 0x08;
    pub const WRITE_LAST_IMMEDIATE: u8 = 0x09;
    pub const WRITE_ONLY: u8 = 0x0a;
    pub const WRITE_ONLY_IMMEDIATE: u8 = 0x0b;
    pub const READ_REQUEST: u8 = 0x0c;
    pub const READ_RESPONSE_FIRST: u8 = 0x0d;
    pub const READ_RESPONSE_MIDDLE: u8 = 0x0e;
    pub const READ_RESPONSE_LAST: u8 = 0x0f;
    pub const READ_RESPONSE_ONLY: u8 = 0x10;
    pub const ACKNOWLEDGE: u8 = 0x11;
    pub const ATOMIC_ACKNOWLEDGE: u8 = 0x12;
    pub const COMPARE_SWAP: u8 = 0x13;
    pub const FETCH_ADD: u8 = 0x14;
    pub const SEND_LAST_INVALIDATE: u8 = 0x16;
    pub const SEND_ONLY_INVALIDATE: u8 = 0x17;
    /// The requester's acknowledgement of a Read response (IRN, section 5.2), one of eight unused numbers.
    pub const READ_ACKNOWLEDGE: u8 = 0x18;
    pub const FLUSH: u8 = 0x1c;
    pub const ATOMIC_WRITE: u8 = 0x1d;
}

/// Returns the number of packet sequence numbers that a request of a reliable connection takes: a Read of `length`
/// bytes one for each packet of its answer, of at most `path_mtu` bytes each, other requests one. `None` for packets
/// that are no such request: answers, acknowledgements, other services.
pub fn psns(opcode: u8, length: u32, path_mtu: u32) -> Option<u32> {
    use operation::*;
    match opcode {
        READ_REQUEST => Some(length.div_ceil(path_mtu).max(1)),
        SEND_FIRST..=WRITE_ONLY_IMMEDIATE | COMPARE_SWAP | FETCH_ADD | FLUSH | ATOMIC_WRITE => Some(1),
        SEND_LAST_INVALIDATE | SEND_ONLY_INVALIDATE => Some(1),
        _ => None,
    }
}

/// The headers after a BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Layout {
    pub(super) deth: bool,
    pub(super) flush: bool,
    pub(super) reth: bool,
    /// Whether the packet is a later one of a Write: between two Selvedge ends it has a RETH, too.
    pub(super) write: bool,
    pub(super) atomic: bool,
    pub(super) aeth: bool,
    /// Whether the packet is in the middle of an answer: between two Selvedge ends it has an AETH like the others, so
    /// that all packets of an answer are equally long, and can leave together.
    pub(super) middle: bool,
    pub(super) original: bool,
    pub(super) immediate: bool,
    pub(super) invalidate: bool,
    /// Whether the packet carries a [`Placement`](super::Placement) between two Selvedge ends.
    pub(super) placed: bool,
}

/// Returns the headers after a BTH with this opcode, if the opcode is supported.
pub(super) fn layout(opcode: u8) -> Option<Layout> {
    use operation::*;
    const NONE: Layout = Layout {
        deth: false,
        flush: false,
        reth: false,
        write: false,
        atomic: false,
        aeth: false,
        middle: false,
        original: false,
        immediate: false,
        invalidate: false,
        placed: false,
    };
    const PLACED: Layout = Layout { placed: true, ..NONE };
    let of = match (opcode & SERVICE, opcode & !SERVICE) {
        (RELIABLE, operation) => match operation {
            SEND_FIRST | SEND_MIDDLE | SEND_LAST | SEND_ONLY => PLACED,
            SEND_LAST_IMMEDIATE | SEND_ONLY_IMMEDIATE => Layout { immediate: true, ..PLACED },
            SEND_LAST_INVALIDATE | SEND_ONLY_INVALIDATE => Layout { invalidate: true, ..PLACED },
            WRITE_FIRST | WRITE_ONLY | READ_REQUEST | ATOMIC_WRITE => Layout { reth: true, ..PLACED },
            FLUSH => Layout { flush: true, reth: true, ..PLACED },
            WRITE_MIDDLE | WRITE_LAST => Layout { write: true, ..PLACED },
            WRITE_LAST_IMMEDIATE => Layout { write: true, immediate: true, ..PLACED },
            WRITE_ONLY_IMMEDIATE => Layout { reth: true, immediate: true, ..PLACED },
            READ_RESPONSE_FIRST | READ_RESPONSE_LAST | READ_RESPONSE_ONLY => Layout { aeth: true, ..PLACED },
            READ_RESPONSE_MIDDLE => Layout { middle: true, ..PLACED },
            ACKNOWLEDGE | READ_ACKNOWLEDGE => Layout { aeth: true, ..NONE },
            ATOMIC_ACKNOWLEDGE => Layout { aeth: true, original: true, ..PLACED },
            COMPARE_SWAP | FETCH_ADD => Layout { atomic: true, ..PLACED },
            _ => return None,
        },
        (UNRELIABLE, operation) => match operation {
            SEND_FIRST | SEND_MIDDLE | SEND_LAST | SEND_ONLY | WRITE_MIDDLE | WRITE_LAST => NONE,
            SEND_LAST_IMMEDIATE | SEND_ONLY_IMMEDIATE | WRITE_LAST_IMMEDIATE => Layout { immediate: true, ..NONE },
            WRITE_FIRST | WRITE_ONLY => Layout { reth: true, ..NONE },
            WRITE_ONLY_IMMEDIATE => Layout { reth: true, immediate: true, ..NONE },
            _ => return None,
        },
        (DATAGRAM, SEND_ONLY) => Layout { deth: true, ..NONE },
        (DATAGRAM, SEND_ONLY_IMMEDIATE) => Layout { deth: true, immediate: true, ..NONE },
        _ => return None,
    };
    Some(of)
}
