//! Requests as they stand in a JSON-RPC call or an HTTP body, and replies.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::call::{ListTasks, PushConfigPage, Reply, Request, SendMessage, TaskPage};
use crate::dialect::json::{
    Check, DecodeLimits, Int, LazyMember, List, NameOrNumber, Obj, Raw, Text, append, read_body, write_array,
};
use crate::dialect::outgoing::{OutgoingCall, Transport, WrittenCall};
use crate::error::ProtocolError;
use crate::model::{self, ConfigId, Dialect, Role, TaskId, TaskState, TaskView, Update};

use super::card::read_card;
use super::http::write_http_call;
use super::message::{Message, texts_of};
use super::push::{PushConfig, TaskPushConfig, WrittenConfig};
use super::task::{ArtifactUpdate, StatusUpdate, StreamResponse, Task, Wrapped};
use super::{PartForm, PushForm, Spelling};

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct SendParams<'a> {
    #[serde(borrow)]
    tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "request")]
    message: Option<Obj<Message<'a>>>,
    #[serde(borrow)]
    configuration: Option<Box<Obj<Configuration<'a>>>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
    /// Belongs into the message; a sample of the 0.2 specification has it here.
    #[serde(borrow)]
    message_id: Option<LazyMember<'a, Text<'a>>>,
    /// Belongs into the message; some clients have it here.
    #[serde(borrow)]
    context_id: Option<LazyMember<'a, Text<'a>>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration<'a> {
    #[serde(borrow, alias = "accepted_output_modes")]
    accepted_output_modes: Option<List<Text<'a>>>,
    /// The webhook of 1.0, of 0.3 in its schema, and in its proto. Boxed, because few requests have one and each would
    /// be larger by its size.
    #[serde(borrow, alias = "task_push_notification_config")]
    task_push_notification_config: Option<LazyMember<'a, Box<Obj<PushConfig<'a>>>>>,
    #[serde(borrow)]
    push_notification_config: Option<LazyMember<'a, Box<Obj<PushConfig<'a>>>>>,
    #[serde(borrow, alias = "push_notification")]
    push_notification: Option<LazyMember<'a, Box<Obj<PushConfig<'a>>>>>,
    #[serde(alias = "history_length")]
    history_length: Option<Int>,
    #[serde(borrow, alias = "return_immediately")]
    return_immediately: Option<LazyMember<'a, bool>>,
    #[serde(borrow)]
    blocking: Option<LazyMember<'a, bool>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct ListTasksParams<'a> {
    #[serde(borrow)]
    pub(in crate::dialect) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    pub(in crate::dialect) context_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(in crate::dialect) status: Option<NameOrNumber<'a>>,
    #[serde(alias = "page_size")]
    pub(in crate::dialect) page_size: Option<Int>,
    #[serde(borrow, alias = "page_token")]
    pub(in crate::dialect) page_token: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    pub(in crate::dialect) history_length: Option<Int>,
    #[serde(borrow, alias = "status_timestamp_after")]
    pub(in crate::dialect) status_timestamp_after: Option<Text<'a>>,
    #[serde(alias = "include_artifacts")]
    pub(in crate::dialect) include_artifacts: Option<bool>,
}

/// What names no task: asking for the extended card, and the body of a cancel over HTTP, whose path has the id.
#[derive(Default, Deserialize, Serialize)]
pub(in crate::dialect) struct BareParams<'a> {
    #[serde(borrow)]
    pub(in crate::dialect) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(in crate::dialect) metadata: Option<Raw<'a>>,
}

/// What names a task: getting, canceling and following it.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct TaskParams<'a> {
    #[serde(borrow)]
    pub(in crate::dialect) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(in crate::dialect) id: Option<Text<'a>>,
    #[serde(borrow, alias = "history_length")]
    pub(in crate::dialect) history_length: Option<LazyMember<'a, Int>>,
    #[serde(borrow)]
    pub(in crate::dialect) metadata: Option<Raw<'a>>,
}

