//! One Parquet file in the making.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::schema::Table;
use crate::ResultsError;

/// A file of one table that grows by row groups.
pub(super) struct Part {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
}

impl Part {
    /// Creates or replaces the file.
    pub(super) fn create(path: &Path, table: Table) -> Result<Self, ResultsError> {
        let file = File::create(path).map_err(|error| ResultsError::io(path, "create it", &error))?;
        let writer = SerializedFileWriter::new(file, table.schema(), Arc::new(properties()))
            .map_err(|error| ResultsError::write(path, &error))?;
        Ok(Self { path: path.into(), writer })
    }

    /// Writes one row group; `columns` writes every column of it, in the schema's order.
    pub(super) fn write_group<Row>(
        &mut self,
        rows: &[Row],
        columns: impl FnOnce(&mut Group<'_, Row>) -> ParquetResult<()>,
    ) -> Result<(), ResultsError> {
        let write = || {
            let mut group = Group { rows, writer: self.writer.next_row_group()? };
            columns(&mut group)?;
            group.writer.close().map(drop)
        };
        write().map_err(|error| ResultsError::write(&self.path, &error))
    }

    /// Copies the row groups of another file of the same table.
    pub(super) fn splice(&mut self, from: &Path, table: Table) -> Result<(), ResultsError> {
        super::merge::splice(&mut self.writer, &self.path, from, table)
    }

    /// Writes the footer, without which the file is unreadable.
    pub(super) fn close(self) -> Result<(), ResultsError> {
        self.writer.close().map(drop).map_err(|error| ResultsError::write(&self.path, &error))
    }
}

/// One row group in the making: each call writes the next column, taken from all rows.
pub(super) struct Group<'a, Row> {
    rows: &'a [Row],
    writer: SerializedRowGroupWriter<'a, File>,
}

impl<Row> Group<'_, Row> {
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
        self.column::<T>(|writer| writer.write_batch(&values, None, None))
    }

    fn optional<T: DataType>(&mut self, of: impl Fn(&Row) -> Option<T::T>) -> ParquetResult<()> {
        let mut values = Vec::with_capacity(self.rows.len());
        let mut present = Vec::with_capacity(self.rows.len());
        for value in self.rows.iter().map(of) {
            present.push(i16::from(value.is_some()));
            values.extend(value);
        }
        self.column::<T>(|writer| writer.write_batch(&values, Some(&present), None))
    }

    fn column<T: DataType>(
        &mut self,
        write: impl FnOnce(&mut ColumnWriterImpl<'_, T>) -> ParquetResult<usize>,
    ) -> ParquetResult<()> {
        let Some(mut column) = self.writer.next_column()? else {
            return Err(ParquetError::General("more columns than the schema has".into()));
        };
        write(column.typed::<T>())?;
        column.close()
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Indexes of pages are kept in memory until the file is closed, and nobody reads them here:
        // without them a long run costs a few hundred bytes per row group and column.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("selvedge ", env!("CARGO_PKG_VERSION")).into())
        .build()
}
