//! The side of a client: a server of the dialect reads what it writes, and it reads what such a server writes, up to the losses
//! in the head of the dialect.

use std::sync::Arc;

use proptest::option;
use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::call::{Reply, Request, SendMessage};
use crate::dialect::codes;
use crate::dialect::compat::nexus::{Call, encode_card, encode_rpc_error, encode_task};
use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{
    card, every_refusal, params_of, read_broken_replies, request, result_of, send, sendable, sent_over_rpc, task,
};
use crate::error::ProtocolError;
use crate::model::{
    AgentCapabilities, AgentCard, AgentInterface, Artifact, ContextId, Dialect, Message, Role, SecurityRequirement,
    SecurityScheme, Task, TaskState, TaskView, Timestamp, Update, conversation, from_conversation,
};

use super::{decode, encoded, golden, without_losses};

const HERE: Dialect = Dialect::Nexus;

fn task_without_losses(task: &Task) -> Task {
    let id = &task.id;
    let artifact = |(place, artifact): (usize, &Arc<Artifact>)| {
        let parts = without_losses(Message::new(Role::Agent, "", artifact.parts.clone())).parts;
        let mut read = artifact.copy_with_parts(parts);
        read.artifact_id = format!("artifact-{}", place + 1).into();
        read.change_details(|details| {
            details.metadata = None;
            details.extensions.clear();
        });
        Arc::new(read)
    };
    let artifacts: Vec<_> = task.artifacts.iter().enumerate().map(artifact).collect();
    // What is told is the conversation; what is read of it is its parts again.
    let told = conversation(&TaskView::whole(task.clone().into()));
    let message = |(place, message): (usize, &Arc<Message>)| Message {
        message_id: format!("{id}-{}", place + 1).into(),
        ..without_losses(Message::clone(message))
    };
    let state = match task.state() {
        TaskState::Rejected => TaskState::Failed,
        TaskState::AuthRequired => TaskState::InputRequired,
        state => state,
    };
    let (history, message) = from_conversation(told.iter().enumerate().map(message).collect(), &artifacts, state);
    let mut read = task.clone();
    read.status.state = state;
    (read.status.message, read.history, read.artifacts) = (message, history, artifacts);
    (read.status.timestamp, read.created_at) = (Timestamp::default(), Timestamp::default());
    Task { context_id: ContextId::default(), metadata: None, dialect: HERE, ..read }
}

/// What is asked, without what this dialect loses, and the id that is written for the task.
fn call_without_losses(request: Request, key: Option<&str>) -> Call {
    let send = |send: Box<SendMessage>, is_streamed| {
        let id = send.message.task_id.clone().or(send.open_as.clone()).or(key.map(Into::into));
        let plain = SendMessage {
            message: without_losses(send.message),
            open_as: None,
            accepted_output_modes: Vec::new(),
            push_config: None,
            history_length: None,
            return_immediately: false,
            metadata: None,
        };
        Call::Send { send: plain.into(), id, is_streamed }
    };
    match request {
        Request::SendMessage(message) => send(message, false),
        Request::SendStreamingMessage(message) => send(message, true),
        Request::GetTask { id, .. } => Call::Get(id),
        Request::CancelTask { id, .. } => Call::Cancel(id),
        Request::SubscribeToTask { id } => Call::Follow(id),
        other => panic!("{other:?}"),
    }
}

fn card_without_losses(card: AgentCard, url: &str) -> AgentCard {
    let is_bearer = |scheme: &SecurityScheme| matches!(scheme, SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer"));
    let has_bearer = card.security_schemes.iter().any(|(_, scheme)| is_bearer(scheme));
    let bearer = SecurityScheme::Http { description: None, scheme: "bearer".to_owned(), bearer_format: None };
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
                prop_assert_eq!(decode(method, &params).unwrap(), call_without_losses(request, key.as_deref()));
            }
            Err(error) => {
                let why = format!("NEXUS has no call for {}", request.operation());
                prop_assert_eq!(error, ProtocolError::unsupported(why));
            }
        }
    }

    #[test]
    fn a_send_is_read_as_it_was_written(send in send()) {
        let request = Request::SendMessage(SendMessage { push_config: None, ..send }.into());
        let (method, params) = sent_over_rpc(HERE, &request, None).unwrap();
        prop_assert_eq!(decode(method, &params).unwrap(), call_without_losses(request, None));
    }

    #[test]
    fn a_task_is_read_as_it_was_written(task in task()) {
        // What a status says is the agent's.
        let mut task = task;
        task.status.message.iter_mut().for_each(|said| Arc::make_mut(said).role = Role::Agent);
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
    fn a_card_is_read_as_it_was_written(card in card(&["1.0", "0.3"])) {
        let url = "https://a.example/rpc";
        let text = encoded(|out| encode_card(&card, url, out));
        let read = HERE.read_card(text.as_bytes(), &DecodeLimits::default()).unwrap();
        prop_assert_eq!(read, card_without_losses(card, url));
    }
}

