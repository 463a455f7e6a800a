//! Parameters of applications' queue pairs.

use selvedge_nic::verbs::QpOptions;
use selvedge_nic::{ConnectionParams, VerbsParams};
use selvedge_transport::{CongestionConfig, FeedbackConfig, RecoveryConfig, Scheme, Tuning, WIDEST_WINDOW};
use selvedge_units::{Duration, Rate, Setting};

use super::{NicConfig, RdmaConfig, TransportConfig};
use crate::ConfigError;
use crate::workload::Posting;

/// Usual timeout code of a queue pair, 4.096 us times 2^14, as in perftest. It says how long a queue pair waits before
/// it gives up; its reaction to losses is its recovery's.
const USUAL_TIMEOUT: u8 = 14;

impl TransportConfig {
    /// Returns the parameters of applications' queue pairs, for packets of class `class`; every "auto" is resolved.
    ///
    /// # Errors
    /// A transport without queue pairs, with a congestion control that queue pairs of applications cannot have, or an
    /// MTU that InfiniBand does not define. The key is that of a scenario.
    pub fn verbs(&self, nic: &NicConfig, class: u8) -> Result<VerbsParams, ConfigError> {
        let Some(rdma @ RdmaConfig { recovery, congestion }) = self.rdma() else {
            let message = format!(
                "applications that use verbs need queue pairs, and {} has none: give series as \"irn\", \"melo\", \"roce\", \"roce+pfc\" or \"roce+dcqcn+eqds\", or leave [workload.verbs] out",
                self.recovery_name()
            );
            return Err(ConfigError::new("transport", message));
        };
        if let Err(message) = controls(recovery, congestion) {
            return Err(ConfigError::new(&format!("transport.congestion.{}", congestion.name()), message));
        }
        if !matches!(nic.mtu.get(), 256 | 512 | 1_024 | 2_048 | 4_096) {
            let message = format!(
                "{} is no MTU of InfiniBand: [workload.verbs] needs 256B, 512B, 1024B, 2048B or 4096B",
                nic.mtu
            );
            return Err(ConfigError::new("nic.mtu", message));
        }
        let capped = recovery.wire_id().is_none().then(|| recovery.bdp_cap());
        let window = capped.map_or(1, |cap| cap.unwrap_or(WIDEST_WINDOW as u32));
        let overhead = nic.framing(self).overhead;
        let format = nic.verbs_headers.into();
        let feedback = FeedbackConfig::new(&congestion.needs(), true);
        let (recovery, congestion) = rdma.engines()?;
        Ok(VerbsParams { recovery, congestion, feedback, overhead, window, class, format })
    }
}

/// Checks that queue pairs of applications can have this congestion control.
///
/// # Errors
/// The congestion control cannot be used; the message says why.
fn controls(recovery: &RecoveryConfig, congestion: &CongestionConfig) -> Result<(), &'static str> {
    if congestion.needs().telemetry {
        return Err("packets of [workload.verbs] carry no telemetry: give another, or none");
    }
    if recovery.wire_id().is_none() && congestion.reads_acks() {
        return Err(
            "acknowledgements of standard queue pairs carry neither time stamps nor marks: give dcqcn, aimd, fixed or none, or a series with \"irn\" or \"melo\"",
        );
    }
    Ok(())
}

impl TransportConfig {
    /// Returns the parameters of the ends of `posting`'s connections, where the slowest host's link has rate `slowest`;
    /// every "auto" is resolved.
    pub fn connection_params(&self, posting: &Posting, slowest: Rate) -> ConnectionParams {
        let limits = posting.limits();
        ConnectionParams {
            send_requests: limits.depth,
            receive_requests: limits.receives,
            reads: limits.reads,
            timeout: timeout_code(self.recovery(), limits.timeout, slowest.time_for(posting.outstanding())),
            retries: limits.retries,
            options: QpOptions { credits: limits.credits, ..QpOptions::default() },
        }
    }
}

/// Returns the code of a queue pair's timeout (InfiniBand architecture, volume 1, section 9.9.2.3): the exponent of two
/// that multiplies 4.096 us; 0 is no timeout. `outstanding` is the time that the link takes for everything the queue
/// pair may have outstanding.
fn timeout_code(recovery: Option<&RecoveryConfig>, wanted: Setting<Duration>, outstanding: Duration) -> u8 {
    if recovery.is_none_or(|recovery| recovery.wire_id().is_some()) {
        return wanted.resolve(|| None).map_or(USUAL_TIMEOUT, code);
    }
    let rto = recovery.map(Scheme::longest_timeout).filter(|rto| !rto.is_zero());
    let rto = rto.map(|rto| rto.saturating_add(outstanding));
    wanted.resolve(|| rto).map_or(0, code)
}

/// Returns the code of the shortest timeout that is at least `timeout`.
fn code(timeout: Duration) -> u8 {
    (1..31).find(|&code| Duration::from_ns(4_096 << code) >= timeout).unwrap_or(31)
}
