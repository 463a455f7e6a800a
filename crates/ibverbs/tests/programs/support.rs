//! Helpers that run programs with this library: two at a time, as server and client, perhaps in namespaces of their
//! own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Returns whether a test that needs these programs can run; prints which is missing.
pub(crate) fn have(programs: &[&str]) -> bool {
    for program in programs {
        let found = std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
        if !found {
            eprintln!("skipped: no {program} here: `cargo xtask setup` installs it");
            return false;
        }
    }
    true
}

/// Returns the folder with `libibverbs.so.1`, which is built once.
pub(crate) fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dist");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let made = Command::new(cargo)
            .args(["xtask", "dist", "--debug", "--libraries", "--to"])
            .arg(&to)
            .output()
            .expect("cargo runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        to.join("lib")
    })
}

/// Seconds after which a program is ended, because it seems to wait for ever, however slow the machine is.
const PATIENCE: &str = "600";

/// Network namespace and device of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// Name of the network namespace, or `None` for this process's.
    pub(crate) namespace: Option<&'a str>,
    /// Name of the RDMA device.
    pub(crate) device: &'a str,
}

/// Loopback of this host.
pub(crate) const LOOPBACK: Place<'_> = Place { namespace: None, device: "sv_lo" };

impl Place<'_> {
    pub(crate) fn command(&self, words: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new("timeout");
        command.arg(PATIENCE);
        if let Some(namespace) = self.namespace {
            command.args(["ip", "netns", "exec", namespace]);
        }
        // `timeout` and `ip` have no use for the library, so it is preloaded after them.
        let preload =
            ["libibverbs.so.1", "libselvedge-paths.so"].map(|name| libraries().join(name).display().to_string());
        command.arg("env").arg(format!("LD_PRELOAD={}", preload.join(":")));
        command.arg(format!("LD_LIBRARY_PATH={}", libraries().display()));
        if self.device == LOOPBACK.device {
            command.arg("SELVEDGE_LOOPBACK=yes");
        }
        command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
    /// Runs a program to its end; returns its output.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words, &[]).output().expect("timeout runs")
    }
    /// Returns whether there is a socket whose line in `/proc/net` contains both parts.
    pub(crate) fn has(&self, protocol: &str, first: &str, second: &str) -> bool {
        let files = [format!("/proc/net/{protocol}"), format!("/proc/net/{protocol}6")];
        let mut command = Command::new("cat");
        if let Some(namespace) = self.namespace {
            command = Command::new("ip");
            command.args(["netns", "exec", namespace, "cat"]);
        }
        let sockets = command.args(files).output().expect("cat runs").stdout;
        String::from_utf8_lossy(&sockets).lines().any(|line| line.contains(first) && line.contains(second))
    }
}

/// Places of a server and a client, and the server's address from the client's point of view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) server: Place<'a>,
    pub(crate) client: Place<'a>,
    pub(crate) address: &'a str,
    pub(crate) environment: &'a [(&'a str, &'a str)],
}

impl<'a> Pair<'a> {
    /// Runs a server at one place and, once it listens on this RDMA port, a client at the other; returns the client's
    /// output.
    pub(crate) fn connect(&self, server: &[&str], client: &[&str], port: u16) -> String {
        self.meet(server, client, Listens::Rdma(port))
    }

    /// Runs the same program with the same arguments at both places; returns the client's output.
    ///
    /// # Panics
    /// Panics if either program fails.
    pub(crate) fn run(&self, program: &str, words: &[&str]) -> String {
        let port = fresh_port();
        let text = port.to_string();
        let line = |place: &Place<'a>| [&[program, "-d", place.device, "-p", &text], words].concat();
        self.meet(&line(&self.server), &[&line(&self.client)[..], &[self.address]].concat(), Listens::Tcp(port))
    }

