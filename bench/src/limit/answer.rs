//! Builds the answers: the echo task, a stored-looking task, and the three events of an echo stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use serde_json::value::RawValue;

use super::ids::{Id, timestamp};
use super::wire::{Artifact, ArtifactUpdate, GetParams, Message, Part, Payload, Reply, Status, StatusUpdate, Task};

const SUBMITTED: &str = "TASK_STATE_SUBMITTED";
const COMPLETED: &str = "TASK_STATE_COMPLETED";

/// What GetTask shows: nothing is kept here, so every task has this text, as long as the load generator's own.
const STORED_TEXT: &str = "Echo this line, please: 000000000000";
const STORED_MESSAGE: &str = "00000000-0000-4000-8000-000000000000";

/// The capacity of the buffer: enough for a whole answer, so that writing it allocates once.
const REPLY_BYTES: usize = 1024;

pub(super) fn send(id: &RawValue, message: &Message<'_>) -> serde_json::Result<Vec<u8>> {
    let (task, context) = (Id::fresh(), Id::fresh());
    let time = timestamp();
    let history = [in_task(message, &task, &context)];
    let artifacts = [echo(&message.parts)];
    encode(id, Payload::Task(whole(&task, &context, status(COMPLETED, &time), &artifacts, &history)))
}

pub(super) fn get(id: &RawValue, params: &GetParams<'_>) -> serde_json::Result<Vec<u8>> {
    let context = Id::fresh();
    let time = timestamp();
    let parts = [Part { text: STORED_TEXT.into() }];
    let artifacts = [echo(&parts)];
    let history = [Message {
        message_id: STORED_MESSAGE.into(),
        context_id: Some(context.as_str().into()),
        task_id: Some((&*params.id).into()),
        role: "ROLE_USER".into(),
        parts: vec![Part { text: STORED_TEXT.into() }],
    }];
    encode(
        id,
        Task {
            id: &params.id,
            context_id: context.as_str(),
            status: status(COMPLETED, &time),
            artifacts: &artifacts,
            history: &history,
        },
    )
}

pub(super) fn stream(id: &RawValue, message: &Message<'_>) -> serde_json::Result<Events> {
    let (task, context) = (Id::fresh(), Id::fresh());
    let time = timestamp();
    let history = [in_task(message, &task, &context)];
    let (task_id, context_id) = (task.as_str(), context.as_str());
    Ok(Events::ending([
        event(1, id, Payload::Task(whole(&task, &context, status(SUBMITTED, &time), &[], &history)))?,
        event(
            2,
            id,
            Payload::ArtifactUpdate(ArtifactUpdate {
                task_id,
                context_id,
                artifact: echo(&message.parts),
                last_chunk: true,
            }),
        )?,
        event(3, id, Payload::StatusUpdate(StatusUpdate { task_id, context_id, status: status(COMPLETED, &time) }))?,
    ]))
}

/// A stream that shows its task and then stays open without a word: the floor for memory per idle stream.
pub(super) fn hold(id: &RawValue, params: &GetParams<'_>) -> serde_json::Result<Events> {
    let context = Id::fresh();
    let time = timestamp();
    let task = Task {
        id: &params.id,
        context_id: context.as_str(),
        status: status(SUBMITTED, &time),
        artifacts: &[],
        history: &[],
    };
    Ok(Events { frames: vec![event(1, id, Payload::Task(task))?].into_iter(), ends: false })
}

/// The body of an SSE answer: one frame per event, all ready from the start.
pub(super) struct Events {
    frames: std::vec::IntoIter<Bytes>,
    ends: bool,
}

impl Events {
    fn ending(frames: [Bytes; 3]) -> Events {
        Events { frames: Vec::from(frames).into_iter(), ends: true }
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.frames.next() {
            Some(frame) => Poll::Ready(Some(Ok(Frame::data(frame)))),
            None if self.ends => Poll::Ready(None),
            // No waker is kept: only the client's leaving ends a held stream, and hyper sees that itself.
            None => Poll::Pending,
        }
    }
}

fn whole<'a>(
    task: &'a Id,
    context: &'a Id,
    status: Status<'a>,
    artifacts: &'a [Artifact<'a>],
    history: &'a [Message<'a>],
) -> Task<'a> {
    Task { id: task.as_str(), context_id: context.as_str(), status, artifacts, history }
}

fn in_task<'a>(message: &'a Message<'_>, task: &'a Id, context: &'a Id) -> Message<'a> {
    Message {
        message_id: (&*message.message_id).into(),
        context_id: Some(context.as_str().into()),
        task_id: Some(task.as_str().into()),
        role: (&*message.role).into(),
        parts: message.parts.iter().map(|part| Part { text: (&*part.text).into() }).collect(),
    }
}

/// The artifact has the id that the real server makes, so that both answers have one length.
fn echo<'a>(parts: &'a [Part<'a>]) -> Artifact<'a> {
    Artifact { artifact_id: "artifact-1-1", parts }
}

fn status<'a>(state: &'static str, timestamp: &'a str) -> Status<'a> {
    Status { state, timestamp }
}

fn event(seq: u64, id: &RawValue, payload: Payload<'_>) -> serde_json::Result<Bytes> {
    let mut frame = Vec::with_capacity(REPLY_BYTES);
    frame.extend_from_slice(b"id: ");
    frame.extend_from_slice(seq.to_string().as_bytes());
    frame.extend_from_slice(b"\ndata: ");
    serde_json::to_writer(&mut frame, &reply(id, payload))?;
    frame.extend_from_slice(b"\n\n");
    Ok(frame.into())
}

fn encode(id: &RawValue, result: impl serde::Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(REPLY_BYTES);
    serde_json::to_writer(&mut bytes, &reply(id, result))?;
    Ok(bytes)
}

fn reply<T>(id: &RawValue, result: T) -> Reply<'_, T> {
    Reply { jsonrpc: "2.0", id, result }
}
