//! `topology.txt` of the ns-3 RDMA family.
//!
//! Files of HPCC and ConWeave:
//!
//! ```text
//! <nodes> <switches> <links>
//! <switch id> ...
//! <node> <node> <rate> <delay> <loss>         one line per link
//! ```
//!
//! The PowerTCP family (PowerTCP, ABM, Reverie) counts top-of-rack switches, too, and may add two rates in Gb/s, those
//! of links to servers and between switches, by which its programs compute loads: `<nodes> <switches> <tors> <links>
//! [<server rate> <spine rate>]`. Links have their own rates there, and routes follow from the links, so that neither
//! the count nor the rates change the network.
//!
//! SimAI has the header `<nodes> <gpus per server> <nvswitches> <switches> <links> <gpu type>`, and
//! the ids of its NVSwitches precede those of the other switches.
//!
//! Rates and delays are ns-3's texts: "100Gbps", "12.5GB/s", "1000ns", "0.001ms"; a bare number is
//! in bit/s and in seconds. The loss is a probability per packet, in either direction.
//!
//! Notes may follow after a blank line, as in HPCC's and ConWeave's samples: a line that begins with no number ends the
//! list. Lines below it that look like links cause a warning.
//!
//! The lines of links count, not the number of links in the header. The number has one other use: if there are more
//! lines, and some of them name nodes that do not exist, then the surplus is left over from a larger network (HPCC's
//! own sample has 194 such lines) and is ignored, as ns-3 does.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use selvedge_units::words::plural;
use selvedge_units::{Chance, Duration, Rate};

use crate::text::{Decimal, LINE_ENDS, Line, Lines, Word, missing};
use crate::{Dialect, FormatError, Parsed, Warning};

/// Network with the node ids of its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// Number of nodes, which have ids from 0; all nodes but the switches are hosts.
    pub node_count: u32,
    /// Switches by node id, NVSwitches included.
    pub switches: BTreeMap<u32, SwitchKind>,
    /// Links, in the order of the file.
    pub links: Vec<Link>,
    /// Arrangement of servers, in SimAI's files alone.
    pub servers: Option<Servers>,
}

/// Kind of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchKind {
    /// Switch of the Ethernet.
    Ethernet,
    /// Switch inside a server, between its GPUs (SimAI).
    NvSwitch,
}

/// Arrangement of SimAI's hosts, which are GPUs, in servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Servers {
    /// GPUs in each server; above zero.
    pub gpus_per_server: u32,
    /// Name of the GPU model, as in "A100".
    pub gpu_type: String,
}

/// Full-duplex link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Line of the link.
    pub line: u64,
    /// Node at one end.
    pub a: u32,
    /// Node at the other end, different from `a`.
    pub b: u32,
    /// Rate of each direction; above zero.
    pub rate: Rate,
    /// Propagation delay of each direction; above zero.
    pub delay: Duration,
    /// Probability that a packet is lost, in each direction.
    pub loss: Chance,
}

impl Topology {
    /// Returns whether `id` is a node and no switch.
    pub fn is_host(&self, id: u32) -> bool {
        id < self.node_count && !self.switches.contains_key(&id)
    }
    /// Returns the hosts in ascending order, as many as the header says; [`read`] warns about unlinked ones.
    pub fn hosts(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.node_count).filter(|id| !self.switches.contains_key(id))
    }
}

/// Reads a topology of HPCC, ConWeave or SimAI.
///
/// Warns about wrong counts in the header and about nodes without a link.
///
/// ```
/// use selvedge_formats::ns3_topology;
/// use selvedge_units::Rate;
///
/// let parsed = ns3_topology::read(&b"3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 25Gbps 1us 0\n"[..], "topology.txt")?;
/// assert!(parsed.value.hosts().eq([0, 1]));
/// assert_eq!(parsed.value.links[1].rate, Rate::from_gbps(25));
///
/// let error = ns3_topology::read(&b"3 1 2\n2\n0 7 100Gbps 1us 0\n"[..], "topology.txt").unwrap_err();
/// assert_eq!(error.to_string(), "topology.txt:3:3: found \"7\", expected a node id from 0 to 2");
/// # Ok::<(), selvedge_formats::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error for: unknown nodes, self loops, switches named twice, rates and delays of zero, a word that is not
/// a number or a known unit.
pub fn read(input: impl BufRead, file: &str) -> Result<Parsed<Topology>, FormatError> {
    let mut lines = Lines::new(input, file);
    let mut warnings = Vec::new();

    let header = Header::parse(lines.require_filled("a header with the number of nodes, switches and links")?)?;
    let switches = read_switches(&mut lines, &header, &mut warnings)?;
    let links = read_links(&mut lines, &header, &mut warnings)?;

    let topology = Topology { node_count: header.nodes, switches, links, servers: header.servers };
    warnings.extend(unlinked(&topology));
    let dialect = if topology.servers.is_some() { Dialect::SimAiTopology } else { Dialect::Ns3Topology };
    Ok(Parsed { value: topology, warnings, dialect })
}

