//! Transfer over TCP through one bottleneck in virtual time, with the choices of Linux where the RFCs leave one.
//! `cargo xtask kernel-tcp` calls it.
//!
//! `tcp_bottleneck CONTROL BYTES RATE RTT BUFFER LATE` reads two lines of numbers from standard input: the data
//! packets, counted from 0 as they leave the bottleneck, that are lost, and those that arrive LATE ms late. RATE is in
//! bit/s on the wire, RTT in ms, BUFFER in bytes. It writes the seconds from the call to connect until the last byte
//! arrives, the retransmissions, and the timeouts.

use std::collections::BTreeMap;
use std::io::{self, Error, Read};
use std::process::ExitCode;

use selvedge_transport::tcp::congestion::{CongestionConfig, bbr, cubic, new_reno, vegas};
use selvedge_transport::tcp::{Connection, Params, TcpConfig};
use selvedge_transport::{Cx, Fabric};
use selvedge_units::{Bytes, Duration, Instant, Rate, Setting, TcpSeq};
use selvedge_wire::tcp::Segment;

fn main() -> ExitCode {
    match run() {
        Ok((seconds, retransmissions, timeouts)) => {
            println!("{seconds} {retransmissions} {timeouts}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Payload of a full segment: 1,500 bytes less the headers of IP and TCP and time stamps.
const MSS: Bytes = Bytes::new(1_448);
/// Bytes that a segment takes on the wire beside its own: IP, Ethernet, FCS, preamble, gap.
const AROUND: u64 = 20 + 14 + 4 + 20;

fn config(control: &str) -> io::Result<Params> {
    let congestion: CongestionConfig = match control {
        "reno" => new_reno::Config {}.into(),
        "cubic" => cubic::Config { raise_alpha: false, ..cubic::Config::default() }.into(),
        "bbr" => bbr::Config::default().into(),
        "vegas" => vegas::Config::default().into(),
        other => return Err(Error::other(format!("no congestion control is called {other}"))),
    };
    let mut config = TcpConfig {
        congestion,
        handshake: true,
        min_rto: Setting::Value(Duration::from_ms(200)),
        delayed_ack: Setting::Value(Duration::from_ms(40)),
        slow_start_limit: Setting::Off,
        // Linux has HyStart for CUBIC alone.
        hystart: if control == "cubic" { Setting::Auto } else { Setting::Off },
        receive_buffer: Setting::Value(Bytes::new(6_000_000)),
        ..TcpConfig::default()
    };
    config.resolve(&Fabric::IRN_PAPER, MSS);
    config.params().map_err(Error::other)
}

/// One direction of the path.
struct Way {
    rate: Rate,
    delay: Duration,
    buffer: Duration,
    late_by: Duration,
    free_at: Instant,
    data_packets: u64,
    drops: Vec<u64>,
    late: Vec<u64>,
}

impl Way {
    /// Returns the time at which a segment sent at `now` arrives, if it does.
    fn take(&mut self, now: Instant, segment: &Segment) -> Option<Instant> {
        let bytes = segment.header() as u64 + u64::from(segment.payload) + AROUND;
        let time = self.rate.time_for(Bytes::new(bytes));
        if self.free_at.since(now) + time > self.buffer {
            return None;
        }
        self.free_at = self.free_at.max(now) + time;
        let arrival = self.free_at + self.delay;
        if segment.payload == 0 {
            return Some(arrival);
        }
        let number = self.data_packets;
        self.data_packets += 1;
        let is_in = |list: &[u64]| list.binary_search(&number).is_ok();
        let is_lost = is_in(&self.drops);
        (!is_lost).then(|| if is_in(&self.late) { arrival + self.late_by } else { arrival })
    }
}

fn run() -> io::Result<(f64, u64, u32)> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [control, numbers @ ..] = &words[..] else { return Err(Error::other(USAGE)) };
    let numbers: Vec<u64> = numbers.iter().map_while(|word| word.parse().ok()).collect();
    let [bytes, rate, rtt, buffer, late_by] = numbers[..] else { return Err(Error::other(USAGE)) };
    let mut lists = String::new();
    io::stdin().read_to_string(&mut lists)?;
    let mut lists = lists.lines().map(|line| line.split_whitespace().map_while(|word| word.parse().ok()).collect());
    let mut list = || lists.next().unwrap_or_default();
    let way = |drops, late| {
        let rate = Rate::from_bps(rate);
        let (delay, late_by) = (Duration::from_ms(rtt) / 2, Duration::from_ms(late_by));
        let (free_at, buffer) = (Instant::ZERO, rate.time_for(Bytes::new(buffer)));
        Way { rate, delay, buffer, late_by, free_at, data_packets: 0, drops, late }
    };
    let mut ways = [way(list(), list()), way(Vec::new(), Vec::new())];
    let config = config(control)?;
    let ours = TcpSeq::new(1);
    let mut ends = [Connection::connect(&config, ours), Connection::listen(&config, TcpSeq::new(7))];
    ends[0].supply(bytes);

    let mut flying: BTreeMap<(Instant, u64), (usize, Segment)> = BTreeMap::new();
    let (mut now, mut sent) = (Instant::ZERO, 0);
    while ends[1].received() < bytes {
        let mut cx = Cx::at(now);
        while let Some(first) = flying.first_entry().filter(|first| first.key().0 <= now) {
            let (to, segment) = first.remove();
            let arrival = ends[to].handle_segment(&mut cx, &segment, false);
            ends[to].read(arrival.in_order);
        }
        for (from, way) in ways.iter_mut().enumerate() {
            if ends[from].poll_timeout().is_some_and(|at| at <= now) {
                ends[from].handle_timeout(&mut cx);
            }
            while let Some(transmit) = ends[from].poll_transmit(&mut cx) {
                if let Some(arrival) = way.take(now, &transmit.segment) {
                    flying.insert((arrival, sent), (1 - from, transmit.segment));
                    sent += 1;
                }
            }
        }
        let timers = ends.iter().filter_map(Connection::poll_timeout);
        let arrival = flying.first_key_value().map(|(&(at, _), _)| at);
        now = timers.chain(arrival).min().ok_or_else(|| Error::other("the transfer is stuck"))?;
    }
    let stats = ends[0].stats();
    Ok((now.since(Instant::ZERO).as_secs_f64(), stats.retransmissions, stats.timeouts))
}

const USAGE: &str = "usage: tcp_bottleneck CONTROL BYTES RATE RTT BUFFER LATE, numbers but the first";
