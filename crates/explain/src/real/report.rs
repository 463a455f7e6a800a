//! Explanations of real flows as values for JSON, and as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::{Index, IndexMut};

use selvedge_telemetry::RecordingStop;
use selvedge_units::Duration;
use serde::{Serialize, Serializer};

use super::recording::RealRecording;

macro_rules! parts {
    ($( $(#[$doc:meta])* $Part:ident = $name:literal, $letter:literal; )+) => {
        /// Part of a real flow's time.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum RealPart {
            $( $(#[$doc])* $Part, )+
        }

        impl RealPart {
            const ALL: [Self; [$($letter),+].len()] = [$(Self::$Part),+];

            const fn name(self) -> &'static str {
                match self { $(Self::$Part => $name),+ }
            }
            const fn letter(self) -> char {
                match self { $(Self::$Part => $letter),+ }
            }
        }
    };
}

parts! {
    /// Transmission of bits on links; of the sender's burst, all of it.
    Serialisation = "serialisation", 's';
    /// Propagation on links.
    Propagation = "propagation", 'p';
    /// Waiting in switches, or for the host's link, while the port did not send packets of the flow.
    Queueing = "queueing", 'Q';
    /// Waiting there behind packets of the flow itself.
    Own = "own queueing", 'q';
    /// Waiting while priority flow control stopped a port.
    Pause = "pause", 'P';
    /// Waiting in NetRT's switches: for packets before, or to be sent again.
    Held = "netrt", 'H';
    /// Waiting while the sender's link sent packets of other flows, between two packets of a burst.
    Link = "link", 'N';
    /// Waiting for the sender: its application, its window, its pacing.
    Sender = "sender", 'S';
    /// Waiting for the sender, which then retransmitted: detection of a loss, a timeout.
    Resend = "resending", 'L';
    /// Waiting for the receiver: its application, delayed acknowledgements.
    Receiver = "receiver", 'R';
    /// Waiting for the process that carries frames.
    Late = "switch process", 'X';
}

/// A real flow's time, split into parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RealParts([Duration; RealPart::ALL.len()]);

impl RealParts {
    /// Returns the sum of all parts.
    pub fn total(&self) -> Duration {
        self.0.iter().copied().sum()
    }
    fn iter(&self) -> impl Iterator<Item = (RealPart, Duration)> {
        RealPart::ALL.into_iter().zip(self.0)
    }
    /// Returns the time of the part with this name; `None`: there is no such part.
    pub fn named(&self, name: &str) -> Option<Duration> {
        self.iter().find(|(part, _)| part.name() == name).map(|(_, time)| time)
    }
}

impl Index<RealPart> for RealParts {
    type Output = Duration;
    fn index(&self, part: RealPart) -> &Duration {
        &self.0[part as usize]
    }
}
impl IndexMut<RealPart> for RealParts {
    fn index_mut(&mut self, part: RealPart) -> &mut Duration {
        &mut self.0[part as usize]
    }
}

/// Serialises as `{ "serialisation_ps": 1, "own_queueing_ps": 2, ... }`.
impl Serialize for RealParts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.iter().map(|(part, time)| (format!("{}_ps", part.name().replace(' ', "_")), time.as_ps())),
        )
    }
}

/// Explanations of the flows of a laboratory.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RealReport {
    /// Time of the last event.
    pub end_ps: u64,
    /// Reason for which the recording ends before the laboratory does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
    /// Number of flows in the recording.
    pub count: usize,
    /// Flows, those with the most bytes first.
    pub flows: Vec<RealFlow>,
}

