//! The measurements of memory: what an idle stream costs, and whether stored tasks cost any.

use anyhow::{Result, ensure};
use serde::Serialize;

use super::settle;
use super::target::Target;
use crate::load::{Pool, Until, Work, hold_streams};
use crate::process::{self, Memory};

const FILL_CONNECTIONS: usize = 256;

#[derive(Debug, Serialize)]
pub(super) struct Idle {
    pub(super) target: String,
    pub(super) streams: usize,
    pub(super) before: Memory,
    pub(super) after: Memory,
    pub(super) kib_each: f64,
}

/// On a server started for this: memory freed by earlier work would hide the streams' own.
pub(super) async fn of_idle_streams(target: &Target, streams: usize) -> Result<Idle> {
    let server = target.start().await?;
    let mut before = process::memory(server.pid())?;
    let held = hold_streams(server.address, streams, async || {
        settle().await;
        // It was there a line ago; if it is gone, opening the streams says so.
        before = process::memory(server.pid()).unwrap_or(before);
    })
    .await?;
    settle().await;
    let after = process::memory(server.pid())?;
    let kib_each = after.rss_kib.saturating_sub(before.rss_kib) as f64 / held.count() as f64;
    Ok(Idle { target: target.name.clone(), streams: held.count(), before, after, kib_each })
}

#[derive(Debug, Serialize)]
pub(super) struct Stored {
    pub(super) target: String,
    pub(super) tasks: u64,
    pub(super) memory: Memory,
    /// Tasks made per second on the way here.
    pub(super) per_second: f64,
}

/// Fills one server to each of these numbers of tasks in turn and reads its memory there.
pub(super) async fn of_stored_tasks(target: &Target, steps: &[u64]) -> Result<Vec<Stored>> {
    let server = target.start().await?;
    let mut pool = Pool::open(server.address, FILL_CONNECTIONS).await?;
    let mut present = 0;
    let mut found = Vec::new();
    for &tasks in steps {
        eprintln!("{}: filling to {tasks} tasks", target.name);
        let outcome = pool.run(&Work::Send, Until::Requests(tasks.saturating_sub(present))).await;
        ensure!(outcome.errors == 0, "{} errors, first: {:?}", outcome.errors, outcome.first_error);
        present = tasks;
        settle().await;
        let memory = process::memory(server.pid())?;
        found.push(Stored { target: target.name.clone(), tasks, memory, per_second: outcome.per_second });
    }
    Ok(found)
}