/// Returns whether a file whose first line has six numbers is a topology with the header of ABM and Reverie, and no
/// list of flows of six columns: one of the next lines, before any other with six numbers, is a link.
pub(crate) fn has_capacities(bytes: &[u8], file: &str) -> bool {
    let mut lines = Lines::new(bytes, file);
    let header = lines.next_filled().ok().flatten().and_then(|line| Header::parse(line).ok());
    let Some(header) = header.filter(|header| header.servers.is_none()) else { return false };
    while let Ok(Some(line)) = lines.next_filled() {
        if Link::parse(line, &header).is_ok() {
            return true;
        }
        // Ids of switches.
        if line.words().any(|word| header.node(word).is_err()) {
            return false;
        }
    }
    false
}

/// First line of the file. Its counts have 64 bits because they are only compared.
struct Header {
    line: u64,
    nodes: u32,
    nvswitches: u64,
    switches: u64,
    links: u64,
    servers: Option<Servers>,
}

impl Header {
    fn parse(line: Line<'_>) -> Result<Self, FormatError> {
        let count = |word: Word<'_>, of: &str| word.integer(&format!("the number of {of}"), 0..=u64::from(u32::MAX));
        let words: Vec<Word<'_>> = line.words().collect();
        match *words {
            [nodes, switches, links] => {
                let nodes = nodes.integer32("the number of nodes", 1..=u32::MAX)?;
                Ok(Self {
                    line: line.number(),
                    nodes,
                    nvswitches: 0,
                    switches: switches.integer("the number of switches among these nodes", 0..=u64::from(nodes))?,
                    links: count(links, "links")?,
                    servers: None,
                })
            }
            [nodes, switches, tors, links] => Self::with_tors(line, [nodes, switches, tors, links]),
            [nodes, switches, tors, links, server, spine] if spine.decimal("").is_ok() => {
                let expected = "the rate of links in Gb/s";
                server.decimal(expected).and_then(|_| spine.decimal(expected))?;
                Self::with_tors(line, [nodes, switches, tors, links])
            }
            [nodes, gpus, nvswitches, switches, links, gpu_type] => Ok(Self {
                line: line.number(),
                nodes: nodes.integer32("the number of nodes", 1..=u32::MAX)?,
                nvswitches: count(nvswitches, "NVSwitches")?,
                switches: count(nvswitches, "NVSwitches")? + count(switches, "switches")?,
                links: count(links, "links")?,
                servers: Some(Servers {
                    gpus_per_server: gpus.integer32("the number of GPUs per server", 1..=u32::MAX)?,
                    gpu_type: gpu_type.text().to_owned(),
                }),
            }),
            _ => Err(line.error(
                0,
                format!(
                    "found {}, expected \"nodes switches links\", \"nodes switches tors links\" \
                     or SimAI's \"nodes gpus_per_server nvswitches switches links gpu_type\"",
                    plural(words.len() as u64, "word")
                ),
            )),
        }
    }

    /// Reads the header of the PowerTCP family.
    fn with_tors(line: Line<'_>, [nodes, switches, tors, links]: [Word<'_>; 4]) -> Result<Self, FormatError> {
        let nodes = nodes.integer32("the number of nodes", 1..=u32::MAX)?;
        let switches = switches.integer("the number of switches among these nodes", 0..=u64::from(nodes))?;
        tors.integer("the number of top-of-rack switches among these switches", 0..=switches)?;
        let links = links.integer("the number of links", 0..=u64::from(u32::MAX))?;
        Ok(Self { line: line.number(), nodes, nvswitches: 0, switches, links, servers: None })
    }

    fn node(&self, word: Word<'_>) -> Result<u32, FormatError> {
        word.integer32("a node id", 0..=self.nodes - 1)
    }
}

