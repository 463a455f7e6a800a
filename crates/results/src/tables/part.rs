//! One Parquet file in the making.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::{Arc, Mutex};

use parquet::basic::{Compression, Encoding, Type};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl, get_column_writer, get_typed_column_writer_mut};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;

use super::PAGE;
use super::schema::Table;
use super::spill::{Chunk, PageSink, Spill, pages_of};
use super::squeeze::{Squeezer, compression};
use crate::ResultsError;

/// Rows that are written at a time; pages are a multiple.
pub(super) const BATCH: usize = PAGE / 8;
/// Bytes of a dictionary, at most: a column of more values does without from there on.
const DICTIONARY: usize = 1 << 18;

/// A file of one table that grows by pages and row groups.
pub(super) struct Part {
    path: PathBuf,
    table: Table,
    writer: SerializedFileWriter<File>,
    group: Option<RowGroup>,
    /// Who compresses its pages, unless its columns do.
    squeezer: Option<Squeezer>,
}

impl Part {
    /// Creates or replaces the file.
    pub(super) fn create(path: &Path, table: Table) -> Result<Self, ResultsError> {
        let file = File::create(path).map_err(|error| ResultsError::io(path, "create it", &error))?;
        let writer = SerializedFileWriter::new(file, table.schema(), Arc::new(properties(table)))
            .map_err(|error| ResultsError::write(path, &error))?;
        let squeezer = (!table.has_dictionaries()).then(Squeezer::new).transpose();
        let squeezer = squeezer.map_err(|error| ResultsError::write(path, &error))?;
        Ok(Self { path: path.into(), table, writer, group: None, squeezer })
    }

    /// Adds rows; `columns` writes every column of some of them, in the schema's order.
    pub(super) fn write<Row>(
        &mut self,
        rows: &[Row],
        columns: impl Fn(&mut Columns<'_, Row>) -> ParquetResult<()>,
    ) -> Result<(), ResultsError> {
        let mut write = || {
            for rows in rows.chunks(BATCH) {
                let new = || RowGroup::new(&self.path, &self.writer, self.squeezer.as_ref());
                let group = self.group.get_or_insert_with(new);
                columns(&mut Columns { rows, writers: group.columns.iter_mut() })?;
                group.rows += rows.len();
                if group.rows >= self.table.rows_per_group() {
                    self.end_group()?;
                }
            }
            Ok(())
        };
        write().map_err(|error| ResultsError::write(&self.path, &error))
    }

    /// Copies the row groups of another file of the same table.
    pub(super) fn splice(&mut self, from: &Path) -> Result<(), ResultsError> {
        super::merge::splice(&mut self.writer, &self.path, from, self.table)
    }

    /// Writes the row group under way, and the footer, without which the file is unreadable.
    pub(super) fn close(mut self) -> Result<(), ResultsError> {
        let ended = self.end_group().and_then(|()| self.writer.finish());
        ended.map(drop).map_err(|error| ResultsError::write(&self.path, &error))
    }

    fn end_group(&mut self) -> ParquetResult<()> {
        self.group.take().map_or(Ok(()), |group| group.append_to(&mut self.writer))
    }
}

/// A row group in the making: its columns grow side by side, and in the file stand one after another.
struct RowGroup {
    columns: Vec<ColumnWriter<'static>>,
    spill: Arc<Mutex<Spill>>,
    rows: usize,
}

impl RowGroup {
    fn new(path: &Path, writer: &SerializedFileWriter<File>, squeezer: Option<&Squeezer>) -> Self {
        let spill = Arc::new(Mutex::new(Spill::beside(path)));
        let column = |(number, descr): (u16, &ColumnDescPtr)| {
            let sink = PageSink::new(spill.clone(), number, squeezer.cloned());
            get_column_writer(descr.clone(), writer.properties().clone(), Box::new(sink))
        };
        let columns = (0..).zip(writer.schema_descr().columns()).map(column).collect();
        Self { columns, spill, rows: 0 }
    }

