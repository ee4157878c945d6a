//! One performance from beginning to end. The server (or a gateway and its upstream), the receiver of webhooks, the clients and the killer run for the time
//! that was asked for, and on a busy machine until they have made enough events to judge by. Then the clients end what they
//! have begun, every task is read, and the server is stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::behind::{Behind, BehindSeen};
use super::checker::{Evidence, Found};
use super::child::{Child, Home, Serves};
use super::client::Client;
use super::crew::Crew;
use super::dice::Dice;
use super::hooks::Hooks;
use super::inspect::inspect;
use super::killer::{Deeds, Place, Victim};
use super::ledger::Ledger;
use super::load::{Known, World};
use super::upstream::Upstream;
use super::verdict::Counts;
use super::wish::Whom;
use super::{processes, upstream};
use crate::failure::Failure;

/// How long clients may take to get their last answers, tasks to end, webhooks to arrive, and commands to be gone.
pub(super) const ANSWERS_WAIT_MAX: Duration = Duration::from_secs(60);
pub(super) const TASKS_WAIT_MAX: Duration = Duration::from_secs(60);
const WEBHOOKS_WAIT_MAX: Duration = Duration::from_secs(90);
pub(super) const COMMANDS_WAIT_MAX: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
/// A run that has seen too little goes on until it has seen enough, for at most so many times as long as was asked.
pub(super) const LONGER_MAX: u32 = 4;
/// How often it is said how things go.
pub(super) const NEWS: Duration = Duration::from_secs(10);

/// How it is played.
pub(super) struct Script {
    pub(super) folder: PathBuf,
    pub(super) dice: Dice,
    pub(super) length: Duration,
    pub(super) plot: Plot,
}

/// What is done to whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Plot {
    /// Nothing, to one server.
    Peace,
    /// One server is killed and frozen.
    #[default]
    Server,
    /// A gateway and its upstream are, and the network between them is cut.
    Relay,
    /// Several servers are that share a database, and their upstream, and the network between all of them is cut.
    #[cfg(feature = "postgres")]
    Replicas,
}

impl Plot {
    /// The agents whose work an upstream does.
    pub(super) fn relayed(self) -> &'static [Whom] {
        match self {
            Self::Peace | Self::Server => &[],
            Self::Relay => &Whom::ALL,
            #[cfg(feature = "postgres")]
            Self::Replicas => &[Whom::Command],
        }
    }
}

