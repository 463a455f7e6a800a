//! Routes in the form that switches use: one look-up per packet.

use selvedge_units::SwitchId;

use crate::topology::Routes;

/// Equal-cost next hops of every switch towards every leaf.
pub(crate) struct Forwarding {
    /// `entries[switch * leaves + leaf]`: how many ports, and the port itself or where they are
    /// listed.
    entries: Vec<u32>,
    members: Vec<u16>,
    leaves: usize,
}

/// Bits of an entry that hold the port or the place in `members`.
const PLACE_BITS: u32 = 20;

impl Forwarding {
    /// `None` if a switch has more equal paths, or the fabric more different sets of them, than the
    /// entries can tell apart (4,095 and about a million).
    pub(crate) fn new(routes: &Routes) -> Option<Self> {
        let raw = routes.raw();
        let entry = |&group: &u32| {
            let group = raw.groups[group as usize];
            let place = if group.len == 1 { u32::from(raw.members[group.offset as usize]) } else { group.offset };
            (group.len < 1 << (32 - PLACE_BITS) && place < 1 << PLACE_BITS).then_some(group.len << PLACE_BITS | place)
        };
        let entries: Option<Vec<u32>> = raw.table.iter().map(entry).collect();
        Some(Self { entries: entries?, members: raw.members.to_vec(), leaves: raw.leaves })
    }

    /// The port of `switch` through which a packet to `leaf` leaves, chosen by `hash`; `None` without
    /// a path.
    #[inline]
    pub(crate) fn port(&self, switch: SwitchId, leaf: u32, hash: impl FnOnce() -> u32) -> Option<u32> {
        let entry = self.entries[switch.index() * self.leaves + leaf as usize];
        let (count, place) = (entry >> PLACE_BITS, entry & ((1 << PLACE_BITS) - 1));
        match count {
            0 => None,
            1 => Some(place),
            _ => {
                let choice = (u64::from(hash()) * u64::from(count)) >> 32;
                Some(u32::from(self.members[place as usize + choice as usize]))
            }
        }
    }
}
