//! Input that is not valid by the schema and accepted all the same.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{Request, SendMessage};
use crate::dialect::json::DecodeLimits;
use crate::model::{Part, Role};

use super::super::rest::{decode_cancel_body, decode_history_length, decode_push_config_body};
use super::{decode, golden, json, sent, sent_over_http};

fn part(part: &str) -> Part {
    let send = sent(&format!(r#"{{"message":{{"role":"user","messageId":"m","parts":[{part}]}}}}"#));
    send.message.parts.into_iter().next().unwrap()
}

#[test]
fn a_part_may_say_its_kind_in_either_word_in_both_or_not_at_all() {
    for words in [r#""kind":"text","#, r#""type":"text","#, r#""kind":"text","type":"text","#, ""] {
        assert_eq!(part(&format!(r#"{{{words}"text":"hi"}}"#)), Part::text("hi"), "{words}");
    }
    assert_eq!(part(r#"{"type":"data","data":{"k":1}}"#), Part::json(json(r#"{"k":1}"#)));
    let file = Part::raw(&b"a,b\n"[..]).with_media_type("text/csv").with_filename("t.csv");
    assert_eq!(part(r#"{"type":"file","file":{"bytes":"YSxiCg==","mimeType":"text/csv","name":"t.csv"}}"#), file);
}

#[test]
fn a_file_may_call_its_bytes_data() {
    let image = Part::raw(&b"\x89PNG\r\n\x1a\n"[..]).with_media_type("image/png");
    assert_eq!(part(r#"{"kind":"file","file":{"mimeType":"image/png","data":"iVBORw0KGgo="}}"#), image);
}

#[test]
fn a_file_may_be_spelled_as_in_1_0() {
    let image = Part::raw(&b"a,b\n"[..]).with_media_type("text/csv").with_filename("t.csv");
    for words in ["", r#""kind":"file","#, r#""type":"file","#] {
        let raw = format!(r#"{{{words}"raw":"YSxiCg==","mediaType":"text/csv","filename":"t.csv"}}"#);
        assert_eq!(part(&raw), image, "{words}");
    }
    let link = Part::url("https://files.example/t.csv").with_media_type("text/csv");
    let url = r#"{"url":"https://files.example/t.csv","mediaType":"text/csv"}"#;
    assert_eq!(part(url), link);
    assert_eq!(
        part(r#"{"text":"*hi*","mediaType":"text/markdown"}"#),
        Part::text("*hi*").with_media_type("text/markdown")
    );
    // 0.3 has no such member, so where a part says its kind it is skipped like any other.
    assert_eq!(part(r#"{"kind":"text","text":"hi","mediaType":"text/markdown"}"#), Part::text("hi"));
    let over_http = sent_over_http(&format!(r#"{{"message":{{"role":"ROLE_USER","content":[{url}]}}}}"#));
    assert_eq!(over_http.message.parts, [link]);
}

#[test]
fn data_may_be_a_list_and_marked_data_is_unwrapped() {
    assert_eq!(part(r#"{"kind":"data","data":[1,2]}"#), Part::json(json("[1,2]")));
    let marked = r#"{"kind":"data","data":{"value":null},"metadata":{"data_part_compat":true}}"#;
    assert_eq!(part(marked), Part::json(json("null")));
    let with_more = r#"{"kind":"data","data":{"value":"x"},"metadata":{"a":1,"data_part_compat":true,"b":[]}}"#;
    assert_eq!(part(with_more), Part::json(json("\"x\"")).with_metadata(json(r#"{"a":1,"b":[]}"#)));
    // Not a mark: it is false, or there is nothing to unwrap.
    for (data, metadata) in
        [(r#"{"value":1}"#, r#"{"data_part_compat":false}"#), (r#"{"v":1}"#, r#"{"data_part_compat":true}"#)]
    {
        let kept = part(&format!(r#"{{"kind":"data","data":{data},"metadata":{metadata}}}"#));
        assert_eq!(kept, Part::json(json(data)).with_metadata(json(metadata)));
    }
}

#[test]
fn ids_may_stand_beside_the_message_or_be_missing() {
    let message = |inside: &str| format!(r#"{{"message":{{"role":"user","parts":[{{"text":"x"}}]{inside}}}"#);
    let ids =
        |send: SendMessage| (send.message.message_id.to_string(), send.message.context_id.map(|id| id.to_string()));
    assert_eq!(ids(sent(&format!("{}}}", message("")))), (String::new(), None));
    let beside = r#","messageId":"beside","contextId":"c-beside"}"#;
    assert_eq!(ids(sent(&format!("{}{beside}", message("")))), ("beside".to_owned(), Some("c-beside".to_owned())));
    let inside = r#","messageId":"inside","contextId":"c-inside""#;
    assert_eq!(ids(sent(&format!("{}{beside}", message(inside)))), ("inside".to_owned(), Some("c-inside".to_owned())));
}

#[test]
fn waiting_is_the_default_and_a_history_of_zero_is_no_limit() {
    let send = |configuration: &str| {
        sent(&format!(r#"{{"message":{{"role":"user","parts":[{{"text":"x"}}]}}{configuration}}}"#))
    };
    assert!(!send("").return_immediately);
    assert!(!send(r#","configuration":{}"#).return_immediately);
    assert!(!send(r#","configuration":{"blocking":true}"#).return_immediately);
    assert!(send(r#","configuration":{"blocking":false}"#).return_immediately);
    assert_eq!(send(r#","configuration":{"historyLength":0}"#).history_length, None);
    assert_eq!(send(r#","configuration":{"historyLength":3}"#).history_length, Some(3));
    let get = decode("tasks/get", r#"{"id":"t","historyLength":0}"#).unwrap().request;
    assert_eq!(get, Request::GetTask { id: "t".into(), history_length: None });
    assert_eq!((decode_history_length("0"), decode_history_length("4")), (Ok(None), Ok(Some(4))));
}

#[test]
fn methods_go_by_their_older_names_too() {
    let params = r#"{"message":{"role":"user","parts":[{"type":"text","text":"x"}]}}"#;
    assert!(matches!(decode("tasks/send", params).unwrap().request, Request::SendMessage(_)));
    assert!(matches!(decode("tasks/sendSubscribe", params).unwrap().request, Request::SendStreamingMessage(_)));
}

#[test]
fn http_bodies_may_use_the_names_of_the_proto() {
    let camel = sent_over_http(
        r#"{"message":{"messageId":"m","contextId":"c","taskId":"t","role":"ROLE_USER","content":[
            {"file":{"fileWithUri":"https://f.example/x","mimeType":"a/b"}},{"file":{"fileWithBytes":"AAEC"}}]},
            "configuration":{"acceptedOutputModes":["a/b"],"historyLength":2,"blocking":true,
            "pushNotification":{"url":"https://h.example/","authentication":{"schemes":["Bearer"]}}}}"#,
    );
    let snake = sent_over_http(
        r#"{"request":{"message_id":"m","context_id":"c","task_id":"t","role":1,"content":[
            {"file":{"file_with_uri":"https://f.example/x","mime_type":"a/b"}},{"file":{"file_with_bytes":"AAEC"}}]},
            "configuration":{"accepted_output_modes":["a/b"],"history_length":2,"blocking":true,
            "push_notification":{"url":"https://h.example/","authentication":{"schemes":["Bearer"]}}}}"#,
    );
    assert_eq!(camel, snake);
    assert_eq!((camel.message.role, camel.message.parts.len()), (Role::User, 2));
}

#[test]
fn the_body_of_a_webhook_may_have_any_of_its_three_envelopes() {
    let limits = DecodeLimits::default();
    let inner = r#"{"id":"pc","url":"https://h.example/"}"#;
    let id = |body: String| {
        let (_, config) = decode_push_config_body("t".into(), body.as_bytes(), &limits).unwrap();
        (config.id.to_string(), config.task_id.to_string())
    };
    let expected = ("pc".to_owned(), "t".to_owned());
    let named = format!(r#"{{"name":"tasks/other/pushNotificationConfigs/x","pushNotificationConfig":{inner}}}"#);
    assert_eq!(id(named.clone()), expected);
    assert_eq!(id(format!(r#"{{"config":{named}}}"#)), expected);
    assert_eq!(id(format!(r#"{{"parent":"tasks/t","config_id":"zzz","config":{named}}}"#)), expected);
    let nameless = r#"{"configId":"pc","config":{"push_notification_config":{"url":"https://h.example/"}}}"#;
    assert_eq!(id(nameless.to_owned()), expected);
    for body in ["", "  ", "{}", "null", r#"{"name":"tasks/t"}"#] {
        assert_eq!(decode_cancel_body(body.as_bytes(), &limits), Ok((None, None)), "{body}");
    }
}

/// The samples of the 0.2 specification, whatever its schema says about them.
#[test]
fn every_sample_request_of_the_0_2_specification_is_read() {
    #[derive(Deserialize)]
    struct Call<'a> {
        method: &'a str,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    for (name, id, parts) in [
        ("9-2-send", "9229e770-767c-417b-a0b0-f0741243c589", 1),
        ("9-3-stream", "bbb7dee1-cf5c-4683-8a6f-4114529da5eb", 2),
        ("9-4-send-1", "c53ba666-3f97-433c-a87b-6084276babe2", 1),
        ("9-4-send-2", "0db1d6c4-3976-40ed-b9b8-0043ea7a03d3", 1),
        ("9-5-send", "6dbc13b5-bd57-4c2b-b503-24e381b6c8d6", 1),
        ("9-6-send", "6dbc13b5-bd57-4c2b-b503-24e381b6c8d6", 2),
        ("9-7-send", "85b26db5-ffbb-4278-a5da-a7b09dea1b47", 1),
    ] {
        let text = golden(&format!("spec02-{name}"));
        let call: Call<'_> = serde_json::from_str(&text).unwrap();
        let send = match decode(call.method, call.params.get()).unwrap_or_else(|e| panic!("{name}: {e:?}")).request {
            Request::SendMessage(send) | Request::SendStreamingMessage(send) => send,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!((send.message.message_id.as_str(), send.message.parts.len()), (id, parts), "{name}");
    }
}

#[test]
fn an_authentication_that_says_nothing_is_none() {
    for authentication in ["{}", r#"{"schemes":[]}"#, r#"{"schemes":[""],"credentials":""}"#] {
        let config = format!(r#"{{"url":"https://h.example/","authentication":{authentication}}}"#);
        let body = format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","content":[{{"text":"t"}}]}},"configuration":{{"pushNotification":{config}}}}}"#
        );
        let hook = sent_over_http(&body).push_config.unwrap();
        assert_eq!(hook.authentication, None, "{authentication}");
    }
}
