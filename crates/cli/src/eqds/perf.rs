//! Command `selvedge eqds perf`: latency and bandwidth of native messages.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use selvedge_native::{LONGEST_MESSAGE, Outcome, Sending, Socket, default_path, native_socket};
use selvedge_study::Stopwatch;
use selvedge_units as units;

use crate::output::{self, Failure, print};

#[derive(Args)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct PerfArgs {
    #[command(subcommand)]
    command: PerfCommand,
}

#[derive(Subcommand)]
enum PerfCommand {
    /// Answer clients, until Ctrl-C
    Server(ServerArgs),
    /// Measure the way to a server
    #[command(after_long_help = EXAMPLES)]
    Client(ClientArgs),
}

#[derive(Args)]
struct ServerArgs {
    /// Port of native messages
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Args)]
struct ClientArgs {
    /// Address inside of the host on which the server runs
    #[arg(value_name = "PEER")]
    peer: IpAddr,
    /// Port of the server
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Bytes of messages whose bandwidth is measured; 1MiB at most
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    size: units::Bytes,
    /// Time for which bandwidth is measured; 0s leaves it out
    #[arg(long, value_name = "TIME", default_value = "3s")]
    time: units::Duration,
    /// Bytes under way at most, when bandwidth is measured
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    window: units::Bytes,
    /// Questions by which latency is measured, one after the other; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    count: u32,
    /// Bytes of these questions, and of their answers
    #[arg(long, value_name = "SIZE", default_value = "64B")]
    ping_size: units::Bytes,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Args)]
struct DaemonArgs {
    /// Control socket of the daemon [default: SELVEDGE_EQDS, or /run/selvedge/eqds.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Port of the server: that of the tunnels, one further.
const PORT: u16 = 49_017;
/// Seconds for which an answer or a notice is awaited.
const PATIENCE: f64 = 10.0;
/// Time after which the client looks why there is no answer.
const GLANCE: Duration = Duration::from_millis(100);
/// Most messages under way: more give more notices than the daemon keeps.
const MOST_UNDER_WAY: u64 = 2_048;
/// First byte of a message: to be answered, or only to be received.
const QUESTION: u8 = b'?';
const DATA: u8 = b'.';

const EXAMPLES: &str = "\
Examples:
  selvedge eqds perf server                                    on the host with 10.80.2.1 inside
  selvedge eqds perf client 10.80.2.1                          on another: latency, then bandwidth
  selvedge eqds perf client 10.80.2.1 --size 1KB --time 10s
  selvedge eqds perf client 10.80.2.1 --count 0 --json | jq .bandwidth.gbps

Latency is the time from a question to its answer, programs included. Bandwidth counts the bytes of messages
that have arrived; the time of a message is that from sending it to the notice of its arrival. Both need the
daemon, `selvedge eqds up`, at both ends.
Exit status: 0 well, 1 no daemon, no server, or the server does not answer, 2 wrong arguments.";

pub(crate) fn perf(args: &PerfArgs) -> Result<(), Failure> {
    match &args.command {
        PerfCommand::Server(args) => serve(args),
        PerfCommand::Client(args) => measure(args),
    }
}

fn open(daemon: &DaemonArgs, port: u16) -> Result<Socket, Failure> {
    let path = daemon.socket.as_deref().map_or_else(default_path, native_socket);
    Socket::bind_at(&path, port, None).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            Failure::input(format!("another program has port {port}; choose another by --port"))
        }
        io::ErrorKind::PermissionDenied => Failure::input(error.to_string()),
        _ => Failure::outcome(error.to_string()),
    })
}

fn lost(error: io::Error) -> Failure {
    Failure::outcome(error.to_string())
}

fn serve(args: &ServerArgs) -> Result<(), Failure> {
    let socket = open(&args.daemon, args.port)?;
    output::say(&format!("ready: native messages to port {}", socket.port()));
    let mut buffer = vec![0; LONGEST_MESSAGE];
    loop {
        let (length, source) = socket.recv_from(&mut buffer).map_err(lost)?;
        if buffer[..length].first() == Some(&QUESTION) {
            socket.send_to(&buffer[..length], source).map_err(lost)?;
        }
        // Clients that have gone refuse their answers.
        while socket.try_notice().is_ok() {}
    }
}

