//! A hash of a file's content, with which the file is verified later.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use selvedge_units::mix64;

use crate::ResultsError;

/// A hash of bytes, independent of their division into pieces. Detects accidental changes, not forgeries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Digest {
    hash: u64,
    /// Bytes of an incomplete word, the first byte lowest.
    word: u64,
    len: u64,
}

impl Digest {
    /// Returns the digest of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut digest = Self::default();
        digest.add(bytes);
        digest.finish()
    }

    /// Returns the digest of the file at `path`.
    pub(crate) fn of_file(path: &Path) -> Result<u64, ResultsError> {
        let read = || {
            let (mut digest, mut file) = (Self::default(), File::open(path)?);
            let mut buffer = vec![0; BUFFER];
            loop {
                match file.read(&mut buffer) {
                    Ok(0) => return Ok(digest.finish()),
                    Ok(len) => digest.add(&buffer[..len]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        };
        read().map_err(|error| ResultsError::io(path, "read it", &error))
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !self.len.is_multiple_of(8)
            && let [first, rest @ ..] = bytes
        {
            self.byte(*first);
            bytes = rest;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.hash = mix64(self.hash ^ u64::from_le_bytes(*word));
        }
        self.len += 8 * words.len() as u64;
        rest.iter().for_each(|&byte| self.byte(byte));
    }

    fn byte(&mut self, byte: u8) {
        self.word |= u64::from(byte) << (self.len % 8 * 8);
        self.len += 1;
        if self.len.is_multiple_of(8) {
            self.hash = mix64(self.hash ^ self.word);
            self.word = 0;
        }
    }

    fn finish(self) -> u64 {
        mix64(mix64(self.hash ^ self.word) ^ self.len)
    }
}

/// A file that is hashed while it is written.
#[derive(Debug)]
pub(super) struct Digested {
    file: File,
    digest: Digest,
}

impl Digested {
    pub(super) fn new(file: File) -> Self {
        Self { file, digest: Digest::default() }
    }

    /// Returns the digest of everything written so far.
    pub(super) fn digest(&self) -> u64 {
        self.digest.finish()
    }
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

const BUFFER: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn every_byte_its_place_and_the_length_count() {
        let bytes: Vec<u8> = (1..40).collect();
        let mut seen = vec![Digest::of(b""), Digest::of(b"\0"), Digest::of(&[0; 8])];
        for at in 0..bytes.len() {
            seen.push(Digest::of(&bytes[..at + 1]));
            let [mut flipped, mut other] = [bytes.clone(), bytes.clone()];
            flipped[at] ^= 0x80;
            seen.push(Digest::of(&flipped));
            other.swap(at, (at + 1) % bytes.len());
            seen.push(Digest::of(&other));
        }
        let different = seen.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(different, seen.len());
    }

    #[test]
    fn pieces_make_no_difference() {
        let bytes: Vec<u8> = (0..200).map(|at| (at * 7) as u8).collect();
        for (first, second) in (0..30).flat_map(|first| (0..30).map(move |second| (first, first + second))) {
            let mut digest = Digest::default();
            [&bytes[..first], &bytes[first..second], &bytes[second..]].into_iter().for_each(|part| digest.add(part));
            assert_eq!(digest.finish(), Digest::of(&bytes), "{first}, {second}");
        }
    }
}
