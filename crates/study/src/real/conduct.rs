//! Conducts a trial: creates two namespaces, runs a process in each, and collects their counters.

use std::io::{self, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use selvedge_dataplane::impair::{Class, Counts, Plan, Report, Testbed};
use selvedge_telemetry::{DropReason, Drops, Fill, FlowRow, NetRtTotals, Observer, Reordering, RunRecord};
use selvedge_tor::Stats;
use selvedge_units::{Bytes, Duration, Instant};

use super::exchange::{Counted, Hello, Said, Setup, hear, say, time};
use super::translate::Trial;

/// Lock that admits one trial at a time, because trials share this machine's processors.
static ALONE: Mutex<()> = Mutex::new(());
/// Largest size of the headers around a packet's payload, in bytes: ours, UDP's and IPv6's.
const AROUND: u16 = 200;

pub(super) fn conduct(
    trial: &Trial,
    program: &Path,
    words: &[&str],
    observer: &mut dyn Observer,
) -> io::Result<RunRecord> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let names = ["a", "b"].map(|end| format!("selvedge-{}-{end}", std::process::id()));
    let plan = Plan {
        names: names.clone(),
        mtu: trial.setup.mtu + AROUND,
        impairments: trial.impairments.clone(),
        seed: trial.seed,
        tors: trial.tors.clone(),
    };
    let testbed = Testbed::open(&plan)?;
    let outcome = talk(trial, &names, program, words, observer);
    let report = testbed.close()?;
    let (mut rows, counted) = outcome?;
    rows.sort_unstable_by_key(|row| (row.finish, row.workload, row.id));
    observer.on_flows(&rows);
    Ok(record(trial, &rows, &counted, &report))
}

/// Runs the exchange of both processes; returns a row per message, and the counters of each RNIC.
fn talk(
    trial: &Trial,
    names: &[String; 2],
    program: &Path,
    words: &[&str],
    observer: &mut dyn Observer,
) -> io::Result<(Vec<FlowRow>, [Counted; 2])> {
    let mut asking = End::start(&names[0], program, words)?;
    let mut answering = End::start(&names[1], program, words)?;
    say(&mut asking.input, &trial.setup)?;
    say(&mut answering.input, &Setup { messages: Vec::new(), ..trial.setup.clone() })?;
    let hellos = [asking.hello()?, answering.hello()?];
    say(&mut asking.input, &hellos[1])?;
    say(&mut answering.input, &hellos[0])?;
    for end in [&mut answering, &mut asking] {
        end.expect(&Said::Ready)?;
        say(&mut end.input, &true)?;
    }
    let mut rows = Vec::with_capacity(trial.messages.len());
    let counted = loop {
        match asking.hear()? {
            Said::Done(number, begin, end) => rows.push(row(trial, number, begin, end)?),
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

fn row(trial: &Trial, number: u64, begin: u64, end: u64) -> io::Result<FlowRow> {
    let known = trial.messages.get(number as usize);
    let &(message, ideal) = known.ok_or_else(|| io::Error::other(format!("nobody asked for message {number}")))?;
    Ok(FlowRow {
        id: message.id,
        workload: message.workload,
        group: message.group,
        src: message.src,
        dst: message.dst,
        size: message.size,
        packets: message.size.pieces(Bytes::new(u64::from(trial.setup.mtu))),
        start: Instant::ZERO + time(begin),
        finish: Some(Instant::ZERO + time(end)),
        ideal,
        spurious: 0,
        measured: message.measured,
    })
}

/// Returns the counters of both RNICs and of the device between them as a record.
fn record(trial: &Trial, rows: &[FlowRow], counted: &[Counted; 2], report: &Report) -> RunRecord {
    let sum = |of: fn(&Counted) -> u64| counted.iter().map(of).sum::<u64>();
    let seen = |class: Class, of: fn(&Counts) -> u64| {
        report.counts.iter().map(|direction| of(&direction[class as usize])).sum::<u64>()
    };
    let dropped = |class: Class, overflowed: u64| {
        let mut drops = Drops::default();
        drops.by_reason[DropReason::LinkLoss as usize] = seen(class, |counts| counts.lost);
        drops.by_reason[DropReason::BufferFull as usize] = seen(class, |counts| counts.full) + overflowed;
        drops
    };
    RunRecord {
        end: rows.iter().filter_map(|row| row.finish).max().unwrap_or(Instant::ZERO),
        flows_started: trial.messages.len() as u64,
        flows_finished: rows.len() as u64,
        data_sent: sum(|end| end.sent),
        retransmissions: sum(|end| end.retransmissions),
        data_delivered: seen(Class::Data, |counts| counts.delivered),
        spurious_retransmissions: sum(|end| end.duplicates),
        goodput: Bytes::new(sum(|end| end.goodput)),
        timeouts: sum(|end| end.timeouts),
        // Real runs do not report pools.
        reordering: Reordering { buffered: Bytes::new(sum(|end| end.reordered)), ..Reordering::default() },
        acks_sent: seen(Class::Ack, |counts| counts.sent),
        acks_delivered: seen(Class::Ack, |counts| counts.delivered),
        // The kernel does not tell the class of packets dropped before the device; nearly all bytes are data.
        data_drops: dropped(Class::Data, report.overflowed.iter().sum()),
        ack_drops: dropped(Class::Ack, 0),
        netrt: report.tors.as_ref().map(totals).unwrap_or_default(),
        ..RunRecord::default()
    }
}

/// Returns the counters of both switches together.
fn totals(switches: &[Stats; 2]) -> NetRtTotals {
    let mut totals = NetRtTotals::default();
    for Stats { source, destination, messages, pool_peak, pool_mean, buffer_peak, buffer_mean, .. } in switches {
        totals.requests += destination.requests;
        totals.unfulfilled += source.unfulfilled;
        totals.retransmissions += source.retransmissions;
        totals.held += destination.held;
        totals.given_up += destination.given_up;
        totals.messages += messages;
        // Means over the time in use, which is not known: a switch that has nothing counts for nothing.
        let add = |fill: &mut Fill, peak, mean: u64| {
            fill.add(Bytes::new(peak), mean.into(), Duration::from_ps(u64::from(mean > 0)));
        };
        add(&mut totals.pool, *pool_peak, *pool_mean);
        add(&mut totals.buffer, *buffer_peak, *buffer_mean);
    }
    totals
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
