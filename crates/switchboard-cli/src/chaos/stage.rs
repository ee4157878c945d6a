//! One performance from beginning to end. The server (or a gateway and its upstream), the receiver of webhooks, the clients and the killer run for the time
//! that was asked for, and on a busy machine until they have made enough events to judge by. Then the clients end what they
//! have begun, every task is read, and the server is stopped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::behind::{Behind, BehindSeen};
use super::child::{Child, Home, Serves};
use super::client::Client;
use super::crew::Crew;
use super::dice::Dice;
use super::hooks::Hooks;
use super::killer::{Deeds, Victim};
use super::ledger::Ledger;
use super::load::Place;
use super::performance::{Counts, Performance, Plot};
use super::players::{Players, look_behind, with_news};
use super::processes;
use crate::failure::Failure;

/// How long commands may take to be gone.
pub(super) const COMMANDS_WAIT_MAX: Duration = Duration::from_secs(5);
/// A run that has seen too little goes on until it has seen enough, for at most so many times as long as was asked.
pub(super) const LONGER_MAX: u32 = 4;

/// How it is played.
pub(super) struct Script {
    pub(super) folder: PathBuf,
    pub(super) dice: Dice,
    pub(super) length: Duration,
    pub(super) plot: Plot,
}

/// Where everything is in the end.
pub(super) struct Homes {
    pub(super) front: Home,
    pub(super) upstream: Option<Home>,
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
    let mut clients = cast.players.world.start(&mut dice);
    let begun = Instant::now();
    let suffering = Box::pin(cast.suffer(&mut dice, begun, length));
    let ((child, deeds), behind) = with_news(suffering, begun, || cast.counts().text(plot), &mut news).await;
    let mut seen =
        Performance { plot, asked: length, length: begun.elapsed(), deeds, behind, ..Performance::default() };
    cast.players.leave(&mut clients, child.is_some()).await;
    if let Some(child) = child {
        news("no client waits any more; looking at every task".to_owned());
        cast.look(&mut seen).await;
        seen.deeds.misdeeds.extend(child.stop().await.err());
    }
    cast.players.finish(&mut seen, cast.counts(), writer).await?;
    Ok((seen, Homes { front: cast.home, upstream: cast.behind.map(|behind| behind.home) }))
}

/// Who takes part: the clients, the server in front, and what is behind it.
struct Cast {
    plot: Plot,
    players: Players,
    home: Home,
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
        let (hooks, hooks_addr) = Hooks::start(ledger.clone(), dice.fork(), ours).await.map_err(Failure::runtime)?;
        let behind = match plot {
            Plot::Relay => Some(Behind::make(&folder.join("upstream"), hooks_addr, dice, ours)?),
            _ => None,
        };
        let serves = match &behind {
            Some(behind) => Serves::RelaysTo(behind.link.addr),
            None => Serves::Agents { public: None },
        };
        let home = Home::make(folder, &serves, hooks_addr, dice).map_err(Failure::runtime)?;
        let players = Players::new(ledger, hooks, hooks_addr, Client::new(home.addr)?);
        Ok(Self { plot, players, home, behind })
    }

    fn counts(&self) -> Counts {
        let cuts = self.behind.as_ref().map_or(0, |behind| behind.link.cuts());
        Counts { cuts, ..self.players.counts() }
    }

    /// Does to the servers what the plot says, for as long as was asked for, or longer until enough was seen.
    async fn suffer(&self, dice: &mut Dice, begun: Instant, length: Duration) -> Suffered {
        let (until, latest) = (begun + length, begun + length * LONGER_MAX);
        let over = || {
            let now = Instant::now();
            now >= latest || (now >= until && self.counts().shortfalls(self.plot, length).is_empty())
        };
        let victim = |home, client, place| Victim { home, client, world: &self.players.world, place };
        let front = victim(&self.home, &self.players.client, Place::Front);
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
        self.players.look(seen).await;
        if let Some(behind) = &self.behind {
            look_behind(behind, seen).await;
        }
        let commands = self.behind.as_ref().map_or(&self.home, |behind| &behind.home);
        seen.evidence.orphans = processes::orphans(&commands.mark, COMMANDS_WAIT_MAX).await;
    }
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
