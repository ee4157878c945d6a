//! Selectools: checks in the order of the original (who calls, how large, is it JSON, an object, a request), its texts,
//! HTTP 200 for all but a missing token, one task per message, and no task that could still be canceled.

use http::{HeaderMap, StatusCode, header};
use switchboard_core::call::{Reply, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::selectools::{self, Call, decode_call};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

use super::{CompatCall, CompatDialect, CompatPath, Sent};
use crate::server::bindings::Rejection;
use crate::server::bindings::envelope::Envelope;
use crate::server::cards::{CompatCard, Subject};
use crate::server::shared::{Mounted, Shared};

pub(super) struct Selectools;

impl CompatCard for Selectools {
    fn dialect(&self) -> Dialect {
        Dialect::Selectools
    }

    fn encode_card(&self, subject: &Subject<'_>, _base: &str, out: &mut Vec<u8>) {
        selectools::encode_card(&subject.with_package(), &subject.compat.selectools.card_url, out);
    }
}

impl CompatDialect for Selectools {
    fn own_place(&self, segments: &[&str]) -> Option<CompatPath> {
        matches!(segments, [] | ["a2a"]).then_some(CompatPath::Endpoint)
    }

    /// The whole header is compared in the original, so the scheme has one spelling.
    fn takes_credential(&self, headers: &HeaderMap) -> bool {
        headers.get(header::AUTHORIZATION).is_none_or(|value| value.as_bytes().starts_with(b"Bearer "))
    }

    /// What the body says it is counts for nothing in the original.
    fn checks_content_type(&self) -> bool {
        false
    }

    fn body_bytes_max(&self, shared: &Shared, agent: &Mounted) -> usize {
        agent.compat.selectools.body_bytes_max.min(shared.limits.body_bytes_max)
    }

    fn open<'b>(&self, body: &'b [u8]) -> Result<Envelope<'b>, (ProtocolError, String)> {
        let opened = selectools::Envelope::parse(body).map_err(|(error, id)| (error, id.to_owned()))?;
        Ok(Envelope { method: opened.method.into(), params: opened.params, id: opened.id })
    }

    fn decode(&self, sent: Sent<'_>) -> Result<(Request, Box<dyn CompatCall>), Rejection> {
        let Sent { request, envelope, .. } = sent;
        let call = decode_call(&envelope.method, envelope.params, &request.shared.decode_limits)?;
        let window = &request.agent.compat_clients.window;
        let known = |id: &TaskId| match window.has_passed(id) {
            true => Err(ProtocolError::task_not_found(id)),
            false => Ok(Request::GetTask { id: id.clone(), history_length: None }),
        };
        let (request, call) = match call {
            Call::Send(send) => (Request::SendMessage(send), SelectoolsCall::Send),
            Call::Get(id) => (known(&id)?, SelectoolsCall::Get),
            Call::Cancel(id) => (known(&id)?, SelectoolsCall::Cancel(id)),
        };
        Ok((request, Box::new(call)))
    }

    fn refusal_status(&self, error: &ProtocolError) -> StatusCode {
        match error {
            ProtocolError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
            ProtocolError::PermissionDenied { .. } => StatusCode::FORBIDDEN,
            _ => StatusCode::OK,
        }
    }

    /// The original has no headers for this.
    fn has_hints(&self) -> bool {
        false
    }
}

enum SelectoolsCall {
    Send,
    Get,
    Cancel(TaskId),
}

impl CompatCall for SelectoolsCall {
    fn reply(&mut self, agent: &Mounted, reply: Reply) -> Result<Reply, ProtocolError> {
        match (self, reply) {
            (Self::Send, Reply::SentTask(view)) => {
                agent.compat_clients.window.push(&view.task.id, agent.compat.selectools.tasks_max);
                Ok(Reply::SentTask(view))
            }
            // Whatever can be found was answered, so for its callers it is over.
            (Self::Cancel(id), Reply::Task(view)) => {
                Err(ProtocolError::TaskNotCancelable { id: id.clone(), state: view.task.state() })
            }
            (Self::Cancel(id), _) => Err(ProtocolError::task_not_found(id)),
            (Self::Send | Self::Get, reply) => Ok(reply),
        }
    }
}
