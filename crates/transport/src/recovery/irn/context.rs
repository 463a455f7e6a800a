//! The contexts of queue pairs that the hardware modules in `rtl/` read and write (section 6.2). One description yields
//! both the SystemVerilog structs and the bits that tests compare.
//!
//! A context is one packed vector with its first field in the most significant bits. Only bitmaps depend on their width
//! W, 128 packets at 40 Gb/s.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_units::Psn;

use super::hls::Columns;

/// The layout of a context: its fields, most significant first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Name of the SystemVerilog type, without `_ctx_t`.
    pub name: &'static str,
    /// The modules that read and write the context.
    pub used_by: &'static str,
    /// The fields, most significant first.
    pub fields: &'static [Field],
}

/// One field of a [`Layout`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Name in SystemVerilog and in [`Bits`].
    pub name: &'static str,
    /// Width of the field.
    pub width: Width,
    /// Meaning of the field, for the reader of the SystemVerilog.
    pub meaning: &'static str,
}

/// Width of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// A fixed number of bits.
    Bits(u32),
    /// One bit per packet of the bitmap.
    Bitmap,
}

const fn field(name: &'static str, width: Width, meaning: &'static str) -> Field {
    Field { name, width, meaning }
}
const PSN: Width = Width::Bits(24);
const FLAG: Width = Width::Bits(1);

/// The layout of the receiver's context: 48 + 2W bits.
pub const RECEIVER: Layout = Layout {
    name: "receiver",
    used_by: "receive_data",
    fields: &[
        field("expected", PSN, "The next packet; all before it have arrived"),
        field("msn", PSN, "Messages completed, modulo 2^24"),
        field("map1", Width::Bitmap, "With map2, the state of the packets from `expected` on: see arrival_e"),
        field("map2", Width::Bitmap, "The packet ends a message"),
    ],
};

/// The layout of the sender's context: 99 + W bits.
pub const SENDER: Layout = Layout {
    name: "sender",
    used_by: "tx_free and receive_ack",
    fields: &[
        field("next", PSN, "The next new packet (nextSNtoSend)"),
        field("acked", PSN, "The head: the cumulative acknowledgement (lastAckedPsn)"),
        field("retransmit", PSN, "The packet sent again last, or next (retransmitSN)"),
        field("recover", PSN, "The recovery sequence (recoverSN)"),
        field("sacks", Width::Bitmap, "Packets from `acked` on that were acknowledged selectively"),
        field("do_retransmit", FLAG, "`retransmit` waits to be sent"),
        field("in_recovery", FLAG, "Packets are being recovered"),
        field("find_new_hole", FLAG, "The next tx_free searches the bitmap"),
    ],
};

/// The layout of the timer's context: 99 bits. Fields that the sender's context has, too, are read from that one.
pub const TIMER: Layout = Layout {
    name: "timer",
    used_by: "timeout",
    fields: &[
        field("next", PSN, "As the sender's"),
        field("acked", PSN, "As the sender's"),
        field("retransmit", PSN, "As the sender's"),
        field("do_retransmit", FLAG, "As the sender's"),
        field("find_new_hole", FLAG, "As the sender's"),
        field("quick", FLAG, "The timer was set to RTO_low (quickTimeout)"),
        field("rate_factor", PSN, "Link rate over the rate that congestion control allows, rounded down"),
    ],
};

impl Layout {
    /// Returns the size in bits where bitmaps have `bitmap` bits.
    pub fn bits(&self, bitmap: u32) -> u32 {
        self.fields.iter().map(|field| field.width.bits(bitmap)).sum()
    }

    /// Returns the SystemVerilog text of `rtl/src/irn_<name>.svh`: the struct, for modules with a parameter W.
    pub fn system_verilog(&self) -> String {
        let mut text = format!(
            "// Generated from crates/transport/src/recovery/irn/context.rs by `cargo xtask rtl context`: do not edit.\n\n\
             // Context of {}. Most significant field first.\ntypedef struct packed {{\n",
            self.used_by
        );
        for Field { name, width, meaning } in self.fields {
            let range = match width {
                Width::Bits(1) => String::new(),
                Width::Bits(bits) => format!("[{}:0] ", bits - 1),
                Width::Bitmap => "[W-1:0] ".into(),
            };
            text += &format!("  // {meaning}.\n  logic {range}{name};\n");
        }
        text + &format!("}} {}_ctx_t;\n", self.name)
    }
}

