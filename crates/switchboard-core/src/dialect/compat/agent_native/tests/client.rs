//! The side of a client: a server of the dialect reads what it writes, and it reads what such a server writes, up to the losses
//! in the head of the dialect.

use std::sync::Arc;

use proptest::option;
use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::call::{Reply, Request};
use crate::dialect::codes;
use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{
    card, every_refusal, params_of, read_broken_replies, request, result_of, send, sendable, sent_over_rpc, task,
    update,
};
use crate::error::ProtocolError;
use crate::model::{
    AgentCapabilities, AgentCard, AgentInterface, Artifact, Dialect, Message, Part, PartContent, SecurityRequirement,
    SecurityScheme, StatusUpdate, Task, TaskState, TaskView, Update,
};

use super::super::task::{answer, is_told_by_answer};
use super::super::{encode_card, encode_rpc_error, encode_task, encode_update, no_streaming};
use super::{decode, encoded, golden};

const HERE: Dialect = Dialect::AgentNative;

fn lose_of_parts(parts: &mut [Part]) {
    for part in parts {
        if matches!(part.content, PartContent::Text(_) | PartContent::Data(_)) {
            part.change_details(|details| (details.filename, details.media_type) = (None, None));
        }
    }
}

/// A message without what this dialect loses, under the name that a reader gives it.
fn message_without_losses(mut message: Message, name: String) -> Message {
    lose_of_parts(&mut message.parts);
    (message.context_id, message.task_id) = (None, None);
    message.extensions.clear();
    message.reference_task_ids.clear();
    Message { message_id: name.into(), ..message }
}

fn state_without_losses(state: TaskState) -> TaskState {
    match state {
        TaskState::Rejected => TaskState::Failed,
        TaskState::AuthRequired => TaskState::InputRequired,
        state => state,
    }
}

fn task_without_losses(task: &Task) -> Task {
    let id = &task.id;
    let artifact = |(place, artifact): (usize, &Arc<Artifact>)| {
        let mut artifact = Artifact::clone(artifact);
        lose_of_parts(&mut artifact.parts);
        artifact.change_details(|details| details.extensions.clear());
        artifact.artifact_id = format!("artifact-{}", place + 1).into();
        Arc::new(artifact)
    };
    let message = |(place, message): (usize, &Arc<Message>)| {
        Arc::new(message_without_losses(Message::clone(message), format!("{id}-{}", place + 1)))
    };
    let said = answer(task).map(|said| message_without_losses(Message::clone(&said), format!("{id}-status")));
    let mut read = task.clone();
    read.artifacts =
        task.artifacts.iter().filter(|made| !is_told_by_answer(task, made)).enumerate().map(artifact).collect();
    read.history = task.history.iter().enumerate().map(message).collect();
    read.status.message = said.map(Arc::new);
    read.status.state = state_without_losses(task.state());
    Task { dialect: HERE, ..read }
}

fn request_without_losses(mut request: Request) -> Request {
    match &mut request {
        Request::SendMessage(send) | Request::SendStreamingMessage(send) => {
            let context_id = send.message.context_id.clone();
            send.message = message_without_losses(send.message.clone(), String::new());
            send.message.context_id = context_id;
            send.accepted_output_modes.clear();
            send.history_length = None;
        }
        Request::GetTask { history_length, .. } => *history_length = None,
        Request::CancelTask { metadata, .. } => *metadata = None,
        _ => {}
    }
    request
}

