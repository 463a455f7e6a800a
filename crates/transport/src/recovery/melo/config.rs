//! Settings of MELO.

use alloc::format;

use selvedge_units::{Bytes, Duration, Setting};

use super::Pools;
use super::footprint;
use super::pool::MOST_BLOCKS;
use crate::bitmap::WIDEST_WINDOW;
use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};
use crate::footprint::Footprint;
use crate::recovery::{Scheme, SchemeParams, SharedState};

/// MELO: selective retransmission with bitmaps from a pool that a NIC's queue pairs share.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct MeloConfig {
    /// Bits in each of a NIC's two pools, the receivers' and the senders': whole blocks, and at most 65,536 of them.
    /// Default: 1024 (section 4); one bandwidth-delay product of 100 Gb/s and 200 us takes 2560 (section 3.2.3). Ids of
    /// more than 256 blocks have more than the paper's 8 bits.
    pub pool_bits: u32,
    /// Bits of a block: 8, 16, 32 or 64. Smaller blocks waste fewer bits at the ends of a list and take more pointers.
    /// Default: 8 ("MELO chooses 1B as the block size", section 3.2.3).
    pub block_bits: u32,
    /// Packets that each connection's reorder buffer in the host's memory holds: the limit on how far beyond the
    /// expected packet one may arrive and be kept. 1 to 32768, since a hole's start has 16 bits. Default: "auto", as
    /// many as the pool has bits: one bandwidth-delay product of the network that the pool is made for (section 3.2.2).
    pub reorder_buffer: Setting<u32>,
    /// Whether a hole that was retransmitted is retransmitted again when a later NACK names it again.
    pub resend: Resend,
    /// The retransmission timeout, after which every unacknowledged packet is sent again. The paper gives none.
    /// Default: "auto", which is the maximum round-trip time with one congested link without PFC, like for go-back-N;
    /// with PFC, whose pauses make round trips long, 500us, the value in the simulator of DCQCN's authors, which the
    /// paper's extends (there the timeout is off unless asked for). "off": what no NACK repairs stays lost, and so does
    /// a last packet.
    pub rto: Setting<Duration>,
    /// Packets a flow may have in flight. Default: "off": MELO leaves that to congestion control. "auto": the path's
    /// bandwidth-delay product over the largest data frame, like in IRN.
    pub bdp_cap: Setting<u32>,
    /// Connections whose state a NIC's chip holds, receiving and as many sending; at least 1. The least recently used
    /// one is swapped out: its blocks return to the pool until it is used again (section 3.2.5). The time for swapping
    /// is not modelled. Default: "off", all of them, and so is "auto".
    pub on_chip: Setting<u32>,
}

/// Retransmission of holes that NACKs name more than once. A NACK names the three newest holes "to provide some
/// redundancy" (MELO, section 3.2.4), and the paper does not say what the sender does with a hole that it has
/// retransmitted already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Resend {
    /// A hole is retransmitted once; only the timeout repairs a lost retransmission.
    Once,
    /// A hole is retransmitted whenever a NACK names it, up to three times if nothing else is lost: a lost
    /// retransmission is repaired by one of the next two NACKs, and some packets arrive twice.
    #[default]
    AsNamed,
}

impl Default for MeloConfig {
    fn default() -> Self {
        Self {
            pool_bits: 1024,
            block_bits: 8,
            reorder_buffer: Setting::Auto,
            resend: Resend::AsNamed,
            rto: Setting::Auto,
            bdp_cap: Setting::Off,
            on_chip: Setting::Off,
        }
    }
}

/// The largest reorder buffer, in packets: half of what the 16 bits of a hole's start can number.
const MOST_SLOTS: u32 = 1 << 15;
/// `L2WaitForAckTimer` of the ns-3 simulator of DCQCN's authors, which MELO's extended (section 4, footnote 5).
const RTO_WITH_PFC: Duration = Duration::from_us(500);

impl MeloConfig {
    /// Returns the number of blocks of a pool.
    pub(super) fn blocks(&self) -> u32 {
        self.pool_bits / self.block_bits
    }
}

/// Parameters of both ends of MELO, and of the pools of their NICs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeloParams {
    blocks: u32,
    block_bits: u32,
    slots: u32,
    pub(super) resend: Resend,
    /// The timeout; [`Duration::MAX`] is none.
    pub(super) rto: Duration,
    /// Packets in flight; `None` is no limit.
    cap: Option<u32>,
    /// Connections on the chip; `None` is any number.
    on_chip: Option<u32>,
}

