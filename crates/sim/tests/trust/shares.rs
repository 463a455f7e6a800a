//! Classes that share outputs by weight.

use selvedge_sim::config::{BufferConfig, FairQueued, FlowQueues, SharedBuffer, Trimming};
use selvedge_transport::tcp::TcpConfig;
use selvedge_units::{Bytes, Duration, Setting};

use crate::support::{Outcome, Scene, Series, link, star};

/// Returns the outcome of 3 ms in which three hosts send at line rate, with priorities 0, 2 and 3, to a fourth one.
fn three_priorities(buffer: BufferConfig, weights: [u16; 8]) -> Outcome {
    let mut scene = Scene::new(star(&[link(40, 500); 4]), Series::Irn);
    for (src, priority) in [(0, 0), (1, 2), (2, 3)] {
        scene = scene.flow(src, 3, 20_000_000, Duration::ZERO);
        scene.list.flows.last_mut().expect("the flow").priority = Some(priority);
    }
    let tcp = TcpConfig { min_rto: Setting::Value(Duration::from_us(500)), ..TcpConfig::default() };
    let scene = scene.with(|all| {
        all.switch.buffer = buffer;
        all.switch.weights = weights;
        all.nic.ack_class = 6;
        all.transport = tcp.into();
        all.stop.time = Some(Duration::from_ms(3));
    });
    scene.run()
}

/// Returns the shares of three hosts, in percent.
fn shares(buffer: BufferConfig, weights: [u16; 8]) -> [u64; 3] {
    let outcome = three_priorities(buffer, weights);
    let sent = [0, 1, 2].map(|host| outcome.record.ports[host].bytes.get());
    sent.map(|bytes| bytes * 100 / sent.iter().sum::<u64>())
}

fn buffers() -> [BufferConfig; 4] {
    let room = Bytes::from_kb(400);
    let trimming = Trimming { packets: 60, ..Trimming::default() };
    [
        BufferConfig::SharedBuffer(SharedBuffer { total: Bytes::from_kb(2_000), ..SharedBuffer::default() }),
        BufferConfig::FairQueued(FairQueued { per_port: Setting::Value(room), ..FairQueued::default() }),
        BufferConfig::Trimming(trimming),
        BufferConfig::Trimming(Trimming { flow_queues: Some(FlowQueues::default()), ..trimming }),
    ]
}

#[test]
fn priorities_share_by_their_weights() {
    for buffer in buffers() {
        let [none, one, three] = shares(buffer, [0, 0, 1, 3, 0, 0, 0, 0]);
        assert!(none <= 2, "the strict one below: {none} {one} {three} {buffer:?}");
        assert!((71..=77).contains(&three), "three to one: {none} {one} {three} {buffer:?}");
    }
}

#[test]
fn without_weights_the_highest_goes_first() {
    for buffer in buffers() {
        let [low, middle, high] = shares(buffer, [0; 8]);
        assert!(high >= 95, "{low} {middle} {high} {buffer:?}");
    }
}
