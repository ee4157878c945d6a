//! Protobuf's JSON mapping and what A2A adds to it, rule by rule: J-1 to J-14.

use std::sync::Arc;

use crate::call::{PushConfigPage, Reply, Request, TaskPage};
use crate::model::{
    Artifact, ArtifactView, Dialect, Message, Part, PartContent, PushConfig, Role, Task, TaskState, TaskStatus,
    TaskView, Timestamp,
};

use super::super::{encode_message, encode_reply, encode_task};
use super::{blamed, encoded, request, send_part, send_with, sent, wrong};

fn content(part: &str) -> PartContent {
    sent(&send_part(part)).message.parts.remove(0).content
}

fn task() -> Task {
    Task {
        id: "t-1".into(),
        context_id: "c-1".into(),
        status: TaskStatus { state: TaskState::Working, message: None, timestamp: Timestamp::from_ms(1) },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        created_at: Timestamp::default(),
        dialect: Dialect::V1_0,
    }
}

#[test]
fn j1_both_spellings_of_a_name_are_read_and_camel_case_is_written() {
    let camel = r#"{"message":{"messageId":"m-1","contextId":"c-1","taskId":"t-1","role":"ROLE_USER",
        "parts":[{"text":"x","mediaType":"text/plain"}],"referenceTaskIds":["t-0"]},
        "configuration":{"acceptedOutputModes":["a/b"],"historyLength":3,"returnImmediately":true,
        "taskPushNotificationConfig":{"taskId":"t-1","url":"https://hooks.example/x"}}}"#;
    let snake = r#"{"message":{"message_id":"m-1","context_id":"c-1","task_id":"t-1","role":"ROLE_USER",
        "parts":[{"text":"x","media_type":"text/plain"}],"reference_task_ids":["t-0"]},
        "configuration":{"accepted_output_modes":["a/b"],"history_length":3,"return_immediately":true,
        "task_push_notification_config":{"task_id":"t-1","url":"https://hooks.example/x"}}}"#;
    assert_eq!(sent(camel), sent(snake));
    assert_eq!(
        encoded(|out| encode_message(&sent(snake).message, out)),
        r#"{"messageId":"m-1","contextId":"c-1","taskId":"t-1","role":"ROLE_USER","parts":[{"text":"x","mediaType":"text/plain"}],"referenceTaskIds":["t-0"]}"#
    );
    assert_eq!(
        request(
            "ListTasks",
            r#"{"context_id":"c","page_size":5,"page_token":"p","history_length":1,"status_timestamp_after":"2026-02-03T10:00:00Z","include_artifacts":true}"#
        ),
        request(
            "ListTasks",
            r#"{"contextId":"c","pageSize":5,"pageToken":"p","historyLength":1,"statusTimestampAfter":"2026-02-03T10:00:00Z","includeArtifacts":true}"#
        ),
    );
}

