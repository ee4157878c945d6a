//! All that was said and written in a task as one list of messages, for dialects whose readers look for the answer in the
//! last of them.

use std::sync::Arc;

use super::artifact::Artifact;
use super::message::{Message, Role};
use super::part::{Part, PartContent};
use super::task::{Task, TaskState};
use super::update::{ArtifactView, TaskView};

/// The messages of a task. Once a task has completed, its artifacts are the last message; until then, and if it did not
/// complete, the message of its status is.
#[must_use]
pub fn conversation(view: &TaskView) -> Vec<Arc<Message>> {
    let task = &*view.task;
    let mut messages = view.history().to_vec();
    let written = written(task).filter(|_| view.artifacts != ArtifactView::Omitted);
    // A note that is kept stands in the history already.
    let is_same = |known: &Message, said: &Message| (known.role, &known.message_id) == (said.role, &said.message_id);
    let is_new = |said: &Arc<Message>| !messages.iter().rev().any(|known| is_same(known, said));
    let status = task.status.message.clone().filter(is_new);
    if task.state() == TaskState::Completed {
        messages.extend(status);
        messages.extend(written);
    } else {
        messages.extend(written);
        messages.extend(status);
    }
    messages
}

/// The reverse: splits the list of messages into the history and the message of the status. The last message, if it is
/// the agent's, is that of the status. A message that repeats the artifacts is left out.
#[must_use]
pub(crate) fn from_conversation(
    mut messages: Vec<Message>,
    artifacts: &[Arc<Artifact>],
    state: TaskState,
) -> (Vec<Arc<Message>>, Option<Arc<Message>>) {
    let words = words_of(artifacts);
    let is_written = |message: &Message| {
        let is_same = |parts: &[Part]| matches!(parts, [part] if part.as_text() == words.as_deref());
        words.is_some() && message.role == Role::Agent && is_same(&message.parts)
    };
    // What the artifacts say closes the list, but for what the status of a task says that has not completed.
    let is_closed = messages.pop_if(|last| is_written(last)).is_some();
    let is_completed = state == TaskState::Completed;
    let status = if is_completed || !is_closed { messages.pop_if(|last| last.role == Role::Agent) } else { None };
    if !is_completed && !is_closed {
        messages.pop_if(|last| is_written(last));
    }
    (messages.into_iter().map(Arc::new).collect(), status.map(Arc::new))
}

/// What the artifacts say, as one message: readers look at the last message alone.
fn written(task: &Task) -> Option<Arc<Message>> {
    let words = words_of(&task.artifacts)?;
    let mut message = Message::new(Role::Agent, format!("{}-answer", task.id), vec![Part::text(words)]);
    message.context_id = Some(task.context_id.clone());
    message.task_id = Some(task.id.clone());
    Some(Arc::new(message))
}

fn words_of(artifacts: &[Arc<Artifact>]) -> Option<String> {
    let texts: Vec<String> = artifacts.iter().map(|made| words(made)).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// An artifact in words. Chunks of a streamed text are one text; data and links have lines of their own.
fn words(artifact: &Artifact) -> String {
    let mut words = String::new();
    let mut was_text = true;
    for part in &artifact.parts {
        let Some(text) = in_words(part) else { continue };
        let is_text = matches!(part.content, PartContent::Text(_));
        let goes_on = is_text && was_text;
        if !goes_on && !words.is_empty() {
            words.push('\n');
        }
        words.push_str(text);
        was_text = is_text;
    }
    words
}

/// A part in words: a text, data as JSON, the address of a file. Bytes have none.
pub(crate) fn in_words(part: &Part) -> Option<&str> {
    match &part.content {
        PartContent::Text(text) => Some(text),
        PartContent::Data(data) => Some(data.as_str()),
        PartContent::Url(url) => Some(url),
        PartContent::Raw(_) => None,
    }
}
