//! What a client of agent-native relies on: the golden files, how a stream is told, what is refused and how, and what
//! holds for all input.

mod client;
mod goldens;
mod properties;
mod refusals;
mod streams;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::call::{Request, SendMessage};
use crate::dialect::json::DecodeLimits;
use crate::error::ProtocolError;
use crate::model::{Dialect, Message, Part, Role, Task, TaskState, TaskStatus, TaskView, Timestamp};

use super::{Call, decode_call, encode_task};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "golden", "agent-native"].iter().collect()
}

fn golden(name: &str) -> String {
    let path = folder().join(format!("{name}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn golden_value(name: &str) -> Value {
    serde_json::from_str(&golden(name)).unwrap()
}

fn decode(method: &str, params: &str) -> Result<Call, ProtocolError> {
    decode_call(method, Some(params), &DecodeLimits::default())
}

fn sent(params: &str) -> SendMessage {
    match decode("message/send", params).unwrap_or_else(|error| panic!("{params}: {error:?}")).request {
        Request::SendMessage(send) => *send,
        other => panic!("{other:?}"),
    }
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    encode(&mut out);
    String::from_utf8(out).expect("what is encoded is UTF-8")
}

fn written(task: &Arc<Task>) -> Value {
    serde_json::from_str(&encoded(|out| encode_task(&TaskView::whole(task.clone()), out))).unwrap()
}

fn says(role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message::new(role, format!("m-{text}"), vec![Part::text(text)]))
}

/// A task that was asked something and stands in this state.
fn task(state: TaskState) -> Task {
    Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { state, message: None, timestamp: Timestamp::from_ms(1) },
        artifacts: Vec::new(),
        history: vec![says(Role::User, "question")],
        metadata: None,
        created_at: Timestamp::default(),
        dialect: Dialect::AgentNative,
    }
}
