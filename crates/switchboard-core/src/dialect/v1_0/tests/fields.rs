//! Which field is blamed, and in which words. A client's author reads these.

use expect_test::{Expect, expect};

use crate::call::Request;
use crate::error::ProtocolError;
use crate::model::{AuthenticationInfo, PushConfig};

use crate::dialect::json::{DecodeLimits, check_id};

use super::super::{decode_call, decode_cancel_body, decode_push_config_body, decode_send_body};
use super::{blamed, decode, request, send_part, send_with, wrong};

fn check(method: &str, params: &str, expected: Expect) {
    expected.assert_eq(&wrong(method, params).join("\n"));
}

#[test]
fn several_mistakes_are_reported_at_once() {
    check(
        "SendMessage",
        r#"{"message":{"role":"ROLE_BOT","parts":[{"raw":"?"},{"text":"ok"},{}]},"metadata":[],
            "configuration":{"historyLength":-1,
            "taskPushNotificationConfig":{"url":"/relative","authentication":{}}}}"#,
        expect![[r#"
            message.role: ROLE_BOT is neither ROLE_USER nor ROLE_AGENT
            message.messageId: is required and must not be empty
            message.parts[0].raw: must be base64
            message.parts[2]: needs one of text, raw, url and data
            metadata: must be an object
            configuration.taskPushNotificationConfig.authentication.scheme: is required and must not be empty
            configuration.taskPushNotificationConfig.url: must be an absolute http or https URL
            configuration.historyLength: must not be negative"#]],
    );
}

#[test]
fn a_wrong_type_is_reported_by_path() {
    check(
        "SendMessage",
        &send_part(r#"{"text":5}"#),
        expect!["message.parts[0].text: invalid type: integer `5`, expected a string"],
    );
    check("SendMessage", &send_with(r#""parts":{}"#), expect!["message.parts: invalid type: map, expected an array"]);
    check(
        "SendMessage",
        &send_with(r#""parts":["x"]"#),
        expect![[r#"message.parts[0]: invalid type: string "x", expected an object"#]],
    );
    check(
        "SendMessage",
        &send_with(r#""parts":[["x"]]"#),
        expect!["message.parts[0]: invalid type: sequence, expected an object"],
    );
    check("SendMessage", r#"{"message":["m-1"]}"#, expect!["message: invalid type: sequence, expected an object"]);
    check(
        "SendMessage",
        &send_with(r#""extensions":["a",1]"#),
        expect!["message.extensions[1]: invalid type: integer `1`, expected a string"],
    );
    check(
        "ListTasks",
        r#"{"includeArtifacts":"yes"}"#,
        expect![[r#"includeArtifacts: invalid type: string "yes", expected a boolean"#]],
    );
    check("GetTask", "[]", expect!["params: invalid type: sequence, expected an object"]);
    check("GetTask", "\"t-1\"", expect![[r#"params: invalid type: string "t-1", expected an object"#]]);
    check("GetTask", r#"{"id":7}"#, expect!["id: invalid type: integer `7`, expected a string"]);
    check(
        "SendMessage",
        &send_part(r#"{"text":"\ud800"}"#),
        expect!["message.parts[0].text: unexpected end of hex escape"],
    );
}

#[test]
fn metadata_must_be_an_object() {
    for value in ["[]", "1", "\"x\"", "true"] {
        let part = format!(r#"{{"text":"x","metadata":{value}}}"#);
        assert_eq!(wrong("SendMessage", &send_part(&part)), ["message.parts[0].metadata: must be an object"]);
        let params = format!(r#"{{"id":"t","metadata":{value}}}"#);
        assert_eq!(wrong("CancelTask", &params), ["metadata: must be an object"]);
    }
}

#[test]
fn page_sizes_and_lengths_have_bounds() {
    for size in ["0", "-1", "101", "2147483647"] {
        let params = format!(r#"{{"pageSize":{size}}}"#);
        assert_eq!(wrong("ListTasks", &params), ["pageSize: must be between 1 and 100"]);
    }
    for size in [1, 100] {
        assert!(decode("ListTasks", &format!(r#"{{"pageSize":{size}}}"#)).is_ok());
    }
    // Here 0 has no presence and so means: not said.
    assert_eq!(
        request("ListTaskPushNotificationConfigs", r#"{"taskId":"t","pageSize":0}"#),
        Request::ListPushConfigs { task_id: "t".into(), page_size: None, page_token: None }
    );
    assert_eq!(blamed("ListTaskPushNotificationConfigs", r#"{"taskId":"t","pageSize":-1}"#), ["pageSize"]);
    assert_eq!(wrong("GetTask", r#"{"id":"t","historyLength":-1}"#), ["historyLength: must not be negative"]);
    assert_eq!(blamed("ListTasks", r#"{"historyLength":-1,"pageSize":0}"#), ["pageSize", "historyLength"]);
}

#[test]
fn a_bad_timestamp_is_refused() {
    for text in ["yesterday", "2026-02-30T00:00:00Z", "2026-02-03", ""] {
        assert_eq!(blamed("ListTasks", &format!(r#"{{"statusTimestampAfter":"{text}"}}"#)), ["statusTimestampAfter"]);
    }
}

#[test]
fn ids_that_are_required_are_missed() {
    for (method, fields) in [
        ("GetTask", &["id"][..]),
        ("CancelTask", &["id"]),
        ("SubscribeToTask", &["id"]),
        ("GetTaskPushNotificationConfig", &["taskId", "id"]),
        ("DeleteTaskPushNotificationConfig", &["taskId", "id"]),
        ("ListTaskPushNotificationConfigs", &["taskId"]),
        ("CreateTaskPushNotificationConfig", &["url", "taskId"]),
    ] {
        assert_eq!(blamed(method, "{}"), fields, "{method}");
        assert_eq!(blamed(method, r#"{"id":"","taskId":"","url":""}"#), fields, "{method}");
        match decode_call(method, None, &DecodeLimits::default()) {
            Err(ProtocolError::InvalidParams { violations }) => assert_eq!(violations.len(), fields.len()),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_webhook_needs_an_absolute_url_and_a_scheme() {
    let url = |url: &str| decode("CreateTaskPushNotificationConfig", &format!(r#"{{"taskId":"t","url":"{url}"}}"#));
    for good in ["https://hooks.example/x", "HTTP://h", "http://[::1]:8080/x?y#z", "https://u@h/"] {
        assert!(url(good).is_ok(), "{good}");
    }
    for bad in
        ["hooks.example/x", "/x", "//h/x", "ftp://h/x", "https://", "https:///x", "http://:80/", "http://h/a b", "x"]
    {
        assert!(url(bad).is_err(), "{bad}");
    }
    check(
        "CreateTaskPushNotificationConfig",
        r#"{"taskId":"t","url":"mailto:x","authentication":{"scheme":"","credentials":"s"}}"#,
        expect![[r#"
            authentication.scheme: is required and must not be empty
            url: must be an absolute http or https URL"#]],
    );
}

#[test]
fn a_push_config_is_read_whole() {
    let read = request(
        "CreateTaskPushNotificationConfig",
        r#"{"tenant":"acme","id":"pc","taskId":"t","url":"https://h/x","token":"k",
            "authentication":{"scheme":"Bearer","credentials":"s"}}"#,
    );
    let expected = PushConfig {
        id: "pc".into(),
        task_id: "t".into(),
        url: "https://h/x".to_owned(),
        token: Some("k".to_owned()),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("s".to_owned()) }),
    };
    assert_eq!(read, Request::CreatePushConfig(expected.into()));
}

#[test]
fn the_tenant_is_handed_on_beside_the_request() {
    for method in [
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard",
    ] {
        let params = r#"{"tenant":"acme","id":"x","taskId":"t","url":"https://h/x",
            "message":{"messageId":"m","role":1,"parts":[{"text":""}]}}"#;
        let decoded = decode(method, params).unwrap();
        assert_eq!(decoded.tenant.as_deref(), Some("acme"), "{method}");
        assert_eq!(decoded.request.operation(), method);
        assert_eq!(decode(method, &params.replace("acme", "")).unwrap().tenant, None, "{method}");
    }
}

#[test]
fn an_unknown_method_is_named() {
    let meant = |name: &str| Some(format!("did you mean {name}?"));
    for (method, hint) in [
        ("message/send", None),
        ("", None),
        ("GetWeather", None),
        ("sendMessage", meant("SendMessage")),
        ("ListTask", meant("ListTasks")),
        ("CreateTaskPushNotification", None),
        ("CreateTaskPushNotificationConfigs", meant("CreateTaskPushNotificationConfig")),
    ] {
        let expected = ProtocolError::MethodNotFound { method: method.to_owned(), hint };
        assert_eq!(decode(method, "{}"), Err(expected));
    }
    // However long a name is, little of it comes back.
    let refused = decode(&"SendMessage".repeat(10_000), "{}").unwrap_err().to_string();
    assert!(refused.len() < 128, "{refused}");
}

#[test]
fn params_may_be_absent_or_null_where_nothing_is_required() {
    for params in [None, Some("null"), Some("{}")] {
        let decoded = decode_call("GetExtendedAgentCard", params, &DecodeLimits::default()).unwrap();
        assert_eq!((decoded.tenant, decoded.request), (None, Request::GetExtendedAgentCard));
    }
}

#[test]
fn a_body_that_is_not_json_is_a_parse_error_and_a_wrong_one_names_its_field() {
    let limits = DecodeLimits::default();
    for body in [&b""[..], b"{", b"not json", b"{\"message\":5,", b"\xff\xfe{}", b"{\"tenant\":\"\xc3\"}"] {
        let error = decode_send_body(body, &limits).unwrap_err();
        assert!(matches!(error, ProtocolError::ParseError { .. }), "{error:?}");
        let error = decode_push_config_body(body, &limits).unwrap_err();
        assert!(matches!(error, ProtocolError::ParseError { .. }), "{error:?}");
    }
    for (body, field) in [("[]", "body"), ("{}", "message"), (r#"{"message":5}"#, "message")] {
        match decode_send_body(body.as_bytes(), &limits) {
            Err(ProtocolError::InvalidParams { violations }) => assert_eq!(violations[0].field, field),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_cancel_needs_no_body() {
    let limits = DecodeLimits::default();
    for body in ["", "  \r\n", "{}", r#"{"metadata":null}"#] {
        assert_eq!(decode_cancel_body(body.as_bytes(), &limits), Ok((None, None)), "{body:?}");
    }
    let (tenant, metadata) = decode_cancel_body(br#"{"tenant":"a","metadata":{"why":1}}"#, &limits).unwrap();
    assert_eq!((tenant.as_deref(), metadata.unwrap().as_str()), (Some("a"), r#"{"why":1}"#));
    assert!(decode_cancel_body(b"{", &limits).is_err());
}

#[test]
fn ids_from_a_path_are_checked_like_ids_from_a_body() {
    let limits = DecodeLimits::default();
    assert_eq!(check_id("id", "t-1", &limits), Ok(()));
    for id in ["", "a\r\nb", &"x".repeat(257)] {
        assert!(check_id("id", id, &limits).is_err(), "{id:?}");
    }
}