    /// Runs a server at one place and, once it listens, a client at the other; returns the client's output.
    ///
    /// # Panics
    /// Panics if either program fails.
    pub(crate) fn meet(&self, server: &[&str], client: &[&str], listens: Listens) -> String {
        let mut running = self.server.command(server, self.environment).spawn().expect("timeout runs");
        let is_up = wait_until(&mut running, || match listens {
            Listens::Tcp(port) => self.server.has("tcp", &format!(":{port:04X} "), " 0A "),
            Listens::Rdma(port) => self.server.has("udp", &format!(":{port:04X} "), ""),
        });
        let client_output = loop {
            let output = self.client.command(client, self.environment).output().expect("timeout runs");
            // The UDP port exists from `rdma_bind_addr` on: the server may not have reached `rdma_listen`.
            let text = said(&output);
            let is_early = matches!(listens, Listens::Rdma(_)) && NOBODY_LISTENS.iter().any(|told| text.contains(told));
            if !is_early || running.try_wait().expect("the child process can be waited for").is_some() {
                break output;
            }
        };
        if !client_output.status.success() {
            // No client will connect any more. The server may have ended by itself.
            let _ = shell(&format!("kill {}", running.id()));
        }
        let server_output = running.wait_with_output().expect("the child process can be waited for");
        assert!(
            is_up && client_output.status.success() && server_output.status.success(),
            "{client:?}\n-- client: {}\n-- server: {}",
            said(&client_output),
            said(&server_output)
        );
        String::from_utf8_lossy(&client_output.stdout).into_owned()
    }
}

/// Messages of programs of librdmacm when nobody listens (error 8: no such service), and of those with blocking and
/// with non-blocking sockets.
const NOBODY_LISTENS: [&str; 3] =
    ["RDMA_CM_EVENT_REJECTED, error 8", "Connection refused", "rpoll: Operation now in progress"];

/// Signs that a server listens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listens {
    /// The server has this TCP port.
    Tcp(u16),
    /// The server has this RDMA port, and the UDP port of the same number, which it has a moment earlier.
    Rdma(u16),
}

/// Returns a TCP port that no other test uses, below the range from which the kernel assigns ports. Other processes
/// that run these tests on this host begin elsewhere.
pub(crate) fn fresh_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let begin = 10_000 + (std::process::id() % 80) as u16 * 250;
    loop {
        let port = begin + TAKEN.fetch_add(1, Ordering::Relaxed);
        if !LOOPBACK.has("tcp", &format!(":{port:04X} "), "") {
            return port;
        }
    }
}

/// Takes a lock for tests with fixed ports, which one process of this host holds at a time, until the file is closed.
pub(crate) fn turn() -> Option<File> {
    let file = File::create(std::env::temp_dir().join("selvedge-test-ports.lock")).ok()?;
    file.lock().ok().map(|()| file)
}

pub(crate) fn said(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{err}", output.status)
}

