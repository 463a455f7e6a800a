//! Tests run between the host and the guest.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::guest::{ADDRESS, DEVICE, Guest, OURS, pause};
use crate::workspace::root;

/// Program that runs at both ends.
pub(super) struct Trial {
    pub(super) program: &'static str,
    pub(super) arguments: &'static str,
}

/// End that begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Selvedge's client, Linux's server.
    FromUs,
    /// Linux's client, Selvedge's server.
    ToUs,
}

impl Direction {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::FromUs => "us->rxe",
            Self::ToUs => "rxe->us",
        }
    }
}

const fn trial(program: &'static str, arguments: &'static str) -> Trial {
    Trial { program, arguments }
}

/// Trials, all of them.
pub(super) const TRIALS: [Trial; 18] = [
    trial("ibv_rc_pingpong", "-c -n 200"),
    trial("ibv_rc_pingpong", "-e -c -s 20000 -n 50"),
    trial("ibv_srq_pingpong", "-c -n 100 -q 4"),
    trial("ibv_uc_pingpong", "-n 100 -s 5000"),
    trial("ibv_ud_pingpong", "-c -n 200 -s 1000"),
    trial("ib_write_bw", "-F -n 200 -s 10000"),
    trial("ib_write_bw", "-F -a -n 20"),
    trial("ib_write_lat", "-F -n 100"),
    trial("ib_write_bw", "-F -n 50 -c UC -s 5000"),
    trial("ib_read_bw", "-F -n 100 -s 30000"),
    trial("ib_read_lat", "-F -n 100"),
    trial("ib_send_bw", "-F -n 200 -s 5000"),
    trial("ib_send_bw", "-F -n 100 -c UD -s 500"),
    trial("ib_send_lat", "-F -n 100"),
    trial("ib_atomic_bw", "-F -n 100"),
    trial("ib_atomic_lat", "-F -n 100 -A CMP_AND_SWAP"),
    trial("rping", "-C 10 -S 1000"),
    trial("mckey", "-m 239.77.0.1"),
];

/// Returns the path of Selvedge's library, built by `cargo xtask dist`.
pub(super) fn library() -> Result<PathBuf> {
    let library = root().join("dist/lib/libibverbs.so.1");
    ensure!(library.exists(), "{} is not there: run `cargo xtask dist`", library.display());
    Ok(library)
}

/// Runs a program at both ends until it is done.
pub(super) fn run(guest: &Guest, library: &std::path::Path, trial: &Trial, direction: Direction) -> Result<()> {
    let ends = Ends::of(trial, direction);
    let mut ours = guest.within("timeout");
    ours.args(["60", "env"]).arg(format!("LD_PRELOAD={}", preload(library))).arg(trial.program);
    ours.args(ends.ours.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let theirs = format!(
        "(timeout 60 {} {} >/tmp/out 2>&1; echo $? >/tmp/status) </dev/null >/dev/null 2>&1 &",
        trial.program, ends.theirs
    );
    guest.shell("rm -f /tmp/out /tmp/status")?;
    if direction == Direction::FromUs {
        guest.shell(&theirs)?;
        pause(Duration::from_millis(500));
    }
    let ours = ours.spawn().context("cannot run it")?;
    if direction == Direction::ToUs {
        pause(Duration::from_millis(500));
        guest.shell(&theirs)?;
    }
    let done = ours.wait_with_output()?;
    let mut status = String::new();
    for _ in 0..20 {
        status = guest.shell("cat /tmp/status 2>/dev/null")?;
        if !status.trim().is_empty() {
            break;
        }
        pause(Duration::from_millis(250));
    }
    if !done.status.success() || status.trim() != "0" {
        let theirs = guest.shell("tail -n 5 /tmp/out; killall -9 timeout 2>/dev/null")?;
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines()
                .rev()
                .take(5)
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
                .join("\n")
        };
        bail!(
            "ours: {}\n{}\n{}\ntheirs: {}\n{theirs}",
            done.status,
            last(&done.stdout),
            last(&done.stderr),
            if status.trim().is_empty() { "never ended" } else { status.trim() }
        );
    }
    Ok(())
}

fn preload(library: &std::path::Path) -> String {
    let manager = library.with_file_name("librdmacm.so.1");
    if manager.exists() {
        format!("{}:{}", library.display(), manager.display())
    } else {
        library.display().to_string()
    }
}

/// Arguments at both ends.
struct Ends {
    ours: String,
    theirs: String,
}

impl Ends {
    fn of(trial: &Trial, direction: Direction) -> Self {
        let (ours_device, theirs_device) = (format!("sv_{DEVICE}"), "rxe0".to_owned());
        let arguments = |device: &str, peer: Option<&str>, own: &str| {
            let place = match trial.program {
                "rping" => {
                    return match peer {
                        Some(peer) => format!("-c -a {peer} {}", trial.arguments),
                        None => format!("-s -a {own} {}", trial.arguments),
                    };
                }
                // The end that begins sends, the other one listens.
                "mckey" => {
                    let sends = if peer.is_some() { "-s" } else { "" };
                    return format!("-b {own} {sends} {}", trial.arguments);
                }
                program if program.starts_with("ibv_") => format!("-d {device} -g 1"),
                _ => format!("-d {device} -x 1"),
            };
            format!("{place} {} {}", trial.arguments, peer.unwrap_or_default())
        };
        let (from_us, to_us) = match direction {
            Direction::FromUs => (Some(ADDRESS), None),
            Direction::ToUs => (None, Some(OURS)),
        };
        Self { ours: arguments(&ours_device, from_us, OURS), theirs: arguments(&theirs_device, to_us, ADDRESS) }
    }
}
