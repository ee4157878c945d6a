//! What one pass finds, and which headers are dropped.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{ContentType, IDENTITY_HEADERS, PresentHeaders, drop_identity_headers};

fn present(lines: &[(&'static str, &'static str)]) -> PresentHeaders {
    let line =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    let mut headers = HeaderMap::new();
    for (name, value) in lines.iter().map(line) {
        headers.append(name, value);
    }
    PresentHeaders::of(&headers)
}

#[test]
fn an_ordinary_request_has_nothing_but_its_content_type() {
    let found =
        present(&[("host", "a"), ("content-type", "application/json"), ("content-length", "2"), ("x-other", "1")]);
    let PresentHeaders { origin, request_id, version, call, grpc_call, trace, identity, content_type } = found;
    assert!(!(origin || request_id || version || call || grpc_call || trace || identity));
    assert_eq!(content_type, ContentType::Json);
    assert_eq!(present(&[]).content_type, ContentType::Absent);
}

#[test]
fn each_header_is_found_among_others() {
    let with = |name| present(&[("accept", "*/*"), (name, "1"), ("user-agent", "a")]);
    assert!(with("origin").origin);
    assert!(with("x-request-id").request_id);
    assert!(with("a2a-version").version);
    assert!(with("traceparent").trace);
    for name in ["a2a-extensions", "x-a2a-extensions", "idempotency-key", "last-event-id"] {
        assert!(with(name).call, "{name}");
    }
    for name in ["grpc-encoding", "grpc-timeout"] {
        assert!(with(name).grpc_call, "{name}");
    }
    for name in ["remote-user", "x-forwarded-user", "x_user_id"] {
        assert!(with(name).identity, "{name}");
    }
}

#[test]
fn of_two_content_types_the_first_counts() {
    let twice = |first, second| present(&[("content-type", first), ("content-type", second)]).content_type;
    assert_eq!(twice("text/plain", "application/json"), ContentType::Other);
    assert_eq!(twice("application/json", "text/plain"), ContentType::Json);
    assert_eq!(twice("application/a2a+json", "application/json"), ContentType::Other);
}

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
