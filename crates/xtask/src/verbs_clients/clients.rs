//! Programs of other projects, and how each is run.

use std::fmt;

/// Source of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Packages {
    /// Packages of Debian with these names.
    Debian(&'static [&'static str]),
    /// Packages of PyPI with these names, without dependencies that are not named.
    PyPi(&'static [&'static str]),
}

impl fmt::Display for Packages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian(names) => write!(f, "Debian: {}", names.join(", ")),
            Self::PyPi(names) => write!(f, "PyPI: {}", names.join(", ")),
        }
    }
}

/// Program of another project. In its commands `{peer}` is the address of the first host, `{own}` that of the host that
/// runs it, `{venv}` the folder of Python's packages, `{mpich}` that of MPICH's, `{scripts}` that of Selvedge's
/// scripts, and `{scratch}` one to write to.
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) packages: Packages,
    /// Command that prints the program's version.
    pub(super) version: &'static str,
    /// Command that builds the program, run once beforehand.
    pub(super) build: &'static str,
    /// Command of the first host; it need not end.
    pub(super) server: &'static str,
    /// Command of the second host; it must succeed.
    pub(super) client: &'static str,
    /// Capability that the client's success shows.
    pub(super) shows: &'static str,
}

impl Client {
    /// Returns the command as text for the table.
    pub(super) fn command(&self) -> String {
        let parts = [self.server, self.client].map(|part| part.replace('|', "\\|"));
        let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).map(|part| format!("`{part}`")).collect();
        parts.join("; ")
    }
}

const PLAIN: Client = Client {
    name: "",
    packages: Packages::Debian(&[]),
    version: "",
    build: "",
    server: "",
    client: "",
    shows: "exits with status 0",
};

/// Command that prints the version of a Debian package.
macro_rules! version_of {
    ($package:literal) => {
        concat!("dpkg-query -W -f '${Version}' ", $package)
    };
}

/// Options by which MPI begins a process on each host, for `{hosts}`.
pub(super) const HOSTS: &str =
    "-launcher ssh -launcher-exec {scratch}/launch -iface eth0 -hosts {peer},{other} -np 2 -ppn 1";

