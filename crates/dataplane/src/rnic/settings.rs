//! Settings by environment variables: programs that do not know this NIC cannot pass options.

use std::ffi::OsStr;
use std::{env, io};

use selvedge_nic::verbs::QpOptions;
use selvedge_transport::path::PathConfig;
use selvedge_transport::recovery::irn::{DynamicRto, IrnConfig, Mode, Rto, RtoRestart, Timeouts};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::{Fabric, RecoveryConfig, RecoveryParams, Scheme};
use selvedge_units::{Bytes, Duration, Rate, Setting};

use super::port;

/// Environment variable that chooses the loss recovery between two Selvedge NICs: `irn` (default), `irn-paper`, `melo`
/// or `go-back-n`.
pub const RECOVERY: &str = "SELVEDGE_RECOVERY";
/// Value of [`RECOVERY`] for IRN with its paper's text and settings: RTO_low and RTO_high, BDP-FC for its default
/// network, an acknowledgement of each packet.
const PAPER: &str = "irn-paper";

/// Environment variable; `standard` makes the NIC behave like one of another maker, towards everybody: packets go to
/// UDP port 4791 alone, from some other port, without Selvedge's extensions.
pub const WIRE: &str = "SELVEDGE_WIRE";

/// Environment variable that chooses the congestion control: `path` (default), one for all packets that a process sends
/// to one address; `none`: only the window of each connection limits it.
pub const CONGESTION: &str = "SELVEDGE_CONGESTION";

/// Environment variable for end-to-end credits: `off` (default), or `on`: Sends wait until the other side has
/// advertised a receive request, instead of being answered that it has none. Both sides need it.
pub const CREDITS: &str = "SELVEDGE_CREDITS";

/// Environment variable for the driver's fence (IRN, section 5.3.4): `off` (default), or `on`: a request that could
/// overwrite memory which an older one reads or writes waits until that has completed.
pub const FENCE: &str = "SELVEDGE_FENCE";

/// Returns the optional mechanisms of reliable connections, as chosen by [`CREDITS`] and [`FENCE`].
///
/// # Errors
/// Returns a text that says what would be valid.
pub fn options() -> Result<QpOptions, String> {
    let credits = is_on(CREDITS, &env::var(CREDITS).unwrap_or_default())?;
    let fence_overlaps = is_on(FENCE, &env::var(FENCE).unwrap_or_default())?;
    Ok(QpOptions { credits, fence_overlaps })
}

fn is_on(variable: &str, said: &str) -> Result<bool, String> {
    match said {
        "" | "off" => Ok(false),
        "on" => Ok(true),
        other => Err(format!("{variable}={other}: on and off are known")),
    }
}

/// Returns whether [`WIRE`] chooses the standard mode.
///
/// # Errors
/// Returns an error that says what would be valid.
pub(super) fn is_standard() -> io::Result<bool> {
    says_standard(&env::var_os(WIRE).unwrap_or_default())
}

