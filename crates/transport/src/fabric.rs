//! What a configuration may take from its surroundings.

use core::fmt;

use alloc::format;
use alloc::string::String;
use selvedge_units::{Bytes, Duration, Rate, Setting};

/// Facts about the fabric from which settings left at "auto" are derived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fabric {
    /// Whether switches pause instead of dropping (priority flow control).
    pub pfc: bool,
    /// Line rate of the hosts.
    pub line_rate: Rate,
    /// The largest bandwidth-delay product of any path: the rate of its slowest link times its round-trip propagation
    /// delay.
    pub bdp: Bytes,
    /// Whether no link of that path is slower than its sender's.
    pub sender_is_slowest: bool,
    /// The largest data frame: MTU and headers, those of recovery and congestion control among them, without the gap.
    pub frame: Bytes,
    /// What every frame takes on the wire beside itself: preamble and inter-packet gap.
    pub gap: Bytes,
    /// Round-trip time of the longest path when it is empty: propagation, and serialisation of a full
    /// frame there and an acknowledgement back at every link.
    pub base_rtt: Duration,
    /// For so long a host has to send at line rate until it fills the link of any receiver, whose first answer comes
    /// then: that round-trip time where all hosts are alike. Receivers that are slower count by what they can take.
    pub fill_time: Duration,
    /// Links of that path.
    pub links: u32,
    /// Links of the switch that has most: so many inputs may have packets for one output.
    pub inputs: u32,
    /// Maximum round-trip time with one congested link: the propagation delay of the longest path
    /// and back, and one full switch buffer on it (IRN, section 4.1: 320 us by default). Where switches trim, all the
    /// short queues on it.
    pub congested_rtt: Duration,
    /// Whether congestion control needs acknowledgements.
    pub acks: bool,
}

impl Fabric {
    /// The IRN paper's default (section 4.1): 54 servers, 40 Gb/s, six links of 2 us, 240 KB of buffer at each of the
    /// six inputs that one output may have to serve, which it says makes 320 us; without PFC.
    pub const IRN_PAPER: Self = Self {
        pfc: false,
        line_rate: Rate::from_gbps(40),
        bdp: Bytes::new(120_000),
        sender_is_slowest: true,
        frame: Bytes::new(1_024 + 62),
        gap: Bytes::new(20),
        base_rtt: Duration::from_us(24),
        fill_time: Duration::from_us(24),
        links: 6,
        inputs: 6,
        congested_rtt: Duration::from_us(320),
        acks: false,
    };

    /// What a host has under way, on the wire, when it fills the longest empty path.
    pub fn pipe(&self) -> Bytes {
        self.line_rate.amount_in(self.fill_time)
    }

    /// DCTCP's K on a link of this rate: four fifths of its rate times the round-trip time of the longest path, and at
    /// least 20 full frames, as in the experiments of its paper (Alizadeh et al., SIGCOMM 2010: 65 packets at 10 Gb/s
    /// with 100 us, 20 packets at 1 Gb/s); where buffers are small, no more than half of what one input may hold, but
    /// always the seventh with which the link stays busy (equation 13). Slower links mark at less, in proportion.
    ///
    /// With that seventh alone, the queue rises by a packet or two above K each round trip, at the same packets of the
    /// same flows each time: flows that are not equal do not become so.
    pub fn dctcp_threshold(&self, rate: Rate) -> Bytes {
        let pipe = rate.amount_in(self.base_rtt);
        let queueing = self.congested_rtt.saturating_sub(self.base_rtt);
        let room = Bytes::new(rate.amount_in(queueing).get() / u64::from(self.inputs.max(1)) / 2);
        let wanted = Bytes::new(pipe.get() / 5 * 4).max(self.frame * 20);
        wanted.min(room).max(Bytes::new(pipe.get() / 7))
    }

    /// The window that fills that path. Packets are sent whole: of a window of one and a half frames half would never
    /// be used. So where whole frames leave over a fifth of the path empty, as on slow and short links, it is one more.
    pub fn filling_window(&self) -> Bytes {
        let (pipe, frame) = (self.pipe(), self.frame + self.gap);
        let (above, below) = (pipe.pieces(frame).max(1), pipe.get() / frame.get());
        if above * 4 > below * 5 { frame * above } else { pipe }
    }

    /// Data frames that a flow may have in flight under BDP-FC (IRN section 3.2), at least 1: line
    /// rate times propagation, as the paper counts. It leaves out serialisation, which is less than a twentieth of its
    /// default round trip; on short and on slow links it is most of it, and flows would wait for acknowledgements on an
    /// idle path. Where such a path holds over a twentieth more, or has a link slower than its sender's, that counts.
    /// (To overestimate is harmless, section 3.2.)
    pub fn frames_in_flight(&self) -> u64 {
        let propagating = self.bdp.pieces(self.frame).max(1);
        let idle = self.pipe().pieces(self.frame + self.gap);
        if !self.sender_is_slowest || idle * 20 > propagating * 21 { idle.max(propagating) } else { propagating }
    }
}

/// A setting that cannot work; names the key and says what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingError {
    /// The key, as in the scenario file.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

impl SettingError {
    pub(crate) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}
impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}
impl core::error::Error for SettingError {}

/// The shortest timeout: no packet is that short.
const LEAST_TIMEOUT: Duration = Duration::from_ns(10);

/// Whether `timeout` is one: those that are over before anything can arrive have no end.
pub(crate) fn check_timeout(key: &'static str, timeout: Duration) -> Result<(), SettingError> {
    if timeout >= LEAST_TIMEOUT {
        return Ok(());
    }
    let what = if timeout.is_zero() { "zero never waits".into() } else { format!("{timeout} is over at once") };
    Err(SettingError::new(key, format!("a timeout of {what}; give {LEAST_TIMEOUT} or more")))
}

/// Replaces "auto".
pub(crate) fn resolve<T: Copy>(setting: &mut Setting<T>, auto: impl FnOnce() -> Option<T>) {
    *setting = setting.resolve(auto).into();
}

/// The value of a setting that was resolved before the engine was built.
///
/// # Panics
/// When it still says "auto".
pub(crate) fn resolved<T: Copy>(setting: Setting<T>, key: &str) -> Option<T> {
    setting.resolve(|| panic!("{key} still says \"auto\": resolve the configuration before building engines from it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_fills_a_short_path_holds_whole_frames() {
        let frame = Bytes::new(1_106);
        let of = |gbps: u64, fill_time: Duration| Fabric {
            line_rate: Rate::from_gbps(gbps),
            fill_time,
            ..Fabric::IRN_PAPER
        };
        // Two hosts back to back at 1 Gb/s: 1.3 frames, of which one would be under way.
        let short = of(1, Duration::from_ns(11_536));
        assert_eq!(short.pipe(), Bytes::new(1_442));
        assert_eq!(short.filling_window(), frame * 2);
        // Not even one.
        assert_eq!(of(1, Duration::from_ns(1_000)).filling_window(), frame);
        // Of many, a part of one does not matter.
        assert_eq!(Fabric::IRN_PAPER.filling_window(), Bytes::new(120_000));
    }
}