impl Width {
    /// Returns the size in bits where bitmaps have `bitmap` bits.
    pub const fn bits(self, bitmap: u32) -> u32 {
        match self {
            Self::Bits(bits) => bits,
            Self::Bitmap => bitmap,
        }
    }
}

/// The values of a receiver's context.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceiverContext {
    /// The packet expected next.
    pub expected: Psn,
    /// Messages completed, modulo 2^24.
    pub msn: u32,
    /// First of the two bitmaps, bit 0 of word 0 for `expected`.
    pub map1: Box<[u64]>,
    /// Second of the two bitmaps.
    pub map2: Box<[u64]>,
}

/// The values of a sender's context.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SenderContext {
    /// All fields but the bitmap.
    pub columns: Columns,
    /// Selective acknowledgements, bit 0 of word 0 for the cumulative acknowledgement.
    pub sacks: Box<[u64]>,
}

impl ReceiverContext {
    /// Appends the context in the layout of [`RECEIVER`].
    pub fn pack(&self, bitmap: u32, bits: &mut Bits) {
        for field in RECEIVER.fields {
            match field.name {
                "expected" => bits.push(self.expected.get().into(), 24),
                "msn" => bits.push(self.msn.into(), 24),
                "map1" => bits.push_map(&self.map1, bitmap),
                "map2" => bits.push_map(&self.map2, bitmap),
                name => unreachable!("the receiver's context has no {name}"),
            }
        }
    }
}

impl SenderContext {
    /// Appends the context in the layout of [`SENDER`].
    pub fn pack(&self, bitmap: u32, bits: &mut Bits) {
        for field in SENDER.fields {
            match field.name {
                "sacks" => bits.push_map(&self.sacks, bitmap),
                name => bits.push(self.columns.number(name), field.width.bits(bitmap)),
            }
        }
    }

    /// Appends the timer's context in the layout of [`TIMER`]: the fields shared with the sender's context, whether the
    /// timer was set to RTO_low, and how far the rate is throttled.
    pub fn pack_timer(&self, quick: bool, rate_factor: u32, bits: &mut Bits) {
        for field in TIMER.fields {
            let value = match field.name {
                "quick" => quick.into(),
                "rate_factor" => rate_factor.into(),
                name => self.columns.number(name),
            };
            bits.push(value, field.width.bits(0));
        }
    }
}

impl Columns {
    /// Returns a field of the sender's context other than the bitmap; for packets, the low 24 bits count.
    fn number(&self, name: &str) -> u64 {
        match name {
            "next" => self.next.index(),
            "acked" => self.acked.index(),
            "retransmit" => self.retransmit.index(),
            "recover" => self.recover.index(),
            "do_retransmit" => self.do_retransmit.into(),
            "in_recovery" => self.in_recovery.into(),
            "find_new_hole" => self.find_new_hole.into(),
            name => unreachable!("the sender's context has no {name}"),
        }
    }
}

/// The bits of a vector, most significant first; `Display` prints them as a hexadecimal number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bits {
    /// The bits, one byte each.
    bits: Vec<u8>,
}

impl Bits {
    /// Removes all bits.
    pub fn clear(&mut self) {
        self.bits.clear();
    }
    /// Returns the number of bits.
    pub fn len(&self) -> usize {
        self.bits.len()
    }
    /// Returns whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }
    /// Appends the low `count` bits of `value`, at most 64.
    pub fn push(&mut self, value: u64, count: u32) {
        self.bits.extend((0..count).rev().map(|bit| (value >> bit & 1) as u8));
    }
    /// Appends the low `count` bits of a bitmap, the highest bit first.
    pub fn push_map(&mut self, map: &[u64], count: u32) {
        for word in (0..count.div_ceil(64)).rev() {
            self.push(map.get(word as usize).copied().unwrap_or_default(), (count - 64 * word).min(64));
        }
    }
    /// Appends the number in hexadecimal to `text`: a digit per four bits, rounded up.
    pub fn write_hex(&self, text: &mut String) {
        let (first, rest) = self.bits.split_at(self.bits.len() % 4);
        let digit = |bits: &[u8]| {
            let value = bits.iter().fold(0, |value, bit| value << 1 | u32::from(*bit));
            char::from_digit(value, 16).unwrap_or_default()
        };
        if !first.is_empty() {
            text.push(digit(first));
        }
        text.extend(rest.chunks_exact(4).map(digit));
    }
}
