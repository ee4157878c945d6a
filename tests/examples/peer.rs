//! Drives a server of another project through the client of `switchboard`, over each interface that its card names.
//!
//! It is given the URL of the server and one `TRANSPORT=STEP,…` for each way to call it: `BINDING/VERSION` for an interface of A2A,
//! or the name of the older system whose dialect the card shows. `xtask servers` starts the servers and says which steps each
//! must pass; what their agents do is in tests/servers/README.md. A step that is done prints `ok TRANSPORT STEP`, one that fails
//! prints what was seen, and the next is taken.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a program that reports to xtask")]

use std::collections::BTreeSet;
use std::future::{Future, pending};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use axum::http::HeaderMap;
use switchboard::call::{ListTasks, SendMessage};
use switchboard::client::Client;
use switchboard::model::{PushConfig, Update};
use switchboard::outbound::AddressPolicy;
use switchboard::{
    AgentClient, Message, Part, PartContent, ProtocolError, Role, Sent, Task, TaskId, TaskState, TaskStream,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

const STEP_TIME_MAX: Duration = Duration::from_secs(30);
const CHUNKS: usize = 5;
/// Webhooks that are kept for the step that waits for them.
const DELIVERIES_MAX: usize = 64;

/// A way to call the server, and what is to be done over it.
struct Transport {
    name: String,
    steps: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("usage: peer URL TRANSPORT=STEP,STEP…")?;
    let transports: Vec<Transport> = arguments.map(|argument| Transport::parse(&argument)).collect::<Result<_, _>>()?;
    let mut all_well = true;
    for transport in &transports {
        all_well &= drive(&url, transport, &transports).await?;
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Transport {
    fn parse(argument: &str) -> anyhow::Result<Self> {
        let (name, steps) = argument.split_once('=').context("a transport is TRANSPORT=STEP,STEP…")?;
        Ok(Self { name: name.to_owned(), steps: steps.split(',').map(str::to_owned).collect() })
    }

    /// Binding and version; none for the dialect of an older system.
    fn interface(&self) -> Option<(&str, &str)> {
        self.name.split_once('/')
    }
}

/// Takes the steps over one transport; says whether all went well.
async fn drive(url: &str, transport: &Transport, all: &[Transport]) -> anyhow::Result<bool> {
    // The servers have a port for HTTP and one for gRPC, so that their cards lead to another origin.
    let mut client = Client::builder().policy(AddressPolicy::any());
    if let Some((binding, version)) = transport.interface() {
        client = client.bindings([binding.parse().map_err(|error: String| anyhow!(error))?]).versions([version]);
    }
    let client = client.build()?;
    let agent = client.agent(url).await.context("discovery")?;
    let mut all_well = true;
    for step in &transport.steps {
        let taken = async {
            match step.as_str() {
                "card" => card(&agent, transport, all),
                "send" => send(&agent).await,
                "question" => question(&agent).await,
                "question-only" => asked(&agent).await.map(drop),
                "wait" => wait(&agent).await,
                "stream" => stream(&agent).await,
                "file" => file(&agent, transport).await,
                "get" => get(&agent).await,
                "list" => list(&agent).await,
                "cancel" => cancel(&agent).await,
                "cancel-running" => cancel_running(&agent).await,
                "cancel-ended" => cancel_ended(&agent).await,
                "subscribe" => subscribe(&agent).await,
                "push" => push(&agent).await,
                "push-list" => push_list(&agent).await,
                unknown => bail!("there is no step {unknown}"),
            }
        };
        match in_time(taken).await {
            Ok(()) => println!("ok {} {step}", transport.name),
            Err(error) => {
                println!("FAILED {} {step}: {error:#}", transport.name);
                all_well = false;
            }
        }
    }
    Ok(all_well)
}

async fn in_time(step: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    timeout(STEP_TIME_MAX, step).await.map_err(|_| anyhow!("not done within {STEP_TIME_MAX:?}"))?
}

/// The interface that was asked for is used, and the steps are taken over every interface that the card names.
fn card(agent: &AgentClient, transport: &Transport, all: &[Transport]) -> anyhow::Result<()> {
    let card = agent.card();
    ensure!(card.name == "Demo", "the card is of {:?}", card.name);
    ensure!(card.skills.iter().any(|skill| skill.id == "echo"), "the card has no skill echo: {:?}", card.skills);
    let spoken = agent.spoken().context("a remote agent says how it is called")?;
    let Some(wanted) = transport.interface() else {
        ensure!(spoken.version.is_none(), "it was called as an agent of A2A: {spoken:?}");
        return Ok(());
    };
    ensure!((spoken.binding, spoken.version) == (wanted.0, Some(wanted.1)), "it was called another way: {spoken:?}");
    let named: BTreeSet<String> = card
        .supported_interfaces
        .iter()
        // A card of 0.3 may say 0.3.0.
        .map(|own| {
            format!("{}/{}", own.protocol_binding, own.protocol_version.trim_end_matches(".0").replace("1", "1.0"))
        })
        .collect();
    let taken: BTreeSet<String> = all.iter().map(|transport| transport.name.clone()).collect();
    ensure!(named == taken, "the card names {named:?}, the steps are taken over {taken:?}");
    Ok(())
}

async fn send(agent: &AgentClient) -> anyhow::Result<()> {
    let sent = agent.send_text("hello").await?;
    ensure!(sent.text() == "hello", "{sent:?}");
    let task = task_of(sent)?;
    ensure!(task.state() == TaskState::Completed, "{task:?}");
    Ok(())
}

async fn asked(agent: &AgentClient) -> anyhow::Result<TaskId> {
    let sent = agent.send_text("ask which colour?").await?;
    ensure!(sent.text() == "which colour?", "{sent:?}");
    let task = task_of(sent)?;
    ensure!(task.state() == TaskState::InputRequired, "{task:?}");
    Ok(task.id.clone())
}

async fn question(agent: &AgentClient) -> anyhow::Result<()> {
    let asked = asked(agent).await?;
    let sent = agent.reply_text(&asked, "green").await?;
    ensure!(sent.text() == "I asked: which colour?\nYou said: green", "{sent:?}");
    let done = task_of(sent)?;
    ensure!((&done.id, done.state()) == (&asked, TaskState::Completed), "{done:?}");
    Ok(())
}

async fn wait(agent: &AgentClient) -> anyhow::Result<()> {
    let sent = agent.send_and_wait(message("slow 1 nap")).await?;
    ensure!(sent.text() == "nap: done in 1 s", "{sent:?}");
    ensure!(task_of(sent)?.state() == TaskState::Completed);
    Ok(())
}

async fn stream(agent: &AgentClient) -> anyhow::Result<()> {
    let mut stream = agent.stream_text(&format!("stream {CHUNKS}")).await?;
    let seen = follow(&mut stream).await?;
    let sent = stream.take_sent().context("the stream said nothing")?;
    let written: String = (1..=CHUNKS).map(|number| format!("chunk {number} of {CHUNKS}\n")).collect();
    ensure!(sent.text() == written, "{sent:?}");
    ensure!(task_of(sent)?.state() == TaskState::Completed);
    ensure!(seen >= CHUNKS, "{seen} updates came for {CHUNKS} chunks, so they were not streamed");
    Ok(())
}

/// The bytes are compared, because the Python SDK of 0.3 has base64 inside the bytes of its proto.
async fn file(agent: &AgentClient, transport: &Transport) -> anyhow::Result<()> {
    let task = task_of(agent.send_text("file contents").await?)?;
    let part = task.artifacts.first().and_then(|artifact| artifact.parts.first()).context("there is no file")?;
    let PartContent::Raw(bytes) = &part.content else { bail!("{part:?}") };
    ensure!(bytes.as_ref() == b"contents", "{part:?}");
    ensure!(part.media_type() == Some("text/plain"), "{part:?}");
    // In 0.3's proto as the JavaScript SDK has it, a file has no name.
    let may_be_nameless = matches!(transport.name.as_str(), "HTTP+JSON/0.3" | "GRPC/0.3");
    let name = part.filename();
    ensure!(name == Some("switchboard.txt") || (may_be_nameless && name.is_none()), "{part:?}");
    Ok(())
}

/// Reads a stream to its end; says how many of its updates have contents.
async fn follow(stream: &mut TaskStream) -> anyhow::Result<usize> {
    let mut seen = 0;
    while let Some(frame) = stream.next().await {
        // Agent-native streams show the whole task again and again.
        if matches!(frame?.update.update, Update::Artifact(_) | Update::Task(_)) {
            seen += 1;
        }
    }
    Ok(seen)
}

async fn get(agent: &AgentClient) -> anyhow::Result<()> {
    let sent = agent.send_text("remember me").await?;
    let id = task_of(sent)?.id.clone();
    let task = agent.task(&id).await?;
    ensure!((&task.id, task.state()) == (&id, TaskState::Completed), "{task:?}");
    ensure!(Sent::Task(task.clone()).text() == "remember me", "{task:?}");
    let refused = agent.task(&"00000000-0000-4000-8000-000000000000".into()).await;
    let refused = refused.err().context("a task that does not exist was found")?;
    let is_not_found = matches!(refused.protocol_error(), Some(ProtocolError::TaskNotFound { .. }));
    ensure!(is_not_found, "the refusal is not TaskNotFound: {refused:?}");
    Ok(())
}

async fn list(agent: &AgentClient) -> anyhow::Result<()> {
    let sent = task_of(agent.send_text("list me").await?)?;
    let page = agent.tasks(ListTasks { context_id: Some(sent.context_id.clone()), ..ListTasks::default() }).await?;
    let ids: Vec<_> = page.tasks.iter().map(|view| view.task.id.clone()).collect();
    ensure!((&ids, page.total_size) == (&vec![sent.id.clone()], 1), "{page:?}");
    Ok(())
}

async fn cancel(agent: &AgentClient) -> anyhow::Result<()> {
    cancel_running(agent).await?;
    cancel_ended(agent).await
}

async fn cancel_running(agent: &AgentClient) -> anyhow::Result<()> {
    let begun = begin(agent, "slow 60 dig").await?;
    let canceled = agent.cancel(&begun).await?;
    ensure!((&canceled.id, canceled.state()) == (&begun, TaskState::Canceled), "{canceled:?}");
    Ok(())
}

async fn cancel_ended(agent: &AgentClient) -> anyhow::Result<()> {
    let done = task_of(agent.send_text("too late").await?)?;
    let refused = agent.cancel(&done.id).await.err().context("a task that has ended was canceled")?;
    let is_not_cancelable = matches!(refused.protocol_error(), Some(ProtocolError::TaskNotCancelable { .. }));
    ensure!(is_not_cancelable, "the refusal is not TaskNotCancelable: {refused:?}");
    Ok(())
}

async fn subscribe(agent: &AgentClient) -> anyhow::Result<()> {
    let begun = begin(agent, "slow 1 watched").await?;
    let mut stream = agent.subscribe(&begun).await?;
    follow(&mut stream).await?;
    let sent = stream.take_sent().context("the stream said nothing")?;
    ensure!(sent.text() == "watched: done in 1 s", "{sent:?}");
    ensure!(task_of(sent)?.state() == TaskState::Completed);
    Ok(())
}

async fn push(agent: &AgentClient) -> anyhow::Result<()> {
    let mut hooks = Webhooks::listen().await?;
    let begun = begin(agent, "slow 2 knock").await?;
    let wanted = webhook(&begun, &hooks.url);
    let stored = agent.set_push_config(wanted.clone()).await?;
    ensure!((&stored.id, &stored.url) == (&wanted.id, &wanted.url), "stored: {stored:?}");
    let read = agent.push_config(&begun, &wanted.id).await?;
    ensure!((&read.id, &read.url) == (&wanted.id, &wanted.url), "read: {read:?}");
    let token = loop {
        let (headers, body) = hooks.received.recv().await.context("the receiver of webhooks ended")?;
        let is_end = ["TASK_STATE_COMPLETED", "\"completed\""].iter().any(|state| body.contains(state));
        ensure!(body.contains(begun.as_str()), "a webhook of another task: {body}");
        if is_end {
            break headers.get("x-a2a-notification-token").cloned();
        }
    };
    ensure!(token.as_ref().is_some_and(|token| token == "a-token"), "the token was {token:?}");
    Ok(())
}

async fn push_list(agent: &AgentClient) -> anyhow::Result<()> {
    let task = asked(agent).await?;
    let wanted = webhook(&task, "http://127.0.0.1:9/hook");
    agent.set_push_config(wanted.clone()).await?;
    let listed = agent.push_configs(&task, None).await?;
    ensure!(listed.configs.iter().map(|config| &config.id).eq([&wanted.id]), "{listed:?}");
    agent.delete_push_config(&task, &wanted.id).await?;
    let left = agent.push_configs(&task, None).await?;
    ensure!(left.configs.is_empty(), "{left:?}");
    Ok(())
}

fn webhook(task: &TaskId, url: &str) -> PushConfig {
    PushConfig {
        id: "mine".into(),
        task_id: task.clone(),
        url: url.to_owned(),
        token: Some("a-token".to_owned()),
        authentication: None,
    }
}

/// A receiver of webhooks on this machine.
struct Webhooks {
    url: String,
    received: mpsc::Receiver<(HeaderMap, String)>,
}

impl Webhooks {
    async fn listen() -> anyhow::Result<Self> {
        let (deliver, received) = mpsc::channel(DELIVERIES_MAX);
        let take = move |headers: HeaderMap, body: String| async move {
            // The step that waits for it may be over.
            let _ = deliver.send((headers, body)).await;
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let app = axum::Router::new().route("/hook", axum::routing::post(take));
        tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(pending()).into_future());
        Ok(Self { url, received })
    }
}

/// Opens a task that is worked on for a while, and does not wait for its end.
async fn begin(agent: &AgentClient, text: &str) -> anyhow::Result<TaskId> {
    let send = SendMessage {
        open_as: None,
        message: message(text),
        accepted_output_modes: Vec::new(),
        push_config: None,
        history_length: None,
        return_immediately: true,
        metadata: None,
    };
    let task = task_of(agent.send_with(send).await?)?;
    ensure!(!task.state().is_settled(), "it was not answered at once: {task:?}");
    Ok(task.id.clone())
}

/// A message whose id the client chooses.
fn message(text: &str) -> Message {
    Message::new(Role::User, "", vec![Part::text(text)])
}

fn task_of(sent: Sent) -> anyhow::Result<std::sync::Arc<Task>> {
    sent.into_task().context("the answer is no task")
}
