//! Operating points of congestion controls, compared with those of their papers: many long flows through one
//! bottleneck.

use selvedge_telemetry::PortRow;
use selvedge_transport::CongestionConfig;
use selvedge_transport::congestion::aimd::AimdConfig;
use selvedge_transport::congestion::dcqcn::DcqcnConfig;
use selvedge_transport::congestion::dctcp::DctcpConfig;
use selvedge_transport::congestion::hpcc::HpccConfig;
use selvedge_transport::congestion::swift::SwiftConfig;
use selvedge_transport::congestion::timely::TimelyConfig;
use selvedge_units::{Bytes, Duration, Instant, PortId, Rate, Setting};

use selvedge_sim::topology::LinkConfig;
use selvedge_transport::recovery::irn::Timeouts;

use crate::support::{Outcome, Scene, Series, star};

const LINE: Rate = Rate::from_gbps(40);
/// Bytes of a full frame with its gap.
const FRAME: f64 = 1_106.0;

/// Scene in which `flows` hosts send to one, from the beginning and without end.
struct Bottleneck {
    congestion: CongestionConfig,
    flows: u32,
    /// Propagation delay of each link.
    delay: Duration,
    /// Rate of the receiver's link; the senders' links have [`LINE`].
    line: Rate,
    buffer: u64,
}

/// Outcome of a [`Bottleneck`], to be examined in its second half.
struct Rest {
    outcome: Outcome,
    flows: u32,
    line: Rate,
    /// Round trip of an empty fabric, without serialisation.
    base_rtt: Duration,
    half: Instant,
}

impl Bottleneck {
    fn new(congestion: impl Into<CongestionConfig>, flows: u32) -> Self {
        let congestion = congestion.into();
        Self { congestion, flows, delay: Duration::from_us(1), line: LINE, buffer: 2_000_000 }
    }
    /// Runs the scene for `ms` milliseconds.
    fn run(&self, ms: u64) -> Rest {
        let Self { congestion, flows, delay, line, buffer } = *self;
        let mut links = vec![LinkConfig { rate: LINE, delay }; flows as usize];
        links.push(LinkConfig { rate: line, delay });
        // Rate-based controls run with RoCE, as in their papers; window-based ones need acknowledgements.
        let series = match congestion {
            CongestionConfig::Dcqcn(_) | CongestionConfig::Timely(_) => Series::RocePfc,
            _ => Series::Irn,
        };
        let scene = Scene::new(star(&links), series).buffer(Some(buffer)).with(|config| {
            config.transport.rdma_mut().expect("queue pairs").congestion = congestion;
            config.stop.time = Some(Duration::from_ms(ms));
            config.sample = Some(Duration::from_us(10));
        });
        // Congestion control alone decides.
        let scene = scene.irn(|irn| (irn.bdp_cap, irn.timeouts) = (Setting::Off, Timeouts::Off));
        let scene = (0..flows).fold(scene, |scene, host| scene.flow(host, flows, 1_000_000_000, Duration::ZERO));
        let half = Instant::ZERO + Duration::from_ms(ms) / 2;
        Rest { outcome: scene.run(), flows, line, base_rtt: delay * 4, half }
    }
}

impl Rest {
    /// Returns each flow's throughput in the second half, as a fraction of the line rate.
    fn shares(&self) -> Vec<f64> {
        let share = |host| {
            let rows = self.outcome.ports.iter().filter(|row| row.port == PortId(host) && row.time > self.half);
            let (busy, count) = rows.fold((0.0, 0.0), |(busy, n), row| (busy + row.busy.as_us_f64(), n + 1.0));
            busy / (count * 10.0)
        };
        (0..self.flows).map(share).collect()
    }
    /// Returns the bytes queued at the bottleneck in the second half, per sample.
    fn queue(&self) -> Vec<f64> {
        let bottleneck = PortId(self.flows + 1 + self.flows);
        let rows = self.outcome.ports.iter().filter(|row| row.port == bottleneck && row.time > self.half);
        rows.map(|row| row.egress_queue.get() as f64).collect()
    }
    /// Returns the round trips that result from the queues.
    fn rtts(&self) -> impl Iterator<Item = Duration> {
        let waits = |queue| self.line.time_for(Bytes::new(queue as u64));
        self.queue().into_iter().map(move |queue| self.base_rtt + waits(queue))
    }
}

