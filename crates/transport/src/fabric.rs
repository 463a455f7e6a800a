//! Facts about the fabric from which settings are derived, and errors in settings.

use core::fmt;

use alloc::format;
use alloc::string::String;
use selvedge_units::{Bytes, Duration, Rate, Setting};
use selvedge_wire::Header;

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
    /// Whether no link of the path with the largest bandwidth-delay product is slower than the sender's link.
    pub sender_is_slowest: bool,
    /// The largest data frame: MTU and headers, those of recovery and congestion control included, without preamble and
    /// gap.
    pub frame: Bytes,
    /// Overhead of every frame on the wire: preamble and inter-packet gap.
    pub gap: Bytes,
    /// Round-trip time of the longest path when the fabric is empty: propagation, and serialisation of a full frame on
    /// every link of the forward path and of an acknowledgement on every link of the reverse path.
    pub base_rtt: Duration,
    /// The time for which a host sends at line rate until it fills the link of any receiver and the receiver's first
    /// answer arrives: the base round-trip time where all hosts are alike. Slower receivers count by the data that they
    /// can receive in that time.
    pub fill_time: Duration,
    /// Number of links of the longest path.
    pub links: u32,
    /// Links of the switch that has most: the number of inputs that may have packets for one output.
    pub inputs: u32,
    /// Maximum round-trip time with one congested link: the propagation delay of the longest path and back, and one
    /// full switch buffer on it (IRN, section 4.1: 320 us by default). Where switches trim, all short queues on the
    /// path count instead of one buffer.
    pub congested_rtt: Duration,
    /// Whether congestion control needs acknowledgements.
    pub acks: bool,
}

impl Fabric {
    /// The IRN paper's default network without PFC (section 4.1): 54 servers, 40 Gb/s, six links of 2 us, and 240 KB of
    /// buffer at each of the six inputs that one output may have to serve, for which the paper gives 320 us.
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

    /// Returns the facts about one path that `links` links make, all of them of `line_rate`, whose round trip takes
    /// `base_rtt` when it is empty and at most twice that when it is not. For two engines without a network around
    /// them; `frame` is the largest data frame, headers included.
    pub fn of_path(line_rate: Rate, base_rtt: Duration, links: u32, frame: Bytes) -> Self {
        Self {
            pfc: false,
            line_rate,
            bdp: line_rate.amount_in(base_rtt),
            sender_is_slowest: true,
            frame,
            gap: Header::GAP,
            base_rtt,
            fill_time: base_rtt,
            links,
            inputs: 1,
            congested_rtt: base_rtt.saturating_mul(2),
            acks: false,
        }
    }

    /// Returns the bytes on the wire that a host has in flight when it fills the longest empty path.
    pub fn pipe(&self) -> Bytes {
        self.line_rate.amount_in(self.fill_time)
    }

    /// Returns DCTCP's marking threshold K for a link of this rate: four fifths of the rate times the round-trip time
    /// of the longest path, and at least 20 full frames, like the experiments of its paper (Alizadeh et al., SIGCOMM
    /// 2010: 65 packets at 10 Gb/s with 100 us, 20 packets at 1 Gb/s). Where buffers are small, K is at most half of
    /// the buffer of one input, but at least a seventh of the bandwidth-delay product, which keeps the link busy
    /// (equation 13). Slower links have a proportionally lower threshold.
    ///
    /// With that seventh alone, the queue rises by a packet or two above K each round trip, always at the same packets
    /// of the same flows: flows with unequal rates do not converge.
    pub fn dctcp_threshold(&self, rate: Rate) -> Bytes {
        let pipe = rate.amount_in(self.base_rtt);
        let queueing = self.congested_rtt.saturating_sub(self.base_rtt);
        let room = Bytes::new(rate.amount_in(queueing).get() / u64::from(self.inputs.max(1)) / 2);
        let wanted = Bytes::new(pipe.get() / 5 * 4).max(self.frame * 20);
        wanted.min(room).max(Bytes::new(pipe.get() / 7))
    }

    /// Returns the window that fills the longest empty path. Packets are sent whole, so a window of one and a half
    /// frames would never use its second half. Where whole frames leave over a fifth of the path empty, for example on
    /// slow and short links, the window is rounded up to whole frames.
    pub fn filling_window(&self) -> Bytes {
        let (pipe, frame) = (self.pipe(), self.frame + self.gap);
        let (above, below) = (pipe.pieces(frame).max(1), pipe.get() / frame.get());
        if above * 4 > below * 5 { frame * above } else { pipe }
    }

    /// Returns the number of data frames that a flow may have in flight under BDP-FC (IRN section 3.2), at least 1:
    /// line rate times propagation delay, like in the paper. The paper's count leaves out serialisation, which is less
    /// than a twentieth of its default round trip. On short and on slow links, serialisation is most of the round trip,
    /// and flows would wait for acknowledgements on an idle path. Where an empty path holds over a twentieth more than
    /// the paper's count, or has a link slower than its sender's, the frames that the path holds count. (Overestimation
    /// is harmless, section 3.2.)
    pub fn frames_in_flight(&self) -> u64 {
        let propagating = self.bdp.pieces(self.frame).max(1);
        let idle = self.pipe().pieces(self.frame + self.gap);
        if !self.sender_is_slowest || idle * 20 > propagating * 21 { idle.max(propagating) } else { propagating }
    }
}

