//! Those who take part in every run, whatever is done to the servers: the clients, the receiver of their webhooks, and the ledger of what
//! was acknowledged. At the end they read every task and hold what they saw.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::behind::Behind;
use super::checker::Evidence;
use super::client::Client;
use super::crew::Crew;
use super::found::Found;
use super::hooks::Hooks;
use super::inspect::inspect;
use super::ledger::{Ledger, Writer};
use super::load::{Known, Place, World};
use super::performance::{Counts, Performance};
use super::upstream::{self, Upstream};
use crate::failure::Failure;

/// How long clients may take to get their last answers, tasks to end, and webhooks to arrive.
const ANSWERS_WAIT_MAX: Duration = Duration::from_secs(60);
const TASKS_WAIT_MAX: Duration = Duration::from_secs(60);
const WEBHOOKS_WAIT_MAX: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(100);
/// How often it is said how things go.
const NEWS: Duration = Duration::from_secs(10);

pub(super) struct Players {
    pub(super) ledger: Arc<Ledger>,
    pub(super) hooks: Arc<Hooks>,
    pub(super) client: Arc<Client>,
    pub(super) world: Arc<World>,
}

impl Players {
    /// `hooks_addr` is where the receiver of webhooks listens, and `client` knows the servers.
    pub(super) fn new(ledger: Arc<Ledger>, hooks: Arc<Hooks>, hooks_addr: SocketAddr, client: Client) -> Self {
        let client = Arc::new(client);
        let world = World::new(client.clone(), ledger.clone(), hooks_addr);
        Self { ledger, hooks, client, world }
    }

    /// What was counted, but for cuts of the network.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            kills: self.world.kills(Place::Front),
            acknowledged: self.ledger.acknowledged(),
            resumed: self.world.resumed(),
            webhooks_repeated: self.hooks.repeated(),
            kills_felt: self.world.kills_felt(),
            upstream_kills: self.world.kills(Place::Upstream),
            cuts: 0,
            database_cuts: None,
        }
    }

    /// Lets the clients end what they have begun. Without a server there is nothing to wait for, and every task is missing.
    pub(super) async fn leave(&self, clients: &mut Crew, servers_run: bool) {
        self.hooks.calm_down();
        self.world.close(if servers_run { Instant::now() + ANSWERS_WAIT_MAX } else { Instant::now() });
        clients.all_leave().await;
    }

    /// Reads every task, and waits for its webhooks.
    pub(super) async fn look(&self, seen: &mut Performance) {
        let tasks = self.world.tasks();
        seen.evidence = inspect(self.client.clone(), tasks.clone(), Instant::now() + TASKS_WAIT_MAX).await;
        wait_for_webhooks(&self.hooks, &tasks, &seen.evidence).await;
    }

    /// Stops the upstream if there is one, notes what was wrong by itself, and closes the ledger.
    pub(super) async fn finish(&self, seen: &mut Performance, counts: Counts, writer: Writer) -> Result<(), Failure> {
        if let Some(child) = seen.behind.child.take() {
            seen.behind.deeds.misdeeds.extend(child.stop().await.err());
        }
        let misdeeds = &mut seen.evidence.misdeeds;
        misdeeds.append(&mut seen.deeds.misdeeds);
        misdeeds.extend(seen.behind.deeds.misdeeds.drain(..).map(|misdeed| format!("upstream: {misdeed}")));
        misdeeds.extend(self.world.refusals());
        misdeeds.extend(self.hooks.strange());
        (seen.requests, seen.counts) = (self.client.requests(), counts);
        seen.counts.acknowledged = self.ledger.finish(writer).await.map_err(|error| {
            Failure::Runtime(format!("the ledger could not be written, so nothing can be said: {error}"))
        })?;
        Ok(())
    }
}

/// Says now and then how things go, until they are done.
pub(super) async fn with_news<T>(
    doing: impl Future<Output = T>,
    begun: Instant,
    text: impl Fn() -> String,
    mut tell: impl FnMut(String),
) -> T {
    let telling = async {
        loop {
            sleep(NEWS).await;
            tell(format!("{:>4} s: {}", begun.elapsed().as_secs(), text()));
        }
    };
    tokio::select! {
        biased;
        done = doing => done,
        () = telling => unreachable!("it never ends by itself"),
    }
}

/// Reads what the upstream has, if it runs.
pub(super) async fn look_behind(behind: &Behind, seen: &mut Performance) {
    let mut executed = None;
    if seen.behind.child.is_some() {
        let deadline = Instant::now() + TASKS_WAIT_MAX;
        (executed, seen.behind.left_over) = upstream::inspect(&behind.client, &seen.evidence.tasks, deadline).await;
    }
    if executed.is_none() {
        seen.evidence.misdeeds.push("the upstream does not say which tasks it has".to_owned());
    }
    let relayed = seen.plot.relayed();
    seen.evidence.upstream = executed.map(|executed| Upstream { relayed, executed });
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
