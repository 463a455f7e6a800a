//! A column whose values often repeat: a dictionary, and pages of indices into it.
//!
//! In thirteen columns, most samples of a port equal those of the row before. `parquet` hashes every value of such a
//! column; here, a value that equals the last costs one comparison. The pages have Parquet's own [encodings]. Like
//! those of other columns they need not wait in memory for the end of their row group: the dictionary is written last
//! and placed before them.
//!
//! [encodings]: https://parquet.apache.org/docs/file-format/data-pages/encodings/

use std::hash::Hash;
use std::mem;

use bytes::Bytes;
use parquet::basic::{Encoding, PageType};
use parquet::column::page::{Page, PageWriteSpec};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::PAGE;
use super::known::Known;
use super::names::Name;
use super::runs::{self, Run};
use super::spill::PageSink;
use super::squeeze::compression;

/// Largest number of values of a dictionary; further values are written in plain encoding.
const MOST: usize = 1 << 14;

/// A value of a column, ordered as readers of Parquet compare such values.
pub(super) trait Value: Clone + Ord + Hash {
    /// Appends the value in Parquet's plain encoding.
    fn write_plain(&self, bytes: &mut Vec<u8>);
    /// Returns the statistics of a column whose values lie between `least` and `most`.
    fn statistics(least: Option<Self>, most: Option<Self>) -> Statistics;
}

impl Value for u64 {
    fn write_plain(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn statistics(least: Option<Self>, most: Option<Self>) -> Statistics {
        Statistics::new(least.map(Self::cast_signed), most.map(Self::cast_signed), None, Some(0), false)
    }
}

impl Value for u32 {
    fn write_plain(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
    fn statistics(least: Option<Self>, most: Option<Self>) -> Statistics {
        Statistics::new(least.map(Self::cast_signed), most.map(Self::cast_signed), None, Some(0), false)
    }
}

impl Value for Name {
    fn write_plain(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.text().len() as u32).to_le_bytes());
        bytes.extend_from_slice(self.text().as_bytes());
    }
    fn statistics(least: Option<Self>, most: Option<Self>) -> Statistics {
        let bytes = |name: Self| ByteArray::from(name.text());
        Statistics::new(least.map(bytes), most.map(bytes), None, Some(0), false)
    }
}

/// A number from 0 to 1 by its bits, which have the order of the numbers because none is negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Share(u32);

impl Share {
    pub(super) fn new(share: f32) -> Self {
        debug_assert!(share.is_sign_positive(), "no share is negative");
        Self(share.to_bits())
    }
}

impl Value for Share {
    fn write_plain(&self, bytes: &mut Vec<u8>) {
        self.0.write_plain(bytes);
    }
    fn statistics(least: Option<Self>, most: Option<Self>) -> Statistics {
        let float = |Self(bits)| f32::from_bits(bits);
        Statistics::new(least.map(float), most.map(float), None, Some(0), false)
    }
}

/// A floating-point number, by bits in the order of numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Real(i64);

impl Real {
    pub(super) fn new(number: f64) -> Self {
        Self(Self::turned(number.to_bits().cast_signed()))
    }

    fn get(self) -> f64 {
        f64::from_bits(Self::turned(self.0).cast_unsigned())
    }

    /// Reverses the order of the bits of negative numbers; applied twice, it returns the original bits.
    fn turned(bits: i64) -> i64 {
        bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
    }
}

impl Value for Real {
    fn write_plain(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.get().to_bits().to_le_bytes());
    }
    fn statistics(least: Option<Self>, most: Option<Self>) -> Statistics {
        // NaN has no place in the order, so bounds that are NaN are omitted.
        let known = |bound: Option<Self>| bound.map(Self::get).filter(|number| !number.is_nan());
        let (least, most) = known(least).zip(known(most)).unzip();
        Statistics::new(least, most, None, Some(0), false)
    }
}

