//! Merges many files of one table into one.

use std::fs::{self, File};
use std::iter;
use std::path::Path;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;

use super::digest::{Digest, Digested};
use super::part::Part;
use super::schema::Table;
use crate::ResultsError;

/// Joins part files into `target` in the given order, without decoding a row. `target` appears when it is complete.
///
/// # Errors
/// Returns an error that names the file and the remedy, when a part is missing, truncated or of another table, or
/// `target` cannot be written.
pub fn merge<P: AsRef<Path>>(
    parts: impl IntoIterator<Item = P>,
    target: &Path,
    table: Table,
) -> Result<(), ResultsError> {
    let partial = target.with_extension("parquet.partial");
    let mut parts = parts.into_iter().peekable();
    let write = || {
        let Some(first) = parts.next() else { return Part::create(&partial, table, &[])?.close().map(drop) };
        // A single part is linked instead of copied, which avoids holding its row groups' metadata a second time.
        if parts.peek().is_none() && is_linked(first.as_ref(), &partial, table)? {
            return Ok(());
        }
        let extras = table.extras_of(table.open(first.as_ref())?.metadata().file_metadata().schema());
        let mut joined = Part::create(&partial, table, &extras)?;
        for part in iter::once(first).chain(parts) {
            joined.splice(part.as_ref())?;
        }
        joined.close().map(drop)
    };
    let written: Result<(), ResultsError> = write();
    if written.is_err() {
        // The present error matters more than a leftover file that cannot be removed.
        let _ = fs::remove_file(&partial);
        return written;
    }
    fs::rename(&partial, target).map_err(|error| ResultsError::io(target, "put it in place", &error))?;
    // Renaming between two names of one file leaves both: `target` was in place already.
    let _ = fs::remove_file(&partial);
    Ok(())
}

/// Checks that a part is the file whose `digest` was taken when it was written.
pub(crate) fn check_part(path: &Path, table: Table, digest: u64) -> Result<(), ResultsError> {
    check_whole(path, table)?;
    if Digest::of_file(path)? != digest {
        return Err(ResultsError::damaged(path, "not as it was written: it is damaged, or another file has its name"));
    }
    Ok(())
}

/// Checks that a part is complete, without reading its rows.
fn check_whole(path: &Path, table: Table) -> Result<(), ResultsError> {
    let (reader, _, len) = open(path, table)?;
    check_extents(path, reader.metadata().row_groups(), len)
}

/// Creates a second name for a valid file; returns false where the file system has no hard links.
fn is_linked(from: &Path, to: &Path, table: Table) -> Result<bool, ResultsError> {
    check_whole(from, table)?;
    // A file left by an interrupted run.
    let _ = fs::remove_file(to);
    Ok(fs::hard_link(from, to).is_ok())
}

/// Appends all row groups of `from`.
pub(super) fn splice(
    writer: &mut SerializedFileWriter<Digested>,
    target: &Path,
    from: &Path,
    table: Table,
) -> Result<(), ResultsError> {
    let (reader, source, len) = open(from, table)?;
    check_extents(from, reader.metadata().row_groups(), len)?;
    let schema = reader.metadata().file_metadata().schema();
    if table.extras_of(schema) != table.extras_of(writer.schema_descr().root_schema()) {
        return Err(ResultsError::damaged(from, "its columns are not those of the study's other parts"));
    }
    for group in reader.metadata().row_groups() {
        copy_group(writer, group, &source).map_err(|error| ResultsError::write(target, &error))?;
    }
    Ok(())
}

/// Opens a part; returns its footer's reader, its file, and its length in bytes.
fn open(from: &Path, table: Table) -> Result<(SerializedFileReader<File>, File, u64), ResultsError> {
    let reader = table.open(from)?;
    let source = File::open(from).map_err(|error| ResultsError::io(from, "open it", &error))?;
    let len = source.metadata().map_err(|error| ResultsError::io(from, "read it", &error))?.len();
    Ok((reader, source, len))
}

fn check_extents(from: &Path, groups: &[RowGroupMetaData], len: u64) -> Result<(), ResultsError> {
    let checked = groups.iter().try_for_each(|group| check_extent(group, len));
    checked.map_err(|what| ResultsError::damaged(from, what))
}

/// Checks that a row group lies inside the file, because a footer may promise more than the file holds.
fn check_extent(group: &RowGroupMetaData, len: u64) -> Result<(), String> {
    let inside = |start: i64, size: i64| {
        u64::try_from(start).ok().zip(u64::try_from(size).ok()).and_then(|(start, size)| start.checked_add(size))
    };
    for column in group.columns() {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        if inside(start, column.compressed_size()).is_none_or(|end| end > len) {
            return Err(format!("damaged: its footer names data beyond its {len} bytes"));
        }
    }
    Ok(())
}

fn copy_group(
    writer: &mut SerializedFileWriter<Digested>,
    group: &RowGroupMetaData,
    source: &File,
) -> Result<(), ParquetError> {
    let mut copy = writer.next_row_group()?;
    for column in group.columns() {
        copy.append_column(
            source,
            ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            },
        )?;
    }
    copy.close().map(drop)
}
