//! Configuration of switch buffers: where packets wait, and how the buffer is shared.

use schemars::JsonSchema;
use selvedge_units::{Bytes, Chance, Setting};
use selvedge_wire::Header;
use serde::{Deserialize, Serialize};

use crate::topology::{Link, Node};

/// Kind of a switch's buffer: where packets wait, and how the buffer is shared.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferConfig {
    /// Virtual output queues at each input, outputs served round-robin over inputs (IRN section 4.1). Each input port
    /// has a buffer of its own.
    InputQueued(InputQueued),
    /// Output queues in one buffer that all ports share by dynamic thresholds (Choudhury and Hahne),
    /// as in common switch chips.
    SharedBuffer(SharedBuffer),
    /// Short output queues that cut packets to their headers instead of dropping them, and send headers
    /// first (Handley et al., NDP, SIGCOMM 2017).
    Trimming(Trimming),
    /// One queue per flow at each output, served by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
    FairQueued(FairQueued),
}

impl Default for BufferConfig {
    fn default() -> Self {
        Self::InputQueued(InputQueued::default())
    }
}

/// Parameters of [`BufferConfig::InputQueued`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct InputQueued {
    /// Buffer of each input port: of each lossless priority in use there, and of all lossy ones together. "auto": twice
    /// the largest bandwidth-delay product of any path (IRN section 4.1: 240 KB), or what PFC needs where that is more
    /// (twice the headroom of any link, and its X-ON gap: where links are short, or faster or longer than those of
    /// hosts), or what the topology file gives each port (htsim's `Queue_Up` and `Queue_Down`); "off": without limit,
    /// for which timeouts count 64 MB in each switch. Where links differ, every port gets what the fastest host or the
    /// longest and fastest link needs. Slow links then take long to empty the buffer, and RTO_high, which waits for
    /// that, is as long: give a size there.
    pub per_port: Setting<Bytes>,
    /// Order in which an output serves inputs. Default: round-robin (IRN section 4.1).
    pub arbitration: Arbitration,
    /// Speed-up of a crossbar between inputs and outputs, relative to the input's link, 1 to 64: each input feeds one
    /// output at a time. Needs round-robin arbitration, and no NetRT. Default: "off", every input may feed all outputs
    /// at once (the IRN paper does not say).
    pub crossbar_speed_up: Setting<f64>,
}

impl Default for InputQueued {
    fn default() -> Self {
        Self { per_port: Setting::Auto, arbitration: Arbitration::default(), crossbar_speed_up: Setting::Off }
    }
}

impl InputQueued {
    /// Returns the speed-up of the crossbar in hundredths; `None`: there is no crossbar.
    pub fn crossbar(&self) -> Option<u64> {
        self.crossbar_speed_up.resolve(|| None).map(|speed_up| (speed_up * 100.0).round() as u64)
    }

    /// Returns the buffer of the port of `node` on `link`; `None`: without limit.
    pub fn room(&self, link: &Link, node: Node) -> Option<Bytes> {
        self.per_port.resolve(|| link.buffer_at(node))
    }
}

/// Order in which an output serves inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// Round-robin, packet by packet.
    #[default]
    RoundRobin,
    /// The input whose packet has waited longest first: an input's share follows its arrivals.
    OldestFirst,
}

/// Parameters of [`BufferConfig::SharedBuffer`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SharedBuffer {
    /// Buffer of the whole switch, headroom included.
    pub total: Bytes,
    /// Multiple of the free shared buffer that a lossy output queue may hold; above zero.
    pub egress_alpha: f64,
    /// Multiple of the free shared buffer that an input may hold, with PFC, before it pauses its peer; above zero.
    pub ingress_alpha: f64,
    /// Bytes of the total that inputs and queues share: less than the headroom leaves, where the rest is set aside for
    /// other uses. "auto" and "off": all that the headroom leaves.
    pub shared: Setting<Bytes>,
    /// Bytes of the total that serve as headroom of all inputs together, each of which takes up to its own headroom
    /// (SAI: XOFF_SIZE above 0). Usually less than the sum of all headroom, and possibly too little: then packets are
    /// dropped in spite of PFC. "auto" and "off": each lossless class of each input has its own headroom.
    pub headroom_pool: Setting<Bytes>,
}

