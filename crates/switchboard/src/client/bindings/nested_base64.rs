//! Files as the Python SDK 0.3 sends them over HTTP+JSON and gRPC: base64 text where the protocol has the bytes themselves. Nothing
//! says that it is so, so bytes that are base64 are taken for it, unless they may well be the file itself.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use switchboard_core::call::Reply;
use switchboard_core::model::{Artifact, Message, Part, PartContent, Task, TaskStatus, TaskView, Update};

/// Without a media type, a file must be as long as this to be taken for base64 of something that is not text.
const UNTYPED_BYTES_MIN: usize = 16;

/// A reply of 0.3 whose files may be wrapped.
pub(super) fn unwrap_reply(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::SentTask(view) | Reply::Task(view) => unwrap_view(view),
        Reply::SentMessage(message) => unwrap_message(message),
        Reply::Tasks(page) => page.tasks.iter_mut().for_each(unwrap_view),
        Reply::Stream(_) | Reply::PushConfig(_) | Reply::PushConfigs(_) | Reply::Deleted | Reply::Card(_) => {}
    }
    reply
}

/// An update of 0.3 whose files may be wrapped.
pub(super) fn unwrap_update(mut update: Update) -> Update {
    match &mut update {
        Update::Task(view) => unwrap_view(view),
        Update::Message(message) => unwrap_message(message),
        Update::Status(update) => unwrap_status(&mut update.status),
        Update::Artifact(update) => unwrap_artifact(&mut update.artifact),
    }
    update
}

fn unwrap_view(view: &mut TaskView) {
    let is_wrapped = |task: &Task| {
        let said = task.history.iter().chain(&task.status.message).any(|message| has_wrapped(&message.parts));
        said || task.artifacts.iter().any(|artifact| has_wrapped(&artifact.parts))
    };
    if is_wrapped(&view.task) {
        let task = Arc::make_mut(&mut view.task);
        task.history.iter_mut().for_each(unwrap_message);
        task.artifacts.iter_mut().for_each(unwrap_artifact);
        unwrap_status(&mut task.status);
    }
}

fn unwrap_status(status: &mut TaskStatus) {
    status.message.iter_mut().for_each(unwrap_message);
}

fn unwrap_message(message: &mut Arc<Message>) {
    if has_wrapped(&message.parts) {
        unwrap_parts(&mut Arc::make_mut(message).parts);
    }
}

fn unwrap_artifact(artifact: &mut Arc<Artifact>) {
    if has_wrapped(&artifact.parts) {
        unwrap_parts(&mut Arc::make_mut(artifact).parts);
    }
}

fn has_wrapped(parts: &[Part]) -> bool {
    parts.iter().any(|part| unwrapped(part).is_some())
}

fn unwrap_parts(parts: &mut [Part]) {
    for part in parts {
        if let Some(bytes) = unwrapped(part) {
            part.content = PartContent::Raw(bytes.into());
        }
    }
}

/// The file in the file, if it is one.
fn unwrapped(part: &Part) -> Option<Vec<u8>> {
    let PartContent::Raw(bytes) = &part.content else { return None };
    if bytes.is_empty() || bytes.len() % 4 != 0 {
        return None;
    }
    let inner = STANDARD.decode(bytes).ok()?;
    let media_type = part.media_type().unwrap_or_default();
    let is_text = media_type.starts_with("text/")
        || ["json", "xml", "yaml", "javascript"].iter().any(|kind| media_type.ends_with(kind));
    let may_be_text = is_text || (media_type.is_empty() && bytes.len() < UNTYPED_BYTES_MIN);
    // Words are base64 too, now and then; what they decode to is hardly ever a text.
    (!may_be_text || reads_as_text(&inner)).then_some(inner)
}

fn reads_as_text(bytes: &[u8]) -> bool {
    let is_written = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_written))
}

#[cfg(test)]
mod tests {
    use switchboard_core::model::Part;

    use super::unwrapped;

    fn file(bytes: &'static [u8], media_type: &str) -> Part {
        let file = Part::raw(bytes);
        if media_type.is_empty() { file } else { file.with_media_type(media_type) }
    }

    #[test]
    fn base64_in_place_of_bytes_is_unwrapped_and_files_that_may_be_meant_so_are_not() {
        for (bytes, media_type, expected) in [
            (&b"iVBORw0KGgo="[..], "image/png", Some(&b"\x89PNG\r\n\x1a\n"[..])),
            (b"aGVsbG8=", "text/plain", Some(b"hello")),
            (b"aGVsbG8=", "", Some(b"hello")),
            (b"eyJhIjoxfQ==", "application/json", Some(b"{\"a\":1}")),
            (b"\x89PNG\r\n\x1a\n", "image/png", None),
            (b"test", "text/plain", None),
            (b"test", "", None),
            (b"hello", "text/plain", None),
            (b"hello world!", "text/plain", None),
            (b"", "image/png", None),
        ] {
            assert_eq!(unwrapped(&file(bytes, media_type)).as_deref(), expected, "{bytes:?} {media_type}");
        }
    }
}
