//! Selectools: checks in the order of the original (who calls, how large, is it JSON, an object, a request), its texts,
//! HTTP 200 for all but a missing token, one task per message, and no task that could still be canceled.

use http::{StatusCode, header};
use switchboard_core::call::{BoxFuture, Reply, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::selectools::{self, Call, Envelope, decode_call};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

use super::{Asked, CompatDialect, CompatPlace, Visit};
use crate::server::bindings::Calling;
use crate::server::cards::Subject;
use crate::server::edge::authenticate::{Identified, unauthenticated};
use crate::server::edge::shared::{Head, Mounted, Shared};

pub(super) struct Selectools;

impl CompatDialect for Selectools {
    fn dialect(&self) -> Dialect {
        Dialect::Selectools
    }

    fn own_place<'a>(&self, segments: &[&'a str]) -> Option<CompatPlace<'a>> {
        matches!(segments, [] | ["a2a"]).then_some(CompatPlace::Endpoint)
    }

    fn encode_card(&self, subject: &Subject<'_>, _base: &str, out: &mut Vec<u8>) {
        selectools::encode_card(&subject.with_package(), &subject.compat.settings.selectools.card_url, out);
    }

    /// The whole header is compared in the original, so the scheme has one spelling. What the body says it is counts for
    /// nothing.
    fn identify<'s>(&self, shared: &'s Shared, head: &Head<'_>) -> Result<Identified<'s>, ProtocolError> {
        let headers = head.headers;
        let named = headers.get(header::AUTHORIZATION).is_none_or(|value| value.as_bytes().starts_with(b"Bearer "));
        if named || shared.door.is_open() {
            return shared.identify(head);
        }
        Err(unauthenticated())
    }

    fn body_bytes_max(&self, shared: &Shared, agent: &Mounted) -> usize {
        agent.compat.settings.selectools.body_bytes_max.min(shared.limits.body_bytes_max)
    }

    fn open<'b>(&self, body: &'b [u8]) -> Result<Asked<'b>, (ProtocolError, String)> {
        let Envelope { method, params, id } = Envelope::parse(body).map_err(|(error, id)| (error, id.to_owned()))?;
        Ok(Asked { method: method.into(), params, id })
    }

    fn reply<'v>(&self, visit: Visit<'v>, asked: &'v Asked<'v>) -> BoxFuture<'v, Result<Reply, ProtocolError>> {
        Box::pin(reply(visit, asked))
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

async fn reply(visit: Visit<'_>, asked: &Asked<'_>) -> Result<Reply, ProtocolError> {
    let call = decode_call(&asked.method, asked.params, &visit.shared.decode_limits)?;
    let Visit { agent, head, .. } = visit;
    let caller = visit.caller()?;
    let call_agent = async |request: Request| Calling::begin(head.note, agent, caller, request).reply().await;
    let window = &agent.compat.window;
    let known = |id: &TaskId| match window.has_passed(id) {
        true => Err(ProtocolError::task_not_found(id)),
        false => Ok(Request::GetTask { id: id.clone(), history_length: None }),
    };
    match call {
        Call::Send(send) => {
            let reply = call_agent(Request::SendMessage(send)).await?;
            if let Reply::SentTask(view) = &reply {
                window.push(&view.task.id, agent.compat.settings.selectools.tasks_max);
            }
            Ok(reply)
        }
        Call::Get(id) => call_agent(known(&id)?).await,
        // Whatever can be found was answered, so for its callers it is over.
        Call::Cancel(id) => match call_agent(known(&id)?).await? {
            Reply::Task(view) => Err(ProtocolError::TaskNotCancelable { id, state: view.task.state() }),
            _ => Err(ProtocolError::task_not_found(&id)),
        },
    }
}
