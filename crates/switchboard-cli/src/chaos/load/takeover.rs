//! How long it takes until another server goes on with the work of one that was killed: a task is sent to one, followed at another,
//! and the first is killed. The longest pause between two events after that is the time it took.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::super::client::{Client, Next};
use super::super::ledger::{Entry, digest};
use super::super::wish::{Wish, is_terminal};
use super::World;

/// Enough to be at work when its server is killed.
const CHUNKS: u32 = 40;
/// So many events are waited for before the kill.
const EVENTS_BEFORE: usize = 5;
/// Much longer than any takeover may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends to one server, follows at another, and kills the first by `kill`. What went wrong is the error.
pub(in super::super) async fn takeover(
    world: &World,
    victim: &Client,
    other: &Client,
    kill: impl AsyncFnOnce(),
) -> Result<Duration, String> {
    let order = world.order(Wish::Chunks { chunks: CHUNKS }, false).await;
    let whom = order.wish.whom();
    let send = order.send(world.hooks, true);
    let sent = victim.call(whom, "SendMessage", &send, Some(&order.key())).await;
    let sent = sent.map_err(|trouble| format!("a send to a server at rest failed: {trouble:?}"))?;
    let task = sent["task"]["id"].as_str().ok_or("a send was answered without a task")?.to_owned();
    world.accepted(&order, &task).await;
    let mut events =
        other.subscribe(whom, &task, 0).await.map_err(|trouble| format!("a stream failed: {trouble:?}"))?;
    let reader = world.readers.fetch_add(1, Ordering::Relaxed) + 1;
    let (mut count, mut kill, mut last, mut longest) = (0, Some(kill), Instant::now(), Duration::ZERO);
    loop {
        let next = timeout(PATIENCE, events.next()).await.map_err(|_| format!("task {task} was not taken over"))?;
        let Next::Event { seq, data } = next else { return Err(format!("the stream of task {task} broke")) };
        world.ledger.record(Entry::Seen { reader, task: task.clone(), seq, digest: digest(&data) }).await;
        if kill.is_none() {
            longest = longest.max(last.elapsed());
        }
        last = Instant::now();
        count += 1;
        if count == EVENTS_BEFORE
            && let Some(kill) = kill.take()
        {
            kill().await;
        }
        let event: Value = serde_json::from_slice(&data).unwrap_or_default();
        if event["statusUpdate"]["status"]["state"].as_str().is_some_and(is_terminal) {
            return Ok(longest);
        }
    }
}
