//! What may be said about a collector.

use super::Otlp;

#[test]
fn the_paths_of_both_signals_are_added_to_the_url() {
    for endpoint in ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"] {
        let otlp = Otlp::new(endpoint).unwrap();
        assert_eq!(otlp.traces.to_string(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(otlp.metrics.to_string(), "http://127.0.0.1:4318/v1/metrics");
    }
    assert_eq!(Otlp::new("https://otlp.example/in").unwrap().traces.path(), "/in/v1/traces");
}

#[test]
fn a_url_that_cannot_be_called_is_refused() {
    for (endpoint, why) in [
        ("127.0.0.1:4318", "http"),
        ("ftp://collector", "http"),
        ("", "http"),
        ("http://a b", "http"),
        ("http://collector?a=1", "query"),
    ] {
        let error = Otlp::new(endpoint).unwrap_err();
        assert!(error.contains(why), "{endpoint}: {error}");
    }
}

#[test]
fn headers_are_read_and_their_values_never_shown() {
    let otlp = Otlp::new("http://c").unwrap().with_headers("authorization=Bearer%20s3cret, x-tenant = 7 ,").unwrap();
    let read: Vec<_> = otlp.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(read, [("authorization", "Bearer s3cret"), ("x-tenant", "7")]);
    assert!(!format!("{otlp:?}").contains("s3cret"));
    for unfit in ["s3cret", "bad name=s3cret", "x=s3cret%0a"] {
        let error = Otlp::new("http://c").unwrap().with_headers(unfit).unwrap_err();
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn a_ratio_is_between_none_and_all() {
    let with = |ratio| Otlp::new("http://c").unwrap().with_sample_ratio(ratio);
    assert!(with(0.0).is_ok() && with(1.0).is_ok());
    assert!(with(-0.1).is_err() && with(1.1).is_err() && with(f64::NAN).is_err());
}
