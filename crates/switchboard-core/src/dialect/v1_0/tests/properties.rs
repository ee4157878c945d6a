//! What holds for every message and not only for the examples.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::model::{Json, Message, Part, PartContent, Role};

use super::super::encode_message;
use super::{encoded, sent};

fn id() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9 äß\"\\\\/🙂-]{1,40}"
}

fn line() -> impl Strategy<Value = String> {
    "[a-z:/\"\\\\ü.+-]{1,30}"
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<String>().prop_map(|value| serde_json::to_string(&value).unwrap()),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(", "))), object(inner)]
    })
}

fn object(value: impl Strategy<Value = String> + 'static) -> BoxedStrategy<String> {
    let members = vec((any::<String>(), value), 0..5).prop_map(|members| {
        let members: std::collections::BTreeMap<_, _> = members.into_iter().collect();
        let write = |(key, value): (&String, &String)| format!("{}:{value}", serde_json::to_string(key).unwrap());
        format!("{{{}}}", members.iter().map(write).collect::<Vec<_>>().join(","))
    });
    members.boxed()
}

fn metadata() -> impl Strategy<Value = Option<Json>> {
    option::of(object(json()).prop_map(Json::from_trusted))
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        any::<String>().prop_map(PartContent::Text),
        any::<Vec<u8>>().prop_map(|bytes| PartContent::Raw(Bytes::from(bytes))),
        line().prop_map(PartContent::Url),
        json().prop_map(|text| PartContent::Data(Json::from_trusted(text))),
    ];
    (content, metadata(), option::of(id()), option::of(line()))
        .prop_map(|(content, metadata, filename, media_type)| Part { content, metadata, filename, media_type })
}

fn message() -> impl Strategy<Value = Message> {
    let ids = (id(), option::of(id()), option::of(id()), vec(id(), 0..3));
    let rest = (any::<bool>(), vec(part(), 1..4), metadata(), vec(line(), 0..3));
    (ids, rest).prop_map(|((message_id, context_id, task_id, referenced), (agent, parts, metadata, extensions))| {
        Message {
            message_id: message_id.into(),
            context_id: context_id.map(Into::into),
            task_id: task_id.map(Into::into),
            role: if agent { Role::Agent } else { Role::User },
            parts,
            metadata,
            extensions,
            reference_task_ids: referenced.into_iter().map(Into::into).collect(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_message_survives_being_encoded_and_decoded(message in message()) {
        let written = encoded(|out| encode_message(&message, out));
        let read = sent(&format!(r#"{{"message":{written}}}"#));
        prop_assert_eq!(read.message, message);
    }

    #[test]
    fn white_space_between_tokens_changes_nothing(message in message()) {
        let written = encoded(|out| encode_message(&message, out));
        let mut spaced = String::new();
        let mut in_string = false;
        let mut escaped = false;
        for c in written.chars() {
            match c {
                '"' if !escaped => in_string = !in_string,
                '{' | '}' | '[' | ']' | ',' | ':' if !in_string => {
                    spaced.push_str(" \r\n\t");
                    spaced.push(c);
                    spaced.push('\n');
                    continue;
                }
                _ => {}
            }
            escaped = in_string && c == '\\' && !escaped;
            spaced.push(c);
        }
        let read = sent(&format!(r#"{{"message":{spaced}}}"#)).message;
        let rewritten = encoded(|out| encode_message(&read, out));
        // What comes out fits on one line, whatever came in.
        prop_assert_eq!(rewritten.contains(['\n', '\r']), false);
        let again = sent(&format!(r#"{{"message":{rewritten}}}"#)).message;
        prop_assert_eq!(again.message_id, message.message_id);
        prop_assert_eq!(again.parts.len(), message.parts.len());
    }
}
