//! Lines and words with their places.

use std::io::{BufRead, Read};
use std::ops::RangeInclusive;
use std::str;

use super::Decimal;
use crate::{FormatError, Warning};

/// Begin of messages about lines that lack a word.
pub(crate) const LINE_ENDS: &str = "the line ends here";

/// Maximum length of a line; a longer one is not text: a list of a million switches needs 8 MB.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Text file, read line by line in constant memory.
pub(crate) struct Lines<R> {
    input: R,
    file: String,
    number: u64,
    bytes: Vec<u8>,
    text: String,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R, file: &str) -> Self {
        Self { input, file: file.to_owned(), number: 0, bytes: Vec::new(), text: String::new() }
    }

    /// Returns the next line, without its comment; `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, FormatError> {
        Ok(self.advance()?.then(|| self.line()))
    }

    /// Returns the next line with a word in it.
    pub(crate) fn next_filled(&mut self) -> Result<Option<Line<'_>>, FormatError> {
        while self.advance()? {
            if !self.line().is_blank() {
                return Ok(Some(self.line()));
            }
        }
        Ok(None)
    }

    /// Returns the next line with a word in it, or an error that names the `missing` part.
    pub(crate) fn require_filled(&mut self, missing: &str) -> Result<Line<'_>, FormatError> {
        while self.advance()? {
            if !self.line().is_blank() {
                return Ok(self.line());
            }
        }
        Err(self.error_at_end(missing))
    }

    /// Returns an error at the end of the file, where the part `missing` is absent.
    pub(crate) fn error_at_end(&self, missing: &str) -> FormatError {
        let message = format!("the file ends here, expected {missing}");
        FormatError { file: self.file.clone(), line: self.number + 1, column: 1, message }
    }

    /// Returns whether the line read last ends without a newline, as the last of a file may.
    pub(crate) fn is_open(&self) -> bool {
        !self.bytes.ends_with(b"\n")
    }

    /// Returns the line read last.
    pub(crate) fn line(&self) -> Line<'_> {
        Line { file: &self.file, number: self.number, text: &self.text }
    }

    /// Returns a warning if notes, which begin at line `from`, seem to contain data of the `kind` above them: one of
    /// their lines `is_one`, or begins like one, and no blank line precedes the notes. Reads to the end of the file.
    pub(crate) fn notes(
        &mut self,
        from: u64,
        after_blank: bool,
        kind: &str,
        is_one: impl Fn(Line<'_>) -> bool,
    ) -> Option<Warning> {
        // Unreadable lines are no data, either.
        while let Ok(Some(line)) = self.next_line() {
            if is_one(line) || (!after_blank && line.begins_with_number()) {
                let message = format!(
                    "a line that begins with no number: it and all below are taken for notes, though line {} looks like \
                     a {kind}",
                    line.number()
                );
                return Some(Warning::new(from, message));
            }
        }
        None
    }

    fn advance(&mut self) -> Result<bool, FormatError> {
        self.bytes.clear();
        self.text.clear();
        let read = self.input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.bytes);
        if let Ok(0) = read {
            return Ok(false);
        }
        self.number += 1;
        if let Err(error) = read {
            return Err(self.line().error(0, format!("cannot be read: {error}")));
        }
        if self.bytes.len() as u64 == LINE_BYTES_MAX {
            return Err(self.line().error(0, "found a line of 16 MiB or more, expected a text file"));
        }
        let mut bytes = &*self.bytes;
        if self.number == 1 {
            if let Some((_, what)) = NO_TEXTS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
                return Err(self.line().error(0, format!("found {what}, expected a text file")));
            }
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        // A comment need not be valid UTF-8.
        let end = bytes.iter().position(|&byte| byte == b'#').unwrap_or(bytes.len());
        for chunk in bytes[..end].utf8_chunks() {
            self.text.push_str(chunk.valid());
            if let Some(&byte) = chunk.invalid().first() {
                let message = format!("found byte 0x{byte:02x}, expected text in UTF-8");
                return Err(self.line().error(self.text.len(), message));
            }
        }
        Ok(true)
    }
}

/// First bytes of files that are often passed by mistake, and the names of their formats.
const NO_TEXTS: [(&[u8], &str); 4] = [
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "an archive of zip"),
    (b"\x1f\x8b", "what gzip has packed"),
    (b"\x28\xb5\x2f\xfd", "what zstd has packed"),
];

/// Line of a file.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    file: &'a str,
    number: u64,
    text: &'a str,
}

impl<'a> Line<'a> {
    pub(crate) fn number(self) -> u64 {
        self.number
    }

    pub(crate) fn is_blank(self) -> bool {
        self.words().next().is_none()
    }

