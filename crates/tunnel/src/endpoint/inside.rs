//! Packets inside: the `virtio_net_hdr` and the IP header, as far as a tunnel reads and changes them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::{EqifSettings, EqifTable};

/// Header of segmentation and checksum offload before each packet of a TUN device (`struct virtio_net_hdr`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct VnetHeader {
    flags: u8,
    segments: u8,
    header: u16,
    size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl VnetHeader {
    pub(super) const LENGTH: usize = 10;
    /// The transport's checksum is that of the pseudo-header only.
    const NEEDS_CHECKSUM: u8 = 1;
    /// The checksum was verified.
    const IS_VALID: u8 = 2;
    /// Kinds of segmentation: none, TCP over IPv4 and IPv6, UDP; with ECN, the first segment alone has CWR.
    const KINDS: [u8; 4] = [0, 1, 4, 5];
    const ECN: u8 = 0x80;

    /// Reads a header in the byte order of `word`.
    fn read(bytes: &[u8; Self::LENGTH], word: impl Fn([u8; 2]) -> u16) -> Self {
        let &[flags, segments, h0, h1, s0, s1, c0, c1, o0, o1] = bytes;
        Self {
            flags,
            segments,
            header: word([h0, h1]),
            size: word([s0, s1]),
            checksum_start: word([c0, c1]),
            checksum_offset: word([o0, o1]),
        }
    }
    /// Reads a header of this host's kernel.
    pub(super) fn from_host(bytes: &[u8; Self::LENGTH]) -> Self {
        Self::read(bytes, u16::from_ne_bytes)
    }
    /// Reads a header of a peer, little-endian.
    pub(super) fn from_peer(bytes: &[u8; Self::LENGTH]) -> Self {
        Self::read(bytes, u16::from_le_bytes)
    }
    fn written(&self, word: impl Fn(u16) -> [u8; 2]) -> [u8; Self::LENGTH] {
        let [[h0, h1], [s0, s1], [c0, c1], [o0, o1]] =
            [self.header, self.size, self.checksum_start, self.checksum_offset].map(word);
        [self.flags, self.segments, h0, h1, s0, s1, c0, c1, o0, o1]
    }
    /// Returns the bytes for this host's kernel.
    pub(super) fn to_host(self) -> [u8; Self::LENGTH] {
        self.written(u16::to_ne_bytes)
    }
    /// Returns the bytes for a peer.
    pub(super) fn to_peer(self) -> [u8; Self::LENGTH] {
        self.written(u16::to_le_bytes)
    }

    /// Returns whether the packet is to be cut into segments.
    pub(super) fn has_segments(&self) -> bool {
        self.segments != 0
    }

    /// Checks a peer's header of a packet of `length` bytes, and removes what only the peer's kernel can vouch for;
    /// `None` if the kernel here must not see it.
    pub(super) fn checked(mut self, length: usize) -> Option<Self> {
        self.flags &= !Self::IS_VALID;
        let needs = self.flags == Self::NEEDS_CHECKSUM;
        let is_known = Self::KINDS.contains(&(self.segments & !Self::ECN)) && (needs || self.flags == 0);
        let is_sound = !self.has_segments() || (needs && self.size > 0 && usize::from(self.header) <= length);
        let end = usize::from(self.checksum_start) + usize::from(self.checksum_offset) + 2;
        (is_known && is_sound && (!needs || end <= length)).then_some(self)
    }

    /// Completes the checksum of a packet that is not to be cut; the header then says nothing any more.
    pub(super) fn complete(self, packet: &mut [u8]) -> Option<()> {
        if self.flags & Self::NEEDS_CHECKSUM == 0 {
            return Some(());
        }
        let start = usize::from(self.checksum_start);
        let at = start + usize::from(self.checksum_offset);
        let sum = !folded(packet.get(start..)?);
        // UDP has no checksum of zero.
        let sum = if sum == 0 { u16::MAX } else { sum };
        packet.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
        Some(())
    }
}

