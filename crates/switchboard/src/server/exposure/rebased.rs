//! An endpoint for requests under another name of this machine. The engine writes links to artifacts with the server's
//! own address; this wrapper replaces it by the name that the request used, so that the client follows links to the
//! same host.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use switchboard_core::call::{BoxFuture, Caller, Endpoint, Frame, Reply, Request, SharedUpdate, UpdateStream};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, Artifact, ArtifactUpdate, Part, PartContent, Task, TaskView, Update};

pub(crate) struct Rebased {
    agent: Arc<dyn Endpoint>,
    links: Arc<Rebase>,
}

impl Rebased {
    /// `own` is the address of the server that links have, `asked` the one they are to have.
    pub(crate) fn new(agent: Arc<dyn Endpoint>, own: &str, asked: &str) -> Self {
        let under = |base: &str| format!("{base}/agents/");
        Self { agent, links: Arc::new(Rebase { from: under(own), to: under(asked) }) }
    }
}

impl Endpoint for Rebased {
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>> {
        let reply = self.agent.call(caller, request);
        Box::pin(async move { reply.await.map(|reply| self.reply(reply)) })
    }

    fn card(&self) -> Arc<AgentCard> {
        self.agent.card()
    }
}

impl Rebased {
    fn reply(&self, reply: Reply) -> Reply {
        let links = &self.links;
        match reply {
            Reply::Task(view) => Reply::Task(links.view(view)),
            Reply::SentTask(view) => Reply::SentTask(links.view(view)),
            Reply::Tasks(mut page) => {
                page.tasks = page.tasks.into_iter().map(|view| links.view(view)).collect();
                Reply::Tasks(page)
            }
            Reply::Stream(updates) => Reply::Stream(Box::pin(Updates { updates, links: links.clone() })),
            reply @ (Reply::SentMessage(_)
            | Reply::PushConfig(_)
            | Reply::PushConfigs(_)
            | Reply::Deleted
            | Reply::Card(_)) => reply,
        }
    }
}

struct Rebase {
    from: String,
    to: String,
}

impl Rebase {
    fn view(&self, view: TaskView) -> TaskView {
        match self.task(&view.task) {
            Some(task) => TaskView { task: Arc::new(task), ..view },
            None => view,
        }
    }

    /// The task with other links; none if it has no link.
    fn task(&self, task: &Task) -> Option<Task> {
        let artifacts: Vec<_> = task.artifacts.iter().map(|artifact| self.artifact(artifact)).collect();
        if artifacts.iter().all(Option::is_none) {
            return None;
        }
        let artifacts = artifacts.into_iter().zip(&task.artifacts).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
        Some(Task { artifacts: artifacts.collect(), ..task.clone() })
    }

    fn artifact(&self, artifact: &Artifact) -> Option<Arc<Artifact>> {
        if !artifact.parts.iter().any(|part| self.path(part).is_some()) {
            return None;
        }
        let part = |part: &Part| match self.path(part) {
            Some(path) => part.clone().with_content(PartContent::Url(format!("{}{path}", self.to))),
            None => part.clone(),
        };
        let parts = artifact.parts.iter().map(part).collect();
        Some(Arc::new(artifact.copy_with_parts(parts)))
    }

    /// What comes after the address in a link to an artifact of this server.
    fn path<'p>(&self, part: &'p Part) -> Option<&'p str> {
        match &part.content {
            PartContent::Url(url) => url.strip_prefix(&self.from),
            PartContent::Text(_) | PartContent::Raw(_) | PartContent::Data(_) => None,
        }
    }

    fn frame(&self, frame: Frame) -> Frame {
        let update = match &frame.update.update {
            Update::Task(view) => {
                self.task(&view.task).map(|task| Update::Task(TaskView { task: Arc::new(task), ..view.clone() }))
            }
            Update::Artifact(update) => self
                .artifact(&update.artifact)
                .map(|artifact| Update::Artifact(ArtifactUpdate { artifact, ..update.clone() })),
            Update::Message(_) | Update::Status(_) => None,
        };
        match update {
            Some(update) => Frame { update: SharedUpdate::new(update), ..frame },
            None => frame,
        }
    }
}

struct Updates {
    updates: UpdateStream,
    links: Arc<Rebase>,
}

impl Stream for Updates {
    type Item = Result<Frame, ProtocolError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.updates.as_mut().poll_next(cx);
        polled.map(|next| next.map(|frame| frame.map(|frame| self.links.frame(frame))))
    }
}
