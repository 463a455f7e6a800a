//! Pages of a row group in construction: the latest in memory, the others in an unnamed file.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};

use super::squeeze::Squeezer;

/// Number of bytes kept in memory: a short run needs no file.
const IN_MEMORY: usize = 1 << 17;

/// The pages of all columns, in the order in which they were filled.
pub(super) struct Spill {
    path: PathBuf,
    file: Option<File>,
    /// Number of bytes in the file.
    spilled: u64,
    /// Bytes that follow those in the file.
    recent: Vec<u8>,
    /// Column and length of each page. A table of millions of rows has thousands of pages, so entries are small.
    pages: Vec<(u16, u32)>,
}

impl Spill {
    /// Creates an empty store for a row group of `part`, in the same folder: space for results is space for pages.
    pub(super) fn beside(part: &Path) -> Self {
        Self { path: part.with_extension("spill"), file: None, spilled: 0, recent: Vec::new(), pages: Vec::new() }
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

    fn page(&mut self, at: Extent) -> io::Result<Vec<u8>> {
        let (start, len) = (at.offset, at.len as usize);
        if self.file.is_none() {
            return Ok(self.recent[start as usize..][..len].to_vec());
        }
        // The page may begin in the file and end in memory.
        let file = self.spill()?;
        let mut page = vec![0; len];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut page)?;
        Ok(page)
    }
}

impl Write for Spill {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.recent.len() + bytes.len() > IN_MEMORY {
            self.spill()?;
        }
        self.recent.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Position and length of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    offset: u64,
    len: u32,
}

/// Creates a file that vanishes when it is closed, however the process ends.
fn nameless(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    // On systems where an open file cannot be removed, it is removed with the folder of parts.
    let _ = fs::remove_file(path);
    Ok(file)
}

/// A writer of the pages of one column.
pub(super) struct PageSink {
    spill: Arc<Mutex<Spill>>,
    column: u16,
    squeezer: Squeezer,
}

impl PageSink {
    pub(super) fn new(spill: Arc<Mutex<Spill>>, column: u16, squeezer: Squeezer) -> Self {
        Self { spill, column, squeezer }
    }

    /// Compresses `bytes` and writes them as the page that `page` makes of the result.
    pub(super) fn write(&self, bytes: &[u8], page: impl FnOnce(Bytes) -> Page) -> ParquetResult<PageWriteSpec> {
        self.append(CompressedPage::new(page(self.squeezer.squeeze(bytes)?), bytes.len()))
    }

    /// Writes a compressed page.
    fn append(&self, page: CompressedPage) -> ParquetResult<PageWriteSpec> {
        let mut spill = lock(&self.spill);
        let offset = spill.len();
        let mut sink = TrackedWrite::new(&mut *spill);
        let written = SerializedPageWriter::new(&mut sink).write_page(page)?;
        sink.flush()?;
        drop(sink);
        let len = u32::try_from(spill.len() - offset).expect("pages are shorter than 4 GB");
        spill.pages.push((self.column, len));
        Ok(PageWriteSpec { offset, ..written })
    }
}

impl PageWriter for PageSink {
    fn write_page(&mut self, page: CompressedPage) -> ParquetResult<PageWriteSpec> {
        self.append(self.squeezer.squeeze_page(&page)?)
    }
    fn close(&mut self) -> ParquetResult<()> {
        Ok(())
    }
}

/// Returns the positions of a column's pages, in the order in which they were written.
pub(super) fn pages_of(spill: &Mutex<Spill>, column: u16) -> Vec<Extent> {
    let mut offset = 0;
    let spill = lock(spill);
    let extents = spill.pages.iter().map(|&(of, len)| {
        let extent = Extent { offset, len };
        offset += u64::from(len);
        (of, extent)
    });
    extents.filter(|(of, _)| *of == column).map(|(_, extent)| extent).collect()
}

/// The pages of one column, as one contiguous file.
pub(super) struct Chunk<'a> {
    spill: &'a Mutex<Spill>,
    pages: &'a [Extent],
}

impl<'a> Chunk<'a> {
    pub(super) fn new(spill: &'a Mutex<Spill>, pages: &'a [Extent]) -> Self {
        Self { spill, pages }
    }
}

impl<'a> ChunkReader for Chunk<'a> {
    type T = Pages<'a>;

    fn get_read(&self, start: u64) -> ParquetResult<Pages<'a>> {
        let before = self.pages.partition_point(|page| page.offset < start);
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
        self.pages.iter().map(|page| u64::from(page.len)).sum()
    }
}

/// A reader of pages, one after the other.
pub(super) struct Pages<'a> {
    spill: &'a Mutex<Spill>,
    pages: slice::Iter<'a, Extent>,
    page: Cursor<Vec<u8>>,
}

impl Read for Pages<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_read = self.page.position() == self.page.get_ref().len() as u64;
        if is_read && let Some(next) = self.pages.next() {
            self.page = Cursor::new(lock(self.spill).page(*next)?);
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

    /// Two columns with pages of 60 kB written in two halves, which are in memory, in the file, or in both.
    #[test]
    fn pages_come_back_wherever_they_are() {
        let folder = Scratch::new("results-spill");
        for count in [0, 1, 4, 5, 9, 20] {
            let spill = Mutex::new(Spill::beside(&folder.join("part.parquet")));
            for page in 0..count {
                (0..2).for_each(|_| lock(&spill).write_all(&[page; 30_000]).unwrap());
                lock(&spill).pages.push((u16::from(page % 2), 60_000));
            }
            for column in 0..2 {
                let pages = pages_of(&spill, column);
                let chunk = Chunk::new(&spill, &pages);
                let expected: Vec<u8> = (column as u8..count).step_by(2).flat_map(|page| [page; 60_000]).collect();
                assert_eq!(chunk.len(), expected.len() as u64);
                let mut found = Vec::new();
                chunk.get_read(u64::from(column) * 60_000).unwrap().read_to_end(&mut found).unwrap();
                assert!(found == expected, "{count} pages, column {column}");
            }
            assert_eq!(lock(&spill).file.is_some(), count >= 3);
            assert!(!folder.join("part.spill").exists());
        }
    }
}
