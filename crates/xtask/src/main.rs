//! Build chores: `cargo xtask <command>`.
//!
//! This crate knows the project's folders and cargo, and no crate of the workspace.
#![deny(unsafe_code)]

mod bless;
mod command;
mod deep;
mod dist;
mod figures;
mod fingerprints;
mod instructions;
mod kernel_tcp;
mod page;
mod product;
mod python;
mod report;
mod rtl;
mod schema;
mod site;
mod soft_roce;
mod test;
mod tidy;
mod tools;
mod verbs_bench;
mod verbs_clients;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Build chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", arg_required_else_help = true)]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install the programs that the other chores need, or print how to
    Setup,
    /// Run all tests; at the end, list skipped tests and the reasons
    Test(test::Options),
    /// Check rules that the compiler does not check: direction of dependencies, purity, documents
    Tidy,
    /// Write the texts that tests compare with: messages, tables, schemas, keys, fingerprints
    Bless(bless::Options),
    /// Write the schemas, schema/*.schema.json
    Schema(schema::Options),
    /// Run the committed scenarios in debug and release and compare their fingerprints
    Fingerprints(fingerprints::Options),
    /// Count the simulator's instructions per packet-hop and compare them with the committed numbers (valgrind)
    Instructions(instructions::Options),
    /// Run tests of threads under loom, and tests with AddressSanitizer (nightly compiler)
    Deep(deep::Options),
    /// Run the figures and check the claims of their papers
    Figures(figures::Options),
    /// Make an installation: libraries and the command line, in one folder
    Dist(dist::Options),
    /// Compare Selvedge's TCP with the kernel's, between two network namespaces (root)
    KernelTcp(kernel_tcp::Options),
    /// Run RDMA programs between Selvedge's software RNIC and Linux's own, in a virtual machine (root, qemu)
    SoftRoce(soft_roce::Options),
    /// Measure the software RNIC beside TCP, UCX, QUIC and UDP sockets, between two network namespaces (root)
    VerbsBench(verbs_bench::Options),
    /// Run RDMA programs of others with the software RNIC, between two network namespaces (root)
    VerbsClients(verbs_clients::Options),
    /// Build the Python package beside its sources, test it, or make its wheel
    Python(python::Options),
    /// Try a report in a browser, as a file and as `selvedge open` serves it (Chromium, Node.js)
    Report,
    /// Make the documentation as a site, in target/site
    Site(site::Options),
    /// Check the hardware modules in rtl/: lint, simulate beside the engines, prove, synthesise
    Rtl(rtl::Options),
    /// Run one end of the kernel's transfer
    #[command(hide = true)]
    KernelTcpPeer(kernel_tcp::Peer),
    /// Run one end of a ping-pong
    #[command(hide = true)]
    VerbsBenchPeer(verbs_bench::Peer),
}

fn main() -> ExitCode {
    let outcome = match Xtask::parse().task {
        Task::Setup => tools::setup(),
        Task::Test(options) => test::test(&options),
        Task::Tidy => tidy::tidy(),
        Task::Bless(options) => bless::bless(&options),
        Task::Schema(options) => schema::schema(&options),
        Task::Fingerprints(options) => fingerprints::fingerprints(&options),
        Task::Instructions(options) => instructions::instructions(&options),
        Task::Deep(options) => deep::deep(&options),
        Task::Figures(options) => figures::figures(&options),
        Task::Dist(options) => dist::dist(&options),
        Task::KernelTcp(options) => kernel_tcp::kernel_tcp(&options),
        Task::SoftRoce(options) => soft_roce::soft_roce(&options),
        Task::VerbsBench(options) => verbs_bench::verbs_bench(&options),
        Task::VerbsClients(options) => verbs_clients::verbs_clients(&options),
        Task::Python(options) => python::python(&options),
        Task::Report => report::report(),
        Task::Site(options) => site::site(&options),
        Task::Rtl(options) => rtl::rtl(&options),
        Task::KernelTcpPeer(options) => kernel_tcp::peer(&options),
        Task::VerbsBenchPeer(options) => verbs_bench::peer(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
