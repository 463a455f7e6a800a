//! A synthetic study: a fat-tree of 54 hosts whose flows and queues are drawn from a few formulas. Replaces the
//! simulator in examples and tests of tables and reports.

use std::path::Path;

use selvedge_results::{Cut, LinkRow, PointFiles, PointRecorder, PointSummary, ResultsError, SeriesInfo, SeriesTraits};
use selvedge_telemetry::{
    Deadlock, DropReason, Drops, FlowRow, Observer, PausedHop, PortInfo, PortKind, PortRow, PortTotals, RunRecord,
    TimePart, TimeProfile, WorkloadTime,
};
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, PortId, Rate, Rng};

/// The behaviour of one synthetic series.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    /// Name of the series.
    pub(crate) name: &'static str,
    /// Whether PFC is enabled.
    pub(crate) pfc: bool,
    /// Loss recovery, by its registry name.
    pub(crate) recovery: &'static str,
    /// Approximate slowdown of the flows.
    pub(crate) slowdown: f64,
    /// Share of data packets lost.
    pub(crate) loss: f64,
    /// Share of measured flows that never finish.
    pub(crate) unfinished: f64,
    /// Seed that ends in a deadlock, if any.
    pub(crate) deadlock: Option<u64>,
}

impl Profile {
    /// Returns the description of the series for the summary.
    pub(crate) fn info(&self) -> SeriesInfo {
        let traits = SeriesTraits {
            pfc: self.pfc,
            recovery: self.recovery.into(),
            congestion: "none".into(),
            ..SeriesTraits::default()
        };
        SeriesInfo { name: self.name.into(), series: self.name.into(), case: None, traits, cut: Cut::Written }
    }
}

/// Returns profiles similar to the IRN paper's four series.
pub(crate) fn irn_study() -> Vec<Profile> {
    let series = |name, pfc, recovery, slowdown, loss| Profile {
        name,
        pfc,
        recovery,
        slowdown,
        loss,
        unfinished: 0.0,
        deadlock: None,
    };
    vec![
        series("irn", false, "irn", 1.9, 0.082),
        series("irn+pfc", true, "irn", 3.1, 0.0),
        series("roce+pfc", true, "go-back-n", 5.4, 0.0),
        series("roce", false, "go-back-n", 9.5, 0.121),
    ]
}

/// Records one point of the study into `folder`.
pub(crate) fn record(
    folder: &Path,
    position: usize,
    profile: &Profile,
    seed: u64,
    flows: u64,
) -> Result<PointSummary, ResultsError> {
    let ports = fat_tree();
    let mut rng = Rng::stream(seed, Domain::WorkloadShape, position as u64);
    let files = PointFiles::new(folder, position, seed);
    let mut recorder = PointRecorder::create(files, profile.name, seed, &ports)?;
    let end = Instant::from_ps(2_000_000 * flows.max(600));
    let paused = sample_ports(&mut recorder, &ports, profile, end, &mut rng);
    let (data_sent, lost) = send_flows(&mut recorder, profile, flows, end, &mut rng);
    let mut record = run_record(&ports, &paused, profile, flows, data_sent, lost, end);
    record.fingerprint = selvedge_units::mix64(seed ^ (position as u64) << 32);
    record.time = time_profile(profile, seed);
    if profile.deadlock == Some(seed) {
        record.deadlock = Some(deadlock(end));
    }
    recorder.finish(&record)
}

