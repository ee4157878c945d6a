//! Names and origins that are let in.

use http::{HeaderMap, HeaderValue, Uri};

use crate::server::exposure::origins::{Cors, HostCheck, HostRule, named_authority};

fn headers(host: Option<&str>, origin: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [("host", host), ("origin", origin)] {
        if let Some(value) = value {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
    }
    headers
}

fn admits(gate: &HostCheck, target: &str, host: Option<&str>, origin: Option<&str>, public: bool) -> bool {
    let cors = Cors::origins(["https://app.example"]);
    let headers = headers(host, origin);
    gate.admits(named_authority(&target.parse().unwrap(), &headers), headers.get("origin"), &cors, public).is_ok()
}

fn loopback() -> HostCheck {
    HostCheck::new(HostRule::Loopback, Some(&Uri::from_static("https://Agents.Example:8443/base")), None)
}

#[test]
fn a_host_is_loopback_or_our_own() {
    for (host, expected) in [
        (Some("localhost"), true),
        (Some("LocalHost:8080"), true),
        (Some("127.0.0.1"), true),
        (Some("127.255.0.9:1"), true),
        (Some("[::1]:8080"), true),
        (Some("agents.example"), true),
        (Some("AGENTS.example:9"), true),
        (Some("agents.example."), true),
        (None, false),
        (Some(""), false),
        (Some("example"), false),
        (Some("agents.example.evil"), false),
        (Some("xlocalhost"), false),
        (Some("0.0.0.0"), false),
        (Some("192.168.0.1"), false),
        (Some("[::ffff:10.0.0.1]"), false),
        (Some("[::1"), true),
        (Some("2130706433"), false),
        (Some("user@localhost"), false),
        (Some("localhost:x@evil.example"), false),
    ] {
        assert_eq!(admits(&loopback(), "/", host, None, false), expected, "{host:?}");
        assert_eq!(admits(&loopback(), "/", host, None, true), expected, "{host:?}: the card is no exception");
    }
}

#[test]
fn the_target_names_the_host_before_the_header_does() {
    assert!(admits(&loopback(), "http://localhost/", None, None, false));
    assert!(admits(&loopback(), "http://[::1]:8080/", None, None, false));
    assert!(!admits(&loopback(), "http://evil.example/", Some("localhost"), None, false));
    assert!(!admits(&loopback(), "http://localhost:x@evil.example/", Some("localhost"), None, false));
}

#[test]
fn an_origin_is_ours_allowed_or_turned_away() {
    for (origin, expected) in [
        (None, true),
        (Some("http://localhost:3000"), true),
        (Some("https://127.0.0.1"), true),
        (Some("http://[::1]"), true),
        (Some("https://agents.example:8443"), true),
        (Some("https://app.example"), true),
        (Some("HTTPS://APP.example"), true),
        (Some("https://app.example:444"), false),
        (Some("http://app.example"), false),
        (Some("https://evil.example"), false),
        (Some("https://localhost.evil.example"), false),
        (Some("null"), false),
        (Some(""), false),
        (Some("localhost"), false),
    ] {
        assert_eq!(admits(&loopback(), "/", Some("localhost"), origin, false), expected, "{origin:?}");
        assert!(admits(&loopback(), "/", Some("localhost"), origin, true), "{origin:?}: any page may read the card");
    }
}

#[test]
fn where_callers_show_a_credential_any_name_may_be_ours() {
    let gate = HostCheck::new(HostRule::Any, None, None);
    assert!(admits(&gate, "/", None, Some("https://evil.example"), false));
    assert!(admits(&gate, "/", Some("whatever"), None, false));
}

#[test]
fn the_name_in_the_certificate_is_ours() {
    let gate = HostCheck::new(HostRule::Loopback, None, Some("Agents.Example".to_owned()));
    assert!(admits(&gate, "/", Some("agents.example:8443"), Some("https://agents.example:8443"), false));
    assert!(!admits(&gate, "/", Some("other.example"), None, false));
}

#[test]
fn an_open_server_beyond_loopback_answers_to_its_names_and_to_numbers() {
    let gate = HostCheck::new(HostRule::Addresses, Some(&Uri::from_static("https://agents.example")), None);
    let gate = gate.with_hosts(vec!["box.lan".to_owned(), "[2001:db8::7]".to_owned()]);
    for (host, origin, expected) in [
        (None, None, true),
        (Some("agents.example"), None, true),
        (Some("box.lan:8080"), None, true),
        (Some("192.168.0.7:8080"), None, true),
        (Some("[2001:db8::1]:8080"), None, true),
        (Some("localhost:8080"), None, true),
        // A name that somebody else has point here, and a page there.
        (Some("evil.example"), None, false),
        (Some("evil.example:8080"), Some("http://evil.example:8080"), false),
        (Some("1.2.3.4.evil.example"), None, false),
        (Some("2130706433"), None, false),
        (None, Some("https://evil.example"), false),
        // Pages elsewhere, those of other servers on the reader's machine included.
        (Some("192.168.0.7:8080"), Some("https://evil.example"), false),
        (Some("192.168.0.7:8080"), Some("http://192.168.0.7:3000"), false),
        (Some("192.168.0.7:8080"), Some("http://localhost:3000"), false),
        (Some("192.168.0.7:8080"), Some("null"), false),
        // Pages of this server, of its names, and of an origin that a setting allows.
        (Some("192.168.0.7:8080"), Some("http://192.168.0.7:8080"), true),
        (Some("192.168.0.7:8080"), Some("https://agents.example"), true),
        (Some("agents.example"), Some("https://box.lan:3000"), true),
        (Some("agents.example"), Some("https://app.example"), true),
    ] {
        assert_eq!(admits(&gate, "/", host, origin, false), expected, "{host:?} {origin:?}");
    }
}
