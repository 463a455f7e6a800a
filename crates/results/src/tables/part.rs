//! A Parquet file in construction.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::{Arc, Mutex};

use parquet::basic::{Compression, Encoding, Type};
use parquet::column::writer::{
    ColumnCloseResult, ColumnWriter, ColumnWriterImpl, get_column_writer, get_typed_column_writer_mut,
};
use parquet::data_type::{BoolType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, TypePtr};

use super::PAGE;
use super::digest::Digested;
use super::indexed::{Indexed, Real, Share};
use super::names::Name;
use super::schema::{Extra, Table};
use super::spill::{Chunk, PageSink, Spill, pages_of};
use super::squeeze::{Squeezer, compression};
use crate::ResultsError;

/// A file of one table that grows by pages and row groups.
pub(super) struct Part {
    path: PathBuf,
    table: Table,
    writer: SerializedFileWriter<Digested>,
    group: Option<RowGroup>,
    squeezer: Squeezer,
}

impl Part {
    /// Creates or replaces the file of a table; the columns in `extras` follow the table's own.
    pub(super) fn create(path: &Path, table: Table, extras: &[Extra]) -> Result<Self, ResultsError> {
        let file = File::create(path).map_err(|error| ResultsError::io(path, "create it", &error))?;
        let schema = table.schema(extras);
        let properties = Arc::new(properties(&schema));
        let writer = SerializedFileWriter::new(Digested::new(file), schema, properties)
            .map_err(|error| ResultsError::write(path, &error))?;
        let squeezer = Squeezer::new().map_err(|error| ResultsError::write(path, &error))?;
        Ok(Self { path: path.into(), table, writer, group: None, squeezer })
    }

    /// Adds rows; `columns` writes every column of a slice of them, in the schema's order.
    pub(super) fn write<Row>(
        &mut self,
        rows: &[Row],
        columns: impl Fn(&mut Columns<'_, Row>) -> ParquetResult<()>,
    ) -> Result<(), ResultsError> {
        let mut write = || {
            // Column by column: a column's dictionary then stays in the processor's cache for as many rows as possible.
            for rows in rows.chunks(PAGE) {
                let new = || RowGroup::new(&self.path, self.table, &self.writer, &self.squeezer);
                let group = self.group.get_or_insert_with(new);
                columns(&mut Columns { rows, columns: group.columns.iter_mut() })?;
                group.rows += rows.len();
                if group.rows >= self.table.rows_per_group() {
                    self.end_group()?;
                }
            }
            Ok(())
        };
        write().map_err(|error| ResultsError::write(&self.path, &error))
    }

    /// Copies the row groups of another file of this table.
    pub(super) fn splice(&mut self, from: &Path) -> Result<(), ResultsError> {
        super::merge::splice(&mut self.writer, &self.path, from, self.table)
    }

    /// Writes the present row group, and the footer, without which the file is unreadable. Returns a digest of the
    /// file.
    pub(super) fn close(mut self) -> Result<u64, ResultsError> {
        let ended = self.end_group().and_then(|()| {
            // Flushed here, because other methods report only that an error occurred, not which.
            self.writer.finish()?;
            Ok(self.writer.inner().digest())
        });
        ended.map_err(|error| ResultsError::write(&self.path, &error))
    }

    fn end_group(&mut self) -> ParquetResult<()> {
        self.group.take().map_or(Ok(()), |group| group.append_to(&mut self.writer))
    }
}

/// A row group in construction: its columns grow in parallel, and are stored one after another.
struct RowGroup {
    columns: Vec<Column>,
    spill: Arc<Mutex<Spill>>,
    rows: usize,
}

/// A column in construction.
enum Column {
    /// A column whose values are mostly different, or may be absent.
    Encoded(Box<ColumnWriter<'static>>),
    Texts(Indexed<Name>),
    Longs(Indexed<u64>),
    Ints(Indexed<u32>),
    Shares(Indexed<Share>),
    Reals(Indexed<Real>),
}

impl RowGroup {
    fn new(path: &Path, table: Table, writer: &SerializedFileWriter<Digested>, squeezer: &Squeezer) -> Self {
        let spill = Arc::new(Mutex::new(Spill::beside(path)));
        let column = |(number, descr): (u16, &ColumnDescPtr)| {
            let sink = PageSink::new(spill.clone(), number, squeezer.clone());
            let descr = descr.clone();
            match descr.physical_type() {
                Type::BYTE_ARRAY => Column::Texts(Indexed::new(descr, sink)),
                Type::INT64 if table.repeats_itself() => Column::Longs(Indexed::new(descr, sink)),
                Type::INT32 if table.repeats_itself() => Column::Ints(Indexed::new(descr, sink)),
                Type::FLOAT => Column::Shares(Indexed::new(descr, sink)),
                Type::DOUBLE if descr.max_def_level() == 0 => Column::Reals(Indexed::new(descr, sink)),
                _ => Column::Encoded(Box::new(get_column_writer(descr, writer.properties().clone(), Box::new(sink)))),
            }
        };
        let columns = (0..).zip(writer.schema_descr().columns()).map(column).collect();
        Self { columns, spill, rows: 0 }
    }

