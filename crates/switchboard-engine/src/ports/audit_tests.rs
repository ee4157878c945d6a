//! Records, hashes and lines of the audit log.

use switchboard_core::model::Timestamp;

use super::{AuditEntry, AuditEvent, AuditHash, ChainPosition, Decision, StoredEntry, read_export_line};

fn entry() -> AuditEntry {
    AuditEntry {
        principal: "alice \"the\" first\n".to_owned(),
        address: Some("::ffff:192.0.2.7".parse().unwrap()),
        agent: Some("echo".into()),
        reason: "UNAUTHENTICATED".into(),
        count: Some(3),
        ..AuditEntry::new(Timestamp::from_ms(0), AuditEvent::Refusal, Decision::Refused, "SendMessage")
    }
}

const RECORD: &str = r#"{"chain":"c1","no":7,"at":"1970-01-01T00:00:00.000Z","event":"refusal","decision":"refused","principal":"alice \"the\" first\n","operation":"SendMessage","agent":"echo","reason":"UNAUTHENTICATED","address":"192.0.2.7","count":3}"#;

#[test]
fn a_record_is_one_line_of_json_without_empty_members() {
    assert_eq!(entry().record("c1", 7), RECORD);
    assert!(serde_json::from_str::<serde_json::Value>(RECORD).is_ok());
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let long = AuditEntry { principal: "é".repeat(300), ..entry() };
    let value: serde_json::Value = serde_json::from_str(&long.record("c1", 1)).unwrap();
    assert_eq!(value["principal"], format!("{}…", "é".repeat(256)));
}

/// The value was computed with sha256sum, as docs/audit.md shows it.
#[test]
fn the_hash_is_what_sha256sum_says() {
    let hash = AuditHash::BEGIN.next("{}");
    assert_eq!(hash.to_string(), "5508d2b710e64bc470079e1b211d9c58e21011e59d0559e422345dc19d659a75");
    assert_eq!(AuditHash::parse(&hash.to_string()), Some(hash));
    assert_eq!(AuditHash::parse("00"), None);
}

#[test]
fn the_line_of_an_export_gives_the_record_back() {
    let position = ChainPosition { no: 6, hash: AuditHash([9; 32]) };
    let stored =
        StoredEntry { no: 7, at: Timestamp::from_ms(0), record: RECORD.to_owned(), hash: position.after(RECORD).hash };
    let line = stored.export_line(&position.hash);
    assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok(), "{line}");
    assert_eq!(read_export_line(&line), Some((RECORD.to_owned(), position.hash, stored.hash)));
    assert_eq!(read_export_line(RECORD), None);
}

#[test]
fn what_does_not_follow_is_named() {
    let (begin, record) = (ChainPosition { no: 6, hash: AuditHash([9; 32]) }, entry().record("c1", 7));
    let next = begin.after(&record);
    let stored = StoredEntry { no: 7, at: Timestamp::from_ms(0), record, hash: next.hash };
    assert_eq!(begin.follow("c1", &stored), Ok(next));
    let refused = |stored: StoredEntry| begin.follow("c1", &stored).unwrap_err();
    assert_eq!(refused(StoredEntry { no: 8, ..stored.clone() }), "entry 7 is missing; entry 8 comes next");
    let changed = stored.record.replace("alice", "mallo");
    assert_eq!(refused(StoredEntry { record: changed, ..stored }), "entry 7 does not match its hash");
    let other = "the record of entry 7 is about another entry";
    assert_eq!(refused(StoredEntry { at: Timestamp::from_ms(1), ..stored.clone() }), other);
    assert_eq!(begin.follow("c2", &stored).unwrap_err(), other);
}
