//! Routes in the form that switches use: one look-up per packet.

use std::collections::BTreeMap;

use selvedge_units::SwitchId;

use crate::kernel::table::Table;
use crate::topology::{Group, Routes};

/// Equal-cost next hops of every switch towards every leaf.
pub(crate) struct Forwarding {
    /// `groups[rows[switch] + leaf]`: which set of ports; short, because there are many of them.
    groups: Table<u16>,
    /// Where the routes of each switch begin. Switches whose routes are alike share them: those of a large
    /// fabric would not fit into the cache otherwise.
    rows: Vec<u32>,
    /// Per set: how many ports, and the port itself or where they are listed. None of those sets from which
    /// a hash does not choose.
    entries: Table<u32>,
    /// The same of all sets.
    listed: Vec<Group>,
    members: Table<u16>,
}

/// Bits of an entry that hold the port or the place in `members`.
const PLACE_BITS: u32 = 20;

impl Forwarding {
    /// Where there are several ports, a hash chooses one (ECMP) or [`Forwarding::port`] leaves it to
    /// others. `None` if a switch has more equal paths, or the fabric more different sets of them, than the
    /// tables can tell apart (4,095 and 65,536).
    pub(crate) fn new(routes: &Routes, by_hash: bool) -> Option<Self> {
        let raw = routes.raw();
        let entry = |group: &Group| {
            if group.len > 1 && !by_hash {
                return Some(0);
            }
            let place = if group.len == 1 { u32::from(raw.members[group.offset as usize]) } else { group.offset };
            (group.len < 1 << (32 - PLACE_BITS) && place < 1 << PLACE_BITS).then_some(group.len << PLACE_BITS | place)
        };
        let entries: Option<Vec<u32>> = raw.groups.iter().map(entry).collect();
        let (mut groups, mut rows, mut known) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (switch, row) in (0..).map(SwitchId).zip(raw.table.chunks_exact(raw.leaves.max(1))) {
            let mut row: Vec<u16> = row.iter().map(|&group| u16::try_from(group).ok()).collect::<Option<_>>()?;
            // No leaf looks up the way to itself; this makes leaves alike that are otherwise.
            if let Ok(own) = routes.leaves().binary_search(&switch) {
                row[own] = row[(own + 1) % row.len()];
            }
            let end = groups.len() as u32;
            rows.push(*known.entry(row).or_insert_with_key(|row| {
                groups.extend(row);
                end
            }));
        }
        Some(Self {
            groups: groups.into(),
            rows,
            entries: entries?.into(),
            listed: raw.groups.to_vec(),
            members: raw.members.to_vec().into(),
        })
    }

    /// Where the routes of `switch` begin; anywhere, where no host hangs on a switch.
    pub(crate) fn routes_of(&self, switch: SwitchId) -> u32 {
        self.rows.get(switch.index()).copied().unwrap_or(0)
    }

    /// The port through which a packet to `leaf` leaves the switch whose `routes` begin there, chosen by
    /// `hash`; `None` without a path, or where something else chooses.
    #[inline(always)]
    pub(crate) fn port(&self, routes: u32, leaf: u32, hash: impl FnOnce() -> u32) -> Option<u32> {
        let entry = self.entries[u32::from(self.groups[routes + leaf])];
        let (count, place) = (entry >> PLACE_BITS, entry & ((1 << PLACE_BITS) - 1));
        if count > 1 {
            let choice = (u64::from(hash()) * u64::from(count)) >> 32;
            return Some(u32::from(self.members[place + choice as u32]));
        }
        (count == 1).then_some(place)
    }

    /// All ports through which a packet to `leaf` may leave that switch.
    pub(crate) fn ways(&self, routes: u32, leaf: u32) -> &[u16] {
        let Group { offset, len } = self.listed[usize::from(self.groups[routes + leaf])];
        self.members.part(offset, len)
    }
}
