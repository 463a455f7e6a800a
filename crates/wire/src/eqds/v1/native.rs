//! The head of a native message: the first bytes of the message, behind the [`super::Words`] of its first part.
//!
//! | bytes | field                                                                                        |
//! |-------|----------------------------------------------------------------------------------------------|
//! | 0     | kind: 0 content, 1 refusal                                                                   |
//! | 1     | version of IP of both addresses, 4 or 6                                                      |
//! | 2     | of refusals the reason, see [`Refusal`]; else reserved                                       |
//! | 3     | reserved                                                                                     |
//! | 4-5   | source port                                                                                  |
//! | 6-7   | destination port                                                                             |
//! | 8-11  | tag that the sender chose; a refusal repeats it                                              |
//! | 12-   | source address, then destination address, 4 or 16 bytes each                                 |

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::error::{ParseError, take};

/// Reason why the destination has not taken a native message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// No program has the destination port.
    NoListener,
    /// The program has too much unread.
    Full,
    /// A reason that this version does not know.
    Other(u8),
}

impl Refusal {
    const fn code(self) -> u8 {
        match self {
            Self::NoListener => 0,
            Self::Full => 1,
            Self::Other(code) => code,
        }
    }
    const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::NoListener,
            1 => Self::Full,
            other => Self::Other(other),
        }
    }
}

/// Head of a native message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Head {
    /// `None` before content; in a refusal, which has no content, its reason.
    pub refusal: Option<Refusal>,
    /// Address inside and port of the sender.
    pub source: SocketAddr,
    /// Address inside and port of the receiver, of the same version of IP.
    pub destination: SocketAddr,
    /// Number that the sender chose for the message. A refusal has that of the refused message.
    pub tag: u32,
}

impl Head {
    /// Most bytes of a head.
    pub const LONGEST: usize = 12 + 2 * 16;

    /// Reads the head at the start of a message; also returns the content.
    ///
    /// # Errors
    /// If the bytes are truncated, or the version of IP is unknown.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[kind, version, reason, _, s1, s0, d1, d0, t3, t2, t1, t0], rest) = take::<12>(bytes)?;
        if kind > 1 {
            return Err(ParseError::Version(kind));
        }
        let (source, destination, content): (IpAddr, IpAddr, _) = match version {
            4 => {
                let (source, rest) = take::<4>(rest)?;
                let (destination, content) = take::<4>(rest)?;
                (Ipv4Addr::from(*source).into(), Ipv4Addr::from(*destination).into(), content)
            }
            6 => {
                let (source, rest) = take::<16>(rest)?;
                let (destination, content) = take::<16>(rest)?;
                (Ipv6Addr::from(*source).into(), Ipv6Addr::from(*destination).into(), content)
            }
            version => return Err(ParseError::Version(version)),
        };
        let head = Self {
            refusal: (kind == 1).then_some(Refusal::from_code(reason)),
            source: SocketAddr::new(source, u16::from_be_bytes([s1, s0])),
            destination: SocketAddr::new(destination, u16::from_be_bytes([d1, d0])),
            tag: u32::from_be_bytes([t3, t2, t1, t0]),
        };
        Ok((head, content))
    }

    /// Writes the head into `buffer`; returns its bytes. `None` if the addresses are of different versions of IP.
    pub fn emit<'a>(&self, buffer: &'a mut [u8; Self::LONGEST]) -> Option<&'a [u8]> {
        buffer[0] = u8::from(self.refusal.is_some());
        buffer[2] = self.refusal.map_or(0, Refusal::code);
        buffer[3] = 0;
        buffer[4..6].copy_from_slice(&self.source.port().to_be_bytes());
        buffer[6..8].copy_from_slice(&self.destination.port().to_be_bytes());
        buffer[8..12].copy_from_slice(&self.tag.to_be_bytes());
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                buffer[1] = 4;
                buffer[12..16].copy_from_slice(&source.octets());
                buffer[16..20].copy_from_slice(&destination.octets());
                Some(&buffer[..20])
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                buffer[1] = 6;
                buffer[12..28].copy_from_slice(&source.octets());
                buffer[28..].copy_from_slice(&destination.octets());
                Some(&buffer[..])
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let v4: [SocketAddr; 2] = ["10.80.1.1:5201".parse().unwrap(), "10.80.2.1:4097".parse().unwrap()];
        let v6: [SocketAddr; 2] = ["[fd00::1]:1".parse().unwrap(), "[fd00::2]:65535".parse().unwrap()];
        for ([source, destination], length) in [(v4, 20), (v6, 44)] {
            for refusal in [None, Some(Refusal::NoListener), Some(Refusal::Full), Some(Refusal::Other(9))] {
                let head = Head { refusal, source, destination, tag: 0x0102_0304 };
                let mut buffer = [0xff; Head::LONGEST];
                let bytes = head.emit(&mut buffer).expect("one version of IP");
                assert_eq!(bytes.len(), length);
                assert_eq!(Head::parse(bytes), Ok((head, &[][..])));
                assert!((0..length).all(|length| Head::parse(&bytes[..length]).is_err()));
            }
        }
        let head = Head { refusal: None, source: v4[0], destination: v6[0], tag: 0 };
        assert_eq!(head.emit(&mut [0; Head::LONGEST]), None);
        let head = Head { refusal: Some(Refusal::Full), source: v4[0], destination: v4[1], tag: 0x0102_0304 };
        #[rustfmt::skip]
        assert_eq!(head.emit(&mut [0; Head::LONGEST]).unwrap(), [
            1, 4, 1, 0, 0x14, 0x51, 0x10, 0x01, 1, 2, 3, 4, 10, 80, 1, 1, 10, 80, 2, 1,
        ]);
        for (at, wrong) in [(0, 2), (1, 5)] {
            let mut buffer = [0; Head::LONGEST];
            head.emit(&mut buffer);
            buffer[at] = wrong;
            assert_eq!(Head::parse(&buffer), Err(ParseError::Version(wrong)));
        }
    }
}
