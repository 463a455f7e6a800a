//! Switches: buffers, flow control, marking.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use selvedge_transport::Marking;
use selvedge_transport::netrt::NetRtConfig;
use selvedge_units::{Bytes, Chance, Duration, Rate, Setting, Toggle};
use selvedge_wire::Header;
use serde::{Deserialize, Serialize};

use super::{BufferConfig, NicConfig};
use crate::beside::Beside;
use crate::net::balancing::BalancingConfig;
use crate::workload::WorkloadSummary;

/// Every switch of the fabric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SwitchConfig {
    /// A switch that one can buy, as "tomahawk-4-z9664f": what is public of its buffer, headroom and marking takes the
    /// place of defaults here. Nothing of it is calibrated. `selvedge presets` lists all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Where packets wait, and how the buffer is shared.
    pub buffer: BufferConfig,
    /// Priority flow control.
    pub pfc: PfcConfig,
    /// ECN marking.
    pub ecn: EcnConfig,
    /// Which of several equally short ways packets take.
    pub balancing: BalancingConfig,
    /// Loss recovery between top-of-rack switches (NetRT).
    pub netrt: NetRtConfig,
}

/// What a link carries in a quantum.
const QUANTUM_BYTES: u64 = 64;

/// Priority flow control (802.1Qbb).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PfcConfig {
    /// Whether switches pause their peers instead of dropping.
    pub enabled: bool,
    /// Room kept free per input for what arrives after X-OFF. "auto": the link's bandwidth-delay
    /// product plus what else may come before the pause takes effect (three frames, the pause frame);
    /// the IRN paper counts the product alone. "off": none, which is refused while PFC is enabled.
    pub headroom: Setting<Bytes>,
    /// What "auto" means for headroom on links of some rates, by their delays: a table as operators of switches have
    /// it. Links without a row have what "auto" means otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headroom_by_link: Vec<LinkHeadroom>,
    /// X-ON is sent when an input has fallen this far below its X-OFF threshold. The IRN paper
    /// gives no hysteresis; one frame avoids a pause frame per packet. "auto": two frames.
    pub xon_gap: Setting<Bytes>,
    /// X-ON is also sent when an input holds no more than this, however low its X-OFF threshold has become.
    pub xon: Bytes,
    /// Pause time in each X-OFF, in quanta of 512 bit times; refreshed at half of it while the
    /// input stays full. At least 3, so that ports that pause can send something else, too.
    pub quanta: u16,
    /// Classes that are lossless. Classes without PFC drop when the buffer is full.
    pub classes: Vec<u8>,
}

/// The headroom of some links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkHeadroom {
    /// Links of this rate.
    pub rate: Rate,
    /// And of no more than this propagation delay. Of several rows that fit, the one with the shortest holds.
    pub delay: Duration,
    /// Room kept free for each lossless class of an input on such a link.
    pub headroom: Bytes,
}

impl Default for PfcConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            headroom: Setting::Auto,
            headroom_by_link: Vec::new(),
            xon_gap: Setting::Auto,
            xon: Bytes::ZERO,
            quanta: u16::MAX,
            classes: (0..8).collect(),
        }
    }
}

impl PfcConfig {
    /// Headroom of an input whose link has this rate and delay: what is set, or what "auto" means.
    ///
    /// The frame that crosses the threshold lies beyond it but for a byte. Then the pause frame may wait
    /// for one frame that is being sent, takes its own time and the link's delay; its peer may have
    /// just begun a frame; and what fills the link then still arrives. All of that comes faster if its clock is fast.
    pub fn headroom_on(&self, rate: Rate, delay: Duration, nic: &NicConfig) -> Bytes {
        let auto = || {
            if let Some(row) = self.headroom_row(rate, delay) {
                return Some(row.headroom);
            }
            let frame = nic.mtu + nic.header + nic.gap;
            let nominal = rate.amount_in(delay * 2) + frame * 3 + Header::MINIMUM_FRAME + nic.gap;
            Some(nic.clock_skew.most(nominal))
        };
        self.headroom.resolve(auto).unwrap_or(Bytes::ZERO)
    }
    /// The row of the table that is about links of this rate and delay.
    pub fn headroom_row(&self, rate: Rate, delay: Duration) -> Option<&LinkHeadroom> {
        let fitting = self.headroom_by_link.iter().filter(|row| row.rate == rate && row.delay >= delay);
        fitting.min_by_key(|row| row.delay)
    }
}

