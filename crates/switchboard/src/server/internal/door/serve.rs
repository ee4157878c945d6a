//! The requests at the door: a call is made, looked at or canceled. Answers are JSON or, for shells, the text alone.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use serde_json::{Map, Value, json};
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::dialect::v1_0;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::redact::{redact_message, redact_view};
use switchboard_core::model::{Message, Part, Role, TaskView};
use switchboard_engine::runs::{AgentCallError, Call, CallAnswer};

use super::{AtWork, CallDoor, DoorPath};
use crate::server::exchange::headers::bearer;
use crate::server::exchange::request::Head;
use crate::server::exchange::request::read;
use crate::server::exchange::respond::{JSON, ReplyBody, json as json_answer, text as text_answer};
use crate::server::internal::serve::refused;

/// The size of one message to another agent, if the server does not take less.
const CALL_BODY_BYTES_MAX: usize = 4 << 20;
const CALL_BODY_READ: Duration = Duration::from_secs(10);
/// The longest `wait` that can be named. A request without one waits for as long as the run may work.
const CALL_WAIT_S_MAX: u64 = 86_400;

/// What is answered to a token that is of no run at work, whatever is wrong with it.
const CALL_REFUSAL: &str = "Invalid or expired call token";

/// Answers a request at the door.
pub(crate) async fn serve<B>(
    door: Option<&CallDoor>,
    body_bytes_max: usize,
    limits: &DecodeLimits,
    place: &DoorPath,
    head: &Head<'_>,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let run = door.and_then(|door| known_run(door, head));
    let Some(run) = run else {
        return refused(StatusCode::UNAUTHORIZED, CALL_REFUSAL);
    };
    let answering = async {
        match place {
            DoorPath::Agent(name) if *head.method == Method::POST => {
                let bytes_max = body_bytes_max.min(CALL_BODY_BYTES_MAX);
                let body = match read(head.headers, body, bytes_max, CALL_BODY_READ).await {
                    Ok(body) => body,
                    Err(error) => return wrong(&error),
                };
                make_call(&run, name, head, &body, limits).await
            }
            DoorPath::Agent(_) => takes("POST"),
            DoorPath::Call(id) => match (run.call(id), head.method) {
                (None, _) => no_such_call(id),
                (Some(call), &Method::GET) => answer(&call, head).await,
                (Some(call), &Method::DELETE) => match call.cancel().await {
                    Ok(()) => said(StatusCode::OK, &json!({"call": call.id(), "agent": call.agent()})),
                    Err(error) => failed(&error),
                },
                (Some(_), _) => takes("GET, DELETE"),
            },
        }
    };
    tokio::select! {
        biased;
        // What the program still asks for when its run has ended is of no use to anybody.
        () = run.ended.cancelled() => refused(StatusCode::UNAUTHORIZED, CALL_REFUSAL),
        answer = answering => answer,
    }
}

/// The run whose token the request shows, if it comes from this machine.
fn known_run(door: &CallDoor, head: &Head<'_>) -> Option<Arc<AtWork>> {
    let is_here = head.note.address().is_some_and(|peer| door.is_here(peer));
    door.run(bearer(head.headers)?).filter(|_| is_here)
}

impl AtWork {
    fn call(&self, id: &str) -> Option<Arc<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn remember(&self, call: Call) -> Arc<Call> {
        let call = Arc::new(call);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(call.id().to_owned(), call.clone());
        call
    }
}

async fn make_call(
    run: &AtWork,
    agent: &str,
    head: &Head<'_>,
    body: &Bytes,
    limits: &DecodeLimits,
) -> Response<ReplyBody> {
    // What is wrong with the request is found before the message has left.
    if let Err(why) = wait_of(head) {
        return refused(StatusCode::BAD_REQUEST, &why);
    }
    let message = match message_of(head, body, limits) {
        Ok(message) => message,
        Err(error) => return wrong(&error),
    };
    match run.turn.call(agent, message).await {
        Ok(call) => answer(&run.remember(call), head).await,
        Err(error) => failed(&error),
    }
}

/// What came of a call, as far as the request waits for it.
async fn answer(call: &Call, head: &Head<'_>) -> Response<ReplyBody> {
    let waited = match wait_of(head) {
        Err(why) => return refused(StatusCode::BAD_REQUEST, &why),
        Ok(None) => call.wait().await.map(Some),
        Ok(Some(limit)) => call.wait_for(limit).await,
    };
    let task = call.task_id().map(|id| id.as_str());
    match waited {
        Err(error) => failed(&error),
        Ok(None) => said(StatusCode::ACCEPTED, &json!({"call": call.id(), "agent": call.agent(), "taskId": task})),
        Ok(Some(answer)) if wants_text(head) => only_text(call, &answer),
        Ok(Some(answer)) => {
            let mut members = json!({
                "call": call.id(),
                "agent": call.agent(),
                "taskId": task,
                "state": answer.state().word(),
                "text": answer.text(),
            });
            let (name, whole) = whole(&answer);
            members[name] = whole.unwrap_or(Value::Null);
            said(StatusCode::OK, &members)
        }
    }
}