/// Reads the lines with switch ids, of which there is usually one, up to the first link.
fn read_switches(
    lines: &mut Lines<impl BufRead>,
    header: &Header,
    warnings: &mut Vec<Warning>,
) -> Result<BTreeMap<u32, SwitchKind>, FormatError> {
    let mut switches = BTreeMap::new();
    while (switches.len() as u64) < header.switches {
        let line = lines.require_filled("switch ids")?;
        // A rate or a delay has a unit, or a point.
        let no_id = |word: Word<'_>| word.text().contains(|c: char| c.is_ascii_alphabetic() || c == '.');
        let is_link = line.words().skip(2).take(2).any(no_id);
        if is_link && !switches.is_empty() {
            let found = plural(switches.len() as u64, "switch id");
            let message = format!(
                "found {found} above the first link (line {}), expected {} as said here",
                line.number(),
                header.switches
            );
            return Err(FormatError { line: header.line, ..line.error(0, message) });
        }
        for word in line.words() {
            let kind =
                if (switches.len() as u64) < header.nvswitches { SwitchKind::NvSwitch } else { SwitchKind::Ethernet };
            let id = header.node(word)?;
            if switches.insert(id, kind).is_some() {
                return Err(word.error(format!("found switch {id} a second time, expected each switch once")));
            }
        }
    }
    if switches.len() as u64 != header.switches {
        warnings.push(Warning::new(
            header.line,
            format!(
                "the header says {}, the list has {}: all of them are taken",
                plural(header.switches, "switch id"),
                switches.len()
            ),
        ));
    }
    Ok(switches)
}

