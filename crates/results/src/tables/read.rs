//! Flows, from disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use selvedge_telemetry::FlowRow;
use selvedge_units::{Bytes, Duration, HostId, Instant};

use super::REMEDY;
use super::schema::Table;
use crate::ResultsError;

/// A flow as it was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredFlow {
    /// The series it belongs to.
    pub series: Arc<str>,
    /// The seed it belongs to.
    pub seed: u64,
    /// The flow.
    pub flow: FlowRow,
}

/// Opens a table of flows (`flows.parquet`, or one point's part of it).
///
/// # Errors
/// When the file is missing, truncated, or another kind of table. Damage inside the file shows as an
/// error of the iterator, after which it ends.
pub fn read_flows(path: &Path) -> Result<Flows, ResultsError> {
    let reader = Table::Flows.open(path)?;
    Ok(Flows { path: path.into(), reader, next_group: 0, rows: Vec::new().into_iter() })
}

/// The flows of a file in the order in which they were written; holds one row group at a time.
pub struct Flows {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    next_group: usize,
    rows: std::vec::IntoIter<StoredFlow>,
}

impl Iterator for Flows {
    type Item = Result<StoredFlow, ResultsError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.rows.next() {
                return Some(Ok(row));
            }
            if self.next_group >= self.reader.num_row_groups() {
                return None;
            }
            match self.reader.get_row_group(self.next_group).and_then(|group| read_group(&*group)) {
                Ok(rows) => {
                    self.next_group += 1;
                    self.rows = rows.into_iter();
                }
                Err(error) => {
                    self.next_group = usize::MAX;
                    let what = format!("damaged in the middle ({error})");
                    return Some(Err(ResultsError::damaged(&self.path, what, REMEDY)));
                }
            }
        }
    }
}

fn read_group(group: &dyn RowGroupReader) -> ParquetResult<Vec<StoredFlow>> {
    let series = required::<ByteArrayType>(group, 0)?;
    let [seed, id, size, packets, start, ideal] = longs(group, [1, 2, 7, 8, 9, 12])?;
    let [workload, repetition, src, dst, spurious] = ints(group, [3, 4, 5, 6, 14])?;
    let finish = optional::<Int64Type>(group, 10)?;
    let measured = required::<BoolType>(group, 15)?;

    let mut name: Arc<str> = "".into();
    let mut rows = Vec::with_capacity(measured.len());
    for at in 0..measured.len() {
        if series[at].data() != name.as_bytes() {
            name = series[at].as_utf8()?.into();
        }
        let flow = FlowRow {
            id: id[at],
            workload: workload[at] as u16,
            group: repetition[at],
            src: HostId(src[at]),
            dst: HostId(dst[at]),
            size: Bytes::new(size[at]),
            packets: packets[at],
            start: Instant::from_ps(start[at]),
            finish: finish[at].map(|ps| Instant::from_ps(ps.cast_unsigned())),
            ideal: Duration::from_ps(ideal[at]),
            spurious: spurious[at],
            measured: measured[at],
        };
        rows.push(StoredFlow { series: name.clone(), seed: seed[at], flow });
    }
    Ok(rows)
}

fn longs<const N: usize>(group: &dyn RowGroupReader, columns: [usize; N]) -> ParquetResult<[Vec<u64>; N]> {
    let mut found = [const { Vec::new() }; N];
    for (values, column) in found.iter_mut().zip(columns) {
        *values = required::<Int64Type>(group, column)?.into_iter().map(i64::cast_unsigned).collect();
    }
    Ok(found)
}

fn ints<const N: usize>(group: &dyn RowGroupReader, columns: [usize; N]) -> ParquetResult<[Vec<u32>; N]> {
    let mut found = [const { Vec::new() }; N];
    for (values, column) in found.iter_mut().zip(columns) {
        *values = required::<Int32Type>(group, column)?.into_iter().map(i32::cast_unsigned).collect();
    }
    Ok(found)
}

fn required<T: DataType>(group: &dyn RowGroupReader, column: usize) -> ParquetResult<Vec<T::T>> {
    let rows = row_count(group)?;
    let mut values = Vec::new();
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    let (records, ..) = reader.read_records(rows, None, None, &mut values)?;
    complete(records, rows)?;
    Ok(values)
}

fn optional<T: DataType>(group: &dyn RowGroupReader, column: usize) -> ParquetResult<Vec<Option<T::T>>> {
    let rows = row_count(group)?;
    let (mut values, mut present) = (Vec::new(), Vec::new());
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    let (records, ..) = reader.read_records(rows, Some(&mut present), None, &mut values)?;
    complete(records, rows)?;
    let mut values = values.into_iter();
    Ok(present.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

fn row_count(group: &dyn RowGroupReader) -> ParquetResult<usize> {
    usize::try_from(group.metadata().num_rows()).map_err(|_| ParquetError::General("negative row count".into()))
}

fn complete(found: usize, promised: usize) -> ParquetResult<()> {
    if found == promised {
        return Ok(());
    }
    Err(ParquetError::EOF(format!("{found} rows where {promised} were promised")))
}
