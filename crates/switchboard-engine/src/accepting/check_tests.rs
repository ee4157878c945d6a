//! Media types: what counts as the same.

use super::modes_match;

#[test]
fn ranges_parameters_and_case_do_not_matter() {
    for (one, other, expected) in [
        ("text/plain", "text/plain", true),
        ("text/plain", "TEXT/Plain; charset=utf-8", true),
        ("text/*", "text/csv", true),
        ("*/*", "image/png", true),
        ("text/plain", "text", true),
        ("text/plain", "text/csv", false),
        ("application/json", "text/plain", false),
        ("text/plain", "", false),
    ] {
        assert_eq!(modes_match(one, other), expected, "{one} ~ {other}");
        assert_eq!(modes_match(other, one), expected, "{other} ~ {one}");
    }
}