impl SharedBuffer {
    /// Returns the bytes that inputs and queues share when all inputs together have `headroom`.
    pub fn shared_beside(&self, headroom: Bytes) -> Bytes {
        let left = self.total.saturating_sub(self.reserved(headroom));
        self.shared.resolve(|| None).map_or(left, |shared| shared.min(left))
    }
    /// Returns the bytes of the total that are set aside when all inputs together have `headroom`.
    pub fn reserved(&self, headroom: Bytes) -> Bytes {
        // Without lossless classes no pool is needed.
        let pool = self.headroom_pool.resolve(|| None).filter(|_| !headroom.is_zero());
        pool.unwrap_or(headroom)
    }
}

impl Default for SharedBuffer {
    fn default() -> Self {
        Self {
            total: Bytes::new(9_000_000),
            egress_alpha: 1.0,
            ingress_alpha: 1.0 / 16.0,
            shared: Setting::Off,
            headroom_pool: Setting::Off,
        }
    }
}

/// Parameters of [`BufferConfig::Trimming`].
///
/// Each output has a queue for each class of data and one for headers. Data that finds its queue full is cut to its
/// headers (64 bytes), which go to the header queue with the class `header-class`, as do whole packets of at most that
/// size. Transports whose control packets shall travel with the headers send them in that class, too (`nic.ack-class`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Trimming {
    /// Full frames that a data queue holds, at least 1. Default: 8 (NDP section 3.1). EQDS's simulator: 35.
    pub packets: u32,
    /// Bytes that the header queue holds; packets that find it full are dropped. "auto": twice as much as a data queue,
    /// as in htsim, and at least 64 KiB, which are 1,024 headers (about as many as in htsim and in NDP's switches,
    /// whose packets are larger); "off": without limit.
    pub headers: Setting<Bytes>,
    /// Traffic class of headers, 0 to 7; above that of data.
    pub header_class: u8,
    /// Headers that are sent before a waiting data packet is, at least 1. "auto": 10 (NDP section 3.1); htsim: 100,000.
    /// "off": headers always go first.
    pub headers_per_data: Setting<u32>,
    /// Probability that the last packet of a full queue is cut, and not the arriving one. Default: one half (NDP
    /// section 3.1).
    pub trim_last: Chance,
    /// Queues by flow for data, served by deficit round robin, as in `fair-queued`: `packets` bounds their sum, and the
    /// last packet of the longest queue is cut where that is full. Default: data is sent as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_queues: Option<FlowQueues>,
}

impl Trimming {
    /// Size of a packet that has been cut to its headers.
    pub const HEADER: Bytes = Header::MINIMUM_FRAME;
    /// Default of `headers-per-data` (NDP section 3.1).
    pub const HEADERS_PER_DATA: u32 = 10;
    /// Smallest automatic size of the header queue.
    const LEAST_HEADERS: Bytes = Bytes::new(1 << 16);
    /// Returns the bytes that a data queue holds, for full frames of `frame` bytes.
    pub fn data_room(&self, frame: Bytes) -> Bytes {
        frame * u64::from(self.packets)
    }
    /// Returns the bytes that the header queue holds, for full frames of `frame` bytes; `None`: without limit.
    pub fn header_room(&self, frame: Bytes) -> Option<Bytes> {
        self.headers.resolve(|| Some((self.data_room(frame) * 2).max(Self::LEAST_HEADERS)))
    }
    /// Returns the most bytes that an output sends, with a `gap` after each frame, before the last packet of its full
    /// queues.
    ///
    /// The first number is for data, with one full queue for each of `classes`: full frames, and the headers between
    /// them, at most as many as the header queue holds. The second is for headers, and no less than the first: a full
    /// header queue, and the data between. A header queue without limit holds `all` headers.
    pub fn longest_waits(&self, frame: Bytes, gap: Bytes, classes: u64, all: u64) -> [Bytes; 2] {
        let (full, cut) = ((frame + gap).get(), (Self::HEADER + gap).get());
        let headers = self.header_room(frame).map_or(all, |room| room.get().div_ceil(Self::HEADER.get()));
        let turn = self.headers_per_data.resolve(|| Some(Self::HEADERS_PER_DATA)).map(|turn| u64::from(turn.max(1)));
        let data = u64::from(self.packets).saturating_mul(classes);
        let between = turn.map_or(headers, |turn| turn.saturating_mul(data).min(headers));
        let of_data = full.saturating_mul(data).saturating_add(cut.saturating_mul(between));
        let of_turns = full.saturating_mul(turn.map_or(0, |turn| headers / turn));
        let of_headers = cut.saturating_mul(headers).saturating_add(of_turns);
        [of_data, of_data.max(of_headers)].map(Bytes::new)
    }
}

