//! Configuration of switches: buffers, flow control, marking.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use selvedge_transport::Marking;
use selvedge_transport::netrt::NetRtConfig;
use selvedge_units::{Bytes, Chance, Duration, Rate, Setting, Toggle};
use selvedge_wire::Header;
use serde::{Deserialize, Serialize};

use super::{BalancingConfig, BufferConfig, NicConfig, TransportConfig};
use crate::beside::Beside;
use crate::workload::WorkloadSummary;

/// Switches of the fabric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SwitchConfig {
    /// Preset of a commercial switch, such as "tomahawk-4-z9664f": published properties of its buffer, headroom and
    /// marking replace defaults here. None of them is calibrated. `selvedge presets` lists all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Kind of the buffer: where packets wait, and how it is shared.
    pub buffer: BufferConfig,
    /// Weights of the priorities, that of priority 0 first, from 0 to 65535. Priorities with a weight share each output
    /// by deficit round robin: in its turn, one may send as many full frames as its weight. Together they stand where
    /// the highest of them stands; priorities above it go first, others below it last. Default: all 0, every priority
    /// goes before all lower ones.
    #[serde(skip_serializing_if = "is_strict")]
    pub weights: [u16; 8],
    /// Priority flow control.
    pub pfc: PfcConfig,
    /// ECN marking.
    pub ecn: EcnConfig,
    /// Choice among several equally short paths of a packet.
    pub balancing: BalancingConfig,
    /// Loss recovery between top-of-rack switches (NetRT).
    pub netrt: NetRtConfig,
}

/// Returns whether no priority has a weight.
fn is_strict(weights: &[u16; 8]) -> bool {
    weights.iter().all(|&weight| weight == 0)
}

/// Bytes that a link carries in a quantum (512 bit times).
const QUANTUM_BYTES: u64 = 64;

/// Priority flow control (802.1Qbb).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PfcConfig {
    /// Whether switches pause their peers instead of dropping packets.
    pub enabled: bool,
    /// Buffer kept free per input for packets that arrive after X-OFF. "auto": the link's bandwidth-delay product plus
    /// what else may come before the pause takes effect (three frames, the pause frame); the IRN paper counts the
    /// product alone. "off": none, which is refused while PFC is enabled.
    pub headroom: Setting<Bytes>,
    /// Headroom of "auto" on links of some rates, by their delays: a table like those of switch operators. Links
    /// without a row have the usual "auto".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headroom_by_link: Vec<LinkHeadroom>,
    /// Distance below its X-OFF threshold at which an input sends X-ON. The IRN paper gives no hysteresis; one frame
    /// avoids a pause frame per packet. "auto": two frames.
    pub xon_gap: Setting<Bytes>,
    /// Bytes at or below which an input also sends X-ON, however low its X-OFF threshold has become.
    pub xon: Bytes,
    /// Pause time in each X-OFF, in quanta of 512 bit times; refreshed at half of it while the input stays full. At
    /// least 3, so that ports that pause can also send other frames.
    pub quanta: u16,
    /// Lossless classes. Classes without PFC drop packets when the buffer is full.
    pub classes: Vec<u8>,
}

/// Headroom of some links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkHeadroom {
    /// Rate of the links.
    pub rate: Rate,
    /// Largest propagation delay of the links. Of several rows that fit, the one with the shortest holds.
    pub delay: Duration,
    /// Buffer kept free for each lossless class of an input on such a link.
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
    /// Returns the headroom of an input whose link has this rate and delay: the configured one, or that of "auto".
    ///
    /// The frame that crosses the threshold may exceed it by all but one byte. The pause frame may then wait for one
    /// frame that is being sent, and takes its own time and the link's delay. The peer may have just begun a frame, and
    /// the frames that fill the link still arrive. All of that comes faster if the peer's clock is fast.
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
    /// Returns the table's row for links of this rate and delay.
    pub fn headroom_row(&self, rate: Rate, delay: Duration) -> Option<&LinkHeadroom> {
        let fitting = self.headroom_by_link.iter().filter(|row| row.rate == rate && row.delay >= delay);
        fitting.min_by_key(|row| row.delay)
    }
}

impl PfcConfig {
    /// Size of a pause frame.
    pub const FRAME: Bytes = Header::MINIMUM_FRAME;
    /// Returns the fewest quanta half of which are longer than the transmission of `frame`.
    ///
    /// A pause is refreshed at half of its time. Where that takes as long as a pause frame with its gap, a port that
    /// pauses sends nothing else for ever, and both ends of a link may do so. Where it takes as long as a data frame,
    /// which may be on the wire just then, the pause ends before it is refreshed.
    pub fn quanta_beyond(frame: Bytes) -> u64 {
        frame.get() / (QUANTUM_BYTES / 2) + 1
    }
}

/// RED marking on the bytes that wait for an output (DCQCN section 3.1).
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct EcnConfig {
    /// Whether switches mark packets of ECN-capable transports. "auto": where congestion control reacts to marks.
    pub enabled: Toggle,
    /// Queue length up to which no packet is marked. "auto": that of the congestion control's paper, for the hosts'
    /// line rate; DCQCN's where the paper gives none (5 KB at 40 Gb/s).
    pub k_min: Setting<Bytes>,
    /// Queue length above which every packet is marked. "auto": like `k-min` (DCQCN: 200 KB at 40 Gb/s).
    pub k_max: Setting<Bytes>,
    /// Probability of a mark just below `k-max`; rises linearly from zero at `k-min`. "auto": like `k-min` (DCQCN:
    /// 0.01).
    pub p_max: Setting<Chance>,
    /// Rate of the links that `k-min` and `k-max` are meant for; others scale them in proportion. "auto": the hosts'
    /// line rate; "off": equal on all links.
    pub at_rate: Setting<Rate>,
}

impl EcnConfig {
    /// Returns the marking curve on links of this rate; `None` where switches do not mark.
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
    /// Returns the priorities of data, lowest first.
    pub fn data_priorities(
        &self,
        nic: &NicConfig,
        transport: &TransportConfig,
        beside: Option<&Beside>,
        workloads: &[WorkloadSummary],
    ) -> BTreeSet<u8> {
        let asked = workloads.iter().flat_map(|workload| workload.priorities.iter().copied());
        let own = match transport.priorities() {
            0 => nic.data_class..=nic.data_class,
            chosen => 0..=chosen - 1,
        };
        asked.chain(own).chain(beside.and_then(|beside| beside.class)).collect()
    }
    /// Returns the priorities that these NICs, workloads and the switches themselves use, lowest first: packets carry
    /// positions in this list as classes.
    pub fn priorities(
        &self,
        nic: &NicConfig,
        transport: &TransportConfig,
        beside: Option<&Beside>,
        workloads: &[WorkloadSummary],
    ) -> Vec<u8> {
        let answers = [nic.ack_class, nic.cnp_class];
        let headers = match self.buffer {
            BufferConfig::Trimming(trimming) => Some(trimming.header_class),
            BufferConfig::InputQueued(_) | BufferConfig::SharedBuffer(_) | BufferConfig::FairQueued(_) => None,
        };
        let netrt = self.netrt.enabled.then_some(self.netrt.priority);
        let mut priorities = self.data_priorities(nic, transport, beside, workloads);
        priorities.extend(answers.into_iter().chain(headers).chain(netrt));
        priorities.into_iter().collect()
    }
}
