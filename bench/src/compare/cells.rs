//! The timed measurements of one server in one round: send, get, stream.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use super::Arguments;
use super::target::{Server, Target};
use crate::load::{GrpcPool, Outcome, Pool, Until, Work, create};
use crate::process::{self, Memory};

/// Connections, caches and branch predictors warm up outside of the measurement.
const WARM_UP: Duration = Duration::from_millis(300);

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cell {
    Send,
    /// In A2A 0.3.
    SendOld,
    /// Over gRPC.
    SendGrpc,
    Get,
    Stream,
}

impl Cell {
    pub(super) const ALL: [Cell; 5] = [Cell::Send, Cell::SendOld, Cell::SendGrpc, Cell::Get, Cell::Stream];

    /// What the limit server does in its place; it speaks JSON-RPC of 1.0 alone.
    pub(super) fn at_the_limit(self) -> Cell {
        match self {
            Cell::Send | Cell::SendOld | Cell::SendGrpc => Cell::Send,
            Cell::Get | Cell::Stream => self,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Cell::Send => "send",
            Cell::SendOld => "send in 0.3",
            Cell::SendGrpc => "send over gRPC",
            Cell::Get => "get",
            Cell::Stream => "stream",
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Sample {
    pub(super) target: String,
    pub(super) cell: Cell,
    pub(super) round: usize,
    /// The server's CPU time per right reply.
    pub(super) cpu_us: f64,
    /// Share of its core that the server got. Well below 1: the machine was busy elsewhere, or the load was the slower.
    pub(super) server_share: f64,
    pub(super) load_share: f64,
    pub(super) outcome: Outcome,
    pub(super) memory: Memory,
}

/// All cells on one freshly started server.
pub(super) async fn measure(arguments: &Arguments, target: &Target, round: usize) -> Result<Vec<Sample>> {
    let server = target.start().await?;
    let mut pool = Pool::open(server.address, arguments.connections).await?;
    let time = Duration::from_secs_f64(arguments.seconds);
    let mut samples = Vec::new();
    let cells = Cell::ALL.into_iter().filter(|cell| target.keeps_tasks() || cell.at_the_limit() == *cell);
    for cell in cells {
        let work = match cell {
            Cell::Send => Work::Send,
            Cell::SendOld => Work::SendOld,
            Cell::SendGrpc => {
                let mut pool = GrpcPool::open(server.address, arguments.connections).await?;
                pool.run(Until::Elapsed(WARM_UP)).await;
                let running = pool.run(Until::Elapsed(time));
                samples.push(sample(target, &server, running, cell, round).await?);
                continue;
            }
            Cell::Stream => Work::Stream,
            // Made last before they are read, so that a bounded store still has them.
            Cell::Get => Work::Get(create(server.address, arguments.tasks, target.keeps_tasks()).await?.into()),
        };
        pool.run(&work, Until::Elapsed(WARM_UP)).await;
        let running = pool.run(&work, Until::Elapsed(time));
        samples.push(sample(target, &server, running, cell, round).await?);
    }
    Ok(samples)
}

async fn sample(
    target: &Target,
    server: &Server,
    running: impl Future<Output = Outcome>,
    cell: Cell,
    round: usize,
) -> Result<Sample> {
    let own = std::process::id();
    let (server_before, load_before) = (process::cpu_time(server.pid())?, process::cpu_time(own)?);
    let outcome = running.await;
    let server_spent = process::cpu_time(server.pid())?.saturating_sub(server_before).as_secs_f64();
    let load_spent = process::cpu_time(own)?.saturating_sub(load_before).as_secs_f64();
    if outcome.requests == 0 {
        bail!("{} {}: no right reply: {:?}", target.name, cell.name(), outcome.first_error);
    }
    Ok(Sample {
        target: target.name.clone(),
        cell,
        round,
        cpu_us: server_spent * 1e6 / outcome.requests as f64,
        server_share: server_spent / outcome.seconds,
        load_share: load_spent / outcome.seconds,
        memory: process::memory(server.pid())?,
        outcome,
    })
}
