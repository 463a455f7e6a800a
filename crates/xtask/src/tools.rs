//! Programs that the chores need, and how to get them.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::command::text_of;

/// Program that a chore needs.
struct Tool {
    name: &'static str,
    /// Purpose that needs the tool.
    purpose: &'static str,
    /// Command that succeeds if the program is there.
    probe: &'static [&'static str],
    /// Commands that install the program, tried in turn.
    install: &'static [&'static [&'static str]],
    /// Advice to print if none of the programs works.
    advice: &'static str,
}

const RUSTFMT: Tool = Tool {
    name: "rustfmt",
    purpose: "cargo fmt",
    probe: &["cargo", "fmt", "--version"],
    install: &[&["rustup", "component", "add", "rustfmt"]],
    advice: "install it with Rust's other components, e.g. `rustup component add rustfmt`",
};

const CLIPPY: Tool = Tool {
    name: "clippy",
    purpose: "cargo clippy",
    probe: &["cargo", "clippy", "--version"],
    install: &[&["rustup", "component", "add", "clippy"]],
    advice: "install it with Rust's other components, e.g. `rustup component add clippy`",
};

const C_COMPILER: Tool = Tool {
    name: "a C compiler",
    purpose: "zstd, which compresses tables",
    probe: &["cc", "--version"],
    install: &[&["apt-get", "install", "--yes", "gcc", "libc6-dev"], &["dnf", "install", "--assumeyes", "gcc"]],
    advice: "install one, e.g. `sudo apt install gcc`, or `xcode-select --install` on macOS",
};

const TSHARK: Tool = Tool {
    name: "tshark",
    purpose: "the tests of captures",
    probe: &["tshark", "--version"],
    install: &[
        &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "tshark"],
        &["sh", "-c", "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes tshark"],
        &["dnf", "install", "--assumeyes", "wireshark-cli"],
    ],
    advice: "install it, e.g. `sudo apt install tshark`, or `brew install wireshark` on macOS; without it, those tests \
             are skipped",
};

const VALGRIND: Tool = Tool {
    name: "valgrind",
    purpose: "cargo xtask instructions",
    probe: &["valgrind", "--version"],
    install: &[
        &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "valgrind"],
        &["sh", "-c", "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes valgrind"],
        &["dnf", "install", "--assumeyes", "valgrind"],
    ],
    advice: "install it, e.g. `sudo apt install valgrind`",
};

const RDMA: Tool = Tool {
    name: "RDMA programs, and nft, which loses their packets",
    purpose: "the tests of libibverbs and librdmacm",
    probe: &[
        "sh",
        "-c",
        "which ib_write_bw ibv_rc_pingpong rping nft ucx_perftest mpicc iperf3 fi_pingpong ping && test -f /usr/include/rdma/rdma_cma.h && test -d /usr/share/doc/rdma-core/tests && /usr/bin/python3 -c 'import scapy, pyverbs'",
    ],
    install: &[&[
        "sh",
        "-c",
        "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes perftest ibverbs-utils rdmacm-utils libibverbs-dev librdmacm-dev nftables iproute2 python3-scapy rdma-core python3-pyverbs ucx-utils openmpi-bin libopenmpi-dev iperf3 libfabric-bin iputils-ping",
    ]],
    advice: "install them, e.g. `sudo apt install perftest ibverbs-utils rdmacm-utils libibverbs-dev librdmacm-dev nftables python3-scapy rdma-core python3-pyverbs ucx-utils openmpi-bin libopenmpi-dev iperf3 libfabric-bin iputils-ping`; \
             without them, those tests are skipped",
};

const VIRTUAL_MACHINE: Tool = Tool {
    name: "qemu, or what fills its image",
    purpose: "cargo xtask soft-roce",
    probe: &["sh", "-c", "which qemu-system-x86_64 busybox cpio depmod rdma mckey"],
    install: &[&[
        "sh",
        "-c",
        "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends qemu-system-x86 busybox-static cpio kmod iproute2 perftest ibverbs-providers ibverbs-utils rdmacm-utils",
    ]],
    advice: "install it, e.g. `sudo apt install qemu-system-x86 busybox-static cpio kmod iproute2 perftest ibverbs-utils rdmacm-utils`",
};

