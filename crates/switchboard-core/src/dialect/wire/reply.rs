//! Replies as they stand in the result of a JSON-RPC call or the body of an HTTP answer, and the updates of streams and webhooks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{PushConfigPage, Reply, Request, TaskPage};
use crate::dialect::json::{Check, DecodeLimits, List, Obj, Raw, Text, read_body, write_array};
use crate::error::ProtocolError;
use crate::model::{self, Dialect, TaskView, Update};

use super::card::read_card;
use super::message::Message;
use super::push::{PushConfig, TaskPushConfig, WrittenConfig};
use super::task::{ArtifactUpdate, StatusUpdate, StreamResponse, Task, Wrapped};
use super::{PushForm, Spelling, put};

/// All four members are always there: an empty token is how a client learns that this was the last page.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tasks<'a> {
    #[serde(borrow)]
    tasks: Option<List<Obj<Task<'a>>>>,
    #[serde(borrow, alias = "next_page_token")]
    next_page_token: Option<Text<'a>>,
    #[serde(alias = "page_size")]
    page_size: Option<u32>,
    #[serde(alias = "total_size")]
    total_size: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenConfigs<'a> {
    configs: Vec<WrittenConfig<'a>>,
    next_page_token: Option<Text<'a>>,
}

/// Writes the result of a call. A deletion has none, so nothing is written and the binding decides how that is spelled;
/// a stream is written frame by frame with [`write_update`]. Cards are written by their own.
pub fn write_reply(reply: &Reply, spelling: &Spelling, out: &mut Vec<u8>) {
    match reply {
        Reply::Task(view) => write_task(view, spelling, out),
        Reply::SentTask(view) => write_stream_response(&SendReply::Task(view), spelling, out),
        Reply::SentMessage(message) => write_stream_response(&SendReply::Message(message), spelling, out),
        Reply::Tasks(page) => put(out, &Tasks::of(page, spelling)),
        Reply::PushConfig(config) => put(out, &WrittenConfig::of(config, spelling)),
        Reply::PushConfigs(page) => write_push_configs(page, spelling, out),
        Reply::Card(_) | Reply::Deleted => {}
        Reply::Stream(_) => debug_assert!(false, "a stream has no single written form"),
    }
}

/// Writes a task, as much of it as the view shows.
pub fn write_task(view: &TaskView, spelling: &Spelling, out: &mut Vec<u8>) {
    // A small task takes about this much; one reservation then covers it.
    out.reserve(640);
    put(out, &Task::of(view, spelling));
}

/// Writes one update of a stream or a webhook.
pub fn write_update(update: &Update, spelling: &Spelling, out: &mut Vec<u8>) {
    let sent = match update {
        Update::Task(view) => SendReply::Task(view),
        Update::Message(message) => SendReply::Message(message),
        Update::Status(update) => SendReply::Status(update),
        Update::Artifact(update) => SendReply::Artifact(update),
    };
    write_stream_response(&sent, spelling, out);
}

