//! The side of a client: a server of the dialect reads what it writes, and it reads what such a server writes, up to the losses
//! in the head of the dialect.

use std::sync::Arc;

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::call::{Reply, Request, SendMessage};
use crate::dialect::codes;
use crate::dialect::compat::selectools::as_received::split;
use crate::dialect::compat::selectools::{Call, encode_card, encode_rpc_error, encode_task, failure_name};
use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{
    card, every_refusal, params_of, read_broken_replies, request, result_of, send, sendable, sent_over_rpc, task,
};
use crate::error::ProtocolError;
use crate::model::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Artifact, Dialect, Message, Part, PartContent, Role,
    Task, TaskState, TaskView, Update,
};

use super::{decode_call, encoded, golden};

const HERE: Dialect = Dialect::Selectools;

/// Null is no data here: a part that holds it is kept as it stands.
fn without_null(parts: &mut [Part]) {
    for part in parts {
        if matches!(&part.content, PartContent::Data(data) if data.as_str() == "null") {
            part.content = PartContent::Text("null".to_owned());
        }
    }
}

fn task_without_null(mut task: Task) -> Task {
    task.history.iter_mut().for_each(|message| without_null(&mut Arc::make_mut(message).parts));
    task.artifacts.iter_mut().for_each(|artifact| without_null(&mut Arc::make_mut(artifact).parts));
    task.status.message.iter_mut().for_each(|message| without_null(&mut Arc::make_mut(message).parts));
    task
}

fn lose_of_parts(parts: &mut [Part]) {
    for part in parts {
        if matches!(part.content, PartContent::Text(_) | PartContent::Data(_)) {
            part.change_details(|details| (details.filename, details.media_type) = (None, None));
        }
    }
}

fn message_without_losses(mut message: Message) -> Message {
    lose_of_parts(&mut message.parts);
    (message.context_id, message.task_id) = (None, None);
    message.extensions.clear();
    message.reference_task_ids.clear();
    message
}

fn task_without_losses(task: &Task) -> Task {
    let state = match task.state() {
        TaskState::Rejected => TaskState::Failed,
        TaskState::AuthRequired => TaskState::InputRequired,
        state => state,
    };
    let said = task.status.message.as_deref();
    let message = match state {
        TaskState::Failed => {
            let id = said.map_or("", |said| said.message_id.as_str());
            let text = format!("Agent execution failed ({})", failure_name(said));
            Some(Message::new(Role::Agent, id, vec![Part::text(text)]))
        }
        TaskState::InputRequired => said.cloned().map(message_without_losses),
        _ => None,
    };
    let response = |artifact: &Arc<Artifact>| {
        let mut parts = artifact.parts.clone();
        lose_of_parts(&mut parts);
        Arc::new(Artifact::new(artifact.artifact_id.clone(), parts).with_name("response"))
    };
    let mut read = task.clone();
    read.artifacts = match (task.state(), task.artifacts.is_empty()) {
        (TaskState::Failed, _) => Vec::new(),
        (TaskState::Completed, true) => {
            vec![response(&Artifact::new(format!("{}-response", task.id), vec![Part::text("")]).into())]
        }
        _ => task.artifacts.iter().map(response).collect(),
    };
    read.history =
        task.history.iter().map(|message| Arc::new(message_without_losses(Message::clone(message)))).collect();
    read.status.state = state;
    read.status.message = message.map(Arc::new);
    Task { metadata: None, dialect: HERE, ..read }
}

fn send_without_losses(send: SendMessage) -> SendMessage {
    let context_id = send.message.context_id.clone();
    SendMessage {
        message: Message { context_id, ..message_without_losses(send.message) },
        open_as: None,
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: false,
        metadata: None,
    }
}

