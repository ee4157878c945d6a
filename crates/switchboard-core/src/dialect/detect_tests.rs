//! Detection as tables: what a request says, and which dialect that is. Where a row could be read in two ways, it names
//! its winner.

use crate::error::ProtocolError;
use crate::model::Dialect::{self, V0_3, V0_3Rest, V1_0};
use crate::model::Package;

use super::{Clues, Door, Refusal, dialect, spelling};

const NEW: Door<'_> = Door::JsonRpc { method: "SendMessage" };
const OLD: Door<'_> = Door::JsonRpc { method: "message/send" };
/// A method whose grammar is neither's.
const ODD: Door<'_> = Door::JsonRpc { method: "send" };

fn clues<'a>(header: Option<&'a str>, default: Option<Dialect>, door: Door<'a>) -> Clues<'a> {
    Clues { header, query: None, default, door }
}

/// What comes of it: the dialect, or the kind of refusal and the dialect it is spelled in.
fn verdict(clues: Clues<'_>) -> String {
    match dialect(&clues) {
        Ok(dialect) => dialect.name().to_owned(),
        Err(Refusal { dialect, error }) => {
            let kind = match error {
                ProtocolError::VersionNotSupported { fix: None, .. } => "version",
                ProtocolError::VersionNotSupported { fix: Some(_), .. } => "header missing",
                ProtocolError::MethodNotFound { hint, .. } => {
                    assert!(hint.is_some());
                    "method"
                }
                other => panic!("{other:?}"),
            };
            format!("{kind} in {}", dialect.name())
        }
    }
}

#[test]
fn every_combination_of_version_and_door_has_one_reading() {
    for (header, default, new, old, odd, http, http_v1) in [
        // Absent means 0.3; a default replaces that only where neither method nor path decides.
        (None, None, "header missing in 1.0", "0.3", "0.3", "header missing in 1.0", "0.3-rest"),
        (None, Some(V1_0), "1.0", "0.3", "1.0", "1.0", "0.3-rest"),
        (None, Some(V0_3), "header missing in 1.0", "0.3", "0.3", "header missing in 1.0", "0.3-rest"),
        // The header is what was said: a method of the other version is refused, whatever the default.
        (Some("1.0"), None, "1.0", "method in 1.0", "1.0", "1.0", "method in 1.0"),
        (Some("1.0"), Some(V0_3), "1.0", "method in 1.0", "1.0", "1.0", "method in 1.0"),
        (Some("0.3"), None, "header missing in 1.0", "0.3", "0.3", "header missing in 1.0", "0.3-rest"),
        (Some("0.3"), Some(V1_0), "header missing in 1.0", "0.3", "0.3", "header missing in 1.0", "0.3-rest"),
        // 0.2 and 0.3 are one family.
        (Some("0.2.5"), None, "header missing in 1.0", "0.3", "0.3", "header missing in 1.0", "0.3-rest"),
        (
            Some("2.0"),
            None,
            "version in 1.0",
            "version in 0.3",
            "version in 1.0",
            "version in 1.0",
            "version in 0.3-rest",
        ),
        (
            Some("0.1"),
            None,
            "version in 1.0",
            "version in 0.3",
            "version in 1.0",
            "version in 1.0",
            "version in 0.3-rest",
        ),
    ] {
        let read = |door| verdict(clues(header, default, door));
        let readings = [read(NEW), read(OLD), read(ODD), read(Door::Http), read(Door::HttpV1)];
        assert_eq!(readings, [new, old, odd, http, http_v1], "{header:?} {default:?}");
        // A gRPC service is as decided as a path.
        let services = [Package::V1_0, Package::V0_3].map(|package| read(Door::Grpc(package)));
        assert_eq!(services, [http, http_v1], "{header:?} {default:?}");
    }
}

