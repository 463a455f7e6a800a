//! The Read WQE buffer (IRN, section 5.3.2): Reads, Atomics and other requests with a response wait here until
//! everything sent before them has arrived. The read_WQE_SN determines the place of a request, in whatever order
//! requests arrive.

use alloc::collections::VecDeque;

use selvedge_units::Seq;

use super::Refusal;
use super::inbound::MALFORMED;
use super::query::Query;

/// A ring of places; the first belongs to the oldest request that has not begun.
#[derive(Default)]
pub(super) struct ReadBuffer {
    places: VecDeque<Option<(Seq, Query)>>,
    /// Read_WQE_SN of the first place.
    first: u32,
}

/// The error that read_WQE_SNs contradict the sequence numbers of their packets.
pub(super) struct Disordered(pub(super) Seq);

impl ReadBuffer {
    /// Checks whether the request of packet `seq` has a place, or can get one if at most `most` requests wait.
    ///
    /// # Errors
    /// If the place is beyond `most`, belongs to another packet, or was used already.
    pub(super) fn check(&self, number: u32, seq: Seq, most: usize) -> Result<(), Refusal> {
        let ahead = number.wrapping_sub(self.first);
        if ahead > u32::MAX / 2 {
            return Err(MALFORMED);
        }
        match self.places.get(ahead as usize) {
            Some(&Some((known, _))) if known != seq => Err(MALFORMED),
            Some(Some(_)) => Ok(()),
            _ if (ahead as usize) < most => Ok(()),
            _ => Err(Refusal::NotReady),
        }
    }
    /// Stores a request in its place, after [`Self::check`] has accepted the place.
    pub(super) fn put(&mut self, number: u32, seq: Seq, query: Query) {
        let ahead = number.wrapping_sub(self.first) as usize;
        if ahead >= self.places.len() {
            self.places.resize(ahead + 1, None);
        }
        self.places[ahead] = Some((seq, query));
    }
    /// Takes the oldest request with its sequence number and read_WQE_SN, if it was sent before `until`.
    ///
    /// # Errors
    /// If the oldest request is missing although a later one was sent before `until`, up to which everything has
    /// arrived.
    pub(super) fn take_before(&mut self, until: Seq) -> Result<Option<(Seq, u32, Query)>, Disordered> {
        match self.places.front() {
            Some(&Some((seq, query))) if seq < until => {
                self.places.pop_front();
                let number = self.first;
                self.first = self.first.wrapping_add(1);
                Ok(Some((seq, number, query)))
            }
            Some(None) => match self.places.iter().flatten().find(|(seq, _)| *seq < until) {
                Some(&(seq, _)) => Err(Disordered(seq)),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: u64) -> Query {
        Query::Read { key: 1, address, length: 8 }
    }
    fn address(query: &Query) -> u64 {
        match *query {
            Query::Read { address, .. } => address,
            _ => unreachable!("all are Reads"),
        }
    }

    #[test]
    fn requests_leave_by_their_numbers_whatever_the_order_in_which_they_came() {
        let mut buffer = ReadBuffer { first: u32::MAX - 1, ..ReadBuffer::default() };
        for (n, number) in [(2, 0), (0, u32::MAX - 1), (1, u32::MAX)] {
            assert!(buffer.check(number, Seq::new(10 * n), 3).is_ok());
            buffer.put(number, Seq::new(10 * n), read(n));
        }
        let mut found = alloc::vec::Vec::new();
        while let Ok(Some((seq, number, query))) = buffer.take_before(Seq::new(15)) {
            found.push((seq, number, address(&query)));
        }
        assert_eq!(found, [(Seq::new(0), u32::MAX - 1, 0), (Seq::new(10), u32::MAX, 1)]);
        assert!(matches!(buffer.take_before(Seq::new(21)), Ok(Some((_, 0, _)))));
    }

    #[test]
    fn a_place_is_one_requests_and_there_are_so_many() {
        let mut buffer = ReadBuffer::default();
        assert!(matches!(buffer.check(3, Seq::new(5), 3), Err(Refusal::NotReady)));
        assert!(matches!(buffer.check(u32::MAX, Seq::new(5), 3), Err(Refusal::Nak(..))));
        buffer.put(2, Seq::new(5), read(0));
        assert!(buffer.check(2, Seq::new(5), 3).is_ok());
        assert!(matches!(buffer.check(2, Seq::new(6), 3), Err(Refusal::Nak(..))));
        assert!(matches!(buffer.take_before(Seq::new(5)), Ok(None)));
        assert!(matches!(buffer.take_before(Seq::new(6)), Err(Disordered(seq)) if seq == Seq::new(5)));
    }
}
