//! Speed of the fabric on one thread: packet-hops and events per second, building included.
//!
//! `cargo bench -p selvedge-sim --bench fabric`. Every host of a fat-tree (16, 128 and 1,024 hosts) sends 2 MB to
//! another one at 100 Gb/s, as in htsim's connection matrices.

#[path = "../examples/permutation/scene.rs"]
mod scene;

use divan::Bencher;
use divan::counter::ItemsCount;
use selvedge_sim::{NoFiles, Parallel, run};
use selvedge_telemetry::{FlowRow, Observer, PortRow, RunRecord};
use selvedge_units::Bytes;

use scene::{Series, permutation};

fn main() {
    divan::main();
}

/// Observer that ignores everything.
struct Nobody;

impl Observer for Nobody {
    fn on_flows(&mut self, _: &[FlowRow]) {}
    fn on_ports(&mut self, _: &[PortRow]) {}
}

/// Measures packet-hops per second.
#[divan::bench(consts = [4, 8, 16], args = [Series::RocePfc, Series::Irn, Series::Eqds], sample_count = 5, sample_size = 1)]
fn packet_hops<const K: u32>(bencher: Bencher<'_, '_>, series: Series) {
    measure(bencher, K, series, |record| record.packet_hops);
}

/// Measures events per second.
#[divan::bench(consts = [4, 8, 16], args = [Series::RocePfc, Series::Irn, Series::Eqds], sample_count = 5, sample_size = 1)]
fn events<const K: u32>(bencher: Bencher<'_, '_>, series: Series) {
    measure(bencher, K, series, |record| record.events);
}

fn measure(bencher: Bencher<'_, '_>, k: u32, series: Series, items: impl Fn(&RunRecord) -> u64) {
    let config = permutation(k, Bytes::from_kb(2_000), series).expect("a valid fat-tree");
    let once = || run(&config, &NoFiles, Parallel::default(), &mut Nobody).expect("a configuration that can be built");
    let record = once();
    assert_eq!(record.flows_finished, u64::from(k.pow(3) / 4));
    bencher.counter(ItemsCount::new(items(&record))).bench_local(once);
}
