//! Decides what never leaves the server for a caller, in no dialect and over no binding: metadata whose keys name secrets or
//! inner workings, skills that tell which users and organisations have connected what, and the secrets of webhooks.
//!
//! The decision is made on the model, before a dialect writes it. [`Reply::redacted`](crate::call::Reply::redacted) applies
//! it to replies, [`SharedUpdate`](crate::call::SharedUpdate) to streams, the engine to webhook bodies, and the server to
//! the cards it publishes. What stays in the process is not redacted: an agent reads the whole message, the store keeps it,
//! and requests that this server sends carry it.

use std::borrow::Cow;
use std::sync::Arc;

use super::artifact::Artifact;
use super::card::{AgentCard, AgentSkill};
use super::json::Json;
use super::message::Message;
use super::part::Part;
use super::push::PushConfig;
use super::task::Task;
use super::update::{TaskView, Update};

/// Keys of metadata whose members are withheld, at any depth: credentials and names of users that callers pass along for
/// the agent, and marks that only the server itself reads.
pub const WITHHELD_KEYS: [&str; 12] = [
    "ownerEmail",
    "ownerScope",
    "__a2a_processor",
    "googleToken",
    "userEmail",
    "orgDomain",
    "accessToken",
    "refreshToken",
    "apiKey",
    "Authorization",
    "authorization",
    "bearer",
];

/// Keys with this prefix are Switchboard's own: requests to the server, or notes of the server to itself.
pub const OWN_PREFIX: &str = "switchboard.";

/// Own keys that are answers to callers and therefore shown. Each one is documented in `docs/metadata.md`. Only the server says
/// something under them: what a status says first is kept in the metadata of its task, and what a caller says is left out there.
pub const OWN_ANSWERS: [&str; 1] = ["switchboard.dispatch"];

/// Beginnings of the ids of skills that are on no card: the rest of such an id names a user or an organisation.
pub const WITHHELD_SKILLS: [&str; 2] = ["mcp__user_", "mcp__org_"];

/// An update without what must not leave; none if there is nothing to withhold, as nearly always.
#[must_use]
pub fn redact_update(update: &Update) -> Option<Update> {
    match update {
        Update::Task(view) => has_withheld_in_task(&view.task).then(|| Update::Task(redact_view(view.clone()))),
        Update::Message(message) => {
            has_withheld_in_message(message).then(|| Update::Message(redact_message(message.clone())))
        }
        Update::Status(update) => {
            let message = update.status.message.as_deref();
            if !has_withheld(update.metadata.as_ref()) && !message.is_some_and(has_withheld_in_message) {
                return None;
            }
            let mut update = update.clone();
            redact(&mut update.metadata);
            update.status.message = update.status.message.map(redact_message);
            Some(Update::Status(update))
        }
        Update::Artifact(update) => {
            if !has_withheld(update.metadata.as_ref()) && !has_withheld_in_artifact(&update.artifact) {
                return None;
            }
            let mut update = update.clone();
            redact(&mut update.metadata);
            redact_artifact(&mut update.artifact);
            Some(Update::Artifact(update))
        }
    }
}

/// A view of a task without what must not leave. The task is copied only if there is something to withhold.
#[must_use]
pub fn redact_view(mut view: TaskView) -> TaskView {
    if has_withheld_in_task(&view.task) {
        let task = Arc::make_mut(&mut view.task);
        redact(&mut task.metadata);
        task.status.message = task.status.message.take().map(redact_message);
        for message in &mut task.history {
            *message = redact_message(message.clone());
        }
        task.artifacts.iter_mut().for_each(redact_artifact);
    }
    view
}

/// A message without what must not leave.
#[must_use]
pub fn redact_message(mut message: Arc<Message>) -> Arc<Message> {
    if has_withheld_in_message(&message) {
        let message = Arc::make_mut(&mut message);
        redact(&mut message.metadata);
        redact_parts(&mut message.parts);
    }
    message
}

/// A webhook as its owner reads it: where it posts to, but not what it proves itself with.
#[must_use]
pub fn redact_push_config(config: PushConfig) -> PushConfig {
    let authentication = config.authentication.map(|mut authentication| {
        authentication.credentials = None;
        authentication
    });
    PushConfig { token: None, authentication, ..config }
}

