//! The columns of each table.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use parquet::schema::printer::print_schema;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type, TypePtr};

use crate::ResultsError;

/// Which table a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// One row per flow.
    Flows,
    /// One row per port and sampling interval.
    Ports,
}

impl Table {
    /// Its Parquet schema.
    pub(super) fn schema(self) -> TypePtr {
        let text = match self {
            Self::Flows => FLOWS,
            Self::Ports => PORTS,
        };
        Arc::new(parse_message_type(text).expect("the schemas below are well-formed"))
    }

    /// Whether its numbers are mostly those of the row before: samples of ports are, flows are not.
    pub(super) fn repeats_itself(self) -> bool {
        self == Self::Ports
    }

    /// The larger row groups are, the fewer: each takes some kilobytes of memory until its file is closed.
    pub(super) fn rows_per_group(self) -> usize {
        match self {
            Self::Flows => 1 << 22,
            Self::Ports => 1 << 19,
        }
    }

    /// Its columns.
    pub(super) fn columns(self) -> Vec<ColumnDescPtr> {
        SchemaDescriptor::new(self.schema()).columns().to_vec()
    }

    /// Opens a file and makes sure that it is complete and holds this table.
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
            };
            let what = format!("not a table of {table} by this version: {difference}");
            return Err(ResultsError::damaged(path, what));
        }
        Ok(reader)
    }

    /// How the columns of a file are not those of this table.
    fn difference(self, found: &Type) -> Option<String> {
        let expected = self.schema();
        let names = |schema: &Type| schema.get_fields().iter().map(|field| field.name()).collect::<Vec<_>>().join(", ");
        if names(found) != names(&expected) {
            return Some(format!("its columns are {}; expected {}", names(found), names(&expected)));
        }
        let (found, expected) = (found.get_fields(), expected.get_fields());
        let (found, expected) = found.iter().zip(expected).find(|(found, expected)| found != expected)?;
        Some(format!("its column {} is {}; expected {}", found.name(), in_words(found), in_words(expected)))
    }
}

/// A column as Parquet writes it down: "REQUIRED INT64 seed (UINT_64)".
fn in_words(column: &Type) -> String {
    let mut text = Vec::new();
    print_schema(&mut text, column);
    String::from_utf8_lossy(&text).trim_end().trim_end_matches(';').to_owned()
}

const FLOWS: &str = "message flow {
    required binary series (UTF8);
    required int64 seed (UINT_64);
    required int64 flow (UINT_64);
    required int32 workload (UINT_16);
    required int32 group (UINT_32);
    required int32 src (UINT_32);
    required int32 dst (UINT_32);
    required int64 size_bytes (UINT_64);
    required int64 packets (UINT_64);
    required int64 start_ps (UINT_64);
    optional int64 finish_ps (UINT_64);
    optional int64 fct_ps (UINT_64);
    required int64 ideal_ps (UINT_64);
    optional double slowdown;
    required int32 spurious (UINT_32);
    required boolean measured;
}";

const PORTS: &str = "message port {
    required binary series (UTF8);
    required int64 seed (UINT_64);
    required int64 time_ps (UINT_64);
    required int32 port (UINT_32);
    required binary node (UTF8);
    required binary peer (UTF8);
    required binary tier (UTF8);
    required int64 egress_queue_bytes (UINT_64);
    required int64 ingress_buffer_bytes (UINT_64);
    required int64 paused_ps (UINT_64);
    required float utilisation;
    required int32 drops (UINT_32);
    required int32 trims (UINT_32);
}";
