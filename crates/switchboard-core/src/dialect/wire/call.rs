//! Requests as they stand in a JSON-RPC call or an HTTP body.

use serde::{Deserialize, Serialize};

use crate::call::{ListTasks, Request, SendMessage};
use crate::dialect::json::{Check, Int, LazyMember, List, NameOrNumber, Obj, Raw, Text};
use crate::model::{self, ConfigId, Role, TaskId, TaskState};

use super::message::{Message, texts_of};
use super::push::{PushConfig, WrittenConfig};
use super::{PartForm, PushForm, Spelling, put};

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

/// The tenant that a call names, and what it asks for.
type Asked = (Option<String>, Request);

impl TaskParams<'_> {
    pub(in crate::dialect) fn read_get(self, check: &mut Check<'_>) -> Asked {
        let id = check.required_id(format_args!("id"), self.id);
        let history_length = check.only(format_args!("historyLength"), self.history_length);
        let history_length = check.history_length(format_args!("historyLength"), history_length);
        (check.id(format_args!("tenant"), self.tenant), Request::GetTask { id, history_length })
    }

    pub(in crate::dialect) fn read_cancel(self, check: &mut Check<'_>) -> Asked {
        let id = check.required_id(format_args!("id"), self.id);
        let metadata = check.object(format_args!("metadata"), self.metadata);
        (check.id(format_args!("tenant"), self.tenant), Request::CancelTask { id, metadata })
    }

    pub(in crate::dialect) fn read_subscribe(self, check: &mut Check<'_>) -> Asked {
        let id = check.required_id(format_args!("id"), self.id);
        (check.id(format_args!("tenant"), self.tenant), Request::SubscribeToTask { id })
    }
}

impl BareParams<'_> {
    pub(in crate::dialect) fn read_extended_card(self, check: &mut Check<'_>) -> Asked {
        (check.id(format_args!("tenant"), self.tenant), Request::GetExtendedAgentCard)
    }
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
                    let mut beside = |name, text| check.only(format_args!("{name}"), text);
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
        let config = check.only(format_args!("configuration.{name}"), config);
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
        let flag = check.only(format_args!("configuration.{name}"), flag);
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
