//! Tasks made before a measurement: finished ones to read back, and open ones to follow.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::check::{self, Expected};
use super::connection::Connection;
use super::request::{self, Template};

/// A finished task that the server is to know.
pub struct Stored {
    pub(super) id: String,
    /// What its artifact says; none where the server keeps nothing and any of our texts will do.
    pub(super) text: Option<String>,
    pub(super) get_request: Vec<u8>,
}

#[derive(Deserialize)]
struct Answer {
    result: SendResult,
}

#[derive(Deserialize)]
struct SendResult {
    task: TaskId,
}

#[derive(Deserialize)]
struct TaskId {
    id: String,
}

/// Sends `count` messages, one after the other, and keeps the ids of their tasks. `keeps` is false for a server without
/// a store: then reading back is checked for shape and not for the very text.
pub async fn create(address: SocketAddr, count: usize, keeps: bool) -> Result<Vec<Stored>> {
    let mut connection = Connection::open(address).await?;
    let mut template = Template::send();
    let mut tasks = Vec::with_capacity(count);
    for _ in 0..count {
        let serial = request::next_serial();
        let reply = connection.exchange(template.with(serial)).await?;
        check::reply(&reply, &Expected::Echo(serial)).map_err(anyhow::Error::msg)?;
        let id = task_id(reply.body)?;
        let get_request = request::get_task(&id);
        tasks.push(Stored { id, text: keeps.then(|| request::text(serial)), get_request });
    }
    Ok(tasks)
}

/// Streams that stay open until this is dropped.
pub struct HeldStreams {
    connections: Vec<Connection>,
}

impl HeldStreams {
    pub fn count(&self) -> usize {
        self.connections.len()
    }
}

/// Follows `streams` open tasks, one stream and one connection each. `ready` is called when the tasks are there and the
/// streams are not: the moment to look at the server's memory.
pub async fn hold_streams(address: SocketAddr, streams: usize, ready: impl AsyncFnOnce()) -> Result<HeldStreams> {
    let mut maker = Connection::open(address).await?;
    let mut template = Template::question();
    let mut ids = Vec::with_capacity(streams);
    for _ in 0..streams {
        let reply = maker.exchange(template.with(request::next_serial())).await?;
        ids.push(task_id(reply.body)?);
    }
    ready().await;
    let mut connections = Vec::with_capacity(streams);
    for id in ids {
        let mut connection = Connection::open(address).await?;
        let reply = connection.open_stream(&request::subscribe(&id)).await?;
        let event = String::from_utf8_lossy(reply.body);
        ensure!(event.contains(&id), "the stream's first event is not its task: {event}");
        connections.push(connection);
    }
    Ok(HeldStreams { connections })
}

/// Begins `streams` tasks with this text, each by a stream and on a connection of its own, and keeps the streams open.
pub async fn begin_streams(address: SocketAddr, streams: usize, text: &str) -> Result<HeldStreams> {
    let mut template = Template::stream(text);
    let mut connections = Vec::with_capacity(streams);
    for _ in 0..streams {
        let mut connection = Connection::open(address).await?;
        let reply = connection.open_stream(template.with(request::next_serial())).await?;
        let event = String::from_utf8_lossy(reply.body);
        ensure!(event.contains("\"task\""), "the stream's first event is not its task: {event}");
        connections.push(connection);
    }
    Ok(HeldStreams { connections })
}

/// Begins a task with this text, and returns its id.
pub async fn begin_one(address: SocketAddr, text: &str) -> Result<String> {
    let mut connection = Connection::open(address).await?;
    let mut template = Template::begin(text);
    task_id(connection.exchange(template.with(request::next_serial())).await?.body)
}

fn task_id(body: &[u8]) -> Result<String> {
    let answer: Answer =
        serde_json::from_slice(body).with_context(|| format!("not a task: {}", String::from_utf8_lossy(body)))?;
    Ok(answer.result.task.id)
}