/// What a send or a stream is answered with.
enum SendReply<'a> {
    Task(&'a TaskView),
    Message(&'a model::Message),
    Status(&'a model::StatusUpdate),
    Artifact(&'a model::ArtifactUpdate),
}

fn write_stream_response(sent: &SendReply<'_>, spelling: &Spelling, out: &mut Vec<u8>) {
    out.reserve(640);
    match (sent, spelling.wraps) {
        (SendReply::Task(view), true) => put(out, &Wrapped::Task(Task::of(view, spelling))),
        (SendReply::Task(view), false) => put(out, &Task::of(view, spelling)),
        (SendReply::Message(message), true) => put(out, &Wrapped::Message(Message::of(message, spelling))),
        (SendReply::Message(message), false) => put(out, &Message::of(message, spelling)),
        (SendReply::Status(update), true) => put(out, &Wrapped::StatusUpdate(StatusUpdate::of(update, spelling))),
        (SendReply::Status(update), false) => put(out, &StatusUpdate::of(update, spelling)),
        (SendReply::Artifact(update), true) => put(out, &Wrapped::ArtifactUpdate(ArtifactUpdate::of(update, spelling))),
        (SendReply::Artifact(update), false) => put(out, &ArtifactUpdate::of(update, spelling)),
    }
}

/// In 0.3 over JSON-RPC the list itself is the answer; it has no pages.
fn write_push_configs(page: &PushConfigPage, spelling: &Spelling, out: &mut Vec<u8>) {
    if spelling.push == PushForm::OfTask {
        return write_array(out, &page.configs, |out, config| put(out, &WrittenConfig::of(config, spelling)));
    }
    let configs = page.configs.iter().map(|config| WrittenConfig::of(config, spelling)).collect();
    let token = Some(page.next_page_token.as_str()).filter(|token| !token.is_empty());
    put(out, &WrittenConfigs { configs, next_page_token: token.map(Text::from) });
}

impl<'a> Tasks<'a> {
    fn of(page: &'a TaskPage, spelling: &'a Spelling) -> Self {
        Self {
            tasks: Some(page.tasks.iter().map(|view| Obj(Task::of(view, spelling))).collect()),
            next_page_token: Some(Text::from(page.next_page_token.as_str())),
            page_size: Some(page.page_size),
            total_size: Some(page.total_size),
        }
    }
}

/// Reads what a request was answered with. The answer to a call that is streamed is read as the one to the same call that is not.
///
/// # Errors
/// As [`read_update`].
pub fn read_reply(
    request: &Request,
    text: &[u8],
    spelling: &Spelling,
    dialect: Dialect,
    limits: &DecodeLimits,
) -> Result<Reply, ProtocolError> {
    match request {
        Request::SendMessage(_) | Request::SendStreamingMessage(_) => {
            match read_update(text, spelling, dialect, limits)? {
                Update::Task(view) => Ok(Reply::SentTask(view)),
                Update::Message(message) => Ok(Reply::SentMessage(message)),
                Update::Status(_) | Update::Artifact(_) => Err(ProtocolError::invalid(
                    "result",
                    "is a change of a task; a send is answered with a task or a message",
                )),
            }
        }
        Request::GetTask { .. } | Request::CancelTask { .. } | Request::SubscribeToTask { .. } => {
            let task = read_task(text, spelling, dialect, limits)?;
            Ok(Reply::Task(TaskView::whole(task.into())))
        }
        Request::ListTasks(_) => read_tasks(text, spelling, dialect, limits).map(Reply::Tasks),
        Request::CreatePushConfig(_) | Request::GetPushConfig { .. } => {
            read_push_config(text, spelling, limits).map(Reply::PushConfig)
        }
        Request::ListPushConfigs { .. } => read_push_configs(text, spelling, limits).map(Reply::PushConfigs),
        // A deletion has no result; that it is no error is enough.
        Request::DeletePushConfig { .. } => Ok(Reply::Deleted),
        Request::GetExtendedAgentCard => read_card(text, limits).map(|card| Reply::Card(card.into())),
    }
}

fn read_tasks(
    text: &[u8],
    spelling: &Spelling,
    dialect: Dialect,
    limits: &DecodeLimits,
) -> Result<TaskPage, ProtocolError> {
    let page: Tasks<'_> = read_body(text)?;
    let mut check = Check::new(limits);
    let tasks = page.tasks.unwrap_or_default();
    let tasks = check.bounded(format_args!("tasks"), "tasks", usize::MAX, tasks);
    let read = |(i, Obj(task)): (usize, Obj<Task<'_>>)| {
        TaskView::whole(task.read(&mut check, format_args!("tasks[{i}]"), spelling, dialect).into())
    };
    let tasks: Vec<TaskView> = tasks.into_iter().enumerate().map(read).collect();
    let count = tasks.len();
    let page = TaskPage {
        next_page_token: check.optional_line(format_args!("nextPageToken"), page.next_page_token).unwrap_or_default(),
        page_size: page.page_size.unwrap_or_else(|| u32::try_from(count).unwrap_or(u32::MAX)),
        total_size: page.total_size.unwrap_or(count as u64),
        tasks,
    };
    check.finish(page)
}

/// A list of webhooks as it is read. In 0.3 over JSON-RPC the list itself is the answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configs<'a> {
    #[serde(borrow)]
    configs: Option<List<Raw<'a>>>,
    #[serde(borrow, alias = "next_page_token")]
    next_page_token: Option<Text<'a>>,
}

fn read_push_configs(text: &[u8], spelling: &Spelling, limits: &DecodeLimits) -> Result<PushConfigPage, ProtocolError> {
    let wrapped;
    let text = match spelling.push {
        PushForm::OfTask => {
            wrapped = [b"{\"configs\":", text, b"}"].concat();
            &wrapped
        }
        PushForm::Flat | PushForm::Resource => text,
    };
    let page: Configs<'_> = read_body(text)?;
    let mut check = Check::new(limits);
    let configs = page.configs.unwrap_or_default();
    let configs = check.bounded(format_args!("configs"), "configs", limits.list_items_max, configs);
    let token = check.optional_line(format_args!("nextPageToken"), page.next_page_token);
    let mut read = Vec::with_capacity(configs.len());
    for (i, config) in configs.iter().enumerate() {
        read.push(
            read_push_config(config.get().as_bytes(), spelling, limits)
                .map_err(|error| error.within(&format!("configs[{i}]")))?,
        );
    }
    check.finish(PushConfigPage { configs: read, next_page_token: token.unwrap_or_default() })
}

/// Reads a task that is the whole answer.
///
/// # Errors
/// As [`read_update`].
pub fn read_task(
    text: &[u8],
    spelling: &Spelling,
    dialect: Dialect,
    limits: &DecodeLimits,
) -> Result<model::Task, ProtocolError> {
    let mut check = Check::new(limits);
    let task = read_body::<Task<'_>>(text)?.read(&mut check, format_args!("task"), spelling, dialect);
    check.finish(task)
}

/// Reads a webhook that is the whole answer.
///
/// # Errors
/// As [`read_update`].
pub fn read_push_config(
    text: &[u8],
    spelling: &Spelling,
    limits: &DecodeLimits,
) -> Result<model::PushConfig, ProtocolError> {
    let mut check = Check::new(limits);
    let config = match spelling.push {
        PushForm::Flat => read_body::<PushConfig<'_>>(text)?.read(&mut check, format_args!(""), spelling).1,
        PushForm::OfTask | PushForm::Resource => {
            read_body::<TaskPushConfig<'_>>(text)?.read_reply(&mut check, spelling)
        }
    };
    check.finish(config)
}

/// Reads an update of a stream, or what a send is answered with.
///
/// # Errors
/// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming the field.
pub fn read_update(
    text: &[u8],
    spelling: &Spelling,
    dialect: Dialect,
    limits: &DecodeLimits,
) -> Result<Update, ProtocolError> {
    let mut check = Check::new(limits);
    let response = if spelling.wraps { read_body(text)? } else { unwrapped(text)? };
    let update = match response {
        StreamResponse { task: Some(task), .. } => {
            let task = task.0.read(&mut check, format_args!("task"), spelling, dialect);
            Update::Task(TaskView::whole(Arc::new(task)))
        }
        StreamResponse { message: Some(message), .. } => {
            Update::Message(message.0.read(&mut check, format_args!("message"), spelling).into())
        }
        StreamResponse { status_update: Some(update), .. } => {
            Update::Status(update.0.read(&mut check, format_args!("statusUpdate"), spelling))
        }
        StreamResponse { artifact_update: Some(update), .. } => {
            Update::Artifact(update.0.read(&mut check, format_args!("artifactUpdate"), spelling))
        }
        _ => {
            let expected = "holds none of task, message, statusUpdate and artifactUpdate";
            return Err(ProtocolError::invalid("result", expected));
        }
    };
    check.finish(update)
}

fn boxed<T>(value: T) -> Option<Box<Obj<T>>> {
    Some(Box::new(Obj(value)))
}

/// The member of 0.3 in which a reply says what it is.
fn unwrapped(text: &[u8]) -> Result<StreamResponse<'_>, ProtocolError> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow)]
        kind: Option<Text<'a>>,
    }
    let Kind { kind } = read_body(text)?;
    let mut response = StreamResponse::default();
    match kind.as_ref().map(|kind| kind.0.as_ref()) {
        Some("message") => response.message = boxed(read_body(text)?),
        Some("status-update") => response.status_update = boxed(read_body(text)?),
        Some("artifact-update") => response.artifact_update = boxed(read_body(text)?),
        // Servers of 0.2 leave it out, and a task is what most of them say.
        Some("task") | None => response.task = boxed(read_body(text)?),
        Some(other) => {
            let description = format!("is {other}, which is none of task, message, status-update and artifact-update");
            return Err(ProtocolError::invalid("kind", description));
        }
    }
    Ok(response)
}
