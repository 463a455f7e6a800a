//! Additional seeds for studies that are not decided.

/// Appends seeds after the largest: half as many as there are, up to `most` in total. Returns the number added.
pub(crate) fn add_seeds(seeds: &mut Vec<u64>, most: usize) -> usize {
    let room = most.saturating_sub(seeds.len());
    let more = (seeds.len() / 2).max(1).min(room);
    let next = seeds.iter().max().map_or(1, |last| last.saturating_add(1));
    seeds.extend(next..next.saturating_add(more as u64));
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_grow_by_half_up_to_the_limit() {
        let mut seeds = vec![1, 2, 3];
        let mut counts = Vec::new();
        while add_seeds(&mut seeds, 24) > 0 {
            counts.push(seeds.len());
        }
        assert_eq!(counts, [4, 6, 9, 13, 19, 24]);
        assert_eq!(seeds, (1..=24).collect::<Vec<u64>>());
        let mut apart = vec![7, 3];
        assert_eq!((add_seeds(&mut apart, 3), apart), (1, vec![7, 3, 8]));
    }
}
