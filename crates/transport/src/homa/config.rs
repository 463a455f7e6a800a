//! Settings of Homa.

use alloc::format;
use alloc::string::String;

use selvedge_units::{Bytes, Duration, Setting};

use crate::endpoint::EndpointSettings;
use crate::fabric::{Fabric, SettingError, check_timeout, known, resolve};

/// Homa (Montazeri et al., SIGCOMM 2018). Switches serve priorities strictly; `nic.ack-class` is that of grants.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct HomaConfig {
    /// Bytes on the wire of a message that are sent without a grant, and that grants keep under way (RTTbytes, section
    /// 3.2). Rounded up to whole packets. "auto": those with which a host fills the longest empty path.
    pub rtt_bytes: Setting<Bytes>,
    /// Priorities of data, from 0 on, 1 to 7. The paper uses 8; this simulator has 7. Default: 7.
    pub priorities: u8,
    /// Priorities of unscheduled packets, the highest ones: 1 to `priorities`. Without it, receivers choose by the
    /// share of unscheduled bytes in what arrives (section 3.4), and begin with half of all. If all priorities are
    /// those of unscheduled packets, scheduled ones share the lowest.
    #[cfg_attr(feature = "config", serde(skip_serializing_if = "Option::is_none"))]
    pub unscheduled_priorities: Option<u8>,
    /// Messages to which a receiver grants at a time, each from another host, 1 to 1,024 (section 3.5). Without it, as
    /// many as there are priorities of scheduled packets at the receiver.
    #[cfg_attr(feature = "config", serde(skip_serializing_if = "Option::is_none"))]
    pub overcommitment: Option<u16>,
    /// Received messages after which a receiver chooses the priorities of unscheduled packets anew, 1 to 1,000,000. The
    /// paper's are computed beforehand from the workload. Default: 100.
    pub cutoffs_after: u32,
    /// Silence after which a receiver asks for missing packets, and a sender without any answer repeats its first one.
    /// "auto": five times the maximum round-trip time with one congested link. The paper has "a few milliseconds".
    pub resend_interval: Setting<Duration>,
    /// Ranges of missing packets that a receiver asks for after a silence, 1 to 1,024. The paper asks for the first
    /// (section 3.7), draft-ousterhout-tsvwg-homa-00 for all. Default: 64.
    pub resend_ranges: u16,
}

impl Default for HomaConfig {
    fn default() -> Self {
        Self {
            rtt_bytes: Setting::Auto,
            priorities: Self::MOST_PRIORITIES,
            unscheduled_priorities: None,
            overcommitment: None,
            cutoffs_after: 100,
            resend_interval: Setting::Auto,
            resend_ranges: 64,
        }
    }
}

impl HomaConfig {
    /// Largest number of priorities.
    const MOST_PRIORITIES: u8 = 7;
}

/// Parameters of Homa.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HomaParams {
    pub(super) rtt_bytes: Bytes,
    pub(super) priorities: u8,
    pub(super) unscheduled_priorities: Option<u8>,
    pub(super) overcommitment: Option<u16>,
    pub(super) cutoffs_after: u32,
    pub(super) resend_interval: Duration,
    pub(super) resend_ranges: u16,
}

impl HomaParams {
    /// Returns RTTbytes in packets of `frame` bytes on the wire, at least one.
    pub(super) fn rtt_packets(&self, frame: Bytes) -> u64 {
        self.rtt_bytes.pieces(frame).max(1)
    }
}

impl EndpointSettings for HomaConfig {
    type Params = HomaParams;

    fn resolve(&mut self, fabric: &Fabric) {
        resolve(&mut self.rtt_bytes, || Some(fabric.filling_window()));
        resolve(&mut self.resend_interval, || Some(fabric.congested_rtt.saturating_mul(5)));
    }

    fn params(&self) -> Result<HomaParams, SettingError> {
        let wrong = |key, message: String| Err(SettingError::new(key, message));
        let Some(rtt_bytes) = known(self.rtt_bytes, "rtt-bytes")?.filter(|bytes| !bytes.is_zero()) else {
            return wrong("rtt-bytes", "nobody grants what was never announced; give 1 byte or more".into());
        };
        let most = Self::MOST_PRIORITIES;
        if !(1..=most).contains(&self.priorities) {
            return wrong("priorities", format!("{} is out of range: give 1 to {most}", self.priorities));
        }
        if let Some(own) = self.unscheduled_priorities.filter(|own| !(1..=self.priorities).contains(own)) {
            let message = format!("{own} is out of range: give 1 to {}, the number of priorities", self.priorities);
            return wrong("unscheduled-priorities", message);
        }
        if let Some(messages) = self.overcommitment.filter(|messages| !(1..=1_024).contains(messages)) {
            return wrong("overcommitment", format!("{messages} is out of range: give 1 to 1024"));
        }
        if !(1..=1_000_000).contains(&self.cutoffs_after) {
            return wrong("cutoffs-after", format!("{} is out of range: give 1 to 1000000", self.cutoffs_after));
        }
        if !(1..=1_024).contains(&self.resend_ranges) {
            return wrong("resend-ranges", format!("{} is out of range: give 1 to 1024", self.resend_ranges));
        }
        let resend_interval = known(self.resend_interval, "resend-interval")?.unwrap_or(Duration::ZERO);
        check_timeout("resend-interval", resend_interval)?;
        let Self { priorities, unscheduled_priorities, overcommitment, cutoffs_after, resend_ranges, .. } = *self;
        Ok(HomaParams {
            rtt_bytes,
            priorities,
            unscheduled_priorities,
            overcommitment,
            cutoffs_after,
            resend_interval,
            resend_ranges,
        })
    }

    /// Returns true: receivers know how many packets need no grant.
    fn is_global(&self) -> bool {
        true
    }

    fn priorities(&self) -> u8 {
        self.priorities
    }

    fn longest_timeout(&self) -> Duration {
        self.resend_interval.resolve(|| None).unwrap_or(Duration::MAX)
    }

    fn shortest_timeout(&self) -> Option<(&'static str, Duration)> {
        Some(("resend-interval", self.longest_timeout()))
    }
}
