//! `switchboard task push-config listen`: receives the updates of a task at a webhook of its own until there is nothing more to wait for,
//! and removes the webhook again.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::Service;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use switchboard::client::{WebhookReceiver, WebhookUpdate, new_message_id};
use switchboard::model::{PushConfig, TaskView, Update};
use switchboard::{Task, TaskId};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::error::ClientError;
use super::follow::{Follower, encoded};
use super::options::{CommonArgs, Flags};
use super::session::{Agent, CALL_MAX, Session};
use super::task_args::TaskArgs;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connections that agents may have open at once; a further one waits.
const CONNECTIONS_MAX: usize = 64;
/// Updates that wait to be printed.
const UPDATES_WAITING_MAX: usize = 256;

#[derive(Args, Clone, Debug)]
pub(crate) struct ListenArgs {
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Address to listen on; other machines reach it only if it is theirs to reach
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// URL by which the agent reaches it [default: http and the address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl ListenArgs {
    pub(crate) fn flags(&self) -> Flags {
        self.task.add_to(self.common.flags())
    }
}

/// # Errors
/// When the webhook cannot be registered, or nothing can be received.
pub(crate) async fn run(session: &Session, agent: &Agent, args: &ListenArgs) -> Result<(), ClientError> {
    let task = args.task.task(session)?;
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.map_err(|error| ClientError::usage(format!("--listen {}: {error}", args.listen)))?;
    let address = listener.local_addr().map_err(ClientError::internal)?;
    let url = args.public_url.clone().unwrap_or_else(|| format!("http://{address}/"));
    // Two random ids are a token that other senders cannot guess.
    let token = format!("{}{}", new_message_id(), new_message_id());
    let (sender, mut updates) = mpsc::channel(UPDATES_WAITING_MAX);
    let wanted = task.clone();
    let receiver = WebhookReceiver::builder().token(&token).build(move |update: WebhookUpdate| {
        let (sender, is_ours) = (sender.clone(), update.task_id() == Some(&wanted));
        async move {
            match is_ours {
                true => sender.send(update.update).await.map_err(Into::into),
                false => Err("this webhook is for another task".into()),
            }
        }
    });
    let receiver = receiver.map_err(ClientError::internal)?;
    let serving = serve(listener, TowerToHyperService::new(receiver));
    let config =
        PushConfig { id: "".into(), task_id: task.clone(), url: url.clone(), token: Some(token), authentication: None };
    let client = agent.client.clone().with_deadline(CALL_MAX);
    let following = async {
        let made = client.set_push_config(config).await.map_err(|error| agent.error(&error))?;
        session.printer.note(format!("Listening at {url} for updates of task {task}"));
        let outcome = follow(session, agent, &task, &mut updates).await;
        // The webhook is of no use to anyone once we have gone.
        let _ = client.delete_push_config(&task, &made.id).await;
        outcome
    };
    let last = tokio::select! {
        outcome = following => outcome?,
        never = serving => match never {},
    };
    let follower = Follower { session, agent, is_live: is_live(session) };
    if session.printer.is_json() && !follower.is_live {
        session.printer.json(encoded(&switchboard_core::call::Reply::Task(TaskView::whole(last.clone()))))?;
    }
    follower.tell_way_on(&last, follower.is_live)
}

fn is_live(session: &Session) -> bool {
    session.printer.is_live || !session.printer.is_json()
}

/// Prints updates until the task has settled.
async fn follow(
    session: &Session,
    agent: &Agent,
    id: &TaskId,
    updates: &mut mpsc::Receiver<Update>,
) -> Result<Arc<Task>, ClientError> {
    let follower = Follower { session, agent, is_live: is_live(session) };
    let client = agent.client.clone().with_deadline(CALL_MAX);
    // A task that has settled before the webhook was there posts nothing more.
    let known = client.task(id).await.map_err(|error| agent.error(&error))?;
    session.learn_task(&known);
    if known.state().is_settled() {
        if follower.is_live {
            follower.print(&Update::Task(TaskView::whole(known.clone())))?;
        }
        return Ok(known);
    }
    while let Some(update) = updates.recv().await {
        if follower.is_live {
            follower.print(&update)?;
        }
        let is_settled = match &update {
            Update::Task(view) => view.task.state().is_settled(),
            Update::Status(update) => update.status.state.is_settled(),
            Update::Message(_) | Update::Artifact(_) => false,
        };
        if is_settled {
            return Ok(follower.whole(known).await);
        }
    }
    Ok(follower.whole(known).await)
}

/// Serves what receives webhooks for ever.
#[expect(clippy::disallowed_methods, reason = "the connections are dropped with the set that holds them")]
pub(crate) async fn serve<S, B>(listener: TcpListener, receiver: S) -> Infallible
where
    S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        let Ok((stream, _)) = listener.accept().await else {
            // The system is out of something; a connection that ends gives it back.
            connections.join_next().await;
            continue;
        };
        let service = receiver.clone();
        connections.spawn(async move {
            // A connection that breaks is the other side's to open again.
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