/// A column in construction.
pub(super) struct Indexed<V> {
    descr: ColumnDescPtr,
    sink: PageSink,
    known: Known<V>,
    /// Values of the dictionary, by index.
    values: Vec<V>,
    /// Complete runs of indices on the present page, if all its values are in the dictionary.
    runs: Vec<Run>,
    /// Latest run of indices, which may continue.
    run: Run,
    /// The present page as it will be written; a page of indices is encoded only when it is complete.
    bytes: Vec<u8>,
    /// Number of values on the present page.
    rows: usize,
    least: Option<V>,
    most: Option<V>,
    total: PageWriteSpec,
    /// Number of pages of indices, and of pages in plain encoding.
    pages: [i32; 2],
}

/// Index of a value that is not in the dictionary.
const UNKNOWN: u32 = u32::MAX;

impl<V: Value> Indexed<V> {
    pub(super) fn new(descr: ColumnDescPtr, sink: PageSink) -> Self {
        Self {
            descr,
            sink,
            known: Known::default(),
            values: Vec::new(),
            runs: Vec::new(),
            run: Run { number: UNKNOWN, len: 0 },
            bytes: Vec::new(),
            rows: 0,
            least: None,
            most: None,
            total: PageWriteSpec::new(),
            pages: [0; 2],
        }
    }

    /// Adds a value.
    #[inline(always)]
    pub(super) fn push(&mut self, value: &V) -> ParquetResult<()> {
        if self.values.get(self.run.number as usize) == Some(value) {
            self.run.len += 1;
        } else {
            self.push_other(value)?;
        }
        self.rows += 1;
        if self.rows == PAGE { self.end_page() } else { Ok(()) }
    }

    /// Adds several values.
    #[inline(always)]
    pub(super) fn extend(&mut self, values: impl Iterator<Item = V>) -> ParquetResult<()>
    where
        V: Copy,
    {
        // The last value, and how often it was repeated but not yet added.
        let (mut last, mut count) = (self.values.get(self.run.number as usize).copied(), 0);
        for value in values {
            if last == Some(value) {
                count += 1;
                continue;
            }
            self.push_again(last, mem::take(&mut count))?;
            self.push(&value)?;
            last = self.values.get(self.run.number as usize).copied();
        }
        self.push_again(last, count)
    }

    #[inline(always)]
    fn push_again(&mut self, value: Option<V>, count: usize) -> ParquetResult<()> {
        match value {
            Some(value) if count > 0 => self.push_run(&value, count),
            _ => Ok(()),
        }
    }

    /// Adds a value `count` times.
    pub(super) fn push_run(&mut self, value: &V, mut count: usize) -> ParquetResult<()> {
        while count > 0 {
            self.push(value)?;
            count -= 1;
            if self.rows > 0 {
                // The rest of the page equals this value, except its last row, which `push` adds so that the page is
                // ended.
                let more = count.min(PAGE - self.rows).saturating_sub(1);
                if self.is_plain() {
                    (0..more).for_each(|_| value.write_plain(&mut self.bytes));
                } else {
                    self.run.len += more;
                }
                self.rows += more;
                count -= more;
            }
        }
        Ok(())
    }

    /// Adds a value that differs from the last.
    #[inline(never)]
    fn push_other(&mut self, value: &V) -> ParquetResult<()> {
        if !self.is_plain() {
            if let Some(number) = self.index_of(value) {
                self.end_run();
                self.run = Run { number, len: 1 };
                return Ok(());
            }
            self.end_page()?;
            self.run.number = UNKNOWN;
        }
        value.write_plain(&mut self.bytes);
        self.count_in(value);
        Ok(())
    }