/// A card for callers. An extended card is the same for all authenticated callers, so it names no user either.
#[must_use]
pub fn redact_card(mut card: Arc<AgentCard>) -> Arc<AgentCard> {
    let is_withheld = |skill: &AgentSkill| WITHHELD_SKILLS.iter().any(|prefix| skill.id.starts_with(prefix));
    if card.skills.iter().any(is_withheld) {
        Arc::make_mut(&mut card).skills.retain(|skill| !is_withheld(skill));
    }
    card
}

fn redact_artifact(artifact: &mut Arc<Artifact>) {
    if has_withheld_in_artifact(artifact) {
        let artifact = Arc::make_mut(artifact);
        if has_withheld(artifact.metadata()) {
            artifact.change_details(|details| redact(&mut details.metadata));
        }
        redact_parts(&mut artifact.parts);
    }
}

fn redact_parts(parts: &mut [Part]) {
    for part in parts {
        if has_withheld(part.metadata()) {
            part.change_details(|details| redact(&mut details.metadata));
        }
    }
}

fn redact(metadata: &mut Option<Json>) {
    if let Some(kept) = metadata.as_ref().and_then(|json| without_withheld(json.as_str())) {
        *metadata = Some(Json::from_trusted(kept));
    }
}

fn has_withheld_in_task(task: &Task) -> bool {
    has_withheld(task.metadata.as_ref())
        || task.status.message.as_deref().is_some_and(has_withheld_in_message)
        || task.history.iter().any(|message| has_withheld_in_message(message))
        || task.artifacts.iter().any(|artifact| has_withheld_in_artifact(artifact))
}

fn has_withheld_in_message(message: &Message) -> bool {
    has_withheld(message.metadata.as_ref()) || have_withheld(&message.parts)
}

fn has_withheld_in_artifact(artifact: &Artifact) -> bool {
    has_withheld(artifact.metadata()) || have_withheld(&artifact.parts)
}

fn have_withheld(parts: &[Part]) -> bool {
    parts.iter().any(|part| has_withheld(part.metadata()))
}

fn has_withheld(metadata: Option<&Json>) -> bool {
    metadata.is_some_and(|json| next_withheld(json.as_str(), 0).is_some())
}

fn is_withheld(key: &str) -> bool {
    WITHHELD_KEYS.contains(&key) || (key.starts_with(OWN_PREFIX) && !OWN_ANSWERS.contains(&key))
}

/// The text of a JSON value without the members that are withheld; none if there are none. Everything else is kept byte
/// for byte: numbers, order and escapes. Works on the text, which was checked where it entered, so that a value without
/// such members costs one look at its strings.
fn without_withheld(text: &str) -> Option<String> {
    let mut member = next_withheld(text, 0)?;
    let mut kept = String::with_capacity(text.len());
    let mut copied = 0;
    loop {
        kept.push_str(&text[copied..member.start]);
        let after = skip_blanks(text, member.end);
        copied = if text[after..].starts_with(',') {
            skip_blanks(text, after + 1)
        } else {
            // The last member of its object: the comma before it goes, too.
            kept.truncate(kept.trim_end().len());
            if kept.ends_with(',') {
                kept.pop();
            }
            member.end
        };
        match next_withheld(text, copied) {
            Some(next) => member = next,
            None => break,
        }
    }
    kept.push_str(&text[copied..]);
    Some(kept)
}

/// Where a member stands in a text, from the quote of its key to the end of its value.
struct Member {
    start: usize,
    end: usize,
}

/// The first withheld member at or after `from`, which is not inside a string. Only a key is followed by a colon.
fn next_withheld(text: &str, from: usize) -> Option<Member> {
    let mut at = from;
    loop {
        let start = at + text[at..].find('"')?;
        let end = string_end(text, start);
        let colon = skip_blanks(text, end);
        at = end;
        if text[colon..].starts_with(':') {
            if is_withheld(&unescaped(&text[start..end])) {
                return Some(Member { start, end: value_end(text, colon + 1) });
            }
            at = colon + 1;
        }
    }
}

/// What a key says, whichever way it is written: `"\u0061piKey"` is `apiKey`.
fn unescaped(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str(quoted).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// The end of a string that begins with the quote at `start`.
fn string_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The end of the value that begins at `from`, after blanks.
fn value_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = skip_blanks(text, from);
    let mut depth = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(text, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn skip_blanks(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    text.len() - rest.trim_start_matches([' ', '\n', '\r', '\t']).len()
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
