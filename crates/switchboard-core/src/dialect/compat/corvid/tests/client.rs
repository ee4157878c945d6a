//! The side of a client: a server of the dialect reads what it writes, and it reads what such a server writes, up to the losses
//! in the head of the dialect.

use std::sync::Arc;

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::call::{Reply, Request, SendMessage};
use crate::dialect::compat::corvid::{
    NO_AGENT, TIMEOUT_MS_DEFAULT, TOO_DEEP, encode_card, encode_http_error, encode_task, encode_text,
};
use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{card, every_refusal, read_broken_replies, request, send, sendable, task};
use crate::dialect::{OutgoingCall, Transport, WrittenCall, codes};
use crate::error::ProtocolError;
use crate::model::{
    AgentCapabilities, AgentCard, AgentInterface, Dialect, Json, Message, Part, Role, SecurityRequirement,
    SecurityScheme, Task, TaskState, TaskView, conversation, from_conversation, in_words,
};

use super::{Sent, decode, encoded, golden};

const HERE: Dialect = Dialect::Corvid;

fn written(request: &Request) -> Result<(&'static str, String, String), ProtocolError> {
    let call = OutgoingCall { request, over: Transport::Http, tenant: None, idempotency_key: None };
    match HERE.write_call(&call)? {
        WrittenCall::Http { verb, path, body } => Ok((verb, path, String::from_utf8(body).unwrap())),
        other => panic!("{other:?}"),
    }
}

/// The texts of some parts, as the parts that they are read as.
fn in_texts(message: &Message) -> Vec<Part> {
    message.parts.iter().filter_map(in_words).map(Part::text).collect()
}

fn task_without_losses(task: &Task) -> Task {
    let told = conversation(&TaskView::whole(task.clone().into()));
    let told = told.iter().map(|message| (message.role, in_texts(message))).filter(|(_, parts)| !parts.is_empty());
    let message = |(place, (role, parts)): (usize, (Role, Vec<Part>))| {
        Message::new(role, format!("{}-{}", task.id, place + 1), parts)
    };
    let state = match task.state() {
        TaskState::Canceled | TaskState::Rejected => TaskState::Failed,
        TaskState::InputRequired | TaskState::AuthRequired => TaskState::Working,
        state => state,
    };
    let (history, message) = from_conversation(told.enumerate().map(message).collect(), &[], state);
    let mut read = task.clone();
    read.status.state = state;
    (read.status.message, read.history) = (message, history);
    Task { artifacts: Vec::new(), metadata: None, dialect: HERE, ..read }
}

fn send_without_losses(send: &SendMessage) -> Sent {
    let words: Vec<&str> = send.message.parts.iter().filter_map(in_words).collect();
    Sent { message: words.join("\n"), skill: None, timeout_ms: None, depth: 1, source_agent: None }
}

