//! Results of simulations: from rows of telemetry to a verdict.
//!
//! ```text
//! run --rows--> PointRecorder --finish--> PointSummary --summarise--> Summary --> verdict, table, report.html
//!                     \--Parquet--> merge --> flows.parquet, ports.parquet             \--> expect.toml: claims
//! ```
//!
//! A claim, checked against a study:
//!
//! ```
//! use selvedge_results::{Expectations, SeriesInfo, StudyInfo, check, summarise};
//!
//! let claims = r#"
//!     [[expect]]
//!     say    = "IRN completes flows faster without PFC"
//!     metric = "fct_mean_us"
//!     of     = "irn"
//!     than   = "irn+pfc"
//!     ratio  = { at-most = 1.0 }
//! "#;
//! let claims = Expectations::parse(claims, "expect.toml")?;
//! // A study without points lacks the numbers of the claim, so that the claim fails.
//! let series = ["irn", "irn+pfc"].map(|name| SeriesInfo {
//!     name: name.into(),
//!     series: name.into(),
//!     case: None,
//!     traits: Default::default(),
//!     cut: Default::default(),
//! });
//! let summary = summarise(&StudyInfo::default(), &series, &[]);
//! assert!(check(&claims, &summary)[0].fails);
//! # Ok::<(), selvedge_results::ExpectError>(())
//! ```
//!
//! Works on rows of simulated and of real networks, and never runs anything. Memory does not depend on the number of
//! flows: rows go to disk, sums and quantiles stay in memory.
#![forbid(unsafe_code)]

mod bound;
mod claims;
mod compare;
mod eqif;
mod error;
mod expect;
mod fabric;
mod interval;
mod metric;
mod netrt;
mod number;
mod point;
mod programs;
mod quantile;
mod record;
mod report;
mod split;
mod stall;
mod summarise;
mod summary;
mod sweep;
mod table;
mod tables;
mod tier;
mod timeline;
mod traits;
mod verdict;
mod warnings;

pub use selvedge_telemetry::TimePart;

pub use bound::Bound;
pub use claims::{CheckedFigure, ClaimsInput, is_claims_markdown, render_claims_html, render_claims_markdown};
pub use compare::{Comparison, FlowsMatch, KeyDifference, MetricComparison, SeriesComparison, Side, render_comparison};
pub use eqif::EqifReport;
pub use error::{ResultsError, is_storage_failure};
pub use expect::{
    ByConstruction, Cases, Claim, ClaimVerdict, ExpectError, Expectations, FootprintNic, Footprints, Measured,
    Measurement, Near, NotRun, Outcome, Quantities, Quantity, Take, check, check_smoke, measure, needs_seeds,
    render_claims, render_measured,
};
pub use fabric::{Fabric, WantedRun};
pub use interval::{Estimate, student_t_975};
pub use metric::{METRICS, Metric, Unit};
pub use netrt::NetRtReport;
pub use point::{
    DeadlockHop, DeadlockReport, Distribution, DropCounts, FlowSummary, OpenQuantiles, PausedPort, Pauses, PointFiles,
    PointSummary, PortTimes, RunTotals, SizeClass, TierPauses, TierTimes, TimeSplit, WORST_PORTS, cdf_levels,
    tail_levels,
};
pub use programs::{Command, Printed, Programs};
pub use quantile::Quantiles;
pub use record::PointRecorder;
pub use report::{ComparedResults, ReportInput, render_report, render_side_by_side, with_tables};
pub use summarise::summarise;
pub use summary::{PointRun, Ratio, RunSummary, SeedDeadlock, SeriesSummary, StudyInfo, Summary, summary_schema};
pub use sweep::{Sweep, SweepAxis, SweepPoint, render_sweep_csv};
pub use table::render_table;
pub use tables::{
    Cell, Filter, Flows, Group, Labels, LinkRow, Page, PortWriter, Query, QueryError, Relation, Scan, StoredFlow,
    Swept, Table, merge, read_flows, write_links,
};
pub use tier::Tier;
pub use traits::{Cut, GroupKind, GroupTraits, SeriesInfo, SeriesTraits};
pub use verdict::{Answer, Verdict, verdict};
