//! Routes in the form that switches use: one look-up per packet.

use std::collections::BTreeMap;

use selvedge_units::SwitchId;

/// Ports that lead equally well to a leaf: some members of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Index of the first port in [`Routes::members`].
    pub offset: u32,
    /// Number of ports.
    pub len: u32,
}

/// Next hops of all switches towards all leaves.
#[derive(Clone, Copy, Debug)]
pub struct Routes<'a> {
    /// Index of a group, by switch and then by leaf.
    pub table: &'a [u32],
    /// Groups of ports.
    pub groups: &'a [Group],
    /// Port numbers of the groups.
    pub members: &'a [u16],
    /// Switches to which hosts are attached, ascending.
    pub leaves: &'a [SwitchId],
}

/// Equal-cost next hops of every switch towards every leaf.
pub struct Forwarding {
    /// Next hops: `ways[rows[switch] + leaf]`.
    ways: Vec<PortGroup>,
    /// Next hops in the order of `ways`, as indices of `sets`.
    groups: Vec<u32>,
    sets: Vec<Group>,
    /// Index of the first route of each switch. Switches with equal routes share them: the routes of a large fabric
    /// would not fit into the cache otherwise.
    rows: Vec<u32>,
    members: Vec<u16>,
}

/// Marker of an unknown port: larger than any port number of a switch.
pub const UNKNOWN: u32 = u16::MAX as u32;

/// Ports that lead to a leaf, among which a hash chooses: `count` consecutive ports, or `count` entries of a list if
/// they are not consecutive, or none where there is no path, or something else chooses.
#[derive(Clone, Copy)]
struct PortGroup {
    /// First port, or index in the list with the bit [`PortGroup::LISTED`].
    place: u32,
    count: u32,
}

impl PortGroup {
    const LISTED: u32 = 1 << 31;
    const NONE: Self = Self { place: Self::LISTED, count: 0 };

    #[inline(always)]
    fn is_listed(self) -> bool {
        self.place & Self::LISTED != 0
    }
}

/// Next hops of one switch.
#[derive(Clone, Copy)]
pub struct NextHops<'a> {
    /// Next hops, indexed by leaf.
    ways: &'a [PortGroup],
    members: &'a [u16],
}

impl NextHops<'_> {
    /// Returns the port through which a packet to `leaf` leaves, chosen by `hash`; [`UNKNOWN`] without a path, or where
    /// something else chooses.
    #[inline(always)]
    pub fn port(self, leaf: u32, hash: u32) -> u32 {
        let way = self.ways[leaf as usize];
        let choice = (u64::from(hash) * u64::from(way.count)) >> 32;
        let place = way.place + choice as u32;
        if way.is_listed() { self.listed(way, place) } else { place }
    }

    #[inline(never)]
    fn listed(self, way: PortGroup, place: u32) -> u32 {
        if way.count > 0 { u32::from(self.members[(place & !PortGroup::LISTED) as usize]) } else { UNKNOWN }
    }
}

impl Forwarding {
    /// Creates the tables of `routes`. Where there are several ports, a hash chooses one (`by_hash`: ECMP), or
    /// [`NextHops::port`] returns [`UNKNOWN`]. `None` if the fabric has more different sets of equal paths than the
    /// tables can tell apart (two thousand million).
    pub fn new(routes: &Routes<'_>, by_hash: bool) -> Option<Self> {
        let way = |group: &Group| {
            let Group { offset, len } = *group;
            if len == 0 || (len > 1 && !by_hash) {
                return Some(PortGroup::NONE);
            }
            let ports = &routes.members[offset as usize..][..len as usize];
            let in_a_row = ports.windows(2).all(|two| two[0] + 1 == two[1]);
            let place = if in_a_row { u32::from(ports[0]) } else { offset | PortGroup::LISTED };
            (offset < PortGroup::LISTED).then_some(PortGroup { place, count: len })
        };
        let kinds: Vec<PortGroup> = routes.groups.iter().map(way).collect::<Option<_>>()?;
        let (mut ways, mut groups, mut rows, mut known) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        for (switch, row) in (0..).map(SwitchId).zip(routes.table.chunks_exact(routes.leaves.len().max(1))) {
            let mut row: Vec<u32> = row.to_vec();
            // No leaf looks up the path to itself; overwriting this entry makes more leaves' routes equal.
            if let Ok(own) = routes.leaves.binary_search(&switch) {
                row[own] = row[(own + 1) % row.len()];
            }
            let end = ways.len() as u32;
            rows.push(*known.entry(row).or_insert_with_key(|row| {
                ways.extend(row.iter().map(|&group| kinds[group as usize]));
                groups.extend(row);
                end
            }));
        }
        let (sets, members) = (routes.groups.to_vec(), routes.members.to_vec());
        Some(Self { ways, groups, sets, rows, members })
    }

    /// Returns the index of the first route of `switch`; any index where no host is attached to a switch.
    pub fn routes_of(&self, switch: SwitchId) -> u32 {
        self.rows.get(switch.index()).copied().unwrap_or(0)
    }

    /// Returns the next hops of the switch whose first route is `routes`.
    #[inline(always)]
    pub fn ways_of(&self, routes: u32) -> NextHops<'_> {
        NextHops { ways: &self.ways[routes as usize..], members: &self.members }
    }

    /// Returns all ports through which a packet to `leaf` may leave the switch whose first route is `routes`.
    pub fn ways(&self, routes: u32, leaf: u32) -> &[u16] {
        let Group { offset, len } = self.sets[self.groups[(routes + leaf) as usize] as usize];
        &self.members[offset as usize..][..len as usize]
    }
}