/// Returns Jain's index: 1 where all shares are equal, 1/n where one flow has everything.
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
fn dcqcn_shares_fairly_among_2_10_and_50_flows() {
    for flows in [2, 10, 50] {
        let run = Bottleneck::new(DcqcnConfig::default(), flows).run(50);
        let shares = run.shares();
        assert!(fairness(&shares) > 0.98, "{flows} flows: {shares:?}");
        assert!(shares.iter().sum::<f64>() > 0.9, "{flows} flows use the link: {shares:?}");
    }
}

#[test]
fn timely_comes_back_to_t_low_and_keeps_below_t_high() {
    let config = TimelyConfig::default();
    for flows in [2, 10] {
        let run = Bottleneck::new(config, flows).run(100);
        assert!(fairness(&run.shares()) > 0.98, "{flows} flows: {:?}", run.shares());
        // Below T_low, rates only rise.
        let longest = run.rtts().fold(Duration::ZERO, Duration::max);
        assert!(longest >= config.t_low && longest < config.t_high, "{flows} flows: {longest}");
    }
}

#[test]
fn dctcp_keeps_the_queue_near_k() {
    for k in [65, 200] {
        for flows in [2, 10] {
            let config = DctcpConfig { k: Setting::Value(Bytes::from_kb(k)), ..DctcpConfig::default() };
            let run = Bottleneck { delay: Duration::from_us(10), ..Bottleneck::new(config, flows) }.run(40);
            let (k, queue) = (k as f64 * 1e3, run.queue());
            assert!((0.7 * k..k).contains(&mean(&queue)), "{flows} flows, K {k}: {}", mean(&queue));
            // Section 3.3: the queue exceeds K by the packets that the flows add in a round trip, one each.
            let most = k + f64::from(2 * flows) * FRAME;
            assert!(queue.iter().all(|&queue| queue > 0.0 && queue < most), "{flows} flows, K {k}");
            assert!(fairness(&run.shares()) > 0.99);
        }
    }
}

#[test]
fn swift_keeps_the_delay_at_its_target() {
    for flows in [10, 50] {
        let run = Bottleneck { delay: Duration::from_us(5), ..Bottleneck::new(SwiftConfig::default(), flows) }.run(40);
        let rtt = mean(&run.rtts().map(Duration::as_us_f64).collect::<Vec<_>>());
        // Section 3.5, with windows that fill the link for that long.
        let cwnd = rtt * 1e-6 * LINE.as_bps() as f64 / 8.0 / FRAME / f64::from(flows);
        let base = run.base_rtt.as_us_f64();
        let alpha = 5.0 * base / (1.0 / 0.1f64.sqrt() - 0.1);
        let target = base + base + (alpha / cwnd.sqrt() - alpha * 0.1).clamp(0.0, 5.0 * base);
        assert!((rtt / target - 1.0).abs() < 0.05, "{flows} flows: {rtt} us, the target is {target} us");
        assert!(fairness(&run.shares()) > 0.99 && run.shares().iter().sum::<f64>() > 0.99);
    }
}

#[test]
fn hpcc_keeps_links_at_eta_and_queues_short() {
    for flows in [2, 10, 50] {
        let run = Bottleneck { delay: Duration::from_us(2), ..Bottleneck::new(HpccConfig::default(), flows) }.run(40);
        let (shares, queue) = (run.shares(), run.queue());
        let utilisation = shares.iter().sum::<f64>();
        // Eta is 95 %; the flows' additive increase makes the utilisation deviate a little.
        assert!((utilisation / 0.95 - 1.0).abs() < 0.03, "{flows} flows: {utilisation}");
        assert!(fairness(&shares) > 0.98, "{flows} flows: {shares:?}");
        assert!(mean(&queue) < 4.0 * FRAME, "{flows} flows: {}", mean(&queue));
    }
}

/// Section 3.3 of HPCC, "W_AI": the queue stays empty while N flows add no more than eta leaves free. Where they add
/// more, algorithm 1 has its fixed point where W = W_c (eta / U) + W_AI: at U = eta + N W_AI / (B T), and the part of U
/// above 1 is queued.
#[test]
fn hpcc_rests_where_what_flows_add_meets_what_eta_takes() {
    for (flows, expected) in [(50, 100), (50, 10), (20, 5)] {
        let config = HpccConfig { flows: expected, ..HpccConfig::default() };
        let run = Bottleneck { delay: Duration::from_us(2), ..Bottleneck::new(config, flows) }.run(40);
        let utilisation = 0.95 + 0.05 * f64::from(flows) / f64::from(expected);
        // T includes four serialisations beside the delay, on the fabric's longest path.
        let product = LINE.amount_in(run.base_rtt).get() as f64 + 4.0 * FRAME;
        let queue = (utilisation - 1.0).max(0.0) * product;
        let found = mean(&run.queue());
        // The tolerance is a few packets: some arrive together by chance, and the smaller of two queues counts.
        assert!((found - queue).abs() < 4.0 * FRAME, "{flows} flows of {expected}: {found}, not {queue}");
    }
}

