//! The calls as they are sent over each transport, and how HTTP+JSON sends them: verb, path and query, body. In 1.0 a tenant stands in
//! front of the path, in 0.3 all paths are below `/v1`.

use crate::call::{ListTasks, Request, SendMessage};
use crate::dialect::outgoing::{OutgoingCall, Transport, WrittenCall, push_segment};
use crate::error::ProtocolError;
use crate::model::{ConfigId, TaskId};

use super::call::{BareParams, write_call, write_send};
use super::push::{CreateConfig, WrittenConfig};
use super::{PushForm, Spelling, put};
use crate::dialect::json::{Raw, Text};

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

/// A call as HTTP sends it. None for a call that this version does not have: 0.3 has no list of tasks.
#[must_use]
pub fn write_http_call(request: &Request, tenant: Option<&str>, spelling: &Spelling) -> Option<WrittenCall> {
    let is_1_0 = spelling.push == PushForm::Flat;
    let mut at = PathAndQuery { path: String::with_capacity(64), has_query: false };
    // What stands in the path need not stand in the body.
    let tenant = match (is_1_0, tenant) {
        (true, tenant) => {
            tenant.into_iter().for_each(|tenant| at.segment(tenant));
            None
        }
        (false, tenant) => {
            at.segment("v1");
            tenant
        }
    };
    let send = |send: &SendMessage| {
        let mut body = Vec::with_capacity(512);
        write_send(send, tenant, spelling, &mut body);
        body
    };
    let (verb, body) = match request {
        Request::SendMessage(message) => {
            at.path.push_str("/message:send");
            ("POST", send(message))
        }
        Request::SendStreamingMessage(message) => {
            at.path.push_str("/message:stream");
            ("POST", send(message))
        }
        Request::GetTask { id, history_length } => {
            at.task(id);
            at.query("historyLength", history_length.map(|length| length.to_string()).as_deref());
            at.query("tenant", tenant);
            ("GET", Vec::new())
        }
        Request::ListTasks(_) if !is_1_0 => return None,
        Request::ListTasks(list) => {
            at.segment("tasks");
            at.list(list, spelling);
            ("GET", Vec::new())
        }
        Request::CancelTask { id, metadata } => {
            at.task(id);
            at.path.push_str(":cancel");
            let mut body = Vec::with_capacity(64);
            let metadata = metadata.as_ref().map(Raw::from);
            put(&mut body, &BareParams { tenant: tenant.map(Text::from), metadata });
            ("POST", body)
        }
        Request::SubscribeToTask { id } => {
            at.task(id);
            at.path.push_str(":subscribe");
            at.query("tenant", tenant);
            ("GET", Vec::new())
        }
        Request::CreatePushConfig(config) => {
            at.configs(&config.task_id);
            let mut body = Vec::with_capacity(256);
            match is_1_0 {
                true => put(&mut body, &WrittenConfig::of(config, spelling)),
                false => put(&mut body, &CreateConfig::of(config, tenant.map(Text::from), spelling)),
            }
            ("POST", body)
        }
        Request::GetPushConfig { task_id, id } => {
            at.config(task_id, id);
            at.query("tenant", tenant);
            ("GET", Vec::new())
        }
        Request::ListPushConfigs { task_id, page_size, page_token } => {
            at.configs(task_id);
            if is_1_0 {
                at.query("pageSize", page_size.map(|size| size.to_string()).as_deref());
                at.query("pageToken", page_token.as_deref());
            }
            at.query("tenant", tenant);
            ("GET", Vec::new())
        }
        Request::DeletePushConfig { task_id, id } => {
            at.config(task_id, id);
            at.query("tenant", tenant);
            ("DELETE", Vec::new())
        }
        Request::GetExtendedAgentCard => {
            at.segment(if is_1_0 { "extendedAgentCard" } else { "card" });
            at.query("tenant", tenant);
            ("GET", Vec::new())
        }
    };
    Some(WrittenCall::Http { verb, path: at.path, body })
}

/// A path with its query, while it is being built.
struct PathAndQuery {
    path: String,
    has_query: bool,
}

impl PathAndQuery {
    fn segment(&mut self, segment: &str) {
        self.path.push('/');
        push_segment(&mut self.path, segment);
    }

    fn task(&mut self, id: &TaskId) {
        self.segment("tasks");
        self.segment(id.as_str());
    }

    fn configs(&mut self, task: &TaskId) {
        self.task(task);
        self.segment("pushNotificationConfigs");
    }

    fn config(&mut self, task: &TaskId, id: &ConfigId) {
        self.configs(task);
        self.segment(id.as_str());
    }

    fn query(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        self.path.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.path.push_str(name);
        self.path.push('=');
        push_segment(&mut self.path, value);
    }

    fn list(&mut self, list: &ListTasks, spelling: &Spelling) {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        self.query("contextId", list.context_id.as_ref().map(|id| id.as_str()));
        self.query("status", list.state.map(|state| spelling.state(state)));
        self.query("pageSize", number(list.page_size).as_deref());
        self.query("pageToken", list.page_token.as_deref());
        self.query("historyLength", number(list.history_length).as_deref());
        self.query("statusTimestampAfter", list.status_since.map(|at| at.to_string()).as_deref());
        self.query("includeArtifacts", list.include_artifacts.then_some("true"));
    }
}
