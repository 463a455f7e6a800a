//! A congestion control that the library does not have, beside one that it has: a window that keeps the round trip near
//! a target. Fifteen hosts send to one, with IRN; the slowest message and the packets that switches drop are printed.
//!
//! ```text
//! cargo run --release -p selvedge-sim --example own_congestion
//! ```

use std::error::Error;

use selvedge_sim::Simulation;
use selvedge_sim::topology::{FatTree, LinkConfig};
use selvedge_transport::congestion::none::NoneConfig;
use selvedge_transport::congestion::own::{Config, OwnCongestion, OwnControl};
use selvedge_transport::recovery::irn::IrnConfig;
use selvedge_transport::{Congestion, CongestionConfig, Cx, Fabric, Signal};
use selvedge_units::{Bytes, Duration, HostId, Rate};

/// Round trips near a multiple of that of the idle network.
#[derive(Debug)]
struct NearTarget {
    round_trips: u64,
}

impl OwnCongestion for NearTarget {
    fn name(&self) -> &'static str {
        "near-target"
    }
    fn control(&self, fabric: &Fabric) -> Box<dyn OwnControl> {
        let frame = (fabric.frame + fabric.gap).get() as f64;
        Box::new(Window { bytes: fabric.bdp.get() as f64, frame, target: fabric.base_rtt * self.round_trips })
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
struct Window {
    bytes: f64,
    frame: f64,
    target: Duration,
}

impl Congestion for Window {
    fn on_signal(&mut self, _: &mut Cx<'_>, signal: Signal) {
        match signal {
            // In a round trip, one frame more or a quarter less.
            Signal::Acked { bytes, rtt, .. } => {
                let change = if rtt <= self.target { self.frame } else { self.bytes * -0.25 };
                self.bytes += change * bytes.get() as f64 / self.bytes;
            }
            Signal::Lost | Signal::TimedOut => self.bytes /= 2.0,
            Signal::Cnp | Signal::Sent { .. } => {}
        }
        self.bytes = self.bytes.max(self.frame);
    }
    fn window(&self) -> Bytes {
        Bytes::new(self.bytes as u64)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let own: &'static NearTarget = Box::leak(Box::new(NearTarget { round_trips: 2 }));
    let link = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(1) };
    let controls: [(&str, CongestionConfig); 2] =
        [(own.name(), Config::new(own).into()), ("none", NoneConfig::default().into())];
    for (name, control) in controls {
        let incast = Simulation::builder(FatTree { k: 4, link }).recovery(IrnConfig::default()).congestion(control);
        let incast =
            (1..16).fold(incast, |all, src| all.flow(HostId(src), HostId(0), Bytes::from_kb(500), Duration::ZERO));
        let outcome = incast.build()?.run()?;
        let slowest = outcome.completion_times().max().ok_or("no flow finished")?;
        println!("{name}: slowest {slowest}, {} drops", outcome.totals.data_drops.total());
    }
    Ok(())
}
