//! Where traces and metrics are sent.

use super::load;
use crate::config::print;

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
const HEADERS: (&str, &str) = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hidden");

#[test]
fn a_collector_is_named_by_the_variables_of_opentelemetry_and_its_headers_are_not_printed() {
    let config = load(&[], &[ENDPOINT, HEADERS, ("OTEL_TRACES_SAMPLER_ARG", "0.25")], "").unwrap();
    let printed = print(&config).unwrap();
    for line in ["otlp_endpoint = \"http://127.0.0.1:4318\"", "otlp_sample_ratio = \"0.25\"", "otlp_interval_s = 60"] {
        assert!(printed.contains(line), "{printed}");
    }
    assert!(
        printed.contains("# Left out: the headers for the collector from OTEL_EXPORTER_OTLP_HEADERS."),
        "{printed}"
    );
    assert!(config.otlp.is_some() && !printed.contains("hidden") && !format!("{config:?}").contains("hidden"));
}

#[test]
fn without_a_collector_nothing_is_sent_and_variables_for_other_programs_are_left_alone() {
    let config = load(&[], &[HEADERS], "").unwrap();
    assert!(config.otlp.is_none());
    assert!(!print(&config).unwrap().contains("otlp_service_name"), "settings without an effect are not printed");
}

#[test]
fn what_no_collector_can_be_reached_with_is_refused_by_name() {
    let refused = |flags: &[&str], variables: &[(&str, &str)]| load(flags, variables, "").unwrap_err();
    let broken = ("OTEL_EXPORTER_OTLP_HEADERS", "hidden");
    for (told, expected) in [
        (refused(&["--otlp-endpoint", "127.0.0.1:4318"], &[]), "--otlp-endpoint: expected a URL"),
        (refused(&["--otlp-headers-file", "tokens.txt"], &[]), "--otlp-headers-file: there is no collector; name it"),
        (refused(&["--otlp-headers-file", "absent"], &[ENDPOINT]), "absent cannot be read"),
        (refused(&["--otlp-sample-ratio", "2"], &[ENDPOINT]), "--otlp-sample-ratio: expected a number from 0 to 1"),
        (refused(&["--otlp-interval", "0"], &[ENDPOINT]), "--otlp-interval: expected 1 to 3600 seconds"),
        (refused(&[], &[ENDPOINT, broken]), "OTEL_EXPORTER_OTLP_HEADERS: a header has no ="),
    ] {
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains("hidden"), "{told}");
    }
}
