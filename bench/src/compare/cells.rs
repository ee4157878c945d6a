//! The timed measurements of one round: send, get, stream, on all servers in turns.

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

/// How many pieces each measurement is cut into. Servers and cells take turns piece by piece, so that a slow moment of the
/// machine meets them all.
const SLICES: u32 = 8;

/// All cells of one round, on freshly started servers.
pub(super) async fn measure(arguments: &Arguments, targets: Vec<&Target>, round: usize) -> Result<Vec<Sample>> {
    let mut loaded = Vec::with_capacity(targets.len());
    for target in targets {
        loaded.push(Loaded::start(target, arguments).await?);
    }
    let slice = Duration::from_secs_f64(arguments.seconds) / SLICES;
    // Reading by itself: it reads tasks that are made last before, so that a bounded store still has them.
    for cells in [&[Cell::Send, Cell::SendOld, Cell::SendGrpc, Cell::Stream][..], &[Cell::Get]] {
        for server in &mut loaded {
            server.warm_up(cells, arguments.tasks).await?;
        }
        for _ in 0..SLICES {
            for cell in cells {
                for server in &mut loaded {
                    server.slice(*cell, slice).await?;
                }
            }
        }
        for server in &mut loaded {
            server.rest()?;
        }
    }
    let samples = loaded.into_iter().map(|server| server.finish(round)).collect::<Result<Vec<_>>>()?;
    Ok(samples.into_iter().flatten().collect())
}

/// A server that is being measured.
struct Loaded<'t> {
    target: &'t Target,
    server: Server,
    pool: Pool,
    /// None at the limit server, which does not speak it.
    grpc: Option<GrpcPool>,
    /// What the get measurement reads.
    tasks: Work,
    measured: Vec<Measured>,
    /// The cell that was loaded last, and the server's CPU time before.
    last: Option<(Cell, Duration)>,
}

/// One cell of one server in one round.
struct Measured {
    cell: Cell,
    outcomes: Vec<Outcome>,
    /// From the beginning of each slice to the beginning of the next: what a server does after its answers counts, too.
    spent: Duration,
    /// During the slices alone.
    spent_loaded: Duration,
    load_spent: Duration,
    memory: Memory,
}

impl<'t> Loaded<'t> {
    async fn start(target: &'t Target, arguments: &Arguments) -> Result<Self> {
        let server = target.start().await?;
        let pool = Pool::open(server.address, arguments.connections).await?;
        let grpc = match target.keeps_tasks() {
            true => Some(GrpcPool::open(server.address, arguments.connections).await?),
            false => None,
        };
        Ok(Self { target, server, pool, grpc, tasks: Work::Send, measured: Vec::new(), last: None })
    }

    fn has(&self, cell: Cell) -> bool {
        self.target.keeps_tasks() || cell.at_the_limit() == cell
    }

    async fn warm_up(&mut self, cells: &[Cell], tasks: usize) -> Result<()> {
        if cells.contains(&Cell::Get) {
            self.tasks = Work::Get(create(self.server.address, tasks, self.target.keeps_tasks()).await?.into());
        }
        for cell in cells {
            if self.has(*cell) {
                self.load(*cell, WARM_UP).await;
            }
        }
        Ok(())
    }

    async fn load(&mut self, cell: Cell, time: Duration) -> Option<Outcome> {
        let until = Until::Elapsed(time);
        match cell {
            Cell::Send => Some(self.pool.run(&Work::Send, until).await),
            Cell::SendOld => Some(self.pool.run(&Work::SendOld, until).await),
            Cell::SendGrpc => Some(self.grpc.as_mut()?.run(until).await),
            Cell::Stream => Some(self.pool.run(&Work::Stream, until).await),
            Cell::Get => Some(self.pool.run(&self.tasks, until).await),
        }
    }

    async fn slice(&mut self, cell: Cell, time: Duration) -> Result<()> {
        if !self.has(cell) {
            return Ok(());
        }
        self.rest()?;
        let own = std::process::id();
        let (before, load_before) = (process::cpu_time(self.server.pid())?, process::cpu_time(own)?);
        self.last = Some((cell, before));
        let outcome = self.load(cell, time).await;
        let spent = process::cpu_time(self.server.pid())?.saturating_sub(before);
        let load_spent = process::cpu_time(own)?.saturating_sub(load_before);
        let memory = process::memory(self.server.pid())?;
        let measured = self.of(cell, memory);
        measured.outcomes.extend(outcome);
        measured.spent_loaded += spent;
        measured.load_spent += load_spent;
        measured.memory = memory;
        Ok(())
    }

    /// Counts what the server has done since the beginning of its last slice.
    fn rest(&mut self) -> Result<()> {
        let Some((cell, before)) = self.last.take() else { return Ok(()) };
        let spent = process::cpu_time(self.server.pid())?.saturating_sub(before);
        let memory = process::memory(self.server.pid())?;
        self.of(cell, memory).spent += spent;
        Ok(())
    }

    fn of(&mut self, cell: Cell, memory: Memory) -> &mut Measured {
        let place = self.measured.iter().position(|measured| measured.cell == cell).unwrap_or_else(|| {
            let (spent, outcomes) = (Duration::ZERO, Vec::new());
            self.measured.push(Measured { cell, outcomes, spent, spent_loaded: spent, load_spent: spent, memory });
            self.measured.len() - 1
        });
        &mut self.measured[place]
    }

    fn finish(self, round: usize) -> Result<Vec<Sample>> {
        self.measured.into_iter().map(|measured| measured.sample(&self.target.name, round)).collect()
    }
}

impl Measured {
    fn sample(self, target: &str, round: usize) -> Result<Sample> {
        let Self { cell, outcomes, spent, spent_loaded, load_spent, memory } = self;
        let outcome = Outcome::of_all(outcomes);
        if outcome.requests == 0 {
            bail!("{target} {}: no right reply: {:?}", cell.name(), outcome.first_error);
        }
        Ok(Sample {
            target: target.to_owned(),
            cell,
            round,
            cpu_us: spent.as_secs_f64() * 1e6 / outcome.requests as f64,
            server_share: spent_loaded.as_secs_f64() / outcome.seconds,
            load_share: load_spent.as_secs_f64() / outcome.seconds,
            memory,
            outcome,
        })
    }
}