/// Explanation of one flow: both directions of a TCP connection, a pair of queue pairs, or the like.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RealFlow {
    /// Number of the flow, in the order of first packets.
    pub flow: u64,
    /// Protocol and addresses, from the sender of data to the receiver.
    pub name: String,
    /// Host of the sender.
    pub from: String,
    /// Host of the receiver.
    pub to: String,
    /// Time at which the first packet of either direction entered the fabric.
    pub start_ps: u64,
    /// Time at which the last packet of data was handed to the receiver; `None`: none was.
    pub end_ps: Option<u64>,
    /// Packets of data that the sender sent, retransmissions included.
    pub packets: u64,
    /// Bytes of payload that the sender sent for the first time.
    pub bytes: u64,
    /// Packets of data that arrived.
    pub arrived: u64,
    /// Packets of data that the sender had sent before.
    pub again: u64,
    /// Copies that NetRT's switches sent.
    pub copies: u64,
    /// Packets of the other direction.
    pub answers: u64,
    /// The time from `start_ps` to `end_ps`, part by part.
    pub parts: RealParts,
    /// Ports where the flow waited within that time, the longest wait first.
    pub queues: Vec<QueueTime>,
    /// Times in the fabric of all packets of data that arrived.
    pub per_packet: PacketTimes,
    /// Places where packets were lost, the most first.
    pub lost: Vec<LostAt>,
    /// Marked packets of data, by output.
    pub marks: BTreeMap<String, u64>,
    /// Trimmed packets of data, by output.
    pub trims: BTreeMap<String, u64>,
    /// The longest times in which the sender sent nothing.
    pub gaps: Vec<Gap>,
}

/// Wait for a port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QueueTime {
    /// Name of the port, `leaf0:spine1`.
    pub port: String,
    /// Wait while it did not send packets of the flow.
    pub others_ps: u64,
    /// Wait behind packets of the flow.
    pub own_ps: u64,
    /// Wait for the end of a pause.
    pub pause_ps: u64,
}

impl QueueTime {
    /// Returns the whole wait in picoseconds.
    pub fn total_ps(&self) -> u64 {
        self.others_ps + self.own_ps + self.pause_ps
    }
}

/// Times in the fabric of a flow's packets.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PacketTimes {
    /// Mean time from entry to hand-over.
    pub mean_ps: u64,
    /// Half of the packets took no longer.
    pub p50_ps: u64,
    /// Of 100 packets, 99 took no longer.
    pub p99_ps: u64,
    /// The longest time.
    pub max_ps: u64,
    /// Sum over all packets, part by part.
    pub parts: RealParts,
    /// Sum over all packets of their waits, by port, the longest first.
    pub queues: Vec<QueueTime>,
}

impl PacketTimes {
    /// Creates the times of packets; `times` are sorted.
    pub(super) fn new(parts: RealParts, queues: Vec<QueueTime>, times: &[Duration]) -> Self {
        let of = |n: usize, of: usize| {
            let nth = (times.len() * n).div_ceil(of).max(1) - 1;
            times.get(nth).map_or(0, |time| time.as_ps())
        };
        let mean_ps = parts.total().as_ps().checked_div(times.len() as u64).unwrap_or(0);
        Self { mean_ps, p50_ps: of(50, 100), p99_ps: of(99, 100), max_ps: of(1, 1), parts, queues }
    }
}

/// Place where packets were lost.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostAt {
    /// Node that dropped them, or that they should have reached.
    pub node: String,
    /// Node that they came from.
    pub from: String,
    /// Whether they were lost on the link between the two, or because it was down.
    pub on_link: bool,
    /// Reason.
    pub reason: &'static str,
    /// Packets of the direction of data.
    pub data: u64,
    /// Packets of the other direction.
    pub answers: u64,
}

/// Time in which the sender sent nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Gap {
    /// Begin.
    pub start_ps: u64,
    /// Length.
    pub length_ps: u64,
    /// Whether the next packet was a retransmission.
    pub before_resending: bool,
}

impl RealRecording {
    /// Explains the flows of the recording, those with the most bytes first.
    ///
    /// # Panics
    /// Panics if the parts of a flow do not add up to its time.
    pub fn explain(&self) -> RealReport {
        let mut flows = self.flows();
        flows.sort_by_key(|flow| (std::cmp::Reverse(flow.bytes), flow.flow));
        let stopped = self.stopped.map(|why| match why {
            RecordingStop::Limit => "its limit was reached",
            RecordingStop::Slow => "events came faster than they could be written",
        });
        RealReport { end_ps: self.end.as_ps(), stopped, count: flows.len(), flows }
    }
}

/// Letters of a bar.
const BAR: f64 = 40.0;
/// Queues that are named in a line of a table.
const NAMED: usize = 2;