pub(super) const CLIENTS: &[Client] = &[
    Client {
        name: "ibv_rc_pingpong",
        packages: Packages::Debian(&["ibverbs-utils"]),
        version: version_of!("ibverbs-utils"),
        server: "ibv_rc_pingpong -g 1 -c",
        client: "ibv_rc_pingpong -g 1 -c {peer}",
        shows: "contents compared",
        ..PLAIN
    },
    Client {
        name: "perftest, Writes",
        packages: Packages::Debian(&["perftest"]),
        version: version_of!("perftest"),
        server: "ib_write_bw -F -a -n 20",
        client: "ib_write_bw -F -a -n 20 {peer}",
        ..PLAIN
    },
    Client {
        name: "perftest, Sends by the connection manager",
        packages: Packages::Debian(&["perftest"]),
        version: version_of!("perftest"),
        server: "ib_send_bw -F -R -q 16 --use-srq",
        client: "ib_send_bw -F -R -q 16 --use-srq {peer}",
        ..PLAIN
    },
    Client {
        name: "rping",
        packages: Packages::Debian(&["rdmacm-utils"]),
        version: version_of!("rdmacm-utils"),
        server: "rping -s -a {peer} -C 100 -V -S 60000",
        client: "rping -c -a {peer} -C 100 -V -S 60000",
        shows: "contents compared",
        ..PLAIN
    },
    Client {
        name: "rstream, sockets over RDMA",
        packages: Packages::Debian(&["rdmacm-utils"]),
        version: version_of!("rdmacm-utils"),
        server: "rstream -T v -S 1000000 -C 20 -I 10",
        client: "rstream -T v -S 1000000 -C 20 -I 10 -s {peer}",
        shows: "contents compared",
        ..PLAIN
    },
    Client {
        name: "iperf3, sockets over RDMA",
        packages: Packages::Debian(&["iperf3", "librdmacm1"]),
        version: version_of!("iperf3"),
        server: "LD_PRELOAD=$LD_PRELOAD:/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so iperf3 -s -1",
        client: "LD_PRELOAD=$LD_PRELOAD:/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so iperf3 -c {peer} -n 200M",
        ..PLAIN
    },
    Client {
        name: "qperf",
        packages: Packages::Debian(&["qperf"]),
        version: version_of!("qperf"),
        server: "qperf",
        client: "qperf -cm 1 -t 2 {peer} rc_bw rc_lat rc_rdma_write_bw rc_rdma_read_bw",
        ..PLAIN
    },
    Client {
        name: "UCX, reliable connections",
        packages: Packages::Debian(&["ucx-utils"]),
        version: version_of!("ucx-utils"),
        server: "UCX_TLS=rc_verbs,ud_verbs:aux ucx_perftest",
        client: "UCX_TLS=rc_verbs,ud_verbs:aux ucx_perftest {peer} -t tag_bw -s 1000000 -n 200",
        ..PLAIN
    },
    Client {
        name: "UCX, datagrams",
        packages: Packages::Debian(&["ucx-utils"]),
        version: version_of!("ucx-utils"),
        server: "UCX_TLS=ud_verbs ucx_perftest",
        client: "UCX_TLS=ud_verbs ucx_perftest {peer} -t tag_bw -s 1000000 -n 50",
        ..PLAIN
    },
    Client {
        name: "libfabric, messages",
        packages: Packages::Debian(&["libfabric-bin"]),
        version: version_of!("libfabric-bin"),
        server: "fi_pingpong -p verbs -e msg -c",
        client: "fi_pingpong -p verbs -e msg -c {peer}",
        shows: "contents compared",
        ..PLAIN
    },
    Client {
        name: "libfabric, rxm",
        packages: Packages::Debian(&["libfabric-bin"]),
        version: version_of!("libfabric-bin"),
        server: "fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c",
        client: "fi_pingpong -p 'verbs;ofi_rxm' -e rdm -c {peer}",
        shows: "contents compared",
        ..PLAIN
    },
    Client {
        name: "fio",
        packages: Packages::Debian(&["fio"]),
        version: version_of!("fio"),
        server: "fio --name s --ioengine rdma --port 4900 --rw read --bs 64k --size 64m --iodepth 8",
        client: "fio --name c --ioengine rdma --hostname {peer} --port 4900 --verb write --rw write --bs 64k --size 64m --iodepth 8",
        ..PLAIN
    },
    Client {
        name: "MPICH over UCX",
        packages: Packages::Debian(&["mpich", "libmpich-dev"]),
        version: version_of!("mpich"),
        build: "mpicc.mpich -O1 -o {scratch}/collective {tests}/collective.c",
        client: "UCX_TLS=rc_verbs,ud_verbs:aux,self MPIR_CVAR_NOLOCAL=1 mpiexec.mpich {hosts} {scratch}/collective",
        shows: "results compared",
        ..PLAIN
    },
    Client {
        name: "OpenMPI over UCX",
        packages: Packages::Debian(&["openmpi-bin", "libopenmpi-dev"]),
        version: version_of!("openmpi-bin"),
        build: "mpicc.openmpi -O1 -o {scratch}/collective {tests}/collective.c",
        client: "UCX_TLS=rc_verbs,ud_verbs:aux,self mpirun.openmpi --allow-run-as-root --host {peer},{other} --mca plm_rsh_agent {scratch}/launch --mca pml ucx --mca osc ucx {scratch}/collective",
        shows: "results compared",
        ..PLAIN
    },
    Client {
        name: "MPICH over libfabric",
        packages: Packages::PyPi(&["mpich"]),
        version: "{venv}/bin/pip show mpich | sed -n 's/^Version: //p'",
        build: "{venv}/bin/mpicc -O1 -o {scratch}/collective {tests}/collective.c",
        client: "FI_PROVIDER='verbs;ofi_rxm' MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 {venv}/bin/mpiexec {hosts} {scratch}/collective",
        shows: "results compared",
        ..PLAIN
    },
    Client {
        name: "Intel MPI",
        packages: Packages::PyPi(&["impi-rt"]),
        version: "{venv}/bin/pip show impi-rt | sed -n 's/^Version: //p'",
        // Both libraries have one binary interface, and only MPICH's package has a compiler.
        build: "{mpich}/bin/mpicc -O1 -o {scratch}/collective {tests}/collective.c",
        client: "LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{venv}/lib FI_PROVIDER_PATH={venv}/lib I_MPI_ROOT={venv} I_MPI_FABRICS=ofi I_MPI_OFI_PROVIDER=verbs {venv}/bin/mpiexec.hydra {hosts} {scratch}/collective",
        shows: "results compared",
        ..PLAIN
    },
    Client {
        name: "Mooncake",
        packages: Packages::PyPi(&["mooncake-transfer-engine-non-cuda", "numpy", "aiohttp", "requests"]),
        version: "{venv}/bin/pip show mooncake-transfer-engine-non-cuda | sed -n 's/^Version: //p'",
        server: "{venv}/bin/python {scripts}/transfer_mooncake.py target {own} {scratch}",
        client: "{venv}/bin/python {scripts}/transfer_mooncake.py initiator {own} {scratch}",
        shows: "64 MB each way, contents compared",
        ..PLAIN
    },
    Client {
        name: "NIXL",
        packages: Packages::PyPi(&["nixl-cu12", "numpy"]),
        version: "{venv}/bin/pip show nixl-cu12 | sed -n 's/^Version: //p'",
        server: "UCX_TLS=rc_verbs,ud_verbs {venv}/bin/python {scripts}/transfer_nixl.py target {scratch}",
        client: "UCX_TLS=rc_verbs,ud_verbs {venv}/bin/python {scripts}/transfer_nixl.py initiator {scratch}",
        shows: "32 MB each way, contents compared",
        ..PLAIN
    },
    Client {
        name: "InfiniStore",
        // The program's own binding to libuv needs this version.
        packages: Packages::PyPi(&["infinistore", "uvloop==0.21.0", "numpy"]),
        version: "{venv}/bin/pip show infinistore | sed -n 's/^Version: //p'",
        server: "{venv}/bin/python {scripts}/transfer_infinistore.py serve {own}",
        client: "{venv}/bin/python {scripts}/transfer_infinistore.py store {peer}",
        shows: "16 MB stored and read back, the same",
        ..PLAIN
    },
    Client {
        name: "ibverbs of PyPI",
        packages: Packages::PyPi(&["ibverbs"]),
        version: "{venv}/bin/pip show ibverbs | sed -n 's/^Version: //p'",
        server: "{venv}/bin/python {scripts}/transfer_ibverbs.py target {own}",
        client: "{venv}/bin/python {scripts}/transfer_ibverbs.py initiator {peer}",
        shows: "4 MB each way, contents compared",
        ..PLAIN
    },
    Client {
        name: "DAPL",
        packages: Packages::Debian(&["dapl2-utils", "libdapl2"]),
        version: version_of!("dapl2-utils"),
        build: "echo 'sv u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"eth0 0\" \"\"' > {scratch}/dat.conf",
        server: "DAT_OVERRIDE={scratch}/dat.conf dtest -P sv",
        client: "DAT_OVERRIDE={scratch}/dat.conf dtest -P sv -h {peer}",
        ..PLAIN
    },
];
