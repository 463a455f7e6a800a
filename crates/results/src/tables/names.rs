//! Texts that a table repeats.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::known::Known;

/// One of the texts of a table. Its rank among them identifies it, so that comparisons and look-ups need not read the
/// text.
#[derive(Clone, Debug)]
pub(super) struct Name {
    rank: u32,
    text: Arc<str>,
}

impl Name {
    /// Returns a name for a text that differs from all others of a column and comes after them.
    pub(super) fn last(text: &str) -> Self {
        Self { rank: u32::MAX, text: text.into() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank.hash(state);
    }
}

/// All texts of some columns, sorted.
pub(super) struct Names(Vec<Name>);

impl Names {
    /// Returns the sorted names of these texts, and the rank of each text. Most texts share their memory with others.
    pub(super) fn of<'t>(texts: impl Iterator<Item = &'t Arc<str>>) -> (Self, Vec<u32>) {
        let mut places = Known::<*const u8>::default();
        let mut known = Known::<&str>::default();
        let mut different = Vec::new();
        let number = |text: &'t Arc<str>| {
            let by_text = || {
                *known.entry(&**text).or_insert_with(|| {
                    different.push(text);
                    different.len() as u32 - 1
                })
            };
            *places.entry(text.as_ptr()).or_insert_with(by_text)
        };
        let mut numbers: Vec<u32> = texts.map(number).collect();
        let mut order: Vec<u32> = (0..different.len() as u32).collect();
        order.sort_unstable_by_key(|&number| different[number as usize]);
        let mut ranks = vec![0; order.len()];
        (0..).zip(&order).for_each(|(rank, &number)| ranks[number as usize] = rank);
        numbers.iter_mut().for_each(|number| *number = ranks[*number as usize]);
        let name = |(rank, number): (u32, u32)| Name { rank, text: Arc::clone(different[number as usize]) };
        (Self((0..).zip(order).map(name).collect()), numbers)
    }

    pub(super) fn at(&self, rank: u32) -> &Name {
        &self.0[rank as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_their_texts() {
        let mut texts: Vec<Arc<str>> = ["tor1", "h10", "", "tor1", "h9", "host", "h10"].map(Arc::from).into();
        // Another reference to the text in the same place.
        texts.push(Arc::clone(&texts[4]));
        let (names, ranks) = Names::of(texts.iter());
        assert_eq!(names.0.len(), 5, "each once");
        let named: Vec<&Name> = ranks.iter().map(|&rank| names.at(rank)).collect();
        for (a, name) in texts.iter().zip(&named) {
            assert_eq!(name.text(), &**a);
            for (b, other) in texts.iter().zip(&named) {
                assert_eq!(name.cmp(other), a.cmp(b));
            }
        }
    }
}
