//! Reader of any columns of a table, page by page.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Serialize, Serializer};

use super::PAGE;
use super::schema::Table;
use crate::ResultsError;

/// A value of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// No value, such as the end of a flow that never finished.
    Missing,
    /// A text.
    Text(ByteArray),
    /// A whole number; none of the tables has negative ones.
    Whole(u64),
    /// A number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
}

impl Cell {
    /// Returns a text; empty if the value is no text or not UTF-8.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(bytes) => bytes.as_utf8().unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns a whole number; 0 for other values.
    pub fn whole(&self) -> u64 {
        if let Self::Whole(number) = self { *number } else { 0 }
    }

    /// Returns any number; `None` for a text and for no value.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Self::Whole(number) => Some(number as f64),
            Self::Real(number) => Some(number),
            Self::Flag(flag) => Some(f64::from(u8::from(flag))),
            Self::Missing | Self::Text(_) => None,
        }
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => serializer.serialize_unit(),
            Self::Text(_) => serializer.serialize_str(self.text()),
            // Larger numbers would lose digits in a browser.
            Self::Whole(number) if *number > 1 << 53 => serializer.collect_str(number),
            Self::Whole(number) => serializer.serialize_u64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
        }
    }
}

/// An open table, of which some columns are read.
pub struct Scan {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    /// Names of all columns.
    names: Vec<String>,
}

impl Scan {
    /// Opens the file of a table.
    ///
    /// # Errors
    /// Returns an error when the file is missing, truncated, or another kind of table.
    pub fn open(table: Table, path: &Path) -> Result<Self, ResultsError> {
        let reader = table.open(path)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.name().to_owned()).collect();
        Ok(Self { path: path.into(), reader, names })
    }

    /// Returns the names of all columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().cast_unsigned()
    }

    /// Returns whether the values of a column are texts.
    pub fn is_text(&self, column: usize) -> bool {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.column(column).physical_type() == PhysicalType::BYTE_ARRAY
    }

    /// Calls `each` with the number of the first row and the values, column by column, of all pages of these columns;
    /// row groups that `skip` are not read. Ends when `each` returns false.
    ///
    /// # Errors
    /// Returns an error when the file is damaged in the middle.
    pub fn read(
        &self,
        columns: &[usize],
        skip: impl Fn(&Group<'_>) -> bool,
        mut each: impl FnMut(u64, &[Vec<Cell>]) -> bool,
    ) -> Result<(), ResultsError> {
        let mut read = || -> ParquetResult<()> {
            let mut first = 0;
            for at in 0..self.reader.num_row_groups() {
                let meta = self.reader.metadata().row_group(at);
                let rows =
                    usize::try_from(meta.num_rows()).map_err(|_| ParquetError::General("negative row count".into()))?;
                let group = Group { first, rows: rows as u64, meta };
                if !skip(&group) {
                    let group = self.reader.get_row_group(at)?;
                    let mut readers =
                        columns.iter().map(|&at| group.get_column_reader(at)).collect::<ParquetResult<Vec<_>>>()?;
                    let mut done = 0;
                    while done < rows {
                        let count = (rows - done).min(PAGE);
                        let cells =
                            readers.iter_mut().map(|column| cells(column, count)).collect::<ParquetResult<Vec<_>>>()?;
                        if !each(first + done as u64, &cells) {
                            return Ok(());
                        }
                        done += count;
                    }
                }
                first += rows as u64;
            }
            Ok(())
        };
        read().map_err(|error| self.damaged(&error))
    }

    /// Returns all columns of the rows with these numbers, in their order. Pages without such rows are not decoded.
    ///
    /// # Errors
    /// Returns an error when the file is damaged in the middle.
    pub fn rows_at(&self, wanted: &[u64]) -> Result<Vec<Vec<Cell>>, ResultsError> {
        let mut rows = vec![Vec::with_capacity(self.names.len()); wanted.len()];
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by_key(|&at| wanted[at]);
        let mut read = || -> ParquetResult<()> {
            let (mut first, mut order) = (0, &order[..]);
            for at in 0..self.reader.num_row_groups() {
                let end = first + self.reader.metadata().row_group(at).num_rows().cast_unsigned();
                let own;
                (own, order) = order.split_at(order.partition_point(|&at| wanted[at] < end));
                if !own.is_empty() {
                    let group = self.reader.get_row_group(at)?;
                    for column in 0..self.names.len() {
                        let (mut reader, mut next) = (group.get_column_reader(column)?, first);
                        for &at in own {
                            rows[at].push(cell_after(&mut reader, (wanted[at] - next) as usize)?);
                            next = wanted[at] + 1;
                        }
                    }
                }
                first = end;
            }
            Ok(())
        };
        read().map_err(|error| self.damaged(&error))?;
        Ok(rows)
    }

    fn damaged(&self, error: &ParquetError) -> ResultsError {
        ResultsError::damaged(&self.path, format!("damaged in the middle ({error})"))
    }
}

