//! Command `selvedge verbs`: any program with the software RNIC, and a description of the host.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use selvedge_dataplane::rnic::{self, Device, Environment, LIBRARY, LOOPBACK, Profile, settings, written};
use serde_json::json;

use crate::args::VerbsArgs;
use crate::output::{self, Failure, print};

/// Library that replaces files which programs expect of hardware.
const PATHS: &str = "libselvedge-paths.so";

pub(crate) fn verbs(args: &VerbsArgs) -> Result<(), Failure> {
    if args.info {
        return info(args);
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::input("no program to run: selvedge verbs -- PROGRAM ARGUMENTS"));
    };
    let folder = libraries(args)?;
    let mut command = Command::new(program);
    command.args(arguments);
    // One variable for programs that are linked with the library, the other for libraries that they load later by name.
    let mut preload = folder.join(LIBRARY).into_os_string();
    if folder.join(PATHS).is_file() {
        preload.push(":");
        preload.push(folder.join(PATHS));
    }
    command.env("LD_PRELOAD", before(&preload, "LD_PRELOAD"));
    command.env("LD_LIBRARY_PATH", before(folder.as_os_str(), "LD_LIBRARY_PATH"));
    if let Some(recovery) = &args.recovery {
        command.env(settings::RECOVERY, recovery);
    }
    let error = command.exec();
    Err(Failure::input(format!("cannot run {}: {error}", program.display())))
}

/// Returns the folder with the libraries.
fn libraries(args: &VerbsArgs) -> Result<PathBuf, Failure> {
    rnic::libraries(args.libraries.as_deref()).map_err(Failure::input)
}

/// Returns a list of paths in the form of an environment variable, with `first` put before.
fn before(first: &OsStr, variable: &str) -> OsString {
    let mut list = first.to_owned();
    if let Some(rest) = env::var_os(variable).filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}

fn info(args: &VerbsArgs) -> Result<(), Failure> {
    let unknown = |error: std::io::Error| Failure::outcome(format!("cannot look at this host: {error}"));
    let devices = Device::all().map_err(unknown)?;
    let environment = Environment::probe().map_err(unknown)?;
    let library = libraries(args);
    let mut lacks = environment.lacks(&devices);
    lacks.extend(library.as_ref().err().map(|failure| failure.message.clone()));
    lacks.extend(Profile::chosen().err().map(|problem| problem.to_string()));
    let hidden: Vec<_> = Device::every().map_err(unknown)?.into_iter().filter(|all| !devices.contains(all)).collect();
    let library = library.ok().map(|folder| folder.join(LIBRARY));
    print(&if args.json {
        output::json(&as_json(&devices, &hidden, &environment, library.as_deref(), &lacks)) + "\n"
    } else {
        as_text(&devices, &hidden, &environment, library.as_deref(), &lacks)
    })
}

fn as_json(
    devices: &[Device],
    hidden: &[Device],
    environment: &Environment,
    library: Option<&Path>,
    lacks: &[String],
) -> serde_json::Value {
    let devices: Vec<_> = devices
        .iter()
        .map(|device| {
            json!({
                "name": device.name,
                "interface": device.interface,
                "up": device.is_up,
                "mtu": device.mtu,
                "payload": device.payload(),
                "gids": device.gids.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "library": library,
        "devices": devices,
        "hidden": hidden.iter().map(|device| &*device.name).collect::<Vec<_>>(),
        "udp_port": environment.port,
        "reached_by_strangers": environment.reached,
        "socket_buffer": environment.buffer,
        "segmentation": environment.cuts,
        "coalescing": environment.joins,
        "ipv6": environment.ipv6,
        "lacks": lacks,
    })
}

fn as_text(
    devices: &[Device],
    hidden: &[Device],
    environment: &Environment,
    library: Option<&Path>,
    lacks: &[String],
) -> String {
    let mut text = format!("selvedge {}\n", env!("CARGO_PKG_VERSION"));
    // Writing to a string cannot fail.
    if let Some(library) = library {
        let _ = writeln!(text, "library  {}", library.display());
    }
    for device in devices {
        let state = if device.is_up { "up" } else { "down" };
        let _ = writeln!(
            text,
            "device   {} ({}, {state}, MTU {}: {} bytes of payload)",
            device.name,
            device.interface,
            device.mtu,
            device.payload()
        );
        for (index, gid) in device.gids.iter().enumerate() {
            let _ = writeln!(text, "  GID {index}  {}", written(gid));
        }
    }
    for Device { name, interface, .. } in hidden {
        let _ =
            writeln!(text, "hidden   {name} ({interface}): a device where a program names it, or with {LOOPBACK}=yes");
    }
    if let Some(port) = environment.port {
        let _ =
            writeln!(text, "the next process uses UDP port {port}, {} KB of socket buffer", environment.buffer / 1_000);
    }
    for lack in lacks {
        let _ = writeln!(text, "lacks    {lack}");
    }
    if lacks.is_empty() {
        text += "lacks nothing\n";
    }
    text
}