/// Renders a table of flows.
pub fn render_real(report: &RealReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let shown = report.flows.len();
    let _ = writeln!(text, "{} flows in {}; those with the most bytes, {shown}:", report.count, time(report.end_ps));
    if let Some(why) = report.stopped {
        let _ = writeln!(text, "the recording ends there, before the laboratory: {why}");
    }
    let rows: Vec<[String; 6]> = report.flows.iter().map(cells).collect();
    let heads = ["flow", "bytes", "time", "Mb/s", "again", "lost"].map(str::to_owned);
    let widths: [usize; 6] =
        std::array::from_fn(|n| rows.iter().chain([&heads]).map(|row| row[n].len()).max().unwrap_or(0));
    let aligned = |row: &[String; 6]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        cells.join("  ")
    };
    let _ = writeln!(text, "\n{}  its time", aligned(&heads));
    for (row, flow) in rows.iter().zip(&report.flows) {
        let _ = writeln!(text, "{}  {}", aligned(row), bar(&flow.parts));
        let indent = widths[0] + 2;
        let _ = writeln!(text, "{:indent$}{}, {} -> {}{}", "", flow.name, flow.from, flow.to, named_queues(flow));
    }
    let _ = writeln!(text, "\n{}", legend(&report.flows));
    let _ = writeln!(text, "--flow N explains one flow in full.");
    text
}

fn cells(flow: &RealFlow) -> [String; 6] {
    let lost: u64 = flow.lost.iter().map(|place| place.data + place.answers).sum();
    let total = flow.parts.total();
    let took = if flow.end_ps.is_some() { time(total.as_ps()) } else { "-".to_owned() };
    [flow.flow.to_string(), grouped(flow.bytes), took, rate(flow.bytes, total), grouped(flow.again), grouped(lost)]
}

/// Returns the flow's largest waits: "; waited at leaf0:spine1 (61 %)".
fn named_queues(flow: &RealFlow) -> String {
    let total = flow.parts.total();
    let share = |queue: &QueueTime| percent(queue.total_ps(), total);
    let large = flow.queues.iter().filter(|queue| share(queue) >= 1.0).take(NAMED);
    let named: Vec<String> = large.map(|queue| format!("{} ({:.0} %)", queue.port, share(queue))).collect();
    if named.is_empty() { String::new() } else { format!("; waited at {}", named.join(", ")) }
}