    /// Returns whether the present page is in plain encoding.
    #[inline]
    fn is_plain(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Returns the dictionary's index of a value, adding it if there is space; `None` if the dictionary is full.
    fn index_of(&mut self, value: &V) -> Option<u32> {
        // Sampling times recur in the same order.
        let next = self.run.number.wrapping_add(1);
        if self.values.get(next as usize) == Some(value) {
            return Some(next);
        }
        if let Some(&index) = self.known.get(value) {
            return Some(index);
        }
        if self.values.len() == MOST {
            return None;
        }
        let index = self.values.len() as u32;
        self.values.push(value.clone());
        self.known.insert(value.clone(), index);
        self.count_in(value);
        Some(index)
    }

    /// Includes a value in the statistics.
    fn count_in(&mut self, value: &V) {
        if self.least.as_ref().is_none_or(|least| value < least) {
            self.least = Some(value.clone());
        }
        if self.most.as_ref().is_none_or(|most| value > most) {
            self.most = Some(value.clone());
        }
    }

    fn end_run(&mut self) {
        if self.run.len > 0 {
            self.runs.push(self.run);
            self.run.len = 0;
        }
    }

    /// Writes the present page, if it is not empty.
    #[inline(never)]
    fn end_page(&mut self) -> ParquetResult<()> {
        self.end_run();
        let rows = mem::take(&mut self.rows) as u32;
        if !self.runs.is_empty() {
            runs::encode(&self.runs, self.values.len() as u32 - 1, &mut self.bytes);
            self.runs.clear();
            self.pages[0] += 1;
            self.write_data(rows, Encoding::RLE_DICTIONARY)?;
        } else if self.is_plain() {
            self.pages[1] += 1;
            self.write_data(rows, Encoding::PLAIN)?;
        }
        Ok(())
    }

    fn write_data(&mut self, num_values: u32, encoding: Encoding) -> ParquetResult<()> {
        self.total.num_values += num_values;
        let levels = Encoding::RLE;
        self.write(|buf| Page::DataPage {
            buf,
            num_values,
            encoding,
            def_level_encoding: levels,
            rep_level_encoding: levels,
            statistics: None,
        })?;
        Ok(())
    }

    /// Writes a page of the collected bytes; returns its uncompressed size.
    fn write(&mut self, page: impl FnOnce(Bytes) -> Page) -> ParquetResult<usize> {
        let written = self.sink.write(&self.bytes, page)?;
        self.bytes.clear();
        self.total.uncompressed_size += written.uncompressed_size;
        self.total.compressed_size += written.compressed_size;
        self.total.bytes_written += written.bytes_written;
        Ok(written.compressed_size)
    }

    /// Writes the remaining page, then the dictionary, which readers find before all other pages.
    pub(super) fn close(mut self) -> ParquetResult<ColumnCloseResult> {
        self.end_page()?;
        self.values.iter().for_each(|value| value.write_plain(&mut self.bytes));
        let (num_values, encoding) = (self.values.len() as u32, Encoding::PLAIN);
        let dictionary = self.write(|buf| Page::DictionaryPage { buf, num_values, encoding, is_sorted: false })?;

        let kinds = [PageType::DICTIONARY_PAGE, PageType::DATA_PAGE, PageType::DATA_PAGE];
        let encodings = [Encoding::PLAIN, Encoding::RLE_DICTIONARY, Encoding::PLAIN];
        let counts = [1, self.pages[0], self.pages[1]];
        let stats = (0..3).filter(|&n| counts[n] > 0);
        let stats = stats.map(|n| PageEncodingStats { page_type: kinds[n], encoding: encodings[n], count: counts[n] });
        let metadata = ColumnChunkMetaData::builder(self.descr)
            .set_compression(compression())
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(stats.collect())
            .set_num_values(self.total.num_values.into())
            .set_total_compressed_size(self.total.compressed_size as i64)
            .set_total_uncompressed_size(self.total.uncompressed_size as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(dictionary as i64)
            .set_statistics(V::statistics(self.least, self.most))
            .build()?;
        Ok(ColumnCloseResult {
            bytes_written: self.total.bytes_written,
            rows_written: self.total.num_values.into(),
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        })
    }
}