/// Getting, listing and deleting webhooks. In 1.0 `id` is the webhook's, in 0.3 the task's.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct PushParams<'a> {
    #[serde(borrow)]
    pub(in crate::dialect) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    pub(in crate::dialect) task_id: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow)]
    pub(in crate::dialect) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(in crate::dialect) push_notification_config_id: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow, alias = "page_size")]
    pub(in crate::dialect) page_size: Option<LazyMember<'a, Int>>,
    #[serde(borrow, alias = "page_token")]
    pub(in crate::dialect) page_token: Option<LazyMember<'a, Text<'a>>>,
}

impl<'a> SendParams<'a> {
    pub(in crate::dialect) fn of(send: &'a SendMessage, tenant: Option<&'a str>, spelling: &'a Spelling) -> Self {
        let push_config =
            send.push_config.as_ref().map(|own| LazyMember::Own(Box::new(Obj(PushConfig::of(own, spelling)))));
        let mut configuration = Configuration {
            accepted_output_modes: texts_of(send.accepted_output_modes.iter().map(String::as_str)),
            history_length: send.history_length.and_then(|length| i32::try_from(length).ok()).map(Int),
            ..Configuration::default()
        };
        match spelling.push {
            PushForm::Flat => {
                configuration.task_push_notification_config = push_config;
                configuration.return_immediately = send.return_immediately.then_some(LazyMember::Own(true));
            }
            PushForm::OfTask => {
                configuration.push_notification_config = push_config;
                configuration.blocking = Some(LazyMember::Own(!send.return_immediately));
            }
            PushForm::Resource => {
                configuration.push_notification = push_config;
                configuration.blocking = Some(LazyMember::Own(!send.return_immediately));
            }
        }
        Self {
            tenant: tenant.map(Text::from),
            message: Some(Obj(Message::of(&send.message, spelling))),
            configuration: Some(Box::new(Obj(configuration))),
            metadata: send.metadata.as_ref().map(Raw::from),
            ..Self::default()
        }
    }

    pub(in crate::dialect) fn read(self, check: &mut Check<'_>, spelling: &Spelling) -> (Option<String>, SendMessage) {
        let tenant = check.id(format_args!("tenant"), self.tenant);
        let message = match self.message {
            Some(Obj(mut message)) => {
                if spelling.parts == PartForm::Kind {
                    let mut beside =
                        |name, text: Option<LazyMember<'a, Text<'a>>>| text?.read(check, format_args!("{name}"));
                    message.message_id = message.message_id.or_else(|| beside("messageId", self.message_id));
                    message.context_id = message.context_id.or_else(|| beside("contextId", self.context_id));
                }
                message.read(check, format_args!("message"), spelling)
            }
            None => {
                check.violation(format_args!("message"), "is required");
                model::Message::new(Role::User, "", Vec::new())
            }
        };
        let mut send = SendMessage {
            open_as: None,
            message,
            accepted_output_modes: Vec::new(),
            push_config: None,
            history_length: None,
            return_immediately: false,
            metadata: check.object(format_args!("metadata"), self.metadata),
        };
        if let Some(configuration) = self.configuration {
            configuration.0.read(check, spelling, &mut send);
        }
        (tenant, send)
    }
}

