//! Tests of the stored form: what is refused, and that the records are valid JSON. The store contract tests that every
//! event is read as it was written.

use switchboard_core::lifecycle::{ArtifactHead, AtCheckpoint, Event, Head};
use switchboard_core::model::{Json, TaskState, Timestamp};
use switchboard_engine::contract::given::{chunk, inbound};
use switchboard_engine::ports::store::StoreError;

use super::chunking::ChunkSource;
use super::codec::{Want, decode, encode, is_only_checkpoint_and_artifacts};
use super::head::{decode_artifacts, encode_artifacts};

struct NoChunks;

impl ChunkSource for NoChunks {
    fn read(&self, _: i64, _: i64) -> Result<Vec<u8>, StoreError> {
        Ok(Vec::new())
    }
}

fn refused(record: &str) -> String {
    match decode(record, Want::Everything, &NoChunks) {
        Err(StoreError::Corrupt(reason)) => reason,
        other => panic!("{record} gave {other:?}"),
    }
}

#[test]
fn a_format_from_the_future_is_refused_by_its_number() {
    let reason = refused(r#"{"format":2,"events":[]}"#);
    assert_eq!(reason, "stored record: format 2 is not 1, the only one known");
}

#[test]
fn what_cannot_be_ours_is_corrupt() {
    for record in [
        "",
        "{",
        r#"{"events":[]}"#,
        r#"{"format":1,"events":[{"unheard_of":{}}]}"#,
        r#"{"format":1,"events":[{"status":{"state":"asleep","at":"2020-01-01T00:00:00.000Z"}}]}"#,
        r#"{"format":1,"events":[{"status":{"state":"working","at":"yesterday"}}]}"#,
        r#"{"format":1,"events":[{"replied":{"message":{"id":"m","role":"agent","parts":[{}]}}}]}"#,
        r#"{"format":1,"events":[{"replied":{"message":{"id":"m","role":"agent","parts":[{"raw":"*"}]}}}]}"#,
    ] {
        refused(record);
    }
}

#[test]
fn pieces_that_do_not_add_up_are_corrupt() {
    let part = r#"{"chunks":{"of":"raw","first":1,"count":1,"bytes":40000}}"#;
    let message = format!(r#"{{"id":"m","role":"agent","parts":[{part}]}}"#);
    let reason = refused(&format!(r#"{{"format":1,"events":[{{"replied":{{"message":{message}}}}}]}}"#));
    assert_eq!(reason, "stored record: 0 bytes in chunks where 40000 were written");
}

#[test]
fn a_record_is_short_and_plain() {
    let at = Timestamp::from_ms(0);
    let events = [
        Event::Claimed { fence: 2, attempt: 3, at },
        Event::StatusChanged { state: TaskState::InputRequired, message: None, metadata: None, at },
        Event::Checkpoint { value: Json::from_trusted("{\"at\": 1}") },
        Event::TurnEnded,
    ];
    let head = Head::unopened("t".into(), "c".into(), "a".into());
    let encoded = encode(&events, &head, &|_| 1);
    assert_eq!(
        encoded.record,
        r#"{"format":1,"events":[{"claimed":{"fence":2,"attempt":3,"at":"1970-01-01T00:00:00.000Z"}},{"status":{"state":"input-required","at":"1970-01-01T00:00:00.000Z"}},{"checkpoint":{"value":{"at": 1}}},{"turn_ended":{}}]}"#
    );
    assert_eq!(decode(&encoded.record, Want::Everything, &NoChunks).unwrap(), events);
}

#[test]
fn heads_of_artifacts_come_back_as_they_were_written() {
    let plain = ArtifactHead { id: "a".into(), parts: 1, bytes: 2, turn: 3, attempt: 4, fence: 5, checkpoint: None };
    let recorded = AtCheckpoint { parts: 6, bytes: 7, seq: 8, unchanged: true };
    let after = AtCheckpoint { unchanged: false, ..recorded };
    let with = |checkpoint| ArtifactHead { checkpoint: Some(checkpoint), ..plain.clone() };
    // This row was written before the fence was recorded, and only a checkpoint has changed it since.
    let old = ArtifactHead { fence: 0, ..plain.clone() };
    let old_with = ArtifactHead { checkpoint: Some(recorded), ..old.clone() };
    let heads = [plain.clone(), with(recorded), with(after), old, old_with];
    let text = encode_artifacts(&heads);
    assert_eq!(
        text,
        r#"[["a",1,2,3,4,5],["a",1,2,3,4,5,6,7,8,1],["a",1,2,3,4,5,6,7,8,0],["a",1,2,3,4],["a",1,2,3,4,0,6,7,8,1]]"#
    );
    assert_eq!(decode_artifacts(&text).unwrap(), heads);
    assert!(decode_artifacts(r#"[["a",1,2,3]]"#).is_err());
}

#[test]
fn a_commit_of_a_checkpoint_is_told_from_all_others() {
    let (at, head) = (Timestamp::from_ms(0), Head::unopened("t".into(), "c".into(), "a".into()));
    let is_checkpoint = |events: &[Event]| is_only_checkpoint_and_artifacts(&encode(events, &head, &|_| 1).record);
    let checkpoint = || Event::Checkpoint { value: Json::from_trusted("1") };
    let artifact = || chunk("a", "{\"status\":{", false);
    assert!(is_checkpoint(&[checkpoint()]) && is_checkpoint(&[artifact(), checkpoint(), artifact()]));
    assert!(!is_checkpoint(&[artifact()]));
    let received = || inbound(1, "x");
    for other in [
        Event::Received { inbound: received(), context_id: "c".into() },
        Event::Opened { inbound: received(), context_id: "c".into(), at },
        Event::MessageAdded { inbound: received() },
        Event::TurnBegan { turn: 1, fence: 1 },
        Event::TurnEnded,
        Event::StatusChanged { state: TaskState::Working, message: None, metadata: None, at },
        Event::Replied { message: received().message.clone() },
        Event::CancelRequested { metadata: None, at },
        Event::Claimed { fence: 1, attempt: 1, at },
    ] {
        assert!(!is_checkpoint(&[other.clone(), checkpoint()]) && !is_checkpoint(&[checkpoint(), other]));
    }
}

/// A record that was changed on disk is refused or read, and never a panic.
#[test]
fn fuzz_records() {
    let events = switchboard_fuzz::texts(&[
        r#"{"format":1,"events":[{"status":{"state":"working","at":1700000000000,"message":{"id":"m","role":"agent","parts":[{"text":"half way"}]}}}]}"#,
        r#"{"format":1,"events":[{"artifact":{"id":"a","parts":[{"chunks":[1,2],"bytes":3}],"append":false}}]}"#,
        r#"[["file",1,33000,1,1],["text",2,2,1,1]]"#,
    ]);
    switchboard_fuzz::run("records", &events, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let _ = super::codec::parse_commit(text);
        if let Ok(artifacts) = decode_artifacts(text) {
            let again = decode_artifacts(&encode_artifacts(&artifacts));
            assert_eq!(again.ok(), Some(artifacts));
        }
    });
}
