//! Integration tests of a whole study: rows, tables, verdicts, claims, report.

mod common;
mod expect;
mod programs;
mod report;
#[path = "../../examples/report_demo/synthetic.rs"]
mod synthetic;
mod tables;
mod verdict;