#[test]
fn what_the_gateway_sends_is_written_to_the_byte() {
    for name in ["request-send", "request-endpoint", "request-forward"] {
        let params = params_of(&golden(name));
        let Ok(Call::Send { mut send, id, .. }) = decode("message/send", &params) else { panic!("{name}") };
        send.open_as = id;
        let written = sent_over_rpc(HERE, &Request::SendMessage(send), None);
        assert_eq!(written, Ok(("message/send", params)), "{name}");
    }
}

#[test]
fn the_answer_is_in_the_artifacts_or_else_in_the_status() {
    let text = result_of(&golden("reply-done"));
    let Ok(Update::Task(read)) = HERE.read_update(text.as_bytes(), &DecodeLimits::default()) else { panic!() };
    assert_eq!(read.task.artifacts[0].text(), "Here is the summary...");
    assert_eq!((read.task.history.len(), &read.task.status.message), (1, &None));
    assert_eq!(encoded(|out| encode_task(&read, out)), text);
    let echo = r#"{"id":"t","status":"completed","messages":[{"role":"user","parts":[{"type":"text","data":"hi"}]},
        {"role":"agent","parts":[{"type":"text","data":"Echo: hi"}]}]}"#;
    let Ok(Update::Task(read)) = HERE.read_update(echo.as_bytes(), &DecodeLimits::default()) else { panic!() };
    assert_eq!(read.task.status.message.as_ref().unwrap().text(), "Echo: hi");
    assert_eq!(read.task.history.len(), 1);
}

#[test]
fn a_refusal_is_read_for_what_it_is() {
    for error in every_refusal() {
        // What has the code of wrong parameters and no text of its own is read as that.
        let expected = match &error {
            ProtocolError::PushConfigNotFound { .. }
            | ProtocolError::UnsupportedOperation { .. }
            | ProtocolError::ContentTypeNotSupported { .. } => "INVALID_PARAMS",
            error => codes::of(error).reason,
        };
        let text = encoded(|out| encode_rpc_error(&error, "7", out));
        let read = HERE.read_error(text.as_bytes(), Some(200)).unwrap().protocol_error(Some(200)).unwrap();
        assert_eq!(codes::of(&read).reason, expected, "{text}");
    }
    let read = |text: &str| HERE.read_error(text.as_bytes(), None).and_then(|read| read.protocol_error(None));
    assert_eq!(read(&golden("error-task")), Some(ProtocolError::TaskNotFound { id: "nobody".into() }));
    let unknown = ProtocolError::MethodNotFound { method: "unknown/method".to_owned(), hint: None };
    assert_eq!(read(&golden("error-method")), Some(unknown));
    let refused = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid Request: no method"}}"#;
    assert_eq!(read(refused), Some(ProtocolError::InvalidRequest { reason: "no method".to_owned() }));
}

#[test]
fn what_is_wrong_with_a_reply_is_named() {
    for (text, field) in [
        (r#"{"status":"working"}"#, "id"),
        (r#"{"id":"t"}"#, "status"),
        (r#"{"id":"t","status":"done"}"#, "status"),
        (r#"{"id":"t","status":{"state":"working"}}"#, "status"),
        (
            r#"{"id":"t","status":"working","messages":[{"role":"system","parts":[{"type":"text","data":"x"}]}]}"#,
            "messages[0].role",
        ),
        (
            r#"{"id":"t","status":"working","messages":[{"role":"user","parts":[{"type":"text"}]}]}"#,
            "messages[0].parts[0].data",
        ),
        (r#"{"id":"t","status":"working","artifacts":[{"name":"a"}]}"#, "artifacts[0].parts"),
    ] {
        match HERE.read_update(text.as_bytes(), &DecodeLimits::default()) {
            Err(ProtocolError::InvalidParams { violations }) => assert_eq!(violations[0].field, field, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let limits = DecodeLimits { parts_max: 1, ..DecodeLimits::default() };
    let text = r#"{"id":"t","status":"working","artifacts":[{"parts":[{"type":"text","data":"a"},{"type":"text","data":"b"}]}]}"#;
    let refused = HERE.read_update(text.as_bytes(), &limits).unwrap_err();
    assert_eq!(refused, ProtocolError::invalid("artifacts[0].parts", "has 2 parts; the limit is 1"));
}

#[test]
fn no_reply_makes_the_reader_panic() {
    let mut samples = vec![result_of(&golden("reply-done"))];
    samples.extend(["card", "error-task", "reply-done"].map(golden));
    read_broken_replies(HERE, &samples, 0x0e_c5a5_15ee_d002);
}
