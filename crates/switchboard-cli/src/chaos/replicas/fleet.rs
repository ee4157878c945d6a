//! The servers, and what is done to each of them: it is killed, frozen and stopped, its link to the database is cut, and its clock jumps. Each has dice of
//! its own, so several may be down at once.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::super::child::{Child, Home, LEASE};
use super::super::client::Client;
use super::super::dice::Dice;
use super::super::killer::Deeds;
use super::super::link::{Link, State};
use super::super::load::{Place, World};
use super::clock::WrongClock;
use super::namespace::Namespace;

/// How long a server is left alone.
const PEACE_MS: (u64, u64) = (300, 3_000);
/// How long one that was killed stays away. Some come back before their leases have run out.
const AWAY_MS: (u64, u64) = (0, 2_500);
/// How long a server is started again and again that ends while it starts, because its database is away.
const START_WAIT_MAX: Duration = Duration::from_secs(60);
const START_PAUSE: Duration = Duration::from_millis(200);
/// A server that misbehaves so often is given up.
const MISDEEDS_MAX: usize = 5;
/// The pause between two disturbances of what the servers share, and how long one may take.
const DISTURB_EVERY_MS: (u64, u64) = (4_000, 9_000);
const DISTURB_WAIT_MAX: Duration = Duration::from_secs(60);

/// A place for a server.
pub(super) struct Berth {
    pub(super) name: String,
    pub(super) home: Home,
    /// A client of this server alone.
    pub(super) client: Client,
    pub(super) link: Option<Arc<Link>>,
    /// The network that the link goes over, if it has one of its own.
    pub(super) network: Option<Namespace>,
    pub(super) clock: Option<WrongClock>,
}

/// What was done besides.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    pub(super) silent: u64,
    pub(super) broken: u64,
    /// Cuts of networks.
    pub(super) down: u64,
    pub(super) clock_jumps: u64,
}

impl Cuts {
    pub(super) fn add(&mut self, other: &Self) {
        self.silent += other.silent;
        self.broken += other.broken;
        self.down += other.down;
        self.clock_jumps += other.clock_jumps;
    }
}

impl Berth {
    /// Starts the server, again if it ends while it starts, and waits until it can be given work.
    pub(super) async fn start(&self) -> Result<Child, String> {
        let deadline = Instant::now() + START_WAIT_MAX;
        loop {
            let mut child =
                self.home.start().map_err(|error| format!("{} could not be started: {error}", self.name))?;
            match self.home.ready(&mut child, &self.client).await {
                Ok(()) => return Ok(child),
                Err(why) if Instant::now() > deadline => return Err(format!("{}: {why}", self.name)),
                Err(_) => {
                    child.kill();
                    child.buried().await;
                    sleep(START_PAUSE).await;
                }
            }
        }
    }

    /// Does one thing after the other to a server until the run is `over`, and leaves one that runs.
    pub(super) async fn rage(
        &self,
        world: &World,
        mut dice: Dice,
        over: impl Fn() -> bool,
    ) -> (Option<Child>, Deeds, Cuts) {
        let (mut deeds, mut cuts) = (Deeds::default(), Cuts::default());
        let mut child = match self.start().await {
            Ok(child) => child,
            Err(misdeed) => {
                deeds.misdeeds.push(misdeed);
                return (None, deeds, cuts);
            }
        };
        while !over() {
            sleep(Duration::from_millis(dice.between(PEACE_MS.0, PEACE_MS.1))).await;
            if let Some(status) = child.ended() {
                deeds.misdeeds.push(format!("{} ended by itself: {status}; its log says why", self.name));
            } else {
                match dice.below(11) {
                    0..=3 => {
                        kill(world, child).await;
                        sleep(Duration::from_millis(dice.between(AWAY_MS.0, AWAY_MS.1))).await;
                    }
                    4 => {
                        deeds.stops += 1;
                        deeds.misdeeds.extend(child.stop().await.err());
                    }
                    5 | 6 => {
                        let dies_frozen = freeze(&mut dice, &child, &mut deeds).await;
                        if !dies_frozen {
                            continue;
                        }
                        kill(world, child).await;
                    }
                    7 => {
                        deeds.misdeeds.extend(self.jump(&mut dice, &mut cuts).err());
                        continue;
                    }
                    _ => {
                        deeds.misdeeds.extend(self.cut(&mut dice, &mut cuts).await.err());
                        continue;
                    }
                }
            }
            child = match self.start().await {
                Ok(child) if deeds.misdeeds.len() < MISDEEDS_MAX => child,
                Ok(child) => return (Some(child), deeds, cuts),
                Err(misdeed) => {
                    deeds.misdeeds.push(misdeed);
                    return (None, deeds, cuts);
                }
            };
        }
        (Some(child), deeds, cuts)
    }

