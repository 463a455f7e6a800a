//! Work per packet: the MAC of a header, and the encryption of a payload. docs/eqds-wire.md has ratios.

use divan::{Bencher, black_box};
use selvedge_tunnel::keys::{Pair, Secret, Suite};
use selvedge_tunnel::{Epochs, Floor, Gate, Outbound};
use selvedge_wire::eqds::v1::{Body, Common, Data, Options, Packet};

fn main() {
    divan::main();
}

const SUITES: [Suite; 2] = [Suite::Aes128Gcm, Suite::ChaCha20Poly1305];

fn pair(own: &str, peer: &str, suite: Suite) -> Pair {
    Pair::from_shared(&Secret::new([1; 32]), own, peer, suite).expect("a good key")
}

fn epochs() -> Epochs {
    let mut epochs = Epochs::new(None, 0);
    epochs.stored(epochs.reserve());
    epochs
}

fn packet() -> Packet {
    Packet { common: Common::default(), body: Body::Data(Data::default()), options: Options::NONE }
}

#[divan::bench]
fn mac(bencher: Bencher<'_, '_>) {
    let keys = pair("a", "b", Suite::default()).outbound().epoch(1);
    let header = [7; 32];
    bencher.bench_local(|| keys.mac(black_box(&header)));
}

#[divan::bench(args = [1_400, 8_900], consts = [0, 1])]
fn seal<const SUITE: usize>(bencher: Bencher<'_, '_>, payload: usize) {
    let keys = pair("a", "b", SUITES[SUITE]).outbound().epoch(1);
    let mut payload = vec![7; payload];
    bencher.bench_local(|| keys.seal(black_box(1), &[0; 40], &mut payload));
}

#[divan::bench(args = [0, 1_400])]
fn write_clear(bencher: Bencher<'_, '_>, payload: usize) {
    let mut epochs = epochs();
    let mut out = Outbound::new(pair("a", "b", Suite::default()).outbound(), false, &mut epochs).expect("an epoch");
    let (payload, mut buffer) = (vec![7; payload], [0; 2_000]);
    bencher.bench_local(|| out.write(&packet(), [&payload, &[]], &mut epochs, &mut buffer).expect("an epoch").len());
}

#[divan::bench(consts = [false, true])]
fn check<const SEALED: bool>(bencher: Bencher<'_, '_>) {
    let mut epochs = epochs();
    let mut out = Outbound::new(pair("a", "b", Suite::default()).outbound(), SEALED, &mut epochs).expect("an epoch");
    let mut gate = Gate::new();
    gate.add(pair("b", "a", Suite::default()).inbound(), SEALED, Floor::Known(0));
    let source = "192.0.2.1".parse().expect("an address");
    let mut buffer = [0; 2_000];
    bencher
        .with_inputs(|| out.write(&packet(), [&[7; 1_400], &[]], &mut epochs, &mut buffer).expect("an epoch").to_vec())
        .bench_local_values(|mut bytes| gate.handle(0, source, &mut bytes).is_ok());
}
