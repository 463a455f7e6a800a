//! Rows on disk, as Parquet files that pyarrow, DuckDB and Polars read as they are.
//!
//! 1. Every point of a plan writes its own files while it runs, so that threads share nothing and
//!    an interrupted study keeps what it finished.
//! 2. Rows are buffered up to [`ROW_GROUP`] and written column by column; memory does not depend on
//!    the number of flows.
//! 3. Merging copies compressed row groups as they are: no row is decoded again.

mod flows;
mod merge;
mod part;
mod ports;
mod read;
mod schema;

pub use merge::merge;
pub use read::{Flows, StoredFlow, read_flows};
pub use schema::Table;

pub(crate) use flows::FlowWriter;
pub(crate) use ports::PortWriter;

/// Rows per row group.
const ROW_GROUP: usize = 1 << 16;
/// What to do about a file that cannot be read.
const REMEDY: &str = "delete it and run again with --resume: only what is missing is simulated anew";