/// The other agent's task or message as A2A 1.0 has it, without what must not leave the server.
fn whole(answer: &CallAnswer) -> (&'static str, Option<Value>) {
    let mut out = Vec::with_capacity(1024);
    let name = match (answer.task(), answer.message()) {
        (Some(task), _) => {
            v1_0::encode_task(&redact_view(TaskView::whole(task.clone())), &mut out);
            "task"
        }
        (None, Some(message)) => {
            v1_0::encode_message(&redact_message(message.clone()), &mut out);
            "message"
        }
        (None, None) => return ("task", None),
    };
    (name, serde_json::from_slice(&out).ok())
}

/// The text alone. What is not completed is no success to a shell.
fn only_text(call: &Call, answer: &CallAnswer) -> Response<ReplyBody> {
    match answer.is_completed() {
        true => text_answer(StatusCode::OK, answer.text()),
        false => {
            let why = format!("agent {:?}: {}: {}\n", call.agent(), answer.state().word(), answer.text());
            text_answer(StatusCode::FAILED_DEPENDENCY, why)
        }
    }
}

/// How long the request waits for the answer; none is as long as it takes.
fn wait_of(head: &Head<'_>) -> Result<Option<Duration>, String> {
    let Some(text) = head.query("wait") else { return Ok(None) };
    match text.parse::<u64>() {
        Ok(seconds) if seconds <= CALL_WAIT_S_MAX => Ok(Some(Duration::from_secs(seconds))),
        _ => {
            let shown: String = text.chars().take(40).collect();
            Err(format!("wait: expected seconds from 0 to {CALL_WAIT_S_MAX}, got {shown:?}"))
        }
    }
}

fn wants_text(head: &Head<'_>) -> bool {
    let accepted = head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.trim_start().to_ascii_lowercase().starts_with("text/plain"))
}

/// The message: JSON is a message of A2A 1.0, of which the role and the id are set by the call; everything else is text.
fn message_of(head: &Head<'_>, body: &Bytes, limits: &DecodeLimits) -> Result<Message, ProtocolError> {
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !matches!(media.as_str(), "application/json" | "application/a2a+json") {
        let text = std::str::from_utf8(body).map_err(|_| ProtocolError::invalid("body", "expected text in UTF-8"))?;
        return Ok(Message::new(Role::User, "", vec![Part::text(text)]));
    }
    let mut members: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| ProtocolError::invalid("body", format!("expected a message as a JSON object: {error}")))?;
    members.insert("role".to_owned(), "ROLE_USER".into());
    members.insert("messageId".to_owned(), "of-the-call".into());
    let whole = json!({"message": members}).to_string();
    v1_0::decode_send_body(whole.as_bytes(), limits).map(|(_, send)| send.message)
}

fn no_such_call(id: &str) -> Response<ReplyBody> {
    let shown: String = id.chars().take(200).collect();
    named(StatusCode::NOT_FOUND, "UNKNOWN_CALL", &format!("UNKNOWN_CALL: this run has made no call {shown:?}"))
}

fn wrong(error: &ProtocolError) -> Response<ReplyBody> {
    let status = match error {
        ProtocolError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::BAD_REQUEST,
    };
    refused(status, &error.to_string())
}

fn failed(error: &AgentCallError) -> Response<ReplyBody> {
    let status = match error {
        AgentCallError::UnknownAgent { .. } => StatusCode::NOT_FOUND,
        AgentCallError::Hop(_) | AgentCallError::Canceled { .. } | AgentCallError::Stopped => StatusCode::CONFLICT,
        AgentCallError::Refused { .. } | AgentCallError::OutcomeUnknown { .. } => StatusCode::BAD_GATEWAY,
        AgentCallError::TooManyCalls { .. } => StatusCode::TOO_MANY_REQUESTS,
        AgentCallError::NotSupported => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    named(status, error.name(), &error.to_string())
}

/// A refusal that programs know by its name.
fn named(status: StatusCode, name: &str, why: &str) -> Response<ReplyBody> {
    said(status, &json!({"error": why, "code": name}))
}

fn said(status: StatusCode, body: &Value) -> Response<ReplyBody> {
    json_answer(status, JSON, body.to_string().into_bytes())
}

fn takes(methods: &'static str) -> Response<ReplyBody> {
    let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    response
}
