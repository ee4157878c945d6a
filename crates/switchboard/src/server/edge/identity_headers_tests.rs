//! Which headers are dropped.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{IDENTITY_HEADERS, drop_identity_headers};

#[test]
fn the_list_is_in_order() {
    assert!(IDENTITY_HEADERS.is_sorted());
}

#[test]
fn what_names_the_caller_is_dropped_and_nothing_else() {
    let mut headers = HeaderMap::new();
    let kept = ["host", "authorization", "x-request-id", "x-source-agent", "cookie", "content-type", "x-forwarded-for"];
    let dropped = ["x-forwarded-user", "x_user_id", "remote-user", "x-remote-user", "x-ms-client-principal"];
    for name in kept.iter().chain(&dropped).chain(&["x-user-id"]) {
        for value in ["1", "2"] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
    }
    drop_identity_headers(&mut headers);
    let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    let mut expected = kept.to_vec();
    expected.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn each_header_of_the_list_is_dropped() {
    for name in IDENTITY_HEADERS {
        let mut headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("1"))]);
        drop_identity_headers(&mut headers);
        assert!(headers.is_empty(), "{name}");
    }
}
