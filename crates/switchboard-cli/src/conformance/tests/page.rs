//! The page about the checker lists every check, and reports are well-formed. `UPDATE_EXPECT=1 cargo test -p switchboard-cli
//! page_of_the_checker` writes the list again.

use expect_test::expect_file;

use super::super::checks;
use super::super::report::list;
use super::super::sentences;
use super::args;
use super::served::{NOTHING, Plant, Served, usual};

const PAGE: &str = include_str!("../../../../../docs/conformance/checker.md");
const BEGIN: &str =
    "<!-- begin of the checks, written by: UPDATE_EXPECT=1 cargo test -p switchboard-cli page_of_the_checker -->\n";
const END: &str = "<!-- end of the checks -->\n";

#[test]
fn the_page_of_the_checker_lists_all_checks() {
    let (before, rest) = PAGE.split_once(BEGIN).expect("the page says where the list begins");
    let (_, after) = rest.split_once(END).expect("the page says where the list ends");
    let page = format!("{before}{BEGIN}\n{}\n{END}{after}", list().trim_end());
    expect_file!["../../../../../docs/conformance/checker.md"].assert_eq(&page);
}

#[test]
fn checks_have_names_of_their_own() {
    let mut names: Vec<&str> = checks::all().map(|check| check.id).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 40, "{count}");
}

#[test]
fn every_check_has_a_sentence_of_the_specification_and_its_section() {
    let is_section = |text: &str| {
        let mut numbers = text.split('.');
        numbers.clone().count() >= 2 && numbers.all(|number| number.parse::<u8>().is_ok())
    };
    for check in checks::all() {
        assert!(check.section.split(", ").all(is_section), "{}: {}", check.id, check.section);
        let (section, words) = sentences::of(check.id).unwrap_or_else(|| panic!("{}: no sentence", check.id));
        assert!(is_section(section), "{}: {section}", check.id);
        assert!(words.split(' ').count() >= 2 && words.trim() == words, "{}: {words:?}", check.id);
    }
    let mut named: Vec<&str> = sentences::named().collect();
    named.sort_unstable();
    let mut checks: Vec<&str> = checks::all().map(|check| check.id).collect();
    checks.sort_unstable();
    assert_eq!(named, checks, "one sentence for each check, and none for others");
}

/// The requirements of the kit at the commit that the catalogue names.
const KIT: &str = "\
    AUTH-INTASK-001 AUTH-INTASK-002 AUTH-INTASK-003 AUTH-INTASK-004 AUTH-INTASK-005 AUTH-INTASK-006 AUTH-SCOPE-001 \
    AUTH-SCOPE-002 AUTH-SCOPE-003 AUTH-SERVER-001 AUTH-SERVER-002 AUTH-TLS-001 AUTH-TLS-002 BIND-EQUIV-001 \
    BIND-EQUIV-002 BIND-EQUIV-003 BIND-EQUIV-004 BIND-FIELD-001 CARD-CACHE-001 CARD-CACHE-002 CARD-CACHE-003 \
    CARD-DISC-001 CARD-EXT-001 CARD-EXT-002 CARD-PROTO-001 CARD-PROTO-002 CARD-SIGN-001 CARD-SIGN-002 \
    CARD-SIGN-003 CARD-SIGN-004 CARD-STRUCT-001 CORE-CANCEL-001 CORE-CANCEL-002 CORE-CANCEL-003 CORE-CAP-001 \
    CORE-CAP-002 CORE-CAP-003 CORE-CAP-004 CORE-ERR-001 CORE-ERR-002 CORE-EXECUTION-MODE-001 \
    CORE-EXECUTION-MODE-002 CORE-GET-001 CORE-GET-002 CORE-HIST-001 CORE-HIST-002 CORE-HIST-003 CORE-HIST-004 \
    CORE-HIST-005 CORE-HIST-006 CORE-LIST-001 CORE-LIST-002 CORE-LIST-003 CORE-LIST-004 CORE-LIST-005 \
    CORE-MULTI-001 CORE-MULTI-001a CORE-MULTI-002 CORE-MULTI-002a CORE-MULTI-003 CORE-MULTI-004 CORE-MULTI-005 \
    CORE-MULTI-006 CORE-SEND-001 CORE-SEND-002 CORE-SEND-003 CORE-STREAM-001 CORE-STREAM-002 CORE-STREAM-003 \
    DM-ART-001 DM-MSG-001 DM-MSG-002 DM-PART-001 DM-SERIAL-001 DM-SERIAL-002 DM-SERIAL-003 DM-SERIAL-004 \
    DM-SERIAL-005 DM-STATUS-001 DM-TASK-001 DM-TASK-002 GRPC-ERR-001 GRPC-ERR-002 GRPC-ERR-003 GRPC-META-001 \
    GRPC-SVC-001 GRPC-SVC-002 GRPC-SVC-003 HTTP_JSON-ERR-001 HTTP_JSON-ERR-002 HTTP_JSON-QP-001 HTTP_JSON-SSE-001 \
    HTTP_JSON-STATUS-001 HTTP_JSON-SVC-001 HTTP_JSON-SVC-002 HTTP_JSON-URL-001 HTTP_JSON-URL-002 JSONRPC-ERR-001 \
    JSONRPC-ERR-002 JSONRPC-ERR-003 JSONRPC-FMT-001 JSONRPC-FMT-002 JSONRPC-SSE-001 JSONRPC-SSE-002 \
    JSONRPC-SVC-001 JSONRPC-SVC-002 PUSH-CREATE-001 PUSH-CREATE-002 PUSH-DEL-001 PUSH-DEL-002 PUSH-DELIVER-001 \
    PUSH-DELIVER-002 PUSH-DELIVER-003 PUSH-GET-001 PUSH-GET-002 PUSH-LIST-001 STREAM-ORDER-001 STREAM-ORDER-002 \
    STREAM-ORDER-003 STREAM-ORDER-004 STREAM-SUB-001 STREAM-SUB-002 STREAM-SUB-003 STREAM-SUB-004 VER-CLIENT-001 \
    VER-CLIENT-002 VER-SERVER-001 VER-SERVER-002 VER-SERVER-003";

#[test]
fn requirements_are_those_of_the_kit() {
    let kit: Vec<&str> = KIT.split_whitespace().collect();
    for check in checks::all() {
        for id in check.kit.split(", ").filter(|id| !id.is_empty()) {
            assert!(kit.contains(&id), "{}: {id}", check.id);
        }
    }
}

#[tokio::test]
async fn a_report_shows_nothing_raw() {
    let plant = Plant {
        answer: |asked, answered| {
            if asked.is("GetTask") {
                answered
                    .edit(|json| json["error"] = serde_json::json!({ "code": 7, "message": "\u{1b}[31m<&\"\u{202e}" }));
            }
        },
        ..NOTHING
    };
    let served = Served::start(usual(), plant).await;
    let report = super::report(&args(&served.url, &["get-unknown"])).await;
    let (text, json, junit) = (report.text(), report.json(), report.junit());
    for shown in [&text, &json, &junit] {
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
        assert!(shown.contains("get-unknown"), "{shown}");
    }
    assert!(text.contains("FAIL  get-unknown (MUST of 3.1.3, kit CORE-GET-002)"), "{text}");
    assert!(junit.contains("&lt;&amp;&quot;"), "{junit}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let failed = json["results"].as_array().unwrap().iter().find(|one| one["status"] == "fail").unwrap();
    assert_eq!((&failed["check"], &failed["kit"][0]), (&"get-unknown".into(), &"CORE-GET-002".into()));
    assert_eq!(json["failed"], 1, "{text}");
}