    fn append_to(self, writer: &mut SerializedFileWriter<File>) -> ParquetResult<()> {
        let mut group = writer.next_row_group()?;
        for (number, column) in (0..).zip(self.columns) {
            let mut column = column.close()?;
            column.metadata = column.metadata.into_builder().set_compression(compression()).build()?;
            let pages = pages_of(&self.spill, number);
            group.append_column(&Chunk::new(&self.spill, &pages), column)?;
        }
        group.close().map(drop)
    }
}

/// Some rows: each call writes the next column, taken from all of them.
pub(super) struct Columns<'a, Row> {
    rows: &'a [Row],
    writers: slice::IterMut<'a, ColumnWriter<'static>>,
}

impl<Row> Columns<'_, Row> {
    /// A column of texts.
    pub(super) fn text(&mut self, of: impl Fn(&Row) -> ByteArray) -> ParquetResult<()> {
        self.required::<ByteArrayType>(of)
    }
    /// A column of 64-bit numbers.
    pub(super) fn long(&mut self, of: impl Fn(&Row) -> u64) -> ParquetResult<()> {
        self.required::<Int64Type>(|row| of(row).cast_signed())
    }
    /// A column of 32-bit numbers.
    pub(super) fn int(&mut self, of: impl Fn(&Row) -> u32) -> ParquetResult<()> {
        self.required::<Int32Type>(|row| of(row).cast_signed())
    }
    /// A column of floating-point numbers of few digits.
    pub(super) fn float(&mut self, of: impl Fn(&Row) -> f32) -> ParquetResult<()> {
        self.required::<FloatType>(of)
    }
    /// A column of truth values.
    pub(super) fn flag(&mut self, of: impl Fn(&Row) -> bool) -> ParquetResult<()> {
        self.required::<BoolType>(of)
    }
    /// A column of 64-bit numbers that may be absent.
    pub(super) fn optional_long(&mut self, of: impl Fn(&Row) -> Option<u64>) -> ParquetResult<()> {
        self.optional::<Int64Type>(|row| of(row).map(u64::cast_signed))
    }
    /// A column of floating-point numbers that may be absent.
    pub(super) fn optional_double(&mut self, of: impl Fn(&Row) -> Option<f64>) -> ParquetResult<()> {
        self.optional::<DoubleType>(of)
    }

    fn required<T: DataType>(&mut self, of: impl Fn(&Row) -> T::T) -> ParquetResult<()> {
        let values: Vec<T::T> = self.rows.iter().map(of).collect();
        self.next::<T>()?.write_batch(&values, None, None).map(drop)
    }

    fn optional<T: DataType>(&mut self, of: impl Fn(&Row) -> Option<T::T>) -> ParquetResult<()> {
        let mut values = Vec::with_capacity(self.rows.len());
        let mut present = Vec::with_capacity(self.rows.len());
        for value in self.rows.iter().map(of) {
            present.push(i16::from(value.is_some()));
            values.extend(value);
        }
        self.next::<T>()?.write_batch(&values, Some(&present), None).map(drop)
    }

    fn next<T: DataType>(&mut self) -> ParquetResult<&mut ColumnWriterImpl<'static, T>> {
        match self.writers.next() {
            Some(writer) => Ok(get_typed_column_writer_mut::<T>(writer)),
            None => Err(ParquetError::General("more columns than the schema has".into())),
        }
    }
}

fn properties(table: Table) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(if table.has_dictionaries() { compression() } else { Compression::UNCOMPRESSED })
        .set_dictionary_enabled(table.has_dictionaries())
        .set_dictionary_page_size_limit(DICTIONARY)
        .set_data_page_row_count_limit(PAGE)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Nobody looks for single pages in these files, and an index of all would wait in memory for the end of its
        // group.
        .set_offset_index_disabled(true)
        .set_created_by(concat!("selvedge ", env!("CARGO_PKG_VERSION")).into());
    for column in table.columns() {
        if let Type::INT32 | Type::INT64 = column.physical_type() {
            properties = properties.set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}