/// What a server reads, without what it keeps to show the message as it was received.
fn decoded(method: &str, params: &str) -> Call {
    match decode_call(method, Some(params), &DecodeLimits::default()).unwrap() {
        Call::Send(mut send) => {
            let metadata = send.message.metadata.take();
            let had_none = params.contains("selectoolsMessage");
            assert!(!had_none, "a client sends nothing of that: {params}");
            let is_kept = metadata.as_ref().is_some_and(|metadata| metadata.as_str().contains("selectoolsMessage"));
            let (difference, rest) = metadata.as_ref().map(split).unwrap_or_default();
            // Empty metadata beside what is kept is kept with it.
            let empty = difference.more.iter().find(|(name, _)| name == "metadata");
            let empty = empty.map(|(_, value)| crate::model::Json::from_trusted(value.get()));
            send.message.metadata = if is_kept { rest.or(empty) } else { rest };
            Call::Send(send)
        }
        call => call,
    }
}

fn with_words(mut request: Request) -> Request {
    if let Request::SendMessage(send) = &mut request {
        without_null(&mut send.message.parts);
        send.message.parts.push(Part::text("words"));
    }
    request
}

fn card_without_losses(card: AgentCard, url: &str) -> AgentCard {
    let interface = AgentInterface {
        url: url.to_owned(),
        protocol_binding: "JSONRPC".to_owned(),
        protocol_version: "0.2.6".to_owned(),
        tenant: None,
    };
    let skill = |skill: AgentSkill| AgentSkill {
        name: skill.id.clone(),
        id: skill.id,
        description: skill.description,
        tags: vec!["tool".to_owned()],
        ..AgentSkill::default()
    };
    AgentCard {
        name: card.name,
        description: card.description,
        version: card.version,
        supported_interfaces: Some(interface).filter(|own| !own.url.is_empty()).into_iter().collect(),
        capabilities: AgentCapabilities {
            streaming: Some(false),
            push_notifications: Some(false),
            ..AgentCapabilities::default()
        },
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        skills: card.skills.into_iter().map(skill).collect(),
        ..AgentCard::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_call_is_read_as_it_was_written(request in request()) {
        let request = with_words(sendable(request));
        match sent_over_rpc(HERE, &request, None) {
            Ok((method, params)) => {
                let expected = match request {
                    Request::SendMessage(send) => Call::Send(send_without_losses(*send).into()),
                    Request::GetTask { id, .. } => Call::Get(id),
                    Request::CancelTask { id, .. } => Call::Cancel(id),
                    other => panic!("{other:?}"),
                };
                prop_assert_eq!(decoded(method, &params), expected);
            }
            Err(error) => {
                let why = format!("selectools has no call for {}", request.operation());
                prop_assert_eq!(error, ProtocolError::unsupported(why));
            }
        }
    }

    #[test]
    fn a_send_is_read_as_it_was_written(send in send()) {
        let request = with_words(sendable(Request::SendMessage(send.into())));
        let (method, params) = sent_over_rpc(HERE, &request, None).unwrap();
        let Request::SendMessage(send) = request else { panic!("it is a send") };
        prop_assert_eq!(decoded(method, &params), Call::Send(send_without_losses(*send).into()));
    }

    #[test]
    fn a_task_is_read_as_it_was_written(task in task()) {
        let task = task_without_null(task);
        let text = encoded(|out| encode_task(&TaskView::whole(task.clone().into()), out));
        let get = Request::GetTask { id: task.id.clone(), history_length: None };
        let Ok(Reply::Task(read)) = HERE.read_reply(&get, text.as_bytes(), &DecodeLimits::default()) else {
            panic!("{text}");
        };
        prop_assert_eq!(&*read.task, &task_without_losses(&task));
    }

    #[test]
    fn a_card_is_read_as_it_was_written(card in card(&["1.0", "0.3"])) {
        for url in ["", "https://a.example/a2a"] {
            let text = encoded(|out| encode_card(&card, url, out));
            let read = HERE.read_card(text.as_bytes(), &DecodeLimits::default()).unwrap();
            prop_assert_eq!(read, card_without_losses(card.clone(), url));
        }
    }
}

#[test]
fn what_the_original_sends_is_written_to_the_byte() {
    for (name, method) in
        [("request-send", "message/send"), ("request-send-parts", "message/send"), ("request-get", "tasks/get")]
    {
        let params = params_of(&golden(name));
        let request = match decoded(method, &params) {
            Call::Send(send) => Request::SendMessage(send),
            Call::Get(id) => Request::GetTask { id, history_length: None },
            other => panic!("{other:?}"),
        };
        assert_eq!(sent_over_rpc(HERE, &request, None), Ok((method, params)), "{name}");
    }
}

#[test]
fn what_the_original_answers_is_read() {
    let read = |name: &str| match HERE.read_update(result_of(&golden(name)).as_bytes(), &DecodeLimits::default()) {
        Ok(Update::Task(view)) => view.task,
        other => panic!("{name}: {other:?}"),
    };
    let done = read("reply-done");
    assert_eq!((done.state(), done.artifacts[0].text().as_str()), (TaskState::Completed, "You said: hello"));
    assert_eq!(done.status.timestamp.to_string(), "2026-11-15T08:52:49.173Z");
    let failed = read("reply-failed");
    assert_eq!(failed.status.message.as_ref().unwrap().text(), "Agent execution failed (RuntimeError)");
    assert_eq!(failed.history[0].context_id.as_ref().unwrap().as_str(), "c-1");
}

#[test]
fn a_refusal_is_read_for_what_it_is() {
    for error in every_refusal() {
        let http = match &error {
            ProtocolError::Unauthenticated { .. } => 401,
            ProtocolError::PermissionDenied { .. } => 403,
            _ => 200,
        };
        let text = encoded(|out| encode_rpc_error(&error, "7", out));
        let read = HERE.read_error(text.as_bytes(), Some(http)).unwrap().protocol_error(Some(http)).unwrap();
        assert_eq!(codes::of(&read).reason, codes::of(&error).reason, "{text}");
    }
    let read = |error: &ProtocolError| {
        let text = encoded(|out| encode_rpc_error(error, "7", out));
        HERE.read_error(text.as_bytes(), None).and_then(|read| read.protocol_error(None))
    };
    for id in ["t-1", "it's", "say \"it's\"", "a\\b\tc\u{1}", "ü🙂"] {
        let error = ProtocolError::TaskNotFound { id: id.into() };
        assert_eq!(read(&error), Some(error));
    }
    let large = ProtocolError::TooLarge { what: "request".into(), bytes_max: 4096 };
    assert_eq!(read(&large).map(|read| matches!(read, ProtocolError::TooLarge { bytes_max: 4096, .. })), Some(true));
}

#[test]
fn what_is_wrong_with_a_reply_is_named() {
    for (text, field) in [
        (r#"{"status":{"state":"working"}}"#, "id"),
        (r#"{"id":"t"}"#, "status"),
        (r#"{"id":"t","status":{"state":"done"}}"#, "status.state"),
        (r#"{"id":"t","status":{"state":"working"},"history":[5]}"#, "history[0]"),
        (r#"{"id":"t","status":{"state":"working"},"history":[{"parts":[]}]}"#, "history[0].parts"),
        (r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":["x"]}]}"#, "artifacts[0].parts[0]"),
        (r#"{"id":"t","status":{"state":"working","timestamp":"now"}}"#, "status.timestamp"),
    ] {
        match HERE.read_update(text.as_bytes(), &DecodeLimits::default()) {
            Err(ProtocolError::InvalidParams { violations }) => assert_eq!(violations[0].field, field, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    let limits = DecodeLimits { parts_max: 1, ..DecodeLimits::default() };
    let text = r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{},{}]}]}"#;
    let refused = HERE.read_update(text.as_bytes(), &limits).unwrap_err();
    assert_eq!(refused, ProtocolError::invalid("artifacts[0].parts", "has 2 parts; the limit is 1"));
}

#[test]
fn no_reply_makes_the_reader_panic() {
    let mut samples: Vec<String> = ["reply-done", "reply-failed"].map(|name| result_of(&golden(name))).into();
    samples.push(golden("card"));
    read_broken_replies(HERE, &samples, 0x5e1e_c700_15ee_d002);
}