#[test]
fn what_means_a_version_is_that_version() {
    for (text, door, expected) in [
        ("1.0", NEW, V1_0),
        (" 1.0 ", NEW, V1_0),
        ("1.0.1", NEW, V1_0),
        ("v1.0", NEW, V1_0),
        ("V1.0.27", NEW, V1_0),
        ("0.3.0", OLD, V0_3),
        ("v0.2.6", OLD, V0_3),
        ("0.3", Door::HttpV1, V0_3Rest),
    ] {
        assert_eq!(dialect(&clues(Some(text), None, door)), Ok(expected), "{text}");
    }
}

#[test]
fn the_query_counts_where_there_is_no_header() {
    let asked = |header, query| dialect(&Clues { header, query, default: None, door: NEW });
    assert_eq!(asked(None, Some("1.0")), Ok(V1_0));
    assert_eq!(asked(Some(""), Some("1.0")), Ok(V1_0));
    assert_eq!(asked(Some("1.0"), Some("0.3")), Ok(V1_0));
    assert!(asked(Some("0.3"), Some("1.0")).is_err());
    assert!(asked(Some("  "), Some("")).is_err());
}

fn refused(text: &str) -> String {
    match dialect(&clues(Some(text), None, NEW)) {
        Err(Refusal { error: ProtocolError::VersionNotSupported { requested, supported, .. }, .. }) => {
            assert_eq!(supported, ["1.0", "0.3"]);
            requested
        }
        other => panic!("{text:?} gave {other:?}"),
    }
}

#[test]
fn other_versions_and_garbage_are_refused_by_name() {
    for text in [
        "2.0",
        "1.1",
        "0.1",
        "0.4",
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
        assert_eq!(refused(text), text);
    }
}

#[test]
fn what_is_repeated_to_the_sender_is_short_and_printable() {
    let requested = refused(&"9".repeat(10_000));
    assert!(requested.chars().count() <= 33, "{requested}");
    assert_eq!(refused("1\u{7}0"), "1?0");
    let method = format!("X{}", "y".repeat(10_000));
    let error = dialect(&clues(None, None, Door::JsonRpc { method: &method })).unwrap_err().error;
    assert!(error.to_string().len() < 300, "{error}");
}

#[test]
fn a_mix_is_refused_with_what_to_change() {
    let said = |header, door| dialect(&clues(header, None, door)).unwrap_err().error.to_string();
    assert_eq!(
        said(None, NEW),
        "SendMessage is a method of A2A 1.0: send header A2A-Version: 1.0 \
         (a request without it means 0.3, whose methods have other names: message/send)"
    );
    assert_eq!(
        said(None, Door::Http),
        "This path is of A2A 1.0: send header A2A-Version: 1.0 (a request without it means 0.3, whose paths begin with /v1)"
    );
    assert_eq!(
        said(Some("1.0"), OLD),
        "Method not found: message/send; A2A 1.0 calls it SendMessage; \
         to speak 0.3 instead, leave the header A2A-Version out"
    );
    assert_eq!(
        said(Some("1.0"), Door::HttpV1),
        "Method not found: /v1; paths under /v1 are A2A 0.3's: in 1.0 they have no /v1; \
         to speak 0.3 instead, leave the header A2A-Version out"
    );
}

#[test]
fn a_refusal_before_the_method_is_known_is_spelled_by_version_and_path() {
    for (header, default, door, expected) in [
        (None, None, ODD, V0_3),
        (None, Some(V1_0), ODD, V1_0),
        (Some("1.0"), None, ODD, V1_0),
        (Some("0.3"), Some(V1_0), ODD, V0_3),
        (Some("9.9"), None, ODD, V0_3),
        (None, None, Door::Http, V1_0),
        (None, None, Door::HttpV1, V0_3Rest),
        (Some("1.0"), None, Door::HttpV1, V1_0),
    ] {
        assert_eq!(spelling(&clues(header, default, door)), expected, "{header:?} {default:?} {door:?}");
    }
}
