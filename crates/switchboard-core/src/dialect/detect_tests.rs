//! Detection as tables: what a request says, and which dialect that is. Where a row could be read in two ways, it names
//! its winner.

use crate::dialect::json::DecodeLimits;
use crate::dialect::{v0_3, v1_0};
use crate::error::ProtocolError;
use crate::model::Dialect::{self, AgentNative, Selectools, V0_3, V0_3Rest, V1_0};
use crate::model::Package;

use super::{Clues, DetectError, Detected, Ingress, METHODS, Mount, claimed, spelling};

const NEW: Ingress<'_> = Ingress::JsonRpc { method: "SendMessage", params: None };
const OLD: Ingress<'_> = Ingress::JsonRpc { method: "message/send", params: None };
/// A method whose grammar is neither's.
const ODD: Ingress<'_> = Ingress::JsonRpc { method: "send", params: None };

fn clues<'a>(header: Option<&'a str>, default: Option<Dialect>, ingress: Ingress<'a>) -> Clues<'a> {
    Clues { header, query: None, default, mount: Mount::FREE, ingress }
}

fn dialect(clues: &Clues<'_>) -> Result<Dialect, DetectError> {
    super::dialect(clues).map(|verdict| verdict.dialect)
}

/// What comes of it: the dialect, or the kind of refusal and the dialect it is spelled in.
fn verdict(clues: Clues<'_>) -> String {
    match dialect(&clues) {
        Ok(dialect) => dialect.name().to_owned(),
        Err(DetectError { dialect, error }) => {
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
        let read = |ingress| verdict(clues(header, default, ingress));
        let readings = [read(NEW), read(OLD), read(ODD), read(Ingress::Http), read(Ingress::HttpV1)];
        assert_eq!(readings, [new, old, odd, http, http_v1], "{header:?} {default:?}");
        // A gRPC service is as decided as a path.
        let services = [Package::V1_0, Package::V0_3].map(|package| read(Ingress::Grpc(package)));
        assert_eq!(services, [http, http_v1], "{header:?} {default:?}");
    }
}

#[test]
fn what_means_a_version_is_that_version() {
    for (text, ingress, expected) in [
        ("1.0", NEW, V1_0),
        (" 1.0 ", NEW, V1_0),
        ("1.0.1", NEW, V1_0),
        ("v1.0", NEW, V1_0),
        ("V1.0.27", NEW, V1_0),
        ("0.3.0", OLD, V0_3),
        ("v0.2.6", OLD, V0_3),
        ("0.3", Ingress::HttpV1, V0_3Rest),
    ] {
        assert_eq!(dialect(&clues(Some(text), None, ingress)), Ok(expected), "{text}");
    }
}

#[test]
fn the_query_counts_where_there_is_no_header() {
    let asked = |header, query| dialect(&Clues { query, ..clues(header, None, NEW) });
    assert_eq!(asked(None, Some("1.0")), Ok(V1_0));
    assert_eq!(asked(Some(""), Some("1.0")), Ok(V1_0));
    assert_eq!(asked(Some("1.0"), Some("0.3")), Ok(V1_0));
    assert!(asked(Some("0.3"), Some("1.0")).is_err());
    assert!(asked(Some("  "), Some("")).is_err());
}

fn refused(text: &str) -> String {
    match dialect(&clues(Some(text), None, NEW)) {
        Err(DetectError { error: ProtocolError::VersionNotSupported { requested, supported, .. }, .. }) => {
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
    let error = dialect(&clues(None, None, Ingress::JsonRpc { method: &method, params: None })).unwrap_err().error;
    assert!(error.to_string().len() < 300, "{error}");
}

#[test]
fn a_mix_is_refused_with_what_to_change() {
    let said = |header, ingress| dialect(&clues(header, None, ingress)).unwrap_err().error.to_string();
    assert_eq!(
        said(None, NEW),
        "SendMessage is a method of A2A 1.0: send header A2A-Version: 1.0 \
         (a request without it means 0.3, whose methods have other names: message/send)"
    );
    assert_eq!(
        said(None, Ingress::Http),
        "This path is of A2A 1.0: send header A2A-Version: 1.0 (a request without it means 0.3, whose paths begin with /v1)"
    );
    assert_eq!(
        said(Some("1.0"), OLD),
        "Method not found: message/send; A2A 1.0 calls it SendMessage; \
         to speak 0.3 instead, leave the header A2A-Version out"
    );
    assert_eq!(
        said(Some("1.0"), Ingress::HttpV1),
        "Method not found: /v1; paths under /v1 are A2A 0.3's: in 1.0 they have no /v1; \
         to speak 0.3 instead, leave the header A2A-Version out"
    );
}

#[test]
fn a_refusal_before_the_method_is_known_is_spelled_by_version_and_path() {
    for (header, default, ingress, expected) in [
        (None, None, ODD, V0_3),
        (None, Some(V1_0), ODD, V1_0),
        (Some("1.0"), None, ODD, V1_0),
        (Some("0.3"), Some(V1_0), ODD, V0_3),
        (Some("9.9"), None, ODD, V0_3),
        (None, None, Ingress::Http, V1_0),
        (None, None, Ingress::HttpV1, V0_3Rest),
        (Some("1.0"), None, Ingress::HttpV1, V1_0),
    ] {
        assert_eq!(spelling(&clues(header, default, ingress)), expected, "{header:?} {default:?} {ingress:?}");
    }
}

/// Where the request names no version and no dialect claims the path, the shape of the message decides. `open` is what
/// has none.
#[test]
fn the_shape_of_a_message_tells_where_it_differs() {
    const TYPE: &str = r#"{"type":"text","text":"x"}"#;
    const KIND: &str = r#"{"kind":"text","text":"x"}"#;
    const NEXUS: &str = r#"{"type":"text","data":"x"}"#;
    let parts = |parts: &str| format!(r#"{{"message":{{"role":"user","parts":[{parts}]}}}}"#);
    let with = |message: &str, beside: &str| format!(r#"{{"message":{{"role":"user",{message}}}{beside}}}"#);
    for (method, params, expected) in [
        ("message/send", parts(TYPE), "agent-native"),
        ("message/stream", parts(TYPE), "agent-native"),
        ("message/send", parts(&format!("{TYPE},{TYPE}")), "agent-native"),
        ("message/send", parts(r#"{"type":"data","data":{"a":1}}"#), "agent-native"),
        // What is not data and yet lies in `data`, and data whose task has a name.
        ("message/send", parts(NEXUS), "nexus"),
        ("message/stream", parts(NEXUS), "nexus"),
        ("message/send", parts(r#"{"type":"image","data":"iVBOR"}"#), "nexus"),
        ("message/send", parts(r#"{"type":"file","data":{"uri":"x"}}"#), "nexus"),
        ("message/send", parts(&format!(r#"{NEXUS},{{"type":"data","data":{{}}}}"#)), "nexus"),
        ("message/send", with(r#""parts":[{"type":"data","data":{}}]"#, r#","id":"t""#), "nexus"),
        ("message/send", with(&format!(r#""parts":[{TYPE}]"#), r#","id":"t""#), "agent-native"),
        ("message/send", with(&format!(r#""parts":[{KIND}]"#), r#","id":"t""#), "0.3"),
        ("message/send", with(&format!(r#""messageId":"m","parts":[{NEXUS}]"#), ""), "0.3"),
        // Some parts as one system has them and some as another: 0.3, which refuses that.
        ("message/send", parts(&format!("{NEXUS},{TYPE}")), "0.3"),
        ("message/send", parts(&format!("{NEXUS},{KIND}")), "0.3"),
        ("message/send", parts(r#"{"type":"text","kind":"text","data":"x"}"#), "0.3"),
        ("message/send", parts(KIND), "0.3"),
        // Both names, or some parts with the one and some with the other: 0.3, whose samples have that.
        ("message/send", parts(r#"{"kind":"text","type":"text","text":"x"}"#), "0.3"),
        ("message/send", parts(&format!("{TYPE},{KIND}")), "0.3"),
        ("message/send", parts(&format!("{KIND},{TYPE}")), "0.3"),
        // Neither: 0.3, which can tell a part by what it holds.
        ("message/send", parts(r#"{"text":"x"}"#), "0.3"),
        // A message with an id is 0.3's however its parts are spelled, also where a sample has that id.
        ("message/send", with(&format!(r#""messageId":"m","parts":[{TYPE}]"#), ""), "0.3"),
        ("message/send", with(&format!(r#""parts":[{TYPE}]"#), r#","messageId":"m""#), "0.3"),
        // No other dialect has this member, so it outranks the parts; only true counts, and only beside the message.
        ("message/send", with(&format!(r#""parts":[{KIND}]"#), r#","async":true"#), "agent-native"),
        ("message/send", with(&format!(r#""messageId":"m","parts":[{KIND}]"#), r#","async":true"#), "agent-native"),
        ("message/send", with(&format!(r#""parts":[{KIND}]"#), r#","async":false"#), "0.3"),
        ("message/send", with(&format!(r#""parts":[{KIND}]"#), r#","async":"true""#), "0.3"),
        ("message/send", with(&format!(r#""parts":[{KIND}]"#), r#","metadata":{"async":true}"#), "0.3"),
        // An old name that one system still has. What it would refuse is 0.1's, and so 0.3's.
        ("tasks/send", parts(KIND), "selectools"),
        ("tasks/send", parts(TYPE), "0.3"),
        ("tasks/send", parts(r#"{"kind":"data","data":{}}"#), "0.3"),
        ("tasks/sendSubscribe", parts(TYPE), "0.3"),
        // A word that only looks like a member that matters.
        ("message/send", with(&format!(r#""parts":[{KIND}],"metadata":{{"type":"x","async":true}}"#), ""), "0.3"),
        // What cannot be read is for 0.3 to refuse.
        ("message/send", parts(""), "0.3"),
        ("message/send", r#"{"type":1}"#.to_owned(), "0.3"),
        ("message/send", r#"{"message":{"parts":{"type":"text"}}}"#.to_owned(), "0.3"),
        ("message/send", r#"{"message":{"parts":[{"type":5}]}}"#.to_owned(), "0.3"),
        ("message/send", r#"["type"]"#.to_owned(), "0.3"),
        ("message/send", "{\"type\"".to_owned(), "0.3"),
        ("tasks/get", r#"{"id":"t"}"#.to_owned(), "0.3 open"),
        ("tasks/cancel", r#"{"id":"t","type":"text"}"#.to_owned(), "0.3 open"),
        ("tasks/resubscribe", r#"{"id":"t"}"#.to_owned(), "0.3 open"),
    ] {
        let ingress = Ingress::JsonRpc { method, params: Some(&params) };
        let Detected { dialect, is_open } = super::dialect(&clues(None, None, ingress)).unwrap();
        let verdict = format!("{}{}", dialect.name(), if is_open { " open" } else { "" });
        assert_eq!(verdict, expected, "{method} {params}");
        // A version in the header decides, and the body of a 1.0 request is not looked at.
        assert_eq!(super::dialect(&clues(Some("0.3"), None, ingress)), Ok(Detected { dialect: V0_3, is_open: false }));
        assert!(super::dialect(&clues(Some("1.0"), None, ingress)).is_err());
    }
}

#[test]
fn a_default_decides_only_what_nothing_else_does() {
    let open = Ingress::JsonRpc { method: "tasks/get", params: Some(r#"{"id":"t"}"#) };
    let plain = Ingress::JsonRpc { method: "message/send", params: Some(r#"{"message":{"parts":[{"kind":"text"}]}}"#) };
    let told = Ingress::JsonRpc {
        method: "message/send",
        params: Some(r#"{"message":{"role":"user","parts":[{"type":"text","text":"x"}]}}"#),
    };
    for (header, ingress, expected) in [
        (None, open, Ok(Selectools)),
        (None, ODD, Ok(Selectools)),
        (None, plain, Ok(V0_3)),
        (None, told, Ok(AgentNative)),
        (Some("0.3"), open, Ok(V0_3)),
        (Some("1.0"), NEW, Ok(V1_0)),
    ] {
        assert_eq!(dialect(&clues(header, Some(Selectools), ingress)), expected, "{header:?} {ingress:?}");
    }
    assert!(dialect(&clues(None, Some(Selectools), NEW)).is_err());
}

#[test]
fn a_mount_outranks_the_version_and_the_version_outranks_a_claim() {
    let own = Mount::Own(Selectools);
    let claim = Mount::Shared { claim: Some(Selectools) };
    for (mount, header, ingress, expected) in [
        (own, None, OLD, "selectools"),
        (own, None, NEW, "selectools"),
        (own, Some("1.0"), NEW, "selectools"),
        (own, Some("9.9"), OLD, "selectools"),
        (claim, None, OLD, "selectools"),
        // A method of 1.0 without its header is one that selectools does not know.
        (claim, None, NEW, "selectools"),
        (claim, Some(" "), OLD, "selectools"),
        (claim, Some("1.0"), NEW, "1.0"),
        (claim, Some("0.3"), OLD, "0.3"),
        (claim, Some("9.9"), OLD, "version in 0.3"),
        (Mount::Shared { claim: Some(AgentNative) }, None, OLD, "agent-native"),
    ] {
        let clues = Clues { mount, ..clues(header, None, ingress) };
        assert_eq!(verdict(clues), expected, "{mount:?} {header:?} {ingress:?}");
        let is_claimed = ["selectools", "agent-native"].contains(&expected);
        assert_eq!(claimed(&clues).map(Dialect::name), is_claimed.then_some(expected));
        if is_claimed {
            assert_eq!(spelling(&clues).name(), expected);
        }
    }
    assert_eq!(claimed(&clues(None, Some(Selectools), OLD)), None);
}

/// The binding of JSON-RPC takes what is left of a body for the parameters, and relies on every method to refuse what is not one
/// object.
#[test]
fn every_method_refuses_parameters_that_are_not_one_object() {
    let limits = DecodeLimits::default();
    let whole = r#"{"id":"1","taskId":"1","message":{"messageId":"1","role":"ROLE_USER","parts":[{"text":"a"}]}}"#;
    for (old, new) in METHODS.into_iter().chain([("tasks/get", "ListTasks")]) {
        for params in [format!("{whole},\"b\":{{}}"), whole[..whole.len() - 1].to_owned(), format!("[{whole}]")] {
            assert!(v1_0::decode_call(new, Some(&params), &limits).is_err(), "{new} {params}");
            assert!(v0_3::rpc::decode_call(old, Some(&params), &limits).is_err(), "{old} {params}");
        }
    }
    assert!(v1_0::decode_call("SendMessage", Some(whole), &limits).is_ok());
}
