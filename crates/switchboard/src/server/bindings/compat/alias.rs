//! Ids that clients choose for their tasks, which NEXUS lets them do. Such an id is an alias: it names a task of one owner at one
//! agent, and the task itself has an id of ours. That id is computed from the owner, the agent and the alias, so that an alias
//! needs no table, lives exactly as long as its task, and cannot be taken by another owner: whatever others choose leads to
//! other ids, and an id alone opens no foreign task. So nobody learns from an alias whether somebody else uses it.

use std::sync::Arc;

use switchboard_core::call::{BoxFuture, Caller, Owner, Reply, Request};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentName, Task, TaskId, TaskView};
use switchboard_engine::sha256::sha256;

use crate::server::shared::Mounted;

/// An id as a client gave it, and the id of the task that it stands for.
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// What the client calls the task.
    given: TaskId,
    /// The id of that task, if the client chose its name. It may also be that there is no such task.
    own: TaskId,
}

impl Alias {
    pub(crate) fn new(owner: &Owner, agent: &AgentName, given: TaskId) -> Self {
        let own = own_id(owner, agent, &given);
        Self { given, own }
    }

    pub(crate) fn given(&self) -> &TaskId {
        &self.given
    }

    pub(crate) fn own(&self) -> &TaskId {
        &self.own
    }

    /// The task under the name that its client gave it.
    pub(crate) fn renamed(&self, view: TaskView) -> TaskView {
        if view.task.id != self.own {
            return view;
        }
        let task = Task { id: self.given.clone(), ..Task::clone(&view.task) };
        TaskView { task: Arc::new(task), ..view }
    }

    /// The reply with the name that the client gave its task.
    pub(crate) fn renamed_reply(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Task(view) => Reply::Task(self.renamed(view)),
            Reply::SentTask(view) => Reply::SentTask(self.renamed(view)),
            reply => reply,
        }
    }

    /// The refusal with the name that the client gave its task.
    pub(crate) fn renamed_error(&self, error: ProtocolError) -> ProtocolError {
        match error {
            ProtocolError::TaskNotFound { id } if id == self.own => ProtocolError::task_not_found(&self.given),
            ProtocolError::TaskNotCancelable { id, state } if id == self.own => {
                ProtocolError::TaskNotCancelable { id: self.given.clone(), state }
            }
            error => error,
        }
    }
}

/// The id of the task that an owner calls `given` at an agent. It looks like any other id of ours.
fn own_id(owner: &Owner, agent: &AgentName, given: &TaskId) -> TaskId {
    let mut named = Vec::new();
    let parts = ["task alias", owner.tenant.as_str(), owner.principal.as_str(), agent.as_str(), given.as_str()];
    for part in parts {
        // Each part is preceded by its length, so that different parts cannot hash as the same bytes.
        named.extend((part.len() as u64).to_le_bytes());
        named.extend(part.as_bytes());
    }
    let hash = sha256(named);
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash[..16]);
    // Version 8 of RFC 9562: a UUID whose bits the application decides.
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    TaskId::from(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Which of the two readings of an id is tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// The name that a client chose, as most clients of NEXUS do.
    Alias,
    /// An id of ours, as clients of other dialects have.
    Id,
}

/// Asks about a task that may be named by its alias or by its id. The first reading that finds a task counts. If none does, both
/// have been looked up, whether a task of another owner has that name or not.
pub(crate) fn ask_for_task<'a>(
    agent: &'a Mounted,
    caller: Caller,
    request: Request,
    first: First,
) -> BoxFuture<'a, Result<Reply, ProtocolError>> {
    let Some(given) = task_of(&request).cloned() else { return agent.endpoint.call(caller, request) };
    let alias = Alias::new(&caller.owner, &agent.name, given.clone());
    let (one, two) = match first {
        First::Alias => (alias.own.clone(), given),
        First::Id => (given, alias.own.clone()),
    };
    Box::pin(async move {
        let asked = agent.endpoint.call(caller.clone(), about(&request, one)).await;
        let answered = match asked {
            Err(ProtocolError::TaskNotFound { .. }) => agent.endpoint.call(caller, about(&request, two)).await,
            answered => answered,
        };
        answered.map(|reply| alias.renamed_reply(reply)).map_err(|error| alias.renamed_error(error))
    })
}

/// The task that a request is about, if clients may name it by its alias.
pub(crate) fn task_of(request: &Request) -> Option<&TaskId> {
    match request {
        Request::GetTask { id, .. } | Request::CancelTask { id, .. } | Request::SubscribeToTask { id } => Some(id),
        _ => None,
    }
}

/// The same request about another task.
fn about(request: &Request, task: TaskId) -> Request {
    let mut request = request.clone();
    if let Request::GetTask { id, .. } | Request::CancelTask { id, .. } | Request::SubscribeToTask { id } = &mut request
    {
        *id = task;
    }
    request
}