impl MeloParams {
    /// Returns the unused memory of a chip.
    pub fn pools(&self) -> Pools {
        Pools::with_pools(self.blocks, self.block_bits, self.on_chip.map_or(0, |connections| connections as usize))
    }
}

impl SchemeParams for MeloParams {
    fn bdp_cap(&self) -> Option<u32> {
        self.cap
    }
    fn shared(&self) -> SharedState {
        SharedState { melo: self.pools(), ..SharedState::default() }
    }
    fn reorder_slots(&self) -> u32 {
        self.slots
    }
    fn wire_id(&self) -> Option<u8> {
        Some(2)
    }
}

impl Scheme for MeloConfig {
    type Params = MeloParams;

    fn resolve(&mut self, fabric: &Fabric) {
        let bits = self.pool_bits;
        resolve(&mut self.reorder_buffer, || Some(bits));
        resolve(&mut self.rto, || Some(if fabric.pfc { RTO_WITH_PFC } else { fabric.congested_rtt }));
        resolve(&mut self.on_chip, || None);
        resolve(&mut self.bdp_cap, || Some(fabric.frames_in_flight().min(WIDEST_WINDOW) as u32));
    }
    fn params(&self) -> Result<MeloParams, SettingError> {
        let (bits, block) = (self.pool_bits, self.block_bits);
        if !matches!(block, 8 | 16 | 32 | 64) {
            return Err(SettingError::new("block-bits", format!("{block} bits; give 8, 16, 32 or 64")));
        }
        if bits == 0 || !bits.is_multiple_of(block) || self.blocks() > MOST_BLOCKS {
            let most = MOST_BLOCKS * block;
            let message = format!("{bits} bits; give whole blocks of {block}, up to {most}: a block's id has 16 bits");
            return Err(SettingError::new("pool-bits", message));
        }
        let slots = match known(self.reorder_buffer, "reorder-buffer")? {
            Some(slots @ 1..=MOST_SLOTS) => slots,
            Some(slots) => {
                let message = format!("{slots} packets; give 1 to {MOST_SLOTS}");
                return Err(SettingError::new("reorder-buffer", message));
            }
            None => {
                let message = "a packet waits in slot (number mod size), so there is a size; give one, or \"auto\"";
                return Err(SettingError::new("reorder-buffer", message));
            }
        };
        let rto = known(self.rto, "rto")?.unwrap_or(Duration::MAX);
        check_timeout("rto", rto)?;
        let on_chip = known(self.on_chip, "on-chip")?;
        if on_chip == Some(0) {
            return Err(SettingError::new("on-chip", "a chip without connections; give 1 or more, or \"off\""));
        }
        let cap = known(self.bdp_cap, "bdp-cap")?;
        if let Some(cap) = cap
            && (cap == 0 || u64::from(cap) > WIDEST_WINDOW)
        {
            return Err(SettingError::new("bdp-cap", format!("{cap} packets; give 1 to {WIDEST_WINDOW}, or \"off\"")));
        }
        let Self { block_bits, resend, .. } = *self;
        Ok(MeloParams { blocks: self.blocks(), block_bits, slots, resend, rto, cap, on_chip })
    }
    fn bdp_cap(&self) -> Option<u32> {
        self.bdp_cap.resolve(|| None)
    }
    fn acknowledges(&self) -> bool {
        true
    }
    fn extra_header(&self) -> Bytes {
        Bytes::ZERO
    }
    fn footprint(&self) -> Footprint {
        footprint::of(self)
    }
    fn pool(&self) -> Option<(&'static str, u32)> {
        Some(("pool-bits", self.pool_bits))
    }
    fn longest_timeout(&self) -> Duration {
        self.rto.resolve(|| None).unwrap_or(Duration::ZERO)
    }
    fn shortest_timeout(&self) -> Option<(&'static str, Duration)> {
        self.rto.resolve(|| None).map(|rto| ("rto", rto))
    }
    fn forget_pfc(&mut self) {
        self.rto = Setting::Auto;
    }
    fn wire_id(&self) -> Option<u8> {
        Some(2)
    }
}
