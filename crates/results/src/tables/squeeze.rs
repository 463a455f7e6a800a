//! Compression of pages, with one context for all columns. `parquet` has one for each column, created again for each
//! row group; together these are most of the memory of a table in construction.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::page::{CompressedPage, Page};
use parquet::errors::{ParquetError, Result as ParquetResult};
use zstd::bulk::Compressor;
use zstd::zstd_safe::{CParameter, compress_bound};

/// Returns the compression method of pages.
pub(super) fn compression() -> Compression {
    Compression::ZSTD(ZstdLevel::default())
}

/// A compression context and an output buffer, shared by several columns.
#[derive(Clone)]
pub(super) struct Squeezer(Arc<Mutex<(Compressor<'static>, Vec<u8>)>>);

impl Squeezer {
    pub(super) fn new() -> ParquetResult<Self> {
        let mut compressor = Compressor::new(ZstdLevel::default().compression_level())?;
        // With a checksum, reading a damaged page is an error instead of wrong numbers.
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self(Arc::new(Mutex::new((compressor, Vec::new())))))
    }

    /// Returns these bytes, compressed with [`compression`].
    pub(super) fn squeeze(&self, bytes: &[u8]) -> ParquetResult<Bytes> {
        let (compressor, squeezed) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        squeezed.clear();
        squeezed.reserve(compress_bound(bytes.len()));
        compressor.compress_to_buffer(bytes, squeezed)?;
        Ok(Bytes::copy_from_slice(squeezed))
    }

    /// Returns the page, uncompressed so far, in compressed form.
    pub(super) fn squeeze_page(&self, page: &CompressedPage) -> ParquetResult<CompressedPage> {
        let bytes = self.squeeze(page.data())?;
        let mut squeezed = page.compressed_page().clone();
        match &mut squeezed {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => *buf = bytes,
            Page::DataPageV2 { .. } => {
                return Err(ParquetError::General("of pages of version 2, a part is never compressed".into()));
            }
        }
        Ok(CompressedPage::new(squeezed, page.uncompressed_size()))
    }
}
