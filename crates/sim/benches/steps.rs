//! Cost of a packet in a switch, by the steps alone: no kernel, no packet memory.
//!
//! ```text
//! cargo bench -p selvedge-sim --bench steps
//! ```

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use selvedge_sim::Simulation;
use selvedge_sim::config::{BufferConfig, EcnConfig, InputQueued, SharedBuffer, SwitchConfig};
use selvedge_sim::topology::{LeafSpine, LinkConfig};
use selvedge_switch::descriptor::{Attachment, Descriptor, Slot};
use selvedge_switch::port::Egress;
use selvedge_switch::{Environment, NetRtPacket, Note, Packets, Switches, Trimmed};
use selvedge_telemetry::{DropReason, PacketKind};
use selvedge_transport::netrt::Flow;
use selvedge_units::{Bytes, Duration, HostId, Instant, Psn, Rate, Setting, Toggle};
use selvedge_wire::netrt::Message;
use selvedge_wire::{Data, Ecn, Packet, Pause, Repr};

/// Packets of a pass.
const PACKETS: u64 = 10_000;
/// Bytes of each frame.
const FRAME: u16 = 1_088;

/// World in which packets are numbers, and links take what they are given.
#[derive(Default)]
struct Nowhere {
    sent: u64,
    marked: u64,
    dropped: u64,
}

impl Packets for Nowhere {
    fn name(&self, slot: Slot) -> u64 {
        slot.into()
    }
    fn kind(&self, _: Slot) -> PacketKind {
        PacketKind::Data
    }
    fn flow_hash(&self, slot: Slot) -> u64 {
        slot.into()
    }
    fn has_payload(&self, _: Slot) -> bool {
        true
    }
    fn discard(&mut self, _: Slot) {}
    fn mark(&mut self, _: Slot) {
        self.marked += 1;
    }
    fn set_class(&mut self, _: Slot, _: u8) {}
    fn trim(&mut self, _: Slot, _: u8) -> Trimmed {
        Trimmed::Whole
    }
    fn take_pause(&mut self, _: Slot) -> Option<Pause> {
        None
    }
    fn put_pause(&mut self, _: Instant, _: Pause) -> Descriptor {
        Descriptor::EMPTY
    }
    fn netrt(&self, _: Slot) -> NetRtPacket {
        NetRtPacket::Other
    }
    fn keep(&mut self, _: Slot) -> u32 {
        0
    }
    fn forget(&mut self, _: u32) {}
    fn put_copy(&mut self, _: u32, _: u8) -> Descriptor {
        Descriptor::EMPTY
    }
    fn take_message(&mut self, _: Slot) -> Option<(Flow, Message)> {
        None
    }
    fn put_message(&mut self, _: Instant, _: Flow, _: Message, _: u8) -> Descriptor {
        Descriptor::EMPTY
    }
}

impl Environment for Nowhere {
    const RECORDED: bool = false;

    fn send(&mut self, _: &Egress, arrival: Instant, packet: &Descriptor) {
        black_box((arrival, packet.slot));
        self.sent += 1;
    }
    fn leave_slowly(&mut self, _: &Switches, _: u32, _: &Descriptor) {}
    fn lost(&mut self, _: Instant, _: u32, _: &Descriptor) -> Option<DropReason> {
        None
    }
    fn drop(&mut self, _: &Switches, _: u32, _: Slot, _: DropReason) {
        self.dropped += 1;
    }
    fn set_host_timer(&mut self, _: u32, _: u64) {}
    fn note(&mut self, _: &Switches, _: Note<'_>) {}
}

/// Returns a leaf switch with eight hosts, and the place of each.
fn leaf(switch: SwitchConfig) -> (Switches, Vec<Attachment>) {
    let host_link = LinkConfig { rate: Rate::from_gbps(100), delay: Duration::from_us(1) };
    let topology =
        LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 8, host_link, spine_link: host_link, parallel_links: 1 };
    let builder = Simulation::builder(topology).switch(switch);
    let simulation = builder.flow(HostId(0), HostId(1), Bytes::new(1), Duration::ZERO).build().expect("a network");
    let parts = simulation.fabric_parts().expect("switches");
    (parts.switches, parts.attachments)
}

/// Sends packets from `inputs` hosts to one, each at the line rate, through the first switch.
fn pass(bencher: Bencher<'_, '_>, switch: SwitchConfig, inputs: u64) {
    let (mut switches, hosts) = leaf(switch);
    let facts = switches.switches[0].facts;
    let data = Data { psn: Psn::new(0), payload: FRAME - 64, last: false, retransmission: false, trimmed: false };
    let packet = Packet { frame: FRAME, ecn: Ecn::Capable, repr: Repr::Data(data), ..Packet::BLANK };
    let wire = u64::from(FRAME) + switches.params.gap;
    let step = Rate::from_gbps(100).time_for(Bytes::new(wire)).as_ps();
    switches.stop = u64::MAX;
    let mut world = Nowhere::default();
    let mut begin = step;
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for n in 0..PACKETS {
            let arrival = begin + n / inputs * step;
            while switches.switches[0].due() < arrival {
                let due = switches.switches[0].due();
                switches.now = Instant::from_ps(due);
                let port = switches.switches[0].busy_ports.pop();
                switches.on_port_free(&mut world, &facts, facts.first_port + port);
            }
            switches.now = Instant::from_ps(arrival);
            let input = hosts[1 + (n % inputs) as usize].port;
            let descriptor = Descriptor { port: input, ..Descriptor::of(&packet, n as Slot, hosts[0]) };
            let out = switches.route(&facts, &descriptor);
            switches.on_arrival(&mut world, &facts, &descriptor, out as u16);
        }
        begin += (PACKETS / inputs + 1_000) * step;
    });
    assert!(world.sent > 0);
}

#[divan::bench]
fn straight_through(bencher: Bencher<'_, '_>) {
    pass(bencher, SwitchConfig::default(), 1);
}

#[divan::bench]
fn through_a_queue(bencher: Bencher<'_, '_>) {
    let own = InputQueued { per_port: Setting::Off, ..InputQueued::default() };
    pass(bencher, SwitchConfig { buffer: BufferConfig::InputQueued(own), ..SwitchConfig::default() }, 2);
}

#[divan::bench]
fn through_a_shared_buffer_that_marks(bencher: Bencher<'_, '_>) {
    let ecn = EcnConfig { enabled: Toggle::On, ..EcnConfig::default() };
    let shared = SharedBuffer { total: Bytes::from_kb(9_000), ..SharedBuffer::default() };
    pass(bencher, SwitchConfig { buffer: BufferConfig::SharedBuffer(shared), ecn, ..SwitchConfig::default() }, 2);
}

fn main() {
    divan::main();
}