#[test]
fn j2_enums_are_read_by_name_or_number_and_written_by_name() {
    let role =
        |role: &str| sent(&format!(r#"{{"message":{{"messageId":"m","role":{role},"parts":[{{"text":""}}]}}}}"#));
    assert_eq!(role("\"ROLE_USER\"").message.role, Role::User);
    assert_eq!(role("1").message.role, Role::User);
    assert_eq!(role("\"ROLE_AGENT\"").message.role, Role::Agent);
    assert_eq!(role("2.0").message.role, Role::Agent);
    for (number, state) in (1..).zip([
        TaskState::Submitted,
        TaskState::Working,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Canceled,
        TaskState::InputRequired,
        TaskState::Rejected,
        TaskState::AuthRequired,
    ]) {
        let view = TaskView::whole(Arc::new(Task { status: TaskStatus { state, ..task().status }, ..task() }));
        let written = encoded(|out| encode_task(&view, out));
        let name = written.split('"').find(|piece| piece.starts_with("TASK_STATE_")).expect("a state is written");
        for spelling in [number.to_string(), format!("\"{name}\"")] {
            match request("ListTasks", &format!(r#"{{"status":{spelling}}}"#)) {
                Request::ListTasks(list) => assert_eq!(list.state, Some(state), "{spelling}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn j2_an_unknown_enum_value_is_refused_and_unspecified_is_no_filter() {
    for status in ["\"TASK_STATE_DONE\"", "\"working\"", "\"\"", "9", "-1"] {
        assert_eq!(blamed("ListTasks", &format!(r#"{{"status":{status}}}"#)), ["status"], "{status}");
    }
    for status in ["\"TASK_STATE_UNSPECIFIED\"", "0", "null"] {
        match request("ListTasks", &format!(r#"{{"status":{status}}}"#)) {
            Request::ListTasks(list) => assert_eq!(list.state, None, "{status}"),
            other => panic!("{other:?}"),
        }
    }
    for role in ["\"ROLE_UNSPECIFIED\"", "0", "3", "\"user\"", "\"\"", "null"] {
        let params = format!(r#"{{"message":{{"messageId":"m","role":{role},"parts":[{{"text":""}}]}}}}"#);
        assert_eq!(blamed("SendMessage", &params), ["message.role"], "{role}");
    }
}

#[test]
fn j3_bytes_are_read_in_either_base64_and_written_in_standard_padded_base64() {
    for spelling in ["+/8=", "-_8=", "+/8", "-_8", r"+\/8="] {
        let part = format!(r#"{{"raw":"{spelling}"}}"#);
        assert_eq!(content(&part), PartContent::Raw(vec![0xfb, 0xff].into()), "{spelling}");
    }
    let message = Message::new(Role::Agent, "m", vec![Part::raw(vec![0xfb, 0xff])]);
    let written = encoded(|out| encode_message(&message, out));
    assert_eq!(written, r#"{"messageId":"m","role":"ROLE_AGENT","parts":[{"raw":"+/8="}]}"#);
    assert_eq!(content(r#"{"raw":""}"#), PartContent::Raw(Vec::new().into()));
}

#[test]
fn j4_timestamps_are_read_in_any_rfc_3339_spelling_and_written_in_utc_milliseconds() {
    for spelling in ["2026-02-03T10:00:05.12Z", "2026-02-03T10:00:05.120000000Z", "2026-02-03T12:00:05.12+02:00"] {
        match request("ListTasks", &format!(r#"{{"statusTimestampAfter":"{spelling}"}}"#)) {
            Request::ListTasks(list) => {
                let since = list.status_since.expect("a timestamp was sent").to_string();
                assert_eq!(since, "2026-02-03T10:00:05.120Z", "{spelling}");
            }
            other => panic!("{other:?}"),
        }
    }
    let written = encoded(|out| encode_task(&TaskView::whole(Arc::new(task())), out));
    assert!(written.contains(r#""timestamp":"1970-01-01T00:00:00.001Z""#), "{written}");
}

#[test]
fn j5_free_form_values_keep_every_digit() {
    let number = "123456789012345678901234567890.12345678901234567890";
    let send = sent(&send_part(&format!(r#"{{"data":{number},"metadata":{{"n":{number}}}}}"#)));
    let written = encoded(|out| encode_message(&send.message, out));
    assert_eq!(
        written,
        format!(
            r#"{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"data":{number},"metadata":{{"n":{number}}}}}]}}"#
        )
    );
    for not_json in ["NaN", "Infinity", "-Infinity", "01", "'x'"] {
        assert!(super::decode("SendMessage", &send_part(&format!(r#"{{"data":{not_json}}}"#))).is_err(), "{not_json}");
    }
}

#[test]
fn j6_whole_numbers_are_read_as_number_or_text() {
    for (spelling, length) in [("10", 10), ("\"10\"", 10), ("10.0", 10), ("0", 0)] {
        let asked = request("GetTask", &format!(r#"{{"id":"t","historyLength":{spelling}}}"#));
        assert_eq!(asked, Request::GetTask { id: "t".into(), history_length: Some(length) }, "{spelling}");
    }
    for spelling in ["10.5", "\"ten\"", "true", "[1]", "3000000000"] {
        let params = format!(r#"{{"id":"t","historyLength":{spelling}}}"#);
        assert_eq!(blamed("GetTask", &params), ["historyLength"], "{spelling}");
    }
}

#[test]
fn j7_defaults_without_presence_are_left_out_and_members_with_presence_are_kept() {
    let written = encoded(|out| encode_task(&TaskView::whole(Arc::new(task())), out));
    assert_eq!(
        written,
        r#"{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_WORKING","timestamp":"1970-01-01T00:00:00.001Z"}}"#
    );
    assert_eq!(content(r#"{"text":""}"#), PartContent::Text(String::new()));
    let empty = Message::new(Role::User, "m", vec![Part::text("")]);
    let written = encoded(|out| encode_message(&empty, out));
    assert_eq!(written, r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]}"#);
    // An empty string is how a peer may spell an absent one.
    let send = sent(
        r#"{"message":{"messageId":"m","contextId":"","taskId":"","role":"ROLE_USER","extensions":[],
        "parts":[{"text":"x","filename":"","mediaType":""}]},"configuration":{"historyLength":0}}"#,
    );
    assert_eq!(send.message, Message::new(Role::User, "m", vec![Part::text("x")]));
    assert_eq!(send.history_length, Some(0));
}

#[test]
fn j8_null_is_absent_except_as_the_value_of_data() {
    let send = sent(
        r#"{"tenant":null,"message":{"messageId":"m","contextId":null,"taskId":null,"role":"ROLE_USER","metadata":null,
        "extensions":null,"referenceTaskIds":null,"parts":[{"text":"x","raw":null,"url":null,"metadata":null,
        "filename":null,"mediaType":null}]},"configuration":null,"metadata":null}"#,
    );
    assert_eq!(send.message, Message::new(Role::User, "m", vec![Part::text("x")]));
    match content(r#"{"data":null}"#) {
        PartContent::Data(json) => assert_eq!(json.as_str(), "null"),
        other => panic!("{other:?}"),
    }
    assert_eq!(blamed("SendMessage", &send_part(r#"{"text":"x","data":null}"#)), ["message.parts[0]"]);
    assert_eq!(blamed("SendMessage", &send_part("null")), ["message.parts[0]"]);
    assert_eq!(blamed("SendMessage", r#"{"message":null}"#), ["message"]);
}

#[test]
fn j9_a_page_of_tasks_always_has_all_four_members() {
    let page = |tasks| Reply::Tasks(TaskPage { tasks, next_page_token: String::new(), page_size: 50, total_size: 0 });
    let written = encoded(|out| encode_reply(&page(Vec::new()), out));
    assert_eq!(written, r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}"#);
    let artifacts = |view, artifacts| {
        let task = Arc::new(Task { artifacts, ..task() });
        let view = TaskView { task, history_length: None, artifacts: view };
        let written = encoded(|out| encode_task(&view, out));
        written.split_once(r#","artifacts":"#).map(|(_, rest)| rest.trim_end_matches('}').to_owned())
    };
    let one = || vec![Arc::new(Artifact::new("a", vec![Part::text("x")]))];
    assert_eq!(artifacts(ArtifactView::Shown, Vec::new()), None);
    assert_eq!(artifacts(ArtifactView::AlwaysListed, Vec::new()).as_deref(), Some("[]"));
    assert_eq!(artifacts(ArtifactView::Omitted, one()), None);
    assert!(artifacts(ArtifactView::Shown, one()).is_some());
    // A page of push configs is not under that exception: its token has no presence.
    let configs = Reply::PushConfigs(PushConfigPage { configs: Vec::new(), next_page_token: String::new() });
    assert_eq!(encoded(|out| encode_reply(&configs, out)), r#"{"configs":[]}"#);
}

#[test]
fn j10_a_part_has_exactly_one_content() {
    let two = ["message.parts[0]: has more than one of text, raw, url and data"];
    for part in [r#"{"text":"x","url":"y"}"#, r#"{"raw":"","data":1}"#, r#"{"text":"","raw":"","url":"","data":0}"#] {
        assert_eq!(wrong("SendMessage", &send_part(part)), two, "{part}");
    }
    let none = ["message.parts[0]: needs one of text, raw, url and data"];
    for part in ["{}", r#"{"mediaType":"text/plain"}"#, r#"{"text":null}"#] {
        assert_eq!(wrong("SendMessage", &send_part(part)), none, "{part}");
    }
}

#[test]
fn j11_unknown_members_are_ignored_and_none_are_written() {
    let send = sent(
        r#"{"kind":"x","message":{"kind":"message","messageId":"m","role":"ROLE_USER","final":true,
        "parts":[{"kind":"text","text":"x","future":{"deep":[[[1]]]}}]},"configuration":{"blocking":true}}"#,
    );
    assert_eq!(send.message, Message::new(Role::User, "m", vec![Part::text("x")]));
    let written = encoded(|out| encode_message(&send.message, out));
    assert_eq!(written, r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}"#);
}

#[test]
fn j12_an_absent_required_value_is_read_like_an_empty_one() {
    let absent = wrong("SendMessage", r#"{"message":{}}"#);
    let empty = wrong("SendMessage", r#"{"message":{"messageId":"","role":null,"parts":[]}}"#);
    assert_eq!(absent, empty);
    assert_eq!(blamed("SendMessage", r#"{"message":{}}"#), ["message.role", "message.messageId", "message.parts"]);
}

#[test]
fn j13_a_repeated_member_is_refused_at_every_depth() {
    assert_eq!(
        wrong("SendMessage", r#"{"message":{"messageId":"a","message_id":"b","role":1,"parts":[{"text":""}]}}"#),
        ["message: duplicate field `messageId`"]
    );
    assert_eq!(
        wrong("SendMessage", &send_part(r#"{"data":{"a":{"k":1,"\u006b":2}}}"#)),
        ["message.parts[0].data: is not acceptable JSON: duplicate key `k`"]
    );
    assert_eq!(
        blamed("SendMessage", &send_with(r#""parts":[{"text":""}],"metadata":{"k":1,"k":1}"#)),
        ["message.metadata"]
    );
}

#[test]
fn j14_media_type_and_filename_are_legal_on_every_kind_of_part() {
    for part in [r#""text":"x""#, r#""raw":"AAEC""#, r#""url":"https://files.example/x""#, r#""data":{"k":1}"#] {
        let part = format!(r#"{{{part},"filename":"x.bin","mediaType":"a/b"}}"#);
        let params = send_part(&part);
        let parsed = &sent(&params).message.parts[0];
        assert_eq!((parsed.filename(), parsed.media_type()), (Some("x.bin"), Some("a/b")));
        let written = encoded(|out| encode_message(&sent(&params).message, out));
        assert!(written.contains(&part), "{written}");
    }
}

#[test]
fn a_push_config_is_written_without_what_it_does_not_have() {
    let config = PushConfig {
        id: "".into(),
        task_id: "".into(),
        url: "https://hooks.example/x".to_owned(),
        token: None,
        authentication: None,
    };
    assert_eq!(encoded(|out| encode_reply(&Reply::PushConfig(config), out)), r#"{"url":"https://hooks.example/x"}"#);
}