fn send_flows(recorder: &mut PointRecorder, profile: &Profile, flows: u64, end: Instant, rng: &mut Rng) -> (u64, u64) {
    let mut data_sent = 0;
    // Runs differ slightly as a whole, as runs of different seeds do.
    let run_factor = 0.97 + 0.06 * rng.unit_f64();
    for id in 0..flows {
        // Half of the messages are one packet; the sizes of the others are spread up to 3 MB on a log scale.
        let packets = if rng.unit_f64() < 0.5 { 1 } else { 10_f64.powf(rng.unit_f64().powi(2) * 3.5) as u64 + 1 };
        let size = if packets == 1 { 32 + rng.next_u64() % 969 } else { packets * 1000 };
        let ideal_ps = 12_000_000 + size * 200;
        // An exponential queueing delay, and rarely a timeout.
        let wait = -rng.unit_f64().max(1e-9).ln() * (profile.slowdown - 1.0) * run_factor;
        let rare = if rng.unit_f64() < profile.loss / 12.0 { 320.0e6 } else { 0.0 };
        let pfc_spread = if profile.pfc { 1.0 + 3.0 / packets as f64 } else { 1.0 };
        let fct_ps = (ideal_ps as f64 * (1.0 + wait * pfc_spread) + rare) as u64;
        let start = Instant::from_ps(end.as_ps() / flows.max(1) * id);
        let measured = id * 10 >= flows;
        let finished = !(measured && rng.unit_f64() < profile.unfinished);
        let row = FlowRow {
            id,
            workload: 0,
            group: 0,
            src: HostId((id % 54) as u32),
            dst: HostId(((id * 7 + 1) % 54) as u32),
            size: Bytes::new(size),
            packets,
            start,
            finish: finished.then(|| start + Duration::from_ps(fct_ps)),
            ideal: Duration::from_ps(ideal_ps),
            spurious: 0,
            measured,
        };
        recorder.on_flows(&[row]);
        data_sent += packets;
    }
    (data_sent, (data_sent as f64 * profile.loss) as u64)
}

/// Samples waves of congestion that begin at one port and, with PFC, spread upstream; returns paused time by port.
fn sample_ports(
    recorder: &mut PointRecorder,
    ports: &[PortInfo],
    profile: &Profile,
    end: Instant,
    rng: &mut Rng,
) -> Vec<Duration> {
    let interval = Duration::from_ps(end.as_ps() / 600);
    let mut paused = vec![Duration::ZERO; ports.len()];
    for step in 1..=600_u64 {
        let wave = (step as f64 / 37.0).sin().max(0.0) * (0.6 + 0.4 * (step as f64 / 180.0).cos());
        let rows: Vec<PortRow> = ports
            .iter()
            .map(|port| {
                let hot = f64::from((port.id.0.wrapping_mul(2_654_435_761)) >> 22) / 1024.0;
                let depth = match port.kind {
                    PortKind::Host => 0.0,
                    PortKind::Switch { tier } => hot.powi(4) * 90_000.0 * (0.4 + wave) * (1.0 + f64::from(tier) * 0.3),
                };
                let share =
                    if profile.pfc { (hot * 1.15 + wave * 0.5 - 1.05).clamp(0.0, 0.9) * rng.unit_f64() } else { 0.0 };
                let stopped = Duration::from_ps((interval.as_ps() as f64 * share) as u64);
                paused[port.id.index()] = paused[port.id.index()] + stopped;
                PortRow {
                    time: Instant::ZERO + interval * step,
                    port: port.id,
                    egress_queue: Bytes::new((depth * (0.5 + rng.unit_f64())) as u64),
                    ingress_buffer: Bytes::new(depth as u64),
                    paused: stopped,
                    busy: Duration::from_ps((interval.as_ps() as f64 * (0.35 + 0.35 * hot + 0.25 * wave)) as u64),
                    drops: 0,
                    trims: 0,
                }
            })
            .collect();
        recorder.on_ports(&rows);
    }
    paused
}

fn run_record(
    ports: &[PortInfo],
    paused: &[Duration],
    profile: &Profile,
    flows: u64,
    data_sent: u64,
    lost: u64,
    end: Instant,
) -> RunRecord {
    let mut data_drops = Drops::default();
    data_drops.by_reason[DropReason::BufferFull as usize] = lost;
    let totals = ports.iter().zip(paused).map(|(port, &paused)| PortTotals {
        id: port.id,
        frames: 1000,
        bytes: Bytes::new((end.as_ps() as f64 * 0.7 / 200.0) as u64),
        paused,
        pauses_sent: paused.as_ps() / 4_000_000,
        egress_peak: Bytes::new(180_000),
        drops: 0,
        trims: 0,
    });
    let retransmissions = if profile.recovery == "irn" { lost } else { lost * 9 };
    RunRecord {
        end,
        packet_hops: data_sent * 8,
        events: data_sent * 11,
        flows_started: flows,
        flows_finished: flows,
        data_sent: data_sent + retransmissions,
        retransmissions,
        data_delivered: data_sent + retransmissions - lost,
        spurious_retransmissions: retransmissions - lost,
        goodput: Bytes::new(data_sent * 1000),
        timeouts: lost / 200,
        data_drops,
        paused: paused.iter().copied().sum(),
        ports: totals.collect(),
        cpu_s: 3.1,
        wall_s: 3.2,
        ..RunRecord::default()
    }
}

