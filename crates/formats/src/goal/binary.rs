//! Schedules in binary form, little-endian without padding.
//!
//! ```text
//! u64 magic | u32 ranks | u8 most cpu | u8 most nic | per rank: u64 begin, u64 end      from byte 8 of the file
//! per rank: u32 nodes | u32 roots | u32 root[roots] | nodes | u32 appendix[]
//! node:     u32 waits for | u8 type (1 send, 2 recv, 3 calc) | u32 peer | u64 size | u32 tag | u8 cpu | u8 nic |
//!           u32 followers | u32 first | u32 followers of the beginning | u32 first        places in the appendix
//! ```

use selvedge_units::{Bytes, Duration};

use super::{Goal, LONGEST_NS, Operation, OperationKind, RANKS_MAX, Rank, cycle, cycle_message, given};
use crate::FormatError;
use crate::text::BYTES_MAX;

/// First eight bytes of a complete file.
pub(super) const MAGIC: u64 = 4223;
/// Value in place of [`MAGIC`] while the file is being written.
pub(super) const UNFINISHED: u64 = 2342;

/// Position in the file from which offsets count.
const BASE: u64 = 8;
/// Size of a node in bytes.
const NODE: u64 = 39;

pub(super) fn read(bytes: &[u8], file: &str) -> Result<Goal, FormatError> {
    let reader = Reader { bytes, file };
    let rank_count = reader.u32(8)?;
    if !(1..=RANKS_MAX).contains(&rank_count) {
        return Err(reader.error(8, &format!("found {rank_count} ranks, expected 1 to {RANKS_MAX}")));
    }
    let mut goal = Goal { rank_count, ..Goal::default() };
    for number in 0..rank_count {
        let at = 14 + 16 * u64::from(number);
        let begin = reader.offset(at)?;
        let end = reader.offset(at + 8)?;
        if end < begin || end > bytes.len() as u64 {
            let message = format!(
                "found rank {number} from byte {} to {}, expected it within the {} bytes of the file",
                begin + 1,
                end,
                bytes.len()
            );
            return Err(reader.error(at, &message));
        }
        let rank = reader.rank(rank_count, begin, end)?;
        if !rank.operations.is_empty() {
            goal.ranks.insert(number, rank);
        }
    }
    Ok(goal)
}

struct Reader<'a> {
    bytes: &'a [u8],
    file: &'a str,
}

impl Reader<'_> {
    fn rank(&self, rank_count: u32, begin: u64, end: u64) -> Result<Rank, FormatError> {
        if begin == end {
            return Ok(Rank::default());
        }
        let count = u64::from(self.u32(begin)?);
        let first = begin + 8 + 4 * u64::from(self.u32(begin + 4)?);
        let appendix = first + NODE * count;
        if appendix > end {
            let message = format!(
                "found {count} operations of {NODE} bytes, expected them to end {} bytes earlier",
                appendix - end
            );
            return Err(self.error(begin, &message));
        }
        let mut rank = Rank::default();
        let mut waits = vec![0u32; count as usize];
        // Each entry of the appendix belongs to one node: a file cannot expand it.
        let mut unclaimed = (end - appendix) / 4;
        for number in 0..count {
            let at = first + NODE * number;
            rank.operations.push(self.operation(at, rank_count)?);
            for (place, at_start) in [(at + 23, false), (at + 31, true)] {
                let (followers, first) = (self.u32(place)?, self.u32(place + 4)?);
                let from = appendix + 4 * u64::from(first);
                let is_inside = from + 4 * u64::from(followers) <= end && u64::from(followers) <= unclaimed;
                if followers > 0 && !is_inside {
                    return Err(
                        self.error(place, "found followers beyond the end of the rank, expected them within it")
                    );
                }
                unclaimed -= u64::from(followers);
                for follower in 0..u64::from(followers) {
                    let after = self.u32(from + 4 * follower)?;
                    let Some(waits) = waits.get_mut(after as usize) else {
                        let message = format!("found operation {after}, expected one from 0 to {}", count - 1);
                        return Err(self.error(from + 4 * follower, &message));
                    };
                    *waits += 1;
                    let pairs = if at_start { &mut rank.start_requires } else { &mut rank.requires };
                    pairs.push((after, number as u32));
                }
            }
        }
        for (number, &found) in (0..).zip(&waits) {
            let at = first + NODE * number;
            let said = self.u32(at)?;
            if said != found {
                let message =
                    format!("found operation {number} waiting for {said} others, expected {found}, as many as name it");
                return Err(self.error(at, &message));
            }
        }
        if let Some(waiting) = cycle(&rank) {
            let names: Vec<String> = waiting.iter().map(|number| format!("operation {number}")).collect();
            return Err(self.error(first + NODE * u64::from(waiting[0]), &cycle_message(&names)));
        }
        Ok(rank)
    }

    fn operation(&self, at: u64, rank_count: u32) -> Result<Operation, FormatError> {
        let [kind, cpu, nic] = [4, 21, 22].map(|offset| self.array::<1>(at + offset));
        let (peer, size, tag) = (self.u32(at + 5)?, self.u64(at + 9)?, self.u32(at + 17)?);
        let is_known = |peer: u32| peer < rank_count;
        let kind = match kind?[0] {
            1 | 2 if size > BYTES_MAX => {
                return Err(
                    self.error(at + 9, &format!("found a message of {size} bytes, expected at most {BYTES_MAX}"))
                );
            }
            1 if is_known(peer) => OperationKind::Send { to: peer, size: Bytes::new(size), tag },
            2 if given(peer).is_none_or(is_known) => {
                OperationKind::Recv { from: given(peer), tag: given(tag), size: Bytes::new(size) }
            }
            3 if size > LONGEST_NS => {
                return Err(self.error(at + 9, &format!("found {size} ns, expected at most 53 days")));
            }
            3 => OperationKind::Compute(Duration::from_ns(size)),
            1 | 2 => {
                let message = format!("found rank {peer}, expected one from 0 to {}", rank_count - 1);
                return Err(self.error(at + 5, &message));
            }
            other => {
                let message = format!("found operation type {other}, expected 1 (send), 2 (recv) or 3 (calc)");
                return Err(self.error(at + 4, &message));
            }
        };
        Ok(Operation { kind, cpu: cpu?[0], nic: nic?[0] })
    }

    /// Returns the offset stored at `at`, as an offset from the begin of the file.
    fn offset(&self, at: u64) -> Result<u64, FormatError> {
        let offset = self.u64(at)?;
        offset
            .checked_add(BASE)
            .ok_or_else(|| self.error(at, "found an offset beyond any file, expected one within it"))
    }
    fn u32(&self, at: u64) -> Result<u32, FormatError> {
        self.array(at).map(u32::from_le_bytes)
    }
    fn u64(&self, at: u64) -> Result<u64, FormatError> {
        self.array(at).map(u64::from_le_bytes)
    }
    fn array<const N: usize>(&self, at: u64) -> Result<[u8; N], FormatError> {
        let bytes = usize::try_from(at).ok().and_then(|at| self.bytes.get(at..)?.first_chunk());
        bytes.copied().ok_or_else(|| {
            let message = format!("the file ends here, expected {N} bytes at byte {}", at.saturating_add(1));
            self.error(self.bytes.len() as u64, &message)
        })
    }

    /// Returns an error at a byte of the file, from 0.
    fn error(&self, at: u64, message: &str) -> FormatError {
        FormatError { file: self.file.to_owned(), line: 1, column: at + 1, message: message.to_owned() }
    }
}
