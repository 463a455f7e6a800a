use selvedge_sim::config::*;
use selvedge_sim::topology::*;
use selvedge_sim::workload::*;
use selvedge_sim::*;
use selvedge_telemetry::*;
use selvedge_transport::*;
use selvedge_units::*;
struct O(u64, u64, u64);
impl Observer for O {
    fn on_flows(&mut self, r: &[FlowRow]) {
        for x in r {
            self.0 += 1;
            if let Some(f) = x.fct() {
                self.1 += f.as_ps() / 1000;
                self.2 = self.2.max(f.as_ps() / 1000);
            }
        }
    }
    fn on_ports(&mut self, _: &[PortRow]) {}
}
struct L;
impl Library for L {
    fn drops(&self, _: &str) -> Result<Vec<u64>, ConfigError> {
        unimplemented!()
    }
    fn cdf(&self, _: &str) -> Result<Cdf, ConfigError> {
        unimplemented!()
    }
    fn flows(&self, _: &str) -> Result<FlowList, ConfigError> {
        unimplemented!()
    }
    fn topology(&self, _: &str) -> Result<Graph, ConfigError> {
        unimplemented!()
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let k: u32 = a[1].parse().unwrap();
    let size: u64 = a[2].parse().unwrap();
    let irn = a[3] == "irn";
    let parts: usize = a.get(4).map_or(1, |x| x.parse().unwrap());
    let threads: usize = a.get(5).map_or(1, |x| x.parse().unwrap());
    let g =
        FatTree { k, link: LinkConfig { rate: Rate::from_gbps(100), delay: Duration::from_us(1) } }.build().unwrap();
    use selvedge_transport::recovery::*;
    let mut recovery: RecoveryConfig = if irn {
        irn::IrnConfig {
            bdp_cap: Setting::Value(40),
            rto_high: Setting::Value(Duration::from_us(320)),
            timeouts: irn::Timeouts::Off,
            ..Default::default()
        }
        .into()
    } else {
        go_back_n::GoBackNConfig { rto: Setting::Off, acks: go_back_n::Acks::PerPacket, ..Default::default() }.into()
    };
    let f = Fabric {
        pfc: true,
        line_rate: Rate::from_gbps(100),
        bdp: Bytes::new(150000),
        frame: Bytes::new(4150),
        congested_rtt: Duration::from_us(300),
    };
    recovery.resolve(&f);
    let mut sw = SwitchConfig::default();
    sw.buffer = BufferConfig::InputQueued(InputQueued { per_port: Setting::Value(Bytes::new(400_000)) });
    sw.pfc.enabled = true;
    sw.pfc.xon_gap = Setting::Value(Bytes::new(8000));
    let c = SimConfig {
        graph: g,
        switch: sw,
        nic: NicConfig { mtu: Bytes::new(4096), ..Default::default() },
        transport: TransportConfig { recovery, congestion: CongestionConfig::None(Default::default()) },
        workload: WorkloadConfig {
            permutation: Permutation {
                size: Bytes::new(size),
                repeat: 1,
                hosts: None,
                start: Duration::ZERO,
                jitter: Duration::ZERO,
            }
            .into(),
            ..Default::default()
        },
        measure: Measure::All,
        loss: vec![],
        failures: vec![],
        seed: 1,
        stop: Stop::default(),
        sample: None,
    };
    #[allow(clippy::disallowed_methods)]
    let t = std::time::Instant::now();
    let mut o = O(0, 0, 0);
    let rec = run(&c, &L, Parallel { threads, partitions: parts }, &mut o).unwrap();
    let e = t.elapsed().as_secs_f64();
    println!(
        "flows {} meanfct {} max {} us | hops {} events {} ev/hop {:.2} wall {:.3} Mhops/s {:.2} fp {:x} end {} drops {} pauses {}",
        o.0,
        o.1 / 1000 / o.0.max(1),
        o.2 / 1000,
        rec.packet_hops,
        rec.events,
        rec.events as f64 / rec.packet_hops as f64,
        e,
        rec.packet_hops as f64 / e / 1e6,
        rec.fingerprint,
        rec.end,
        rec.data_drops.by_reason.map(|x| x.to_string()).join(","),
        rec.pause_frames
    );
}
