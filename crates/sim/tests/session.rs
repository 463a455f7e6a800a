//! A session that is advanced piece by piece gives the flows of a run.

use selvedge_sim::topology::{FatTree, LinkConfig};
use selvedge_sim::workload::Permutation;
use selvedge_sim::{ConfigError, Injection, Session, Simulation, SimulationBuilder};
use selvedge_telemetry::FlowRow;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Rate, Rng};

const HOSTS: u64 = 16;

fn builder() -> SimulationBuilder {
    let link = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(2) };
    Simulation::builder(FatTree { k: 4, link }).seed(3)
}

/// Returns flows that begin within 20 us, all to two hosts, so that queues overflow.
fn flows() -> Vec<Injection> {
    let mut rng = Rng::stream(7, Domain::Impairment, 0);
    let flow = |_| {
        let (src, dst) = (2 + rng.below(HOSTS - 2), rng.below(2));
        Injection {
            src: HostId(src as u32),
            dst: HostId(dst as u32),
            size: Bytes::new(1 + rng.below(60_000)),
            start: Instant::from_ps(rng.below(20_000_000)),
        }
    };
    let mut flows: Vec<_> = (0..400).map(flow).collect();
    flows.sort_by_key(|flow| flow.start);
    flows
}

fn session() -> Session {
    builder()
        .workload(Permutation::of(Bytes::new(1)))
        .build()
        .and_then(|own| own.session(false))
        .expect("a valid simulation")
}

/// Returns all rows of a session with advances of `step`, in which each flow is injected in the advance in which it
/// begins.
fn in_steps(step: Duration) -> Vec<FlowRow> {
    let mut session = session();
    let mut rows = Vec::new();
    let mut left = flows().into_iter().peekable();
    while session.now() < Instant::from_ps(100_000_000_000) {
        let to = session.now() + step;
        while let Some(flow) = left.next_if(|flow| flow.start < to) {
            session.inject(flow).expect("it has not begun");
        }
        session.advance(to).expect("later");
        rows.extend(session.drain());
    }
    rows
}

#[test]
fn a_session_gives_the_flows_of_a_run() {
    let listed = flows()
        .iter()
        .fold(builder(), |builder, flow| builder.flow(flow.src, flow.dst, flow.size, flow.start.since(Instant::ZERO)));
    let run = listed.build().expect("a valid simulation").run().expect("a complete run");
    assert_eq!(run.flows.len(), 400);
    assert!(run.totals.data_drops.total() > 0, "queues overflow");
    for step in [Duration::from_ms(100), Duration::from_us(13), Duration::from_ns(777_777)] {
        assert!(in_steps(step) == run.flows, "{step}");
    }
}

#[test]
fn a_step_ends_soon_after_a_completion() {
    let mut session = session();
    let (near, far) = (HostId(1), HostId(12));
    let flow = |dst, size| Injection { src: HostId(0), dst, size: Bytes::new(size), start: Instant::ZERO };
    assert_eq!(session.inject(flow(near, 1_000)), Ok(0));
    assert_eq!(session.inject(flow(far, 1_000_000)), Ok(1));
    let limit = Instant::ZERO + Duration::from_ms(1);
    let mut done = Vec::new();
    for _ in 0..2 {
        let now = session.advance_to_completion(limit).expect("later");
        let [row] = session.drain()[..] else { panic!("one flow is complete") };
        let finish = row.finish.expect("a complete flow");
        assert!(finish < now && now.since(finish) <= Duration::from_us(4), "{finish:?} {now:?}");
        done.push(row.id);
    }
    assert_eq!(done, [0, 1]);
    assert_eq!(session.flows(), (2, 2));
    assert_eq!(session.advance_to_completion(limit), Ok(limit), "nothing else completes");
    assert_eq!(session.totals().flows_finished, 2);
}

#[test]
fn flows_come_long_after_the_last_one() {
    let mut session = session();
    for day in 0..4 {
        let start = Instant::ZERO + Duration::from_ms(86_400_000) * day;
        session.advance(start).expect("later");
        let flow = Injection { src: HostId(3), dst: HostId(9), size: Bytes::new(100), start };
        assert_eq!(session.inject(flow), Ok(day));
        session.advance(start + Duration::from_us(50)).expect("later");
        let [row] = session.drain()[..] else { panic!("one flow is complete") };
        assert_eq!(row.fct(), row.finish.map(|finish| finish.since(start)));
    }
}

#[test]
fn traffic_of_the_scenario_runs_beside_injected_flows() {
    let simulation = builder().workload(Permutation::of(Bytes::from_kb(100))).build().expect("a valid simulation");
    let mut session = simulation.session(true).expect("a valid session");
    let flow = Injection { src: HostId(0), dst: HostId(1), size: Bytes::from_kb(1), start: Instant::ZERO };
    assert_eq!(session.inject(flow), Ok(0));
    session.advance(Instant::ZERO + Duration::from_ms(10)).expect("later");
    let rows = session.drain();
    assert_eq!(rows.len(), 17);
    assert_eq!(rows.iter().filter(|row| row.workload == session.workload()).count(), 1);
}

#[test]
fn what_is_impossible_is_refused_and_changes_nothing() {
    let mut session = session();
    let good = Injection { src: HostId(0), dst: HostId(1), size: Bytes::new(1), start: Instant::from_ps(5) };
    session.advance(Instant::from_ps(5)).expect("later");
    let wrong = |flow, what: &str, session: &mut Session| {
        let error: ConfigError = session.inject(flow).expect_err("it is refused");
        assert!(error.to_string().contains(what), "{error}");
    };
    wrong(Injection { src: HostId(16), ..good }, "source: host 16 does not exist", &mut session);
    wrong(Injection { dst: HostId(99), ..good }, "destination: host 99 does not exist", &mut session);
    wrong(Injection { dst: HostId(0), ..good }, "would send to itself", &mut session);
    wrong(Injection { size: Bytes::ZERO, ..good }, "at least one byte", &mut session);
    wrong(Injection { size: Bytes::new(u64::MAX), ..good }, "at most", &mut session);
    wrong(Injection { start: Instant::from_ps(4), ..good }, "from 5 ps (now)", &mut session);
    wrong(Injection { start: Instant::NEVER, ..good }, "start", &mut session);
    assert!(session.advance(Instant::from_ps(4)).is_err());
    assert!(session.advance(Instant::NEVER).is_err());
    assert_eq!(session.inject(good), Ok(0), "the first flow that is taken");
}
