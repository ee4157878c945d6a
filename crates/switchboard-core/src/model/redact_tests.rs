//! What is withheld from metadata, webhooks and messages, and what stays byte for byte.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::model::{AuthenticationInfo, JsonLimits, Role};

#[test]
fn withheld_members_go_and_the_rest_stays_to_the_letter() {
    let table = [
        (r#"{"a":1,"apiKey":"k","b":2}"#, r#"{"a":1,"b":2}"#),
        (r#"{"apiKey":"k"}"#, r"{}"),
        (r#"{ "apiKey" : "k" }"#, r"{ }"),
        (r#"{"a": 1.50 , "bearer":[1,{"x":"}"}] , "b":1e3 }"#, r#"{"a": 1.50 , "b":1e3 }"#),
        (r#"{"a":1,"apiKey":{"b":[2]},"bearer":null}"#, r#"{"a":1}"#),
        (r#"{"apiKey":1,"bearer":2,"a":3}"#, r#"{"a":3}"#),
        (r#"{"a":{"userEmail":"x@y","n":[{"googleToken":"g"},{"k":1}]}}"#, r#"{"a":{"n":[{},{"k":1}]}}"#),
        (r#"{"\u0061piKey":1,"a\"piKey":2}"#, r#"{"a\"piKey":2}"#),
        (r#"{"switchboard.runTimeoutSeconds":9,"switchboard":1}"#, r#"{"switchboard":1}"#),
        (r#"{"b":"\\","Authorization":"\"},","authorization":-1,"c":"é"}"#, r#"{"b":"\\","c":"é"}"#),
    ];
    for (text, kept) in table {
        assert_eq!(without_withheld(text).as_deref(), Some(kept), "{text}");
    }
}

#[test]
fn a_value_or_another_key_is_no_reason() {
    for text in [r"{}", r#"{"a":"apiKey"}"#, r#"["apiKey","bearer"]"#, r#"{"apikey":1,"x":{"API":"\"apiKey\":1"}}"#] {
        assert_eq!(without_withheld(text), None, "{text}");
    }
}

/// The same by way of a parsed value.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !is_withheld(key));
            kept.map(|(key, value)| (key.clone(), pruned(value))).collect()
        }
        Value::Array(items) => items.iter().map(pruned).collect(),
        scalar => scalar.clone(),
    }
}

fn values() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        prop::sample::select(WITHHELD_KEYS.to_vec()).prop_map(str::to_owned),
        Just("switchboard.x".to_owned()),
        "[a-c\"\\\\{}:,é]{0,3}",
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-c\"\\\\{}:, é]{0,4}".prop_map(Value::from),
        prop::sample::select(WITHHELD_KEYS.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn the_text_is_redacted_as_its_value_would_be(value in values(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let kept = without_withheld(&text);
        let expected = pruned(&value);
        prop_assert_eq!(kept.is_some(), expected != value);
        let kept = kept.unwrap_or(text);
        prop_assert!(Json::parse(&kept, JsonLimits::default()).is_ok());
        prop_assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), expected);
    }
}

#[test]
fn a_clean_message_is_not_copied() {
    let clean = Json::from_trusted(r#"{"trace":"abc"}"#);
    let message = Arc::new(Message {
        metadata: Some(clean.clone()),
        ..Message::new(Role::User, "m", vec![Part::text("hi").with_metadata(clean)])
    });
    assert!(Arc::ptr_eq(&redact_message(message.clone()), &message));
    assert!(redact_update(&Update::Message(message)).is_none());
}

#[test]
fn a_webhook_is_shown_without_its_secrets() {
    let authentication = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("c".to_owned()) };
    let config = PushConfig {
        id: "c".into(),
        task_id: "t".into(),
        url: "https://hooks.example/".to_owned(),
        token: Some("k".to_owned()),
        authentication: Some(authentication),
    };
    let shown = redact_push_config(config.clone());
    let scheme_only = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: None };
    assert!(shown == PushConfig { token: None, authentication: Some(scheme_only), ..config });
}