/// Bearer tokens are kept, under the names that the dialect has for them.
fn card_without_losses(card: AgentCard, url: &str) -> AgentCard {
    let is_jwt = |wanted: bool| {
        card.security_schemes.iter().any(|(_, scheme)| match scheme {
            SecurityScheme::Http { scheme, bearer_format, .. } if scheme.eq_ignore_ascii_case("bearer") => {
                bearer_format.as_deref().is_some_and(|format| format.eq_ignore_ascii_case("jwt")) == wanted
            }
            _ => false,
        })
    };
    let known = [("jwtBearer", is_jwt(true), Some("JWT")), ("apiKey", is_jwt(false), None)];
    let known = || known.into_iter().filter(|(_, is_there, _)| *is_there);
    let scheme = |(name, _, format): (&str, bool, Option<&str>)| {
        let (scheme, bearer_format) = ("bearer".to_owned(), format.map(str::to_owned));
        (name.to_owned(), SecurityScheme::Http { description: None, scheme, bearer_format })
    };
    let mut skills = card.skills;
    for skill in &mut skills {
        skill.input_modes.clear();
        skill.output_modes.clear();
        skill.security_requirements.clear();
    }
    AgentCard {
        name: card.name,
        description: card.description,
        version: card.version,
        supported_interfaces: vec![AgentInterface {
            url: url.to_owned(),
            protocol_binding: "JSONRPC".to_owned(),
            protocol_version: "0.3".to_owned(),
            tenant: None,
        }],
        capabilities: AgentCapabilities {
            streaming: Some(card.capabilities.streaming == Some(true)),
            push_notifications: Some(false),
            ..AgentCapabilities::default()
        },
        security_requirements: known()
            .map(|(name, ..)| SecurityRequirement { schemes: vec![(name.to_owned(), Vec::new())] })
            .collect(),
        security_schemes: known().map(scheme).collect(),
        skills,
        ..AgentCard::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_call_is_read_as_it_was_written(request in request(), key in option::of("[a-z]{1,9}")) {
        let request = sendable(request);
        match sent_over_rpc(HERE, &request, key.as_deref()) {
            Ok((method, params)) => {
                let call = decode(method, &params).unwrap();
                let is_send = matches!(request, Request::SendMessage(_) | Request::SendStreamingMessage(_));
                prop_assert_eq!(call.idempotency_key, key.filter(|_| is_send));
                prop_assert_eq!(call.request, request_without_losses(request));
            }
            Err(error) => {
                let why = format!("agent-native has no call for {}", request.operation());
                prop_assert_eq!(error, ProtocolError::unsupported(why));
            }
        }
    }

    #[test]
    fn a_send_is_read_as_it_was_written(send in send()) {
        let request = sendable(Request::SendMessage(send.into()));
        let (method, params) = sent_over_rpc(HERE, &request, None).unwrap();
        prop_assert_eq!(decode(method, &params).unwrap().request, request_without_losses(request));
    }

    #[test]
    fn a_task_is_read_as_it_was_written(task in task()) {
        let text = encoded(|out| encode_task(&TaskView::whole(task.clone().into()), out));
        let get = Request::GetTask { id: task.id.clone(), history_length: None };
        let Ok(Reply::Task(read)) = HERE.read_reply(&get, text.as_bytes(), &DecodeLimits::default()) else {
            panic!("{text}");
        };
        prop_assert_eq!(&*read.task, &task_without_losses(&task));
        // What was read says the same again.
        prop_assert_eq!(encoded(|out| encode_task(&read, out)), text);
    }

    #[test]
    fn an_update_is_read_as_it_was_written(update in update()) {
        let expected = match update.clone() {
            Update::Task(view) => Update::Task(TaskView::whole(task_without_losses(&view.task).into())),
            Update::Status(update) => {
                let name = format!("{}-status", update.task_id);
                let mut status = update.status.clone();
                status.state = state_without_losses(status.state);
                status.message =
                    status.message.map(|said| Arc::new(message_without_losses(Message::clone(&said), name)));
                Update::Status(StatusUpdate { status, metadata: None, ..update })
            }
            // A stream goes through a whole_task_stream, which makes tasks of artifacts; a direct reply is a task.
            Update::Artifact(_) | Update::Message(_) => return Ok(()),
        };
        let text = encoded(|out| encode_update(&update, out));
        prop_assert_eq!(HERE.read_update(text.as_bytes(), &DecodeLimits::default()).unwrap(), expected);
    }

    #[test]
    fn a_card_is_read_as_it_was_written(card in card(&["1.0", "0.3"])) {
        let url = "https://a.example/_agent-native/a2a";
        let text = encoded(|out| encode_card(&card, url, out));
        let read = HERE.read_card(text.as_bytes(), &DecodeLimits::default()).unwrap();
        prop_assert_eq!(read, card_without_losses(card, url));
    }
}

#[test]
fn what_the_original_sends_is_written_to_the_byte() {
    for (name, method) in [
        ("request-send", "message/send"),
        ("request-send-async", "message/send"),
        ("request-call", "message/send"),
        ("request-stream", "message/stream"),
        ("request-get", "tasks/get"),
    ] {
        let params = params_of(&golden(name));
        let call = decode(method, &params).unwrap();
        let written = sent_over_rpc(HERE, &call.request, call.idempotency_key.as_deref());
        assert_eq!(written, Ok((method, params)), "{name}");
    }
}

#[test]
fn what_the_original_answers_is_read_and_says_the_same_again() {
    for name in ["reply-done", "reply-working"] {
        let text = result_of(&golden(name));
        let Ok(Update::Task(read)) = HERE.read_update(text.as_bytes(), &DecodeLimits::default()) else {
            panic!("{name}");
        };
        assert_eq!(encoded(|out| encode_task(&read, out)), text);
    }
    let processing = br#"{"id":"t","status":{"state":"processing"},"history":[],"artifacts":[]}"#;
    let Ok(Update::Task(read)) = HERE.read_update(processing, &DecodeLimits::default()) else { panic!() };
    assert_eq!(read.task.state(), TaskState::Working);
}

#[test]
fn what_a_send_cannot_say_is_refused() {
    let Request::SendMessage(mut send) = decode("message/send", &params_of(&golden("request-send"))).unwrap().request
    else {
        panic!("it is a send");
    };
    send.message.task_id = Some("t".into());
    let refused = sent_over_rpc(HERE, &Request::SendMessage(send), None).unwrap_err();
    assert_eq!(refused, ProtocolError::invalid("message.taskId", "every message begins a task in agent-native"));
}

#[test]
fn a_refusal_is_read_for_what_it_is() {
    for error in every_refusal() {
        let http = match &error {
            ProtocolError::Unauthenticated { .. } => 401,
            ProtocolError::PermissionDenied { .. } => 403,
            ProtocolError::Unavailable { .. } => 503,
            _ => 200,
        };
        let expected = match &error {
            ProtocolError::ParseError { .. } => "INVALID_REQUEST",
            error => codes::of(error).reason,
        };
        let text = encoded(|out| encode_rpc_error(&error, "7", out));
        let read = HERE.read_error(text.as_bytes(), Some(http)).unwrap().protocol_error(Some(http)).unwrap();
        assert_eq!(codes::of(&read).reason, expected, "{text}");
    }
    let read = |text: &str, http| HERE.read_error(text.as_bytes(), http).and_then(|read| read.protocol_error(http));
    let invalid =
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: message.role: is odd"}}"#;
    assert_eq!(read(invalid, None), Some(ProtocolError::invalid("message.role", "is odd")));
    let streaming = encoded(|out| encode_rpc_error(&no_streaming(), "1", out));
    let expected = ProtocolError::MethodNotFound { method: "message/stream".to_owned(), hint: None };
    assert_eq!(read(&streaming, None), Some(expected));
    let plain = read(r#"{"error":"Method not allowed"}"#, Some(405));
    assert_eq!(plain, Some(ProtocolError::InvalidRequest { reason: "Method not allowed".to_owned() }));
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(200)), None);
}

