//! What the operator's entries open, and what they leave closed.

use super::AddressPolicy;

/// Entry, then address, port and host of a call, then whether it may be made.
const TABLE: &[(&str, &str, u16, &str, bool)] = &[
    ("10.0.0.0/8", "10.1.2.3", 80, "10.1.2.3", true),
    ("10.0.0.0/8", "::ffff:10.1.2.3", 80, "hooks.example", true),
    ("10.0.0.0/8", "64:ff9b::10.1.2.3", 80, "hooks.example", false),
    ("10.0.0.0/8", "2002:a01:203::", 80, "hooks.example", false),
    ("10.0.0.0/8", "192.168.0.1", 80, "192.168.0.1", false),
    ("64:ff9b::a01:203", "64:ff9b::10.1.2.3", 80, "hooks.example", true),
    ("192.168.0.7", "192.168.0.7", 9, "nas", true),
    ("192.168.0.7", "192.168.0.8", 9, "nas", false),
    ("192.168.0.7:8080", "192.168.0.7", 8080, "nas", true),
    ("192.168.0.7:8080", "192.168.0.7", 80, "nas", false),
    ("::ffff:192.168.0.7", "192.168.0.7", 80, "nas", true),
    ("::1", "::1", 80, "::1", true),
    ("::1", "127.0.0.1", 80, "localhost", false),
    ("[::1]", "::1", 80, "::1", true),
    ("[::1]:8080", "::1", 8080, "localhost", true),
    ("[::1]:8080", "::1", 8081, "localhost", false),
    ("fd00::/8", "fd12::1", 80, "fd12::1", true),
    ("fd00::/8", "fc00::1", 80, "fc00::1", false),
    ("localhost", "127.0.0.1", 80, "localhost", true),
    ("localhost", "::1", 443, "LOCALHOST.", true),
    ("LocalHost.", "::1", 443, "localhost", true),
    // A name opens no address that was reached by another name, and no name that merely ends alike.
    ("localhost", "127.0.0.1", 80, "127.0.0.1", false),
    ("internal", "10.0.0.1", 80, "hooks.internal", false),
    ("hooks.internal", "10.0.0.1", 80, "hooks.internal", true),
    ("my_hooks:9000", "172.20.0.3", 9000, "my_hooks", true),
    ("my_hooks:9000", "172.20.0.3", 9001, "my_hooks", false),
    // What is open anyway needs no entry.
    ("localhost", "8.8.8.8", 80, "dns.example", true),
];

#[test]
fn an_entry_opens_what_it_names_and_nothing_else() {
    for (entry, ip, port, host, may) in TABLE {
        let policy = AddressPolicy::parse([entry]).unwrap();
        let verdict = policy.check_addr(ip.parse().unwrap(), *port, host);
        assert_eq!(verdict.is_ok(), *may, "{entry} for {host} at {ip} port {port}: {verdict:?}");
    }
}

#[test]
fn the_default_opens_nothing() {
    let policy = AddressPolicy::default();
    assert_eq!(AddressPolicy::parse([""; 0]), Ok(policy.clone()));
    assert_eq!(
        policy.check_addr("127.0.0.1".parse().unwrap(), 80, "localhost"),
        Err("localhost (127.0.0.1) port 80 may not be called: loopback; the operator can open it".to_owned())
    );
    assert_eq!(
        policy.check_addr("::ffff:10.0.0.1".parse().unwrap(), 443, "::ffff:10.0.0.1"),
        Err("10.0.0.1 port 443 may not be called: private; the operator can open it".to_owned())
    );
    assert_eq!(policy.check_addr("8.8.8.8".parse().unwrap(), 443, "dns.example"), Ok(()));
}

#[test]
fn several_entries_add_up() {
    let policy = AddressPolicy::parse(vec!["localhost:1".to_owned(), " 10.0.0.0/8 ".to_owned()]).unwrap();
    assert_eq!(policy.check_addr("127.0.0.1".parse().unwrap(), 1, "localhost"), Ok(()));
    assert_eq!(policy.check_addr("10.0.0.1".parse().unwrap(), 2, "x.example"), Ok(()));
    assert!(policy.check_addr("127.0.0.1".parse().unwrap(), 2, "localhost").is_err());
}

#[test]
fn an_entry_that_cannot_be_read_is_named() {
    for entry in [
        "",
        "*",
        "*.internal",
        "http://localhost",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "localhost:",
        "localhost:0",
        "localhost:65536",
        "localhost:http",
        "[127.0.0.1]",
        "[::1",
        "[::1]:x",
        "127.1",
        "0x7f000001",
        "user@localhost",
        "a b",
        "a..b",
    ] {
        let error = AddressPolicy::parse([entry]).unwrap_err();
        assert!(error.starts_with(&format!("{entry:?} is none of: ")), "{error}");
    }
}
