//! What can be chosen, by environment variables: programs that know nothing of us cannot be asked.

use std::env;

use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::{Fabric, RecoveryConfig, Scheme};
use selvedge_units::{Bytes, Duration, Rate, Setting};

/// Which loss recovery to use between two of our own: `irn` (default), `melo` or `go-back-n`.
pub const RECOVERY: &str = "SELVEDGE_RECOVERY";

/// `standard`: to behave as a NIC that is not ours, towards everybody. Packets go to UDP port 4791 alone, from some other
/// port, without our extensions.
pub const WIRE: &str = "SELVEDGE_WIRE";

/// Whether [`WIRE`] says so.
pub(super) fn is_standard() -> bool {
    env::var_os(WIRE).is_some_and(|wire| wire == "standard")
}

/// Packets that a connection may have in flight: what the socket buffers of an ordinary machine hold.
pub const WINDOW: u32 = 256;

/// The loss recovery that was chosen.
///
/// # Errors
/// Says what would be right.
pub fn recovery() -> Result<RecoveryConfig, String> {
    let chosen = env::var(RECOVERY).unwrap_or_else(|_| "irn".to_owned());
    by_name(&chosen).ok_or_else(|| format!("{RECOVERY}={chosen}: irn, melo and go-back-n are known"))
}

fn by_name(name: &str) -> Option<RecoveryConfig> {
    let mut recovery = match name {
        "irn" => RecoveryConfig::Irn(IrnConfig {
            timeouts: Timeouts::On,
            rto_low: Duration::from_us(4_000),
            rto_high: Setting::Value(Duration::from_us(20_000)),
            bdp_cap: Setting::Value(WINDOW),
            ..IrnConfig::default()
        }),
        "melo" => RecoveryConfig::Melo(MeloConfig::default()),
        "go-back-n" => RecoveryConfig::GoBackN(Default::default()),
        _ => return None,
    };
    recovery.resolve(&host());
    Some(recovery)
}

/// A fabric as wide as the window, where a thread that waits for its turn is the longest delay: milliseconds.
fn host() -> Fabric {
    let frame = Bytes::new(1_024 + 62);
    let rtt = Duration::from_us(20_000);
    Fabric {
        line_rate: Rate::from_gbps(40),
        bdp: Bytes::new(frame.get() * u64::from(WINDOW)),
        frame,
        base_rtt: rtt,
        congested_rtt: rtt,
        links: 2,
        ..Fabric::IRN_PAPER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_gives_settings_that_work() {
        for name in ["irn", "melo", "go-back-n"] {
            let recovery = by_name(name).expect("it is known");
            assert_eq!(recovery.check(), Ok(()), "{name}");
        }
        assert_eq!(by_name("tcp"), None);
    }
}
