//! What is refused, and which field is blamed: never a guess between two meanings, never a spelling of another version.

use crate::dialect::json::DecodeLimits;
use crate::error::ProtocolError;

use super::super::rest::{decode_history_length, decode_push_config_body, decode_send_body};
use super::{decode, wrong};

fn part(part: &str) -> Vec<String> {
    wrong(decode("message/send", &format!(r#"{{"message":{{"role":"user","parts":[{part}]}}}}"#)))
}

fn message(members: &str) -> Vec<String> {
    wrong(decode("message/send", &format!(r#"{{"message":{{{members}}}}}"#)))
}

fn body(body: &str) -> Vec<String> {
    wrong(decode_send_body(body.as_bytes(), &DecodeLimits::default()))
}

#[test]
fn a_part_that_could_be_two_things_is_refused() {
    assert_eq!(
        part(r#"{"kind":"text","type":"file","text":"x"}"#),
        ["message.parts[0]: is of kind text and of type file; say one"]
    );
    assert_eq!(
        part(r#"{"kind":"text","text":"x","data":{}}"#),
        ["message.parts[0]: has both text and data; one part holds one"]
    );
    assert_eq!(
        part(r#"{"kind":"file","file":{"bytes":"AA==","uri":"https://x"}}"#),
        ["message.parts[0].file: has more than one of bytes, uri and data; a file is bytes or uri"]
    );
    assert_eq!(
        part(r#"{"kind":"file","file":{"bytes":"AA==","data":"AA=="}}"#),
        ["message.parts[0].file: has more than one of bytes, uri and data; a file is bytes or uri"]
    );
}

#[test]
fn a_part_that_is_nothing_is_refused() {
    assert_eq!(part("{}"), ["message.parts[0]: needs one of text, file and data"]);
    assert_eq!(part(r#"{"kind":"text"}"#), ["message.parts[0].text: is required in a part of kind text"]);
    // How another system spells a text: here it is not one.
    assert_eq!(part(r#"{"type":"text","data":"x"}"#)[0], "message.parts[0].text: is required in a part of kind text");
    assert_eq!(
        part(r#"{"kind":"video","text":"x"}"#),
        ["message.parts[0].kind: is video, which is none of text, file and data"]
    );
    assert_eq!(part(r#"{"kind":"file","file":{"name":"x"}}"#), ["message.parts[0].file: needs bytes or uri"]);
    assert_eq!(part(r#"{"kind":"file","file":{"bytes":"<here>"}}"#), ["message.parts[0].file.bytes: must be base64"]);
    assert_eq!(part(r#"{"kind":"file","file":{"data":"<here>"}}"#), ["message.parts[0].file.data: must be base64"]);
    assert_eq!(part(r#"{"kind":"data","data":"text"}"#), ["message.parts[0].data: must be an object"]);
    assert_eq!(part(r#"{"kind":"data","data":null}"#), ["message.parts[0].data: must be an object"]);
}

#[test]
fn a_file_in_the_spelling_of_1_0_is_one_thing() {
    let both = r#"{"raw":"AA==","url":"https://x.example"}"#;
    assert_eq!(part(both), ["message.parts[0]: has both raw and url; one part holds one"]);
    assert_eq!(part(r#"{"raw":"AA==","text":"x"}"#), ["message.parts[0]: has both text and raw; one part holds one"]);
    assert_eq!(part(r#"{"raw":"<here>"}"#), ["message.parts[0].raw: must be base64"]);
    assert_eq!(part(r#"{"kind":"text","url":"x"}"#), ["message.parts[0].text: is required in a part of kind text"]);
}

#[test]
fn other_spellings_of_1_0_are_recognised_and_refused() {
    assert_eq!(
        message(r#""role":"ROLE_USER","parts":[{"text":"x"}]"#),
        ["message.role: ROLE_USER is how A2A 1.0 spells it; in 0.3 it is user or agent"]
    );
    assert_eq!(
        body(r#"{"message":{"role":"ROLE_USER","parts":[{"text":"x"}]}}"#),
        [
            "message.content: is what HTTP+JSON of A2A 0.3 calls the parts of a message, and each is {\"text\":…}, {\"file\":…} or {\"data\":…} without a kind"
        ]
    );
    assert_eq!(
        body(r#"{"message":{"role":"user","content":[{"text":"x"}]}}"#),
        ["message.role: user is neither ROLE_USER nor ROLE_AGENT"]
    );
}

#[test]
fn several_mistakes_are_named_at_once() {
    assert_eq!(
        message(r#""kind":"task""#),
        [
            "message.kind: is task; a message is of kind message",
            "message.role: is required: user or agent",
            "message.parts: needs at least one part",
        ]
    );
    assert_eq!(wrong(decode("message/send", "{}")), ["message: is required"]);
    assert_eq!(
        wrong(decode("message/send", r#"{"message":{"role":1}}"#)),
        ["message.role: 1 is neither user nor agent", "message.parts: needs at least one part"]
    );
    assert_eq!(wrong(decode("message/send", "[]")), ["params: invalid type: sequence, expected an object"]);
    assert_eq!(body("{}"), ["message: is required"]);
    assert_eq!(
        body(r#"{"message":{"content":[{},{"text":"x","file":{}},{"data":{}},{"data":{"data":[1]}}]}}"#),
        [
            "message.role: is required: ROLE_USER or ROLE_AGENT",
            "message.content[0]: needs one of text, file and data",
            "message.content[1]: has more than one of text, file and data",
            "message.content[2].data.data: is required and must be an object",
            "message.content[3].data.data: must be an object",
        ]
    );
}

#[test]
fn calls_about_tasks_and_webhooks_name_what_is_missing() {
    for (method, params, expected) in [
        ("tasks/get", "{}", "id: is required and must not be empty"),
        ("tasks/get", r#"{"id":"t","historyLength":-1}"#, "historyLength: must not be negative"),
        ("tasks/cancel", r#"{"id":""}"#, "id: is required and must not be empty"),
        ("tasks/resubscribe", "{}", "id: is required and must not be empty"),
        ("tasks/pushNotificationConfig/set", r#"{"taskId":"t"}"#, "pushNotificationConfig: is required"),
        (
            "tasks/pushNotificationConfig/set",
            r#"{"taskId":"t","pushNotificationConfig":{"url":"ftp://x"}}"#,
            "pushNotificationConfig.url: must be an absolute http or https URL",
        ),
        (
            "tasks/pushNotificationConfig/set",
            r#"{"taskId":"t","pushNotificationConfig":{"url":"https://x","authentication":{"schemes":[],"credentials":"c"}}}"#,
            "pushNotificationConfig.authentication.schemes: needs at least one scheme, such as Bearer",
        ),
        (
            "tasks/pushNotificationConfig/delete",
            r#"{"id":"t"}"#,
            "pushNotificationConfigId: is required and must not be empty",
        ),
    ] {
        assert_eq!(wrong(decode(method, params)), [expected], "{method} {params}");
    }
    let limits = DecodeLimits::default();
    assert_eq!(wrong(decode_push_config_body("t".into(), b"{}", &limits)), ["pushNotificationConfig: is required"]);
    assert_eq!(wrong(decode_history_length("-1")), ["historyLength: must not be negative"]);
    assert_eq!(wrong(decode_history_length("x")), ["historyLength: must be a whole number of 32 bits"]);
}

#[test]
fn there_is_no_list_of_tasks_and_no_other_method() {
    let meant = |name: &str| Some(format!("did you mean {name}?"));
    for (method, hint) in [
        ("tasks/list", None),
        ("SendMessage", None),
        ("", None),
        ("message/Send", meant("message/send")),
        ("tasks/resuscribe", meant("tasks/resubscribe")),
    ] {
        let expected = ProtocolError::MethodNotFound { method: method.to_owned(), hint };
        assert_eq!(decode(method, "{}"), Err(expected));
    }
}
