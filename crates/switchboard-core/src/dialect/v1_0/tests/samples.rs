//! One valid call of every method with most of its fields set: the seeds that are mutated.

pub(super) const REQUESTS: [(&str, &str); 11] = [
    ("SendMessage", SEND),
    ("SendStreamingMessage", SEND),
    ("GetTask", r#"{"tenant":"acme","id":"t-1","historyLength":3}"#),
    (
        "ListTasks",
        r#"{"tenant":"acme","contextId":"c-1","status":"TASK_STATE_WORKING","pageSize":10,"pageToken":"p",
            "historyLength":"2","statusTimestampAfter":"2026-02-03T10:00:00.5Z","includeArtifacts":true}"#,
    ),
    ("CancelTask", r#"{"id":"t-1","metadata":{"why":["late",{"n":1}]}}"#),
    ("SubscribeToTask", r#"{"tenant":"","id":"t-1"}"#),
    ("CreateTaskPushNotificationConfig", PUSH),
    ("GetTaskPushNotificationConfig", r#"{"taskId":"t-1","id":"pc-1"}"#),
    ("ListTaskPushNotificationConfigs", r#"{"taskId":"t-1","pageSize":10,"pageToken":"x"}"#),
    ("DeleteTaskPushNotificationConfig", r#"{"task_id":"t-1","id":"pc-1"}"#),
    ("GetExtendedAgentCard", r#"{"tenant":"acme"}"#),
];

const SEND: &str = r#"{"tenant":"acme","message":{"messageId":"m-1","contextId":"c-1","taskId":"t-1","role":"ROLE_USER",
    "parts":[{"text":"a \"b\" \u00e4","metadata":{"k":null}},{"raw":"AAEC","filename":"x"},
    {"url":"https://files.example/x","mediaType":"a/b"},{"data":[1,2.5,{"a":"b"}]}],
    "metadata":{"x":1},"extensions":["https://e.example/1"],"referenceTaskIds":["t-0"]},
    "configuration":{"acceptedOutputModes":["text/plain"],"historyLength":0,"returnImmediately":true,
    "taskPushNotificationConfig":{"url":"https://h.example/x","authentication":{"scheme":"Bearer","credentials":"s"}}},"metadata":{"trace":"abc"}}"#;

const PUSH: &str = r#"{"tenant":"acme","id":"pc-1","taskId":"t-1","url":"https://h.example/x","token":"k",
    "authentication":{"scheme":"Basic","credentials":"s"}}"#;

#[test]
fn every_sample_is_a_valid_call() {
    for (method, params) in REQUESTS {
        assert_eq!(super::request(method, params).operation(), method);
    }
}