/// Where everything is in the end.
pub(super) struct Homes {
    pub(super) front: Home,
    pub(super) upstream: Option<Home>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Performance {
    pub(super) plot: Plot,
    /// How long it was to last, and how long it lasted.
    pub(super) asked: Duration,
    pub(super) length: Duration,
    pub(super) counts: Counts,
    pub(super) deeds: Deeds,
    /// What was done to the upstream, in a run with relays.
    pub(super) behind: BehindSeen,
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
pub(super) async fn perform(script: Script, mut news: impl FnMut(String)) -> Result<(Performance, Homes), Failure> {
    let Script { folder, mut dice, length, plot } = script;
    std::fs::create_dir_all(&folder).map_err(Failure::runtime)?;
    let (ledger, writer) = Ledger::create(&ledger_of(&folder)).map_err(Failure::runtime)?;
    let mut ours = Crew::new();
    let cast = Cast::make(&folder, plot, Arc::new(ledger), &mut dice, &mut ours).await?;
    let mut clients = cast.world.start(&mut dice);
    let begun = Instant::now();
    let telling = async {
        loop {
            sleep(NEWS).await;
            news(format!("{:>4} s: {}", begun.elapsed().as_secs(), cast.counts().text(plot)));
        }
    };
    let ((child, deeds), behind) = tokio::select! {
        biased;
        killed = cast.suffer(&mut dice, begun, length) => killed,
        () = telling => unreachable!("it never ends by itself"),
    };
    let mut seen =
        Performance { plot, asked: length, length: begun.elapsed(), deeds, behind, ..Performance::default() };
    cast.hooks.calm_down();
    // Without a server there is nothing to wait for, and every task is missing.
    cast.world.close(if child.is_some() { Instant::now() + ANSWERS_WAIT_MAX } else { Instant::now() });
    clients.all_leave().await;
    if let Some(child) = child {
        news("no client waits any more; looking at every task".to_owned());
        cast.look(&mut seen).await;
        seen.deeds.misdeeds.extend(child.stop().await.err());
    }
    if let Some(child) = seen.behind.child.take() {
        seen.behind.deeds.misdeeds.extend(child.stop().await.err());
    }
    let misdeeds = &mut seen.evidence.misdeeds;
    misdeeds.append(&mut seen.deeds.misdeeds);
    misdeeds.extend(seen.behind.deeds.misdeeds.drain(..).map(|misdeed| format!("upstream: {misdeed}")));
    misdeeds.extend(cast.world.refusals());
    misdeeds.extend(cast.hooks.strange());
    (seen.requests, seen.counts) = (cast.client.requests(), cast.counts());
    seen.counts.acknowledged = cast.ledger.finish(writer).await.map_err(|error| {
        Failure::Runtime(format!("the ledger could not be written, so nothing can be said: {error}"))
    })?;
    Ok((seen, Homes { front: cast.home, upstream: cast.behind.map(|behind| behind.home) }))
}

/// Who takes part: the server in front, its clients and the receiver of their webhooks, and what is behind the server.
struct Cast {
    plot: Plot,
    ledger: Arc<Ledger>,
    hooks: Arc<Hooks>,
    home: Home,
    client: Arc<Client>,
    world: Arc<World>,
    behind: Option<Behind>,
}

/// What became of the server in front, and of what is behind it.
type Suffered = ((Option<Child>, Deeds), BehindSeen);

impl Cast {
    async fn make(
        folder: &Path,
        plot: Plot,
        ledger: Arc<Ledger>,
        dice: &mut Dice,
        ours: &mut Crew,
    ) -> Result<Self, Failure> {
        let (listener, hooks_addr) = Hooks::listen().await.map_err(Failure::runtime)?;
        let hooks = Hooks::new(ledger.clone(), dice.fork());
        ours.add(hooks.clone().serve(listener));
        let behind = match plot {
            Plot::Relay => Some(Behind::make(&folder.join("upstream"), hooks_addr, dice, ours)?),
            _ => None,
        };
        let serves = match &behind {
            Some(behind) => Serves::RelaysTo(behind.link.addr),
            None => Serves::Agents { public: None },
        };
        let home = Home::make(folder, &serves, hooks_addr, dice).map_err(Failure::runtime)?;
        let client = Arc::new(Client::new(home.addr)?);
        let world = World::new(client.clone(), ledger.clone(), hooks_addr);
        Ok(Self { plot, ledger, hooks, home, client, world, behind })
    }

    fn counts(&self) -> Counts {
        Counts {
            kills: self.world.kills(Place::Front),
            acknowledged: self.ledger.acknowledged(),
            resumed: self.world.resumed(),
            webhooks_repeated: self.hooks.repeated(),
            kills_felt: self.world.kills_felt(),
            upstream_kills: self.world.kills(Place::Upstream),
            cuts: self.behind.as_ref().map_or(0, |behind| behind.link.cuts()),
            database_cuts: None,
        }
    }

    /// Does to the servers what the plot says, for as long as was asked for, or longer until enough was seen.
    async fn suffer(&self, dice: &mut Dice, begun: Instant, length: Duration) -> Suffered {
        let (until, latest) = (begun + length, begun + length * LONGER_MAX);
        let over = || {
            let now = Instant::now();
            now >= latest || (now >= until && self.counts().shortfalls(self.plot, length).is_empty())
        };
        let victim = |home, client, place| Victim { home, client, world: &self.world, place };
        let front = victim(&self.home, &self.client, Place::Front);
        match &self.behind {
            None if self.plot == Plot::Peace => (watch(&front, until).await, BehindSeen::default()),
            None => (front.suffer(dice.fork(), over).await, BehindSeen::default()),
            Some(Behind { home, client, link }) => {
                let upstream = victim(home, client, Place::Upstream);
                let (front, (child, deeds), ()) = tokio::join!(
                    front.suffer(dice.fork(), over),
                    upstream.suffer(dice.fork(), over),
                    link.be_cut(dice.fork(), over),
                );
                (front, BehindSeen { deeds, child, left_over: 0 })
            }
        }
    }

    /// Reads everything that the servers have.
    async fn look(&self, seen: &mut Performance) {
        let tasks = self.world.tasks();
        seen.evidence = inspect(self.client.clone(), tasks.clone(), Instant::now() + TASKS_WAIT_MAX).await;
        wait_for_webhooks(&self.hooks, &tasks, &seen.evidence).await;
        if let Some(behind) = &self.behind {
            look_behind(behind, seen).await;
        }
        let commands = self.behind.as_ref().map_or(&self.home, |behind| &behind.home);
        seen.evidence.orphans = processes::orphans(&commands.mark, COMMANDS_WAIT_MAX).await;
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

/// Starts the server and leaves it alone until then.
async fn watch(front: &Victim<'_>, until: Instant) -> (Option<Child>, Deeds) {
    match front.start_and_wait().await {
        Ok(child) => {
            tokio::time::sleep_until(until).await;
            (Some(child), Deeds::default())
        }
        Err(misdeed) => (None, Deeds { misdeeds: vec![misdeed], ..Deeds::default() }),
    }
}

/// Waits until every webhook has brought what its task's log has.
pub(super) async fn wait_for_webhooks(hooks: &Hooks, tasks: &[Known], evidence: &Evidence) {
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
