//! The pages of `docs/dialects` and what is really lost: each row of a table is a case here under the same words, and each
//! case shows its loss. That nothing else is lost is what `properties` shows.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::call::{PushConfigPage, Reply, Request};
use crate::model::{
    AgentCard, AgentCardSignature, AgentInterface, Message, OAuthFlow, OAuthFlowKind, Part, Role, SecurityScheme,
};

use super::super::{encode_card, rest, rpc};
use super::{decode, encoded, json, sent, sent_over_http};

type Case = (&'static str, fn());

/// The first cells of the rows of a page's tables whose heading begins with this word.
fn rows(page: &str, heading: &str) -> Vec<String> {
    let folders = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "dialects", page];
    let path: PathBuf = folders.iter().collect();
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut inside = false;
    let mut rows = Vec::new();
    for line in text.lines() {
        let first = line.strip_prefix("| ").and_then(|line| line.split(" |").next());
        match first {
            Some(cell) if cell == heading => inside = true,
            Some(cell) if inside && cell != "---" => rows.push(cell.to_owned()),
            Some(_) => {}
            None => inside = false,
        }
    }
    rows
}

fn hold(page: &str, heading: &str, cases: &[Case]) {
    let names: Vec<_> = cases.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(rows(page, heading), names, "{page}: the rows and the cases here are the same");
    for (name, show) in cases {
        println!("{page}: {name}");
        show();
    }
}

