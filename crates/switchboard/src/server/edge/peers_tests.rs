//! Which addresses are in a range, and who needs no credential.

use http::{HeaderMap, HeaderValue, header};
use switchboard_core::dialect::Dialect;

use super::{AddressRange, OpenPeers};

#[test]
fn ranges_hold_their_addresses_and_no_others() {
    for (range, inside, outside) in [
        ("192.0.2.7", vec!["192.0.2.7", "::ffff:192.0.2.7"], vec!["192.0.2.8", "::1"]),
        ("10.0.0.0/8", vec!["10.0.0.0", "10.255.255.255"], vec!["9.255.255.255", "11.0.0.0"]),
        ("0.0.0.0/0", vec!["0.0.0.0", "255.255.255.255"], vec!["::", "2001:db8::1"]),
        ("2001:db8::/33", vec!["2001:db8::1"], vec!["2001:db8:8000::", "10.0.0.1"]),
        ("::/0", vec!["::", "2001:db8::1"], vec!["10.0.0.1"]),
    ] {
        let range = AddressRange::parse(range).unwrap();
        for (addresses, expected) in [(inside, true), (outside, false)] {
            for address in addresses {
                assert_eq!(range.contains(address.parse().unwrap()), expected, "{address} in {range}");
            }
        }
    }
    for wrong in ["", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/-1", "::/129", "host", "10/8"]
    {
        assert!(AddressRange::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn only_listed_peers_of_the_dialect_need_no_credential() {
    let peers = OpenPeers::parse(&["nexus=10.1.0.0/16".to_owned(), "corvid=192.0.2.7".to_owned()]).unwrap();
    let named = |dialect, peer: &str| {
        let identity = peers.identify(dialect, peer.parse().ok(), &HeaderMap::new())?;
        assert!(!identity.authenticated && !identity.operator);
        Some(identity.principal.as_str().to_owned())
    };
    assert_eq!(named(Dialect::Nexus, "10.1.2.3").as_deref(), Some("peer#10.1.2.3"));
    assert_eq!(named(Dialect::Corvid, "10.1.2.3"), None);
    assert_eq!(named(Dialect::Corvid, "192.0.2.7").as_deref(), Some("peer#192.0.2.7"));
    assert_eq!(named(Dialect::Nexus, "10.2.0.1"), None);
    assert_eq!(named(Dialect::Nexus, ""), None, "a peer that is not known");
    // Whoever shows a credential is checked by it.
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer wrong"));
    assert!(peers.identify(Dialect::Nexus, "10.1.2.3".parse().ok(), &headers).is_none());
    for wrong in ["10.1.0.0/16", "a2a=10.1.0.0/16", "nexus=", "nexus=10.1.0.1/16"] {
        assert!(OpenPeers::parse(&[wrong.to_owned()]).is_err(), "{wrong}");
    }
}
