//! Under which names a server follows its callers.

use http::{HeaderMap, HeaderValue, Uri, header};

use crate::server::exposure::origins::{Origins, named_authority};

/// The address that a request with this `Host` is answered with.
fn followed(origins: &Origins, host: &str) -> String {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
    base(origins, origins.asked(named_authority(&Uri::from_static("/"), &headers)))
}

fn base(origins: &Origins, asked: Option<usize>) -> String {
    asked.map_or(origins.own(), |number| origins.others().nth(number).unwrap()).to_owned()
}

#[test]
fn every_loopback_name_at_the_servers_port_is_followed() {
    let origins = Origins::of_port("http://127.0.0.1:8080".to_owned(), 8080);
    assert_eq!(followed(&origins, "127.0.0.1:8080"), "http://127.0.0.1:8080");
    assert_eq!(followed(&origins, "localhost:8080"), "http://localhost:8080");
    assert_eq!(followed(&origins, "LocalHost:8080"), "http://localhost:8080");
    assert_eq!(followed(&origins, "[::1]:8080"), "http://[::1]:8080");
    // HTTP/2 has no Host header.
    let http2 = Uri::from_static("http://localhost:8080/rpc");
    assert_eq!(base(&origins, origins.asked(named_authority(&http2, &HeaderMap::new()))), "http://localhost:8080");
}

#[test]
fn no_other_name_or_port_is_followed() {
    let origins = Origins::of_port("http://127.0.0.1:8080".to_owned(), 8080);
    let foreign = [
        "evil.example:8080",
        "localhost.evil.example:8080",
        "user@localhost:8080",
        "localhost:80800",
        "localhost:",
        "localhost:9999",
        "localhost",
        "127.0.0.2:8080",
        "[::1]",
        ":8080",
        "",
    ];
    for host in foreign {
        assert_eq!(followed(&origins, host), "http://127.0.0.1:8080", "{host}");
    }
    assert_eq!(origins.asked(named_authority(&Uri::from_static("/"), &HeaderMap::new())), None, "no name at all");
}

#[test]
fn the_port_of_the_scheme_may_be_left_out() {
    let plain = Origins::of_port("http://127.0.0.1:80".to_owned(), 80);
    assert_eq!(followed(&plain, "localhost"), "http://localhost:80");
    let tls = Origins::of_port("https://agents.example:443".to_owned(), 443);
    assert_eq!(followed(&tls, "localhost"), "https://localhost:443");
    assert_eq!(followed(&tls, "agents.example"), "https://agents.example:443");
}

#[test]
fn a_server_on_ipv6_follows_the_names_of_ipv4() {
    let origins = Origins::of_port("http://[::1]:8080".to_owned(), 8080);
    assert_eq!(origins.others().collect::<Vec<_>>(), ["http://127.0.0.1:8080", "http://localhost:8080"]);
    assert_eq!(followed(&origins, "[::1]:8080"), "http://[::1]:8080");
}

#[test]
fn a_public_url_is_the_only_address() {
    let origins = Origins::fixed("https://agents.example/a2a".to_owned());
    assert_eq!(followed(&origins, "localhost:8080"), "https://agents.example/a2a");
    assert_eq!(origins.others().count(), 0);
}