impl Default for Trimming {
    fn default() -> Self {
        Self {
            packets: 8,
            headers: Setting::Auto,
            header_class: 6,
            headers_per_data: Setting::Auto,
            trim_last: Chance::ratio(1, 2),
            flow_queues: None,
        }
    }
}

/// Parameters of [`Trimming::flow_queues`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FlowQueues {
    /// Bytes of one queue that may wait for one output; a packet of a flow that has as much is cut. Default: off, only
    /// the longest queue is cut.
    pub per_flow: Setting<Bytes>,
    /// Queues per output and class, 1 to 65,536; flows with the same hash share one. Default: 1024 (McKenney, INFOCOM
    /// 1990: several times the number of flows).
    pub queues: u32,
    /// Bytes that a queue may send in its turn, at least 64. "auto": a full frame, which makes the work per packet
    /// constant.
    pub quantum: Setting<Bytes>,
}

impl Default for FlowQueues {
    fn default() -> Self {
        Self { per_flow: Setting::Off, queues: 1_024, quantum: Setting::Auto }
    }
}

/// Parameters of [`BufferConfig::FairQueued`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FairQueued {
    /// Bytes of each class that may wait for one output. Beyond, the first packet of the longest queue is dropped.
    /// "auto": twice the largest bandwidth-delay product of any path; "off": without limit, for which timeouts count 64
    /// MB.
    pub per_port: Setting<Bytes>,
    /// Bytes of one queue that may wait for one output; packets beyond are dropped. Default: off, only the longest
    /// queue loses packets.
    pub per_flow: Setting<Bytes>,
    /// Queues per output and class, 1 to 65,536; flows with the same hash share one. Default: 1024 (McKenney, INFOCOM
    /// 1990: several times the number of flows).
    pub queues: u32,
    /// Bytes that a queue may send in its turn, at least 64. "auto": a full frame, which makes the work per packet
    /// constant.
    pub quantum: Setting<Bytes>,
}

impl Default for FairQueued {
    fn default() -> Self {
        Self { per_port: Setting::Auto, per_flow: Setting::Off, queues: 1_024, quantum: Setting::Auto }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_of_headroom_takes_the_place_of_what_inputs_reserve() {
        let bytes = Bytes::new;
        let own = SharedBuffer { total: bytes(1_000), ..SharedBuffer::default() };
        assert_eq!([0, 300, 1_200].map(|headroom| own.shared_beside(bytes(headroom)).get()), [1_000, 700, 0]);
        let pool = SharedBuffer { headroom_pool: Setting::Value(bytes(100)), ..own };
        assert_eq!([0, 300, 1_200].map(|headroom| pool.shared_beside(bytes(headroom)).get()), [1_000, 900, 900]);
        let set_aside = SharedBuffer { shared: Setting::Value(bytes(500)), ..own };
        assert_eq!([0, 300, 600].map(|headroom| set_aside.shared_beside(bytes(headroom)).get()), [500, 500, 400]);
    }

    #[test]
    fn what_comes_last_to_full_queues_waits_for_all_that_goes_before() {
        let (frame, gap) = (Bytes::new(1_000), Bytes::new(20));
        let wait = |trimming: Trimming, classes| trimming.longest_waits(frame, gap, classes, 100).map(Bytes::get);
        let ndp = Trimming { headers: Setting::Value(Bytes::new(16_000)), ..Trimming::default() };
        // Eight frames and the headers between; 250 headers, and a frame of data after ten, take longer.
        assert_eq!(wait(ndp, 1), [8 * 1_020 + 80 * 84, 250 * 84 + 25 * 1_020]);
        // Six classes: 48 frames, and as many headers as there are.
        assert_eq!(wait(ndp, 6), [48 * 1_020 + 250 * 84; 2]);
        let headers_first = Trimming { headers_per_data: Setting::Off, ..ndp };
        assert_eq!(wait(headers_first, 1), [8 * 1_020 + 250 * 84; 2]);
        let boundless = Trimming { headers: Setting::Off, ..ndp };
        assert_eq!(wait(boundless, 1)[1], 100 * 84 + 10 * 1_020);
        let room = |packets, frame| Trimming { packets, ..Trimming::default() }.header_room(Bytes::new(frame));
        assert_eq!([room(8, 1_086), room(8, 4_158)], [65_536, 66_528].map(|bytes| Some(Bytes::new(bytes))));
        let most = Trimming { packets: u32::MAX, headers_per_data: Setting::Value(u32::MAX), ..boundless };
        assert!(most.longest_waits(frame, gap, 8, u64::MAX)[1].get() > 1 << 60, "no overflow");
    }
}