impl PfcConfig {
    /// A pause frame.
    pub const FRAME: Bytes = Header::MINIMUM_FRAME;
    /// The fewest quanta of which the half is longer than the transmission of so much.
    ///
    /// At half of its time a pause is refreshed. Where that takes as long as a pause frame with its gap, a port that
    /// pauses sends nothing else for ever, and both ends of a link may do so; where it takes as long as a data frame,
    /// which may be on the wire just then, the pause ends before it is refreshed.
    pub fn quanta_beyond(frame: Bytes) -> u64 {
        frame.get() / (QUANTUM_BYTES / 2) + 1
    }
}

/// RED marking on the bytes that wait for an output (DCQCN section 3.1).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct EcnConfig {
    /// Whether switches mark. Packets of ECN-capable transports only. "auto": where congestion control
    /// hears marks.
    pub enabled: Toggle,
    /// No mark up to this queue length. "auto": as the congestion control's paper has it, for the hosts'
    /// line rate; DCQCN's where it has nothing to say (5 KB at 40 Gb/s).
    pub k_min: Setting<Bytes>,
    /// Every packet marked above this queue length. "auto": as for `k-min` (DCQCN: 200 KB at 40 Gb/s).
    pub k_max: Setting<Bytes>,
    /// Probability of a mark just below `k-max`; rises linearly from zero at `k-min`. "auto": as for
    /// `k-min` (DCQCN: 0.01).
    pub p_max: Setting<Chance>,
    /// `k-min` and `k-max` are meant for links of this rate; others scale them in proportion. "auto": the
    /// hosts' line rate; "off": the same for all links.
    pub at_rate: Setting<Rate>,
}

impl EcnConfig {
    /// The curve on links of this rate, where switches mark.
    pub(crate) fn curve_on(&self, rate: Rate) -> Option<Marking> {
        let auto = Marking::DCQCN;
        let given = Marking {
            k_min: self.k_min.resolve(|| Some(auto.k_min)).unwrap_or(Bytes::ZERO),
            k_max: self.k_max.resolve(|| Some(auto.k_max)).unwrap_or(Bytes::MAX),
            p_max: self.p_max.resolve(|| Some(auto.p_max)).unwrap_or(Chance::NEVER),
            rate: self.at_rate.resolve(|| None).unwrap_or(rate),
        };
        self.enabled.resolve(|| false).then(|| given.on(rate))
    }
}

impl SwitchConfig {
    /// Priorities that data has, lowest first.
    pub fn data_priorities(
        &self,
        nic: &NicConfig,
        beside: Option<&Beside>,
        workloads: &[WorkloadSummary],
    ) -> BTreeSet<u8> {
        let asked = workloads.iter().flat_map(|workload| workload.priorities.iter().copied());
        asked.chain([nic.data_class]).chain(beside.and_then(|beside| beside.class)).collect()
    }
    /// Priorities that these NICs, workloads and the switches themselves use, lowest first: packets carry their
    /// positions here as classes.
    pub fn priorities(&self, nic: &NicConfig, beside: Option<&Beside>, workloads: &[WorkloadSummary]) -> Vec<u8> {
        let answers = [nic.ack_class, nic.cnp_class];
        let headers = match self.buffer {
            BufferConfig::Trimming(trimming) => Some(trimming.header_class),
            BufferConfig::InputQueued(_) | BufferConfig::SharedBuffer(_) | BufferConfig::FairQueued(_) => None,
        };
        let netrt = self.netrt.enabled.then_some(self.netrt.priority);
        let mut priorities = self.data_priorities(nic, beside, workloads);
        priorities.extend(answers.into_iter().chain(headers).chain(netrt));
        priorities.into_iter().collect()
    }
}