/// Returns the next value after `gap` others.
fn cell_after(column: &mut ColumnReader, gap: usize) -> ParquetResult<Cell> {
    match column {
        ColumnReader::BoolColumnReader(column) => drop(column.skip_records(gap)?),
        ColumnReader::Int32ColumnReader(column) => drop(column.skip_records(gap)?),
        ColumnReader::Int64ColumnReader(column) => drop(column.skip_records(gap)?),
        ColumnReader::FloatColumnReader(column) => drop(column.skip_records(gap)?),
        ColumnReader::DoubleColumnReader(column) => drop(column.skip_records(gap)?),
        ColumnReader::ByteArrayColumnReader(column) => drop(column.skip_records(gap)?),
        _ => {}
    }
    Ok(cells(column, 1)?.swap_remove(0))
}

/// A group of rows, before it is read.
pub struct Group<'a> {
    /// Number of the first row.
    pub first: u64,
    /// Number of rows.
    pub rows: u64,
    meta: &'a RowGroupMetaData,
}

impl Group<'_> {
    /// Returns whether no row of the group can have this text in a column.
    pub fn lacks_text(&self, column: usize, text: &str) -> bool {
        let Some(statistics) = self.meta.column(column).statistics() else { return false };
        let (least, most) = (statistics.min_bytes_opt(), statistics.max_bytes_opt());
        least.is_some_and(|least| text.as_bytes() < least) || most.is_some_and(|most| text.as_bytes() > most)
    }
}

/// Returns the next `count` values of a column.
fn cells(column: &mut ColumnReader, count: usize) -> ParquetResult<Vec<Cell>> {
    match column {
        ColumnReader::BoolColumnReader(column) => take(column, count, Cell::Flag),
        ColumnReader::Int32ColumnReader(column) => {
            take(column, count, |number| Cell::Whole(u64::from(number.cast_unsigned())))
        }
        ColumnReader::Int64ColumnReader(column) => take(column, count, |number| Cell::Whole(number.cast_unsigned())),
        ColumnReader::FloatColumnReader(column) => take(column, count, |number| Cell::Real(shortest(number))),
        ColumnReader::DoubleColumnReader(column) => take(column, count, Cell::Real),
        ColumnReader::ByteArrayColumnReader(column) => take(column, count, Cell::Text),
        _ => Err(ParquetError::General("a column of a type that no table has".into())),
    }
}

/// Returns the number that is written like `number`: 0.3, not 0.30000001192.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

fn take<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    count: usize,
    cell: impl Fn(T::T) -> Cell,
) -> ParquetResult<Vec<Cell>> {
    let (mut values, mut present) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (found, ..) = column.read_records(count, Some(&mut present), None, &mut values)?;
    if found != count {
        return Err(ParquetError::EOF(format!("{found} rows where {count} were promised")));
    }
    let mut values = values.into_iter().map(cell);
    // Columns whose values are all present have no levels.
    if present.is_empty() {
        return Ok(values.collect());
    }
    let cells = present.into_iter().map(|level| if level > 0 { values.next() } else { None });
    Ok(cells.map(|cell| cell.unwrap_or(Cell::Missing)).collect())
}