/// A sorted sample of times in microseconds.
struct Times(Vec<f64>);

impl Times {
    fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self(times)
    }
    /// Returns the smallest time that `part` of all times do not exceed.
    fn quantile(&self, part: f64) -> f64 {
        let rank = (part * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
    }
    fn summary(&self) -> Quantiles {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| self.quantile(part));
        Quantiles { least: self.quantile(0.0), p50, p99, p999, largest: self.quantile(1.0) }
    }
}

#[derive(serde::Serialize)]
struct Quantiles {
    least: f64,
    p50: f64,
    p99: f64,
    p999: f64,
    largest: f64,
}

impl Quantiles {
    fn text(&self) -> String {
        let Self { least, p50, p99, p999, largest } = self;
        format!("least {least:.0} us, p50 {p50:.0} us, p99 {p99:.0} us, p99.9 {p999:.0} us, largest {largest:.0} us")
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "kebab-case")]
struct Latency {
    message_bytes: u64,
    messages: u32,
    /// Microseconds.
    us: Quantiles,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "kebab-case")]
struct Bandwidth {
    message_bytes: u64,
    seconds: f64,
    messages: u64,
    refused: u64,
    gbps: f64,
    messages_per_second: f64,
    /// Microseconds from sending a message to the notice of its arrival.
    us: Quantiles,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "kebab-case")]
struct Report {
    peer: SocketAddr,
    latency: Option<Latency>,
    bandwidth: Option<Bandwidth>,
    /// Smoothed round-trip time of the tunnel in microseconds, as the daemon measures it.
    tunnel_round_trip_us: f64,
}

fn measure(args: &ClientArgs) -> Result<(), Failure> {
    for (name, size) in [("--size", args.size), ("--ping-size", args.ping_size)] {
        if !(1..=LONGEST_MESSAGE as u64).contains(&size.get()) {
            return Err(Failure::input(format!("{name} {size}; expected 1B to 1MiB")));
        }
    }
    let socket = open(&args.daemon, 0)?;
    let peer = SocketAddr::new(args.peer, args.port);
    socket.reach(args.peer).map_err(|error| match error.kind() {
        io::ErrorKind::HostUnreachable => Failure::input(format!(
            "no peer serves {}; `selvedge eqds status --json` shows who serves what, PEER is an address inside",
            args.peer
        )),
        _ => lost(error),
    })?;
    // A first question tells whether there is a server, and sets the tunnel up.
    ask(&socket, peer, &[QUESTION], &mut [0; 1])?;
    let latency = (args.count > 0).then(|| latency(&socket, peer, args)).transpose()?;
    let bandwidth = (args.time > units::Duration::ZERO).then(|| bandwidth(&socket, peer, args)).transpose()?;
    let tunnel_round_trip_us = socket.reach(args.peer).map_err(lost)?.smoothed_ns as f64 / 1e3;
    let report = Report { peer, latency, bandwidth, tunnel_round_trip_us };
    if args.json {
        return print(&(output::json(&report) + "\n"));
    }
    let mut text = String::new();
    if let Some(Latency { message_bytes, messages, us }) = &report.latency {
        text += &format!("latency    {messages} questions of {message_bytes} bytes: {}\n", us.text());
    }
    if let Some(Bandwidth { message_bytes, seconds, messages, refused, gbps, us, .. }) = &report.bandwidth {
        text += &format!("bandwidth  {gbps:.3} Gb/s: {messages} messages of {message_bytes} bytes in {seconds:.2} s");
        text += if *refused > 0 { ", some refused\n" } else { "\n" };
        text += &format!("           each {}\n", us.text());
    }
    text += &format!("tunnel     round trip {tunnel_round_trip_us:.0} us\n");
    print(&text)
}

