//! Pages of a row group under way: the latest in memory, the others in a file that has no name.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result as ParquetResult;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

/// Bytes that stay in memory: a short run needs no file.
const IN_MEMORY: usize = 1 << 18;

/// The pages of all columns, in the order in which they were filled.
pub(super) struct Spill {
    path: PathBuf,
    file: Option<File>,
    /// How much of them is in the file.
    spilled: u64,
    /// The rest.
    recent: Vec<u8>,
}

impl Spill {
    /// Of the row group that `part` is about to get: where there is room for results, there is for pages.
    pub(super) fn beside(part: &Path) -> Self {
        Self { path: part.with_extension("spill"), file: None, spilled: 0, recent: Vec::new() }
    }

    fn len(&self) -> u64 {
        self.spilled + self.recent.len() as u64
    }

    fn spill(&mut self) -> io::Result<&mut File> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(nameless(&self.path)?),
        };
        file.seek(SeekFrom::Start(self.spilled))?;
        file.write_all(&self.recent)?;
        self.spilled += self.recent.len() as u64;
        self.recent.clear();
        Ok(file)
    }

    fn page(&mut self, at: &PageLocation) -> io::Result<Vec<u8>> {
        let (start, len) = (at.offset.cast_unsigned(), at.compressed_page_size.cast_unsigned() as usize);
        if self.file.is_none() {
            return Ok(self.recent[start as usize..][..len].to_vec());
        }
        // Its begin may be in the file, and its end in memory.
        let file = self.spill()?;
        let mut page = vec![0; len];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut page)?;
        Ok(page)
    }
}

impl Write for Spill {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.recent.len() >= IN_MEMORY {
            self.spill()?;
        }
        self.recent.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is gone when nobody has it open any more, however the process ends.
fn nameless(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    // Where an open file cannot be removed, it goes with the folder of parts.
    let _ = fs::remove_file(path);
    Ok(file)
}

/// Takes the pages of one column.
pub(super) struct PageSink(Arc<Mutex<Spill>>);

impl PageSink {
    pub(super) fn new(spill: Arc<Mutex<Spill>>) -> Self {
        Self(spill)
    }
}

impl PageWriter for PageSink {
    fn write_page(&mut self, page: CompressedPage) -> ParquetResult<PageWriteSpec> {
        let mut spill = lock(&self.0);
        let offset = spill.len();
        let mut sink = TrackedWrite::new(&mut *spill);
        let written = SerializedPageWriter::new(&mut sink).write_page(page)?;
        sink.flush()?;
        Ok(PageWriteSpec { offset, ..written })
    }
    fn close(&mut self) -> ParquetResult<()> {
        Ok(())
    }
}

/// Where the pages of a column are, taken out of its index: the file has none.
pub(super) fn take_locations(column: &mut ColumnCloseResult) -> Vec<PageLocation> {
    let mut pages = column.offset_index.take().map(|index| index.page_locations).unwrap_or_default();
    // A dictionary stands right before the first page, and not in the index.
    if let (Some(offset), Some(first)) = (column.metadata.dictionary_page_offset(), pages.first()) {
        let compressed_page_size = (first.offset - offset) as i32;
        pages.insert(0, PageLocation { offset, compressed_page_size, first_row_index: 0 });
    }
    pages
}

/// The pages of one column, as if they stood one after another.
pub(super) struct Chunk<'a> {
    spill: &'a Mutex<Spill>,
    pages: &'a [PageLocation],
}

impl<'a> Chunk<'a> {
    pub(super) fn new(spill: &'a Mutex<Spill>, pages: &'a [PageLocation]) -> Self {
        Self { spill, pages }
    }
}

impl<'a> ChunkReader for Chunk<'a> {
    type T = Pages<'a>;

    fn get_read(&self, start: u64) -> ParquetResult<Pages<'a>> {
        let before = self.pages.partition_point(|page| page.offset.cast_unsigned() < start);
        Ok(Pages { spill: self.spill, pages: self.pages[before..].iter(), page: Cursor::default() })
    }
    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let mut bytes = vec![0; length];
        self.get_read(start)?.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Length for Chunk<'_> {
    fn len(&self) -> u64 {
        self.pages.iter().map(|page| u64::from(page.compressed_page_size.cast_unsigned())).sum()
    }
}

/// Reads one page after the other.
pub(super) struct Pages<'a> {
    spill: &'a Mutex<Spill>,
    pages: slice::Iter<'a, PageLocation>,
    page: Cursor<Vec<u8>>,
}

impl Read for Pages<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_read = self.page.position() == self.page.get_ref().len() as u64;
        if is_read && let Some(next) = self.pages.next() {
            self.page = Cursor::new(lock(self.spill).page(next)?);
        }
        self.page.read(buffer)
    }
}

fn lock(spill: &Mutex<Spill>) -> MutexGuard<'_, Spill> {
    spill.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use selvedge_testkit::Scratch;

    use super::*;

    /// Two columns, whose pages of 60 kB come in two pieces; some are in memory, in the file, or in both.
    #[test]
    fn pages_come_back_wherever_they_are() {
        let folder = Scratch::new("results-spill");
        for count in [0, 1, 4, 5, 9, 20] {
            let spill = Mutex::new(Spill::beside(&folder.join("part.parquet")));
            let mut columns = [Vec::new(), Vec::new()];
            for page in 0..count {
                let offset = lock(&spill).len().cast_signed();
                (0..2).for_each(|_| lock(&spill).write_all(&[page; 30_000]).unwrap());
                let location = PageLocation { offset, compressed_page_size: 60_000, first_row_index: 0 };
                columns[usize::from(page % 2)].push(location);
            }
            for (first, pages) in columns.into_iter().enumerate() {
                let (start, len) = (pages.first().map_or(0, |page| page.offset as u64), pages.len() * 60_000);
                let chunk = Chunk::new(&spill, &pages);
                assert_eq!(chunk.len(), len as u64);
                let mut found = Vec::new();
                chunk.get_read(start).unwrap().read_to_end(&mut found).unwrap();
                let expected = (first..usize::from(count)).step_by(2).flat_map(|page| [page as u8; 60_000]);
                assert!(found.into_iter().eq(expected), "{count} pages, column {first}");
            }
            assert_eq!(lock(&spill).file.is_some(), count >= 5);
            assert!(!folder.join("part.spill").exists());
        }
    }
}
