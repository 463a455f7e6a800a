//! Conducts a trial: makes two hosts, runs a process in each and the switches between them, and collects all counters.

use std::io::{self, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use selvedge_dataplane::lab::{Rack, RackHost, RackPlan};
use selvedge_dataplane::switch::ports::PortKind;
use selvedge_dataplane::switch::{Bridge, Directory, Outcome, Running};
use selvedge_sim::workload::FlowSpec;
use selvedge_telemetry::{DropReason, FlowRow, Observer, Reordering, RunRecord};
use selvedge_units::{Bytes, Duration, Instant};

use super::between::Between;
use super::exchange::{Counted, Hello, Said, Setup, hear, say, time};
use super::translate::Trial;

/// Lock that admits one trial at a time, because trials share this machine's processors.
static ALONE: Mutex<()> = Mutex::new(());
/// Largest size of the headers around a packet's payload, in bytes: ours, UDP's and IPv6's.
const AROUND: u16 = 200;

pub(super) fn conduct(
    trial: Trial,
    program: &Path,
    words: &[&str],
    observer: &mut dyn Observer,
) -> io::Result<RunRecord> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Trial { setup, parts, hosts, messages } = trial;
    // Hosts send as fast as they can: what their links do not carry yet waits before the first switch.
    let host = |name: &str| RackHost { name: name.to_owned(), rate: None };
    let plan = RackPlan {
        name: format!("selvedge-{}", std::process::id()),
        hosts: vec![host("a"), host("b")],
        mtu: setup.mtu + AROUND,
        kind: Some(PortKind::Tap),
    };
    let racked = Rack::open(&plan, &mut || false)?;
    racked.rack.introduce(&plan)?;
    let mut directory = Directory::new(2);
    (0..2).for_each(|host| directory.add(host, plan.station(host), plan.addresses(host)));
    let between = Between::new(parts, hosts);
    // Values are dropped from the last to the first: the switches end before their hosts.
    let _rack = racked.rack;
    let running = Running::start(Bridge::new(between, directory), racked.ports, None)?;
    let names = [0, 1].map(|host| plan.namespace(host));
    let outcome = talk(&setup, &messages, &names, program, words, observer);
    let ended = running.close()?;
    let (mut rows, counted) = outcome?;
    rows.sort_unstable_by_key(|row| (row.finish, row.workload, row.id));
    observer.on_flows(&rows);
    Ok(record(messages.len(), &rows, &counted, &ended))
}

/// Runs the exchange of both processes; returns a row per message, and the counters of each RNIC.
fn talk(
    setup: &Setup,
    messages: &[(FlowSpec, Duration)],
    names: &[String; 2],
    program: &Path,
    words: &[&str],
    observer: &mut dyn Observer,
) -> io::Result<(Vec<FlowRow>, [Counted; 2])> {
    let mut asking = End::start(&names[0], program, words)?;
    let mut answering = End::start(&names[1], program, words)?;
    say(&mut asking.input, setup)?;
    say(&mut answering.input, &Setup { messages: Vec::new(), ..setup.clone() })?;
    let hellos = [asking.hello()?, answering.hello()?];
    say(&mut asking.input, &hellos[1])?;
    say(&mut answering.input, &hellos[0])?;
    for end in [&mut answering, &mut asking] {
        end.expect(&Said::Ready)?;
        say(&mut end.input, &true)?;
    }
    let mut rows = Vec::with_capacity(messages.len());
    let counted = loop {
        match asking.hear()? {
            Said::Done(number, begin, end) => rows.push(row(setup, messages, number, begin, end)?),
            Said::End(counted) => break counted,
            said => return Err(unexpected(&said)),
        }
        observer.on_progress(Instant::ZERO, rows.len() as u64);
    };
    say(&mut answering.input, &true)?;
    match answering.hear()? {
        Said::End(answered) => Ok((rows, [counted, answered])),
        said => Err(unexpected(&said)),
    }
}

fn row(setup: &Setup, messages: &[(FlowSpec, Duration)], number: u64, begin: u64, end: u64) -> io::Result<FlowRow> {
    let known = messages.get(number as usize);
    let &(message, ideal) = known.ok_or_else(|| io::Error::other(format!("nobody asked for message {number}")))?;
    Ok(FlowRow {
        id: message.id,
        workload: message.workload,
        group: message.group,
        src: message.src,
        dst: message.dst,
        size: message.size,
        packets: message.size.pieces(Bytes::new(u64::from(setup.mtu))),
        start: Instant::ZERO + time(begin),
        finish: Some(Instant::ZERO + time(end)),
        ideal,
        spurious: 0,
        measured: message.measured,
    })
}

/// Returns the counters of both RNICs and of the switches between them as a record.
fn record(started: usize, rows: &[FlowRow], counted: &[Counted; 2], ended: &Outcome<Between>) -> RunRecord {
    let sum = |of: fn(&Counted) -> u64| counted.iter().map(of).sum::<u64>();
    let between = &ended.engine;
    let mut record = RunRecord {
        end: rows.iter().filter_map(|row| row.finish).max().unwrap_or(Instant::ZERO),
        flows_started: started as u64,
        flows_finished: rows.len() as u64,
        data_sent: sum(|end| end.sent),
        retransmissions: sum(|end| end.retransmissions),
        data_delivered: between.delivered.data,
        spurious_retransmissions: sum(|end| end.duplicates),
        goodput: Bytes::new(sum(|end| end.goodput)),
        timeouts: sum(|end| end.timeouts),
        // Real runs do not report pools.
        reordering: Reordering { buffered: Bytes::new(sum(|end| end.reordered)), ..Reordering::default() },
        acks_sent: between.sent.acks,
        acks_delivered: between.delivered.acks,
        ..RunRecord::default()
    };
    between.fabric.add_to(&mut record);
    // Frames that the kernel has dropped between a host and its port. Their kind is not known; nearly all bytes are
    // data.
    let lost: u64 = ended.ports.iter().map(|port| port.overflowed + port.refused).sum();
    record.data_drops.by_reason[DropReason::BufferFull as usize] += lost;
    record
}

/// A process with its input and output.
struct End {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl End {
    fn start(namespace: &str, program: &Path, words: &[&str]) -> io::Result<Self> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(program).args(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped")
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }
    fn hear(&mut self) -> io::Result<Said> {
        match hear(&mut self.output)? {
            Said::Failed(why) => Err(io::Error::other(why)),
            said => Ok(said),
        }
    }
    fn hello(&mut self) -> io::Result<Hello> {
        match self.hear()? {
            Said::Hello(hello) => Ok(hello),
            said => Err(unexpected(&said)),
        }
    }
    fn expect(&mut self, what: &Said) -> io::Result<()> {
        let said = self.hear()?;
        if said == *what { Ok(()) } else { Err(unexpected(&said)) }
    }
}

/// Kills the process, so that none outlives its trial.
impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unexpected(said: &Said) -> io::Error {
    io::Error::other(format!("an end of the trial said {said:?} out of turn"))
}