/// An error of a setting: the key, and a message that says what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingError {
    /// The key, as in the scenario file.
    pub key: &'static str,
    /// Description of the error, and of valid values.
    pub message: String,
}

impl SettingError {
    pub(crate) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
    /// Returns the error of a setting that should have been resolved.
    pub(crate) fn left_auto(key: &'static str) -> Self {
        Self::new(key, "\"auto\" was not replaced by a value: resolve the settings first")
    }
}
impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}
impl core::error::Error for SettingError {}

/// The shortest valid timeout: no packet is transmitted in less time.
const LEAST_TIMEOUT: Duration = Duration::from_ns(10);

/// Checks that `timeout` is long enough for an answer to arrive: shorter timeouts would repeat without end.
///
/// # Errors
/// When `timeout` is shorter than [`LEAST_TIMEOUT`].
pub(crate) fn check_timeout(key: &'static str, timeout: Duration) -> Result<(), SettingError> {
    if timeout >= LEAST_TIMEOUT {
        return Ok(());
    }
    let what = if timeout.is_zero() { "zero never waits".into() } else { format!("{timeout} is over at once") };
    Err(SettingError::new(key, format!("a timeout of {what}; give {LEAST_TIMEOUT} or more")))
}

/// Replaces "auto" in `setting` by the value of `auto`; returns the setting's value.
pub(crate) fn resolve<T: Copy>(setting: &mut Setting<T>, auto: impl FnOnce() -> Option<T>) -> Option<T> {
    let value = setting.resolve(auto);
    *setting = value.into();
    value
}

/// Returns the value of a resolved setting; `None` if it is off.
///
/// # Errors
/// When the setting still says "auto".
pub(crate) fn known<T>(setting: Setting<T>, key: &'static str) -> Result<Option<T>, SettingError> {
    match setting {
        Setting::Auto => Err(SettingError::left_auto(key)),
        Setting::Off => Ok(None),
        Setting::Value(value) => Ok(Some(value)),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::endpoint::{EndpointConfig, EndpointSettings};
    use crate::eqds::EqdsConfig;
    use crate::netrt::NetRtConfig;
    use crate::tcp::TcpConfig;
    use crate::{CongestionConfig, RecoveryConfig, Scheme, Tuning};

    #[test]
    fn a_setting_that_still_says_auto_is_an_error_with_its_key() {
        let errors = |name, result: Result<(), SettingError>| {
            result.err().map(|SettingError { key, message }| {
                assert!(message.contains("\"auto\" was not replaced"), "{name}: {message}");
                (name, key)
            })
        };
        let recoveries = RecoveryConfig::all().filter_map(|config| errors(config.name(), config.check()));
        let controls = CongestionConfig::all().filter_map(|config| errors(config.name(), config.check()));
        let endpoints = EndpointConfig::all().filter_map(|config| errors(config.name(), config.check()));
        let others = [
            ("tcp", TcpConfig::default().check()),
            ("eqds", EqdsConfig::default().check(Bytes::new(1_500))),
            ("netrt", NetRtConfig::default().check()),
        ];
        let others = others.into_iter().filter_map(|(name, result)| errors(name, result));
        let all: Vec<_> = recoveries.chain(controls).chain(endpoints).chain(others).collect();
        let expected = [
            [("go-back-n", "rto"), ("irn", "bdp-cap"), ("melo", "reorder-buffer")].as_slice(),
            &[("dcqcn", "line-rate"), ("timely", "line-rate"), ("aimd", "window.initial"), ("dctcp", "k")],
            &[("swift", "initial-window"), ("hpcc", "line-rate"), ("ndp", "initial-window"), ("homa", "rtt-bytes")],
            &[("tcp", "mss"), ("eqds", "window"), ("netrt", "interval")],
        ];
        assert_eq!(all, expected.concat());
    }

    #[test]
    fn a_window_that_fills_a_short_path_holds_whole_frames() {
        let frame = Bytes::new(1_106);
        let of = |gbps: u64, fill_time: Duration| Fabric {
            line_rate: Rate::from_gbps(gbps),
            fill_time,
            ..Fabric::IRN_PAPER
        };
        // Two hosts on one cable at 1 Gb/s: the path holds 1.3 frames.
        let short = of(1, Duration::from_ns(11_536));
        assert_eq!(short.pipe(), Bytes::new(1_442));
        assert_eq!(short.filling_window(), frame * 2);
        // A path that holds less than one frame.
        assert_eq!(of(1, Duration::from_ns(1_000)).filling_window(), frame);
        // A path that holds many frames: no extra frame.
        assert_eq!(Fabric::IRN_PAPER.filling_window(), Bytes::new(120_000));
    }
}
