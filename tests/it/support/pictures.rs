//! Short pictures of tasks and streams, for whole values that fit on a screen. Ids and times that a test does not care
//! about are left out.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::StreamExt;
use switchboard_core::call::{Frame, Reply, UpdateStream};
use switchboard_core::dialect::v1_0;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Artifact, Dialect, Message, PartContent, Role, Task, TaskStatus, Update};

use super::callers::soon;

/// A task: its status, what was said, what came out.
pub(crate) fn picture(task: &Task) -> String {
    let mut out = format!("{}\n", status(&task.status));
    for message in &task.history {
        let _ = writeln!(out, "{}: {}", speaker(message), words(message));
    }
    for artifact in &task.artifacts {
        let _ = writeln!(out, "{}: {}", artifact.artifact_id, content(artifact));
    }
    out
}

/// A text whose incident id, which is never the same, is a star.
fn with_masked_incident(text: String) -> String {
    match text.split_once("(incident ") {
        Some((before, after)) => {
            let rest = after.split_once(')').map_or("", |(_, rest)| rest);
            format!("{before}(incident *){rest}")
        }
        None => text,
    }
}

/// All frames of a stream that ends.
pub(crate) async fn film(updates: UpdateStream) -> String {
    let frames: Vec<_> = soon(updates.collect()).await;
    frames.iter().map(|frame| line(frame.as_ref())).collect()
}

/// The frames that are there or come without the clock; the stream stays open.
pub(crate) async fn film_so_far(updates: &mut UpdateStream) -> String {
    let mut out = String::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(1), updates.next()).await {
            Ok(Some(frame)) => out.push_str(&line(frame.as_ref())),
            Ok(None) => return out + "closed\n",
            Err(_) => return out + "open\n",
        }
    }
}

/// The next frame.
pub(crate) async fn next_frame(updates: &mut UpdateStream) -> Option<Result<Frame, ProtocolError>> {
    soon(updates.next()).await
}

/// The numbers of all frames of a stream that ends.
pub(crate) async fn numbers(updates: UpdateStream) -> Vec<u64> {
    let frames: Vec<_> = soon(updates.collect()).await;
    frames.into_iter().map(|frame| frame.unwrap().seq.unwrap()).collect()
}

/// One frame as a line: number, kind, content. `+` is a chunk that is appended, `.` the last one.
pub(crate) fn line(frame: Result<&Frame, &ProtocolError>) -> String {
    let frame = match frame {
        Ok(frame) => frame,
        Err(error) => return format!("error: {error}\n"),
    };
    let seq = frame.seq.map_or("-".to_owned(), |seq| seq.to_string());
    let truncated = if frame.truncated { " (truncated)" } else { "" };
    let shown = match &frame.update.update {
        Update::Task(view) => {
            let said = view.history().iter().map(|message| words(message)).collect::<Vec<_>>().join(", ");
            let made = view.task.artifacts.iter().map(|made| content(made)).collect::<Vec<_>>().join(", ");
            format!("task {} said [{said}] made [{made}]", status(&view.task.status))
        }
        Update::Message(message) => format!("message {}", words(message)),
        Update::Status(update) => status(&update.status),
        Update::Artifact(update) => {
            let (append, last) = (if update.append { "+" } else { "" }, if update.last_chunk { "." } else { "" });
            format!("{}{append}{last} {}", update.artifact.artifact_id, content(&update.artifact))
        }
    };
    format!("{seq} {shown}{truncated}\n")
}

fn status(status: &TaskStatus) -> String {
    match &status.message {
        Some(message) => format!("{} \"{}\"", status.state.word(), with_masked_incident(words(message))),
        None => status.state.word().to_owned(),
    }
}

fn speaker(message: &Message) -> &'static str {
    match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

/// The text of a message.
pub(crate) fn words(message: &Message) -> String {
    message.text()
}

fn content(artifact: &Artifact) -> String {
    let parts = artifact.parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Raw(bytes) => format!("<{} bytes>", bytes.len()),
        PartContent::Url(url) => format!("<{url}>"),
        PartContent::Data(json) => json.as_str().to_owned(),
    });
    parts.collect()
}

/// What a client would read: the reply in the protocol's JSON.
pub(crate) fn wire(reply: &Reply) -> serde_json::Value {
    let mut bytes = Vec::new();
    v1_0::encode_reply(reply, &mut bytes);
    serde_json::from_slice(&bytes).unwrap()
}

/// What a client would read: the refusal in the protocol's JSON.
pub(crate) fn refusal(error: &ProtocolError) -> String {
    let mut bytes = Vec::new();
    Dialect::V1_0.write_http_error(error, Dialect::V1_0.http_status(error), &mut bytes);
    String::from_utf8(bytes).unwrap()
}