    /// Sets the clock of the server to another time.
    fn jump(&self, dice: &mut Dice, cuts: &mut Cuts) -> Result<(), String> {
        let Some(clock) = &self.clock else { return Ok(()) };
        cuts.clock_jumps += 1;
        clock.jump(dice).map_err(|error| format!("the clock of {} could not be set: {error}", self.name))
    }

    /// Cuts the link to the database for a while.
    async fn cut(&self, dice: &mut Dice, cuts: &mut Cuts) -> Result<(), String> {
        let Some(link) = &self.link else { return Ok(()) };
        let (what, time) = (dice.below(4), some_time(dice).1);
        let (how, count) = match (&self.network, what) {
            (Some(network), 0 | 1) => {
                cuts.down += 1;
                link.note_cut();
                network.set(false).await?;
                sleep(time).await;
                return network.set(true).await;
            }
            (_, 0 | 2) => (State::Silent, &mut cuts.silent),
            (_, _) => (State::Broken, &mut cuts.broken),
        };
        *count += 1;
        link.cut(how, time).await;
        Ok(())
    }
}

pub(super) async fn kill(world: &World, child: Child) {
    child.kill();
    world.note_kill(Place::Front);
    child.buried().await;
}

/// Less than a lease, or more.
fn some_time(dice: &mut Dice) -> (bool, Duration) {
    let lease_ms = u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX);
    let is_long = dice.one_in(2);
    let (least, most) = if is_long { (lease_ms * 6 / 5, lease_ms * 3) } else { (20, lease_ms * 7 / 10) };
    (is_long, Duration::from_millis(dice.between(least, most)))
}

/// Freezes a server for a while. True if it is to die without being thawed.
async fn freeze(dice: &mut Dice, child: &Child, deeds: &mut Deeds) -> bool {
    let (is_long, time) = some_time(dice);
    let dies_frozen = dice.one_in(5);
    child.freeze();
    deeds.freezes += 1;
    deeds.long_freezes += u64::from(is_long);
    sleep(time).await;
    if !dies_frozen {
        child.thaw();
    }
    dies_frozen
}

/// Disturbs what the servers share until it is dropped: runs one of the commands that were given, now and then. Nothing to do is fine.
pub(super) async fn disturb(
    commands: &[String],
    folder: &Path,
    mut dice: Dice,
    misdeeds: &std::sync::Mutex<Vec<String>>,
    count: &std::sync::atomic::AtomicU64,
) {
    loop {
        sleep(Duration::from_millis(dice.between(DISTURB_EVERY_MS.0, DISTURB_EVERY_MS.1))).await;
        let number = usize::try_from(dice.below(commands.len() as u64)).unwrap_or(0);
        let Some(command) = commands.get(number) else { continue };
        if let Err(why) = run(command, folder).await {
            let mut misdeeds = misdeeds.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            misdeeds.push(format!("`{command}` {why}"));
        }
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

async fn run(command: &str, folder: &Path) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    match timeout(DISTURB_WAIT_MAX, shell.status()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("ended with {status}")),
        Ok(Err(error)) => Err(format!("could not be run: {error}")),
        Err(_) => Err(format!("had not ended after {} s", DISTURB_WAIT_MAX.as_secs())),
    }
}