fn says_standard(wire: &OsStr) -> io::Result<bool> {
    if wire.is_empty() || wire == "standard" {
        return Ok(!wire.is_empty());
    }
    let problem = format!("{WIRE}={}: standard is all that it can say", wire.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

/// Window of a connection in packets: what the socket buffers of an ordinary machine hold.
pub const WINDOW: u32 = 256;
/// Distance in packets between requests for an acknowledgement, or a quarter of a window if that is less. The packets
/// that an acknowledgement allows are sent in batches of 60, of which all but the last are full, and each
/// acknowledgement costs both ends a system call.
pub const ACK_EVERY: u32 = 512;
/// Largest window of a connection between Selvedge NICs in packets, where socket buffers hold more: while a lost packet
/// is retransmitted, or a thread waits for the processor, others must be free to follow.
const WIDEST: u32 = 2_048;
/// Most bytes that the kernel counts for a packet of 1,024 bytes that waits in a socket.
const COUNTED: usize = 2_304;
/// Connections that share a socket buffer: the window of each takes one part in `SHARE`.
const SHARE: usize = 4;

/// Returns the chosen loss recovery.
///
/// # Errors
/// Returns a text that says what would be valid.
pub fn recovery() -> Result<RecoveryParams, String> {
    let chosen = chosen();
    let unknown = || format!("{RECOVERY}={chosen}: irn, {PAPER}, melo and go-back-n are known");
    by_name(&chosen).ok_or_else(unknown)?.params().map_err(|error| error.to_string())
}

fn chosen() -> String {
    env::var(RECOVERY).unwrap_or_else(|_| "irn".to_owned())
}

/// Returns the distance in packets between requests for an acknowledgement: 1 with the paper's IRN (sections 3.1 and
/// 5.2), otherwise [`ACK_EVERY`].
pub fn ack_every() -> u32 {
    if chosen() == PAPER { 1 } else { ACK_EVERY }
}

/// The timeout without a round-trip sample, and the longest timeout: connections give up after some hundred
/// milliseconds (InfiniBand's timeout and retries), and a burst of losses must not use them up. A timeout that is too
/// early costs one packet.
const PATIENCE: Duration = Duration::from_us(20_000);

/// Most packets that one timeout sends: in a burst of losses that only packets can end, this outlasts a hundred losses
/// within the patience of an application that waits for 0.5 s.
const PROBES: u16 = 16;

/// Bits in a pool of MELO: the most whose blocks have ids of 8 bits, as in the paper (section 3.2.3). As many packets
/// can wait in reorder buffers, in all connections together.
const MELO_POOL: u32 = 2_048;

/// Returns the window in packets that fits into the socket buffers; two Selvedge NICs are alike in that.
fn window() -> u32 {
    (port::room() / COUNTED / SHARE).clamp(WINDOW as usize, WIDEST as usize) as u32
}

/// Returns the largest window of a path, in packets: half of the receive buffer of a socket like this host's, because
/// other hosts send to it, too.
fn path_window() -> u32 {
    /// Connections whose windows one path may hold.
    const CONNECTIONS: usize = 4;
    (port::room() / COUNTED / 2).clamp(WINDOW as usize, CONNECTIONS * WIDEST as usize) as u32
}

/// Returns the chosen congestion control; `None` for none.
///
/// # Errors
/// Returns a text that says what would be valid.
pub(super) fn paths() -> Result<Option<PathConfig>, String> {
    congestion_by_name(&env::var(CONGESTION).unwrap_or_default())
}

fn congestion_by_name(name: &str) -> Result<Option<PathConfig>, String> {
    match name {
        "" | "path" => Ok(Some(PathConfig { max_window: path_window(), ..PathConfig::default() })),
        "none" => Ok(None),
        other => Err(format!("{CONGESTION}={other}: path and none are known")),
    }
}

fn by_name(name: &str) -> Option<RecoveryConfig> {
    if name == PAPER {
        let irn = IrnConfig { mode: Mode::Paper, timeouts: Timeouts::On, ..IrnConfig::default() };
        let mut recovery = RecoveryConfig::Irn(irn);
        recovery.resolve(&Fabric::IRN_PAPER);
        return Some(recovery);
    }
    let mut recovery = match name {
        "irn" => RecoveryConfig::Irn(IrnConfig {
            timeouts: Timeouts::On,
            // Timeouts follow round-trip times, which vary a thousandfold with the other users of the processor. A
            // thread may wait for its turn for milliseconds: a shorter timeout would be too early. Lost retransmissions
            // do not wait for it.
            rto_high: Setting::Value(PATIENCE),
            rto: Rto::Dynamic(DynamicRto {
                initial: Setting::Value(PATIENCE),
                min: Duration::from_us(4_000),
                max: PATIENCE,
            }),
            // Losses here are random, not from a full queue: with any response to them flows take longer (figure
            // irn/sensitivity-losses).
            rto_restart: RtoRestart::Progress,
            time_stamps: true,
            holes: true,
            probes: PROBES,
            bdp_cap: Setting::Value(window()),
            ..IrnConfig::default()
        }),
        // All connections share the pool, and packets that find no bits in it are retransmitted from the front. So a
        // window is part of the pool, and a timeout no shorter than a thread may wait for its turn.
        "melo" => RecoveryConfig::Melo(MeloConfig {
            pool_bits: MELO_POOL,
            rto: Setting::Value(PATIENCE),
            bdp_cap: Setting::Value(window().min(MELO_POOL / 2)),
            ..MeloConfig::default()
        }),
        "go-back-n" => RecoveryConfig::GoBackN(Default::default()),
        _ => return None,
    };
    recovery.resolve(&host());
    Some(recovery)
}

/// Returns a fabric as wide as the window, whose longest delay, milliseconds, is that of a thread waiting for its turn.
fn host() -> Fabric {
    let frame = Bytes::new(1_024 + 62);
    let rtt = Duration::from_us(20_000);
    Fabric {
        line_rate: Rate::from_gbps(40),
        bdp: Bytes::new(frame.get() * u64::from(WINDOW)),
        frame,
        base_rtt: rtt,
        fill_time: rtt,
        congested_rtt: rtt,
        links: 2,
        ..Fabric::IRN_PAPER
    }
}

#[cfg(test)]
mod tests {
    use selvedge_transport::recovery::irn::PartialAcks;

    use super::*;

    #[test]
    fn a_wire_that_nobody_knows_is_refused_and_not_taken_for_ours() {
        assert_eq!(["", "standard"].map(|wire| says_standard(wire.as_ref()).ok()), [Some(false), Some(true)]);
        let refused = says_standard("Standard".as_ref()).expect_err("should be refused");
        assert_eq!(refused.to_string(), "SELVEDGE_WIRE=Standard: standard is all that it can say");
    }

    #[test]
    fn each_name_gives_settings_that_work() {
        for name in ["irn", PAPER, "melo", "go-back-n"] {
            let recovery = by_name(name).expect("a known recovery");
            assert_eq!(recovery.check(), Ok(()), "{name}");
        }
        assert_eq!(by_name("tcp"), None);
    }

    #[test]
    fn the_papers_irn_has_the_papers_numbers() {
        let Some(RecoveryConfig::Irn(irn)) = by_name(PAPER) else { panic!("expected IRN") };
        let us = |us| Setting::Value(Duration::from_us(us));
        assert_eq!((irn.rto, irn.rto_low, irn.rto_high), (Rto::Static, us(100), us(320)), "section 4.1");
        // 120 KB in frames of 1,086 bytes: "about 110 MTU-sized packets" (section 5.3).
        assert_eq!((irn.bdp_cap, irn.rto_low_packets), (Setting::Value(111), 3));
        let own =
            IrnConfig { rto_low: irn.rto_low, rto_high: irn.rto_high, bdp_cap: irn.bdp_cap, ..IrnConfig::default() };
        let own = IrnConfig { mode: Mode::Paper, partial_acks: PartialAcks::None, timeouts: Timeouts::On, ..own };
        assert_eq!(irn, own, "nothing that the paper does not have");
    }

    #[test]
    fn what_can_be_on_or_off_is_neither_by_another_word() {
        assert_eq!(["", "off", "on"].map(|said| is_on(CREDITS, said)), [Ok(false), Ok(false), Ok(true)]);
        assert_eq!(is_on(CREDITS, "1"), Err("SELVEDGE_CREDITS=1: on and off are known".to_owned()));
    }

    #[test]
    fn congestion_control_is_a_paths_or_none() {
        let check = |name| congestion_by_name(name).map(|paths| paths.map(|paths| paths.check()));
        assert_eq!([check(""), check("path"), check("none")], [Ok(Some(Ok(()))), Ok(Some(Ok(()))), Ok(None)]);
        let refused = check("cubic").expect_err("should be refused");
        assert_eq!(refused, "SELVEDGE_CONGESTION=cubic: path and none are known");
    }
}