impl<'a> Configuration<'a> {
    fn read(self, check: &mut Check<'_>, spelling: &Spelling, send: &mut SendMessage) {
        send.accepted_output_modes =
            check.lines(format_args!("configuration.acceptedOutputModes"), self.accepted_output_modes);
        let (name, config) = match spelling.push {
            PushForm::Flat => ("taskPushNotificationConfig", self.task_push_notification_config),
            PushForm::OfTask => ("pushNotificationConfig", self.push_notification_config),
            PushForm::Resource => ("pushNotification", self.push_notification),
        };
        let config = config.and_then(|config| config.read(check, format_args!("configuration.{name}")));
        send.push_config = config.map(|config| config.0.read(check, format_args!("configuration.{name}."), spelling).1);
        let history_length = check.history_length(format_args!("configuration.historyLength"), self.history_length);
        send.history_length = match spelling.push {
            PushForm::Flat => history_length,
            // A number without presence: 0 is none.
            PushForm::OfTask | PushForm::Resource => history_length.filter(|length| *length > 0),
        };
        let (name, flag) = match spelling.push {
            PushForm::Flat => ("returnImmediately", self.return_immediately),
            PushForm::OfTask | PushForm::Resource => ("blocking", self.blocking),
        };
        let flag = flag.and_then(|flag| flag.read(check, format_args!("configuration.{name}")));
        send.return_immediately = match spelling.push {
            PushForm::Flat => flag.unwrap_or_default(),
            // The schema leaves open what an absent flag means. Waiting is what most servers of its time did.
            PushForm::OfTask => flag == Some(false),
            // A flag without presence: absent is false. Without any configuration the client said nothing, and the send
            // waits.
            PushForm::Resource => !flag.unwrap_or_default(),
        };
    }
}

impl<'a> ListTasksParams<'a> {
    fn of(list: &'a ListTasks, spelling: &Spelling) -> Self {
        let number = |number: Option<u32>| number.and_then(|number| i32::try_from(number).ok()).map(Int);
        Self {
            tenant: None,
            context_id: list.context_id.as_ref().map(|id| Text::from(id.as_str())),
            status: list.state.map(|state| NameOrNumber::Name(spelling.state(state).into())),
            page_size: number(list.page_size),
            page_token: list.page_token.as_deref().map(Text::from),
            history_length: number(list.history_length),
            status_timestamp_after: list
                .status_since
                .map(|at| Text(String::from_utf8_lossy(&at.to_rfc3339()).into_owned().into())),
            include_artifacts: list.include_artifacts.then_some(true),
        }
    }

    pub(in crate::dialect) fn read(self, check: &mut Check<'_>, spelling: &Spelling) -> ListTasks {
        ListTasks {
            context_id: check.id(format_args!("contextId"), self.context_id),
            state: self.status.and_then(|sent| read_filter(check, &sent, spelling)),
            page_size: check.page_size(self.page_size),
            page_token: check.optional_line(format_args!("pageToken"), self.page_token),
            history_length: check.history_length(format_args!("historyLength"), self.history_length),
            status_since: check.timestamp(format_args!("statusTimestampAfter"), self.status_timestamp_after),
            include_artifacts: self.include_artifacts.unwrap_or_default(),
        }
    }
}

/// A state to filter by; the unspecified one filters nothing.
fn read_filter(check: &mut Check<'_>, sent: &NameOrNumber<'_>, spelling: &Spelling) -> Option<TaskState> {
    spelling.read_state(sent).unwrap_or_else(|| {
        let description = format!("{sent} is not a task state; use a name such as TASK_STATE_WORKING");
        check.violation(format_args!("status"), description);
        None
    })
}