/// Calls `is_so` repeatedly, until it returns true or the program has ended; returns whether it was true.
pub(crate) fn wait_until(child: &mut Child, mut is_so: impl FnMut() -> bool) -> bool {
    while child.try_wait().expect("the child process can be waited for").is_none() {
        if is_so() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Two network namespaces and a veth pair between them. Dropping the value removes them.
pub(crate) struct Namespaces {
    pub(crate) names: [String; 2],
}

/// Address of the first namespace.
pub(crate) const FIRST: &str = "10.78.0.1";

impl Namespaces {
    /// Creates the namespaces; prints the reason if it cannot.
    pub(crate) fn new(name: &str) -> Option<Self> {
        // Other processes may run the same test at the same time.
        let names = ["a", "b"].map(|end| format!("sv-{name}-{}-{end}", std::process::id()));
        let (a, b) = (&names[0], &names[1]);
        let this = Self { names: names.clone() };
        this.remove();
        let commands = [
            format!("ip netns add {a}"),
            format!("ip netns add {b}"),
            // Without duplicate address detection, link-local addresses can be used at once.
            format!("ip netns exec {a} sh -c 'echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad'"),
            format!("ip netns exec {b} sh -c 'echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad'"),
            format!("ip -n {a} link add eth0 type veth peer name eth0 netns {b}"),
            format!("ip -n {a} addr add {FIRST}/24 dev eth0"),
            format!("ip -n {b} addr add 10.78.0.2/24 dev eth0"),
            format!("ip -n {a} addr add fd78::1/64 dev eth0 nodad"),
            format!("ip -n {b} addr add fd78::2/64 dev eth0 nodad"),
            format!("ip -n {a} link set eth0 up"),
            format!("ip -n {b} link set eth0 up"),
            format!("ip -n {a} link set lo up"),
            format!("ip -n {b} link set lo up"),
        ];
        for command in commands {
            if let Err(problem) = shell(&command) {
                eprintln!("skipped: no network namespaces here: `{command}`: {problem}");
                return None;
            }
        }
        // The kernel reports a little later that the link is up.
        for name in [a, b] {
            let command = format!("until ip -n {name} link show eth0 | grep -q 'state UP'; do sleep 0.01; done");
            shell(&format!("timeout 120 sh -c \"{command}\"")).expect("the link comes up");
        }
        Some(this)
    }
    pub(crate) fn pair<'a>(&'a self, environment: &'a [(&'a str, &'a str)]) -> Pair<'a> {
        let place = |at: usize| Place { namespace: Some(&self.names[at]), device: "sv_eth0" };
        Pair { server: place(0), client: place(1), address: FIRST, environment }
    }
    /// Drops this percentage of packets to RoCE's ports that enter either namespace.
    pub(crate) fn lose(&self, percent: u32) {
        for name in &self.names {
            let rules = format!(
                "add table inet sv; add chain inet sv in {{ type filter hook prerouting priority -300; }}; \
                 add rule inet sv in udp dport 4791-4854 numgen random mod 100 < {percent} drop"
            );
            shell(&format!("ip netns exec {name} nft '{rules}'")).expect("nft works where it is installed");
        }
    }
    fn remove(&self) {
        for name in &self.names {
            let _ = shell(&format!("ip netns del {name}"));
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Runs a shell command.
///
/// # Errors
/// Returns what the command printed if it fails.
pub(crate) fn shell(command: &str) -> Result<(), String> {
    let output = Command::new("sh").args(["-c", command]).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

/// Returns the symbols of a library with their versions, as the linker sees them.
pub(crate) fn symbols(library: &Path) -> Option<Vec<String>> {
    fs::metadata(library).ok()?;
    let output = Command::new("objdump").arg("-T").arg(library).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let of_line = |line: &str| {
        let mut words = line.split_whitespace().rev();
        let (name, version) = (words.next()?, words.next()?.trim_matches(['(', ')']));
        (line.contains(" g ") && ["IBVERBS", "RDMACM"].iter().any(|node| version.starts_with(node)))
            .then(|| format!("{name}@{version}"))
    };
    Some(text.lines().filter_map(of_line).collect())
}

/// Builds a C program beside the tests with rdma-core's headers; returns its path, and prints the reason if there are
/// no headers.
///
/// # Panics
/// Panics if the program does not compile.
pub(crate) fn build(source: &str, libraries: &[&str]) -> Option<String> {
    for header in ["infiniband/verbs.h", "rdma/rdma_verbs.h"] {
        if !Path::new("/usr/include").join(header).is_file() {
            eprintln!("skipped: no <{header}> here: install libibverbs-dev and librdmacm-dev");
            return None;
        }
    }
    // Tests that run in parallel may build the same program at the same time.
    static BUILT: AtomicU32 = AtomicU32::new(0);
    let number = BUILT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{source}-{}-{number}", std::process::id());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-O1", "-o"]).arg(&program).arg(source).args(libraries).output().expect("a C compiler");
    assert!(built.status.success(), "{}", said(&built));
    Some(program.display().to_string())
}