/// What JSON-RPC makes of a part.
fn over_rpc(part: Part) -> Part {
    let message = Message::new(Role::User, "m", vec![part]);
    let written = encoded(|out| rpc::encode_message(&message, out));
    sent(&format!(r#"{{"message":{written}}}"#)).message.parts.remove(0)
}

/// What HTTP+JSON makes of a part.
fn over_http(part: Part) -> Part {
    let message = Message::new(Role::User, "m", vec![part]);
    let written = encoded(|out| rest::encode_message(&message, out));
    sent_over_http(&format!(r#"{{"message":{written}}}"#)).message.parts.remove(0)
}

fn named(part: Part) -> Part {
    part.with_filename("f.txt").with_media_type("text/x")
}

fn with_empty_metadata() -> Part {
    Part::json(json("[1]")).with_metadata(json("{}"))
}

fn card(change: impl FnOnce(&mut AgentCard)) -> Value {
    let mut card = AgentCard {
        supported_interfaces: vec![AgentInterface {
            url: "https://agents.example/rpc".to_owned(),
            protocol_binding: "JSONRPC".to_owned(),
            protocol_version: "0.3".to_owned(),
            tenant: None,
        }],
        ..AgentCard::default()
    };
    change(&mut card);
    serde_json::from_str(&encoded(|out| encode_card(&card, out))).unwrap()
}

fn oauth(kind: OAuthFlowKind) -> (String, SecurityScheme) {
    let url = || Some("https://id.example/".to_owned());
    let flow = OAuthFlow {
        kind,
        authorization_url: url(),
        device_authorization_url: url(),
        token_url: url(),
        refresh_url: None,
        scopes: Vec::new(),
        pkce_required: true,
    };
    ("oauth".to_owned(), SecurityScheme::OAuth2 { description: None, flow, metadata_url: None })
}

/// The call means the same with a member as without it.
fn ignored(method: &str, params: &str, member: &str) {
    let with = format!("{},{member}}}", params.trim_end_matches('}'));
    let read = |params: &str| format!("{:?}", decode(method, params).unwrap().request);
    assert_eq!(read(params), read(&with));
}

fn history_length(params: &str) -> Option<u32> {
    match decode("tasks/get", params).unwrap().request {
        Request::GetTask { history_length, .. } => history_length,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_1_0_says_and_0_3_cannot_over_json_rpc() {
    hold(
        "1.0-and-0.3-over-json-rpc.md",
        "1.0 has",
        &[
            ("file name and media type of a text part", || {
                assert_eq!(over_rpc(named(Part::text("t"))), Part::text("t"));
            }),
            ("file name and media type of a data part", || {
                assert_eq!(over_rpc(named(Part::json(json("{}")))), Part::json(json("{}")));
            }),
            ("empty metadata beside data that is no object", || {
                assert_eq!(over_rpc(with_empty_metadata()), Part::json(json("[1]")));
            }),
            ("the token of the next page of push configs", || {
                let page = PushConfigPage { configs: Vec::new(), next_page_token: "more".to_owned() };
                assert_eq!(encoded(|out| rpc::encode_reply(&Reply::PushConfigs(page), out)), "[]");
            }),
            ("a card's interfaces of other versions", || {
                let only_new = card(|card| card.supported_interfaces[0].protocol_version = "1.0".to_owned());
                assert_eq!(only_new.get("url"), None);
            }),
            ("the tenant of a card's interface", || {
                let tenant =
                    |tenant: Option<&str>| card(|card| card.supported_interfaces[0].tenant = tenant.map(str::to_owned));
                assert_eq!(tenant(Some("acme")), tenant(None));
            }),
            ("the device-code flow", || {
                let card = card(|card| card.security_schemes = vec![oauth(OAuthFlowKind::DeviceCode)]);
                assert_eq!(card["securitySchemes"]["oauth"]["flows"], serde_json::json!({}));
            }),
            ("`pkceRequired`", || {
                let card = card(|card| card.security_schemes = vec![oauth(OAuthFlowKind::AuthorizationCode)]);
                assert!(card["securitySchemes"]["oauth"]["flows"]["authorizationCode"].is_object());
                assert!(!card.to_string().contains("pkce"));
            }),
            ("signatures of a card", || {
                let signature =
                    AgentCardSignature { protected: "p".to_owned(), signature: "s".to_owned(), header: None };
                assert_eq!(card(|card| card.signatures = vec![signature]).get("signatures"), None);
            }),
        ],
    );
}

#[test]
fn what_0_3_says_and_1_0_cannot_over_json_rpc() {
    hold(
        "1.0-and-0.3-over-json-rpc.md",
        "0.3 has",
        &[
            ("metadata of `tasks/get`", || ignored("tasks/get", r#"{"id":"t"}"#, r#""metadata":{"a":1}"#)),
            ("metadata of `tasks/resubscribe`", || {
                ignored("tasks/resubscribe", r#"{"id":"t"}"#, r#""metadata":{"a":1}"#);
            }),
            ("metadata of calls about push configs", || {
                for method in ["get", "list", "delete"] {
                    let params = r#"{"id":"t","pushNotificationConfigId":"c"}"#;
                    ignored(&format!("tasks/pushNotificationConfig/{method}"), params, r#""metadata":{"a":1}"#);
                }
            }),
            ("the second and later schemes of a webhook", || {
                let config = r#"{"taskId":"t","pushNotificationConfig":{"url":"https://h.example/","authentication":{"schemes":["Bearer","Basic"],"credentials":"c"}}}"#;
                assert_eq!(scheme(&decode("tasks/pushNotificationConfig/set", config).unwrap().request), "Bearer");
            }),
            ("`historyLength` 0", || assert_eq!(history_length(r#"{"id":"t","historyLength":0}"#), None)),
        ],
    );
}

fn scheme(request: &Request) -> &str {
    match request {
        Request::CreatePushConfig(config) => &config.authentication.as_ref().unwrap().scheme,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_1_0_says_and_0_3_cannot_over_http() {
    hold(
        "1.0-and-0.3-over-http-json.md",
        "1.0 has",
        &[
            ("file name and media type of a text part", || {
                assert_eq!(over_http(named(Part::text("t"))), Part::text("t"));
            }),
            ("file name and media type of a data part", || {
                assert_eq!(over_http(named(Part::json(json("{}")))), Part::json(json("{}")));
            }),
            ("empty metadata beside data that is no object", || {
                assert_eq!(over_http(with_empty_metadata()), Part::json(json("[1]")));
            }),
            ("the tasks a message refers to", || {
                let plain = Message::new(Role::User, "m", vec![Part::text("t")]);
                let message = Message { reference_task_ids: vec!["t-1".into()], ..plain.clone() };
                let written = encoded(|out| rest::encode_message(&message, out));
                let read = sent_over_http(&format!(r#"{{"message":{written}}}"#)).message;
                assert_eq!(read, plain);
            }),
        ],
    );
}

#[test]
fn what_0_3_says_and_1_0_cannot_over_http() {
    hold(
        "1.0-and-0.3-over-http-json.md",
        "0.3 has",
        &[
            ("the second and later schemes of a webhook", || {
                let body = r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"t"}]},"configuration":{"pushNotification":{"url":"https://h.example/","authentication":{"schemes":["Bearer","Basic"]}}}}"#;
                let hook = sent_over_http(body).push_config.unwrap();
                assert_eq!(hook.authentication.unwrap().scheme, "Bearer");
            }),
            ("`historyLength` 0", || assert_eq!(rest::decode_history_length("0").unwrap(), None)),
        ],
    );
}
