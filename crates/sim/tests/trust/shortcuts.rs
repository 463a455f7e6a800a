//! Plain runs take shortcuts: whole visits of an output, turns of ports, trains of hosts. Recorded runs take none. In
//! every scene both have byte-identical results: [`Scene::record`] compares them.

use selvedge_sim::fault::{Affected, LinkFailure};
use selvedge_sim::record::Focus;
use selvedge_sim::topology::{Chain, FatTree, Graph, LeafSpine, LinkConfig};
use selvedge_transport::recovery::go_back_n::Acks;
use selvedge_units::{Bytes, Chance, Domain, Duration, Rng, Toggle};

use crate::support::{Scene, Series, link, lose, star};

/// Seeds of the scenes in a usual run; `SELVEDGE_SCENES=FIRST..LAST` asks for others.
const SCENES: std::ops::Range<u64> = 0..150;

#[test]
fn shortcuts_change_nothing() {
    let asked = std::env::var("SELVEDGE_SCENES").ok().and_then(|range| {
        let (first, last) = range.split_once("..")?;
        Some(first.parse().ok()?..last.parse().ok()?)
    });
    for seed in asked.unwrap_or(SCENES) {
        eprintln!("scene {seed}");
        scene(seed).record(&Focus::default());
    }
}

/// Returns one of `choices` at random.
pub(crate) fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

fn some_link(rng: &mut Rng) -> LinkConfig {
    link(one_of(rng, &[10, 25, 40, 100, 400]), one_of(rng, &[50, 600, 1_000, 5_000]))
}

fn graph(rng: &mut Rng) -> Graph {
    let (host_link, inner) = (some_link(rng), some_link(rng));
    match rng.below(4) {
        0 => star(&(0..3 + rng.below(6)).map(|_| some_link(rng)).collect::<Vec<_>>()),
        1 => FatTree { k: 4, link: host_link }.build().unwrap(),
        2 => LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 4, host_link, spine_link: inner, parallel_links: 1 }
            .build()
            .unwrap(),
        _ => {
            Chain { switches: 3, hosts_per_end: 3, hosts_per_inner: 1, host_link, switch_link: inner }.build().unwrap()
        }
    }
}

/// Returns a random scene: mostly a lossless fabric, in which ports take most turns.
pub(crate) fn scene(seed: u64) -> Scene {
    let mut random = Rng::stream(seed, Domain::Impairment, 0);
    let rng = &mut random;
    let series =
        one_of(rng, &[Series::RocePfc, Series::RocePfc, Series::RocePfc, Series::IrnPfc, Series::Irn, Series::Roce]);
    let graph = graph(rng);
    let hosts = graph.hosts.len() as u64;
    let mut scene = Scene::new(graph, series)
        .buffer(one_of(rng, &[None, Some(12_000), Some(40_000), Some(200_000), Some(1_000_000)]));
    let acks = one_of(rng, &[Acks::Coalesced, Acks::None, Acks::PerPacket]);
    let ack_every = one_of(rng, &[2, 7, 256]);
    if series.pfc() {
        scene = scene.roce(|roce| (roce.acks, roce.ack_every) = (acks, ack_every));
    }
    scene.config.nic.mtu = Bytes::new(one_of(rng, &[256, 1_000, 1_024, 4_096]));
    scene.config.switch.ecn.enabled = one_of(rng, &[Toggle::Off, Toggle::Off, Toggle::On]);
    if rng.below(4) == 0 {
        lose(&mut scene.config, Affected::All, Chance::ratio(1, 1_000));
    }
    if rng.below(4) == 0 {
        let (at, link) = (Duration::from_us(rng.below(60)), one_of(rng, &["host-links", "all"]));
        let until = Some(at + Duration::from_us(20));
        scene.config.failures.push(LinkFailure { link: link.parse().unwrap(), at, until });
    }
    if rng.below(2) == 0 {
        scene.config.sample = Some(Duration::from_us(1 + rng.below(9)));
    }
    if rng.below(3) == 0 {
        scene = scene.all_together();
    }
    let incast = rng.below(2) == 0;
    for _ in 0..2 + rng.below(30) {
        let dst = if incast { 0 } else { rng.below(hosts) };
        let src = (dst + 1 + rng.below(hosts - 1)) % hosts;
        let size = one_of(rng, &[1, 900, 20_000, 150_000]) + rng.below(2_000);
        scene = scene.flow(src as u32, dst as u32, size, Duration::from_ns(rng.below(40_000)));
    }
    scene.config.stop.time = Some(Duration::from_us(3_000));
    scene
}