/// Returns the split of the flows' time, in parts of a thousand.
fn time_profile(profile: &Profile, seed: u64) -> TimeProfile {
    let mut time = WorkloadTime { samples: 9_000 + seed, ..WorkloadTime::default() };
    let lossy = (profile.loss * 4_000.0) as u128;
    for (part, thousandths) in [
        (TimePart::Serialisation, 250),
        (TimePart::Propagation, 120),
        (TimePart::Queueing, 300 + u128::from(seed)),
        (TimePart::Acks, if profile.recovery == "irn" { 40 } else { 0 }),
        (TimePart::Pause, if profile.pfc { 180 } else { 0 }),
        (TimePart::Nic, 150),
        (TimePart::Recovery, lossy),
        (TimePart::Timeout, lossy / 3),
    ] {
        time.parts[part] = thousandths * 1_000_000_000;
    }
    TimeProfile { workloads: vec![time], looks: 90 }
}

fn deadlock(end: Instant) -> Deadlock {
    let hop = |port, node: &str, paused_by: &str| PausedHop {
        port: PortId(port),
        node: node.into(),
        paused_by: paused_by.into(),
        waiting: Bytes::new(231_000),
    };
    Deadlock {
        at: end,
        since: Instant::from_ps(end.as_ps() / 2),
        cycle: vec![
            hop(61, "edge0", "agg1"),
            hop(75, "agg1", "edge2"),
            hop(83, "edge2", "agg0"),
            hop(97, "agg0", "edge0"),
        ],
    }
}

/// Returns the links of the network.
#[allow(dead_code, reason = "tests of reports take no links")]
pub(crate) fn links() -> Vec<LinkRow> {
    let row = |port: PortInfo| LinkRow { link: port.id.0 / 2, port, delay: Duration::from_us(2), loss: 0.0 };
    fat_tree().into_iter().map(row).collect()
}

/// Returns the ports of a fat-tree with k = 6, two ports per link.
fn fat_tree() -> Vec<PortInfo> {
    let mut ports = Vec::new();
    let mut link = |a: (String, PortKind), b: (String, PortKind)| {
        let first = ports.len() as u32;
        let rate = Rate::from_gbps(40);
        let mut end = |id: u32, peer: u32, mine: &(String, PortKind), other: &(String, PortKind)| {
            ports.push(PortInfo {
                id: PortId(id),
                node: mine.0.as_str().into(),
                peer: other.0.as_str().into(),
                peer_id: PortId(peer),
                kind: mine.1,
                peer_kind: other.1,
                rate,
            });
        };
        end(first, first + 1, &a, &b);
        end(first + 1, first, &b, &a);
    };
    let switch = |name: &str, index: u32, tier| (format!("{name}{index}"), PortKind::Switch { tier });
    for pod in 0..6 {
        for edge in 0..3 {
            for host in 0..3 {
                let host = (format!("h{}", (pod * 3 + edge) * 3 + host), PortKind::Host);
                link(host, switch("edge", pod * 3 + edge, 0));
            }
            for agg in 0..3 {
                link(switch("edge", pod * 3 + edge, 0), switch("agg", pod * 3 + agg, 1));
            }
        }
        for agg in 0..3 {
            for core in 0..3 {
                link(switch("agg", pod * 3 + agg, 1), switch("core", agg * 3 + core, 2));
            }
        }
    }
    ports
}
