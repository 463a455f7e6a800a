//! The columns of each table.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Type as PhysicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use parquet::schema::printer::print_schema;
use parquet::schema::types::{Type, TypePtr};

use crate::ResultsError;

/// The kinds of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// One row per flow.
    Flows,
    /// One row per port and sampling interval.
    Ports,
    /// One row per direction of a link.
    Links,
}

/// An additional column for a key that cases change, after the columns that a table always has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Extra {
    pub(super) name: String,
    pub(super) kind: ColumnType,
}

/// The type of an additional column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ColumnType {
    Number,
    Text,
}

impl Table {
    /// Returns the Parquet schema of the table; the columns in `extras` follow its own.
    pub(super) fn schema(self, extras: &[Extra]) -> TypePtr {
        let (name, own) = match self {
            Self::Flows => ("flow", FLOWS),
            Self::Ports => ("port", PORTS),
            Self::Links => ("link", LINKS),
        };
        let extra = |Extra { name, kind }: &Extra| match kind {
            ColumnType::Number => format!("required double {name};"),
            ColumnType::Text => format!("required binary {name} (UTF8);"),
        };
        let extras: String = extras.iter().map(extra).collect();
        let text = format!("message {name} {{ {own} {extras} }}");
        Arc::new(parse_message_type(&text).expect("the schemas below are well-formed"))
    }

    /// Returns the names of the columns of all tables.
    pub(super) fn all_column_names() -> BTreeSet<String> {
        let names = |table: Self| -> Vec<String> {
            table.schema(&[]).get_fields().iter().map(|field| field.name().to_owned()).collect()
        };
        [Self::Flows, Self::Ports, Self::Links].into_iter().flat_map(names).collect()
    }

    /// Returns the columns that `found`, a schema of this table, has after the table's own.
    pub(super) fn extras_of(self, found: &Type) -> Vec<Extra> {
        let own = self.schema(&[]).get_fields().len();
        let extra = |field: &TypePtr| {
            let is_number = field.is_primitive() && field.get_physical_type() == PhysicalType::DOUBLE;
            let kind = if is_number { ColumnType::Number } else { ColumnType::Text };
            Extra { name: field.name().to_owned(), kind }
        };
        found.get_fields().iter().skip(own).map(extra).collect()
    }

    /// Returns whether most numbers equal those of the row before: true for samples of ports, false for flows.
    pub(super) fn repeats_itself(self) -> bool {
        self != Self::Flows
    }

    /// Returns the number of rows per group. Large groups are few, and each takes some kilobytes of memory until its
    /// file is closed.
    pub(super) fn rows_per_group(self) -> usize {
        match self {
            Self::Flows => 1 << 22,
            Self::Ports | Self::Links => 1 << 19,
        }
    }

    /// Opens a file and checks that it is complete and holds this table.
    pub(super) fn open(self, path: &Path) -> Result<SerializedFileReader<File>, ResultsError> {
        let file = File::open(path).map_err(|error| ResultsError::damaged(path, format!("cannot open it: {error}")))?;
        let reader = SerializedFileReader::new(file).map_err(|error| {
            let what = format!("truncated or damaged, not a complete Parquet file ({error})");
            ResultsError::damaged(path, what)
        })?;
        let found = reader.metadata().file_metadata().schema();
        if let Some(difference) = self.difference(found) {
            let table = match self {
                Self::Flows => "flows",
                Self::Ports => "ports",
                Self::Links => "links",
            };
            let what = format!("not a table of {table} by this version, or damaged: {difference}");
            return Err(ResultsError::damaged(path, what));
        }
        Ok(reader)
    }

    /// Returns a description of the first difference between the columns of a file and those of this table.
    fn difference(self, found: &Type) -> Option<String> {
        let own = self.schema(&[]);
        let names = |schema: &Type, count: usize| {
            schema.get_fields().iter().take(count).map(|field| field.name()).collect::<Vec<_>>().join(", ")
        };
        let count = own.get_fields().len();
        if names(found, count) != names(&own, count) {
            return Some(format!("its columns are {}; expected {}", names(found, usize::MAX), names(&own, count)));
        }
        let extras = self.extras_of(found);
        // Columns with other names could not be put into a schema.
        let is_ours =
            |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if let Some(strange) = extras.iter().find(|extra| !is_ours(&extra.name)) {
            return Some(format!("it has a column {:?}; expected names of letters, digits and _", strange.name));
        }
        let expected = self.schema(&extras);
        let (found, expected) = (found.get_fields(), expected.get_fields());
        let (found, expected) = found.iter().zip(expected).find(|(found, expected)| found != expected)?;
        Some(format!("its column {} is {}; expected {}", found.name(), in_words(found), in_words(expected)))
    }
}

/// Returns a column in Parquet's notation: "REQUIRED INT64 seed (UINT_64)".
fn in_words(column: &Type) -> String {
    let mut text = Vec::new();
    print_schema(&mut text, column);
    String::from_utf8_lossy(&text).trim_end().trim_end_matches(';').to_owned()
}

// Numbers are signed, so that the difference of two columns is correct in every program that reads them.

const FLOWS: &str = "
    required binary series (UTF8);
    required binary case (UTF8);
    required int64 seed;
    required int64 flow;
    required int32 workload;
    required int32 group;
    required int32 src;
    required int32 dst;
    required binary src_node (UTF8);
    required binary dst_node (UTF8);
    required int64 size_bytes;
    required int64 packets;
    required int64 start_ps;
    optional int64 finish_ps;
    optional int64 fct_ps;
    required int64 ideal_ps;
    optional double slowdown;
    required int32 spurious;
    required boolean measured;
";

const PORTS: &str = "
    required binary series (UTF8);
    required binary case (UTF8);
    required int64 seed;
    required int64 time_ps;
    required int32 port;
    required binary node (UTF8);
    required binary peer (UTF8);
    required binary tier (UTF8);
    required int64 egress_queue_bytes;
    required int64 ingress_buffer_bytes;
    required int64 paused_ps;
    required float utilisation;
    required int32 drops;
    required int32 trims;
";

const LINKS: &str = "
    required binary series (UTF8);
    required binary case (UTF8);
    required int32 link;
    required int32 port;
    required int32 peer_port;
    required binary node (UTF8);
    required binary peer (UTF8);
    required binary tier (UTF8);
    required binary peer_tier (UTF8);
    required int64 rate_bps;
    required int64 delay_ps;
    required double loss;
";