    pub(crate) fn words(self) -> Words<'a> {
        Words { line: self, at: 0 }
    }

    /// Returns whether notes in prose begin at this line, if they are `where_possible`: notes begin with no number,
    /// unlike data.
    pub(crate) fn begins_notes(self, where_possible: bool) -> bool {
        where_possible && !self.begins_with_number()
    }

    /// Returns whether the line begins like data: with a number.
    pub(crate) fn begins_with_number(self) -> bool {
        self.text.trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
    }

    /// Returns an error at byte `at` of the text.
    pub(crate) fn error(self, at: usize, message: impl Into<String>) -> FormatError {
        FormatError { file: self.file.to_owned(), line: self.number, column: self.column(at), message: message.into() }
    }

    /// Returns the column of byte `at`, in characters, from 1.
    fn column(self, at: usize) -> u64 {
        self.text[..at].chars().count() as u64 + 1
    }
}

/// Words of a line, from left to right.
#[derive(Clone)]
pub(crate) struct Words<'a> {
    line: Line<'a>,
    at: usize,
}

impl<'a> Words<'a> {
    /// Returns the next word, or an error that names the `missing` part.
    pub(crate) fn require(&mut self, missing: &str) -> Result<Word<'a>, FormatError> {
        let end = self.line.text.trim_end().len();
        self.next().ok_or_else(|| self.line.error(end, format!("{LINE_ENDS}, expected {missing}")))
    }

    /// Returns the next word up to the end of its digits, where letters follow ("0" of "0nic") that form a word of
    /// their own; or an error that names the `missing` part. Languages with a lexer need no blank there.
    pub(crate) fn require_number(&mut self, missing: &str) -> Result<Word<'a>, FormatError> {
        let word = self.require(missing)?;
        let digits = word.text.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.text.len());
        let begins_word = word.text[digits..].starts_with(|c: char| c.is_ascii_alphabetic());
        Ok(if digits > 0 && begins_word { self.part(word, digits) } else { word })
    }

    /// Returns the first `length` bytes of `word`, the last word read; the rest of it comes next.
    pub(crate) fn part(&mut self, word: Word<'a>, length: usize) -> Word<'a> {
        self.at = word.at + length;
        word.part(0, length)
    }

    /// Checks that the line ends here.
    pub(crate) fn finish(mut self) -> Result<(), FormatError> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(word.unexpected("the end of the line")),
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let rest = &self.line.text[self.at..];
        let trimmed = rest.trim_start();
        let at = self.at + (rest.len() - trimmed.len());
        let length = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        self.at = at + length;
        (length > 0).then(|| Word { line: self.line, at, text: &trimmed[..length] })
    }
}

/// Word with its place.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    line: Line<'a>,
    at: usize,
    text: &'a str,
}

impl<'a> Word<'a> {
    pub(crate) fn text(self) -> &'a str {
        self.text
    }

    pub(crate) fn line_number(self) -> u64 {
        self.line.number
    }

    /// Returns the line and the column of the word, the column in characters, both from 1.
    pub(crate) fn place(self) -> [u64; 2] {
        [self.line.number, self.line.column(self.at)]
    }

    /// Returns the part of the word from byte `from` to byte `to`.
    pub(crate) fn part(self, from: usize, to: usize) -> Self {
        Self { at: self.at + from, text: &self.text[from..to], ..self }
    }

    /// Returns an error at this word.
    pub(crate) fn error(self, message: impl Into<String>) -> FormatError {
        self.line.error(self.at, message)
    }

    /// Returns an error that names this word and the valid text for its place.
    pub(crate) fn unexpected(self, expected: &str) -> FormatError {
        // Words of binary files are long.
        let shown: String = self.text.chars().take(40).collect();
        let more = if shown.len() < self.text.len() { "..." } else { "" };
        self.error(format!("found {shown:?}{more}, expected {expected}"))
    }

    /// Parses a whole number within `range`.
    pub(crate) fn integer(self, what: &str, range: RangeInclusive<u64>) -> Result<u64, FormatError> {
        // `parse` alone would accept a plus sign.
        let digits = self.text.bytes().all(|byte| byte.is_ascii_digit());
        let number = self.text.parse().ok().filter(|number| digits && range.contains(number));
        // For words such as "1e6" or "1000.5", the message names the reason.
        let how = if !digits && Decimal::parse(self.text).is_some() { ", in digits alone" } else { "" };
        number.ok_or_else(|| match (*range.start(), *range.end()) {
            // For words, the message leaves out limits that come from the width of integers.
            (0, end) if !digits && end >= u64::from(u32::MAX) => self.unexpected(&format!("{what}{how}")),
            (least, end) if !digits && end >= u64::from(u32::MAX) => {
                self.unexpected(&format!("{what} of at least {least}{how}"))
            }
            (least, most) => self.unexpected(&format!("{what} from {least} to {most}{how}")),
        })
    }

    /// Parses a whole number of at most 32 bits within `range`.
    pub(crate) fn integer32(self, what: &str, range: RangeInclusive<u32>) -> Result<u32, FormatError> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        // The range bounds the number to 32 bits.
        self.integer(what, wide).map(|number| number as u32)
    }

    /// Parses a decimal number, not negative.
    pub(crate) fn decimal(self, expected: &str) -> Result<Decimal, FormatError> {
        Decimal::parse(self.text).ok_or_else(|| self.unexpected(expected))
    }
}
