//! Address ranges, and the list of those that are no place for a call on behalf of somebody else.
//!
//! The lists follow the IANA registries of special-purpose addresses. For IPv6 they give the reasons only: what lies
//! outside of 2000::/3 is refused even without a row.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address, or all addresses that share the first `bits` bits of `first` (CIDR notation).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressRange {
    /// Not an IPv4 address that is mapped into IPv6: addresses are compared in their IPv4 form.
    first: IpAddr,
    bits: u8,
}

impl AddressRange {
    /// Reads `192.0.2.7`, `10.0.0.0/8` or `fd00::/8`. Bits behind the prefix are refused: to open more than was meant should not be
    /// a slip away. So is a range of mapped addresses.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            Err(format!("{text:?} {why}; expected an address such as 192.0.2.7, or a range such as 10.0.0.0/8"))
        };
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let Ok(first) = address.parse::<IpAddr>() else { return wrong("is not an address") };
        let Some(digits) = bits else { return Ok(Self::single(first)) };
        let bits = digits.parse::<u8>().ok().filter(|bits| *bits <= width(first) && !digits.starts_with('+'));
        let Some(bits) = bits else { return wrong("has a prefix length that does not fit") };
        if aligned(first).checked_shl(bits.into()).unwrap_or(0) != 0 {
            return wrong("has bits set behind its prefix");
        }
        if first.to_canonical() != first {
            return wrong("is a range of IPv4 addresses in IPv6 form");
        }
        Ok(Self { first, bits })
    }

    pub(super) fn single(ip: IpAddr) -> Self {
        let first = ip.to_canonical();
        Self { first, bits: width(first) }
    }

    pub(crate) fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        let shared = (aligned(self.first) ^ aligned(ip)).leading_zeros();
        self.first.is_ipv4() == ip.is_ipv4() && shared >= u32::from(self.bits)
    }

    const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Self {
        Self { first: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), bits }
    }
}

/// Why an address is no place to call; None for one on the open internet.
pub(super) fn refusal(ip: IpAddr) -> Option<&'static str> {
    let ip = ip.to_canonical();
    let rows = if ip.is_ipv4() { V4 } else { V6 };
    if let Some((_, why)) = rows.iter().find(|(range, _)| range.contains(ip)) {
        return Some(why);
    }
    let IpAddr::V6(v6) = ip else { return None };
    match embedded(v6) {
        Some(v4) => refusal(v4.into()),
        None => (!GLOBAL_UNICAST.contains(ip)).then_some("not a global unicast address"),
    }
}

/// The IPv4 address that a translator or tunnel on the way may deliver to.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        // IPv4-compatible, and NAT64's well-known prefix.
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        // 6to4.
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

const V4: &[(AddressRange, &str)] = &[
    (AddressRange::v4(0, 0, 0, 0, 8), "unspecified, it means this host"),
    (AddressRange::v4(10, 0, 0, 0, 8), "private"),
    (AddressRange::v4(100, 64, 0, 0, 10), "shared by carriers, and inside of clouds"),
    (AddressRange::v4(127, 0, 0, 0, 8), "loopback"),
    (AddressRange::v4(168, 63, 129, 16, 32), "the platform behind a virtual machine"),
    (AddressRange::v4(169, 254, 0, 0, 16), "link-local, where clouds keep credentials"),
    (AddressRange::v4(172, 16, 0, 0, 12), "private"),
    (AddressRange::v4(192, 0, 0, 0, 24), "kept for protocols"),
    (AddressRange::v4(192, 0, 2, 0, 24), "for documentation"),
    (AddressRange::v4(192, 88, 99, 0, 24), "a relay of 6to4"),
    (AddressRange::v4(192, 168, 0, 0, 16), "private"),
    (AddressRange::v4(198, 18, 0, 0, 15), "for benchmarks"),
    (AddressRange::v4(198, 51, 100, 0, 24), "for documentation"),
    (AddressRange::v4(203, 0, 113, 0, 24), "for documentation"),
    (AddressRange::v4(224, 0, 0, 0, 4), "multicast"),
    (AddressRange::v4(255, 255, 255, 255, 32), "broadcast"),
    (AddressRange::v4(240, 0, 0, 0, 4), "reserved"),
];

const V6: &[(AddressRange, &str)] = &[
    (AddressRange::v6(0, 0, 0, 128), "unspecified, it means this host"),
    (AddressRange { first: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 }, "loopback"),
    (AddressRange::v6(0x64, 0xff9b, 1, 48), "translated to IPv4 by a local rule"),
    (AddressRange::v6(0x100, 0, 0, 64), "discarded"),
    (AddressRange::v6(0x2001, 0, 0, 32), "Teredo, a tunnel to an IPv4 address"),
    (AddressRange::v6(0x2001, 0, 0, 23), "kept for protocols"),
    (AddressRange::v6(0x2001, 0xdb8, 0, 32), "for documentation"),
    (AddressRange::v6(0x3fff, 0, 0, 20), "for documentation"),
    (AddressRange::v6(0x5f00, 0, 0, 16), "segment routing"),
    (AddressRange::v6(0xfc00, 0, 0, 7), "unique local"),
    (AddressRange::v6(0xfe80, 0, 0, 10), "link-local"),
    (AddressRange::v6(0xfec0, 0, 0, 10), "site-local"),
    (AddressRange::v6(0xff00, 0, 0, 8), "multicast"),
];

const GLOBAL_UNICAST: AddressRange = AddressRange::v6(0x2000, 0, 0, 3);

/// The address at the left edge, so that prefixes of both families count from the same end.
fn aligned(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

#[cfg(test)]
#[path = "ranges_tests.rs"]
mod tests;
