//! Helpers that make summaries from plain numbers.

use selvedge_results::{
    Cut, DeadlockHop, DeadlockReport, Distribution, DropCounts, FlowSummary, NetRtReport, Pauses, PointSummary,
    PortTimes, RunTotals, SeriesInfo, SeriesTraits, StudyInfo, Summary, summarise,
};

/// A series given by its metrics, seed by seed.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) info: SeriesInfo,
    /// Average FCT, average slowdown and 99th percentile FCT of each seed.
    pub(crate) seeds: Vec<[f64; 3]>,
    /// Measured flows that never finished, of 1,000 per seed.
    pub(crate) unfinished: u64,
    /// Whether unfinished flows would not finish with more time either.
    pub(crate) hopeless: bool,
    /// End of the runs, microseconds.
    pub(crate) end_us: f64,
    /// Seeds that end in a deadlock.
    pub(crate) deadlocks: Vec<u64>,
    /// Retransmissions of each seed.
    pub(crate) retransmissions: u64,
    /// Packets dropped at full buffers, per seed.
    pub(crate) drops: u64,
    /// Pause frames sent, per seed.
    pub(crate) pauses: u64,
    /// NetRT counters of the ToR switches, per seed.
    pub(crate) netrt: NetRtReport,
}

/// Returns a series whose three metrics are all `scale` times those of a common run, so that ratios are exact up to
/// `spread` per seed.
pub(crate) fn series(name: &str, recovery: &str, pfc: bool, scale: f64, spread: f64) -> Given {
    let traits = SeriesTraits { pfc, recovery: recovery.into(), congestion: "none".into(), ..SeriesTraits::default() };
    let seeds = (0..5)
        .map(|seed| {
            let scale = scale * (1.0 + spread * (f64::from(seed) - 2.0) / 2.0);
            [100.0 * scale, 2.0 * scale, 900.0 * scale]
        })
        .collect();
    Given {
        info: SeriesInfo { name: name.into(), series: name.into(), case: None, traits, cut: Cut::Written },
        seeds,
        unfinished: 0,
        hopeless: false,
        end_us: 0.0,
        deadlocks: Vec::new(),
        retransmissions: 0,
        drops: 0,
        pauses: u64::from(pfc) * 100,
        netrt: NetRtReport::default(),
    }
}

pub(crate) fn study(given: &[Given]) -> Summary {
    of_points(given, &points(given))
}

/// Returns every point of these series.
pub(crate) fn points(given: &[Given]) -> Vec<PointSummary> {
    let of = |series: &Given| -> Vec<PointSummary> {
        (1..).zip(&series.seeds).map(|(seed, values)| point(series, seed, *values)).collect()
    };
    given.iter().flat_map(of).collect()
}

/// Returns the summary of these series, from the given points.
pub(crate) fn of_points(given: &[Given], points: &[PointSummary]) -> Summary {
    let series: Vec<SeriesInfo> = given.iter().map(|series| with_control(series, given)).collect();
    let info = StudyInfo { title: "A study".into(), threads: 1, version: "0".into(), ..StudyInfo::default() };
    summarise(&info, &series, points)
}

/// Returns the description of a series, including the name of its control if that is in `all`.
fn with_control(series: &Given, all: &[Given]) -> SeriesInfo {
    let traits = &series.info.traits;
    let is_control = |other: &&Given| {
        let theirs = &other.info.traits;
        other.info.case == series.info.case
            && (&theirs.recovery, &theirs.congestion, &theirs.acks)
                == (&traits.recovery, &traits.congestion, &traits.acks)
            && theirs.pfc != traits.pfc
    };
    let control = all.iter().find(is_control).map(|other| other.info.series.clone()).or(traits.control.clone());
    SeriesInfo { traits: SeriesTraits { control, ..traits.clone() }, ..series.info.clone() }
}

pub(crate) fn point(series: &Given, seed: u64, [fct, slowdown, p99]: [f64; 3]) -> PointSummary {
    let deadlock = series.deadlocks.contains(&seed).then(|| DeadlockReport {
        at_us: 200.0,
        since_us: 100.0,
        cycle: ["s1", "s2"]
            .map(|node| DeadlockHop { port: 1, node: node.into(), paused_by: "s2".into(), waiting_bytes: 1 })
            .into(),
    });
    PointSummary {
        series: series.info.name.clone(),
        seed,
        run: RunTotals {
            fingerprint: format!("{seed:016x}"),
            hopeless: series.hopeless,
            end_us: series.end_us,
            data_sent: 1_000,
            pause_frames: series.pauses,
            retransmissions: series.retransmissions,
            data_drops: DropCounts { buffer_full: series.drops, ..DropCounts::default() },
            netrt: series.netrt,
            deadlock,
            ..RunTotals::default()
        },
        flows: FlowSummary {
            measured: 1_000,
            unfinished: series.unfinished,
            fct_us: Distribution { count: 1_000, mean: Some(fct), p99: Some(p99), ..Distribution::default() },
            slowdown: Distribution { count: 1_000, mean: Some(slowdown), ..Distribution::default() },
            ..FlowSummary::default()
        },
        workloads: Vec::new(),
        queues: PortTimes::default(),
        utilisation: PortTimes::default(),
        pauses: Pauses::default(),
    }
}