/// Returns the one's complement sum of big-endian words (RFC 1071).
pub(super) fn folded(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    sum += rest.first().map_or(0, |last| u64::from(*last) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Facts in the headers of an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Protocol above IP; of fragments behind the first, the protocol of the first.
    pub(super) protocol: u8,
    /// Destination port, if the protocol has ports and this is no later fragment.
    pub(super) port: Option<u16>,
    /// ECN field.
    pub(super) ecn: u8,
}

/// Value of the ECN field: congestion experienced.
pub(super) const CONGESTED: u8 = 3;
/// Value of the ECN field: the transport does not know ECN.
pub(super) const NOT_CAPABLE: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// UDP port of RoCEv2.
const ROCE: u16 = 4_791;
/// Extension headers of IPv6 that are skipped; more than this many are not looked behind.
const MOST_EXTENSIONS: usize = 8;

impl Facts {
    /// Reads the headers of an IP packet; `None` if they are no such headers, or the length is wrong.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::of_v4(packet),
            6 => Self::of_v6(packet),
            _ => None,
        }
    }

    fn of_v4(packet: &[u8]) -> Option<Self> {
        let (header, _) = packet.split_first_chunk::<20>()?;
        let length = usize::from(header[0] & 0xf) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if length < 20 || total < length || total != packet.len() {
            return None;
        }
        let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
        let is_later = u16::from_be_bytes([header[6], header[7]]) & 0x1fff != 0;
        let port = if is_later { None } else { port(header[9], packet.get(length..)?) };
        Some(Self {
            source: address(12),
            destination: address(16),
            protocol: header[9],
            port,
            ecn: header[1] & CONGESTED,
        })
    }

    fn of_v6(packet: &[u8]) -> Option<Self> {
        let (header, mut rest) = packet.split_first_chunk::<40>()?;
        if usize::from(u16::from_be_bytes([header[4], header[5]])) != rest.len() {
            return None;
        }
        let address = |at: usize| {
            let bytes: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes of 40");
            IpAddr::V6(Ipv6Addr::from(bytes))
        };
        let mut protocol = header[6];
        let mut is_later = false;
        for _ in 0..MOST_EXTENSIONS {
            let length = match protocol {
                // Hop-by-hop options, routing, destination options.
                0 | 43 | 60 => 8 + 8 * usize::from(*rest.get(1)?),
                // Fragment.
                44 => {
                    is_later = u16::from_be_bytes([*rest.get(2)?, *rest.get(3)?]) & !7 != 0;
                    8
                }
                _ => break,
            };
            protocol = *rest.first()?;
            rest = rest.get(length..)?;
            if is_later {
                break;
            }
        }
        let port = if is_later { None } else { port(protocol, rest) };
        let ecn = header[1] >> 4 & CONGESTED;
        Some(Self { source: address(8), destination: address(24), protocol, port, ecn })
    }

    /// Returns the EQIF whose packet this is.
    pub(super) fn eqif(&self) -> Eqif {
        match (self.protocol, self.port) {
            (TCP, _) => Eqif::Tcp,
            (UDP, Some(ROCE)) => Eqif::Rdma,
            _ => Eqif::Other,
        }
    }
}

/// Returns the destination port of a TCP or UDP header.
fn port(protocol: u8, transport: &[u8]) -> Option<u16> {
    match (protocol, transport) {
        (TCP | UDP, &[_, _, p1, p0, ..]) => Some(u16::from_be_bytes([p1, p0])),
        _ => None,
    }
}

/// Marks an IP packet, whose [`Facts`] were read, with congestion experienced.
pub(super) fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= CONGESTED;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            // RFC 1624, equation 3.
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        Some(6) => packet[1] |= CONGESTED << 4,
        _ => {}
    }
}

/// Edge-queuing interface: a class of traffic with queues and tunnels of its own (EQDS, section 6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Eqif {
    /// TCP.
    Tcp,
    /// RoCEv2: UDP to port 4791.
    Rdma,
    /// All other packets.
    Other,
    /// Native messages.
    Native,
}

impl Eqif {
    pub(super) const ALL: [Self; 4] = [Self::Tcp, Self::Rdma, Self::Other, Self::Native];
    pub(super) const COUNT: usize = Self::ALL.len();

    /// Returns the settings of this kind of traffic.
    pub(super) fn settings(self, table: &EqifTable) -> &EqifSettings {
        match self {
            Self::Tcp => &table.tcp,
            Self::Rdma => &table.rdma,
            Self::Other => &table.other,
            Self::Native => &table.native,
        }
    }