    fn append_to(self, writer: &mut SerializedFileWriter<Digested>) -> ParquetResult<()> {
        let mut group = writer.next_row_group()?;
        for (number, column) in (0..).zip(self.columns) {
            let column = column.close()?;
            let mut pages = pages_of(&self.spill, number);
            if column.metadata.dictionary_page_offset().is_some() {
                // The dictionary page was written last.
                pages.rotate_right(1);
            }
            group.append_column(&Chunk::new(&self.spill, &pages), column)?;
        }
        group.close().map(drop)
    }
}

impl Column {
    fn close(self) -> ParquetResult<ColumnCloseResult> {
        match self {
            Self::Encoded(writer) => {
                let mut column = writer.close()?;
                column.metadata = column.metadata.into_builder().set_compression(compression()).build()?;
                Ok(column)
            }
            Self::Texts(column) => column.close(),
            Self::Longs(column) => column.close(),
            Self::Ints(column) => column.close(),
            Self::Shares(column) => column.close(),
            Self::Reals(column) => column.close(),
        }
    }
}

/// Writes columns of some rows: each call writes the next column, from all of them.
pub(super) struct Columns<'a, Row> {
    rows: &'a [Row],
    columns: slice::IterMut<'a, Column>,
}

impl<'a, Row> Columns<'a, Row> {
    /// Splits the rows where one is not the `same` as the one before; returns each part's first row and length.
    pub(super) fn parts(&self, same: impl Fn(&Row, &Row) -> bool) -> Vec<(&'a Row, usize)> {
        self.rows.chunk_by(same).map(|rows| (&rows[0], rows.len())).collect()
    }
    /// Returns the rows as one part.
    pub(super) fn whole(&self) -> Vec<(&'a Row, usize)> {
        self.rows.first().map(|row| (row, self.rows.len())).into_iter().collect()
    }
    /// Writes a column of texts that are constant in each of these parts.
    pub(super) fn text_of<'t>(&mut self, parts: &[(&Row, usize)], of: impl Fn(&Row) -> &'t Name) -> ParquetResult<()> {
        match self.next()? {
            Column::Texts(column) => parts.iter().try_for_each(|&(row, count)| column.push_run(of(row), count)),
            _ => Err(other_type("texts")),
        }
    }
    /// Writes a column of texts.
    pub(super) fn text<'t>(&mut self, of: impl Fn(&Row) -> &'t Name) -> ParquetResult<()> {
        match self.next()? {
            Column::Texts(column) => self.rows.iter().try_for_each(|row| column.push(of(row))),
            _ => Err(other_type("texts")),
        }
    }
    /// Writes a column of 64-bit numbers.
    pub(super) fn long(&mut self, of: impl Fn(&Row) -> u64) -> ParquetResult<()> {
        match self.next()? {
            Column::Longs(column) => column.extend(self.rows.iter().map(of)),
            Column::Encoded(writer) => required::<_, Int64Type>(self.rows, writer, |row| of(row).cast_signed()),
            _ => Err(other_type("64-bit numbers")),
        }
    }
    /// Writes a column of 64-bit numbers that are constant in each of these parts.
    pub(super) fn long_of(&mut self, parts: &[(&Row, usize)], of: impl Fn(&Row) -> u64) -> ParquetResult<()> {
        match self.next()? {
            Column::Longs(column) => parts.iter().try_for_each(|&(row, count)| column.push_run(&of(row), count)),
            _ => Err(other_type("64-bit numbers that repeat themselves")),
        }
    }
    /// Writes a column of 32-bit numbers that are constant in each of these parts.
    pub(super) fn int_of(&mut self, parts: &[(&Row, usize)], of: impl Fn(&Row) -> u32) -> ParquetResult<()> {
        match self.next()? {
            Column::Ints(column) => parts.iter().try_for_each(|&(row, count)| column.push_run(&of(row), count)),
            _ => Err(other_type("32-bit numbers that repeat themselves")),
        }
    }
    /// Writes a column of 32-bit numbers.
    pub(super) fn int(&mut self, of: impl Fn(&Row) -> u32) -> ParquetResult<()> {
        match self.next()? {
            Column::Ints(column) => column.extend(self.rows.iter().map(of)),
            Column::Encoded(writer) => required::<_, Int32Type>(self.rows, writer, |row| of(row).cast_signed()),
            _ => Err(other_type("32-bit numbers")),
        }
    }
    /// Writes a column of numbers from 0 to 1.
    pub(super) fn share(&mut self, of: impl Fn(&Row) -> f32) -> ParquetResult<()> {
        match self.next()? {
            Column::Shares(column) => column.extend(self.rows.iter().map(|row| Share::new(of(row)))),
            _ => Err(other_type("shares")),
        }
    }
    /// Writes a column of floating-point numbers.
    pub(super) fn real(&mut self, of: impl Fn(&Row) -> f64) -> ParquetResult<()> {
        match self.next()? {
            Column::Reals(column) => column.extend(self.rows.iter().map(|row| Real::new(of(row)))),
            _ => Err(other_type("numbers with a fraction")),
        }
    }
    /// Writes a column of floating-point numbers that are constant in each of these parts.
    pub(super) fn real_of(&mut self, parts: &[(&Row, usize)], of: impl Fn(&Row) -> f64) -> ParquetResult<()> {
        match self.next()? {
            Column::Reals(column) => {
                parts.iter().try_for_each(|&(row, count)| column.push_run(&Real::new(of(row)), count))
            }
            _ => Err(other_type("numbers with a fraction")),
        }
    }
    /// Writes a column of truth values.
    pub(super) fn flag(&mut self, of: impl Fn(&Row) -> bool) -> ParquetResult<()> {
        required::<_, BoolType>(self.rows, self.next_encoded()?, of)
    }
    /// Writes a column of 64-bit numbers that may be absent.
    pub(super) fn optional_long(&mut self, of: impl Fn(&Row) -> Option<u64>) -> ParquetResult<()> {
        optional::<_, Int64Type>(self.rows, self.next_encoded()?, |row| of(row).map(u64::cast_signed))
    }
    /// Writes a column of floating-point numbers that may be absent.
    pub(super) fn optional_double(&mut self, of: impl Fn(&Row) -> Option<f64>) -> ParquetResult<()> {
        optional::<_, DoubleType>(self.rows, self.next_encoded()?, of)
    }

    fn next(&mut self) -> ParquetResult<&'a mut Column> {
        self.columns.next().ok_or_else(|| ParquetError::General("more columns than the schema has".into()))
    }

    fn next_encoded(&mut self) -> ParquetResult<&'a mut ColumnWriter<'static>> {
        match self.next()? {
            Column::Encoded(writer) => Ok(writer),
            _ => Err(other_type("values that may all be different")),
        }
    }
}

