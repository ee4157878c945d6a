//! The servers of this benchmark, each a process of its own on core 0: the limit, and an agent of Switchboard's that declares
//! nothing about itself. Both write so many chunks of text with a pause between them, as the agent of a language model does.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::body::Bytes;
use axum::response::Sse;
use axum::response::sse::Event;
use axum::routing::post;
use axum::serve::ListenerExt as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard::{AgentBuilder, AgentError, Turn};
use switchboard_test_servers::free_addr;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

use crate::process::pin_to_core;

const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;
const START_WAIT: Duration = Duration::from_secs(15);

/// What each stream holds.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Shape {
    /// Chunks of each stream.
    #[arg(long, default_value_t = 100)]
    pub(crate) chunks: u32,
    /// The pause between two chunks of a stream.
    #[arg(long, default_value_t = 50)]
    pub(crate) pause_ms: u64,
}

impl Shape {
    fn pause(self) -> Duration {
        Duration::from_millis(self.pause_ms)
    }

    pub(crate) fn arguments(self) -> [String; 4] {
        ["--chunks".to_owned(), self.chunks.to_string(), "--pause-ms".to_owned(), self.pause_ms.to_string()]
    }
}

/// A chunk: when it is written, in nanoseconds since 1970, its number, and some words.
pub(super) fn chunk(number: u32) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{} {number} and a few words", now.as_nanos())
}

/// The agent of Switchboard's.
pub(crate) async fn serve_agent(listen: SocketAddr, data: Option<PathBuf>, shape: Shape) -> Result<()> {
    let agent = AgentBuilder::from_fn("Tokens", move |turn: Turn| write(turn, shape));
    let mut serve = switchboard::serve(agent).listen(listen).quiet();
    if let Some(data) = data {
        serve = serve.durable(data);
    }
    Ok(serve.run().await?)
}

async fn write(turn: Turn, shape: Shape) -> Result<(), AgentError> {
    let mut writer = turn.artifact_writer();
    let mut next = Instant::now();
    for number in 1..=shape.chunks {
        writer.text(chunk(number)).await?;
        next += shape.pause();
        sleep_until(next).await;
    }
    Ok(())
}

/// The limit: axum's SSE, a timer, and each event serialized once. It keeps nothing.
pub(super) async fn serve_limit(listen: SocketAddr, shape: Shape) -> Result<()> {
    let listener = TcpListener::bind(listen).await?.tap_io(|stream| {
        // Without it an event after the first waits for the client's delayed ACK. A refusal only costs speed.
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new().route("/", post(move |body| stream(body, shape)));
    axum::serve(listener, router).await?;
    Ok(())
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
}

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: Payload<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Payload<'a> {
    #[serde(rename_all = "camelCase")]
    Task { id: &'a str, context_id: &'a str, status: Status },
    #[serde(rename_all = "camelCase")]
    ArtifactUpdate { task_id: &'a str, context_id: &'a str, artifact: Artifact<'a>, append: bool },
    #[serde(rename_all = "camelCase")]
    StatusUpdate { task_id: &'a str, context_id: &'a str, status: Status },
}

#[derive(Serialize)]
struct Status {
    state: &'static str,
    timestamp: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact<'a> {
    artifact_id: &'static str,
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

const TASK_ID: &str = "00000000-0000-4000-8000-000000000000";
const TIMESTAMP: &str = "2026-02-03T10:00:05.120Z";

async fn stream(body: Bytes, shape: Shape) -> Sse<impl futures_util::Stream<Item = Result<Event, Infallible>>> {
    let call: Option<Call<'_>> = serde_json::from_slice(&body).ok();
    let id = call.map(|call| call.id.to_owned()).unwrap_or_default();
    let begun = Instant::now();
    let last = shape.chunks + 1;
    Sse::new(futures_util::stream::unfold(0, move |number: u32| {
        let id = id.clone();
        async move {
            if number > 1 {
                sleep_until(begun + shape.pause() * (number - 1)).await;
            }
            let status = |state| Status { state, timestamp: TIMESTAMP };
            let (task_id, context_id) = (TASK_ID, TASK_ID);
            let text;
            let result = match number {
                0 => Payload::Task { id: task_id, context_id, status: status("TASK_STATE_SUBMITTED") },
                number if number < last => {
                    text = chunk(number);
                    let artifact = Artifact { artifact_id: "artifact-1-1", parts: [Part { text: &text }] };
                    Payload::ArtifactUpdate { task_id, context_id, artifact, append: number > 1 }
                }
                number if number == last => {
                    Payload::StatusUpdate { task_id, context_id, status: status("TASK_STATE_COMPLETED") }
                }
                _ => return None,
            };
            let reply = serde_json::to_string(&Reply { jsonrpc: "2.0", id: &id, result }).unwrap_or_default();
            Some((Ok(Event::default().id(number.to_string()).data(reply)), number + 1))
        }
    }))
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Limit,
    Memory,
    Durable,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Limit, Self::Memory, Self::Durable];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Memory => "memory",
            Self::Durable => "sqlite",
        }
    }
}

/// A server's process; killed when dropped.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts it on core 0. Its data and what it prints are kept in the folder.
    pub(super) async fn start(program: &Path, kind: Kind, shape: Shape, folder: &Path) -> Result<Server> {
        let address = free_addr();
        let output = std::fs::File::create(folder.join(format!("{}.output", kind.name())))?;
        let mut command = Command::new(program);
        command.arg(if kind == Kind::Limit { "limit" } else { "agent" });
        command.args(["--listen", &address.to_string()]).args(shape.arguments());
        if kind == Kind::Durable {
            command.arg("--data").arg(folder.join("tasks.db"));
        }
        command.current_dir(folder).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // A child may run where the thread that starts it may: its runtime counts one core from the first line on.
        pin_to_core(SERVER_CORE)?;
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()));
        pin_to_core(LOAD_CORE)?;
        let server = Server { child: child?, address };
        let deadline = Instant::now() + START_WAIT;
        while TcpStream::connect(address).await.is_err() {
            if Instant::now() > deadline {
                bail!("{} is not up after {START_WAIT:?}", kind.name());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
