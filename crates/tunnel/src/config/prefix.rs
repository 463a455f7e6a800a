//! Prefixes of IP addresses.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

/// A prefix of IPv4 or IPv6 addresses, as "10.1.0.0/16".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix {
    /// First address of the prefix.
    pub address: IpAddr,
    /// Number of bits that all addresses of the prefix have in common.
    pub length: u8,
}

impl Prefix {
    /// Returns whether the prefix contains an address. IPv4 addresses written as IPv6 ones count as IPv4.
    pub fn contains(self, address: IpAddr) -> bool {
        mask(address.to_canonical(), self.length) == Some(self.address)
            && address.to_canonical().is_ipv4() == self.address.is_ipv4()
    }
    /// Returns whether two prefixes have an address in common: one contains the other.
    pub fn overlaps(self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }
}

/// An address of this host inside, with the length of the prefix that can be reached without a router, as
/// "10.1.0.1/24".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InnerAddress {
    /// The address.
    pub address: IpAddr,
    /// Number of bits that all addresses of the prefix have in common.
    pub length: u8,
}

impl FromStr for InnerAddress {
    type Err = PrefixError;
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let example = || {
            PrefixError(format!(
                "\"{text}\" is no address with its prefix's length; write one as \"10.1.0.1/24\" or \"2001:db8::1/64\""
            ))
        };
        let (address, length) = text.split_once('/').ok_or_else(example)?;
        let address: IpAddr = address.parse().map_err(|_| example())?;
        let length: u8 = length.parse().map_err(|_| example())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if mask(address, length).is_none() {
            return Err(PrefixError(format!("\"{text}\": a length is at most {bits}")));
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for InnerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Returns an address with all bits behind the first `length` cleared; `None` if it has fewer bits.
fn mask(address: IpAddr, length: u8) -> Option<IpAddr> {
    let (bits, length) = match address {
        IpAddr::V4(_) => (32, u32::from(length)),
        IpAddr::V6(_) => (128, u32::from(length)),
    };
    let behind = (length <= bits).then(|| bits - length)?;
    Some(match address {
        IpAddr::V4(address) => IpAddr::V4((address.to_bits() & u32::MAX.checked_shl(behind).unwrap_or(0)).into()),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & u128::MAX.checked_shl(behind).unwrap_or(0)).into()),
    })
}

/// Reason why a text is no prefix, with what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefixError(String);

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let example =
            || PrefixError(format!("\"{text}\" is no prefix; write one as \"10.1.0.0/16\" or \"2001:db8::/48\""));
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| example())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let Some(length) = length else {
            return Err(PrefixError(format!("\"{text}\" is an address; its prefix is \"{address}/{bits}\"")));
        };
        let length: u8 = length.parse().map_err(|_| example())?;
        let first =
            mask(address, length).ok_or_else(|| PrefixError(format!("\"{text}\": a length is at most {bits}")))?;
        if first != address {
            let message = format!("\"{text}\" has bits behind its length; the prefix is \"{first}/{length}\"");
            return Err(PrefixError(message));
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn prefixes_contain_their_addresses_and_no_others() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for (text, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("2001:db8::/48", "2001:db8:0:ffff::1", "2001:db8:1::"),
            ("::/0", "::1", "10.0.0.1"),
            ("10.1.0.0/16", "::ffff:10.1.0.1", "2001:db8::1"),
        ] {
            assert!(prefix(text).contains(address(inside)) && !prefix(text).contains(address(outside)), "{text}");
            assert_eq!(prefix(text).to_string(), text);
        }
        assert!(prefix("10.0.0.0/8").overlaps(prefix("10.1.0.0/16")));
        assert!(prefix("10.1.0.0/16").overlaps(prefix("10.0.0.0/8")));
        assert!(!prefix("10.1.0.0/16").overlaps(prefix("10.2.0.0/16")));
        assert!(!prefix("0.0.0.0/0").overlaps(prefix("::/0")));
    }

    #[test]
    fn errors_have_the_remedy() {
        let message = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert!(message("10.1.0.5/16").ends_with("the prefix is \"10.1.0.0/16\""));
        assert!(message("10.1.0.5").ends_with("its prefix is \"10.1.0.5/32\""));
        assert!(message("10.1.0.0/33").ends_with("a length is at most 32"));
        assert!(message("10.1/16").contains("write one as"));
        let message = |text: &str| text.parse::<InnerAddress>().unwrap_err().to_string();
        assert!(message("10.1.0.1").contains("write one as \"10.1.0.1/24\""));
        assert!(message("10.1.0.1/33").ends_with("a length is at most 32"));
        assert_eq!("2001:db8::1/64".parse::<InnerAddress>().unwrap().to_string(), "2001:db8::1/64");
    }
}