fn required<Row, T: DataType>(
    rows: &[Row],
    writer: &mut ColumnWriter<'static>,
    of: impl Fn(&Row) -> T::T,
) -> ParquetResult<()> {
    let values: Vec<T::T> = rows.iter().map(of).collect();
    typed::<T>(writer).write_batch(&values, None, None).map(drop)
}

fn optional<Row, T: DataType>(
    rows: &[Row],
    writer: &mut ColumnWriter<'static>,
    of: impl Fn(&Row) -> Option<T::T>,
) -> ParquetResult<()> {
    let mut values = Vec::with_capacity(rows.len());
    let mut present = Vec::with_capacity(rows.len());
    for value in rows.iter().map(of) {
        present.push(i16::from(value.is_some()));
        values.extend(value);
    }
    typed::<T>(writer).write_batch(&values, Some(&present), None).map(drop)
}

fn typed<'w, T: DataType>(writer: &'w mut ColumnWriter<'static>) -> &'w mut ColumnWriterImpl<'static, T> {
    get_typed_column_writer_mut::<T>(writer)
}

fn other_type(what: &str) -> ParquetError {
    ParquetError::General(format!("the schema has no column of {what} here"))
}

fn properties(schema: &TypePtr) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        // The sinks compress pages, and columns that have a dictionary build it themselves.
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_data_page_row_count_limit(PAGE)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Single pages of these files are not looked up, and an index of all pages would be kept in memory until the
        // end of its row group.
        .set_offset_index_disabled(true)
        .set_created_by(concat!("selvedge ", env!("CARGO_PKG_VERSION")).into());
    for column in SchemaDescriptor::new(schema.clone()).columns() {
        if let Type::INT32 | Type::INT64 = column.physical_type() {
            properties = properties.set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}