#[test]
fn what_is_wrong_with_a_reply_is_named() {
    for (text, field) in [
        (r#"{"status":{"state":"working"}}"#, "id"),
        (r#"{"id":"t"}"#, "status"),
        (r#"{"id":"t","status":{"state":"done"}}"#, "status.state"),
        (r#"{"id":"t","status":{"state":"working","message":{"parts":[]}}}"#, "status.message.role"),
        (
            r#"{"id":"t","status":{"state":"working"},"history":[{"role":"user","parts":[{"type":"text"}]}]}"#,
            "history[0].parts[0].text",
        ),
        (r#"{"id":"t","status":{"state":"working"},"artifacts":[{}]}"#, "artifacts[0].parts"),
        (
            r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"type":"text","text":5}]}]}"#,
            "artifacts[0].parts[0].text",
        ),
    ] {
        match HERE.read_update(text.as_bytes(), &DecodeLimits::default()) {
            Err(ProtocolError::InvalidParams { violations }) => assert_eq!(violations[0].field, field, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let limits = DecodeLimits { parts_max: 1, ..DecodeLimits::default() };
    let text = r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}"#;
    let refused = HERE.read_update(text.as_bytes(), &limits).unwrap_err();
    assert_eq!(refused, ProtocolError::invalid("artifacts[0].parts", "has 2 parts; the limit is 1"));
}

#[test]
fn no_reply_makes_the_reader_panic() {
    let mut samples: Vec<String> = ["reply-done", "reply-working"].map(|name| result_of(&golden(name))).into();
    samples.extend(["card", "card-open", "reply-done"].map(golden));
    read_broken_replies(HERE, &samples, 0xa6e4_7a71_5eed_0002);
}