fn card_without_losses(card: AgentCard, url: &str) -> AgentCard {
    let is_bearer = |scheme: &SecurityScheme| matches!(scheme, SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer"));
    let has_bearer = card.security_schemes.iter().any(|(_, scheme)| is_bearer(scheme));
    let bearer = SecurityScheme::Http { description: None, scheme: "Bearer".to_owned(), bearer_format: None };
    let texts = |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
    let mut skills = card.skills;
    for skill in &mut skills {
        if skill.description.is_empty() {
            skill.description = format!("Tool: {}", skill.id);
        }
        if skill.tags.is_empty() {
            skill.tags = texts(&["general"]);
        }
        skill.input_modes = texts(&["application/json"]);
        skill.output_modes = texts(&["application/json", "text/plain"]);
        skill.security_requirements.clear();
    }
    AgentCard {
        name: card.name,
        description: card.description,
        version: card.version,
        provider: card.provider,
        documentation_url: card.documentation_url,
        supported_interfaces: vec![AgentInterface {
            url: url.to_owned(),
            protocol_binding: "HTTP+JSON".to_owned(),
            protocol_version: "0.2".to_owned(),
            tenant: None,
        }],
        capabilities: AgentCapabilities {
            streaming: Some(card.capabilities.streaming == Some(true)),
            push_notifications: Some(false),
            ..AgentCapabilities::default()
        },
        security_schemes: has_bearer.then(|| ("bearer".to_owned(), bearer)).into_iter().collect(),
        security_requirements: has_bearer
            .then(|| SecurityRequirement { schemes: vec![("bearer".to_owned(), Vec::new())] })
            .into_iter()
            .collect(),
        default_input_modes: texts(&["text/plain", "application/json"]),
        default_output_modes: texts(&["text/plain", "application/json"]),
        skills,
        ..AgentCard::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_call_is_read_as_it_was_written(request in request()) {
        let request = sendable(request);
        match (written(&request), &request) {
            (Ok((verb, path, body)), Request::SendMessage(send)) => {
                prop_assert_eq!((verb, path.as_str()), ("POST", "/a2a/tasks/send"));
                prop_assert_eq!(decode(&body).unwrap(), send_without_losses(send));
            }
            (Ok((verb, path, body)), Request::GetTask { id, .. }) => {
                prop_assert_eq!((verb, body.as_str()), ("GET", ""));
                let segment = path.strip_prefix("/a2a/tasks/").unwrap();
                prop_assert_eq!(segment.contains('/'), false);
                prop_assert_eq!(unescaped(segment), id.as_str());
            }
            (Err(ProtocolError::InvalidParams { violations }), Request::SendMessage(send)) => {
                prop_assert_eq!(violations[0].field.as_str(), "message.parts");
                prop_assert_eq!(send_without_losses(send).message, "");
            }
            (Err(error), request) => {
                let why = format!("corvid has no call for {}", request.operation());
                prop_assert_eq!(error, ProtocolError::unsupported(why));
            }
            (Ok(written), request) => panic!("{request:?}: {written:?}"),
        }
    }

    /// What the metadata of a send says about how it is to be done comes back under the same names.
    #[test]
    fn a_send_comes_back_with_its_conditions(send in send(), seconds in 1..=600u32, depth in 1..=10u32, skill in "[a-z]{1,9}") {
        let metadata =
            format!(r#"{{"switchboard.runTimeoutSeconds":{seconds},"skill":"{skill}","depth":{depth},"sourceAgent":"rook"}}"#);
        let mut send = SendMessage { push_config: None, metadata: Some(Json::from_trusted(metadata)), ..send };
        send.message = Message::new(Role::User, "", vec![Part::text("hello")]);
        let expected = SendMessage {
            accepted_output_modes: Vec::new(),
            history_length: None,
            return_immediately: true,
            ..send.clone()
        };
        let (_, _, body) = written(&Request::SendMessage(send.into())).unwrap();
        prop_assert_eq!(decode(&body).unwrap().into_send(TIMEOUT_MS_DEFAULT), expected);
    }

    #[test]
    fn a_task_is_read_as_it_was_written(task in task()) {
        let text = encoded(|out| encode_task(&TaskView::whole(task.clone().into()), out));
        let get = Request::GetTask { id: task.id.clone(), history_length: None };
        let Ok(Reply::Task(read)) = HERE.read_reply(&get, text.as_bytes(), &DecodeLimits::default()) else {
            panic!("{text}");
        };
        prop_assert_eq!(&*read.task, &task_without_losses(&task));
        // What was read says the same again. A task that was begun here is never shown as submitted.
        if task.state() != TaskState::Submitted {
            prop_assert_eq!(encoded(|out| encode_task(&read, out)), text);
        }
    }

    #[test]
    fn a_card_is_read_as_it_was_written(card in card(&["1.0", "0.3"])) {
        let url = "https://a.example/agents/echo";
        let text = encoded(|out| encode_card(&card, "https://a.example", &format!("{url}/a2a/tasks/send"), out));
        let read = HERE.read_card(text.as_bytes(), &DecodeLimits::default()).unwrap();
        prop_assert_eq!(read, card_without_losses(card, url));
    }
}

fn unescaped(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped =
            (*first == b'%').then(|| u8::from_str_radix(std::str::from_utf8(&tail[..2]).unwrap(), 16).unwrap());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn what_the_original_sends_is_written_to_the_byte() {
    let body = golden("request-send");
    // The engine counts whole seconds.
    let expected = body.trim_end().replace("5500", "6000");
    let send = decode(&body).unwrap().into_send(TIMEOUT_MS_DEFAULT);
    assert_eq!(written(&Request::SendMessage(send.into())), Ok(("POST", "/a2a/tasks/send".to_owned(), expected)));
}

#[test]
fn what_a_send_cannot_say_is_refused() {
    let with = |metadata: &str| {
        let send = Sent { message: "x".to_owned(), skill: None, timeout_ms: None, depth: 1, source_agent: None };
        let send = SendMessage { metadata: Some(Json::from_trusted(metadata)), ..send.into_send(1000) };
        written(&Request::SendMessage(send.into())).map(|(.., body)| body)
    };
    for (metadata, field) in [
        (r#"{"depth":11}"#, "metadata.depth"),
        (r#"{"switchboard.runTimeoutSeconds":601}"#, "metadata.switchboard.runTimeoutSeconds"),
    ] {
        match with(metadata) {
            Err(ProtocolError::InvalidParams { violations }) => assert_eq!(violations[0].field, field),
            other => panic!("{metadata}: {other:?}"),
        }
    }
    // A value of another type was not meant for this dialect.
    assert_eq!(with(r#"{"skill":{"a":1},"sourceAgent":5}"#), Ok(r#"{"params":{"message":"x"}}"#.to_owned()));
    let call = Request::GetTask { id: "t".into(), history_length: None };
    let call = OutgoingCall { request: &call, over: Transport::JsonRpc, tenant: None, idempotency_key: None };
    let refused = HERE.write_call(&call).unwrap_err();
    assert_eq!(refused, ProtocolError::unsupported("corvid travels over HTTP, not over JSON-RPC"));
}

#[test]
fn the_last_message_of_the_agent_is_the_answer() {
    for (name, answer) in
        [("reply-done", Some("Hi there")), ("reply-timed-out", Some("Task timed out")), ("reply-working", None)]
    {
        let text = golden(name);
        let task = super::super::read_task(text.as_bytes(), &DecodeLimits::default()).unwrap();
        assert_eq!(task.status.message.as_ref().map(|said| said.text()).as_deref(), answer, "{name}");
        assert_eq!(encoded(|out| encode_task(&TaskView::whole(Arc::new(task)), out)), text.trim_end());
    }
}

#[test]
fn a_refusal_is_read_for_what_it_is() {
    for error in every_refusal() {
        let http = codes::of(&error).http;
        // The status is all that tells one from another, but for parameters that are named.
        let expected = match &error {
            ProtocolError::InvalidParams { .. } => "INVALID_PARAMS",
            _ => codes::reason_of_http(http).unwrap(),
        };
        let text = encoded(|out| encode_http_error(&error, out));
        let read = HERE.read_error(text.as_bytes(), Some(http)).unwrap().protocol_error(Some(http)).unwrap();
        assert_eq!(codes::of(&read).reason, expected, "{text}");
    }
    for (text, http) in [(TOO_DEEP, 400), (NO_AGENT, 404)] {
        let body = encoded(|out| encode_text(text, out));
        let read = HERE.read_error(body.as_bytes(), Some(http)).unwrap().protocol_error(Some(http));
        assert_eq!(read, Some(ProtocolError::unsupported(text)));
    }
    let named = HERE.read_error(br#"{"error":"message: is required"}"#, Some(400)).unwrap().protocol_error(Some(400));
    assert_eq!(named, Some(ProtocolError::invalid("message", "is required")));
}

#[test]
fn what_is_wrong_with_a_reply_is_named() {
    for (text, field) in [
        (r#"{"state":"working"}"#, "id"),
        (r#"{"id":"t"}"#, "state"),
        (r#"{"id":"t","state":"done"}"#, "state"),
        (r#"{"id":"t","state":"working","messages":[{"role":"user"}]}"#, "messages[0].parts"),
        (
            r#"{"id":"t","state":"working","messages":[{"role":"user","parts":[{"type":"image"}]}]}"#,
            "messages[0].parts[0].type",
        ),
        (r#"{"id":"t","state":"working","updatedAt":"yesterday"}"#, "updatedAt"),
    ] {
        match HERE.read_update(text.as_bytes(), &DecodeLimits::default()) {
            Err(ProtocolError::InvalidParams { violations }) => assert_eq!(violations[0].field, field, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let refused = HERE.read_card(br#"{"description":"x"}"#, &DecodeLimits::default()).unwrap_err();
    let ProtocolError::InvalidParams { violations } = refused else { panic!("{refused:?}") };
    assert_eq!(violations.iter().map(|wrong| wrong.field.as_str()).collect::<Vec<_>>(), ["name", "version"]);
    let limits = DecodeLimits { parts_max: 1, ..DecodeLimits::default() };
    let text = r#"{"id":"t","state":"working","messages":[{"role":"user","parts":[{"text":"a"},{"text":"b"}]}]}"#;
    let refused = HERE.read_update(text.as_bytes(), &limits).unwrap_err();
    assert_eq!(refused, ProtocolError::invalid("messages[0].parts", "has 2 parts; the limit is 1"));
}

#[test]
fn no_reply_makes_the_reader_panic() {
    let samples = ["reply-done", "reply-working", "card"].map(golden);
    read_broken_replies(HERE, &samples, 0xc0_41d0_15ee_d002);
}
