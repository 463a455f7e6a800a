//! Results of readers: values with warnings, or an error with a place.

use std::fmt;

/// Error of a file that cannot be read: place, fault and valid text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormatError {
    /// Name that the caller gave the file.
    pub file: String,
    /// Line of the fault, from 1.
    pub line: u64,
    /// Column of the fault in characters, from 1; a tab is one character.
    pub column: u64,
    /// Text that was found, and valid text for its place.
    pub message: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}
impl std::error::Error for FormatError {}

/// Warning about a questionable part of a file that could be read nevertheless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// Line of the questionable part, from 1.
    pub line: u64,
    /// Text that was found, and the reader's interpretation of it.
    pub message: String,
}

impl Warning {
    pub(crate) fn new(line: u64, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// Content of a file, with warnings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parsed<T> {
    /// Value that was read.
    pub value: T,
    /// Warnings about the file, in the order of discovery.
    pub warnings: Vec<Warning>,
    /// Dialect that the file is written in.
    pub dialect: Dialect,
}

/// Formats that this crate reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Dialect {
    /// ns-3 RDMA `topology.txt`: a header of 3 numbers (HPCC, ConWeave).
    Ns3Topology,
    /// SimAI `topology`: a header of 6 words, with NVSwitches.
    SimAiTopology,
    /// ns-3 RDMA `flow.txt`: `src dst pg size start` (ConWeave).
    Ns3Flows5,
    /// ns-3 RDMA `flow.txt`: `src dst pg dport size start` (HPCC).
    Ns3Flows6,
    /// ns-3 RDMA `flow.txt`: `id src dst pg dport size start` (Parsimon).
    Ns3Flows7,
    /// htsim `.topo`.
    HtsimTopology,
    /// htsim `.cm`.
    HtsimMatrix,
    /// GOAL schedule as text (LogGOPSim, ATLAHS).
    GoalText,
    /// GOAL schedule in binary form.
    GoalBinary,
    /// Flow sizes: `bytes percent` (HPCC, ConWeave).
    CdfPercent,
    /// Flow sizes: `bytes fraction` (pFabric).
    CdfFraction,
    /// Flow sizes: `packets weight fraction` (YAPS, pHost).
    CdfPackets,
    /// Flow sizes: `bytes weight fraction` (ns-2).
    CdfNs2,
    /// `fct.txt` with addresses in hexadecimal (HPCC, SimAI).
    FctHpcc,
    /// `fct.txt` with decimal node ids (ConWeave).
    FctConWeave,
    /// IRN receiver input: `qp opcode psn`.
    IrnReceiver,
    /// IRN sender input: `qp event fields`.
    IrnSender,
}

impl Dialect {
    /// Returns whether files of this dialect describe a network.
    pub const fn is_topology(self) -> bool {
        matches!(self, Self::Ns3Topology | Self::SimAiTopology | Self::HtsimTopology)
    }
    /// Returns whether files of this dialect list flows.
    pub const fn is_flow_list(self) -> bool {
        matches!(self, Self::Ns3Flows5 | Self::Ns3Flows6 | Self::Ns3Flows7 | Self::HtsimMatrix)
    }
    /// Returns whether files of this dialect are schedules.
    pub const fn is_schedule(self) -> bool {
        matches!(self, Self::GoalText | Self::GoalBinary)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ns3Topology => "ns-3 RDMA topology",
            Self::SimAiTopology => "SimAI topology",
            Self::Ns3Flows5 => "ns-3 RDMA flow list, 5 columns",
            Self::Ns3Flows6 => "ns-3 RDMA flow list, 6 columns",
            Self::Ns3Flows7 => "ns-3 RDMA flow list, 7 columns",
            Self::HtsimTopology => "htsim topology",
            Self::HtsimMatrix => "htsim connection matrix",
            Self::GoalText => "GOAL schedule",
            Self::GoalBinary => "binary GOAL schedule",
            Self::CdfPercent => "flow-size CDF in bytes and percent",
            Self::CdfFraction => "flow-size CDF in bytes and fractions",
            Self::CdfPackets => "flow-size CDF in packets and fractions",
            Self::CdfNs2 => "flow-size CDF in bytes and fractions, three columns",
            Self::FctHpcc => "HPCC flow completion times",
            Self::FctConWeave => "ConWeave flow completion times",
            Self::IrnReceiver => "IRN receiver trace",
            Self::IrnSender => "IRN sender trace",
        })
    }
}
