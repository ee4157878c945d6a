//! Version negotiation as a table.

use crate::error::ProtocolError;
use crate::model::Dialect;

use super::version;

fn refused(header: Option<&str>, query: Option<&str>) -> String {
    match version(header, query, None) {
        Err(ProtocolError::VersionNotSupported { requested, supported }) => {
            assert_eq!(supported, ["1.0"]);
            requested
        }
        other => panic!("{header:?} {query:?} gave {other:?}"),
    }
}

#[test]
fn what_means_1_0_is_served() {
    for (header, query) in [
        (Some("1.0"), None),
        (Some(" 1.0 "), None),
        (Some("1.0.1"), None),
        (Some("v1.0"), None),
        (Some("V1.0.27"), None),
        (None, Some("1.0")),
        (Some(""), Some("1.0")),
        (Some("1.0"), Some("0.3")),
    ] {
        assert_eq!(version(header, query, None), Ok(Dialect::V1_0), "{header:?} {query:?}");
    }
}

#[test]
fn no_version_means_0_3_unless_a_default_is_configured() {
    for absent in [None, Some(""), Some("  ")] {
        assert_eq!(refused(absent, None), "0.3");
        assert_eq!(refused(absent, absent), "0.3");
        assert_eq!(version(absent, absent, Some(Dialect::V1_0)), Ok(Dialect::V1_0));
    }
}

#[test]
fn a_default_does_not_override_what_was_said() {
    let said = version(Some("0.3"), None, Some(Dialect::V1_0));
    assert!(matches!(said, Err(ProtocolError::VersionNotSupported { requested, .. }) if requested == "0.3"));
}

#[test]
fn other_versions_and_garbage_are_refused_by_name() {
    for text in [
        "0.3",
        "0.3.0",
        "2.0",
        "1.1",
        "1",
        "1.",
        ".0",
        "1.0.",
        "1.0.x",
        "1.0.1.2",
        "1.0-rc",
        "+1.0",
        "1.+0",
        "vv1.0",
        "1,0",
        "1.0, 1.0",
        "latest",
        "１.0",
        "99999999999.0",
    ] {
        assert_eq!(refused(Some(text), None), text);
    }
    assert_eq!(refused(Some("0.3"), Some("1.0")), "0.3");
}

#[test]
fn what_is_repeated_to_the_sender_is_short_and_printable() {
    let requested = refused(Some(&"9".repeat(10_000)), None);
    assert!(requested.chars().count() <= 33, "{requested}");
    assert_eq!(refused(None, Some("1\u{7}0")), "1?0");
}