/// A call as JSON-RPC sends it: the name of its method, and its params, which are appended to `out`. None for a call that this
/// version does not have: 0.3 has no list of tasks.
#[must_use]
pub fn write_call(
    request: &Request,
    tenant: Option<&str>,
    spelling: &Spelling,
    out: &mut Vec<u8>,
) -> Option<&'static str> {
    let is_1_0 = spelling.push == PushForm::Flat;
    let tenant = tenant.map(Text::from);
    let (of_1_0, of_0_3) = match request {
        Request::SendMessage(send) => {
            write_send(send, tenant.as_ref().map(|tenant| tenant.0.as_ref()), spelling, out);
            ("SendMessage", "message/send")
        }
        Request::SendStreamingMessage(send) => {
            write_send(send, tenant.as_ref().map(|tenant| tenant.0.as_ref()), spelling, out);
            ("SendStreamingMessage", "message/stream")
        }
        Request::GetTask { id, history_length } => {
            let history_length =
                history_length.and_then(|length| i32::try_from(length).ok()).map(Int).map(LazyMember::Own);
            let id = Some(Text::from(id.as_str()));
            put(out, &TaskParams { tenant, id, history_length, metadata: None });
            ("GetTask", "tasks/get")
        }
        Request::ListTasks(_) if !is_1_0 => return None,
        Request::ListTasks(list) => {
            put(out, &ListTasksParams { tenant, ..ListTasksParams::of(list, spelling) });
            ("ListTasks", "")
        }
        Request::CancelTask { id, metadata } => {
            let (id, metadata) = (Some(Text::from(id.as_str())), metadata.as_ref().map(Raw::from));
            put(out, &TaskParams { tenant, id, history_length: None, metadata });
            ("CancelTask", "tasks/cancel")
        }
        Request::SubscribeToTask { id } => {
            let id = Some(Text::from(id.as_str()));
            put(out, &TaskParams { tenant, id, ..TaskParams::default() });
            ("SubscribeToTask", "tasks/resubscribe")
        }
        Request::CreatePushConfig(config) => {
            put(out, &WrittenConfig::of(config, spelling).for_tenant(tenant));
            ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set")
        }
        Request::GetPushConfig { task_id, id } => {
            put(out, &PushParams::of(task_id, Some(id), tenant, is_1_0));
            ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get")
        }
        Request::ListPushConfigs { task_id, page_size, page_token } => {
            let mut params = PushParams::of(task_id, None, tenant, is_1_0);
            if is_1_0 {
                params.page_size = page_size.and_then(|size| i32::try_from(size).ok()).map(Int).map(LazyMember::Own);
                params.page_token = page_token.as_deref().map(Text::from).map(LazyMember::Own);
            }
            put(out, &params);
            ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list")
        }
        Request::DeletePushConfig { task_id, id } => {
            put(out, &PushParams::of(task_id, Some(id), tenant, is_1_0));
            ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete")
        }
        Request::GetExtendedAgentCard => {
            put(out, &BareParams { tenant, metadata: None });
            ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard")
        }
    };
    Some(if is_1_0 { of_1_0 } else { of_0_3 })
}

/// A call as it is sent over the transport that it names.
///
/// # Errors
/// [`ProtocolError::UnsupportedOperation`] for a call that this version, which is called `name`, does not have.
pub(in crate::dialect) fn write_outgoing(
    call: &OutgoingCall<'_>,
    spelling: &Spelling,
    name: &str,
) -> Result<WrittenCall, ProtocolError> {
    let written = match call.over {
        Transport::Http => write_http_call(call.request, call.tenant, spelling),
        Transport::JsonRpc => {
            let mut params = Vec::with_capacity(512);
            let method = write_call(call.request, call.tenant, spelling, &mut params);
            method.map(|method| WrittenCall::JsonRpc { method, params })
        }
    };
    written.ok_or_else(|| call.not_in(name))
}

/// Writes a send, as it stands in the params of JSON-RPC and in the body of HTTP.
pub fn write_send(send: &SendMessage, tenant: Option<&str>, spelling: &Spelling, out: &mut Vec<u8>) {
    put(out, &SendParams::of(send, tenant, spelling));
}

impl<'a> PushParams<'a> {
    /// What names a webhook of a task, or all of them.
    fn of(task: &'a TaskId, config: Option<&'a ConfigId>, tenant: Option<Text<'a>>, is_1_0: bool) -> Self {
        let (task, config) = (Some(Text::from(task.as_str())), config.map(|id| Text::from(id.as_str())));
        match is_1_0 {
            true => Self { tenant, task_id: task.map(LazyMember::Own), id: config, ..Self::default() },
            false => {
                let push_notification_config_id = config.map(LazyMember::Own);
                Self { tenant, id: task, push_notification_config_id, ..Self::default() }
            }
        }
    }
}

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

/// Appends an object of this form. Nothing in a form can fail to be written.
pub(super) fn put<T: Serialize>(out: &mut Vec<u8>, form: &T) {
    append(out, form).expect("every key of a form is a text");
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

/// Writes a message.
pub fn write_message(message: &model::Message, spelling: &Spelling, out: &mut Vec<u8>) {
    put(out, &Message::of(message, spelling));
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
