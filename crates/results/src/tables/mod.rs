//! Rows on disk, as Parquet files that pyarrow, DuckDB and Polars read directly.
//!
//! 1. Every point of a plan writes its own files while it runs, so that threads share nothing and an interrupted study
//!    keeps its finished points.
//! 2. Memory does not depend on the number of rows. Every [`PAGE`] rows become a page of each column. The pages of a
//!    row group are kept in an unnamed file beside the part until the group is complete, because a Parquet file stores
//!    the pages of a column together. Row groups are large, because each takes some kilobytes of memory until its file
//!    is closed, and in every reader. All columns of a file share one compression context. Columns that often repeat
//!    values have a dictionary and pages encoded here ([`indexed`]).
//! 3. Merging copies compressed row groups unchanged: no row is decoded again. Reading holds one page of each column.

mod digest;
mod flows;
mod indexed;
mod known;
mod labels;
mod links;
mod merge;
mod names;
mod part;
mod ports;
mod query;
mod read;
mod runs;
mod scan;
mod schema;
mod spill;
mod squeeze;

pub(crate) use digest::Digest;
pub use labels::{Labels, Swept};
pub use links::{LinkRow, write_links};
pub(crate) use merge::check_part;
pub use merge::merge;
pub use query::{Filter, Page, Query, QueryError, Relation};
pub use read::{Flows, StoredFlow, read_flows};
pub use scan::{Cell, Group, Scan};
pub use schema::Table;

pub(crate) use flows::FlowWriter;
pub use ports::PortWriter;

/// Largest number of rows per page.
const PAGE: usize = 1 << 14;
