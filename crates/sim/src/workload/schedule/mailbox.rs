//! Messages that wait for a receive, or receives that wait for a message.

use std::collections::{BTreeMap, VecDeque};

use super::ANY;
use super::partners::{Address, suits};

/// Messages or receives with addresses, taken out in the order in which they were put in.
#[derive(Clone, Debug, Default)]
pub(super) struct Mailbox {
    by_address: BTreeMap<Address, VecDeque<(u64, u32)>>,
    /// Number of entries that were ever put in.
    count: u64,
}

impl Mailbox {
    pub(super) fn put(&mut self, address: Address, value: u32) {
        self.by_address.entry(address).or_default().push_back((self.count, value));
        self.count += 1;
    }

    /// Returns the entries by address.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Address, u32)> + '_ {
        self.by_address.iter().flat_map(|(&address, queue)| queue.iter().map(move |&(_, value)| (address, value)))
    }

    /// Takes the first receive that suits a message from `address`.
    pub(super) fn take_receive(&mut self, (from, tag): Address) -> Option<u32> {
        self.take_first([(from, tag), (ANY, tag), (from, ANY), (ANY, ANY)].into_iter())
    }

    /// Takes the first message that suits a receive for `address`.
    pub(super) fn take_message(&mut self, (from, tag): Address) -> Option<u32> {
        if from != ANY && tag != ANY {
            return self.take_first(std::iter::once((from, tag)));
        }
        let candidates = self.by_address.keys().copied().filter(|&sent| suits((from, tag), sent));
        let candidates: Vec<Address> = candidates.collect();
        self.take_first(candidates.into_iter())
    }

    fn take_first(&mut self, candidates: impl Iterator<Item = Address>) -> Option<u32> {
        let first = |address: Address| Some((self.by_address.get(&address)?.front()?.0, address));
        let (_, address) = candidates.filter_map(first).min()?;
        let queue = self.by_address.get_mut(&address)?;
        let value = queue.pop_front().map(|(_, value)| value);
        if queue.is_empty() {
            self.by_address.remove(&address);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_first_is_taken_first() {
        let mut receives = Mailbox::default();
        for (value, address) in (0..).zip([(ANY, 7), (3, 7), (3, ANY), (3, 7), (ANY, ANY)]) {
            receives.put(address, value);
        }
        let taken: Vec<_> =
            [(3, 7), (3, 7), (3, 8), (4, 9), (5, 5), (3, 7), (3, 7)].map(|m| receives.take_receive(m)).into();
        assert_eq!(taken, [Some(0), Some(1), Some(2), Some(4), None, Some(3), None]);

        let mut messages = Mailbox::default();
        for (value, address) in (0..).zip([(1, 1), (2, 1), (1, 2)]) {
            messages.put(address, value);
        }
        let taken: Vec<_> =
            [(3, ANY), (2, ANY), (ANY, 2), (ANY, ANY), (ANY, ANY)].map(|r| messages.take_message(r)).into();
        assert_eq!(taken, [None, Some(1), Some(2), Some(0), None]);
    }
}