const HARDWARE: Tool = Tool {
    name: "verilator or yosys, or Python's venv or library",
    purpose: "cargo xtask rtl",
    probe: &[
        "sh",
        "-c",
        "verilator --version && yosys -V && g++ --version && make --version && python3 -c 'import venv, ensurepip, ctypes, sysconfig; ctypes.CDLL(sysconfig.get_config_var(\"INSTSONAME\"))'",
    ],
    install: &[&[
        "sh",
        "-c",
        "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends verilator yosys python3-venv libpython3-dev g++ make",
    ]],
    advice: "install them, e.g. `sudo apt install verilator yosys python3-venv libpython3-dev g++ make`; rtl/tools.txt has the versions",
};

const BROWSER: Tool = Tool {
    name: "Chromium, or Node.js with npm",
    purpose: "cargo xtask report",
    probe: &["sh", "-c", "chromium --version && node --version && npm --version"],
    install: &[&[
        "sh",
        "-c",
        "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium $(node --version >/dev/null 2>&1 || echo nodejs npm)",
    ]],
    advice: "install them, e.g. `sudo apt install chromium nodejs npm`",
};

/// Command that installs the nightly compiler, with the sanitizers that `cargo xtask deep` uses.
pub(crate) const NIGHTLY: &str = "rustup toolchain install nightly --profile minimal";

/// Runs `cargo xtask setup`.
pub(crate) fn setup() -> Result<()> {
    RUSTFMT.require()?;
    CLIPPY.require()?;
    require_c_compiler()?;
    TSHARK.require()?;
    // Tools of hardware and browsers are optional for most work.
    for tool in [HARDWARE, BROWSER] {
        if let Err(error) = tool.require() {
            eprintln!("note: {error}");
        }
    }
    if !crate::deep::is_possible() {
        eprintln!("note: `cargo xtask deep` needs a nightly compiler: `{NIGHTLY}`");
    }
    // Systems other than Linux have no use for these tools.
    if cfg!(target_os = "linux") { RDMA.require() } else { Ok(()) }
}

/// Requires a C compiler, which every build needs beside Rust. Where `cc` is not the name of the compiler, the build
/// finds it.
///
/// # Errors
/// Returns an error with advice on how to install the compiler.
pub(crate) fn require_c_compiler() -> Result<()> {
    if cfg!(unix) && std::env::var_os("CC").is_none() { C_COMPILER.require() } else { Ok(()) }
}

/// Requires the programs for a virtual machine with soft RoCE.
///
/// # Errors
/// Returns an error with advice on how to install the programs.
pub(crate) fn require_virtual_machine() -> Result<()> {
    VIRTUAL_MACHINE.require()
}

/// Returns whether a browser is there, and what drives it.
///
/// # Errors
/// Says what is missing.
pub(crate) fn has_browser() -> Result<()> {
    match BROWSER.answers() {
        true => Ok(()),
        false => bail!("no {}: {}", BROWSER.name, BROWSER.advice),
    }
}

/// Makes sure that valgrind is there.
///
/// # Errors
/// Says how to get it.
pub(crate) fn require_valgrind() -> Result<()> {
    VALGRIND.require()
}

impl Tool {
    /// Installs the program if it is not there.
    fn require(&self) -> Result<()> {
        if self.answers() {
            return Ok(());
        }
        for install in self.install {
            let mut command = command(install);
            eprintln!("{} is missing ({} needs it); trying `{}`", self.name, self.purpose, text_of(&command));
            // Not every system has every installer, and not everybody may use it.
            if command.status().is_ok_and(|status| status.success()) && self.answers() {
                return Ok(());
            }
        }
        bail!("{} is missing ({} needs it): {}", self.name, self.purpose, self.advice)
    }

    fn answers(&self) -> bool {
        command(self.probe).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_installed_is_named_with_advice() {
        let tool = Tool {
            name: "nothing",
            purpose: "this test",
            probe: &["selvedge-no-such-program"],
            install: &[&["selvedge-no-such-installer"]],
            advice: "there is none",
        };
        assert_eq!(tool.require().unwrap_err().to_string(), "nothing is missing (this test needs it): there is none");
    }
}
