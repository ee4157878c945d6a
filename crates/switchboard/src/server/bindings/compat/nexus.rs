//! NEXUS: JSON-RPC whose ids are never null, and tasks whose ids the client may choose.

use switchboard_core::call::{Caller, Reply, Request, SendMessage};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::StreamEvent;
use switchboard_core::dialect::compat::nexus::{self, Call, decode_call};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Message, Task, TaskId, TaskView, Update};

use super::tale::WholeTaskStream;
use super::{CompatCall, CompatDialect, CompatPath, PlainCall, Sent};
use crate::server::bindings::{CallAgent, Rejection};
use crate::server::cards::Subject;
use crate::server::edge::shared::Mounted;

pub(super) struct Nexus;

impl CompatDialect for Nexus {
    fn dialect(&self) -> Dialect {
        Dialect::Nexus
    }

    fn own_place(&self, segments: &[&str]) -> Option<CompatPath> {
        matches!(segments, [] | ["a2a" | "rpc"]).then_some(CompatPath::Endpoint)
    }

    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>) {
        nexus::encode_card(subject.card, base, out);
    }

    fn decode(&self, sent: Sent<'_>) -> Result<(Request, Box<dyn CompatCall>), Rejection> {
        let request = match decode(&sent)? {
            Call::Send { send, id, is_streamed } => {
                let request = match is_streamed {
                    true => Request::SendStreamingMessage(send),
                    false => Request::SendMessage(send),
                };
                return match id {
                    Some(id) => Ok((request, Box::new(NamedTask(id)))),
                    None => Ok((request, Box::new(PlainCall))),
                };
            }
            Call::Follow(id) => Request::SubscribeToTask { id },
            Call::Get(id) => Request::GetTask { id, history_length: None },
            Call::Cancel(id) => Request::CancelTask { id, metadata: None },
        };
        Ok((request, Box::new(PlainCall)))
    }

    fn narrate<'a>(&self, id: &'a str) -> Option<(Box<dyn WholeTaskStream>, &'a str)> {
        Some((Box::new(nexus::WholeTaskStream::default()), id))
    }
}

impl WholeTaskStream for nexus::WholeTaskStream {
    fn take(&mut self, update: &Update) -> StreamEvent {
        nexus::WholeTaskStream::take(self, update)
    }

    fn view(&self) -> Option<TaskView> {
        nexus::WholeTaskStream::view(self)
    }
}

fn decode(sent: &Sent<'_>) -> Result<Call, ProtocolError> {
    let Sent { request, envelope, .. } = sent;
    if envelope.id == "null" {
        let reason = "id must be a string or a number".to_owned();
        return Err(ProtocolError::InvalidRequest { reason });
    }
    let call = decode_call(&envelope.method, envelope.params, &request.shared.decode_limits)?;
    let is_stream = matches!(call, Call::Send { is_streamed: true, .. } | Call::Follow(_));
    if is_stream && request.agent.endpoint.card().capabilities.streaming != Some(true) {
        return Err(ProtocolError::MethodNotFound { method: envelope.method.to_string(), hint: None });
    }
    Ok(call)
}

/// A send to the task that the client has named.
struct NamedTask(TaskId);

impl CompatCall for NamedTask {
    fn call_agent(&mut self) -> Option<CallAgent> {
        let id = self.0.clone();
        Some(Box::new(|agent, mut caller, mut request| {
            Box::pin(async move {
                if let Request::SendMessage(send) | Request::SendStreamingMessage(send) = &mut request {
                    address(agent, &mut caller, send, id).await?;
                }
                agent.endpoint.call(caller, request).await
            })
        }))
    }
}

/// Finds out which task a send means that names one: a task of the caller's goes on, any other name is that of a new task.
/// The gateway repeats what it has sent when no answer comes; what a task was begun with is such a repeat, and must not be
/// said to it twice.
async fn address(
    agent: &Mounted,
    caller: &mut Caller,
    send: &mut SendMessage,
    id: TaskId,
) -> Result<(), ProtocolError> {
    let get = Request::GetTask { id: id.clone(), history_length: None };
    let known = match agent.endpoint.call(caller.clone(), get).await {
        Ok(Reply::Task(view)) => Some(view.task),
        Ok(_) | Err(ProtocolError::TaskNotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    match known {
        Some(task) if !was_begun_with(&task, &send.message) => send.message.task_id = Some(id),
        Some(_) | None => {
            caller.idempotency_key = Some(format!("nexus {id}"));
            send.open_as = Some(id);
        }
    }
    Ok(())
}

fn was_begun_with(task: &Task, message: &Message) -> bool {
    let mut said = task.history.iter().filter(|known| known.role == message.role);
    let is_first = said.next().is_some_and(|first| first.parts == message.parts);
    task.dialect == Dialect::Nexus && is_first && said.next().is_none()
}
