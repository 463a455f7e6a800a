//! `fct.txt` of the ns-3 RDMA family: one line per completed flow, so that existing plot scripts work.
//!
//! ```text
//! <src> <dst> <sport> <dport> <size in bytes> <start in ns> <fct in ns> <standalone fct in ns>
//! ```
//!
//! HPCC and SimAI write addresses as eight hexadecimal digits, ConWeave writes node ids. Times are cut to nanoseconds,
//! the unit of ns-3.

use std::io::{self, BufRead, Write};

use selvedge_units::{Bytes, Duration, Instant};

use crate::text::{BYTES_MAX, Line, Lines, Word};
use crate::{Dialect, FormatError};

/// Completed flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Sending node; below 65,536 in HPCC's form.
    pub src: u32,
    /// Receiving node.
    pub dst: u32,
    /// UDP source port.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Payload.
    pub size: Bytes,
    /// Start of the flow.
    pub start: Instant,
    /// Flow completion time.
    pub fct: Duration,
    /// Flow completion time that the flow would have alone in the network.
    pub standalone: Duration,
}

/// Notation of nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// HPCC, SimAI: hexadecimal addresses.
    #[default]
    Hpcc,
    /// ConWeave: decimal node ids.
    ConWeave,
}

impl Style {
    /// Returns the dialect of files in this style.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::Hpcc => Dialect::FctHpcc,
            Self::ConWeave => Dialect::FctConWeave,
        }
    }
}

/// Node 0's address, 11.0.0.1. HPCC adds the id's low byte to the third octet and the rest to the
/// second.
const ADDRESS_BASE: u32 = 0x0b00_0001;

/// Returns HPCC's address of a node; `None` from node 65,536 on, where HPCC's addresses leave 11.0.0.0/8.
pub const fn address(node: u32) -> Option<u32> {
    if node > 0xffff { None } else { Some(ADDRESS_BASE + ((node / 256) << 16) + ((node % 256) << 8)) }
}

/// Returns the node with this address; `None` if HPCC gives it to none.
pub const fn node_at(address: u32) -> Option<u32> {
    let offset = address.wrapping_sub(ADDRESS_BASE);
    if offset & 0xff00_00ff != 0 { None } else { Some(offset >> 8) }
}

/// Writes one line with its newline.
///
/// ```
/// use selvedge_formats::fct::{Record, Style, write};
/// use selvedge_units::{Bytes, Duration, Instant};
///
/// let record = Record {
///     src: 2,
///     dst: 1,
///     src_port: 10_000,
///     dst_port: 100,
///     size: Bytes::new(5_000_000),
///     start: Instant::from_ps(2_000_000_000_000),
///     fct: Duration::from_us(430),
///     standalone: Duration::from_us(410),
/// };
/// let mut line = Vec::new();
/// write(&mut line, Style::Hpcc, &record)?;
/// assert_eq!(line, b"0b000201 0b000101 10000 100 5000000 2000000000 430000 410000\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of `out`, and `InvalidInput` for a node that has no address in HPCC's form.
pub fn write(out: &mut impl Write, style: Style, record: &Record) -> io::Result<()> {
    let Record { src_port, dst_port, .. } = *record;
    match style {
        Style::Hpcc => {
            let address_of = |node| {
                let message = format!("node {node} has no address in HPCC's form, which ends at node 65535");
                address(node).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, message))
            };
            write!(out, "{:08x} {:08x}", address_of(record.src)?, address_of(record.dst)?)?;
        }
        Style::ConWeave => write!(out, "{} {}", record.src, record.dst)?,
    }
    let ns = |ps: u64| ps / 1_000;
    writeln!(
        out,
        " {src_port} {dst_port} {} {} {} {}",
        record.size.get(),
        ns(record.start.as_ps()),
        ns(record.fct.as_ps()),
        ns(record.standalone.as_ps())
    )
}

/// Reader of a file, line by line in constant memory. Ends after an error.
pub struct Records<R> {
    lines: Lines<R>,
    style: Style,
    ended: bool,
}

impl<R: BufRead> Records<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R, file: &str, style: Style) -> Self {
        Self { lines: Lines::new(input, file), style, ended: false }
    }

    fn try_next(&mut self) -> Result<Option<Record>, FormatError> {
        let style = self.style;
        self.lines.next_filled()?.map(|line| parse(line, style)).transpose()
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.try_next().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn parse(line: Line<'_>, style: Style) -> Result<Record, FormatError> {
    let mut words = line.words();
    let node = |word: Word<'_>| match style {
        Style::ConWeave => word.integer32("a node id", 0..=u32::MAX),
        Style::Hpcc => {
            let is_hex = word.text().len() == 8 && word.text().bytes().all(|byte| byte.is_ascii_hexdigit());
            let address = u32::from_str_radix(word.text(), 16).ok().filter(|_| is_hex);
            address.and_then(node_at).ok_or_else(|| word.unexpected("an address as in \"0b000101\""))
        }
    };
    let ns = |word: Word<'_>, what: &str| word.integer(what, 0..=u64::MAX / 1_000).map(|ns| ns * 1_000);
    let src = node(words.require("the sender")?)?;
    let dst = node(words.require("the receiver")?)?;
    let src_port = words.require("the source port")?.integer32("a port", 0..=65_535)? as u16;
    let dst_port = words.require("the destination port")?.integer32("a port", 0..=65_535)? as u16;
    let size = words.require("the size")?.integer("a size in bytes", 1..=BYTES_MAX)?;
    let start = ns(words.require("the start")?, "a start in ns")?;
    let fct = ns(words.require("the completion time")?, "a completion time in ns")?;
    let standalone = ns(words.require("the standalone completion time")?, "a completion time in ns")?;
    words.finish()?;
    Ok(Record {
        src,
        dst,
        src_port,
        dst_port,
        size: Bytes::new(size),
        start: Instant::from_ps(start),
        fct: Duration::from_ps(fct),
        standalone: Duration::from_ps(standalone),
    })
}
