//! What a browser is told.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::server::exposure::origins::Cors;

fn marked(cors: &Cors, origin: Option<&str>, public: bool) -> Vec<String> {
    let origin = origin.map(|origin| HeaderValue::from_str(origin).unwrap());
    let mut headers = HeaderMap::new();
    cors.mark(origin.as_ref(), public, &mut headers);
    let mut lines: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort();
    lines
}

const EXPOSED: &str = "access-control-expose-headers: a2a-extensions, x-a2a-extensions, a2a-output-modes, x-request-id, retry-after, etag, accept-ranges, \
     content-range, content-disposition";

#[test]
fn only_the_pages_that_are_named_may_read_answers() {
    let cors = Cors::origins(["https://App.example/", "http://localhost:3000"]);
    for origin in ["https://app.example", "https://APP.EXAMPLE", "http://localhost:3000"] {
        let allowed = format!("access-control-allow-origin: {origin}");
        assert_eq!(marked(&cors, Some(origin), false), [allowed.as_str(), EXPOSED, "vary: origin"]);
    }
    for origin in [None, Some("https://evil.example"), Some("https://app.example.evil"), Some("null"), Some("*")] {
        assert_eq!(marked(&cors, origin, false), [""; 0], "{origin:?}");
    }
    assert_eq!(marked(&Cors::default(), Some("https://app.example"), false), [""; 0], "off unless said otherwise");
}

#[test]
fn what_is_public_may_be_read_by_any_page() {
    for origin in [None, Some("https://anywhere.example"), Some("null")] {
        let expected = ["access-control-allow-origin: *", EXPOSED];
        assert_eq!(marked(&Cors::default(), origin, true), expected, "{origin:?}");
    }
}

#[test]
fn a_preflight_names_verbs_and_headers() {
    let headers: HeaderMap = Cors::default().preflight().into_iter().collect();
    assert_eq!(headers["access-control-allow-methods"], "GET, POST, DELETE, OPTIONS");
    assert_eq!(headers["access-control-max-age"], "600");
    let allowed = headers["access-control-allow-headers"].to_str().unwrap();
    assert!(allowed.split(", ").any(|name| name == "last-event-id"), "{allowed}");
    let with_key = Cors::default().with_api_key_header(Some(HeaderName::from_static("x-api-key")));
    let headers: HeaderMap = with_key.preflight().into_iter().collect();
    assert_eq!(headers["access-control-allow-headers"], format!("{allowed}, x-api-key"));
}
