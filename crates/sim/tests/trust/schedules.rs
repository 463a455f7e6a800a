//! Schedules through the fabric: steps follow each other as they are written.

use selvedge_sim::SimConfig;
use selvedge_sim::topology::{FatTree, Graph};
use selvedge_sim::workload::{Collective, Many, Operation, Team};
use selvedge_telemetry::RankRow;
use selvedge_units::{Bytes, Duration, Instant};

use crate::support::{Scene, Series, link, star};

fn all_reduce(size: u64, repeat: u32) -> Collective {
    Collective {
        operation: Operation::RingAllReduce,
        size: Bytes::new(size),
        team: Team::default(),
        compute: Duration::from_us(7),
        repeat,
        start: Duration::from_us(2),
    }
}

fn fat_tree() -> Graph {
    FatTree { k: 4, link: link(40, 1_000) }.build().unwrap()
}

#[test]
fn a_ring_alone_takes_its_steps_one_after_the_other() {
    // Every host sends to another one at the same time: at one switch, and without acknowledgements, no message delays
    // another.
    let ring = all_reduce(80_000, 2);
    let outcome = Scene::new(star(&[link(40, 1_000); 8]), Series::RocePfc)
        .with(|config| config.workload.collective = Many::from(ring))
        .finish();
    assert_eq!(outcome.flows.len(), 2 * 8 * 14);
    let step = outcome.flows[0].ideal;
    assert!(outcome.flows.iter().all(|row| row.size == Bytes::new(10_000) && row.fct() == Some(step)));
    // A rank is done when it learns that its last message has arrived: as soon as an acknowledgement could tell it.
    let heard = Duration::from_us(2) + link(40, 1_000).rate.time_for(Bytes::new(66 + 20)) * 2;
    let one = Duration::from_us(7) + step * 14 + heard;
    let begin = Instant::ZERO + Duration::from_us(2);
    for (n, row) in outcome.ranks.iter().enumerate() {
        let group = n as u64 / 8;
        assert_eq!((u64::from(row.group), row.begin), (group, begin + one * group));
        assert_eq!(row.end, Some(begin + one * (group + 1)));
    }
    assert_eq!(outcome.ranks.len(), 2 * 8);
}

#[test]
fn all_ranks_finish_whatever_the_transport() {
    for series in Series::ALL {
        let scene = Scene::new(fat_tree(), series);
        let outcome = scene.with(|config| config.workload.collective = Many::from(all_reduce(64_000, 3))).finish();
        assert_eq!(outcome.ranks.len(), 3 * 16, "{series:?}");
        // Steps of one ring: a message leaves when the one before it has come in.
        for row in outcome.flows.iter().filter(|row| row.id % (16 * 30) % 30 > 0) {
            let came = outcome.flows.iter().filter(|other| other.dst == row.src && other.group == row.group);
            assert!(came.into_iter().any(|other| other.finish == Some(row.start)), "{series:?} {row:?}");
        }
    }
}

#[test]
fn ranks_that_are_not_done_when_the_run_ends_are_reported_all_the_same() {
    let scene = Scene::new(star(&[link(40, 1_000); 8]), Series::Irn);
    let ring = |config: &mut SimConfig| config.workload.collective = Many::from(all_reduce(80_000, 3));
    let whole = scene.clone().with(ring).finish();
    // While the ranks compute for the second time, none of its flows has begun.
    let end = whole.ranks[7].end.unwrap() + Duration::from_us(1);
    let outcome = scene.with(ring).with(|config| config.stop.time = Some(end.since(Instant::ZERO))).run();
    assert_eq!(outcome.ranks[..8], whole.ranks[..8]);
    let rest: Vec<_> = whole.ranks[8..16].iter().map(|row| RankRow { end: None, ..*row }).collect();
    assert_eq!(outcome.ranks[8..], rest);
    assert_eq!(outcome.flows.len(), 8 * 14);
}

/// Computations of fifty days, a time in which the run must not examine anything.
#[test]
fn a_run_jumps_over_the_time_in_which_everybody_computes() {
    let compute = Duration::from_ms(50 * 24 * 3_600_000);
    let slow = Collective { compute, ..all_reduce(80_000, 1) };
    let outcome = Scene::new(star(&[link(40, 1_000); 8]), Series::Irn)
        .with(|config| config.workload.collective = Many::from(slow.clone()))
        .finish();
    assert!(outcome.ranks.iter().all(|row| row.end > Some(row.begin + compute)));
    assert_eq!((outcome.ranks.len(), outcome.flows.len()), (8, 8 * 14));
}
