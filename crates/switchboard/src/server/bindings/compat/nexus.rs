//! NEXUS: JSON-RPC whose ids are never null, and tasks whose ids the client may choose.

use switchboard_core::call::{Caller, Reply, Request, SendMessage};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::StreamEvent;
use switchboard_core::dialect::compat::nexus::{self, Call, decode_call};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentName, Message, Task, TaskId, TaskView, Update};

use super::alias::{Alias, First, ask_for_task};
use super::tale::WholeTaskStream;
use super::{CompatCall, CompatDialect, CompatPath, PlainCall, Sent};
use crate::server::bindings::{CallAgent, Rejection};
use crate::server::cards::{CompatCard, Subject};
use crate::server::shared::Mounted;

pub(super) struct Nexus;

impl CompatCard for Nexus {
    fn dialect(&self) -> Dialect {
        Dialect::Nexus
    }

    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>) {
        nexus::encode_card(subject.card, base, out);
    }
}

impl CompatDialect for Nexus {
    fn own_place(&self, segments: &[&str]) -> Option<CompatPath> {
        matches!(segments, [] | ["a2a" | "rpc"]).then_some(CompatPath::Endpoint)
    }

    fn decode(&self, sent: Sent<'_>) -> Result<(Request, Box<dyn CompatCall>), Rejection> {
        let agent = &sent.request.agent.name;
        let named = |id: &TaskId| Box::new(NamedTask::new(agent.clone(), id.clone()));
        Ok(match decode(&sent)? {
            Call::Send { send, id, is_streamed } => {
                let request = match is_streamed {
                    true => Request::SendStreamingMessage(send),
                    false => Request::SendMessage(send),
                };
                match id {
                    Some(id) => (request, named(&id)),
                    None => (request, Box::new(PlainCall)),
                }
            }
            Call::Follow(id) => (Request::SubscribeToTask { id: id.clone() }, named(&id)),
            Call::Get(id) => (Request::GetTask { id: id.clone(), history_length: None }, named(&id)),
            Call::Cancel(id) => (Request::CancelTask { id: id.clone(), metadata: None }, named(&id)),
        })
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

/// A call about the task that the client has named: by an alias of its own, or by an id of ours.
struct NamedTask {
    agent: AgentName,
    given: TaskId,
    /// Known once the caller is.
    alias: Option<Alias>,
}

impl NamedTask {
    fn new(agent: AgentName, given: TaskId) -> Self {
        Self { agent, given, alias: None }
    }
}

impl CompatCall for NamedTask {
    fn set_caller(&mut self, caller: &mut Caller) {
        self.alias = Some(Alias::new(&caller.owner, &self.agent, self.given.clone()));
    }

    fn call_agent(&mut self) -> Option<CallAgent> {
        let alias = self.alias.clone()?;
        Some(Box::new(|agent, mut caller, mut request| {
            Box::pin(async move {
                let (Request::SendMessage(send) | Request::SendStreamingMessage(send)) = &mut request else {
                    return ask_for_task(agent, caller, request, First::Alias).await;
                };
                address(agent, &mut caller, send, &alias).await?;
                agent.endpoint.call(caller, request).await.map_err(|error| alias.renamed_error(error))
            })
        }))
    }

    fn reply(&mut self, _: &Mounted, reply: Reply) -> Result<Reply, ProtocolError> {
        Ok(match &self.alias {
            Some(alias) => alias.renamed_reply(reply),
            None => reply,
        })
    }

    fn alias(&self) -> Option<&Alias> {
        self.alias.as_ref()
    }
}

/// Finds out which task a send means that names one: a task of the caller's goes on, any other name is the alias of a new task.
/// The gateway repeats what it has sent when no answer comes; what a task was begun with is such a repeat, and must not be
/// said to it twice.
async fn address(
    agent: &Mounted,
    caller: &mut Caller,
    send: &mut SendMessage,
    alias: &Alias,
) -> Result<(), ProtocolError> {
    for id in [alias.own(), alias.given()] {
        let get = Request::GetTask { id: id.clone(), history_length: None };
        match agent.endpoint.call(caller.clone(), get).await {
            Ok(Reply::Task(view)) if was_begun_with(&view.task, &send.message) => break,
            Ok(Reply::Task(_)) => {
                send.message.task_id = Some(id.clone());
                return Ok(());
            }
            Ok(_) | Err(ProtocolError::TaskNotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    caller.idempotency_key = Some(format!("nexus {}", alias.given()));
    send.open_as = Some(alias.own().clone());
    Ok(())
}

fn was_begun_with(task: &Task, message: &Message) -> bool {
    let mut said = task.history.iter().filter(|known| known.role == message.role);
    let is_first = said.next().is_some_and(|first| first.parts == message.parts);
    task.dialect == Dialect::Nexus && is_first && said.next().is_none()
}
