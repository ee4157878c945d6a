//! Who needs no credential.

use http::{HeaderMap, HeaderValue, header};
use switchboard_core::dialect::Dialect;

use super::OpenPeers;

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
