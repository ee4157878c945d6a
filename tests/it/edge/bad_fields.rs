//! Messages with wrong fields: each is named, nothing is stored, and odd but legal content survives.

use expect_test::expect;
use serde_json::{Value, json};

use crate::support::edge::{Edge, message};

/// What is wrong with the parameters of a send, as both bindings say it.
async fn violations(edge: &Edge, params: &Value) -> String {
    let rest = edge.post("/message:send", params.to_string()).await.json();
    let rpc = edge.rpc("SendMessage", params.clone()).await.json();
    assert_eq!(rest["error"]["message"], rpc["error"]["message"]);
    assert_eq!(rest["error"]["details"], rpc["error"]["data"]);
    let details = &rest["error"]["details"];
    assert_eq!(details[0]["reason"], "INVALID_PARAMS", "{rest}");
    let violations = details[1]["fieldViolations"].as_array().unwrap();
    violations
        .iter()
        .map(|one| format!("  {}: {}\n", one["field"].as_str().unwrap(), one["description"].as_str().unwrap()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn wrong_fields_are_named() {
    let edge = Edge::usual();
    let mut shown = String::new();
    let with = |path: &str, value: Value| {
        let mut params = message("hello");
        *params.pointer_mut(path).unwrap() = value;
        params
    };
    let part = |part: Value| with("/message/parts/0", part);
    for (what, params) in [
        ("nothing", json!({})),
        ("message is null", json!({"message": null})),
        ("message is a text", json!({"message": "hello"})),
        ("no id", with("/message/messageId", json!(""))),
        ("an id of numbers", with("/message/messageId", json!(7))),
        ("a long id", with("/message/messageId", json!("x".repeat(300)))),
        ("an id with a line break", with("/message/messageId", json!("a\nb"))),
        ("an unknown role", with("/message/role", json!("user"))),
        ("no parts", with("/message/parts", json!([]))),
        ("parts that are none", with("/message/parts", json!({}))),
        ("an empty part", part(json!({}))),
        ("a part that is two", part(json!({"text": "a", "url": "https://x.example"}))),
        ("a number for a text", part(json!({"text": 7}))),
        ("base64 that is none", part(json!({"raw": "a*b"}))),
        ("base64 cut short", part(json!({"raw": "YWJjZ"}))),
        ("metadata that is a list", part(json!({"text": "a", "metadata": []}))),
        ("eleven thousand parts", with("/message/parts", json!(vec![json!({"text": "a"}); 11_000]))),
    ] {
        shown.push_str(&format!("{what}\n{}", violations(&edge, &params).await));
    }
    expect![[r#"
        nothing
          message: is required
        message is null
          message: is required
        message is a text
          message: invalid type: string "hello", expected an object
        no id
          message.messageId: is required and must not be empty
        an id of numbers
          message.messageId: invalid type: integer `7`, expected a string
        a long id
          message.messageId: is 300 bytes long; the limit is 256
        an id with a line break
          message.messageId: must not contain control characters
        an unknown role
          message.role: user is neither ROLE_USER nor ROLE_AGENT
        no parts
          message.parts: needs at least one part
        parts that are none
          message.parts: invalid type: map, expected an array
        an empty part
          message.parts[0]: needs one of text, raw, url and data
        a part that is two
          message.parts[0]: has more than one of text, raw, url and data
        a number for a text
          message.parts[0].text: invalid type: integer `7`, expected a string
        base64 that is none
          message.parts[0].raw: must be base64
        base64 cut short
          message.parts[0].raw: must be base64
        metadata that is a list
          message.parts[0].metadata: must be an object
        eleven thousand parts
          message.parts: has 11000 parts; the limit is 1000
    "#]]
    .assert_eq(&shown);
    assert_eq!(edge.get("/tasks").await.json()["totalSize"], 0, "nothing of this was stored");
}

#[tokio::test(start_paused = true)]
async fn wrong_settings_are_named() {
    let edge = Edge::usual();
    let mut shown = String::new();
    for (what, configuration) in [
        ("a negative history", json!({"historyLength": -1})),
        ("a history of text", json!({"historyLength": "many"})),
        ("modes that are no list", json!({"acceptedOutputModes": "text/plain"})),
        ("a webhook without a url", json!({"taskPushNotificationConfig": {}})),
        ("a webhook with a path only", json!({"taskPushNotificationConfig": {"url": "/hook"}})),
        ("a webhook to a file", json!({"taskPushNotificationConfig": {"url": "file:///etc/passwd"}})),
        (
            "a token with a line break",
            json!({"taskPushNotificationConfig": {"url": "https://hooks.example/", "token": "a\r\nx-evil: 1"}}),
        ),
        (
            "credentials without a scheme",
            json!({"taskPushNotificationConfig": {"url": "https://hooks.example/", "authentication": {"credentials": "x"}}}),
        ),
        ("a flag of text", json!({"returnImmediately": "yes"})),
    ] {
        let mut params = message("hello");
        params["configuration"] = configuration;
        shown.push_str(&format!("{what}\n{}", violations(&edge, &params).await));
    }
    expect![[r#"
        a negative history
          configuration.historyLength: must not be negative
        a history of text
          configuration.historyLength: invalid value: string "many", expected a whole number of 32 bits
        modes that are no list
          configuration.acceptedOutputModes: invalid type: string "text/plain", expected an array
        a webhook without a url
          configuration.taskPushNotificationConfig.url: is required and must not be empty
        a webhook with a path only
          configuration.taskPushNotificationConfig.url: must be an absolute http or https URL
        a webhook to a file
          configuration.taskPushNotificationConfig.url: must be an absolute http or https URL
        a token with a line break
          configuration.taskPushNotificationConfig.token: must not contain control characters
        credentials without a scheme
          configuration.taskPushNotificationConfig.authentication.scheme: is required and must not be empty
        a flag of text
          configuration.returnImmediately: invalid type: string "yes", expected a boolean
    "#]]
    .assert_eq(&shown);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_parts_are_over_the_limit_and_a_thousand_are_not() {
    let edge = Edge::usual();
    let parts = |count: usize| {
        let mut params = message("hello");
        params["message"]["parts"] = json!(vec![json!({"text": "a"}); count]);
        params.to_string()
    };
    assert_eq!(edge.post("/message:send", parts(1_000)).await.gist(), "200");
    let refused = edge.post("/message:send", parts(10_000)).await;
    assert_eq!(refused.gist(), "400 INVALID_PARAMS");
    assert_eq!(
        refused.json()["error"]["message"],
        "Invalid parameters: message.parts: has 10000 parts; the limit is 1000"
    );
}

#[tokio::test(start_paused = true)]
async fn odd_text_survives() {
    let edge = Edge::usual();
    for text in
        ["a\u{0}b", "\u{0}", "\u{7f}\u{85}\u{2028}", "😀 é", "\\u0000 \\ \" /", "\u{202e}abc", "line\r\nline\ttab"]
    {
        let sent = edge.post("/message:send", message(text).to_string()).await.json();
        assert_eq!(sent["task"]["artifacts"][0]["parts"][0]["text"], text, "{text:?}");
        let id = sent["task"]["id"].as_str().unwrap();
        let read = edge.get(&format!("/tasks/{id}")).await.json();
        assert_eq!(read["history"][0]["parts"][0]["text"], text, "{text:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_part_comes_back_as_it_went() {
    let edge = Edge::new(switchboard::Server::builder().agent(crate::support::edge::echo().input_modes(["*/*"])));
    let parts = json!([
        {"text": ""},
        {"raw": "AAEC/w==", "filename": "a.bin", "mediaType": "application/octet-stream"},
        {"url": "https://files.example/x?y=1#z"},
        {"data": null},
        {"data": [1, 2.5, "three", {"four": [true, false, null]}], "metadata": {"key": "value"}},
        {"data": 12345678901234567890_u64},
    ]);
    let mut params = message("hello");
    params["message"]["parts"] = parts.clone();
    params["message"]["metadata"] = json!({"b": 1, "a": {"nested": [null]}});
    let sent = edge.post("/message:send", params.to_string()).await.json();
    assert_eq!(sent["task"]["history"][0]["parts"], parts);
    assert_eq!(sent["task"]["history"][0]["metadata"], params["message"]["metadata"]);
    // Other spellings of the same bytes are understood, and answered in the standard one.
    for raw in ["AAEC_w==", "AAEC/w", "AAEC_w"] {
        params["message"]["parts"] = json!([{"raw": raw}]);
        let sent = edge.post("/message:send", params.to_string()).await.json();
        assert_eq!(sent["task"]["history"][0]["parts"][0]["raw"], "AAEC/w==", "{raw}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_role_may_be_a_number_and_names_may_be_in_snake_case() {
    let edge = Edge::usual();
    let body = r#"{"message":{"message_id":"m","role":1,"parts":[{"text":"hello","media_type":"text/plain"}]},
                   "configuration":{"history_length":"0","return_immediately":false}}"#;
    let sent = edge.post("/message:send", body).await.json();
    assert_eq!(
        (sent["task"]["status"]["state"].as_str(), sent["task"].get("history")),
        (Some("TASK_STATE_COMPLETED"), None)
    );
}
