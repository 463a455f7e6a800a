//! Reader of the table of flows.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec;

use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use selvedge_telemetry::FlowRow;
use selvedge_units::{Bytes, Duration, HostId, Instant};

use super::PAGE;
use super::schema::Table;
use crate::ResultsError;

/// A flow as recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredFlow {
    /// Series of the flow's run.
    pub series: Arc<str>,
    /// Case of the flow's run; empty if the study has none.
    pub case: Arc<str>,
    /// Seed of the flow's run.
    pub seed: u64,
    /// The flow itself.
    pub flow: FlowRow,
}

/// Opens a table of flows (`flows.parquet`, or one point's part of it).
///
/// # Errors
/// Returns an error when the file is missing, truncated, or another kind of table. Damage inside the file is reported
/// as an error of the iterator, which then ends.
pub fn read_flows(path: &Path) -> Result<Flows, ResultsError> {
    let reader = Table::Flows.open(path)?;
    Ok(Flows { path: path.into(), reader, next_group: 0, columns: None, rows: Vec::new().into_iter() })
}

/// Iterator over the flows of a file in the order of writing; holds a page of each column at a time.
pub struct Flows {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    next_group: usize,
    /// Columns of the present row group.
    columns: Option<Columns>,
    rows: vec::IntoIter<StoredFlow>,
}

impl Iterator for Flows {
    type Item = Result<StoredFlow, ResultsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.rows.next() {
            return Some(Ok(row));
        }
        match self.read() {
            Ok(rows) => {
                self.rows = rows.into_iter();
                self.rows.next().map(Ok)
            }
            Err(error) => {
                (self.columns, self.next_group) = (None, usize::MAX);
                let what = format!("damaged in the middle ({error})");
                Some(Err(ResultsError::damaged(&self.path, what)))
            }
        }
    }
}

impl Flows {
    /// Returns the next rows; empty at the end of the file.
    fn read(&mut self) -> ParquetResult<Vec<StoredFlow>> {
        loop {
            if let Some(columns) = self.columns.as_mut().filter(|columns| columns.left > 0) {
                return columns.read();
            }
            if self.next_group >= self.reader.num_row_groups() {
                return Ok(Vec::new());
            }
            self.columns = Some(Columns::open(&*self.reader.get_row_group(self.next_group)?)?);
            self.next_group += 1;
        }
    }
}

/// The columns of a row group, all read up to the same row.
struct Columns {
    /// Number of rows not read yet.
    left: usize,
    /// Columns of series and case.
    labels: Vec<ColumnReaderImpl<ByteArrayType>>,
    longs: Vec<ColumnReaderImpl<Int64Type>>,
    ints: Vec<ColumnReaderImpl<Int32Type>>,
    finish: ColumnReaderImpl<Int64Type>,
    measured: ColumnReaderImpl<BoolType>,
    /// Series and case of the latest row.
    names: [Arc<str>; 2],
}

impl Columns {
    fn open(group: &dyn RowGroupReader) -> ParquetResult<Self> {
        let rows = usize::try_from(group.metadata().num_rows());
        Ok(Self {
            left: rows.map_err(|_| ParquetError::General("negative row count".into()))?,
            labels: [0, 1].into_iter().map(|index| column(group, index)).collect::<ParquetResult<_>>()?,
            longs: [2, 3, 10, 11, 12, 15]
                .into_iter()
                .map(|index| column(group, index))
                .collect::<ParquetResult<_>>()?,
            ints: [4, 5, 6, 7, 17].into_iter().map(|index| column(group, index)).collect::<ParquetResult<_>>()?,
            finish: column(group, 13)?,
            measured: column(group, 18)?,
            names: ["".into(), "".into()],
        })
    }

    fn read(&mut self) -> ParquetResult<Vec<StoredFlow>> {
        let count = self.left.min(PAGE);
        self.left -= count;
        let labels: [Vec<ByteArray>; 2] = several(&mut self.labels, count, |name| name)?;
        let [seed, id, size, packets, start, ideal] = several(&mut self.longs, count, i64::cast_unsigned)?;
        let [workload, repetition, src, dst, spurious] = several(&mut self.ints, count, i32::cast_unsigned)?;
        let finish = optional(&mut self.finish, count)?;
        let measured = required(&mut self.measured, count)?;

        let mut rows = Vec::with_capacity(count);
        for at in 0..count {
            for (name, found) in self.names.iter_mut().zip(&labels) {
                if found[at].data() != name.as_bytes() {
                    *name = found[at].as_utf8()?.into();
                }
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
            let [series, case] = self.names.clone();
            rows.push(StoredFlow { series, case, seed: seed[at], flow });
        }
        Ok(rows)
    }
}

fn column<T: DataType>(group: &dyn RowGroupReader, index: usize) -> ParquetResult<ColumnReaderImpl<T>> {
    group.get_column_reader(index).map(get_typed_column_reader::<T>)
}

fn several<T: DataType, U, const N: usize>(
    columns: &mut [ColumnReaderImpl<T>],
    count: usize,
    of: impl Fn(T::T) -> U,
) -> ParquetResult<[Vec<U>; N]> {
    let mut found = [const { Vec::new() }; N];
    for (values, column) in found.iter_mut().zip(columns) {
        *values = required(column, count)?.into_iter().map(&of).collect();
    }
    Ok(found)
}

fn required<T: DataType>(column: &mut ColumnReaderImpl<T>, count: usize) -> ParquetResult<Vec<T::T>> {
    let mut values = Vec::with_capacity(count);
    let (records, ..) = column.read_records(count, None, None, &mut values)?;
    complete(records, count)?;
    Ok(values)
}

fn optional<T: DataType>(column: &mut ColumnReaderImpl<T>, count: usize) -> ParquetResult<Vec<Option<T::T>>> {
    let (mut values, mut present) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (records, ..) = column.read_records(count, Some(&mut present), None, &mut values)?;
    complete(records, count)?;
    let mut values = values.into_iter();
    Ok(present.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}

fn complete(found: usize, promised: usize) -> ParquetResult<()> {
    if found == promised {
        return Ok(());
    }
    Err(ParquetError::EOF(format!("{found} rows where {promised} were promised")))
}