/// Figure 13 of HPCC: an incast of 16 flows at line rate. The first round trip fills the queue with 15 windows. Windows
/// are then adjusted once per round trip and not with every acknowledgement: the queue empties at the link's speed, and
/// the link is not left idle afterwards.
#[test]
fn hpcc_drains_an_incast_and_does_not_overreact() {
    let flows = 16;
    let incast = Bottleneck { delay: Duration::from_us(2), ..Bottleneck::new(HpccConfig::default(), flows) };
    let run = incast.run(2);
    let bottleneck = PortId(flows + 1 + flows);
    let rows: Vec<_> = run.outcome.ports.iter().filter(|row| row.port == bottleneck).collect();
    let product = LINE.amount_in(run.base_rtt).get() as f64;
    let peak = rows.iter().map(|row| row.egress_queue.get() as f64).fold(0.0, f64::max);
    assert!(peak > 0.5 * f64::from(flows) * product, "{peak}");
    let after = |trips: u64| Instant::ZERO + run.base_rtt * trips;
    let late = |row: &&&PortRow| row.time > after(3 * u64::from(flows));
    let queue = rows.iter().filter(late).map(|row| row.egress_queue.get() as f64).fold(0.0, f64::max);
    assert!(queue < product, "{queue}");
    let busy: Vec<f64> = rows.iter().filter(late).map(|row| row.busy.as_us_f64() / 10.0).collect();
    assert!((mean(&busy) / 0.95 - 1.0).abs() < 0.05, "{}", mean(&busy));
}

/// Section 3.6 and figure 17 of Swift: more flows than packets fit into the path. With windows below a packet, each
/// flow sends one packet in several round trips; with a packet each, all packets are queued.
#[test]
fn swift_paces_windows_below_a_packet() {
    let flows = 100;
    let run = |min_cwnd| Bottleneck::new(SwiftConfig { min_cwnd, ..SwiftConfig::default() }, flows).run(40);
    let (paced, whole) = (run(0.001), run(1.0));
    let base = paced.base_rtt.as_us_f64();
    let wait = |rest: &Rest| mean(&rest.queue()) / FRAME;
    let fit = LINE.amount_in(paced.base_rtt).get() as f64 / FRAME;
    assert!((wait(&whole) / (f64::from(flows) - fit) - 1.0).abs() < 0.1, "{} packets wait", wait(&whole));
    // The target is highest, seven round trips of the empty path, for windows of a tenth of a packet.
    let rtt = mean(&paced.rtts().map(Duration::as_us_f64).collect::<Vec<_>>());
    assert!(wait(&paced) < 0.8 * wait(&whole) && rtt < 7.0 * base, "{} packets wait, {rtt} us", wait(&paced));
    assert!(paced.shares().iter().sum::<f64>() > 0.97, "{:?}", paced.shares());
    assert!(fairness(&paced.shares()) > 0.95, "{}", fairness(&paced.shares()));
}

#[test]
fn aimd_is_a_sawtooth_between_a_full_buffer_and_half_a_window() {
    // The bottleneck's bandwidth-delay product is 50 KB; its buffer holds three of them.
    let (product, buffer) = (50_000.0, 150_000);
    let slow = Bottleneck {
        delay: Duration::from_us(10),
        line: Rate::from_gbps(10),
        buffer,
        ..Bottleneck::new(AimdConfig::default(), 1)
    };
    let queue = slow.run(60).queue();
    let (low, high) = (least(&queue), most(&queue));
    let peak = buffer as f64;
    assert!((peak - 2.0 * FRAME..=peak).contains(&high), "{high}");
    let half = (product + peak) / 2.0 - product;
    assert!((low / half - 1.0).abs() < 0.2, "{low}, and half the window leaves {half}");
    // The window grows by a frame per round trip, and round trips grow with the window: its square is linear in time.
    let (from, to) = ((product + peak) / 2.0, product + peak);
    let expected = 2.0 / 3.0 * (to.powi(3) - from.powi(3)) / (to.powi(2) - from.powi(2)) - product;
    assert!((mean(&queue) / expected - 1.0).abs() < 0.06, "{}, not {expected}", mean(&queue));
}