/// Sends a question and waits for the answer; returns the time in microseconds.
fn ask(socket: &Socket, peer: SocketAddr, question: &[u8], answer: &mut [u8]) -> Result<f64, Failure> {
    let time = Stopwatch::start();
    socket.send_to(question, peer).map_err(lost)?;
    loop {
        match socket.recv(answer, Some(GLANCE)) {
            Ok(received) if received.source == peer => return Ok(1e6 * time.seconds()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let notices = std::iter::from_fn(|| socket.try_notice().ok());
                if let Some(notice) = notices.into_iter().find(|notice| !notice.outcome.is_success()) {
                    return Err(Failure::outcome(reason(peer, notice.outcome)));
                }
                if time.seconds() > PATIENCE {
                    return Err(Failure::outcome(format!("{peer} does not answer")));
                }
            }
            Err(error) => return Err(lost(error)),
        }
    }
}

fn latency(socket: &Socket, peer: SocketAddr, args: &ClientArgs) -> Result<Latency, Failure> {
    let question = vec![QUESTION; args.ping_size.get() as usize];
    let mut answer = question.clone();
    let times = (0..args.count).map(|_| ask(socket, peer, &question, &mut answer)).collect::<Result<_, _>>()?;
    let us = Times::new(times).summary();
    Ok(Latency { message_bytes: args.ping_size.get(), messages: args.count, us })
}

fn bandwidth(socket: &Socket, peer: SocketAddr, args: &ClientArgs) -> Result<Bandwidth, Failure> {
    let (size, wanted_s) = (args.size.get(), args.time.as_ps() as f64 / 1e12);
    let message = vec![DATA; size as usize];
    // Two at least, so that one waits while the other is under way.
    let most = (args.window.get() / size).clamp(2, MOST_UNDER_WAY);
    let mut under_way: Vec<Option<Stopwatch>> = vec![None; most as usize];
    let (mut free, mut times): (Vec<usize>, Vec<f64>) = ((0..under_way.len()).collect(), Vec::new());
    let (mut refused, time) = (0, Stopwatch::start());
    let mut last_s = 0.0;
    loop {
        while time.seconds() < wanted_s
            && let Some(tag) = free.pop()
        {
            under_way[tag] = Some(Stopwatch::start());
            let sending = Sending { tag: tag as u32, wants_notice: true, ..Sending::to(peer) };
            socket.send(&message, &sending).map_err(lost)?;
        }
        if free.len() == under_way.len() {
            break;
        }
        let notice = socket.notice(Some(Duration::from_secs_f64(PATIENCE))).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => Failure::outcome(format!("{peer} does not answer")),
            _ => lost(error),
        })?;
        match notice.outcome {
            Outcome::Arrived | Outcome::Sent => {
                let tag = notice.tag as usize;
                let Some(sent) = under_way.get_mut(tag).and_then(Option::take) else { continue };
                times.push(1e6 * sent.seconds());
                free.push(tag);
                last_s = time.seconds();
            }
            Outcome::Full => refused += 1,
            outcome => return Err(Failure::outcome(reason(peer, outcome))),
        }
    }
    let messages = times.len() as u64 - refused;
    let per_second = messages as f64 / last_s;
    let gbps = per_second * size as f64 * 8.0 / 1e9;
    let us = Times::new(times).summary();
    Ok(Bandwidth { message_bytes: size, seconds: last_s, messages, refused, gbps, messages_per_second: per_second, us })
}

fn reason(peer: SocketAddr, outcome: Outcome) -> String {
    match outcome {
        Outcome::NoListener => {
            format!("no server has port {} of {}; `selvedge eqds perf server` starts one", peer.port(), peer.ip())
        }
        Outcome::Unreachable => format!("the host of {} does not answer; `selvedge eqds peers` tells more", peer.ip()),
        Outcome::Unsupported => format!("the daemon of {} is too old for native messages", peer.ip()),
        outcome => format!("messages to {peer} do not arrive: {outcome:?}"),
    }
}
