//! Every range from its first to its last address, and the neighbours that must stay open.

use super::{AddressRange, refusal};

const REFUSED: &[(&str, &str)] = &[
    ("0.0.0.0", "unspecified, it means this host"),
    ("0.255.255.255", "unspecified, it means this host"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.0", "shared by carriers, and inside of clouds"),
    ("100.100.100.200", "shared by carriers, and inside of clouds"),
    ("100.127.255.255", "shared by carriers, and inside of clouds"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.255", "loopback"),
    ("168.63.129.16", "the platform behind a virtual machine"),
    ("169.254.0.0", "link-local, where clouds keep credentials"),
    ("169.254.169.254", "link-local, where clouds keep credentials"),
    ("169.254.255.255", "link-local, where clouds keep credentials"),
    ("172.16.0.0", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.192", "kept for protocols"),
    ("192.0.2.1", "for documentation"),
    ("192.88.99.1", "a relay of 6to4"),
    ("192.168.0.0", "private"),
    ("192.168.255.255", "private"),
    ("198.18.0.0", "for benchmarks"),
    ("198.19.255.255", "for benchmarks"),
    ("198.51.100.255", "for documentation"),
    ("203.0.113.0", "for documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("240.0.0.0", "reserved"),
    ("255.255.255.254", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::", "unspecified, it means this host"),
    ("::1", "loopback"),
    ("64:ff9b:1::", "translated to IPv4 by a local rule"),
    ("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "translated to IPv4 by a local rule"),
    ("100::1", "discarded"),
    ("2001::1", "Teredo, a tunnel to an IPv4 address"),
    ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo, a tunnel to an IPv4 address"),
    ("2001:2::1", "kept for protocols"),
    ("2001:20::1", "kept for protocols"),
    ("2001:1ff:ffff::1", "kept for protocols"),
    ("2001:db8::1", "for documentation"),
    ("3fff:fff::1", "for documentation"),
    ("5f00::1", "segment routing"),
    ("fc00::", "unique local"),
    ("fd00:ec2::254", "unique local"),
    ("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique local"),
    ("fe80::1", "link-local"),
    ("febf::1", "link-local"),
    ("fec0::1", "site-local"),
    ("feff::1", "site-local"),
    ("ff02::1", "multicast"),
    // Whatever else is not handed out.
    ("1000::1", "not a global unicast address"),
    ("4000::1", "not a global unicast address"),
    ("fe00::1", "not a global unicast address"),
    ("::1:0:0:1", "not a global unicast address"),
    // IPv4 in disguise: mapped, compatible, NAT64, 6to4.
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:169.254.169.254", "link-local, where clouds keep credentials"),
    ("::ffff:a00:1", "private"),
    ("::127.0.0.1", "loopback"),
    ("::10.0.0.1", "private"),
    ("64:ff9b::127.0.0.1", "loopback"),
    ("64:ff9b::a9fe:a9fe", "link-local, where clouds keep credentials"),
    ("2002:7f00:1::", "loopback"),
    ("2002:a9fe:a9fe::1", "link-local, where clouds keep credentials"),
    ("2002:c0a8:101:1::1", "private"),
];

const OPEN: &[&str] = &[
    "1.0.0.0",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "203.0.112.255",
    "203.0.114.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "3ffe::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
];

#[test]
fn what_is_not_on_the_open_internet_is_refused_with_its_reason() {
    for (ip, why) in REFUSED {
        assert_eq!(refusal(ip.parse().unwrap()), Some(*why), "{ip}");
    }
}

#[test]
fn the_open_internet_is_open_up_to_the_edges_of_the_ranges() {
    for ip in OPEN {
        assert_eq!(refusal(ip.parse().unwrap()), None, "{ip}");
    }
}

#[test]
fn a_range_ends_where_its_prefix_says() {
    for (range, inside, outside) in [
        ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
        ("10.1.2.3/32", "10.1.2.3", "10.1.2.2"),
        ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
        ("192.0.2.7", "::ffff:192.0.2.7", "::1"),
        ("::ffff:192.0.2.7", "192.0.2.7", "::192.0.2.7"),
        ("2001:db8::/33", "2001:db8::1", "2001:db8:8000::"),
        ("0.0.0.0/0", "255.255.255.255", "::"),
        ("::/0", "ffff::", "0.0.0.0"),
        ("fd00::/8", "fdff::1", "fc00::1"),
        ("fd00:1:2::/47", "fd00:1:3:ffff::", "fd00:1:4::"),
        ("::1/128", "::1", "::2"),
    ] {
        let range = AddressRange::parse(range).unwrap();
        assert!(range.contains(inside.parse().unwrap()), "{range:?} {inside}");
        assert!(!range.contains(outside.parse().unwrap()), "{range:?} {outside}");
    }
}

#[test]
fn a_range_that_may_not_mean_what_it_says_is_refused() {
    for text in [
        "10.0.0.1/8",
        "10.0.0.0/33",
        "fd00::1/8",
        "::1/129",
        "10.0.0.0/",
        "/8",
        "10/8",
        "10.0.0.0/-1",
        "10.0.0.0/+8",
        "",
        "host",
        "::ffff:10.0.0.0/104",
    ] {
        let why = AddressRange::parse(text).unwrap_err();
        assert!(why.contains("expected an address such as 192.0.2.7, or a range such as 10.0.0.0/8"), "{why}");
    }
}
