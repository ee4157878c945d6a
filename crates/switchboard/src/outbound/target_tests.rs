//! URLs that pass, and the many that do not.

use super::{check_url, host_and_port};

#[test]
fn plain_urls_pass_and_keep_their_parts() {
    for (url, host, port, path) in [
        ("https://hooks.example/a/b?c=d&e=%2F", "hooks.example", 443, "/a/b?c=d&e=%2F"),
        ("http://hooks.example", "hooks.example", 80, "/"),
        ("HTTPS://Hooks.Example:8443/", "Hooks.Example", 8443, "/"),
        ("http://hooks.example:65535?x", "hooks.example", 65535, "/?x"),
        ("http://hooks.example./", "hooks.example.", 80, "/"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example", 80, "/"),
        ("http://my_hooks:9000/@user:x", "my_hooks", 9000, "/@user:x"),
        ("http://192.0.2.1/", "192.0.2.1", 80, "/"),
        ("http://[2001:db8::1]:81/", "2001:db8::1", 81, "/"),
        // Judged by what they resolve to, not by their text.
        ("http://localhost/", "localhost", 80, "/"),
        ("http://127.0.0.1/", "127.0.0.1", 80, "/"),
        ("http://[::1]/", "::1", 80, "/"),
        ("http://1e100.example/", "1e100.example", 80, "/"),
    ] {
        let uri = check_url(url).unwrap();
        let seen = (host_and_port(&uri).unwrap(), uri.path_and_query().unwrap().to_string());
        assert_eq!(seen, ((host, port), path.to_owned()), "{url}");
    }
}

#[test]
fn urls_that_can_be_misread_are_refused() {
    for (url, why) in [
        ("", "cannot be read"),
        ("/hooks", "must begin with http"),
        ("hooks.example", "must begin with http"),
        ("//hooks.example/", "must begin with http"),
        ("ftp://hooks.example/", "must begin with http"),
        ("file:///etc/passwd", "cannot be read"),
        ("gopher://hooks.example:25/", "must begin with http"),
        ("http:/hooks.example", "cannot be read"),
        ("http://", "cannot be read"),
        ("http:///path", "cannot be read"),
        ("http://:80/", "is neither a host name"),
        ("http://./", "is neither a host name"),
        ("http://user@hooks.example/", "user name"),
        ("http://user:secret@hooks.example/", "user name"),
        ("http://@hooks.example/", "user name"),
        ("http://hooks.example/#part", "fragment"),
        ("http://evil.example#@hooks.example/", "fragment"),
        ("http://evil.example\\@hooks.example/", "backslash"),
        ("http://hooks.example/a b", "printable ASCII"),
        ("http://hooks.example/a\r\nHost: x", "printable ASCII"),
        ("http://hooks.example/\u{7f}", "printable ASCII"),
        ("http://b\u{fc}cher.example/", "printable ASCII"),
        ("http://\u{ff11}27.0.0.1/", "printable ASCII"),
        ("http://hooks.example:0/", "port"),
        ("http://hooks.example:65536/", "port"),
        ("http://hooks.example:+80/", "port"),
        ("http://hooks.example:/", "port"),
        ("http://hooks.example:8a/", "port"),
        ("http://hooks%2eexample/", "cannot be read"),
        ("http://hooks..example/", "is neither a host name"),
        ("http://127.1/", "is neither a host name"),
        ("http://2130706433/", "is neither a host name"),
        ("http://0x7f000001/", "is neither a host name"),
        ("http://0x7f.0.0.0x1/", "is neither a host name"),
        ("http://0177.0.0.1/", "is neither a host name"),
        ("http://127.0.0.1./", "is neither a host name"),
        ("http://[::1/", "cannot be read"),
        ("http://[127.0.0.1]/", "not an IPv6 address"),
        ("http://[fe80::1%25eth0]/", "not an IPv6 address"),
        ("http://[::1]x/", "port"),
    ] {
        let error = check_url(url).expect_err(url);
        assert!(error.contains(why), "{url}: {error}");
    }
}

#[test]
fn a_url_has_a_longest_length() {
    let url = |bytes: usize| format!("{:a<bytes$}", "http://hooks.example/");
    assert!(check_url(&url(8_192)).is_ok());
    assert_eq!(check_url(&url(8_193)).unwrap_err(), "URL has 8193 bytes, expected at most 8192");
    assert!(check_url(&format!("http://{}.example/", "a.".repeat(130))).is_err());
}
