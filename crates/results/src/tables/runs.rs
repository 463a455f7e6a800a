//! Encoding of small numbers in Parquet's hybrid of runs and packed bits.
//!
//! ```text
//! width (1 byte), then runs:
//!     varint(length << 1), the value in as many bytes as the width needs         the same value again and again
//!     varint(groups << 1 | 1), groups of eight values of `width` bits each       others
//! ```

use std::iter;

/// A number repeated `len` times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) number: u32,
    pub(super) len: usize,
}

/// Smallest run that is encoded as one; shorter runs are packed with their neighbours.
const LONG: usize = 8;

/// Appends the numbers of `runs`, none of which exceeds `most`.
pub(super) fn encode(runs: &[Run], most: u32, bytes: &mut Vec<u8>) {
    // Width 0 is avoided, because not all readers support it.
    let width = (u32::BITS - most.leading_zeros()).max(1);
    bytes.push(width as u8);
    let mut few = Vec::new();
    for &Run { number, len } in runs {
        // Preceding numbers are packed in groups of eight, filled up with numbers of this run.
        let lent = few.len().wrapping_neg() % 8;
        if len >= lent + LONG {
            few.extend(iter::repeat_n(number, lent));
            pack(&few, width, bytes);
            few.clear();
            repeat(number, len - lent, width, bytes);
        } else if len == 1 {
            few.push(number);
        } else {
            few.extend(iter::repeat_n(number, len));
        }
    }
    pack(&few, width, bytes);
}

/// Writes a run.
fn repeat(number: u32, len: usize, width: u32, bytes: &mut Vec<u8>) {
    varint((len as u64) << 1, bytes);
    bytes.extend_from_slice(&number.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Packs numbers, lowest bits first; the last group of eight is filled up with zeros.
fn pack(numbers: &[u32], width: u32, bytes: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, bytes);
    let end = bytes.len() + groups * width as usize;
    let (mut word, mut bits) = (0u64, 0);
    for &number in numbers {
        word |= u64::from(number) << bits;
        bits += width;
        if bits >= u32::BITS {
            bytes.extend_from_slice(&(word as u32).to_le_bytes());
            word >>= u32::BITS;
            bits -= u32::BITS;
        }
    }
    bytes.extend_from_slice(&(word as u32).to_le_bytes());
    bytes.resize(end, 0);
}

fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;

    /// A straightforward decoder after the format's specification.
    fn decode(bytes: &[u8], count: usize) -> Vec<u32> {
        let width = u32::from(bytes[0]);
        let mut rest = bytes[1..].iter().copied();
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut header, mut shift) = (0u64, 0);
            loop {
                let byte = rest.next().unwrap();
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            if header & 1 == 0 {
                let value: u32 = (0..width.div_ceil(8)).map(|byte| u32::from(rest.next().unwrap()) << (8 * byte)).sum();
                numbers.extend(iter::repeat_n(value, (header >> 1) as usize));
            } else {
                let packed: Vec<u8> = rest.by_ref().take((header >> 1) as usize * width as usize).collect();
                let bit = |n: usize| u32::from(packed[n / 8] >> (n % 8) & 1);
                let width = width as usize;
                let value = |n: usize| (0..width).map(|b| bit(n * width + b) << b).sum::<u32>();
                numbers.extend((0..(header >> 1) as usize * 8).map(value));
            }
        }
        assert_eq!(rest.next(), None, "nothing follows");
        assert!(numbers[count..].iter().all(|number| *number == 0), "filled up with zeros");
        numbers.truncate(count);
        numbers
    }

    fn encoded(runs: &[Run], most: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(runs, most, &mut bytes);
        bytes
    }

    #[test]
    fn numbers_come_back() {
        let mut rng = Rng::stream(1, Domain::Impairment, 0);
        for round in 0..2_000 {
            let most = (rng.next_u64() >> (32 + round % 32)) as u32;
            let lengths = 1 + rng.below(40);
            let mut run = |_| Run { number: rng.below(u64::from(most) + 1) as u32, len: rng.below(lengths) as usize };
            let runs: Vec<Run> = (0..round % 30).map(&mut run).collect();
            let numbers: Vec<u32> = runs.iter().flat_map(|run| iter::repeat_n(run.number, run.len)).collect();
            assert_eq!(decode(&encoded(&runs, most), numbers.len()), numbers);
        }
    }

    #[test]
    fn what_repeats_itself_takes_no_room() {
        let single = |number| Run { number, len: 1 };
        assert_eq!(encoded(&[Run { number: 5, len: 4_096 }], 5), [3, 0x80, 0x40, 5]);
        assert_eq!(encoded(&[], 0), [1]);
        // The example in the specification.
        assert_eq!(encoded(&(0..8).map(single).collect::<Vec<_>>(), 7), [3, 3, 0x88, 0xc6, 0xfa]);
    }
}
