//! Ranges of a file of ten bytes, and the conditions around them.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::server::downloads::serve::{RangeOutcome, wanted};

fn ask(headers: &[(&'static str, &'static str)]) -> RangeOutcome {
    ask_of(10, headers)
}

fn ask_of(bytes: u64, headers: &[(&'static str, &'static str)]) -> RangeOutcome {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    wanted(&map, "\"tag\"", bytes, true)
}

#[test]
fn a_range_is_cut_to_the_file() {
    for (range, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=0-", 0..10),
        ("bytes=3-5", 3..6),
        ("bytes=9-9", 9..10),
        ("bytes=5-99999999999999999999999", 5..10),
        ("bytes=-1", 9..10),
        ("bytes=-10", 0..10),
        ("bytes=-11", 0..10),
        (" bytes= 1 - 2 ", 1..3),
    ] {
        assert_eq!(ask(&[("range", range)]), RangeOutcome::Part(expected), "{range}");
    }
}

#[test]
fn bytes_that_are_not_there_cannot_be_had() {
    for range in ["bytes=10-", "bytes=10-20", "bytes=99999999999999999999999-", "bytes=-0"] {
        assert_eq!(ask(&[("range", range)]), RangeOutcome::Unsatisfiable, "{range}");
    }
    assert_eq!(ask_of(0, &[("range", "bytes=0-")]), RangeOutcome::Unsatisfiable);
    assert_eq!(ask_of(0, &[("range", "bytes=-5")]), RangeOutcome::Unsatisfiable);
}

#[test]
fn what_is_not_one_range_of_bytes_is_ignored() {
    for range in [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=a-b",
        "bytes=5",
        "bytes=5-3",
        "bytes=0-1,3-4",
        "lines=0-1",
        "bytes=+1-2",
    ] {
        assert_eq!(ask(&[("range", range)]), RangeOutcome::Whole, "{range}");
    }
    assert_eq!(ask(&[("range", "bytes=0-1"), ("range", "bytes=2-3")]), RangeOutcome::Whole);
    let mut headers = HeaderMap::new();
    headers.insert("range", HeaderValue::from_static("bytes=0-1"));
    assert_eq!(wanted(&headers, "\"tag\"", 10, false), RangeOutcome::Whole, "HEAD has no ranges");
}

#[test]
fn conditions_come_first() {
    let range = ("range", "bytes=0-1");
    for (headers, expected) in [
        (vec![("if-match", "\"tag\""), range], RangeOutcome::Part(0..2)),
        (vec![("if-match", "\"a\", \"tag\"")], RangeOutcome::Whole),
        (vec![("if-match", "*")], RangeOutcome::Whole),
        (vec![("if-match", "\"other\""), range], RangeOutcome::ConditionFailed),
        (vec![("if-match", "W/\"tag\"")], RangeOutcome::ConditionFailed),
        (vec![("if-none-match", "\"tag\""), range], RangeOutcome::NotModified),
        (vec![("if-none-match", "\"a\""), ("if-none-match", "W/\"tag\"")], RangeOutcome::NotModified),
        (vec![("if-none-match", "*")], RangeOutcome::NotModified),
        (vec![("if-none-match", "\"other\""), range], RangeOutcome::Part(0..2)),
        (vec![("if-range", "\"tag\""), range], RangeOutcome::Part(0..2)),
        (vec![("if-range", "\"other\""), range], RangeOutcome::Whole),
        (vec![("if-range", "W/\"tag\""), range], RangeOutcome::Whole),
        (vec![("if-range", "Sun, 06 Nov 1994 08:49:37 GMT"), range], RangeOutcome::Whole),
    ] {
        assert_eq!(ask(&headers), expected, "{headers:?}");
    }
}
