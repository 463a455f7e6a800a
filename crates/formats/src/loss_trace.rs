//! Numbers of the packets that a link loses, for Selvedge's loss model `trace`: 0 is the first packet. Blanks and line
//! ends separate them.

use std::io::BufRead;

use crate::FormatError;
use crate::text::Lines;

/// Reads the numbers, in the order of the file.
///
/// ```
/// use selvedge_formats::loss_trace;
///
/// assert_eq!(loss_trace::read(&b"0 7 # both at once\n3\n"[..], "drops.txt")?, [0, 7, 3]);
/// # Ok::<(), selvedge_formats::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error for a word that is not a whole number from 0.
pub fn read(input: impl BufRead, file: &str) -> Result<Vec<u64>, FormatError> {
    let mut lines = Lines::new(input, file);
    let mut numbers = Vec::new();
    while let Some(line) = lines.next_filled()? {
        for word in line.words() {
            let expected = "the number of a packet, from 0, with blanks or lines between them";
            numbers.push(word.text().parse().map_err(|_| word.unexpected(expected))?);
        }
    }
    Ok(numbers)
}
