//! Rows on disk, as Parquet files that pyarrow, DuckDB and Polars read as they are.
//!
//! 1. Every point of a plan writes its own files while it runs, so that threads share nothing and
//!    an interrupted study keeps what it finished.
//! 2. Memory does not depend on the number of rows. Every [`PAGE`] rows become a page of each column, and the
//!    pages of a row group wait in an unnamed file beside the part until the group is complete: in a Parquet
//!    file the pages of a column stand together. Row groups are large, because each takes some kilobytes of
//!    memory until its file is closed, and wherever it is read. What compresses pages is made once for a file, and
//!    serves all columns. Columns that repeat themselves have a dictionary, and pages of our own making ([`indexed`]).
//! 3. Merging copies compressed row groups as they are: no row is decoded again. Reading holds one page of each
//!    column.

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
mod read;
mod runs;
mod schema;
mod spill;
mod squeeze;

pub(crate) use digest::Digest;
pub use labels::{Labels, Swept};
pub use links::{LinkRow, write_links};
pub(crate) use merge::check_part;
pub use merge::merge;
pub use read::{Flows, StoredFlow, read_flows};
pub use schema::Table;

pub(crate) use flows::FlowWriter;
pub(crate) use ports::PortWriter;

/// Rows per page, at most.
const PAGE: usize = 1 << 14;