    /// Returns the id in headers.
    pub(super) const fn id(self) -> u8 {
        match self {
            Self::Native => 0,
            Self::Tcp => 1,
            Self::Rdma => 2,
            Self::Other => 3,
        }
    }
    pub(super) const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::Native),
            1 => Some(Self::Tcp),
            2 => Some(Self::Rdma),
            3 => Some(Self::Other),
            _ => None,
        }
    }
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Rdma => "rdma",
            Self::Other => "other",
            Self::Native => "native",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns an IPv4 packet of UDP with `payload` bytes.
    pub(in super::super) fn udp(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        port: u16,
        ecn: u8,
        payload: &[u8],
    ) -> Vec<u8> {
        let length = 28 + payload.len() as u16;
        let mut packet = vec![0x45, ecn];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 7, 0x40, 0, 64, UDP, 0, 0]);
        packet.extend(source.octets());
        packet.extend(destination.octets());
        let sum = !folded(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0x12, 0x34]);
        packet.extend(port.to_be_bytes());
        packet.extend((length - 20).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        packet
    }

    const A: Ipv4Addr = Ipv4Addr::new(10, 80, 1, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 80, 2, 1);

    #[test]
    fn eqifs_are_told_apart_by_protocol_and_port() {
        let eqif = |port| Facts::of(&udp(A, B, port, 0, b"x")).map(|facts| facts.eqif());
        assert_eq!((eqif(4_791), eqif(4_790)), (Some(Eqif::Rdma), Some(Eqif::Other)));
        let mut tcp = udp(A, B, 4_791, 0, b"x");
        tcp[9] = TCP;
        assert_eq!(Facts::of(&tcp).map(|facts| facts.eqif()), Some(Eqif::Tcp));
        let mut later = udp(A, B, 4_791, 0, b"x");
        later[7] = 1;
        assert_eq!(Facts::of(&later).map(|facts| facts.eqif()), Some(Eqif::Other), "a fragment has no ports");
        for eqif in Eqif::ALL {
            assert_eq!(Eqif::from_id(eqif.id()), Some(eqif));
        }
    }

    #[test]
    fn lengths_that_are_wrong_are_refused() {
        let packet = udp(A, B, 1, 0, b"some");
        assert!((0..packet.len()).all(|length| Facts::of(&packet[..length]).is_none()));
        let longer = [&packet[..], &[0]].concat();
        assert_eq!(Facts::of(&longer), None);
    }

    #[test]
    fn a_mark_leaves_the_header_checksum_right() {
        for ecn in [1, 2, 3] {
            let mut packet = udp(A, B, 9, ecn, b"payload");
            mark(&mut packet);
            assert_eq!(Facts::of(&packet).map(|facts| facts.ecn), Some(CONGESTED));
            assert_eq!(folded(&packet[..20]), u16::MAX);
        }
    }

    #[test]
    fn extension_headers_of_ipv6_are_skipped() {
        let mut packet = vec![0x60, 0x20, 0, 0, 0, 16, 60, 64];
        packet.extend(Ipv6Addr::LOCALHOST.octets());
        packet.extend(Ipv6Addr::UNSPECIFIED.octets());
        packet.extend([UDP, 0, 1, 4, 0, 0, 0, 0]);
        packet.extend([0, 1, 0x12, 0xb7, 0, 8, 0, 0]);
        let facts = Facts::of(&packet).expect("a packet");
        assert_eq!((facts.port, facts.ecn, facts.eqif()), (Some(ROCE), 2, Eqif::Rdma));
        mark(&mut packet);
        assert_eq!(Facts::of(&packet).map(|facts| facts.ecn), Some(CONGESTED));
    }

    #[test]
    fn a_checksum_of_the_pseudo_header_is_completed() {
        let mut packet = udp(A, B, 53, 0, b"odd");
        // The pseudo-header: addresses, protocol, length.
        let mut pseudo = packet[12..20].to_vec();
        pseudo.extend([0, UDP, 0, 11]);
        let partial = folded(&pseudo);
        packet[26..28].copy_from_slice(&partial.to_be_bytes());
        let vnet = VnetHeader { flags: 1, checksum_start: 20, checksum_offset: 6, ..VnetHeader::default() };
        assert_eq!(vnet.complete(&mut packet), Some(()));
        pseudo.extend(&packet[20..]);
        assert_eq!(folded(&pseudo), u16::MAX);
        assert_eq!(VnetHeader { checksum_start: 30, ..vnet }.complete(&mut packet), None, "beyond the end");
    }

    #[test]
    fn only_sound_offload_headers_of_peers_reach_the_kernel() {
        let tso =
            VnetHeader { flags: 1, segments: 1, header: 52, size: 1_400, checksum_start: 20, checksum_offset: 16 };
        assert_eq!(tso.checked(60_000), Some(tso));
        assert_eq!(VnetHeader::from_peer(&tso.to_peer()), tso);
        assert_eq!(VnetHeader { flags: 3, ..tso }.checked(60_000), Some(tso), "nobody here has verified it");
        for wrong in [
            VnetHeader { segments: 3, ..tso },
            VnetHeader { flags: 0, ..tso },
            VnetHeader { flags: 8, ..tso },
            VnetHeader { size: 0, ..tso },
            VnetHeader { header: 60_001, ..tso },
            VnetHeader { checksum_start: 59_990, checksum_offset: 9, ..tso },
        ] {
            assert_eq!(wrong.checked(60_000), None, "{wrong:?}");
        }
    }
}
