//! One performance from beginning to end. The server, the receiver of webhooks, the clients and the killer run for the time
//! that was asked for, and on a busy machine until they have made enough events to judge by. Then the clients end what they
//! have begun, every task is read, and the server is stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::checker::{Evidence, Found};
use super::child::{Child, Home};
use super::client::Client;
use super::crew::Crew;
use super::dice::Dice;
use super::hooks::Hooks;
use super::inspect::inspect;
use super::killer::{self, Deeds};
use super::ledger::Ledger;
use super::load::{Known, World};
use super::processes;
use super::verdict::Counts;
use crate::failure::Failure;

/// How long clients may take to get their last answers, tasks to end, webhooks to arrive, and commands to be gone.
const ANSWERS_WAIT_MAX: Duration = Duration::from_secs(60);
const TASKS_WAIT_MAX: Duration = Duration::from_secs(60);
const WEBHOOKS_WAIT_MAX: Duration = Duration::from_secs(90);
const COMMANDS_WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
/// A run that has seen too little goes on until it has seen enough, for at most so many times as long as was asked.
const LONGER_MAX: u32 = 4;
/// How often it is said how things go.
const NEWS: Duration = Duration::from_secs(10);

/// How it is played.
pub(super) struct Script {
    pub(super) folder: PathBuf,
    pub(super) dice: Dice,
    pub(super) length: Duration,
    /// Whether anything is done to the server.
    pub(super) violent: bool,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Performance {
    /// How long it was to last, and how long it lasted.
    pub(super) asked: Duration,
    pub(super) length: Duration,
    pub(super) counts: Counts,
    pub(super) deeds: Deeds,
    pub(super) requests: u64,
    pub(super) evidence: Evidence,
}

pub(super) fn ledger_of(folder: &Path) -> PathBuf {
    folder.join("ledger.jsonl")
}

/// Plays it, and says now and then how it goes.
///
/// # Errors
/// When our own part of it cannot be done.
pub(super) async fn perform(script: Script, mut news: impl FnMut(String)) -> Result<(Performance, Home), Failure> {
    let Script { folder, mut dice, length, violent } = script;
    std::fs::create_dir_all(&folder).map_err(Failure::runtime)?;
    let (ledger, writer) = Ledger::create(&ledger_of(&folder)).map_err(Failure::runtime)?;
    let ledger = Arc::new(ledger);
    let (listener, hooks_addr) = Hooks::listen().await.map_err(Failure::runtime)?;
    let hooks = Hooks::new(ledger.clone(), dice.fork());
    let home = Home::make(&folder, hooks_addr, &mut dice).map_err(Failure::runtime)?;
    let client = Arc::new(Client::new(home.addr)?);
    let world = World::new(client.clone(), ledger.clone(), hooks_addr);
    let mut receiver = Crew::new();
    receiver.add(hooks.clone().serve(listener));
    let mut clients = world.start(&mut dice);

    let begun = Instant::now();
    let counts = || Counts {
        kills: world.kills(),
        acknowledged: ledger.acknowledged(),
        resumed: world.resumed(),
        webhooks_repeated: hooks.repeated(),
        kills_felt: world.kills_felt(),
    };
    let (until, latest) = (begun + length, begun + length * LONGER_MAX);
    let over = || {
        let now = Instant::now();
        now >= latest || (now >= until && counts().shortfalls(length).is_empty())
    };
    let killing = async {
        match violent {
            true => killer::rage(&home, &world, dice.fork(), over).await,
            false => watch(&home, &world, until).await,
        }
    };
    let telling = async {
        loop {
            sleep(NEWS).await;
            let Counts { kills, acknowledged, resumed, webhooks_repeated, .. } = counts();
            news(format!(
                "{:>4} s: {kills} kills, {acknowledged} acknowledged events, {resumed} resumed streams, \
                 {webhooks_repeated} repeated webhooks",
                begun.elapsed().as_secs(),
            ));
        }
    };
    let killed = tokio::select! {
        biased;
        killed = killing => killed,
        () = telling => unreachable!("it never ends by itself"),
    };
    let (child, deeds) = killed;
    let mut seen = Performance { asked: length, length: begun.elapsed(), deeds, ..Performance::default() };

    hooks.calm_down();
    // Without a server there is nothing to wait for, and every task is missing.
    world.close(if child.is_some() { Instant::now() + ANSWERS_WAIT_MAX } else { Instant::now() });
    clients.all_leave().await;
    if let Some(child) = child {
        news("no client waits any more; looking at every task".to_owned());
        seen.evidence = inspect(client.clone(), world.tasks(), Instant::now() + TASKS_WAIT_MAX).await;
        wait_for_webhooks(&hooks, &world.tasks(), &seen.evidence).await;
        seen.evidence.orphans = processes::orphans(&home.mark, COMMANDS_WAIT_MAX).await;
        seen.deeds.misdeeds.extend(child.stop().await.err());
    }
    let misdeeds = &mut seen.evidence.misdeeds;
    misdeeds.append(&mut seen.deeds.misdeeds);
    misdeeds.extend(world.refusals());
    misdeeds.extend(hooks.strange());
    (seen.requests, seen.counts) = (client.requests(), counts());
    seen.counts.acknowledged = ledger.finish(writer).await.map_err(|error| {
        Failure::Runtime(format!("the ledger could not be written, so nothing can be said: {error}"))
    })?;
    Ok((seen, home))
}

/// Starts the server and leaves it alone until then.
async fn watch(home: &Home, world: &World, until: Instant) -> (Option<Child>, Deeds) {
    match killer::start_and_wait(home, world).await {
        Ok(child) => {
            tokio::time::sleep_until(until).await;
            (Some(child), Deeds::default())
        }
        Err(misdeed) => (None, Deeds { misdeeds: vec![misdeed], ..Deeds::default() }),
    }
}

/// Waits until every webhook has brought what its task's log has.
async fn wait_for_webhooks(hooks: &Hooks, tasks: &[Known], evidence: &Evidence) {
    let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
    for known in tasks.iter().filter(|known| known.hook) {
        if let Some(Found::There(shown)) = evidence.tasks.get(&known.task) {
            waiting.insert(&known.task, shown.log.len() as u64);
        }
    }
    let all_taken = async {
        loop {
            waiting.retain(|task, last_seq| !hooks.has_taken(task, *last_seq));
            if waiting.is_empty() {
                return;
            }
            sleep(LOOK).await;
        }
    };
    // Those that do not come are missed by the checker.
    let _ = timeout(WEBHOOKS_WAIT_MAX, all_taken).await;
}
