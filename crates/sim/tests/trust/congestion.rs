//! Congestion controls where their papers say they come to rest: many long flows through one bottleneck.

use selvedge_transport::CongestionConfig;
use selvedge_transport::congestion::dcqcn::{DcqcnConfig, Defaults};
use selvedge_transport::congestion::dctcp::DctcpConfig;
use selvedge_transport::congestion::timely::TimelyConfig;
use selvedge_units::{Bytes, Duration, Instant, PortId, Rate, Setting};

use crate::support::{Outcome, Scene, Series, link, star};

const LINE: Rate = Rate::from_gbps(40);

/// `flows` hosts send to one, from the beginning and without end, for `ms` milliseconds.
struct Bottleneck {
    outcome: Outcome,
    flows: u32,
    half: Instant,
}

impl Bottleneck {
    fn run(series: Series, congestion: CongestionConfig, flows: u32, delay_ns: u64, ms: u64) -> Self {
        let links = vec![link(40, delay_ns); flows as usize + 1];
        let scene = Scene::new(star(&links), series).buffer(Some(2_000_000)).with(|config| {
            config.transport.congestion = congestion;
            config.stop.time = Some(Duration::from_ms(ms));
            config.sample = Some(Duration::from_us(10));
        });
        let scene = (0..flows).fold(scene, |scene, host| scene.flow(host, flows, 1_000_000_000, Duration::ZERO));
        let half = Instant::ZERO + Duration::from_ms(ms) / 2;
        Self { outcome: scene.run(), flows, half }
    }
    /// What each flow sent in the second half, as a part of the line rate.
    fn shares(&self) -> Vec<f64> {
        let share = |host| {
            let rows = self.outcome.ports.iter().filter(|row| row.port == PortId(host) && row.time > self.half);
            let (busy, count) = rows.fold((0.0, 0.0), |(busy, n), row| (busy + row.busy.as_us_f64(), n + 1.0));
            busy / (count * 10.0)
        };
        (0..self.flows).map(share).collect()
    }
    /// What waited for the bottleneck in the second half, sample by sample.
    fn queue(&self) -> Vec<f64> {
        let bottleneck = PortId(self.flows + 1 + self.flows);
        let rows = self.outcome.ports.iter().filter(|row| row.port == bottleneck && row.time > self.half);
        rows.map(|row| row.egress_queue.get() as f64).collect()
    }
}

/// Jain's index: 1 where all are equal, 1/n where one has everything.
fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (squares * shares.len() as f64)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MAX, f64::min)
}

#[test]
fn probe() {
    for (name, defaults) in [("paper", Defaults::Paper), ("cx", Defaults::ConnectX)] {
        for flows in [2, 10, 50] {
            let config = DcqcnConfig { defaults, ..DcqcnConfig::default() };
            let t = std::time::Instant::now();
            let run = Bottleneck::run(Series::RocePfc, config.into(), flows, 1_000, 200);
            let (shares, queue) = (run.shares(), run.queue());
            eprintln!(
                "dcqcn {name} {flows}: sum {:.4} jain {:.4} min {:.4} max {:.4} queue {:.0} {:.0} {:.0} marks {} cnps {} pauses {} {:?}",
                shares.iter().sum::<f64>(),
                fairness(&shares),
                least(&shares),
                most(&shares),
                least(&queue),
                mean(&queue),
                most(&queue),
                run.outcome.record.ecn_marks,
                run.outcome.record.cnps_sent,
                run.outcome.record.pause_frames,
                t.elapsed()
            );
        }
    }
    for flows in [2, 4, 10, 50] {
        for series in [Series::RocePfc, Series::Irn] {
            let run = Bottleneck::run(series, TimelyConfig::default().into(), flows, 1_000, 200);
            let (shares, queue) = (run.shares(), run.queue());
            let rtt = |q: f64| 5.0 + q * 8.0 / 40e3;
            eprintln!(
                "timely {series:?} {flows}: sum {:.4} jain {:.4} min {:.4} max {:.4} rtt {:.1} {:.1} {:.1} pauses {}",
                shares.iter().sum::<f64>(),
                fairness(&shares),
                least(&shares),
                most(&shares),
                rtt(least(&queue)),
                rtt(mean(&queue)),
                rtt(most(&queue)),
                run.outcome.record.pause_frames
            );
        }
    }
    for flows in [2, 4, 10] {
        let run = Bottleneck::run(
            Series::Irn,
            DctcpConfig { k: Setting::Value(Bytes::from_kb(65)), ..DctcpConfig::default() }.into(),
            flows,
            10_000,
            40,
        );
        let (shares, queue) = (run.shares(), run.queue());
        eprintln!(
            "dctcp {flows}: sum {:.4} jain {:.4} min {:.4} max {:.4} queue {:.0} {:.0} {:.0}",
            shares.iter().sum::<f64>(),
            fairness(&shares),
            least(&shares),
            most(&shares),
            least(&queue),
            mean(&queue),
            most(&queue)
        );
    }
}
