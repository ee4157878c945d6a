//! `switchboard task get`, `cancel`, `list` and `subscribe`.

use std::sync::Arc;

use clap::{Args, Subcommand};
use switchboard::call::{ListTasks, Request};
use switchboard::model::{TaskView, Update};
use switchboard::{ProtocolError, Task, TaskId, TaskState};
use switchboard_core::call::{Reply, TaskPage};

use super::download::DownloadArgs;
use super::error::ClientError;
use super::follow::{Follower, Outcome, encoded};
use super::options::{CommonArgs, Flags, WaitArgs};
use super::push::PushConfigCommand;
use super::render::{self, Lines, state_of};
use super::send::metadata;
use super::session::{Agent, CALL_MAX, Session};
use super::task_args::TaskArgs;

/// All pages of a list together hold no more tasks.
const TASKS_MAX: usize = 100_000;

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum TaskCommand {
    /// Show a task: its state, its artifacts and, if asked for, its history
    Get(GetArgs),
    /// Cancel a task
    Cancel(CancelArgs),
    /// List tasks
    List(ListTasksArgs),
    /// Follow a task until it has ended or asks for something
    Subscribe(SubscribeArgs),
    /// Save the artifacts of a task as files
    Download(DownloadArgs),
    /// Look after the webhooks of a task
    #[command(subcommand)]
    PushConfig(PushConfigCommand),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// Show so many of its latest messages
    #[arg(long, value_name = "N")]
    history: Option<u32>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// Metadata of the request, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct SubscribeArgs {
    #[command(flatten)]
    task: TaskArgs,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ListTasksArgs {
    /// Only tasks in this state, as in working or TASK_STATE_WORKING
    #[arg(long, value_name = "STATE")]
    status: Option<String>,
    /// Only tasks of this context
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    /// How many tasks a page has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    page_size: Option<u32>,
    /// Where the page before ended, as it was printed
    #[arg(long, value_name = "TOKEN")]
    page_token: Option<String>,
    /// All pages
    #[arg(long)]
    all: bool,
    /// With their artifacts
    #[arg(long)]
    artifacts: bool,
    /// With so many of their latest messages
    #[arg(long, value_name = "N")]
    history: Option<u32>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl GetArgs {
    pub(crate) fn flags(&self) -> Flags {
        self.wait.add_to(self.task.add_to(self.common.flags()))
    }
}

impl CancelArgs {
    pub(crate) fn flags(&self) -> Flags {
        self.task.add_to(self.common.flags()).text("metadata", self.metadata.as_ref())
    }
}

impl SubscribeArgs {
    pub(crate) fn flags(&self) -> Flags {
        self.wait.add_to(self.task.add_to(self.common.flags()))
    }
}

impl ListTasksArgs {
    pub(crate) fn flags(&self) -> Flags {
        self.common.flags().text("context-id", self.context_id.as_ref())
    }
}

/// # Errors
/// When the task cannot be had.
pub(crate) async fn get(session: &Session, args: &GetArgs) -> Result<(), ClientError> {
    let id = args.task.task(session)?;
    // Waiting is what `send` does by default. Here only an explicit wish counts.
    let waits = matches!(
        session.settings.value("wait").map(|value| &value.source),
        Some(source) if *source != super::settings::Source::BuiltIn
    ) && session.settings.switch("wait");
    let getting = async {
        let agent = session.agent().await?;
        let mut task = read(&agent, &id, args.history).await?;
        if waits {
            session.learn_task(&task);
            let follower = Follower { session, agent: &agent, is_live: false };
            if !task.state().is_settled() {
                follower.poll(task).await?;
                task = read(&agent, &id, args.history).await?;
            }
        }
        show(session, &agent, &task, args.history.is_some())
    };
    session.bounded(Box::pin(getting)).await
}

async fn read(agent: &Agent, id: &TaskId, history_length: Option<u32>) -> Result<Arc<Task>, ClientError> {
    let request = Request::GetTask { id: id.clone(), history_length };
    match agent.client.clone().with_deadline(CALL_MAX).call(request).await.map_err(|error| agent.error(&error))? {
        Reply::Task(view) => Ok(view.task),
        _ => Err(ClientError::protocol(
            "InvalidAgentResponseError",
            "the agent answered with something else than a task",
        )),
    }
}

fn show(session: &Session, agent: &Agent, task: &Arc<Task>, history: bool) -> Result<(), ClientError> {
    let follower = Follower { session, agent, is_live: false };
    if session.printer.is_json() {
        session.printer.json(encoded(&Reply::Task(TaskView::whole(task.clone()))))?;
    } else {
        let mut lines = Lines::default();
        render::task(&mut lines, task, follower.detail(history));
        session.printer.text(lines.into_text())?;
    }
    follower.tell_way_on(task, false)
}

/// Cancelling a task that is canceled already succeeds, although some agents refuse it.
///
/// # Errors
/// When the task cannot be canceled.
pub(crate) async fn cancel(session: &Session, args: &CancelArgs) -> Result<(), ClientError> {
    let id = args.task.task(session)?;
    let metadata = metadata(session)?;
    let cancelling = async {
        let agent = session.agent().await?;
        let request = Request::CancelTask { id: id.clone(), metadata };
        let task = match agent.client.clone().with_deadline(CALL_MAX).call(request).await {
            Ok(Reply::Task(view)) => view.task,
            Ok(_) => {
                let message = "the agent answered with something else than a task";
                return Err(ClientError::protocol("InvalidAgentResponseError", message));
            }
            Err(error) if matches!(error.protocol_error(), Some(ProtocolError::TaskNotCancelable { .. })) => {
                let refused = agent.error(&error);
                match read(&agent, &id, None).await {
                    Ok(task) if task.state() == TaskState::Canceled => task,
                    Ok(task) => {
                        let state = render::state_name(task.state());
                        return Err(refused.with_hint(format!("The task is in state {state} already")));
                    }
                    Err(_) => return Err(refused),
                }
            }
            Err(error) => return Err(agent.error(&error)),
        };
        show(session, &agent, &task, false)
    };
    session.bounded(Box::pin(cancelling)).await
}

/// # Errors
/// When the list cannot be had.
pub(crate) async fn list(session: &Session, args: &ListTasksArgs) -> Result<(), ClientError> {
    let state = match args.status.as_deref() {
        Some(name) => Some(state_of(name).ok_or_else(|| {
            let known =
                TaskState::ALL.map(|state| render::state_name(state).trim_start_matches("TASK_STATE_").to_lowercase());
            ClientError::usage(format!("--status {name} is no state; there are {}", known.join(", ")))
        })?),
        None => None,
    };
    let mut wanted = ListTasks {
        context_id: session.settings.text("context-id").map(Into::into),
        state,
        page_size: args.page_size,
        page_token: args.page_token.clone(),
        history_length: args.history,
        status_since: None,
        include_artifacts: args.artifacts,
    };
    let listing = async {
        let agent = session.agent().await?;
        let mut all: Option<TaskPage> = None;
        loop {
            let page = agent.client.clone().with_deadline(CALL_MAX).tasks(wanted.clone()).await;
            let mut page = page.map_err(|error| agent.error(&error))?;
            let is_last = page.next_page_token.is_empty() || !args.all;
            // An agent that gives the same token again would never end.
            let repeats = wanted.page_token.as_deref() == Some(page.next_page_token.as_str());
            wanted.page_token = Some(page.next_page_token.clone());
            let known = all.get_or_insert_with(|| TaskPage { tasks: Vec::new(), ..empty_like(&page) });
            known.tasks.append(&mut page.tasks);
            known.next_page_token = page.next_page_token;
            if is_last || repeats || known.tasks.len() >= TASKS_MAX {
                break;
            }
        }
        print_list(session, all)
    };
    session.bounded(Box::pin(listing)).await
}

fn empty_like(page: &TaskPage) -> TaskPage {
    TaskPage {
        tasks: Vec::new(),
        next_page_token: String::new(),
        page_size: page.page_size,
        total_size: page.total_size,
    }
}

fn print_list(session: &Session, page: Option<TaskPage>) -> Result<(), ClientError> {
    let printer = &session.printer;
    let Some(page) = page else { return Ok(()) };
    if printer.is_json() && printer.is_live {
        for view in page.tasks {
            printer.json(encoded(&Reply::Task(view)))?;
        }
        return Ok(());
    }
    if printer.is_json() {
        return printer.json(encoded(&Reply::Tasks(page)));
    }
    let detail = render::Detail { history: printer.is_verbose, metadata: printer.is_verbose };
    for view in &page.tasks {
        let mut lines = Lines::default();
        render::task(&mut lines, &view.task, detail);
        lines.blank();
        printer.text(lines.into_text())?;
    }
    let mut lines = Lines::default();
    if !page.next_page_token.is_empty() {
        lines.field("Next-Page", &page.next_page_token);
    }
    lines.field("Total", page.total_size.to_string());
    printer.text(lines.into_text())
}

/// # Errors
/// When the task cannot be followed or asked for.
pub(crate) async fn subscribe(session: &Session, args: &SubscribeArgs) -> Result<(), ClientError> {
    let id = args.task.task(session)?;
    let following = async {
        let agent = session.agent().await?;
        if !agent.streams() {
            let message = "the card says that the agent does not stream";
            let line = session.command_line("task get", &["--wait", id.as_str()]);
            return Err(
                ClientError::protocol("UnsupportedOperationError", message).with_hint(format!("Wait with: {line}"))
            );
        }
        let is_live = session.printer.is_live || !session.printer.is_json();
        let follower = Follower { session, agent: &agent, is_live };
        let task = match agent.client.subscribe(&id).await {
            Ok(stream) => match follower.stream(stream, false).await? {
                Outcome::Task(task) => task,
                Outcome::Message(_) => read(&agent, &id, None).await?,
            },
            // Agents refuse to follow a task that has ended, each in its own way.
            Err(error) if error.protocol_error().is_some() => {
                let task = read(&agent, &id, None).await.map_err(|_| agent.error(&error))?;
                session.learn_task(&task);
                let task = follower.poll(task).await?;
                if is_live {
                    follower.print(&Update::Task(TaskView::whole(task.clone())))?;
                }
                task
            }
            Err(error) => return Err(agent.error(&error)),
        };
        if session.printer.is_json() && !is_live {
            let task = follower.whole(task).await;
            return show(session, &agent, &task, false);
        }
        follower.tell_way_on(&task, is_live)
    };
    session.bounded(Box::pin(following)).await
}