/// Reads links up to the end of the file or the authors' notes there.
fn read_links(
    lines: &mut Lines<impl BufRead>,
    header: &Header,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<Link>, FormatError> {
    let mut links = Vec::new();
    let mut after_blank = false;
    let mut leftover = None;
    let mut notes = None;
    while let Some(line) = lines.next_line()? {
        if line.is_blank() {
            after_blank = true;
            continue;
        }
        let found = links.len() as u64;
        if line.begins_notes(after_blank || found == header.links) {
            let from = line.number();
            notes = Some(from);
            warnings.extend(lines.notes(from, after_blank, "link", |line| Link::parse(line, header).is_ok()));
            break;
        }
        after_blank = false;
        match Link::parse(line, header) {
            Ok(link) => links.push(link),
            Err(error) if found >= header.links.max(1) => {
                leftover = Some((line.number(), error));
                break;
            }
            // The last line of the file, which may be incomplete.
            Err(error) if found < header.links && (error.message.starts_with(LINE_ENDS) || lines.is_open()) => {
                let is_last = matches!(lines.next_filled(), Ok(None));
                let cut = format!(
                    "{}; the file ends with this line: of the {} that the header says, {}",
                    error.message,
                    plural(header.links, "link"),
                    missing(header.links - found)
                );
                return Err(if is_last { FormatError { message: cut, ..error } } else { error });
            }
            Err(error) => return Err(error),
        }
    }
    let found = links.len() as u64;
    let declared = plural(header.links, "link");
    if let Some((line, error)) = leftover {
        links.truncate(header.links as usize);
        warnings.push(Warning::new(
            line,
            format!(
                "the header says {declared}, and more lines follow, of which this one does not fit ({}): \
                 only the first {} are taken, as ns-3 does",
                error.message, header.links
            ),
        ));
    } else if found != header.links {
        let until = notes.map_or(String::new(), |line| format!(" above the notes from line {line} on"));
        let what = match header.links.saturating_sub(found) {
            0 => "all of them are".to_owned(),
            lacking => format!("{}, and those found are", missing(lacking)),
        };
        let message = format!("the header says {declared}, the file has {found}{until}: {what} taken");
        warnings.push(Warning::new(header.line, message));
    }
    if links.is_empty() {
        let all = if header.links > 0 { format!(" (all {declared} of the header are missing)") } else { String::new() };
        return Err(lines.error_at_end(&format!("a link as in \"0 1 100Gbps 1000ns 0\"{all}")));
    }
    Ok(links)
}

impl Link {
    fn parse(line: Line<'_>, header: &Header) -> Result<Self, FormatError> {
        let mut words = line.words();
        let a = header.node(words.require("a node id")?)?;
        let other = words.require("the node id at the link's other end")?;
        let b = header.node(other)?;
        if a == b {
            return Err(other.error(format!("found a link from node {a} to itself, expected two different nodes")));
        }
        let rate = parse_rate(words.require("a rate as in \"100Gbps\"")?)?;
        let delay = parse_delay(words.require("a delay as in \"1000ns\"")?)?;
        let loss = parse_loss(words.require("a loss probability, as in \"0\"")?)?;
        words.finish()?;
        Ok(Self { line: line.number(), a, b, rate, delay, loss })
    }
}

/// Returns a warning about nodes that no link reaches.
fn unlinked(topology: &Topology) -> Option<Warning> {
    let linked: BTreeSet<u32> = topology.links.iter().flat_map(|link| [link.a, link.b]).collect();
    let missing = u64::from(topology.node_count) - linked.len() as u64;
    // Ids are dense, so the first gap is found at once.
    let first = (0..topology.node_count).find(|id| !linked.contains(id))?;
    Some(Warning::new(
        1,
        format!("{} without a link, the first of them node {first}: left out", plural(missing, "node")),
    ))
}

/// ns-3's units of rate (`DataRate`) in bit/s.
const RATES: &[(&str, u64)] = &[
    ("bps", 1),
    ("b/s", 1),
    ("Bps", 8),
    ("B/s", 8),
    ("kbps", 1_000),
    ("kb/s", 1_000),
    ("Kbps", 1_000),
    ("Kb/s", 1_000),
    ("kBps", 8_000),
    ("kB/s", 8_000),
    ("KBps", 8_000),
    ("KB/s", 8_000),
    ("Kib/s", 1 << 10),
    ("KiB/s", 8 << 10),
    ("Mbps", 1_000_000),
    ("Mb/s", 1_000_000),
    ("MBps", 8_000_000),
    ("MB/s", 8_000_000),
    ("Mib/s", 1 << 20),
    ("MiB/s", 8 << 20),
    ("Gbps", 1_000_000_000),
    ("Gb/s", 1_000_000_000),
    ("GBps", 8_000_000_000),
    ("GB/s", 8_000_000_000),
    ("Gib/s", 1 << 30),
    ("GiB/s", 8 << 30),
    ("Tbps", 1_000_000_000_000),
    ("Tb/s", 1_000_000_000_000),
    ("", 1),
];

/// ns-3's units of `Time` in picoseconds.
const TIMES: &[(&str, u64)] = &[
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
    ("min", 60_000_000_000_000),
    ("", 1_000_000_000_000),
];

fn parse_rate(word: Word<'_>) -> Result<Rate, FormatError> {
    let expected = "a rate above zero as in \"100Gbps\" or \"12.5GB/s\"";
    let rate = with_unit(word.text(), RATES).filter(|&bps| bps > 0);
    rate.map(Rate::from_bps).ok_or_else(|| word.unexpected(&format!("{expected}{}", meant(word.text(), RATES))))
}

/// Longest delay of a link, so that round trips can be counted in picoseconds on any path.
const LONGEST_DELAY: Duration = Duration::from_us(100_000_000);

fn parse_delay(word: Word<'_>) -> Result<Duration, FormatError> {
    let expected = "a delay as in \"1000ns\" or \"0.001ms\", above zero and at most 100s";
    let delay = with_unit(word.text(), TIMES).filter(|&ps| (1..=LONGEST_DELAY.as_ps()).contains(&ps));
    delay.map(Duration::from_ps).ok_or_else(|| word.unexpected(&format!("{expected}{}", meant(word.text(), TIMES))))
}

fn parse_loss(word: Word<'_>) -> Result<Chance, FormatError> {
    let fraction = Decimal::parse(word.text()).and_then(Decimal::fraction);
    let (numerator, denominator) = fraction.ok_or_else(|| word.unexpected("a loss probability from 0 to 1"))?;
    Ok(Chance::ratio(numerator, denominator))
}

/// Parses a number followed directly by one of `units`, in the smallest unit.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let &(_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    Decimal::parse(number)?.times(factor)
}

/// Returns a remedy where `text` is a number with one of `units` in the wrong case ("100gbps"), or with the begin of
/// one ("100G").
fn meant(text: &str, units: &[(&str, u64)]) -> String {
    let (number, unit) = split_unit(text);
    let lower = unit.to_ascii_lowercase();
    let alike = |name: &str| name.eq_ignore_ascii_case(unit);
    let begins = |name: &str| name.to_ascii_lowercase().starts_with(&lower);
    let found = units.iter().find(|(name, _)| alike(name)).or_else(|| units.iter().find(|(name, _)| begins(name)));
    match found {
        Some((name, _)) if !unit.is_empty() && unit != *name && Decimal::parse(number).is_some() => {
            format!(", did you mean \"{number}{name}\"?")
        }
        _ => String::new(),
    }
}

fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')).unwrap_or(text.len()))
}