/// Renders everything known about one flow.
pub fn render_real_flow(flow: &RealFlow) -> String {
    let mut text = String::new();
    let RealFlow { name, from, to, parts, .. } = flow;
    let total = parts.total();
    let _ = writeln!(text, "flow {}: {name}, {from} -> {to}", flow.flow);
    let start = time(flow.start_ps);
    if flow.end_ps.is_none() {
        let _ = writeln!(text, "began at {start}; none of its {} packets of data arrived", flow.packets);
    } else {
        let (took, rate) = (time(total.as_ps()), rate(flow.bytes, total));
        let _ = writeln!(text, "began at {start}, took {took}: {} bytes, {rate} Mb/s", grouped(flow.bytes));
    }
    let again = if flow.again > 0 { format!(", {} of them again", grouped(flow.again)) } else { String::new() };
    let copies = if flow.copies > 0 { format!(", {} copied by NetRT", grouped(flow.copies)) } else { String::new() };
    let (packets, arrived) = (grouped(flow.packets), grouped(flow.arrived));
    let _ = writeln!(
        text,
        "{packets} packets of data sent{again}{copies}; {arrived} arrived; {} the other way",
        grouped(flow.answers)
    );
    if !total.is_zero() {
        let _ = writeln!(text, "\nwhere the time went");
        for (part, time) in parts.iter().filter(|(_, time)| !time.is_zero()) {
            let share = percent(time.as_ps(), total);
            let bar = part.letter().to_string().repeat((share * BAR / 100.0).round() as usize);
            let line = format!("  {:<14} {:>11}  {share:>5.1} %  {bar}", part.name(), self::time(time.as_ps()));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ = writeln!(text, "  {:<14} {:>11}", "total", time(total.as_ps()));
    }
    write_queues(&mut text, "where it waited in that time", &flow.queues, total, time);
    write_packets(&mut text, flow);
    for (what, places) in [("marked", &flow.marks), ("trimmed", &flow.trims)] {
        if !places.is_empty() {
            let each: Vec<String> =
                places.iter().map(|(port, count)| format!("{} at {port}", grouped(*count))).collect();
            let _ = writeln!(text, "\n{what}: {}", each.join(", "));
        }
    }
    if !flow.lost.is_empty() {
        let _ = writeln!(text, "\n{:<34} {:<14} {:>8} {:>12}", "lost", "reason", "data", "other way");
        for place in &flow.lost {
            let LostAt { node, from, reason, .. } = place;
            let at = if place.on_link { format!("link {from} -> {node}") } else { format!("{node}, came from {from}") };
            let [data, answers] = [place.data, place.answers].map(grouped);
            let _ = writeln!(text, "  {at:<32} {reason:<14} {data:>8} {answers:>12}");
        }
    }
    if !flow.gaps.is_empty() {
        let _ = writeln!(text, "\nthe sender's longest silences");
        for gap in &flow.gaps {
            let then = if gap.before_resending { ", then it retransmitted" } else { "" };
            let _ = writeln!(text, "  {:>11} from {}{then}", time(gap.length_ps), time(gap.start_ps));
        }
    }
    text
}

fn write_packets(text: &mut String, flow: &RealFlow) {
    let times = &flow.per_packet;
    if flow.arrived == 0 {
        return;
    }
    let [mean, p50, p99, max] = [times.mean_ps, times.p50_ps, times.p99_ps, times.max_ps].map(time);
    let _ = writeln!(text, "\neach packet in the fabric: mean {mean}, p50 {p50}, p99 {p99}, longest {max}");
    let mean_of = |ps: u64| ps / flow.arrived;
    for (part, sum) in times.parts.iter().filter(|(_, sum)| mean_of(sum.as_ps()) > 0) {
        let share = percent(sum.as_ps(), times.parts.total());
        let _ = writeln!(text, "  {:<14} {:>11}  {share:>5.1} %", part.name(), time(mean_of(sum.as_ps())));
    }
    write_queues(text, "each packet's wait, mean", &times.queues, times.parts.total(), |ps| time(mean_of(ps)));
}

/// Writes the waits of at least a thousandth of `total`.
fn write_queues(text: &mut String, title: &str, queues: &[QueueTime], total: Duration, of: impl Fn(u64) -> String) {
    let queues: Vec<&QueueTime> = queues.iter().filter(|queue| percent(queue.total_ps(), total) >= 0.1).collect();
    if queues.is_empty() {
        return;
    }
    let heads = ["others", "own", "pause"];
    let _ = writeln!(text, "\n{title:<34} {:>11} {:>11} {:>11}", heads[0], heads[1], heads[2]);
    for queue in queues {
        let [others, own, pause] = [queue.others_ps, queue.own_ps, queue.pause_ps].map(&of);
        let _ = writeln!(text, "  {:<32} {others:>11} {own:>11} {pause:>11}", queue.port);
    }
}

/// Returns the parts as letters, each for an equal share of the time.
fn bar(parts: &RealParts) -> String {
    let total = parts.total();
    let letters = parts.iter().map(|(part, time)| {
        part.letter().to_string().repeat((percent(time.as_ps(), total) * BAR / 100.0).round() as usize)
    });
    letters.collect()
}

fn legend(flows: &[RealFlow]) -> String {
    let is_used = |part: RealPart| flows.iter().any(|flow| !flow.parts[part].is_zero());
    let used = RealPart::ALL.into_iter().filter(|part| is_used(*part));
    let words: Vec<String> = used.map(|part| format!("{} {}", part.letter(), part.name())).collect();
    words.join(", ")
}

fn percent(ps: u64, total: Duration) -> f64 {
    100.0 * ps as f64 / total.as_ps().max(1) as f64
}

fn rate(bytes: u64, time: Duration) -> String {
    if time.is_zero() {
        return "-".to_owned();
    }
    format!("{:.1}", bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
}

/// Returns a time in the unit that suits it.
fn time(ps: u64) -> String {
    let us = ps as f64 / 1e6;
    match us {
        us if us >= 1e6 => format!("{:.3} s", us / 1e6),
        us if us >= 1e3 => format!("{:.3} ms", us / 1e3),
        us => format!("{us:.1} us"),
    }
}

/// Returns a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let grouped = digits.char_indices().map(|(at, digit)| {
        let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
        format!("{}{digit}", if comma { "," } else { "" })
    });
    grouped.collect()
}
