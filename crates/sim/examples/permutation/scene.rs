//! Permutation traffic on a fat-tree, the usual benchmark of packet-level simulators: every host sends to one other.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use selvedge_sim::config::{
    BufferConfig, InputQueued, NicConfig, PathTransports, RdmaConfig, Stop, SwitchConfig, TransportConfig, Trimming,
};
use selvedge_sim::topology::{FatTree, LinkConfig, Paths};
use selvedge_sim::workload::{Many, Measure, Permutation, WorkloadConfig};
use selvedge_sim::{ConfigError, SimConfig};
use selvedge_transport::Fabric;
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_units::{Bytes, Duration, Rate, Setting};

/// Transport, and the fabric's switches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Series {
    /// Go-back-N with an acknowledgement per packet, over PFC, which htsim calls RoCE.
    RocePfc,
    /// IRN without PFC.
    Irn,
    /// EQDS over switches that trim packets.
    Eqds,
}

impl FromStr for Series {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "roce+pfc" => Ok(Self::RocePfc),
            "irn" => Ok(Self::Irn),
            "eqds" => Ok(Self::Eqds),
            _ => Err(format!("found \"{text}\", expected \"roce+pfc\", \"irn\" or \"eqds\"")),
        }
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RocePfc => "roce+pfc",
            Self::Irn => "irn",
            Self::Eqds => "eqds",
        })
    }
}

/// Returns a permutation of flows of `size` on a fat-tree of `k`-port switches: 100 Gb/s, 1 us per link, 4096 bytes per
/// packet.
pub(crate) fn permutation(k: u32, size: Bytes, series: Series) -> Result<SimConfig, ConfigError> {
    let (rate, delay) = (Rate::from_gbps(100), Duration::from_us(1));
    let mut nic = NicConfig { mtu: Bytes::new(4096), ..NicConfig::default() };
    let frame = nic.mtu + nic.header;
    // The longest path has six links there and back; buffers hold twice its bandwidth-delay product (IRN section 4.1).
    let round_trip = delay * 12;
    let bdp = rate.amount_in(round_trip);
    let room = bdp * 2;

    let pfc = matches!(series, Series::RocePfc);
    let trims = matches!(series, Series::Eqds);
    let buffer = if trims {
        let trimming = Trimming::default();
        nic.ack_class = trimming.header_class;
        BufferConfig::Trimming(trimming)
    } else {
        BufferConfig::InputQueued(InputQueued { per_port: Setting::Value(room), ..InputQueued::default() })
    };
    let mut transport: TransportConfig = match series {
        Series::RocePfc => {
            let recovery = GoBackNConfig { acks: Acks::PerPacket, ..GoBackNConfig::default() }.into();
            RdmaConfig { recovery, ..RdmaConfig::default() }.into()
        }
        Series::Irn => RdmaConfig { recovery: IrnConfig::default().into(), ..RdmaConfig::default() }.into(),
        Series::Eqds => EqdsConfig::default().into(),
    };
    // All inputs of a switch may be full for one output.
    let congested_rtt = round_trip + rate.time_for(room) * u64::from(k);
    let fabric = Fabric {
        pfc,
        line_rate: rate,
        bdp,
        sender_is_slowest: true,
        frame,
        gap: nic.gap,
        base_rtt: round_trip,
        fill_time: round_trip,
        links: 6,
        inputs: k,
        congested_rtt,
        acks: false,
    };
    transport.resolve(&fabric, &nic, trims);
    let mut switch = SwitchConfig { buffer, ..SwitchConfig::default() };
    switch.pfc.enabled = pfc;
    switch.pfc.xon_gap = Setting::Value(frame * 2);
    let flows = Permutation { size, repeat: 1, hosts: None, start: Duration::ZERO, jitter: Duration::ZERO };
    Ok(SimConfig {
        paths: Arc::new(Paths::of(FatTree { k, link: LinkConfig { rate, delay } }.build()?)?),
        switch,
        nic,
        transport,
        transports: Vec::new(),
        path_transports: PathTransports::default(),
        beside: None,
        workload: WorkloadConfig { permutation: Many::from(flows), ..WorkloadConfig::default() },
        measure: Measure::All,
        loss: Vec::new(),
        failures: Vec::new(),
        seed: 1,
        stop: Stop::default(),
        sample: None,
        looks: selvedge_sim::config::Looks::default(),
    })
}
