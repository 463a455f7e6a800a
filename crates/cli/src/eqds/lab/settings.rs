//! Settings of a laboratory's daemons.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use selvedge_tunnel::base64;
use selvedge_tunnel::keys::Secret;
use selvedge_units::Rate;

use super::sites::Sites;
use crate::output::Failure;

/// Reads settings that each daemon gets in addition.
pub(super) fn read_extra(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| Failure::unreadable(path, &error))
}

/// Returns the path of a host's control socket.
pub(super) fn socket(folder: &Path, host: u32) -> PathBuf {
    folder.join(format!("h{host}.sock"))
}

/// Returns the path of what a host's daemon prints.
pub(super) fn log(folder: &Path, host: u32) -> PathBuf {
    folder.join(format!("h{host}.log"))
}

/// Writes `h<i>.toml` for each host, with new keys; `rate` returns the link rate that a host's daemon is told.
pub(super) fn write(sites: &Sites, rate: impl Fn(u32) -> Rate, extra: &str, folder: &Path) -> Result<(), Failure> {
    let unable = |error: std::io::Error| Failure::outcome(format!("cannot write to {}: {error}", folder.display()));
    let keys: Vec<[u8; 32]> = sites.all().map(|_| random()).collect::<Result<_, _>>().map_err(unable)?;
    for host in sites.all() {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(folder.join(format!("h{host}.toml"))).map_err(unable)?;
        file.write_all(text(sites, rate(host), extra, host, &keys).as_bytes()).map_err(unable)?;
    }
    Ok(())
}

/// Returns the settings of a host.
fn text(sites: &Sites, rate: Rate, extra: &str, host: u32, keys: &[[u8; 32]]) -> String {
    let key = |host: u32| keys[(host - 1) as usize];
    let mut text = format!(
        "name = \"h{host}\"\naddresses = [\"{outer}\"]\nlink-rate = \"{rate}\"\nmtu = {mtu}\nprefixes = [\"{prefix}\"]\n\
         inner-addresses = [\"{inner}/24\"]\nstate = \"h{host}.epochs\"\nprivate-key = \"{private}\"\n{extra}\n",
        outer = sites.outer(host),
        mtu = sites.mtu,
        prefix = sites.prefix(host),
        inner = sites.inner(host),
        private = base64::encode(&key(host)),
    );
    for peer in sites.all().filter(|peer| *peer != host) {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[[peer]]\nname = \"h{peer}\"\naddress = \"{}\"\nprefixes = [\"{}\"]\npublic-key = \"{}\"\n",
            sites.outer(peer),
            sites.prefix(peer),
            base64::encode(&Secret::new(key(peer)).public())
        );
    }
    text
}

fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use selvedge_dataplane::lab::Plan;
    use selvedge_tunnel::config::Config;

    use super::*;

    #[test]
    fn daemons_accept_the_settings_of_all_hosts() {
        let plan = Plan { name: "lab".into(), hosts: 5, rate: None, buffer: 100, mtu: 1_500, paths: 1 };
        let sites = Sites::of_plan(&plan);
        let keys: Vec<[u8; 32]> = (1..=5).map(|byte| [byte; 32]).collect();
        for host in sites.all() {
            let extra = "paths = 4\n[[class]]\nname = \"first\"\nprefixes = [\"10.80.1.0/24\"]\npriority = 1\n";
            let text = text(&sites, Rate::from_gbps(1), extra, host, &keys);
            let config = Config::parse(Path::new("h.toml"), &text).map_err(|error| error.to_string()).unwrap();
            assert_eq!((config.peers.len(), config.classes.len(), config.path_ports.count()), (4, 1, 4));
        }
    }
}
